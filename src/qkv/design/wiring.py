"""wire: Q, K and V from rules "token i reads token j and writes y"."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch

from qkv.core.attention import Label
from qkv.core.display import Card, Displayable, lower_bound, number, upper_bound
from qkv.core.geometry import min_norm_combination
from qkv.core.types import ArrayLike, FloatArray, IntArray, Labels
from qkv.core.validation import finite, tensor, whole
from qkv.design.certificates.certificate import Certificate
from qkv.design.solvers import conic
from qkv.design.solvers.contradictions import (
    equal_token_reasons,
    exclusion_within_tol,
    rules_reason,
    score_rows,
    unwritable_reason,
)
from qkv.design.specs import WiringSpec
from qkv.errors import QkvError

PREFERENCES = ("norm", "rank")
Shortfalls = Literal["none", "in proportion", "small items dropped"]
SHORTFALLS: tuple[Shortfalls, ...] = ("none", "in proportion", "small items dropped")
"""How the wanted weights may fall short, tried in turn: by the leak alone, which keeps the ratios exact; each by its
share of tol; or by the smallest ones altogether, which are then not read."""
MAX_DROPPED = 0.9
Status = Literal["exact", "within", "out of reach", "not found"]
TITLES: dict[Status, str] = {
    "exact": "Wiring",
    "within": "Wiring, within tol but not in the wanted ratios",
    "out of reach": "No wiring does this",
    "not found": "No wiring was found; the proof covers the exact ratios only",
}
MAX_RATIO_ERROR = 1e-8
"""Error of the logarithms of the ratios up to which a wiring counts as reading the wanted ratios."""
MAX_TOKEN_ENTRY = 1e100
"""Tokens whose largest entry is above this, or below its inverse, are refused: products would leave float64's range."""
MAX_TOKENS = 64
"""Larger problems do not fit the conic program."""
MAX_TOKENS_FOR_DIRECT_PROOF = 24
"""Up to here a proof of impossibility is also computed from the tokens themselves, by least squares."""
MAX_HEAD_SIZE = 2**20
"""Rows of Q and K, at most: more than the rank of W are zeros."""
MIN_NORM_BOUND = 1e9
"""Bounds on the norm of every W that count as "impossible", at least, in units where the tokens have norm 1."""
SAFETY_MARGINS = (1e-6, 1e-4, 1e-2)
"""The leak is aimed this much (relatively) below tol, so that Q and K rounded to float64 are certainly within it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Wiring(Displayable):
    """Matrices with which tokens read and write by the rules, or a proof that no W = QᵀK does it.

    With q_i = Q x_i, k_j = K x_j and v_j = V x_j.

    Attributes:
        possible: Whether matrices were found; else `certificate` says what is proved.
        Q: Query matrix, (head_size, d), or None.
        K: Key matrix, (head_size, d), or None.
        V: Value matrix, (dv, d), or None.
        head_size: Rows of Q and K.
        rules: The reading token of each rule.
        distances: Certified bounds on the total-variation distance of each rule's weights.
        output_distances: Certified bounds on the distance of each rule's output from what it should write.
        residual: What V would leave of the worst rule's output if the weights were exact.
        tol: Largest total-variation distance that was allowed.
        certificate: The certificate of the bounds, or of impossibility.
        status: "exact" (each rule reads the wanted ratios), "within" (other ratios, within tol in total variation),
            "out of reach" (no W, or none up to a very large norm, follows the rules to within tol in total variation)
            or "not found" (no W was found; what is proved holds for the exact ratios only).
        reasons: Why rules are not followed, in words: equal tokens that should be told apart, rules that contradict
            each other, and what no V can write.
        labels: Names of the tokens; 0..n-1 if none were given.
    """

    possible: bool
    Q: torch.Tensor | None
    K: torch.Tensor | None
    V: torch.Tensor | None
    head_size: int
    rules: tuple[int, ...]
    distances: tuple[float, ...]
    output_distances: tuple[float, ...]
    residual: float
    tol: float
    certificate: Certificate = dataclasses.field(repr=False)
    status: Status = "exact"
    reasons: tuple[str, ...] = ()
    labels: tuple[Label, ...] = ()

    @property
    def W(self) -> torch.Tensor | None:
        """W = QᵀK; x_iᵀ W x_j is the score that token i gives to token j."""
        return None if self.Q is None or self.K is None else self.Q.T @ self.K

    @property
    def certificates(self) -> list[Certificate]:
        """The certificates of this result."""
        return [self.certificate]

    def card(self) -> Card:
        if not self.possible:
            why = tuple(("because", reason) for reason in self.reasons)
            norm = float(self.certificate.claims["norm_at_least"])
            title = TITLES[self.status]
            if self.status == "out of reach" and np.isfinite(norm):
                title = f"No wiring of norm below {lower_bound(norm, 3)} does this"
            return Card(title, (*why, ("proof", self._statement)))
        assert self.Q is not None and self.W is not None and self.V is not None
        facts = (
            ("head size", str(self.head_size)),
            ("norm of W = QᵀK", number(float(self.W.norm()), 6)),
            ("norm of V", number(float(self.V.norm()), 6)),
            ("residual of V", f"≤ {upper_bound(self.residual)}" if self.residual > 1e-12 else "none beyond rounding"),
        )
        rows = tuple(
            (str(self.labels[i] if self.labels else i), f"≤ {upper_bound(d, 5)}", f"≤ {upper_bound(o, 5)}")
            for i, d, o in zip(self.rules, self.distances, self.output_distances, strict=True)
        )
        short = f"V cannot write all of it: {'; '.join(self.reasons)}." if self.reasons else ""
        return Card(TITLES[self.status], facts, ("token", "distance of weights", "distance of output"), rows, short)

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"says": self._statement}

    @property
    def _statement(self) -> str:
        """The statement of the certificate, with the names of the tokens."""
        return self.certificate.worded(dict(enumerate(self.labels)))


def wire(
    X: ArrayLike,
    reads: Mapping[int, int | Mapping[int, float]],
    writes: Mapping[int, ArrayLike],
    tol: float = 1e-3,
    head_size: int | None = None,
    prefer: Literal["norm", "rank"] = "norm",
    labels: Labels | None = None,
) -> Wiring:
    """Find Q, K and V with which tokens read and write by rules.

    Args:
        X: Tokens as rows, (n, d).
        reads: For each reading token, the token that it should read, or a blend {token: weight}.
        writes: For each reading token, the vector that it should write.
        tol: Largest total-variation distance of each rule's weights from the wanted ones.
        head_size: Rows of Q and K; the rank of W = QᵀK if None.
        prefer: "norm" for the W of least Frobenius norm, or "rank" for the W of least nuclear norm.
        labels: Names of the tokens, which rules and messages then use; 0..n-1 if None.

    Returns:
        A `Wiring` with the matrices and their certificate, or with a proof that none exist.

    Raises:
        QkvError: If a rule is malformed, if there are more than 64 tokens, if `head_size` is below the rank of W, or
            if neither matrices nor a proof were found.

    Example:
        >>> import qkv
        >>> wiring = qkv.design.wire([[3, 0, 0], [0, 3, 0], [0, 0, 3]], reads={0: 2}, writes={0: [1.0]})
        >>> output = qkv.self_attention([[3, 0, 0], [0, 3, 0], [0, 0, 3]], wiring.Q, wiring.K, wiring.V).output
        >>> round(float(output[0, 0]), 2), bool(wiring.certificate.verify())
        (1.0, True)
    """
    spec = WiringSpec.of(X, reads, writes, tol, labels)
    x = spec.tokens.numpy()
    if not isinstance(prefer, str) or prefer not in PREFERENCES:
        raise QkvError(
            f"wiring with prefer={prefer!r}", "there is no such preference", f"Use {' or '.join(PREFERENCES)}"
        )
    size = float(spec.tokens.abs().max())
    if size != 0 and not 1 / MAX_TOKEN_ENTRY < size < MAX_TOKEN_ENTRY:
        problem = f"the largest entry of the tokens is {size:.3g}"
        raise QkvError(f"wiring {len(x)} tokens", problem, "Scale the tokens to entries near 1; W scales the other way")
    if len(x) > MAX_TOKENS:
        raise QkvError(
            f"wiring {len(x)} tokens", f"at most {MAX_TOKENS} fit the program", "Wire fewer tokens at a time"
        )
    if head_size is not None:
        head_size = whole("wiring", "head_size", head_size)
        if head_size > MAX_HEAD_SIZE:
            raise QkvError("wiring", f"head_size is {head_size:,}", f"Give at most {MAX_HEAD_SIZE:,}")
    infeasible = None
    for shortfalls in SHORTFALLS:
        for margin in SAFETY_MARGINS:
            solution = _solve_scores(spec, spec.tol * (1 - margin), prefer, shortfalls)
            if solution.status == "infeasible":
                infeasible = solution if shortfalls == "none" else infeasible
                break
            if solution.status == "solved" and np.isfinite(solution.x).all():
                w = solution.x.reshape(x.shape[1], x.shape[1])
                found = _wiring(spec, w, head_size, prefer, exact=shortfalls == "none")
                if found is not None:
                    return found
    return _impossible(spec, infeasible)


def _wiring(spec: WiringSpec, w: FloatArray, head_size: int | None, prefer: str, exact: bool) -> Wiring | None:
    """The wiring with this W; None where its certificate does not confirm tol."""
    v = _value_matrix(spec)
    q, k = _factor(w, head_size)
    certificate = _certificate(spec, q, k, v)
    worst = max(certificate.claims["distance"])
    if not worst <= spec.tol:
        if head_size is not None and len(q) < _rank(w):
            raise _too_small(head_size, _rank(w), prefer, worst, spec.tol)
        return None
    unwritable = unwritable_reason(spec)
    return Wiring(
        possible=True,
        Q=torch.from_numpy(q),
        K=torch.from_numpy(k),
        V=torch.from_numpy(v.copy()),
        head_size=len(q),
        rules=spec.rules,
        distances=tuple(certificate.claims["distance"]),
        output_distances=tuple(certificate.claims["output"]),
        residual=max(certificate.claims["residual"]),
        tol=spec.tol,
        certificate=certificate,
        status="exact" if exact and _has_ratios(spec, q, k) else "within",
        reasons=() if unwritable is None else (unwritable,),
        labels=spec.labels,
    )


def _has_ratios(spec: WiringSpec, q: FloatArray, k: FloatArray) -> bool:
    """Whether the scores of every rule give the wanted ratios, to rounding."""
    x = spec.tokens.numpy()
    for row, i in enumerate(spec.rules):
        wanted = spec.wanted[row].numpy()
        inside = np.flatnonzero(wanted > 0)
        scores = (q @ x[i]) @ (k @ x[inside].T)
        logs = np.log(wanted[inside])
        if np.abs((scores - scores[0]) - (logs - logs[0])).max() > MAX_RATIO_ERROR * (1 + np.abs(logs).max()):
            return False
    return True


def check_wiring(
    X: ArrayLike,
    Q: ArrayLike,
    K: ArrayLike,
    V: ArrayLike,
    reads: Mapping[int, int | Mapping[int, float]],
    writes: Mapping[int, ArrayLike],
    tol: float,
    output_tol: float | None = None,
) -> Certificate:
    """State that given matrices follow rules to `tol`, as a certificate; its verify() decides that rigorously.

    The certificate may be false: verify() recomputes every distance in ball arithmetic and refuses it if so.

    Args:
        X: Tokens as rows, (n, d).
        Q: Query matrix, (h, d).
        K: Key matrix, (h, d).
        V: Value matrix, (dv, d).
        reads: As for `wire`.
        writes: As for `wire`.
        tol: Largest total-variation distance of each rule's weights from the wanted ones.
        output_tol: Largest distance of each rule's output from what it should write. If None, what weights within
            tol cost a V that writes exactly, 2 tol max |V x_j|, plus an allowance for rounding.

    Returns:
        A `Certificate` of kind "wiring".

    Raises:
        QkvError: If a rule is malformed, or if the matrices do not fit the tokens, each other or what is written.

    Example:
        >>> import qkv
        >>> X = [[0, 4, 0], [4, 0, 0], [0, 0, 4]]
        >>> swap = [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
        >>> eye = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
        >>> stated = qkv.design.check_wiring(X, swap, eye, eye, reads={0: 1}, writes={0: [4, 0, 0]}, tol=1e-3)
        >>> bool(stated.verify())
        True
    """
    spec = WiringSpec.of(X, reads, writes, tol)
    matrices = [tensor(name, m, "h d").numpy() for name, m in (("Q", Q), ("K", K), ("V", V))]
    x, (q, k, v) = spec.tokens.numpy(), matrices
    if not x.shape[1] == q.shape[1] == k.shape[1] == v.shape[1] or len(q) != len(k):
        problem = f"tokens of {x.shape[1]} numbers, Q {q.shape}, K {k.shape}, V {v.shape}"
        raise QkvError("checking matrices", problem, "Give matrices that take the tokens, and Q and K of one height")
    if len(v) != spec.writes.shape[1]:
        problem = f"V gives {len(v)} numbers, and {spec.writes.shape[1]} are to be written"
        raise QkvError("checking matrices", problem, "Give a V with as many rows as a written vector has numbers")
    if output_tol is None:
        rounding = 1e-9 * (1 + float(spec.writes.abs().max()))
        output_tol = 2 * spec.tol * float(np.linalg.norm(x @ v.T, axis=1).max()) + rounding
    claims = {"distance": spec.tol, "output": finite("checking matrices", "output_tol", output_tol)}
    return dataclasses.replace(_certificate(spec, q, k, v), claims=claims)


def _solve_scores(spec: WiringSpec, tol: float, prefer: str, shortfalls: Shortfalls) -> conic.Solution:
    """The conic program for W with these shortfalls of the wanted weights."""
    all_rows, basis, size = score_rows(spec)
    r = len(basis)
    rules, loose = [], []
    for row, rows in enumerate(all_rows):
        wanted = spec.wanted[row].numpy()
        inside = np.flatnonzero(wanted > 0).tolist()
        rules.append(conic.Rule.of(rows, wanted[inside], inside, np.flatnonzero(wanted == 0), tol))
        least = _least_weights(wanted, tol, drop=shortfalls == "small items dropped")
        kept = np.flatnonzero(least > 0).tolist()
        loose.append(conic.NearRule(rows, kept, np.log(least[kept]), np.zeros(len(kept))))
    if shortfalls == "none":
        found = conic.solve(rules, r * r, nuclear=r if prefer == "rank" else 0)
    else:
        found = conic.solve_near(loose, r * r)
    z = found.x.reshape(r, r) / size**2
    return dataclasses.replace(found, x=(basis.T @ z @ basis).ravel())


def _least_weights(wanted: FloatArray, tol: float, drop: bool) -> FloatArray:
    """Bounds from below on the weights that add up to shortfalls of tol: in proportion to the wanted weights.

    With `drop`, the smallest wanted weights that make up at most most of tol need not be read at all.
    """
    kept = wanted.copy()
    if drop:
        order = np.argsort(np.where(wanted > 0, wanted, np.inf))
        dropped = np.cumsum(wanted[order]) <= MAX_DROPPED * tol
        kept[order[dropped & (wanted[order] > 0)]] = 0.0
    left = tol - float(wanted.sum() - kept.sum())
    return np.asarray(kept * (1 - left / kept.sum()))


def _rank(w: FloatArray) -> int:
    s = np.linalg.svd(w, compute_uv=False)
    return max(1, int((s > 1e-6 * max(s[0], 1e-300)).sum()))


def _factor(w: FloatArray, head_size: int | None) -> tuple[FloatArray, FloatArray]:
    """Q and K of that many rows with QᵀK = W: each takes the square roots of the singular values."""
    u, s, vt = np.linalg.svd(w)
    h = head_size or _rank(w)
    root = np.zeros(h)
    kept = min(h, len(s))
    root[:kept] = np.sqrt(s[:kept])
    q, k = np.zeros((h, len(w))), np.zeros((h, len(w)))
    q[:kept], k[:kept] = u[:, :kept].T, vt[:kept]
    return q * root[:, None], k * root[:, None]


def _value_matrix(spec: WiringSpec) -> FloatArray:
    """V by least squares, so that the wanted blend of values is the vector to write."""
    means = (spec.wanted @ spec.tokens).numpy()
    return np.asarray(np.linalg.lstsq(means, spec.writes.numpy(), rcond=None)[0]).T


def _certificate(spec: WiringSpec, q: FloatArray, k: FloatArray, v: FloatArray) -> Certificate:
    return Certificate.issue(
        "wiring",
        {
            "X": spec.tokens.numpy(), "Q": q, "K": k, "V": v, "rules": list(spec.rules),
            "wanted": spec.wanted.numpy(), "writes": spec.writes.numpy(),
        },
    )  # fmt: skip


def _impossible(spec: WiringSpec, found: conic.Solution | None) -> Wiring:
    """What is proved where no W was found: for every W within tol, or, failing that, for the exact ratios."""
    unit = _score_unit(spec)
    proof, used = exclusion_within_tol(spec)
    status: Status = "out of reach"
    reasons = equal_token_reasons(spec)
    # A solver's "infeasible" is a hypothesis; only a proof that every W is very large counts as impossible.
    if not _excludes(proof, unit):
        proof, status, used = _exact_ratio_proof(spec, found), "not found", ()
        if not _excludes(proof, unit):
            raise _no_answer(spec)
    assert proof is not None
    if not reasons and used:
        reasons = [rules_reason(spec, used, float(proof.claims["norm_at_least"]))]
    nothing = (False, None, None, None, 0, spec.rules, (), (), float("nan"), spec.tol)
    return Wiring(*nothing, proof, status, tuple(reasons), spec.labels)


def _score_unit(spec: WiringSpec) -> float:
    """How much W of norm 1 can move the scores of the rule with the shortest reader; zero readers do not count."""
    lengths = spec.tokens.norm(dim=1)
    readers = [float(lengths[i]) for i in spec.rules if lengths[i] > 0]
    return min(readers, default=0.0) * float(lengths.max())


def _excludes(proof: Certificate | None, unit: float) -> bool:
    """Whether a proof excludes every W, or all but those that are very large for these tokens."""
    if proof is None:
        return False
    norm = float(proof.claims["norm_at_least"])
    return np.isinf(norm) or norm * unit > MIN_NORM_BOUND


def _exact_ratio_proof(spec: WiringSpec, found: conic.Solution | None) -> Certificate | None:
    """A proof for the exact ratios, from the solver's dual variables or, sharper, from the tokens themselves."""
    wanted = spec.wanted.numpy()
    inside = [np.flatnonzero(row > 0) for row in wanted]
    candidates = []
    if found is not None:
        mix, multipliers = np.zeros_like(wanted), np.zeros_like(wanted)
        for row, chosen in enumerate(inside):
            mix[row, wanted[row] == 0] = found.mix[row]
            multipliers[row, chosen[1:]] = found.multipliers[row]
        candidates.append((mix, multipliers))
    if len(spec.tokens) <= MAX_TOKENS_FOR_DIRECT_PROOF and (wanted == 0).any():
        candidates.append(_min_norm_evidence(spec, inside))
    base = {"X": spec.tokens.numpy(), "rules": list(spec.rules), "wanted": wanted, "tol": spec.tol}
    proofs = [Certificate.issue("no wiring", base | {"mix": m, "multipliers": nu}) for m, nu in candidates]
    return max(proofs, key=lambda c: float(c.claims["norm_at_least"]), default=None)


def _min_norm_evidence(spec: WiringSpec, inside: list[IntArray]) -> tuple[FloatArray, FloatArray]:
    """Mixes and multipliers that minimise the norm of the sum of all rules' gradients."""
    x, wanted = spec.tokens.numpy(), spec.wanted.numpy()
    rivals, places, ratios, spots = [], [], [], []
    for row, i in enumerate(spec.rules):
        first = inside[row][0]
        for j in range(len(x)):
            if wanted[row, j] == 0:
                rivals.append(np.outer(x[i], x[first] - x[j]).ravel())
                places.append((row, j))
            elif j != first:
                ratios.append(np.outer(x[i], x[j] - x[first]).ravel())
                spots.append((row, j))
    mix, multipliers = np.zeros_like(wanted), np.zeros_like(wanted)
    weights, coefficients = min_norm_combination(
        np.array(rivals), np.array(ratios).reshape(len(ratios), x.shape[1] ** 2)
    )
    for place, weight in zip(places, weights, strict=True):
        mix[place] = weight if weight > 1e-14 else 0.0
    for spot, coefficient in zip(spots, coefficients, strict=True):
        multipliers[spot] = coefficient
    return mix, multipliers


def _no_answer(spec: WiringSpec) -> QkvError:
    because = "".join(f"; {reason}" for reason in equal_token_reasons(spec))
    return QkvError(
        f"wiring {len(spec.tokens)} tokens to {spec.tol:g}",
        f"no W was found, and there is no proof that none exists{because}",
        "Make tokens that must be told apart differ more, or raise tol",
    )


def _too_small(head_size: int, rank: int, prefer: str, got: float, tol: float) -> QkvError:
    hint = f"Give head_size={rank}" + ("" if prefer == "rank" else ", or prefer='rank' for a W of lower rank")
    problem = f"this W has rank {rank}, and cut to {head_size} it reads only to within {got:.3g}, not {tol:g}"
    return QkvError(f"wiring with head_size={head_size}", problem, hint)
