"""Markdown and LaTeX to syntax nodes: markdown, latex, parser (with grammar.lark), nodes."""
