"""parse: the LaTeX of one formula to clauses, by recursive descent; what cannot be read raises Unreadable."""

from __future__ import annotations

import re
from dataclasses import replace

from qkv.sheets.reading.relations import COMMANDS as SIGNS
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.conditions import Unreadable as Unreadable
from qkv.sheets.statements.expressions import FUNCTIONS, ExpressionParser
from qkv.sheets.statements.tokens import Token, tokens

BREAKS = {"quad", "qquad", "Rightarrow", "implies", "therefore", "because", "iff", "land", "wedge", "Longrightarrow",
          "Leftrightarrow", "forall", "leftrightarrow", "lor"}  # fmt: skip
IMPLY = {"Rightarrow", "implies", "therefore", "Longrightarrow"}


def parse(math: str) -> tuple[T.Clause, ...]:
    """The clauses of a formula; conditions beside them are attached to those that they speak of.

    Raises:
        Unreadable: The formula is not one that can be read.
    """
    found = tokens(re.sub(r"(?<!\\)&", " ", math) if r"\begin" not in math else _outer_ampersands(math))
    try:
        return _Parser(found).formula()
    except (IndexError, RecursionError) as why:
        raise Unreadable("the formula ends too early") from why


def expression(math: str) -> T.Node:
    """One expression without a relation."""
    parser = _Parser(tokens(math))
    try:
        found = parser.sum()
    except (IndexError, RecursionError) as why:
        raise Unreadable("the formula ends too early") from why
    if parser.index < len(parser.tokens):
        raise Unreadable(f"'{parser.tokens[parser.index].text}'")
    return found


def _outer_ampersands(math: str) -> str:
    """The formula without the alignment signs that stand in no environment."""
    out, depth = [], 0
    for found in re.finditer(r"\\begin\{|\\end\{|\\&|&|.", math, re.S):
        depth += (found[0] == r"\begin{") - (found[0] == r"\end{")
        if found[0] != "&" or depth:
            out.append(found[0])
    return "".join(out)


class _Parser(ExpressionParser):
    """Reads clauses."""

    def formula(self) -> tuple[T.Clause, ...]:
        out: list[T.Clause] = []
        loose: list[T.Condition] = []
        lead = ""
        self._label()
        self._unwrap()
        while self.index < len(self.tokens):
            token = self.peek()
            if token.text in (",", ";", ".", ":", "space", "\\\\", "!", "?", "%") and token.kind in ("sign", "command"):
                self.index += 1
                continue
            if token.kind == "text" or (token.kind == "word" and token.text not in FUNCTIONS):
                self.index += 1
                continue
            if token.kind == "command" and token.text in BREAKS:
                self.index += 1
                lead = "implied" if token.text in IMPLY else lead
                if token.text == "forall":
                    self._forall(out, loose)
                continue
            conditions = self._index_condition()
            if conditions is not None:
                if out:
                    out[-1] = replace(out[-1], conditions=(*out[-1].conditions, *conditions))
                else:
                    loose += conditions
                continue
            bracket = self._bracketed_condition()
            if bracket is not None:
                if out:
                    out[-1] = replace(out[-1], conditions=(*out[-1].conditions, *bracket))
                continue
            if self.at("(") and (close := self._bracketed_relation()):  # (β ≫ 0) beside a clause is one of its own
                self.tokens[close] = Token("sign", ",")
                self.index += 1
                continue
            for clause in self._chain(lead):
                out.append(replace(clause, conditions=(*loose, *clause.conditions)))
            self._require_end()
            loose = [] if any(c.sides for c in out) else loose
            lead = ""
        if not out and loose:
            return (T.Clause((), (), tuple(loose)),)
        return tuple(out)

    def _require_end(self) -> None:
        """Refuse a formula that goes on where its chain has ended: a part of it would be lost."""
        token = self.peek()
        if self.implied:  # an arrow that was an implication was taken
            self.implied = False
            return
        if token.kind in ("end", "text") or (token.kind == "word" and token.text not in FUNCTIONS):
            return
        if token.kind == "sign" and token.text in (",", ";", ".", ":", "\\\\", "!", "?", "(", "[", "%"):
            return
        if token.kind == "command" and (
            token.text in BREAKS or token.text in ("space", "&", "}", "{", "to", "rightarrow")
        ):
            return
        raise Unreadable(f"'{token.text}'")

    def _label(self) -> None:
        """Skip a label such as `ii` or `(b)` with which a display begins."""
        words = [t.text for t in self.tokens[:5]]
        for size in (5, 4, 3, 2, 1):
            head = words[:size]
            plain = "".join(h for h in head if h not in "()).")
            after = words[size] if size < len(words) else ""
            if re.fullmatch(r"i{1,3}|iv|v|[a-h]", plain) and after in ("quad", "qquad") and size < len(self.tokens):
                self.index = size
                return

    def _unwrap(self) -> None:
        """Drop round brackets around a whole formula that holds a relation."""
        if not self.at("(") or self.tokens[-1].text not in (")", "."):
            return
        depth = 0
        last = len(self.tokens) - (2 if self.tokens[-1].text == "." else 1)
        for place in range(self.index, last + 1):
            depth += (self.tokens[place].text == "(") - (self.tokens[place].text == ")")
            if depth == 0:
                if place == last:
                    self.tokens = self.tokens[self.index + 1 : last]
                    self.index = 0
                return

    def _forall(self, out: list[T.Clause], loose: list[T.Condition]) -> None:
        conditions = self._index_condition()
        if conditions is None:
            letters = []
            while self.peek().kind == "letter" or self.at(","):
                letters.append(self.take().text)
            conditions = [T.Condition("all", letter) for letter in letters if letter != ","]
        if out:
            out[-1] = replace(out[-1], conditions=(*out[-1].conditions, *conditions))
        else:
            loose += conditions

    def _chain(self, lead: str) -> list[T.Clause]:
        """Sides and relations up to a comma or a wide space; several when one side is a list, as in k_a, k_b ~ N."""
        sides: list[T.Node] = []
        signs: list[str] = []
        heads: list[T.Node] = []
        if self._relation() is None:
            sides.append(self.sum())
        else:
            sides.append(T.Missing())
        while True:
            if not signs and self.at(",") and self._lists_a_side():
                self.index += 1
                heads.append(sides.pop())
                sides.append(self.sum())
                continue
            sign = self._relation()
            if sign is None:
                break
            if sign == "->" and signs and self._relation_ahead() and (signs[-1] in ("~", "->") or self._new_subject()):
                self._take_relation()
                self.implied = True
                break
            self._take_relation()
            while self.at("space", "quad"):
                self.index += 1
            if sign == ":" and self.peek().kind == "letter" and self.at("N") and self.peek(1).text == "(":
                self.tokens[self.index] = Token("word", "N")
            if sign == "in" and signs:  # A = … ∈ ℝ^{m×d}: the size of what was written
                self._skip_set()
                break
            signs.append(sign)
            if sign in ("in", "notin") and (self.at("Reals", "N", "P") or self._letter_set()):
                self._skip_set()
                sides.append(T.Missing())
                break
            if sign in ("in", "notin") and self.at("{"):
                self._members()
                sides.append(T.Missing())
                continue
            if self._relation() is not None or self.index >= len(self.tokens):
                raise Unreadable("a relation without a right side")
            sides.append(self.sum())
        if not signs:
            return []
        if self.limit:
            signs = ["->" if sign == "=" else sign for sign in signs]
            self.limit = False
        if self.maxima and not set(signs) <= {">", ">=", ">>"}:
            raise Unreadable("a maximum")
        beside, self.beside, self.maxima = tuple(self.beside), [], 0
        return [T.Clause((head, *sides[1:]), tuple(signs), beside, lead, self.doubtful) for head in (*heads, sides[0])]

    def relations(self, found: list[Token]) -> list[T.Condition]:
        """Tokens as conditions; what cannot be read is none."""
        try:
            clauses = _Parser([t for t in found if not (t.kind == "sign" and t.text == "&")]).formula()
        except (Unreadable, IndexError):
            return []
        conditions = [c for clause in clauses for c in clause.conditions]
        return [*conditions, *(T.Condition("relation", clause=clause) for clause in clauses if len(clause.sides) > 1)]

    def _lists_a_side(self) -> bool:
        """Whether after a comma another left side follows, as in s, t ≫ n."""
        depth = 0
        for token in self.tokens[self.index + 1 : self.index + 12]:
            if token.text in ("(", "{", "["):
                depth += 1
            elif token.text in (")", "}", "]"):
                depth -= 1
            elif depth == 0 and (token.text == "=" or (token.kind == "command" and token.text in SIGNS)):
                return token.text in ("gg", "sim", "in", "to", "ll") or token.text in (">", "<")
            elif depth == 0 and (token.text == "," or token.text in BREAKS):
                continue
        return False

    def _relation_ahead(self) -> bool:
        depth = 0
        for token in self.tokens[self.index + 1 :]:
            depth += (token.text in "({[") - (token.text in ")}]") if token.text else 0
            if depth == 0 and (token.text in "=<>" or SIGNS.get(token.text) in ("~", ">>", ">=", "<=")):
                return True
        return False

    def _letter_set(self) -> bool:
        """Whether a set such as R^d or S follows."""
        return self.peek().kind == "letter" and self.peek().text.isupper() and self.peek(1).text in ("^", "", ",", ".")

    def _skip_set(self) -> None:
        """Pass over the set of which a value is said to be a member."""
        depth = 0
        while self.index < len(self.tokens):
            token = self.peek()
            if depth == 0 and (token.kind == "text" or token.text in BREAKS or token.text in (",", ";", ".", ")", "]")):
                return
            depth += (token.text in "({[") - (token.text in ")}]") if token.kind == "sign" else 0
            self.index += 1

    def _new_subject(self) -> bool:
        """Whether after an arrow an output, a weight, a key or a query follows, of which something new is said."""
        token = self.peek(1)
        return (token.kind == "letter" and token.text in "cCkKqw") or (token.kind, token.text) == ("command", "alpha")

    def _relation(self) -> str | None:
        token = self.peek()
        if token.kind == "sign" and token.text in ("=", "<", ">", "~"):
            return ":" if token.text == "~" else token.text
        if token.kind == "command" and token.text == "not" and SIGNS.get(self.peek(1).text) in ("~", "->", ":"):
            return "!~"
        if token.kind == "command" and token.text == "not" and self.peek(1).text in ("=", "in"):
            return "!="
        if token.kind == "command" and token.text in SIGNS:
            return SIGNS[token.text]
        return None

    def _take_relation(self) -> None:
        token = self.take()
        if token.text == "not":
            self.index += 1
        if token.text == ">" and self.at(">"):
            self.index += 1
        while self.at(":", "="):
            if self.at("=") and token.text in (":", "=", "<", ">"):
                self.index += 1
            else:
                break
