"""Why rules between tokens cannot be followed: equal tokens, contradictory rules, and proofs in total variation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qkv.core.display import lower_bound
from qkv.core.types import FloatArray
from qkv.design.certificates.certificate import Certificate
from qkv.design.solvers import conic
from qkv.design.specs import WiringSpec
from qkv.errors import QkvError

MAX_RULES_TO_MINIMISE = 12
"""Up to this many rules, a smallest contradictory set of them is looked for, with one program per rule."""
GRID = 2.0**40
"""Multipliers are rounded to multiples of 1/GRID, so that the sums of a proof cancel exactly."""


def score_rows(spec: WiringSpec) -> tuple[list[FloatArray], FloatArray, float]:
    """Per rule, the rows whose products with W give its scores, on the span of the tokens; its basis; the unit.

    Outside the span W changes no score, so the smallest W is 0 there.
    """
    x = spec.tokens.numpy()
    _, s, vt = np.linalg.svd(x, full_matrices=False)
    basis = vt[: max(1, int((s > 1e-10 * max(s[0], 1e-300)).sum()))]
    size = float(np.linalg.norm(x, axis=1).max()) or 1.0
    inner = x @ basis.T / size
    rows = [np.einsum("a,jb->jab", inner[i], inner).reshape(len(x), len(basis) ** 2) for i in spec.rules]
    return rows, basis, size


def equal_token_reasons(spec: WiringSpec) -> list[str]:
    """Sentences about tokens that are the same vector and are treated differently by more than tol allows.

    Equal tokens get equal weights, so their wanted weights may differ by at most 2 tol; and equal readers have equal
    weights, so their wanted weights may be at most 2 tol apart in total variation.
    """
    x, wanted, name = spec.tokens.numpy(), spec.wanted.numpy(), spec.labels
    out = []
    for group in _equal_rows(x):
        first = group[0]
        for row, i in enumerate(spec.rules):
            for j in group[1:]:
                if abs(wanted[row, first] - wanted[row, j]) > 2 * spec.tol * (1 + 1e-9):
                    shares = f"{_share(wanted[row, first])} of {name[first]} and {_share(wanted[row, j])} of {name[j]}"
                    out.append(
                        f"tokens {name[first]} and {name[j]} are the same vector, so token {name[i]} gives both the "
                        f"same weight and cannot read {shares}"
                    )
        readers = [row for row, i in enumerate(spec.rules) if i in group]
        for row in readers[1:]:
            if 0.5 * np.abs(wanted[row] - wanted[readers[0]]).sum() > 2 * spec.tol * (1 + 1e-9):
                a, b = name[spec.rules[readers[0]]], name[spec.rules[row]]
                out.append(
                    f"tokens {a} and {b} are the same vector, so they read alike and cannot follow different rules"
                )
    return out


def _share(weight: float) -> str:
    if weight in (0, 1):
        return "all" if weight else "nothing"
    return short if float(short := f"{weight:.4g}") == weight else repr(float(weight))


def _equal_rows(x: FloatArray) -> list[list[int]]:
    """Groups of at least two equal rows."""
    groups: dict[bytes, list[int]] = {}
    for i, row in enumerate(x):
        groups.setdefault((row + 0.0).tobytes(), []).append(i)  # −0 + 0 is 0
    return [group for group in groups.values() if len(group) > 1]


def exclusion_within_tol(spec: WiringSpec) -> tuple[Certificate | None, tuple[int, ...]]:
    """A proof that no W follows the rules to within tol in total variation, and the rules that it uses; or None.

    The convex relaxation of the rules is infeasible; of its rules, one after the other is left out as long as it stays
    so, and the dual solution of what is left is the proof. Equal tokens give exact proofs.
    """
    exact = _longest([_issue(spec, *evidence) for evidence in _equal_token_evidence(spec)])
    if exact is not None and np.isinf(float(exact.claims["norm_at_least"])):
        used = np.flatnonzero(np.asarray(exact.data["multipliers"]).any(axis=1))
        return exact, tuple(int(row) for row in used)
    rows, basis, _ = score_rows(spec)
    rules = [_relaxed_rule(spec, row, rows[row]) for row in range(len(spec.rules))]
    kept = [row for row, rule in enumerate(rules) if rule is not None]
    found = _solve(rules, kept, len(basis) ** 2)
    if found is None or found.status != "infeasible":
        return exact, ()
    if len(kept) <= MAX_RULES_TO_MINIMISE:
        for row in list(kept):
            fewer = [r for r in kept if r != row]
            trial = _solve(rules, fewer, len(basis) ** 2) if fewer else None
            if trial is not None and trial.status == "infeasible":
                kept, found = fewer, trial
    multipliers, mix = np.zeros(spec.wanted.shape), np.zeros(spec.wanted.shape)
    for row, lam, mu in zip(kept, found.multipliers, found.mix, strict=True):
        # The inequality of a rule is multiplied by the sum of its mix, which is therefore made 1.
        if lam.any() and mu.sum() > 0:
            multipliers[row], mix[row] = lam, np.where(mu > 1e-13 * mu.max(), mu, 0.0) / mu.sum()
    return _longest([exact, _issue(spec, multipliers, mix)]), tuple(kept)


def _solve(rules: list[conic.NearRule | None], kept: list[int], size: int) -> conic.Solution | None:
    chosen = [rule for row, rule in enumerate(rules) if row in kept and rule is not None]
    return conic.solve_near(chosen, size) if chosen else None


def _relaxed_rule(spec: WiringSpec, row: int, rows: FloatArray) -> conic.NearRule | None:
    """The convex relaxation of one rule; None where no wanted weight is above tol."""
    wanted = spec.wanted[row].numpy()
    above = np.flatnonzero(wanted > spec.tol * (1 + 1e-9) + 1e-12)
    if not len(above):
        return None
    slopes = -np.log1p(-spec.tol / wanted[above])
    return conic.NearRule(rows, above.tolist(), np.log(wanted[above]), slopes)


def _equal_token_evidence(spec: WiringSpec) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Multipliers and mixes for which everything cancels where tokens are equal, one for each group of equal readers.

    The multipliers of a rule are its wanted weights; its mix is the mean of those of its group, spread evenly over
    tokens that are equal. The sums over keys then agree, rule by rule or over the group.
    """
    x = spec.tokens.numpy()
    same = {i: group for group in _equal_rows(x) for i in group}
    rounded = np.round(spec.wanted.numpy() * GRID) / GRID
    groups: dict[bytes, list[int]] = {}
    for row, i in enumerate(spec.rules):
        groups.setdefault((x[i] + 0.0).tobytes(), []).append(row)
    sizes = int(np.lcm.reduce([len(group) for group in same.values()] or [1]))
    for readers in groups.values():
        spread = rounded[readers].sum(axis=0)
        for i, group in same.items():
            if i == group[0]:
                spread[group] = spread[group].sum() / len(group) if sizes <= 2 else spread[group].sum()
        if sizes > 2:  # multiplied by a common multiple of the sizes instead of divided by each
            spread = np.array([v * sizes / len(same.get(j, [j])) for j, v in enumerate(spread)])
        multipliers, mix = np.zeros_like(rounded), np.zeros_like(rounded)
        multipliers[readers], mix[readers] = rounded[readers], spread
        yield multipliers, mix


def _issue(spec: WiringSpec, multipliers: FloatArray, mix: FloatArray) -> Certificate | None:
    wanted = spec.wanted.numpy()
    multipliers = np.where(wanted > spec.tol * (1 + 1e-9) + 1e-9, np.maximum(multipliers, 0.0), 0.0)
    top = float(multipliers.max(initial=0.0))
    if top <= 0:
        return None
    base = {"X": spec.tokens.numpy(), "rules": list(spec.rules), "wanted": wanted, "tol": spec.tol}
    scale = 2.0 ** -np.floor(np.log2(top))  # a power of two keeps exact sums exact
    try:
        found = Certificate.issue("no wiring within tol", base | {"multipliers": multipliers * scale, "mix": mix})
    except QkvError:
        return None
    return found if float(found.claims["norm_at_least"]) > 0 else None


def _longest(found: list[Certificate | None]) -> Certificate | None:
    return max((c for c in found if c is not None), key=lambda c: float(c.claims["norm_at_least"]), default=None)


def unwritable_reason(spec: WiringSpec, relative: float = 1e-9) -> str | None:
    """Why no V writes what the rules ask for, even with exact weights; None where one does.

    Where what some tokens read is linearly dependent, what they write must be dependent with the same coefficients.
    """
    means, writes = (spec.wanted @ spec.tokens).numpy(), spec.writes.numpy()
    u, s, _ = np.linalg.svd(means)
    rank = int((s > 1e-10 * max(s[0], 1e-300)).sum())
    dependent = u[:, rank:]
    left = dependent @ (dependent.T @ writes)
    if not np.abs(left).max(initial=0.0) > relative * (1 + np.abs(writes).max()):
        return None
    column = left[:, int(np.argmax(np.abs(left).max(axis=0)))]
    used = np.flatnonzero(np.abs(column) > 1e-7 * np.abs(column).max())
    names = _listed([str(spec.labels[spec.rules[r]]) for r in used])
    if len(used) == 1:
        return f"token {names} reads the zero vector, so it writes zero whatever V is"
    if all(np.array_equal(means[r], means[used[0]]) for r in used):
        return f"tokens {names} read the same vector and should write different ones"
    return (
        f"what tokens {names} read is linearly dependent, and what they should write is not dependent in the same way"
    )


def rules_reason(spec: WiringSpec, rows: tuple[int, ...], norm: float) -> str:
    """That no W, or none below a norm, follows these rules together, in words."""
    names = _listed([str(spec.labels[spec.rules[r]]) for r in rows])
    by = "" if np.isinf(norm) else f" by a W of norm below {lower_bound(norm, 3)}"
    if len(rows) == 1:
        return f"the rule of token {names} cannot be followed{by}, even alone"
    return f"the rules of tokens {names} contradict each other: they cannot be followed together{by}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
