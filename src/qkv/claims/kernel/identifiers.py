"""Identifiers and comments of exported theorems: no text of a claim reaches Coq unescaped."""

from __future__ import annotations

import re

SAFE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)
UNSAFE_IN_COMMENT = re.compile(r"[^A-Za-z0-9 _+\-=<>/^.,:;'{}\[\]()|!~*]")


class Identifiers:
    """One Coq identifier for each name of a claim: a prefix for its kind, and the name if it is plain ASCII."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}

    def of(self, kind: str, name: str) -> str:
        """The identifier of a name; `kind` is such as num, vec, item or let."""
        key = (kind, name)
        if key not in self._known:
            plain = name.replace("_", "").replace("{", "").replace("}", "").replace(",", "")
            word = f"{kind}_{plain}" if SAFE_NAME.fullmatch("a" + plain) else f"{kind}_{len(self._known)}x"
            while word in self._known.values():
                word += "x"
            self._known[key] = word
        return self._known[key]


def comment(text: str) -> str:
    """A text as a Coq comment: printable ASCII only, without anything that ends or nests comments or opens a string."""
    plain = UNSAFE_IN_COMMENT.sub(" ", text.replace("\\", " ").replace('"', "'"))
    return "(* " + " ".join(plain.replace("*", " * ").split()) + " *)"
