"""The routes of the JSON API, one module per page, and `defaults` for health and initial states."""
