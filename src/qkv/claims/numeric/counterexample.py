"""An instance as assignments that can be pasted into Python."""

from __future__ import annotations

import numpy as np

from qkv.claims.numeric.evaluator import Array, CannotEvaluate, Instance, evaluate
from qkv.claims.syntax import nodes as L


def python_assignments(inst: Instance, core: L.Core) -> str:
    """An instance and both sides there, as assignments that Python accepts."""
    lines = [f"n = {inst.n}"] if "n" in inst.context.numbers else []
    used = {n.base for n in L.nodes(inst.context.claim) if isinstance(n, L.Name)}
    for name, value in sorted(inst.numbers.items()):
        if name != "n":
            plain = name.replace("_{", "_").replace("}", "").replace(",", "_")
            lines.append(f"{plain} = {_plain(value[0] if value.shape[0] == 1 else value[len(value) // 2])}")
    for base, members in sorted(inst.families.items()):
        if base in used or (base in ("k", "v") and {"alpha", "c"} & used):
            named = {i.replace("#", "other ") if i.startswith("#") else i: v[0, :, 0] for i, v in members.items()}
            lines.append(f"{base} = {{{', '.join(f'{i!r}: {_plain(v)}' for i, v in list(named.items())[:12])}}}")
    lines += [f"{name} = {_plain(v[0, :, 0])}" for name, v in sorted(inst.vectors.items())]
    lines += [f"{name} = {_plain(v[0])}" for name, v in sorted(inst.bases.items())]
    inner = core.inner if isinstance(core, L.Never) else core
    sides: list[tuple[str, L.Expr]] = []
    if isinstance(inner, L.Limit):
        sides = [("left", inner.left), ("right", inner.right)]
    elif isinstance(inner, L.Relation):
        sides = [("left", inner.sides[0]), ("right", inner.sides[1])]
    elif isinstance(inner, L.Within):
        sides = [("left", inner.left), ("target", inner.target)]
    for name, expr in sides:
        try:
            value = evaluate(inst, expr)
            row = (
                value[0]
                if value.shape[0] == 1
                else value[int(np.argmax(np.abs(value - value.mean(axis=0)).max(axis=(1, 2))))]
            )
            lines.append(f"{name} = {_plain(row[:, 0] if row.shape[1] == 1 else row)}")
        except (CannotEvaluate, ValueError):
            lines.append(f"{name} = None  # it has no value: the shapes do not fit")
    return "\n".join(lines)


def _plain(value: Array) -> str:
    rounded = np.round(np.asarray(value, dtype=float), 6) + 0.0
    flat = rounded.reshape(-1)
    text = repr(
        float(flat[0]) if (flat.size == 1 and rounded.ndim < 2) or rounded.shape == (1, 1) else rounded.tolist()
    )
    return text.replace("nan", "float('nan')").replace("inf", "float('inf')")
