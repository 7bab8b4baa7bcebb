"""Settings of the site: `make docs` builds it into docs/_build/html, offline, and takes every warning as an error."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent / "src")]

from qkv import __version__  # noqa: E402

project = "qkv"
copyright = "2026 the qkv authors"
version = release = __version__

extensions = ["myst_parser", "reference", "lexers", "mathml", "no_inline", "licences"]
myst_enable_extensions = ["deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
exclude_patterns = ["_build", "schemas"]
highlight_language = "text"
smartquotes = False
add_module_names = False
add_function_parentheses = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = "qkv"
html_favicon = "../src/qkv/web/static/icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["search.js"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_use_index = True
html_theme_options = {"top_of_page_buttons": []}
