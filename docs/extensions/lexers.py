"""Colours for the blocks that are ours: claims, and the code map, which stays plain."""

from __future__ import annotations

from pygments.lexer import RegexLexer
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Number, Operator, Punctuation, Text
from sphinx.application import Sphinx


class ClaimLexer(RegexLexer):
    """The language of claims inside Markdown."""

    name = "claims"
    aliases = ("claims", "claim")
    tokens = {  # noqa: RUF012
        "root": [
            (r"^(```|~~~).*$", Comment),
            (r"#.*$", Comment),
            (r"^(\s*)(given|let|then)\b", Keyword),
            (r"\b(as|for|when|and|orthonormal|orthogonal|free|real|no|makes|within|with|probability)\b", Keyword.Type),
            (r"-/->|->|<=|>=|!=|[=<>~]", Operator),
            (r"\b\d+(\.\d+)?\b", Number),
            (r"[()\[\]{},]", Punctuation),
            (r"[^\s()\[\]{},=<>~#`-]+|.|\s", Text),
        ]
    }


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_lexer("claims", ClaimLexer)
    app.add_lexer("claim", ClaimLexer)
    app.add_lexer("tree", TextLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
