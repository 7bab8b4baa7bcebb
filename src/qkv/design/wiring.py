"""wire: Q, K and V from rules "token i reads token j and writes y"."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch

from qkv.core.attention import Label
from qkv.core.display import Card, Displayable, lower_bound, number, plain, upper_bound
from qkv.core.geometry import min_norm_combination
from qkv.core.types import ArrayLike, FloatArray, IntArray, Labels
from qkv.core.validation import finite, tensor, whole
from qkv.design.certificates.certificate import Certificate
from qkv.design.solvers import conic
from qkv.design.solvers.contradictions import (
    MAX_CONIC_TOKENS,
    equal_token_reasons,
    exclusion_within_tol,
    rules_reason,
    score_rows,
    sequence_rules,
    statement_data,
    unwritable_reason,
)
from qkv.design.solvers.kernel_machine import KernelSolution, check_memory, smallest_matrix
from qkv.design.solvers.near_wiring import nearest_matrix
from qkv.design.solvers.sequence_rules import SequenceRules
from qkv.design.specs import WiringSpec
from qkv.errors import QkvError, kind_of, with_full_stop
from qkv.parallel import Progress

PREFERENCES = ("norm", "rank")
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
MAX_TOKENS_FOR_DIRECT_PROOF = 24
"""Up to here a proof of impossibility is also computed from the tokens themselves, by least squares."""
MAX_HEAD_SIZE = 2**20
"""Rows of Q and K, at most: more than the rank of W are zeros."""
MIN_NORM_BOUND = 1e9
"""Bounds on the norm of every W that count as "impossible", at least, in units where the tokens have norm 1."""
SAFETY_MARGINS = (1e-6, 1e-4, 1e-2)
"""The leak is aimed this much (relatively) below tol, so that Q and K rounded to float64 are certainly within it."""
MAX_ROWS = 64
"""Rules that a card lists."""
BOUND_SLACK = 1e-9
"""A lower bound on norms is claimed this much, relatively, below what was computed, so that other sums confirm it."""
KERNEL_RANK, CONIC_RANK = 1e-10, 1e-6
"""Singular values below this part of the largest are rounding errors of the kernel machine, or of the conic solver."""


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
    def least_norm(self) -> float | None:
        """A certified bound: every W that follows the rules has at least this norm; None where there is none.

        Where a rule reads a blend, it holds for every W with the exact ratios and leaks of at most tol.
        """
        found = self.certificate.claims.get("norm_at_least")
        return None if found is None else float(found)

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
        least = self.least_norm
        facts = (
            ("head size", str(self.head_size)),
            ("norm of W = QᵀK", number(float(self.W.norm()), 6)),
            *(() if least is None else ((self._bound_name, f"≥ {lower_bound(least, 6)}, certified"),)),
            ("norm of V", number(float(self.V.norm()), 6)),
            ("residual of V", f"≤ {upper_bound(self.residual)}" if self.residual > 1e-12 else "none beyond rounding"),
        )
        rows = tuple(
            (str(self.labels[i] if self.labels else i), f"≤ {upper_bound(d, 5)}", f"≤ {upper_bound(o, 5)}")
            for i, d, o in zip(self.rules, self.distances, self.output_distances, strict=True)
        )
        rows = (
            rows if len(rows) <= MAX_ROWS else (*rows[: MAX_ROWS - 1], (f"… {len(rows) - MAX_ROWS + 1} more", "", ""))
        )
        short = f"V cannot write all of it: {with_full_stop('; '.join(self.reasons))}" if self.reasons else ""
        return Card(TITLES[self.status], facts, ("token", "distance of weights", "distance of output"), rows, short)

    @property
    def _bound_name(self) -> str:
        return "norm with these ratios" if "exact ratios" in self._statement else "norm of every such W"

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"says": self._statement, "least_norm": plain(self.least_norm)}

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
    *,
    mask: ArrayLike | Literal["causal"] | None = None,
    memory_limit: float = 8e9,
    progress: Progress | None = None,
) -> Wiring:
    """Find Q, K and V with which tokens read and write by rules.

    Args:
        X: Tokens as rows, (n, d).
        reads: For each reading token, the token that it should read, or a blend {token: weight}.
        writes: For each reading token, the vector that it should write.
        tol: Largest total-variation distance of each rule's weights from the wanted ones.
        head_size: Rows of Q and K; the rank of W = QᵀK if None. If W has a higher rank, it is cut to this one, and
            refused if the rules are then not followed to tol.
        prefer: "norm" for the W of least Frobenius norm, or "rank" for the W of least nuclear norm, by a conic program
            that takes at most 64 tokens.
        labels: Names of the tokens, which rules and messages then use; 0..n-1 if None.
        mask: "causal", or booleans (n, n) that are True where a token may attend to another; None where all may.
        memory_limit: Bytes that the design may use, approximately; larger requests are refused with what would fit.
        progress: Called with percent done and 100.

    Returns:
        A `Wiring` with the matrices and their certificate, or with a proof that none exist.

    Raises:
        QkvError: If a rule is malformed or reads what the mask hides, if the memory or the conic program is too small,
            if `head_size` is below what W needs, or if neither matrices nor a proof were found.

    Example:
        >>> import qkv
        >>> wiring = qkv.design.wire([[3, 0, 0], [0, 3, 0], [0, 0, 3]], reads={0: 2}, writes={0: [1.0]})
        >>> output = qkv.self_attention([[3, 0, 0], [0, 3, 0], [0, 0, 3]], wiring.Q, wiring.K, wiring.V).output
        >>> round(float(output[0, 0]), 2), bool(wiring.certificate.verify())
        (1.0, True)
    """
    spec = WiringSpec.of(X, reads, writes, tol, labels, mask)
    _check_request(spec, prefer, progress)
    if head_size is not None:
        head_size = whole("wiring", "head_size", head_size)
        if head_size > MAX_HEAD_SIZE:
            raise QkvError("wiring", f"head_size is {head_size:,}", f"Give at most {MAX_HEAD_SIZE:,}")
    rules = sequence_rules(spec)
    check_memory([rules], finite("wiring", "memory_limit", memory_limit))
    found: Wiring | None
    evidence: KernelSolution | conic.Solution | None
    if prefer == "rank":
        found, evidence = _by_conic_program(spec, head_size, prefer)
    else:
        found, evidence = _by_kernel_machine(spec, rules, head_size, progress)
    if found is None and (spec.wanted > 0).sum() > len(spec.rules):
        found = _by_search(spec, head_size, prefer, evidence)
    return found or _impossible(spec, evidence)


def _check_request(spec: WiringSpec, prefer: Any, progress: Any) -> None:
    n = len(spec.tokens)
    if progress is not None and not callable(progress):
        raise QkvError(f"wiring {n} tokens", f"progress is {kind_of(progress)}", "Give a function of two numbers")
    if not isinstance(prefer, str) or prefer not in PREFERENCES:
        problem, hint = "there is no such preference", f"Use {' or '.join(PREFERENCES)}"
        raise QkvError(f"wiring with prefer={prefer!r:.60}", problem, hint)
    size = float(spec.tokens.abs().max())
    if size != 0 and not 1 / MAX_TOKEN_ENTRY < size < MAX_TOKEN_ENTRY:
        problem = f"the largest entry of the tokens is {size:.3g}"
        raise QkvError(f"wiring {n} tokens", problem, "Scale the tokens to entries near 1; W scales the other way")
    if prefer == "rank" and n > MAX_CONIC_TOKENS:
        problem = f"at most {MAX_CONIC_TOKENS} tokens fit the conic program for the nuclear norm"
        raise QkvError(f"wiring {n} tokens with prefer='rank'", problem, "Use prefer='norm', or wire fewer tokens")


def _by_kernel_machine(
    spec: WiringSpec, rules: SequenceRules, head_size: int | None, progress: Progress | None
) -> tuple[Wiring | None, KernelSolution | conic.Solution | None]:
    """The smallest W with the exact ratios; where it is not found, evidence of that."""
    evidence: KernelSolution | conic.Solution | None = None
    for margin in SAFETY_MARGINS:
        solution = smallest_matrix([rules], spec.tol * (1 - margin), progress=progress)
        if solution.status == "solved":
            found = _wiring(spec, solution.W, head_size, KERNEL_RANK, exact=True, multipliers=solution.multipliers[0])
            if found is not None:
                return found, None
            continue
        evidence = solution
        break
    if evidence is not None and evidence.status == "unsolved" and len(spec.tokens) <= MAX_CONIC_TOKENS:
        return _by_conic_program(spec, head_size, "norm")
    return None, evidence


def _by_conic_program(
    spec: WiringSpec, head_size: int | None, prefer: str
) -> tuple[Wiring | None, conic.Solution | None]:
    """As `_by_kernel_machine`, by the conic program; for the nuclear norm, and where the kernel machine fails."""
    x = spec.tokens
    for margin in SAFETY_MARGINS:
        solution = _solve_scores(spec, spec.tol * (1 - margin), prefer)
        if solution.status == "infeasible":
            return None, solution
        if solution.status == "solved" and np.isfinite(solution.x).all():
            w = solution.x.reshape(x.shape[1], x.shape[1])
            found = _wiring(spec, w, head_size, CONIC_RANK, exact=True)
            if found is not None:
                return found, None
    return None, None


def _by_search(
    spec: WiringSpec, head_size: int | None, prefer: str, evidence: KernelSolution | conic.Solution | None
) -> Wiring | None:
    """A wiring within tol in total variation in other ratios than the wanted ones."""
    starts = [evidence.W] if isinstance(evidence, KernelSolution) else []
    for margin in SAFETY_MARGINS:
        w = nearest_matrix(sequence_rules(spec), spec.tol * (1 - margin), starts)
        if w is None:
            return None
        found = _wiring(spec, w, head_size, KERNEL_RANK, exact=False)
        if found is not None:
            return found
        starts.append(w)
    return None


def _wiring(
    spec: WiringSpec,
    w: FloatArray,
    head_size: int | None,
    noise: float,
    exact: bool,
    multipliers: FloatArray | None = None,
) -> Wiring | None:
    """The wiring with this W; None where its certificate does not confirm tol."""
    v = _value_matrix(spec)
    q, k, rank = _factor(w, head_size, noise)
    certificate = _certificate(spec, q, k, v, multipliers)
    worst = max(certificate.claims["distance"])
    if not worst <= spec.tol:
        if head_size is not None and len(q) < rank:
            raise _too_small(spec, head_size, rank, worst)
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
        if len(inside) == 1:
            continue
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
    *,
    mask: ArrayLike | Literal["causal"] | None = None,
) -> Certificate:
    """State that given matrices follow rules to `tol`, as a certificate; its verify() decides that rigorously.

    The certificate may be false: verify() recomputes every distance with rigorous bounds and refuses it if so.

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
        mask: As for `wire`.

    Returns:
        A `Certificate` of kind "wiring".

    Raises:
        QkvError: If a rule is malformed, a tolerance is not one, or the matrices do not fit the tokens, each other or
            what is written.

    Example:
        >>> import qkv
        >>> X = [[0, 4, 0], [4, 0, 0], [0, 0, 4]]
        >>> swap = [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
        >>> eye = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
        >>> stated = qkv.design.check_wiring(X, swap, eye, eye, reads={0: 1}, writes={0: [4, 0, 0]}, tol=1e-3)
        >>> bool(stated.verify())
        True
    """
    spec = WiringSpec.of(X, reads, writes, tol, mask=mask)
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
    output_tol = finite("checking matrices", "output_tol", output_tol)
    if output_tol < 0:
        raise QkvError("checking matrices", f"output_tol is {output_tol:g}, and a distance is at least 0", "Raise it")
    claims = {"distance": spec.tol, "output": output_tol}
    return dataclasses.replace(_certificate(spec, q, k, v), claims=claims)


def _solve_scores(spec: WiringSpec, tol: float, prefer: str) -> conic.Solution:
    """The conic program for W with the exact ratios."""
    all_rows, basis, size = score_rows(spec)
    r = len(basis)
    rules = []
    for row, rows in enumerate(all_rows):
        wanted = spec.wanted[row].numpy()
        inside = np.flatnonzero(wanted > 0).tolist()
        rules.append(conic.Rule.of(rows, wanted[inside], inside, _rest(spec, row), tol))
    found = conic.solve(rules, r * r, nuclear=r if prefer == "rank" else 0)
    z = found.x.reshape(r, r) / size**2
    return dataclasses.replace(found, x=(basis.T @ z @ basis).ravel())


def _rest(spec: WiringSpec, row: int) -> IntArray:
    """The tokens that a rule's token sees and should not read."""
    rest = spec.wanted[row].numpy() == 0
    return np.flatnonzero(rest if spec.allowed is None else rest & spec.allowed[row])


def _factor(w: FloatArray, head_size: int | None, noise: float) -> tuple[FloatArray, FloatArray, int]:
    """Q and K of that many rows with QᵀK = W, each with the square roots of the singular values; the rank of W."""
    u, s, vt = np.linalg.svd(w)
    rank = max(1, int((s > noise * max(s[0], 1e-300)).sum()))
    h = head_size or rank
    root = np.zeros(h)
    kept = min(h, len(s))
    root[:kept] = np.sqrt(s[:kept])
    q, k = np.zeros((h, len(w))), np.zeros((h, len(w)))
    q[:kept], k[:kept] = u[:, :kept].T, vt[:kept]
    return q * root[:, None], k * root[:, None], rank


def _value_matrix(spec: WiringSpec) -> FloatArray:
    """V by least squares, so that the wanted blend of values is the vector to write."""
    means = (spec.wanted @ spec.tokens).numpy()
    return np.asarray(np.linalg.lstsq(means, spec.writes.numpy(), rcond=None)[0]).T


def _certificate(
    spec: WiringSpec, q: FloatArray, k: FloatArray, v: FloatArray, multipliers: FloatArray | None = None
) -> Certificate:
    data = statement_data(spec) | {"Q": q, "K": k, "V": v, "writes": spec.writes.numpy()}
    if multipliers is not None and (top := float(np.abs(multipliers).max())) > 0:
        data |= {"multipliers": multipliers / top, "tol": spec.tol}
    found = Certificate.issue("wiring", data)
    bound = found.claims.get("norm_at_least")
    if bound is None:
        return found
    # W is rounded, so it can be a little shorter than any that follows the rules; a bound below it is true too.
    least = min(float(bound), float(np.linalg.norm(q.T @ k))) * (1 - BOUND_SLACK)
    claims = {name: claim for name, claim in found.claims.items() if name != "norm_at_least"}
    if not least > 0:
        return Certificate.issue("wiring", {n: a for n, a in data.items() if n not in ("multipliers", "tol")})
    return dataclasses.replace(found, claims=claims | {"norm_at_least": least})


def _impossible(spec: WiringSpec, evidence: KernelSolution | conic.Solution | None) -> Wiring:
    """What is proved where no W was found: for every W within tol, or, failing that, for the exact ratios."""
    unit = _score_unit(spec)
    proof, used = exclusion_within_tol(spec, MIN_NORM_BOUND / unit if unit > 0 else np.inf)
    status: Status = "out of reach"
    reasons = equal_token_reasons(spec)
    # A solver's "infeasible" is a hypothesis; only a proof that every W is very large counts as impossible.
    if not _excludes(proof, unit):
        proof, status, used = _exact_ratio_proof(spec, evidence), "not found", ()
        if not _excludes(proof, unit):
            raise _no_answer(spec)
        assert proof is not None
        if bool(((spec.wanted == 1).sum(dim=1) == 1).all()):
            # Of a rule that reads one token, a leak of at most tol is a total variation of at most tol.
            status, used = "out of reach", tuple(np.flatnonzero(np.asarray(proof.data["mix"]).any(axis=1)).tolist())
    assert proof is not None
    if not reasons and used:
        reasons = [rules_reason(spec, used, float(proof.claims["norm_at_least"]))]
    nothing = (False, None, None, None, 0, spec.rules, (), (), float("nan"), spec.tol)
    return Wiring(*nothing, proof, status, tuple(reasons), spec.labels)


def _score_unit(spec: WiringSpec) -> float:
    """How much W of norm 1 moves the score that the shortest token gets from the shortest reader, at most.

    Tokens and readers that are 0 do not count. A longer token would make any bound look large, even where no rule
    needs it.
    """
    lengths = [float(length) for length in spec.tokens.norm(dim=1)]
    readers = [lengths[i] for i in spec.rules if lengths[i] > 0]
    return min(readers, default=0.0) * min((length for length in lengths if length > 0), default=0.0)


def _excludes(proof: Certificate | None, unit: float) -> bool:
    """Whether a proof excludes every W, or all but those that are very large for these tokens."""
    if proof is None:
        return False
    norm = float(proof.claims["norm_at_least"])
    return np.isinf(norm) or norm * unit > MIN_NORM_BOUND


def _exact_ratio_proof(spec: WiringSpec, evidence: KernelSolution | conic.Solution | None) -> Certificate | None:
    """A proof for the exact ratios, from the solver's dual variables or, sharper, from the tokens themselves."""
    wanted = spec.wanted.numpy()
    inside = [np.flatnonzero(row > 0) for row in wanted]
    candidates = []
    if isinstance(evidence, KernelSolution):
        candidates.append(_kernel_evidence(spec, evidence))
    elif evidence is not None and evidence.mix:
        mix, multipliers = np.zeros_like(wanted), np.zeros_like(wanted)
        for row, chosen in enumerate(inside):
            mix[row, _rest(spec, row)] = evidence.mix[row]
            multipliers[row, chosen[1:]] = evidence.multipliers[row]
        candidates.append((mix, multipliers))
    if len(spec.tokens) <= MAX_TOKENS_FOR_DIRECT_PROOF and any(len(_rest(spec, row)) for row in range(len(wanted))):
        candidates.append(_min_norm_evidence(spec, inside))
    base = statement_data(spec) | {"tol": spec.tol}
    proofs = [
        Certificate.issue("no wiring", base | {"mix": m, "multipliers": nu})
        for m, nu in candidates
        if np.isfinite(m).all() and np.isfinite(nu).all()
    ]
    return max(proofs, key=lambda c: float(c.claims["norm_at_least"]), default=None)


def _kernel_evidence(spec: WiringSpec, found: KernelSolution) -> tuple[FloatArray, FloatArray]:
    """Mixes and multipliers of the kernel machine, with the multiplier of a rule's leak as the sum of its mix."""
    rules, values = sequence_rules(spec), found.multipliers[0]
    mix, multipliers = np.zeros(spec.wanted.shape), np.zeros(spec.wanted.shape)
    top = float(np.abs(values).max()) or 1.0
    for row, i in enumerate(spec.rules):
        entries = slice(int(rules.offsets[row]), int(rules.offsets[row + 1]))
        leak, *ratios = values[entries] / top
        multipliers[row, rules.items[entries][1:]] = ratios
        rest = _rest(spec, row)
        if len(rest) and leak > 0:
            scores = (rules.queries[i] @ found.W) @ rules.keys[rest].T
            raw = np.exp(scores - scores.max())
            mix[row, rest] = leak * raw / raw.sum()
    return mix, multipliers


def _min_norm_evidence(spec: WiringSpec, inside: list[IntArray]) -> tuple[FloatArray, FloatArray]:
    """Mixes and multipliers that minimise the norm of the sum of all rules' gradients."""
    x, wanted = spec.tokens.numpy(), spec.wanted.numpy()
    rivals, places, ratios, spots = [], [], [], []
    for row, i in enumerate(spec.rules):
        first, rest = inside[row][0], set(_rest(spec, row).tolist())
        for j in range(len(x)):
            if j in rest:
                rivals.append(np.outer(x[i], x[first] - x[j]).ravel())
                places.append((row, j))
            elif wanted[row, j] > 0 and j != first:
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


def _too_small(spec: WiringSpec, head_size: int, rank: int, got: float) -> QkvError:
    problem = f"this W has rank {rank}, and cut to {head_size} it reads only to within {got:.3g}, not {spec.tol:g}"
    lower = ", or prefer 'rank' for a W of lower rank" if len(spec.tokens) <= MAX_CONIC_TOKENS else ""
    hint = f"Give a head size of {rank}{lower}, or follow fewer rules with one head"
    return QkvError(f"wiring with a head size of {head_size}", problem, hint)
