"""From Markdown to the syntax tree.

Reading order: markdown (fenced blocks to clauses), latex (LaTeX and Unicode to ASCII), parser (ASCII to nodes, with
grammar.lark), nodes (the syntax tree).
"""
