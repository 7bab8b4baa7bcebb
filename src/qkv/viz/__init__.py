"""Pictures and pages: the theme, one module of plots per package, and the HTML report.

Reading order: theme (colours) and rc_figure (figures in them), plots (one module per package), attention_arcs (one
head), formulas and mathml (formulas in sentences and on pages), html_report (the page), heads_report and sheets_report
(pages about heads and answer sheets).
"""
