"""Training on facts: texts and questions in one run, and texts without some people."""
