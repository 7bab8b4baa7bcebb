"""Whether a name stands in some texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable


class NameIndex:
    """Whether a name stands in any of some lines, as whole words, whatever its case, accents' encoding and spaces."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._text = " \n ".join(_words(line) for line in lines)
        self._text = f" {self._text} "

    def __contains__(self, name: str) -> bool:
        return f" {_words(name)} " in self._text


def _words(text: str) -> str:
    """The words of a text in lower case, with one space between them and without punctuation."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFC", text.casefold())))
