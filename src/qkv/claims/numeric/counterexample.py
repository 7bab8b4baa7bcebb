"""An instance as assignments that can be pasted into Python, with both sides of the statement there."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
from flint import arb

from qkv.claims.numeric.confirmation import Table, Violation
from qkv.claims.numeric.evaluator import Array, CannotEvaluate, Instance, evaluate
from qkv.claims.syntax import nodes as L

MAX_MEMBERS = 12  # vectors of a family that are written out
MAX_DIGITS = 120  # of a side, where fewer do not show a difference


def python_assignments(inst: Instance, core: L.Core, draw: int = 0, violation: Violation | None = None) -> str:
    """An instance and both sides there, as assignments that Python accepts.

    Args:
        inst: The instance.
        core: The statement.
        draw: Which draw of the random numbers and keys is shown.
        violation: Both sides as they were computed exactly, if they were.

    Returns:
        One assignment a line. Sides that do not show the violation, since they rest on draws, are left out.
    """
    lines = [f"n = {int(inst.numbers['n'][0, 0, 0])}"] if "n" in inst.context.numbers else []
    lines += _numbers(inst, draw) + _vectors(inst, draw)
    if violation is not None:
        return "\n".join(lines + _exact_sides(violation))
    return "\n".join(lines + _sides(inst, core, draw))


def _numbers(inst: Instance, draw: int) -> list[str]:
    out = []
    for name, value in sorted(inst.numbers.items()):
        if name != "n":
            plain = name.replace("_{", "_").replace("}", "").replace(",", "_")
            fraction = inst.fractions.get(name)
            exact = fraction is not None and float(fraction) == float(_at(value, draw).reshape(-1)[0])
            out.append(f"{plain} = {fraction if exact else _plain(_at(value, draw))}")
    return out


def _vectors(inst: Instance, draw: int) -> list[str]:
    """Families and single vectors that the claim names; keys, values, queries and tokens as they are defined."""
    context = inst.context
    used = {n.base for n in L.nodes(context.claim) if isinstance(n, L.Name)}
    attention = bool({"alpha", "c"} & used)
    out = []
    for base, members in sorted(inst.families.items()):
        if base in used and base not in ("k", "v"):
            out.append(_family(base, {i: _at(v, draw)[:, 0] for i, v in members.items()}))
    shown = {
        "x": bool(context.tokens),
        "k": attention or "k" in used,
        "v": "c" in used or "v" in used,
    }
    for base, wanted in shown.items():
        found = {i: _value(inst, L.Name(base, (i,), (0, 0)), draw) for i in inst.items[:MAX_MEMBERS]} if wanted else {}
        known = {i: v for i, v in found.items() if v is not None}
        out += [_family(base, known)] if known else []
    out += [f"{name} = {_plain(_at(v, draw)[:, 0])}" for name, v in sorted(inst.vectors.items())]
    out += [f"{name} = {_plain(v[0])}" for name, v in sorted(inst.bases.items())]
    for head in context.heads() if attention or "q" in used else ():
        name = L.Name("q", (head,) if head else (), (0, 0))
        found_query = _value(inst, name, draw)
        if found_query is not None and str(name) not in inst.vectors:
            out.append(f"{name} = {_plain(found_query)}")
    return out


def _value(inst: Instance, name: L.Name, draw: int) -> Array | None:
    """The value of a vector, or None if it has none on this instance."""
    try:
        return _at(evaluate(inst, name), draw)[:, 0]
    except (CannotEvaluate, ValueError, KeyError):
        return None


def _family(base: str, members: dict[str, Array]) -> str:
    named = {i.replace("#", "other ") if i.startswith("#") else i: v for i, v in members.items()}
    return f"{base} = {{{', '.join(f'{i!r}: {_plain(v)}' for i, v in list(named.items())[:MAX_MEMBERS])}}}"


def _at(value: Array, draw: int) -> Array:
    """The values at one draw."""
    return value[draw if len(value) > draw else 0]


def _sides(inst: Instance, core: L.Core, draw: int) -> list[str]:
    """Both sides in floating point; of a comparison, those that are violated."""
    inner = core.inner if isinstance(core, L.Never) else core
    if isinstance(inner, L.Within):
        pairs = [("left", inner.left, "", "target", inner.target)]
    elif isinstance(inner, L.Limit):
        pairs = [("left", inner.left, "", "right", inner.right)]
    elif isinstance(inner, L.Relation):
        pairs = [("left", left, op, "right", right) for left, op, right in inner.pairs()]
    else:
        return []
    never = isinstance(core, L.Never)
    for one, left, op, two, right in pairs:
        first, second = _side(inst, left, draw), _side(inst, right, draw)
        if first is None or second is None:
            missing = "None  # it has no value: the shapes do not fit"
            shown = [missing if v is None else _plain(v) for v in (first, second)]
            return [f"{one} = {shown[0]}", f"{two} = {shown[1]}"]
        if (op == "!=" or (never and op == "=")) and np.allclose(first, second, rtol=1e-9, atol=1e-9):
            return [f"{one} = {_plain(second)}  # equal up to rounding", f"{two} = {_plain(second)}"]
        if not op or never or violated(op, first, second):
            return [f"{one} = {_plain(first)}", f"{two} = {_plain(second)}"]
    return []


def _side(inst: Instance, side: L.Expr, draw: int) -> Array | None:
    try:
        value = _at(evaluate(inst, side), draw)
    except (CannotEvaluate, ValueError):
        return None
    return value[:, 0] if value.shape[1] == 1 else value


def violated(op: str, left: Array, right: Array) -> bool:
    """Whether two sides violate a comparison."""
    if left.shape != right.shape and 1 not in (left.size, right.size):
        return True
    if op in ("=", "!="):
        return bool(np.all(left == right)) != (op == "=")
    held = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[op]
    return not bool(np.all(held))


def _exact_sides(found: Violation) -> list[str]:
    """Both sides with as many digits as it takes to see that they differ: Decimal where floats do not show it."""
    if found.tie:
        return [f"left = {_plain(_floats(found.left))}", f"right = {_plain(_floats(found.left))}"]
    left, right = _floats(found.left), _floats(found.right)
    if left.shape != right.shape or bool((left != right).any()):
        return [f"left = {_plain(left)}", f"right = {_plain(right)}"]
    text = [_decimals(side) for side in (found.left, found.right)]
    return ["from decimal import Decimal", f"left = {text[0]}", f"right = {text[1]}"]


def _floats(table: Table) -> Array:
    rows = np.array([[float(x.mid()) for x in row] for row in table])
    return rows[:, 0] if rows.shape[1] == 1 else rows


def _decimals(table: Table) -> str:
    with localcontext() as context:
        context.prec = MAX_DIGITS
        rows = [[f"Decimal({str(+Decimal(_digits(x)))!r})" for x in row] for row in table]
    flat = [x for row in rows for x in row]
    return flat[0] if len(flat) == 1 else f"[{', '.join(flat)}]"


def _digits(x: arb) -> str:
    return str(x.mid().str(MAX_DIGITS, radius=False))


def _plain(value: Array) -> str:
    entries = np.asarray(value, dtype=float) + 0.0
    flat = entries.reshape(-1)
    text = repr(
        float(flat[0]) if (flat.size == 1 and entries.ndim < 2) or entries.shape == (1, 1) else entries.tolist()
    )
    return text.replace("nan", "float('nan')").replace("inf", "float('inf')")
