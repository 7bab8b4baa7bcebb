"""Output on terminals and in pipes whose encoding lacks some of our signs: they are written in ASCII instead."""

from __future__ import annotations

import codecs
import sys
import unicodedata
import warnings
from typing import Any

from qkv.errors import QkvWarning

ERROR_HANDLER = "qkv-ascii"
ASCII = {
    "✓": "v", "✗": "x", "≈": "~", "±": "+-", "…": "...", "→": "->", "←": "<-", "≤": "<=", "≥": ">=", "≠": "!=",
    "−": "-", "–": "-", "—": "-", "·": "*", "×": "x", "∞": "oo", "√": "sqrt", "∑": "sum", "∫": "integral", "‖": "||",
    "“": '"', "”": '"', "‘": "'", "’": "'", "•": "*", "∈": "in", "⁇": "?", "ᵀ": "^T",
}  # fmt: skip


def ascii_text(text: str) -> str:
    """A text in ASCII: known signs by words, Greek letters by their names, accents dropped, and ? for the rest."""
    return "".join(map(_ascii, text))


def _ascii(sign: str) -> str:
    if sign.isascii():
        return sign
    if sign in ASCII:
        return ASCII[sign]
    name = unicodedata.name(sign, "")
    if name.startswith("GREEK ") and " LETTER " in name:
        word = name.split(" LETTER ")[1].split()[0].lower()
        return word.capitalize() if "CAPITAL" in name else word
    plain = "".join(c for c in unicodedata.normalize("NFKD", sign) if c.isascii() and c.isprintable())
    return plain or "?"


def degrade_output() -> None:
    """Write in ASCII what the encoding of standard output or standard error lacks, and our warnings as one line."""
    codecs.register_error(ERROR_HANDLER, _replace)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=ERROR_HANDLER)
    show = warnings.showwarning

    def show_warning(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, QkvWarning):
            sys.stderr.write(f"qkv: {message}\n")
        else:
            show(message, category, *rest, **more)

    warnings.showwarning = show_warning


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return ascii_text(error.object[error.start : error.end]), error.end
