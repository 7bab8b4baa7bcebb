"""Models of other libraries: weight names, import, export."""
