"""Why rules between tokens cannot be followed: equal tokens, contradictory rules, and proofs in total variation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from qkv.core.display import lower_bound
from qkv.core.types import FloatArray, IntArray
from qkv.design.certificates.certificate import Certificate
from qkv.design.solvers import conic
from qkv.design.solvers.kernel_machine import smallest_matrix_above
from qkv.design.solvers.sequence_rules import SequenceRules
from qkv.design.specs import WiringSpec
from qkv.errors import QkvError

MAX_CONIC_TOKENS = 64
"""Larger problems do not fit the conic program."""
MAX_TABLE = 100_000
"""Numbers in a table of wanted weights up to which a certificate holds it, not lists of items."""
MIN_SHARE, MIN_MULTIPLIER = 1e-6, 1e-15
"""Rules, and multipliers, that are smaller than this part of the largest are left out of a proof."""
MAX_PROOF_PRODUCTS = 1000
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


def sequence_rules(spec: WiringSpec, rows: Sequence[int] | None = None) -> SequenceRules:
    """The rules of a request, or some of them, as arrays; the items of a rule ascend."""
    chosen = list(range(len(spec.rules))) if rows is None else list(rows)
    wanted = spec.wanted.numpy()[chosen]
    owner, items = np.nonzero(wanted)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(chosen)))])
    x = spec.tokens.numpy()
    readers = np.array(spec.rules, dtype=np.int64)[chosen]
    mask = None
    if spec.allowed is not None:
        mask = np.ones((len(x), len(x)), dtype=bool)
        mask[readers] = spec.allowed[chosen]
    return SequenceRules(x, x, mask, readers, offsets, items, wanted[owner, items])


def statement_data(spec: WiringSpec, rows: Sequence[int] | None = None) -> dict[str, Any]:
    """Tokens, rules and mask of a request, or of some of its rules, as data of a certificate."""
    chosen = list(range(len(spec.rules))) if rows is None else list(rows)
    data: dict[str, Any] = {"X": spec.tokens.numpy(), "rules": [spec.rules[r] for r in chosen]}
    if spec.mask is not None:
        data["mask"] = spec.mask if isinstance(spec.mask, str) else spec.mask.numpy().astype(float)
    if len(chosen) * len(spec.tokens) <= MAX_TABLE:
        return data | {"wanted": spec.wanted.numpy()[chosen]}
    rules = sequence_rules(spec, chosen)
    return data | {"items": rules.items, "offsets": rules.offsets, "weights": rules.weights}


def equal_token_reasons(spec: WiringSpec) -> list[str]:
    """Sentences about tokens that are the same vector and are treated differently by more than tol allows.

    Equal tokens get equal weights from a token that sees both, so their wanted weights may differ by at most 2 tol; and
    equal readers that see the same tokens have equal weights, so their wanted weights may be at most 2 tol apart in
    total variation.
    """
    x, wanted, name, allowed = spec.tokens.numpy(), spec.wanted.numpy(), spec.labels, spec.allowed
    out = []
    for group in _equal_rows(x):
        for row, i in enumerate(spec.rules):
            seen = group if allowed is None else [j for j in group if allowed[row, j]]
            for j in seen[1:]:
                if abs(wanted[row, seen[0]] - wanted[row, j]) > 2 * spec.tol * (1 + 1e-9):
                    first = seen[0]
                    shares = f"{_share(wanted[row, first])} of {name[first]} and {_share(wanted[row, j])} of {name[j]}"
                    out.append(
                        f"tokens {name[first]} and {name[j]} are the same vector, so token {name[i]} gives both the "
                        f"same weight and cannot read {shares}"
                    )
        readers = [row for row, i in enumerate(spec.rules) if i in group]
        for row in readers[1:]:
            alike = allowed is None or np.array_equal(allowed[row], allowed[readers[0]])
            if alike and 0.5 * np.abs(wanted[row] - wanted[readers[0]]).sum() > 2 * spec.tol * (1 + 1e-9):
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


def exclusion_within_tol(spec: WiringSpec, enough: float) -> tuple[Certificate | None, tuple[int, ...]]:
    """A proof that no W follows the rules to within tol in total variation, and the rules that it uses; or None.

    Equal tokens give exact proofs. Else a relaxation of the rules is infeasible; of its rules, one after the other is
    left out as long as it stays so, and the multipliers of what is left are the proof. Proofs of a norm of at least
    `enough` are not improved further.
    """
    exact = _longest([_issue(spec, *evidence) for evidence in _equal_token_evidence(spec)])
    if exact is not None and np.isinf(float(exact.claims["norm_at_least"])):
        return exact, _used(spec, exact)
    found = _kernel_exclusion(spec, enough)
    if (found is None or float(found.claims["norm_at_least"]) < enough) and len(spec.tokens) <= MAX_CONIC_TOKENS:
        found = _longest([found, _conic_exclusion(spec)])
    best = _longest([exact, found])
    return best, () if best is None else _used(spec, best)


def _used(spec: WiringSpec, proof: Certificate) -> tuple[int, ...]:
    """The rules of the request that a proof uses."""
    used = np.asarray(proof.data["rules"], dtype=int)[np.asarray(proof.data["multipliers"]).any(axis=1)]
    return tuple(spec.rules.index(int(i)) for i in used)


def _kernel_exclusion(spec: WiringSpec, enough: float) -> Certificate | None:
    """A proof from the multipliers of "every wanted weight is at least w - tol", which total variation implies."""
    kept = list(range(len(spec.rules)))
    found = _floors_proof(spec, kept)
    if found is None:
        return None
    proof, sizes = found
    large = [r for r, size in zip(kept, sizes, strict=True) if size > MIN_SHARE * sizes.max()]
    if len(large) < len(kept):
        fewer = _floors_proof(spec, large)
        if fewer is not None and float(fewer[0].claims["norm_at_least"]) >= min(
            enough, float(proof.claims["norm_at_least"])
        ):
            kept, proof = large, fewer[0]
    if len(kept) <= MAX_RULES_TO_MINIMISE:
        for row in list(kept):
            rest = [r for r in kept if r != row]
            trial = _floors_proof(spec, rest) if rest else None
            if trial is not None and float(trial[0].claims["norm_at_least"]) >= enough:
                kept, proof = rest, trial[0]
    return proof


def _floors_proof(spec: WiringSpec, rows: list[int]) -> tuple[Certificate, FloatArray] | None:
    """The proof that these rules support, if the kernel machine finds them contradictory, and each rule's part in it.

    A floor α_i >= l has the multiplier Λ and the inequality Λ (s_i - p·s) >= …, with p the softmax of the other scores.
    In the form of the certificate, whose mix p' may hold the item itself with a share h, that is λ = Λ/(1 - h). The
    sharpest share is l; with ½ nothing is rounded.
    """
    rules = sequence_rules(spec, rows)
    floors = np.maximum(rules.weights - spec.tol * (1 + 1e-9) - 1e-12, 0.0)
    if not floors.any():
        return None
    found = smallest_matrix_above([rules], [floors], max_products=MAX_PROOF_PRODUCTS)
    if found.status != "infeasible":
        return None
    values = found.multipliers[0]
    scores = (rules.queries[rules.readers] @ found.W) @ rules.keys.T
    if rules.mask is not None:
        scores = np.where(rules.mask[rules.readers], scores, -np.inf)
    owner = np.repeat(np.arange(len(rows)), np.diff(rules.offsets))
    proofs = []
    for own in (None, 0.5):
        multipliers, mix = np.zeros((len(rows), len(spec.tokens))), np.zeros((len(rows), len(spec.tokens)))
        for entry in np.flatnonzero(values > MIN_MULTIPLIER * values.max(initial=0.0)):
            row, item = owner[entry], rules.items[entry]
            others = scores[row].copy()
            others[item] = -np.inf
            p = np.exp(others - others.max())
            p /= p.sum()
            share = own if own is not None else min(float(floors[entry]), 0.999)
            weight = values[entry] / (1 - share)
            multipliers[row, item] += weight
            mix[row] += values[entry] * p
            mix[row, item] += weight * share
        proofs.append(_issue(spec, multipliers, mix, rows))
    best = _longest(proofs)
    return None if best is None else (best, np.add.reduceat(values, rules.offsets[:-1]))


def _conic_exclusion(spec: WiringSpec) -> Certificate | None:
    """A proof from the dual solution of the convex relaxation of total variation, by the conic program."""
    rows, basis, _ = score_rows(spec)
    rules = [_relaxed_rule(spec, row, rows[row]) for row in range(len(spec.rules))]
    kept = [row for row, rule in enumerate(rules) if rule is not None]
    found = _solve(rules, kept, len(basis) ** 2)
    if found is None or found.status != "infeasible":
        return None
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
            seen = _seen(spec, row)
            multipliers[row, seen], mix[row, seen] = lam, np.where(mu > 1e-13 * mu.max(), mu, 0.0) / mu.sum()
    return _issue(spec, multipliers, mix)


def _solve(rules: list[conic.NearRule | None], kept: list[int], size: int) -> conic.Solution | None:
    chosen = [rule for row, rule in enumerate(rules) if row in kept and rule is not None]
    return conic.solve_near(chosen, size) if chosen else None


def _seen(spec: WiringSpec, row: int) -> IntArray:
    return np.arange(len(spec.tokens)) if spec.allowed is None else np.flatnonzero(spec.allowed[row])


def _relaxed_rule(spec: WiringSpec, row: int, rows: FloatArray) -> conic.NearRule | None:
    """The convex relaxation of one rule over the tokens that it sees; None where no wanted weight is above tol."""
    seen = _seen(spec, row)
    wanted = spec.wanted[row].numpy()[seen]
    above = np.flatnonzero(wanted > spec.tol * (1 + 1e-9) + 1e-12)
    if not len(above):
        return None
    slopes = -np.log1p(-spec.tol / wanted[above])
    return conic.NearRule(rows[seen], above.tolist(), np.log(wanted[above]), slopes)


def _equal_token_evidence(spec: WiringSpec) -> Iterator[tuple[FloatArray, FloatArray, list[int]]]:
    """Multipliers and mixes for which everything cancels where tokens are equal, one for each group of equal readers.

    The multipliers of a rule are its wanted weights; its mix is the mean of those of its group, spread evenly over
    tokens that are equal. The sums over keys then agree, rule by rule or over the group.
    """
    x, allowed = spec.tokens.numpy(), spec.allowed
    equal = _equal_rows(x)
    if not equal:
        return
    copies = {i for group in equal for i in group}
    rounded = np.round(spec.wanted.numpy() * GRID) / GRID
    groups: dict[bytes, list[int]] = {}
    for row, i in enumerate(spec.rules):
        sees = b"" if allowed is None else allowed[row].tobytes()
        groups.setdefault((x[i] + 0.0).tobytes() + sees, []).append(row)
    for readers in groups.values():
        seen = set(_seen(spec, readers[0]).tolist())
        if len(readers) == 1 and not (seen & copies):
            continue
        same = {j: kept for group in equal if len(kept := [j for j in group if j in seen]) > 1 for j in kept}
        sizes = int(np.lcm.reduce([len(group) for group in same.values()] or [1]))
        spread = rounded[readers].sum(axis=0)
        for i, group in same.items():
            if i == group[0]:
                spread[group] = spread[group].sum() / len(group) if sizes <= 2 else spread[group].sum()
        if sizes > 2:  # multiplied by a common multiple of the sizes instead of divided by each
            spread = np.array([v * sizes / len(same.get(j, [j])) for j, v in enumerate(spread)])
        yield rounded[readers], np.repeat(spread[None], len(readers), axis=0), readers


def _issue(
    spec: WiringSpec, multipliers: FloatArray, mix: FloatArray, rows: Sequence[int] | None = None
) -> Certificate | None:
    """The certificate of this evidence about all rules, or about those of `rows`; without the rules it does not use."""
    chosen = np.arange(len(spec.rules)) if rows is None else np.asarray(rows)
    wanted = spec.wanted.numpy()[chosen]
    multipliers = np.where(wanted > spec.tol * (1 + 1e-9) + 1e-9, np.maximum(multipliers, 0.0), 0.0)
    top = float(multipliers.max(initial=0.0))
    if top <= 0 or not np.isfinite(top) or not np.isfinite(mix).all():
        return None
    used = np.flatnonzero(multipliers.any(axis=1))
    scale = 2.0 ** -np.floor(np.log2(top))  # a power of two keeps exact sums exact
    data = statement_data(spec, chosen[used].tolist()) | {"tol": spec.tol}
    try:
        found = Certificate.issue(
            "no wiring within tol", data | {"multipliers": multipliers[used] * scale, "mix": mix[used]}
        )
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
