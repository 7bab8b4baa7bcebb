"""Formulas of a sheet in the language of claims, letters as the author wrote them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from qkv.sheets.reading.sheet import Formula
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.parser import Unreadable, parse

LIMIT = re.compile(r"\\lim(?:\\limits)?\s*_\s*\{[^{}]*\}")
NOTATIONS = (
    (re.compile(r"^\s*\\boxed\s*\{(.*)\}\s*[.,]?\s*$", re.S), r"\1"),
    (re.compile(r"(=[^,=]*?)\\in\s*\\mathbb\s*\{?\s*R\s*\}?\s*(?:\^\s*(?:\{[^{}]*\}|\w))?"), r"\1"),
    (LIMIT, " "),
    (
        re.compile(r"\+\s*\\(?:text|mathrm|textrm|mbox)\s*\{[^{}]*\}\s*([.,]?)\s*$"),
        r"\1",
    ),  # a rest in words
    (re.compile(r"\b([qM])\s*\^\s*(?:\*|\{\s*\*\s*\}|\\ast|\\star|\{\\(?:ast|star)\})"), r"\1"),  # the best one
    (re.compile(r"\b0\s*\^\s*(?:\{\s*[+-]\s*\}|[+-](?!\w))"), "0"),  # a limit from one side
    (
        re.compile(
            r"(?<=[\w})])(\s*(?:\\[;,:! ]|\\q?quad)?\s*)"
            r"\(((?:[^()=]*(?:\\(?:to|gg|rightarrow)(?![a-zA-Z])|>)[^()=]*))\)\s*$"
        ),
        r", \2",
    ),
    (re.compile(r"([A-Za-z]_\{?\w\}?)\s*\\otimes\s*([A-Za-z]_\{?\w\}?)"), r"\1 \2^\\top"),
    (re.compile(r"\\(?:operatorname|mathrm|text)\s*\{[Pp]roj\}\s*_?\s*(?:\{[^{}]*\}|\w)?\s*(?:\([^()]*\))?\s*="), " "),
    (re.compile(r"(?:\\left)?\[\s*a_\{?1\}?[^\[\]^]*a_\{?m\}?\s*(?:\\right)?\]\s*(?=(?:\\left)?\[)"), " A "),
    (re.compile(r"(?<= A )\s*(?:\\left)?\[\s*a_\{?1\}?[^\[\]^]*a_\{?m\}?\s*(?:\\right)?\]"), "A"),
    (re.compile(r"\\(?:mathbb|mathrm|operatorname)\s*\{E\}\s*(?=[\[({\\])"), "E"),
    (re.compile(r"E\s*(?:\\left)?[\[(]\s*k_\{?([a-z])\}?\s*(?:\\right)?[\])]"), r"\\mu_\1"),  # the mean of a key
    (re.compile(r"(?:\u03a3|\u2211)\s*(?=[a-z]_)"), r"\\sum "),
    (re.compile(r"(?:\u03a3|\u2211)\s*_"), r"\\sum_"),
    (
        re.compile(
            r"(\\sum(?:\\limits)?\s*_\s*\{\s*\w\s*=\s*1\s*\}\s*)\^\s*\{\s*(?:\\dim[^{}]*|\|\s*A\s*\||\\operatorname\{[^{}]*\}[^{}]*)\}"
        ),
        r"\1^m",
    ),
)
"""Notations that mean the same as another."""
CHOSEN_ITEMS = re.compile(
    r"\\sum(?:\\limits)?\s*_\s*\{\s*(?P<i>\w)\s*\\in\s*\\\{(?P<items>[^{}]*)\\\}\s*\}\s*"
    r"(?P<term>(?:(?:\\[a-z]+|[A-Za-z])\s*)?(?:\\[a-z]+|[A-Za-z])\s*_\s*\{?\s*(?P=i)\s*\}?)"
)
PRIMED = ("A", "B", "U", "P")
"""Matrices of which a prime means the transpose."""
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
    for notation, same in NOTATIONS:
        math = notation.sub(same, math)
    math = CHOSEN_ITEMS.sub(_written_out, math)
    if re.search(r"\\sum(?:\\limits)?\s*_\s*\{\s*\w\s*\\in\s*\\\{", math):
        return ()  # a sum over chosen items, which is not one over all
    try:
        return parse(math)
    except Unreadable:
        return ()


def _written_out(found: re.Match[str]) -> str:
    """A sum over a few items, term by term."""
    items = [item.strip() for item in found["items"].split(",") if item.strip()]
    terms = [re.sub(r"_\s*\{?\s*\w\s*\}?$", f"_{{{item}}}", found["term"]) for item in items]
    return "(" + " + ".join(terms) + ")"


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
    if not node.index and node.base == f"{base}'" and base in PRIMED:
        text = (known or {}).get(base, base)
        return text[:-1] if text.endswith("'") else f"{text}'"
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


def dotted_sum(node: T.Binary) -> T.Total | None:
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
    return T.Total("i", (), end, T.with_index(terms[0], "1", "i"))


def _binary(node: T.Binary, known: Mapping[str, str]) -> tuple[str, int] | None:
    if node.sign == "+" and any(isinstance(one, T.Dots) for one in T.nodes(node)):
        total = dotted_sum(node)
        return None if total is None else _total(total, known)
    left, right = _text(node.left, known), _text(node.right, known)
    if left is None or right is None:
        return None
    if node.sign == "*" and node.left == T.Symbol("sigma") and _is_argument(node.right):
        return f"sigmoid({right[0]})", STRONG
    if node.sign in "+-":
        return f"{left[0]} {node.sign} {_bracketed(right, WEAK)}", 0
    if node.sign == "^":
        return f"{_bracketed(left, STRONG)}^{_bracketed(right, STRONG)}", STRONG
    if node.sign == "/":
        return f"{_bracketed(left, WEAK)}/{_bracketed(right, STRONG)}", WEAK
    return f"{_bracketed(left, WEAK)}*{_bracketed(right, STRONG if '/' in right[0] else WEAK)}", WEAK


def _is_argument(node: T.Node) -> bool:
    """Whether what follows a sigma can be the argument of a sigmoid: more than a letter, and no vector."""
    return isinstance(node, T.Binary) and not any(isinstance(s, T.Symbol) and s.index for s in T.nodes(node))


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
    if last and {s.base for s in T.nodes(node.inner) if isinstance(s, T.Symbol) and s.index} == {"b"}:
        last = "p"  # there are p columns of B
    if last and node.index != "i":
        inner = _text(T.with_index(node.inner, node.index, "i"), known) or inner
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
