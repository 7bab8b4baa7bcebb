"""A normal form of a claim, so that answers that say the same in other letters or another order are found alike.

Definitions are expanded into sums of products; factors that commute are sorted, and free numbers are called s1, s2, …
in the order in which they appear. Two texts with one form say the same; two texts with different forms may still.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.markdown import block

Terms = dict[tuple[tuple[str, ...], tuple[str, ...]], Fraction]
"""A sum of products: sorted numbers and ordered vectors or matrices, with their coefficient."""

KEPT_NAMES = ("n", "d", "oo", "e", "pi", "I")
"""Numbers that a problem names; all others may have another name on another sheet."""
MAX_TERMS = 200


def normal_form(claim: str, written: str = "") -> str:
    """A text that is equal for claims that say the same.

    Args:
        claim: Lines of a claim block, such as "let q = t*(k_a + k_b)"; may be empty.
        written: What the author wrote, of which the form is made where the claim cannot be parsed.
    """
    try:
        found = [one for one in block("form", _lines(claim), 0) if isinstance(one, L.Claim)] if claim.strip() else []
        return _form(found) if found else _squeezed(written or claim)
    except (ValueError, RecursionError, OverflowError, ZeroDivisionError):
        return _squeezed(written or claim)


def _lines(claim: str) -> list[tuple[int, str, int]]:
    return [(number, line, 0) for number, line in enumerate(claim.splitlines(), 1)]


def _squeezed(text: str) -> str:
    """A formula without blanks, dollar signs and commands that only set its look."""
    look = r"\\(?:left|right|big|Big|displaystyle|mathbf|boldsymbol|mathrm|text|quad|[,;!: ])(?![A-Za-z])|[\s{}$&]"
    return re.sub(look, "", text).casefold().rstrip(".,;")


def _form(claims: list[L.Claim]) -> str:
    """The definitions of the first claim, and what all of them state."""
    names = _Renamed()
    lets = [f"{names(one.name)} = {_printed(_terms(one.value, names))}" for one in claims[0].lets]
    return "; ".join([*lets, *(_statement(one.statement, names) for one in claims)])


def _statement(statement: L.Statement, names: _Renamed) -> str:
    core: Any = statement.core
    parts = [type(core).__name__, *(str(getattr(core, name, "")) for name in ("ops", "tends", "kind", "op"))]
    for name in ("sides", "left", "right", "target", "radius", "probability", "inner"):
        value = getattr(core, name, None)
        for side in value if isinstance(value, tuple) else [value]:
            parts.append(_shown(side, names))
    when = [f"{one.ops}{[_shown(side, names) for side in one.sides]}" for one in statement.when]
    but = f" for {statement.quantifier.index} not {statement.quantifier.but}" if statement.quantifier else ""
    return " ".join([*(part for part in parts if part), *when]) + but


def _shown(side: Any, names: _Renamed) -> str:
    if side is None:
        return ""
    if isinstance(side, L.Relation | L.Limit):
        return " ".join(
            _shown(one, names) for one in (side.sides if isinstance(side, L.Relation) else (side.left, side.right))
        )
    return _printed(_terms(side, names))


class _Renamed:
    """Names of free numbers by the order in which they appear."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    def __call__(self, name: L.Name) -> str:
        if not _is_number(name) or name.base in KEPT_NAMES:
            return str(name)
        return self._seen.setdefault(name.base, f"s{len(self._seen) + 1}")


def _is_number(name: L.Name) -> bool:
    """Whether a name stands for a number: it has no index, and is neither a query, an output nor a matrix."""
    return not name.subs and name.base not in ("q", "c", "k", "v", "alpha", "x") and not name.base[0].isupper()


def _terms(expr: Any, names: _Renamed) -> Terms:
    if isinstance(expr, L.Num):
        return {((), ()): expr.value}
    if isinstance(expr, L.Name):
        text = names(expr)
        return {((text,), ()) if _is_number(expr) else ((), (text,)): Fraction(1)}
    if isinstance(expr, L.Neg):
        return {key: -value for key, value in _terms(expr.inner, names).items()}
    if isinstance(expr, L.Op):
        return _operation(expr, names)
    if isinstance(expr, L.Transpose):
        return {(numbers, tuple(_transposed(f) for f in reversed(others))): value
                for (numbers, others), value in _terms(expr.inner, names).items()}  # fmt: skip
    if isinstance(expr, L.Call) and expr.function in ("exp", "log", "sqrt", "norm"):
        return {((f"{expr.function}({_printed(_terms(expr.inner, names))})",), ()): Fraction(1)}
    return {((), (_opaque(expr, names),)): Fraction(1)}


def _transposed(factor: str) -> str:
    return factor[:-1] if factor.endswith("'") else f"{factor}'"


def _operation(expr: L.Op, names: _Renamed) -> Terms:
    left, right = _terms(expr.left, names), _terms(expr.right, names)
    if expr.sign in "+-":
        total = dict(left)
        for key, value in right.items():
            total[key] = total.get(key, Fraction(0)) + (value if expr.sign == "+" else -value)
        return {key: value for key, value in total.items() if value}
    if expr.sign == "*":
        return _product(left, right)
    if expr.sign == "/":
        ((numbers, others), value), *more = right.items()
        inverse: Terms = (
            {((), ()): 1 / value}
            if not (numbers or others or more)
            else {((f"1/({_printed(right)})",), ()): Fraction(1)}
        )
        return _product(left, inverse)
    power = L.constant(expr.right)
    if power is not None and power.denominator == 1 and 1 <= power <= 4:
        out = left
        for _ in range(int(power) - 1):
            out = _product(out, left)
        return out
    return {((f"({_printed(left)})^({_printed(right)})",), ()): Fraction(1)}


def _product(left: Terms, right: Terms) -> Terms:
    if len(left) * len(right) > MAX_TERMS:
        raise ValueError("too many terms")
    out: Terms = {}
    for (numbers, others), value in left.items():
        for (more_numbers, more_others), factor in right.items():
            key = (tuple(sorted((*numbers, *more_numbers))), (*others, *more_others))
            out[key] = out.get(key, Fraction(0)) + value * factor
    return {key: value for key, value in out.items() if value}


def _printed(terms: Terms) -> str:
    parts = sorted(
        f"{value}*{'*'.join(('', *numbers, *others)).lstrip('*')}".rstrip("*")
        for (numbers, others), value in terms.items()
    )
    return " + ".join(parts) or "0"


def _opaque(expr: Any, names: _Renamed) -> str:
    """Any other node: its kind, its words, and its parts in normal form."""
    parts = [type(expr).__name__]
    for name in getattr(expr, "__dataclass_fields__", {}):
        value = getattr(expr, name)
        if name == "at":
            continue
        for one in value if isinstance(value, tuple) else (value,):
            is_node = isinstance(one, L.Node)
            parts.append(_printed(_terms(one, names)) if is_node and not isinstance(one, L.Relation) else
                         _shown(one, names) if is_node else str(one))  # fmt: skip
    return f"[{' '.join(parts)}]"
