"""Pictures and pages: theme, plots, and the report as one self-contained page."""
