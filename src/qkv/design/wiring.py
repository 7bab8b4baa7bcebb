"""wire: Q, K and V for "token i reads token j and writes y"."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from qkv.core.attention import finite
from qkv.core.display import Card, Displayable, number
from qkv.core.geometry import balance
from qkv.core.masks import whole
from qkv.core.validation import ArrayLike, tensor
from qkv.design.certificates.certificate import Certificate
from qkv.design.solvers import conic
from qkv.design.specs import WiringSpec
from qkv.errors import QkvError

Array = np.ndarray[Any, np.dtype[np.float64]]

PREFER = ("norm", "rank")
MOST_TOKENS = 64
MOST_BALANCED = 24
WORTH = 1e9
"""A bound on the norm of every W says something from here on, in units where the tokens have norm 1."""


@dataclasses.dataclass(frozen=True, eq=False)
class Wiring(Displayable):
    """Matrices that make tokens read and write by the rules, or a proof that no W = QᵀK does.

    q_i = Q x_i, k_j = K x_j, v_j = V x_j; `distances` and `output_distances` are certified bounds, one a rule;
    `residual` is what least squares leaves of V, of the rule with the largest.
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

    @property
    def W(self) -> torch.Tensor | None:
        """QᵀK, whose entry x_iᵀ W x_j is the score that token i gives to token j."""
        return None if self.Q is None or self.K is None else self.Q.T @ self.K

    @property
    def certificates(self) -> list[Certificate]:
        """What there is to recheck."""
        return [self.certificate]

    def card(self) -> Card:
        if not self.possible:
            return Card("No wiring does this", (("proof", self.certificate.statement),))
        assert self.Q is not None and self.W is not None and self.V is not None
        facts = (
            ("head size", str(self.head_size)),
            ("norm of W = QᵀK", number(float(self.W.norm()), 6)),
            ("norm of V", number(float(self.V.norm()), 6)),
            ("residual of V", number(self.residual) if self.residual > 1e-12 else "none beyond rounding"),
        )
        rows = tuple(
            (str(i), f"≤ {number(d, 5)}", f"≤ {number(o, 5)}")
            for i, d, o in zip(self.rules, self.distances, self.output_distances, strict=True)
        )
        short = (
            "V cannot write all of it: the rules ask for more than one linear map gives."
            if self.residual > 1e-6
            else ""
        )
        return Card("Wiring", facts, ("token", "distance of weights", "distance of output"), rows, short)

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"says": self.certificate.statement}


def wire(
    X: ArrayLike,
    reads: Mapping[Any, Any],
    writes: Mapping[Any, ArrayLike],
    tol: float = 1e-3,
    head_size: int | None = None,
    prefer: str = "norm",
) -> Wiring:
    """Q, K, V with which token i reads a token (or a blend {token: weight}) and writes a vector.

    prefer="norm" makes W = QᵀK small, prefer="rank" makes it of low rank (least nuclear norm). `head_size` is the
    number of rows of Q and K; without it, the rank of W.
    """
    problem = WiringSpec.of(X, reads, writes, tol)
    x = problem.tokens.numpy()
    if prefer not in PREFER:
        raise QkvError(f"wiring with prefer={prefer!r}", "there is no such preference", f"Use {' or '.join(PREFER)}")
    if len(x) > MOST_TOKENS:
        raise QkvError(
            f"wiring {len(x)} tokens", f"at most {MOST_TOKENS} fit the program", "Wire fewer tokens at a time"
        )
    if head_size is not None:
        head_size = whole("wiring", "head_size", head_size)
    v = _values(problem)
    for slack in (1e-6, 1e-4, 1e-2):
        found = _scores(problem, problem.tol * (1 - slack), prefer)
        if found.status == "none":
            return _impossible(problem, found)
        if found.status != "solved":
            continue
        w = found.x.reshape(x.shape[1], x.shape[1])
        q, k = _factor(w, head_size, problem)
        certificate = _certificate(problem, q, k, v)
        if max(certificate.claims["distance"]) <= problem.tol:
            return Wiring(
                possible=True,
                Q=torch.from_numpy(q),
                K=torch.from_numpy(k),
                V=torch.from_numpy(v.copy()),
                head_size=len(q),
                rules=problem.rules,
                distances=tuple(certificate.claims["distance"]),
                output_distances=tuple(certificate.claims["output"]),
                residual=max(certificate.claims["residual"]),
                tol=problem.tol,
                certificate=certificate,
            )
        if head_size is not None and len(q) < _rank(w):
            raise _too_small(head_size, _rank(w), prefer, max(certificate.claims["distance"]), problem.tol)
    raise _no_answer(problem)


def check_wiring(
    X: ArrayLike,
    Q: ArrayLike,
    K: ArrayLike,
    V: ArrayLike,
    reads: Mapping[Any, Any],
    writes: Mapping[Any, ArrayLike],
    tol: float,
    output_tol: float | None = None,
) -> Certificate:
    """A certificate that anyone's matrices follow the rules to `tol`; its verify() says whether they do.

    `output_tol` bounds the distance of what is written. Without it, the bound is what weights within tol cost a V
    that writes exactly: 2 tol max |V x_j|, and a little for rounding.
    """
    problem = WiringSpec.of(X, reads, writes, tol)
    matrices = [tensor(name, m, "h d").numpy() for name, m in (("Q", Q), ("K", K), ("V", V))]
    x, (q, k, v) = problem.tokens.numpy(), matrices
    if not x.shape[1] == q.shape[1] == k.shape[1] == v.shape[1] or len(q) != len(k):
        came = f"tokens of {x.shape[1]} numbers, Q {q.shape}, K {k.shape}, V {v.shape}"
        raise QkvError("checking matrices", came, "Give matrices that take the tokens, and Q and K of one height")
    if len(v) != problem.writes.shape[1]:
        came = f"V gives {len(v)} numbers, and {problem.writes.shape[1]} are to be written"
        raise QkvError("checking matrices", came, "Give a V with as many rows as a written vector has numbers")
    if output_tol is None:
        rounding = 1e-9 * (1 + float(problem.writes.abs().max()))
        output_tol = 2 * problem.tol * float(np.linalg.norm(x @ v.T, axis=1).max()) + rounding
    claims = {"distance": problem.tol, "output": finite("checking matrices", "output_tol", output_tol)}
    return dataclasses.replace(_certificate(problem, q, k, v), claims=claims)


def _scores(problem: WiringSpec, tol: float, prefer: str) -> conic.Solution:
    """W on the span of the tokens: outside of it W changes no score, so the smallest W vanishes there."""
    x = problem.tokens.numpy()
    _, s, vt = np.linalg.svd(x, full_matrices=False)
    basis = vt[: max(1, int((s > 1e-10 * max(s[0], 1e-300)).sum()))]
    size = float(np.linalg.norm(x, axis=1).max()) or 1.0
    inner = x @ basis.T / size
    r = len(basis)
    rules = []
    for row, i in enumerate(problem.rules):
        wanted = problem.wanted[row].numpy()
        inside = np.flatnonzero(wanted > 0).tolist()
        rows = np.einsum("a,jb->jab", inner[i], inner).reshape(len(x), r * r)
        rules.append(conic.Rule.of(rows, wanted[inside], inside, np.flatnonzero(wanted == 0), tol))
    found = conic.solve(rules, r * r, nuclear=r if prefer == "rank" else 0)
    z = found.x.reshape(r, r) / size**2
    return dataclasses.replace(found, x=(basis.T @ z @ basis).ravel())


def _rank(w: Array) -> int:
    s = np.linalg.svd(w, compute_uv=False)
    return max(1, int((s > 1e-6 * max(s[0], 1e-300)).sum()))


def _factor(w: Array, head_size: int | None, problem: WiringSpec) -> tuple[Array, Array]:
    """Q and K of that many rows with QᵀK = W, sharing the singular values evenly."""
    u, s, vt = np.linalg.svd(w)
    h = head_size or _rank(w)
    root = np.zeros(h)
    kept = min(h, len(s))
    root[:kept] = np.sqrt(s[:kept])
    q, k = np.zeros((h, len(w))), np.zeros((h, len(w)))
    q[:kept], k[:kept] = u[:, :kept].T, vt[:kept]
    return q * root[:, None], k * root[:, None]


def _values(problem: WiringSpec) -> Array:
    """V by least squares, so that the wanted blend of values is what should be written."""
    means = (problem.wanted @ problem.tokens).numpy()
    return np.asarray(np.linalg.lstsq(means, problem.writes.numpy(), rcond=None)[0]).T


def _certificate(problem: WiringSpec, q: Array, k: Array, v: Array) -> Certificate:
    return Certificate.issue(
        "wiring",
        {
            "X": problem.tokens.numpy(), "Q": q, "K": k, "V": v, "rules": list(problem.rules),
            "wanted": problem.wanted.numpy(), "writes": problem.writes.numpy(),
        },
    )  # fmt: skip


def _impossible(problem: WiringSpec, found: conic.Solution) -> Wiring:
    """The proof that no W does it, from the solver's evidence or, sharper, from the tokens themselves."""
    wanted = problem.wanted.numpy()
    inside = [np.flatnonzero(row > 0) for row in wanted]
    mix, multipliers = np.zeros_like(wanted), np.zeros_like(wanted)
    for row, chosen in enumerate(inside):
        mix[row, wanted[row] == 0] = found.mix[row]
        multipliers[row, chosen[1:]] = found.multipliers[row]
    candidates = [(mix, multipliers)]
    if len(problem.tokens) <= MOST_BALANCED:
        candidates.append(_balanced(problem, inside))
    base = {"X": problem.tokens.numpy(), "rules": list(problem.rules), "wanted": wanted, "tol": problem.tol}
    proofs = [Certificate.issue("no wiring", base | {"mix": m, "multipliers": nu}) for m, nu in candidates]
    best = max(proofs, key=lambda c: float(c.claims["norm_at_least"]))
    # The program's verdict counts only as far as its evidence goes: a W this much larger than the tokens ask for.
    unit = float(problem.tokens.norm(dim=1).max()) ** 2
    if not float(best.claims["norm_at_least"]) * unit > WORTH:
        raise _no_answer(problem)
    return Wiring(False, None, None, None, 0, problem.rules, (), (), float("nan"), problem.tol, best)


def _balanced(problem: WiringSpec, inside: list[Any]) -> tuple[Array, Array]:
    """Mixes and multipliers under which the gradients of all rules cancel as well as they can."""
    x, wanted = problem.tokens.numpy(), problem.wanted.numpy()
    rivals, places, ratios, spots = [], [], [], []
    for row, i in enumerate(problem.rules):
        first = inside[row][0]
        for j in range(len(x)):
            if wanted[row, j] == 0:
                rivals.append(np.outer(x[i], x[first] - x[j]).ravel())
                places.append((row, j))
            elif j != first:
                ratios.append(np.outer(x[i], x[j] - x[first]).ravel())
                spots.append((row, j))
    mix, multipliers = np.zeros_like(wanted), np.zeros_like(wanted)
    weights, coefficients = balance(np.array(rivals), np.array(ratios).reshape(len(ratios), x.shape[1] ** 2))
    for place, weight in zip(places, weights, strict=True):
        mix[place] = weight if weight > 1e-14 else 0.0
    for spot, coefficient in zip(spots, coefficients, strict=True):
        multipliers[spot] = coefficient
    return mix, multipliers


def _no_answer(problem: WiringSpec) -> QkvError:
    return QkvError(
        f"wiring {len(problem.tokens)} tokens to {problem.tol:g}",
        "no W of ordinary size does it, and there is no proof that none does",
        "Make tokens that must be told apart differ more, or raise tol",
    )


def _too_small(head_size: int, rank: int, prefer: str, got: float, tol: float) -> QkvError:
    remedy = f"Give head_size={rank}" + ("" if prefer == "rank" else ", or prefer='rank' for a W of lower rank")
    came = f"this W has rank {rank}, and cut to {head_size} it reads only to within {got:.3g}, not {tol:g}"
    return QkvError(f"wiring with head_size={head_size}", came, remedy)
