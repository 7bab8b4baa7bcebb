"""Pictures and pages: the theme, one module of plots per package, and the HTML report."""
