"""Formulas of a sheet in the language of claims, letters as the author wrote them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from qkv.sheets.reading.sheet import Formula
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.parser import Unreadable, parse

LIMIT = re.compile(r"\\lim(?:\\limits)?\s*_\s*\{[^{}]*\}")
STRONG, WEAK = 2, 1  # how tightly an expression holds together: a factor, a product


@dataclass(frozen=True)
class Said:
    """A clause of a formula, and the formula in which it stands."""

    clause: T.Clause
    formula: Formula


def said(formulas: list[Formula]) -> Iterator[Said]:
    """The clauses of formulas in reading order; formulas that cannot be read have none."""
    for formula in formulas:
        for clause in clauses(formula.math):
            if clause.sides:
                yield Said(clause, formula)


def clauses(math: str) -> tuple[T.Clause, ...]:
    """The clauses of a formula, or none if it cannot be read."""
    try:
        return parse(LIMIT.sub(" ", math))
    except Unreadable:
        return ()


def claim_text(node: T.Node, definitions: Mapping[str, str] | None = None) -> str | None:
    """An expression in the language of claims, or None where it has no counterpart there.

    Args:
        node: The expression.
        definitions: Letters that the author defines as matrices of the basis, such as {"P": "A"}.
    """
    found = _text(node, definitions or {})
    return None if found is None else found[0]


def _text(node: T.Node, known: Mapping[str, str]) -> tuple[str, int] | None:
    """The text, and how tightly it holds together: 0 for sums."""
    if isinstance(node, T.Number):
        return node.text, STRONG
    if isinstance(node, T.Symbol):
        return (symbol_text(node, known), STRONG) if symbol_text(node, known) else None
    if isinstance(node, T.Minus):
        inner = _text(node.inner, known)
        return (f"-{_bracketed(inner, WEAK)}", 0) if inner else None
    if isinstance(node, T.Transposed):
        return _transposed(node, known)
    if isinstance(node, T.Binary):
        return _binary(node, known)
    if isinstance(node, T.Call):
        return _call(node, known)
    if isinstance(node, T.Total):
        return _total(node, known)
    if isinstance(node, T.Matrix):
        found = basis_matrix(node)
        return (found, STRONG) if found else None
    return None


def symbol_text(node: T.Symbol, known: Mapping[str, str] | None = None) -> str:
    """A letter with its index; empty if it cannot be a name of the language."""
    base = node.base.rstrip("'")
    if not base.isascii() or not base.isalpha():
        return ""
    index = [i for i in node.index if i]
    if any(not i.isascii() or not i.isalnum() for i in index):
        return ""
    if not index and known and base in known:
        return known[base]
    if not index:
        return base
    return f"{base}_{index[0]}" if len(index) == 1 else f"{base}_{{{','.join(index)}}}"


def _bracketed(found: tuple[str, int], least: int) -> str:
    return found[0] if found[1] >= least else f"({found[0]})"


def _transposed(node: T.Transposed, known: Mapping[str, str]) -> tuple[str, int] | None:
    inner = _text(node.inner, known)
    if inner is None:
        return None
    if inner[0].endswith("'") and inner[1] == STRONG:  # a letter that stands for A'
        return inner[0][:-1], STRONG
    return f"{_bracketed(inner, STRONG)}'", STRONG


def _dotted_sum(node: T.Binary) -> T.Total | None:
    """a_1 x + a_2 x + … + a_m x as a sum over i, or None if it is none."""
    terms: list[T.Node] = []
    rest: T.Node = node
    while isinstance(rest, T.Binary) and rest.sign == "+":
        terms.insert(0, rest.right)
        rest = rest.left
    terms.insert(0, rest)
    if len(terms) < 3 or not any(isinstance(term, T.Dots) for term in terms):
        return None
    last = {s.index[-1] for s in T.nodes(terms[-1]) if isinstance(s, T.Symbol) and s.index}
    first = {s.index[-1] for s in T.nodes(terms[0]) if isinstance(s, T.Symbol) and s.index}
    if len(last) != 1 or first != {"1"}:
        return None
    (end,) = last
    return T.Total("i", (), end, _with_index(terms[0], "1", "i"))


def _with_index(node: Any, old: str, new: str) -> Any:
    """A node with one index put for another."""
    if isinstance(node, T.Symbol):
        return replace(node, index=tuple(new if i == old else i for i in node.index))
    if isinstance(node, tuple):
        return tuple(_with_index(one, old, new) for one in node)
    if isinstance(node, T.Node):
        return replace(node, **{f.name: _with_index(getattr(node, f.name), old, new) for f in fields(node)})
    return node


def _binary(node: T.Binary, known: Mapping[str, str]) -> tuple[str, int] | None:
    if node.sign == "+" and any(isinstance(one, T.Dots) for one in T.nodes(node)):
        total = _dotted_sum(node)
        return None if total is None else _total(total, known)
    left, right = _text(node.left, known), _text(node.right, known)
    if left is None or right is None:
        return None
    if node.sign in "+-":
        return f"{left[0]} {node.sign} {_bracketed(right, WEAK)}", 0
    if node.sign == "^":
        return f"{_bracketed(left, STRONG)}^{_bracketed(right, STRONG)}", STRONG
    if node.sign == "/":
        return f"{_bracketed(left, WEAK)}/{_bracketed(right, STRONG)}", WEAK
    return f"{_bracketed(left, WEAK)}*{_bracketed(right, STRONG if '/' in right[0] else WEAK)}", WEAK


def _call(node: T.Call, known: Mapping[str, str]) -> tuple[str, int] | None:
    if (
        node.name not in ("exp", "log", "sqrt", "norm", "abs", "max", "min", "softmax", "sigmoid")
        or len(node.arguments) != 1
    ):
        return None
    inner = _text(node.arguments[0], known)
    return (f"{node.name}({inner[0]})", STRONG) if inner else None


def _total(node: T.Total, known: Mapping[str, str]) -> tuple[str, int] | None:
    inner = _text(node.inner, known)
    if inner is None:
        return None
    last = node.last if node.last in ("m", "p") else ""
    if last and node.index != "i":
        inner = _text(_with_index(node.inner, node.index, "i"), known) or inner
        node = replace(node, index="i")
    below = f"{node.index} != {', '.join(node.but)}" if node.but else (f"{node.index}=1" if last else node.index)
    head = f"sum_{{{below}}}" + (f"^{last}" if last else "") if node.but or last else f"sum_{node.index}"
    return f"{head} {_bracketed(inner, WEAK)}", 0


def basis_matrix(node: T.Matrix) -> str:
    """A for a matrix of the columns a_1, …, a_m, A' for one of the rows; empty for another."""
    rows = node.rows
    flat = [cell for row in rows for cell in row if not isinstance(cell, T.Dots)]
    if len(flat) < 2:
        return ""
    plain = [cell.inner if isinstance(cell, T.Transposed) else cell for cell in flat]
    if not all(isinstance(cell, T.Symbol) and cell.base == "a" and cell.index for cell in plain):
        return ""
    if len({cell.index for cell in plain if isinstance(cell, T.Symbol)}) != len(plain):
        return ""
    flipped = isinstance(flat[0], T.Transposed)
    if len(rows) == 1:
        return "" if flipped else "A"
    return "A'" if all(len(row) == 1 for row in rows) else ""


def symbol_of(node: T.Node) -> T.Symbol | None:
    """The letter that a side is, or None if it is more than a letter."""
    return node if isinstance(node, T.Symbol) else None
