"""Formulas in the language of claims: letters get their roles, products their transposes, sums their indices."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from qkv.sheets.statements import tree as T

SCALAR, VECTOR, ROW, MATRIX, UNKNOWN = "scalar", "vector", "row", "matrix", "unknown"


class Unwritable(Exception):
    """A formula that has no counterpart in the language of claims, with the reason."""


@dataclass(frozen=True)
class Term:
    """An expression in the language of claims with its shape."""

    text: str
    shape: str
    simple: bool = False

    @property
    def closed(self) -> str:
        """The text, in brackets unless it is one name, number or call."""
        return self.text if self.simple else f"({self.text})"


Resolve = Callable[[T.Symbol], Term]


@dataclass
class Writer:
    """Writes trees in the language of claims.

    Attributes:
        resolve: What a symbol stands for.
        bound: Letters of sums that are open, and what they were renamed to.
        replaced: Letters of indices that stand for an item, such as {"i": "b"}.
        taken: Letters that no sum may use.
        named: The items that the author's queries name, which a sum over the others leaves out.
        ends: Where sums may end, such as "n", or "m" and "p" for columns.
    """

    resolve: Resolve
    replaced: Mapping[str, str] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()
    ends: tuple[str, ...] = ("n",)
    bound: dict[str, str] = field(default_factory=dict)
    named: tuple[str, ...] = ()

    def write(self, node: T.Node) -> Term:
        """The term of a node."""
        if isinstance(node, T.Number):
            return Term(_number(node.text), SCALAR, True)
        if isinstance(node, T.Symbol):
            return self._symbol(node)
        if isinstance(node, T.Minus):
            inner = self.write(node.inner)
            return Term(f"-{inner.closed}", inner.shape)
        if isinstance(node, T.Transposed):
            return self._transposed(node)
        if isinstance(node, T.Binary):
            return self._binary(node)
        if isinstance(node, T.Call):
            return self._call(node)
        if isinstance(node, T.Total):
            return self._total(node)
        if isinstance(node, T.Matrix):
            raise Unwritable("a list of numbers or a matrix")
        if isinstance(node, T.Cases):
            raise Unwritable("cases inside a formula")
        raise Unwritable("an ellipsis" if isinstance(node, T.Dots) else "a side that is not written")

    def _symbol(self, node: T.Symbol) -> Term:
        cut = node.index.index("!=") if "!=" in node.index else len(node.index)
        index = tuple(self.bound.get(i, self.replaced.get(i, i)) for i in node.index[:cut])
        return self.resolve(T.Symbol(node.base, index))

    def _transposed(self, node: T.Transposed) -> Term:
        inner = self.write(node.inner)
        if inner.shape == SCALAR:
            return inner
        if inner.shape == ROW and inner.text.endswith("'"):
            return Term(inner.text[:-1], VECTOR, True)
        shape = {VECTOR: ROW, ROW: VECTOR}.get(inner.shape, inner.shape)
        return Term(f"{inner.closed}'", shape, True)

    def _binary(self, node: T.Binary) -> Term:
        if node.sign in "+-":
            dotted = self._dotted(node)
            if dotted is not None:
                return dotted
            left, right = self.write(node.left), self.write(node.right)
            if (
                left.shape != right.shape
                and UNKNOWN not in (left.shape, right.shape)
                and "0" not in (left.text, right.text)
            ):
                raise Unwritable(f"a {left.shape} and a {right.shape} in one sum")
            shape = left.shape if left.text != "0" else right.shape
            return Term(f"{left.text} {node.sign} {right.closed if node.sign == '-' else right.text}", shape)
        if node.sign in "*.":
            if node.left == T.Symbol("sigma"):
                logistic = self._logistic(node)
                if logistic is not None:
                    return logistic
            return product(self.write(node.left), self.write(node.right))
        if node.sign == "/":
            top, bottom = self.write(node.left), self.write(node.right)
            if bottom.shape not in (SCALAR, UNKNOWN):
                raise Unwritable(f"a division by a {bottom.shape}")
            return Term(f"{top.closed}/{bottom.closed}", top.shape)
        power = self.write(node.right)
        base = self.write(node.left)
        if base.shape == VECTOR and power.text == "2":
            return Term(f"norm({base.text})^2", SCALAR)
        if base.shape == MATRIX and power.text == "2":
            return Term(f"({base.closed}*{base.closed})", MATRIX, True)
        if base.shape == MATRIX and power.text == "-1":
            return Term(f"inv({base.text})", MATRIX, True)
        if base.shape not in (SCALAR, UNKNOWN) or power.shape not in (SCALAR, UNKNOWN):
            raise Unwritable(f"a power of a {base.shape}")
        up = power.text if re.fullmatch(r"\d+", power.text) else f"({power.text})"
        return Term(f"{base.closed}^{up}", SCALAR)

    def _logistic(self, node: T.Binary) -> Term | None:
        """σ(x) as 1/(1 + exp(-x)), where σ is no letter of its own."""
        try:
            self.write(node.left)
        except Unwritable:
            inner = self.write(node.right)
            return Term(f"(1/(1 + exp(-{inner.closed})))", SCALAR, True) if inner.shape == SCALAR else None
        return None

    def _call(self, node: T.Call) -> Term:
        if node.name in ("Var", "Cov", "E"):
            inner = [self.write(a) for a in node.arguments]
            shape = (
                inner[0].shape
                if node.name == "E"
                else (MATRIX if inner[0].shape == VECTOR and len(inner) == 1 else SCALAR)
            )
            if inner[0].shape == ROW and node.name == "Cov":
                return Term(f"Cov[{inner[0].text.removesuffix(chr(39))}]", MATRIX, True)
            return Term(f"{node.name}[{', '.join(t.text for t in inner)}]", shape, True)
        if node.name in ("exp", "log", "sqrt", "norm", "abs") and len(node.arguments) == 1:
            inner_term = self.write(node.arguments[0])
            if node.name == "abs" and inner_term.shape == VECTOR:
                return Term(f"norm({inner_term.text})", SCALAR, True)
            if node.name == "norm" and inner_term.shape == SCALAR:
                return Term(f"abs({inner_term.text})", SCALAR, True)
            if node.name in ("exp", "log", "sqrt") and inner_term.shape not in (SCALAR, UNKNOWN):
                raise Unwritable(f"{node.name} of a {inner_term.shape}")
            if node.name == "sqrt" or node.name == "norm" or node.name == "abs":
                return Term(f"{node.name}({inner_term.text})", SCALAR, True)
            return Term(f"{node.name}({inner_term.text})", SCALAR, True)
        raise Unwritable(f"{node.name}(…)")

    def _total(self, node: T.Total) -> Term:
        if node.last and node.last not in self.ends:
            raise Unwritable(f"a sum up to {node.last}")
        free = next(c for c in "lrzwfgh" if c not in self.taken and c not in self.bound.values())
        outer = dict(self.bound)
        self.bound[node.index] = free
        inner = self.write(node.inner)
        self.bound = outer
        but = [self.replaced.get(b, b) for b in node.but]
        if but == ["others"]:
            if not self.named:
                raise Unwritable("a sum over the others")
            but = list(self.named)
        head = f"sum_{{{free} != {', '.join(but)}}}" if but else f"sum_{free}"
        last = node.last if node.last or "m" not in self.ends else self._end_for(node.inner)
        if last and last != "n":
            head = f"sum_{{{free}=1}}^{last}"
        return Term(f"({head} {inner.closed})", inner.shape, True)

    def _dotted(self, node: T.Binary) -> Term | None:
        """x_1 + x_2 + … + x_n as a sum, 1 + … + 1 as a number of ones."""
        terms = addends(node)
        if not any(isinstance(t, T.Dots) for t in terms):
            return None
        place = next(i for i, t in enumerate(terms) if isinstance(t, T.Dots))
        first, last = terms[0], terms[-1]
        if (
            place > 0
            and place + 1 < len(terms)
            and terms[place - 1] == terms[place + 1]
            and not T.symbols(terms[place - 1])
        ):
            others = [t for t in terms if not isinstance(t, T.Dots) and t != terms[place - 1]]
            rest = self.write(terms[place - 1])
            head = " + ".join(self.write(t).text for t in others)
            return Term(f"{head} + (n - {len(others)})*{rest.closed}", SCALAR)
        ends = {i for s in T.symbols(last) for i in s.index if i in ("n", "m", "p", "d", "q")}
        starts = {i for s in T.symbols(first) for i in s.index if i == "1"}
        if not ends or not starts:
            raise Unwritable("an ellipsis")
        end = sorted(ends)[0]
        body = T.with_index(first, "1", "ℓ")
        return self._total(T.Total("ℓ", (), end if end in self.ends else self._end_for(body), body))

    def _end_for(self, body: T.Node) -> str:
        """The end of a sum over columns, by the letter of the columns."""
        bases = {s.base for s in T.symbols(body)}
        if "m" in self.ends and bases & {"a", "c"}:
            return "m"
        if "p" in self.ends and bases & {"b", "d"}:
            return "p"
        raise Unwritable("a sum with another end")


def product(left: Term, right: Term) -> Term:
    """The product; two vectors side by side are a dot product, and a matrix after a vector transposes it."""
    shapes = (left.shape, right.shape)
    if shapes == (VECTOR, VECTOR):
        return Term(f"{left.closed}'*{right.closed}", SCALAR)
    if shapes == (VECTOR, MATRIX):
        return Term(f"{left.closed}'*{right.closed}", ROW)
    if shapes == (ROW, ROW):
        return Term(f"{left.text}*{right.text.removesuffix(chr(39))}", SCALAR)
    shape = {
        (ROW, VECTOR): SCALAR, (VECTOR, ROW): MATRIX, (MATRIX, VECTOR): VECTOR, (ROW, MATRIX): ROW,
        (MATRIX, MATRIX): MATRIX, (MATRIX, ROW): MATRIX,
    }.get(shapes)  # fmt: skip
    if shape is None:
        shape = right.shape if left.shape in (SCALAR, UNKNOWN) else left.shape
    first = left.text if left.simple or re.fullmatch(r"[^+\-/ ]*(?:'|\*[^+\-/ ]+)*", left.text) else left.closed
    return Term(f"{first}*{right.closed}", shape)


def addends(node: T.Node) -> list[T.Node]:
    """The terms of a sum."""
    if isinstance(node, T.Binary) and node.sign == "+":
        return [*addends(node.left), *addends(node.right)]
    return [node]


def _number(text: str) -> str:
    return f"0{text}" if text.startswith(".") else text
