"""One module of plots a package."""
