"""Tokens one by one, and conditions on indices such as i ≠ a, b."""

from __future__ import annotations

from dataclasses import replace

from qkv.sheets.reading.relations import COMMANDS as SIGNS
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.tokens import Token


class Unreadable(Exception):
    """A formula that the parser does not know, with what it stopped at."""


class ConditionParser:
    """Reads tokens from left to right."""

    def __init__(self, found: list[Token]) -> None:
        self.tokens = found
        self.index = 0
        self.depth = 0
        self.doubtful = False  # a slash before several factors
        self.implied = False  # the last relation was an implication
        self.limit = False  # a lim stands before a side
        self.bars = 0  # norms and absolute values that are open
        self.beside: list[T.Condition] = []  # conditions written inside an expression, as below a lim
        self.maxima = 0  # maxima over an index in the sides read so far

    def peek(self, ahead: int = 0) -> Token:
        place = self.index + ahead
        return self.tokens[place] if place < len(self.tokens) else Token("end", "")

    def take(self) -> Token:
        token = self.peek()
        self.index += 1
        return token

    def at(self, *texts: str) -> bool:
        return self.peek().text in texts and self.peek().kind != "text"

    def expect(self, text: str) -> None:
        if not self.at(text):
            raise Unreadable(f"'{self.peek().text or 'the end'}' where {text} was expected")
        self.index += 1

    def _index_condition(self) -> list[T.Condition] | None:
        """A condition on an index: i ≠ a, b; i ∉ {a, b}; i = a; i, j with i ≠ j."""
        start = self.index
        if self.peek().kind != "letter" or self.peek().text not in "ijkl":
            return None
        index = self.take().text
        sign = self.take()
        name = SIGNS.get(sign.text, sign.text) if sign.kind in ("command", "sign") else ""
        if sign.text == "not" and self.at("=", "in"):
            name = "!=" if self.take().text == "=" else "notin"
        if name in ("in", "notin"):
            members = self._members()
            if members is not None:
                everything = any(m in ("..", "n") for m in members) and name == "in"
                self._setminus(members)
                kind = "all" if everything else "index"
                found = [T.Condition(kind, index, tuple(m for m in members if m != ".."), name == "in")]
                return self._more(found)
        elif name in ("!=", "="):
            members = self._list()
            if members and not (name == "=" and self._goes_on()):
                return self._more([T.Condition("index", index, tuple(members), name == "=")])
        self.index = start
        return None

    def _goes_on(self) -> bool:
        return self.peek().kind in ("letter", "number") or self.at("+", "-", "(", "_", "^", "=", "/", "cdot")

    def _more(self, found: list[T.Condition]) -> list[T.Condition]:
        """Further conditions on the same index: i ∈ {1..n}, i ≠ a, i ≠ b."""
        start = self.index
        while self.at(",", "land", "wedge", "and", "space", "or", "lor", "vee"):
            self.index += 1
        more = self._index_condition()
        if more is None:
            self.index = start
            return found
        if found[-1].index == more[0].index and found[-1].inside and more[0].inside and found[-1].kind == more[0].kind:
            return [*found[:-1], replace(found[-1], members=(*found[-1].members, *more[0].members)), *more[1:]]
        same = found[-1].index == more[0].index and found[-1].kind == more[0].kind == "index"
        if same and not found[-1].inside and not more[0].inside:
            joined = replace(found[-1], members=(*found[-1].members, *more[0].members))
            return [*found[:-1], joined, *more[1:]]
        return [*found, *more]

    def _members(self) -> list[str] | None:
        if self.at("{"):
            close = "}"
            self.index += 1
        else:
            return None
        out: list[str] = []
        while not self.at(close) and self.index < len(self.tokens):
            token = self.take()
            if token.text in ("dots", "ldots", "cdots"):
                out.append("..")
            elif token.kind in ("letter", "number"):
                out.append(token.text)
        self.index += 1
        return out

    def _setminus(self, members: list[str]) -> None:
        if self.at("setminus"):
            self.index += 1
            self._members()

    def _list(self) -> list[str]:
        out = []
        while self.peek().kind in ("letter", "number"):
            out.append(self.take().text)
            if self.at(",", "or", "and") and self.peek(1).kind in ("letter", "number"):
                after = self.peek(2)
                if after.kind == "end" or after.text in (",", ")", ".", "}", "quad", "space", ";", "or", "and", "\\\\"):
                    self.index += 1
                    continue
            break
        return out

    def _bracketed_relation(self) -> int:
        """The place of the bracket that closes the one here, if a relation such as β ≫ 0 stands in it, else 0."""
        depth, relation = 0, False
        for place in range(self.index, len(self.tokens)):
            token = self.tokens[place]
            if token.kind == "sign" and token.text in "([{":
                depth += 1
            elif token.kind == "sign" and token.text in ")]}":
                depth -= 1
                if depth == 0:
                    return place if relation else 0
            elif depth == 1 and token.kind != "text":
                known = token.kind == "command" and token.text in SIGNS
                relation = relation or known or (token.kind == "sign" and token.text in "=<>")
        return 0

    def _bracketed_condition(self) -> list[T.Condition] | None:
        """(i ≠ a, b) after a clause."""
        if not self.at("("):
            return None
        start = self.index
        self.index += 1
        found = self._index_condition()
        if found is not None and self.at(")"):
            self.index += 1
            return found
        self.index = start
        return None
