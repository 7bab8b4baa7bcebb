"""copy and blend: the query of least norm for given weights, in closed form or by a conic program."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import torch

from qkv.core.display import Card, Displayable, lower_bound, lower_power_of_ten, number, plain, upper_bound, vector
from qkv.core.geometry import common_norm
from qkv.core.memory import Memory
from qkv.core.types import ArrayLike, FloatArray, Item, Weights
from qkv.design.certificates.certificate import Certificate
from qkv.design.certificates.statements.weights import FLOAT64_FIRST_SIZE
from qkv.design.hull.selectable import inside_certificate, selecting_query
from qkv.design.solvers import conic
from qkv.design.solvers.infeasibility import no_query_certificate
from qkv.design.solvers.near import distance_bound, excludes_all, exclusion_within_tol, norm_bound_within_tol
from qkv.design.solvers.tv_search import nearest_query
from qkv.design.specs import BlendSpec, covariances
from qkv.errors import QkvError, with_full_stop

Status = Literal["exact", "within", "out of reach", "best found"]
STATUS_TEXT: dict[Status, str] = {
    "exact": "the wanted ratios, to rounding, with a leak within tol",
    "within": "within tol in total variation, but not in the wanted ratios",
    "out of reach": "no query is within tol, which is proved; this is the nearest that was found",
    "best found": "not within tol; this is the nearest that was found, and another may be nearer",
}
Form = Literal["smallest", "textbook"]
FORMS: tuple[Form, ...] = get_args(Form)
MAX_RATIO_ERROR = 1e-8
"""Error of the logarithms of the ratios up to which a query counts as reading the wanted ratios."""
MAX_KEY_ENTRY = 1e100
"""Keys whose largest entry is above this, or below its inverse, are refused: squares would leave float64's range."""
SAFETY_MARGINS = (1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5)
"""The leak is aimed this much (relatively) below tol, so that the query rounded to float64 is certainly within it; the
large ones are needed for tolerances near the rounding errors of weights."""


@dataclasses.dataclass(frozen=True, eq=False)
class Design(Displayable):
    """A query for wanted weights, with certified bounds on how far its reading is from them.

    Attributes:
        status: "exact" (the wanted ratios, leak within tol), "within" (other ratios, but within tol), "out of reach"
            (no query is within tol, which is proved) or "best found" (no query within tol was found). In the last two
            cases `query` is the nearest, in total variation, that was found; another one may be nearer.
        wanted: Wanted weight by label.
        tol: Largest total-variation distance that was allowed.
        query: The query, (d,); it equals `scale` · `direction`.
        scale: The factor in front of `direction`. Where status is "exact", the direction has a gap of 1 between the
            wanted items and the strongest other one, so that this is the gap of the query (the t of t(k_a + k_b)), the
            smallest that brings the leak down to tol; else the direction has norm 1.
        distance: Certified bound on the total-variation distance of the weights from the wanted ones.
        output_distance: Certified bound on the distance of the output from the wanted weighted sum of values.
        certificate: Certificate of both bounds, and, where status is "exact", of a lower bound on the norm of every
            query with the same ratios and a leak of at most tol.
        obstacle: Certificate that no query, or none up to some norm, reads the exact ratios with a leak of at most tol,
            or that no query selects the item; None where there is none. Other ratios may still be within tol.
        ratio_bound: Certificate of a larger lower bound on the norm of every query with the exact ratios, from the
            ratios alone; None where there is none.
        distance_bound: Certificate that no query, or none up to a very large norm, is nearer to the wanted weights, in
            total variation, than `distance_at_least`; None where there is none.
    """

    status: Status
    wanted: Mapping[Item, float]
    tol: float
    query: torch.Tensor
    scale: float
    distance: float
    output_distance: float
    certificate: Certificate = dataclasses.field(repr=False)
    obstacle: Certificate | None = dataclasses.field(default=None, repr=False)
    ratio_bound: Certificate | None = dataclasses.field(default=None, repr=False)
    distance_bound: Certificate | None = dataclasses.field(default=None, repr=False)

    @property
    def possible(self) -> bool:
        """Whether the weights are within tol of the wanted ones, in total variation."""
        return self.status in ("exact", "within")

    @property
    def direction(self) -> torch.Tensor:
        """The query at scale 1."""
        return self.query / self.scale if self.scale else self.query

    @property
    def certificates(self) -> list[Certificate]:
        """The certificates of this result: of the reading, and of every query that could do it."""
        found = (self.certificate, self.ratio_bound, self.within_bound, self.obstacle, self.distance_bound)
        return [c for c in found if c is not None]

    @functools.cached_property
    def within_bound(self) -> Certificate | None:
        """Certificate of a lower bound on the norm of every query within tol in total variation, whatever its ratios.

        It is computed when it is first used. None where the query itself is not within tol, where no bound was found,
        or where the keys hold more than 200,000 numbers.
        """
        if not self.possible:
            return None
        data = self.certificate.data
        wanted = tuple(float(w) for w in data["wanted"])
        spec = BlendSpec(tuple(int(i) for i in data["items"]), wanted, self.tol)
        return norm_bound_within_tol(np.asarray(data["keys"]), spec, np.asarray(data["query"]))

    @property
    def least_norm_within_tol(self) -> float | None:
        """A certified bound: every query within tol in total variation has this norm or more; None if there is none."""
        return None if self.within_bound is None else float(self.within_bound.claims["norm_at_least"])

    @property
    def distance_at_least(self) -> float | None:
        """A certified bound: no query is nearer than this in total variation; None where none was found.

        Where the keys are dependent only to rounding, it holds for queries up to the norm in `distance_bound.claims`.
        """
        return None if self.distance_bound is None else float(self.distance_bound.data["tol"])

    @property
    def distance_at_least_below_norm(self) -> float | None:
        """The norm below which `distance_at_least` holds; infinite where it holds for every query, None without it."""
        return None if self.distance_bound is None else float(self.distance_bound.claims["norm_at_least"])

    @property
    def least_norm(self) -> float | None:
        """A certified bound: every query with the exact ratios and a leak of at most tol has at least this norm.

        None where none was found. Queries with other ratios may be shorter and still within tol: see
        `least_norm_within_tol`.
        """
        holder = self.ratio_bound if self.ratio_bound is not None else self.certificate
        return float(holder.claims["norm_at_least"]) if "norm_at_least" in holder.claims else None

    def card(self) -> Card:
        blend = " + ".join(f"{number(w)} of {item}" for item, w in list(self.wanted.items())[:6])
        radius = upper_bound(self.output_distance, 6 if self.output_distance > 1e-6 else 2)
        facts = [
            ("status", f"{self.status}: {STATUS_TEXT[self.status]}"),
            *((("scale", number(self.scale, 6)),) if self.status == "exact" else ()),  # else it is the norm
            ("norm of query", number(float(self.query.norm()), 6)),
            ("distance of weights", f"≤ {upper_bound(self.distance, 6)} in total variation (tol {number(self.tol)})"),
            ("distance of output", f"≤ {radius}"),
        ]
        if self.least_norm is not None:
            facts.append(("norm with these ratios", f"≥ {lower_bound(self.least_norm, 6)}, certified"))
        if self.least_norm_within_tol is not None:
            facts.append(("norm within tol", f"≥ {lower_bound(self.least_norm_within_tol, 6)}, certified"))
        if self.distance_bound is not None:
            norm = float(self.distance_bound.claims["norm_at_least"])
            which = "" if np.isinf(norm) else f" below a norm of {lower_power_of_ten(norm)}"
            least = lower_bound(float(self.distance_bound.data["tol"]), 6)
            facts.append(("distance of any query", f"≥ {least} in total variation, certified{which}"))
        facts.append(("query", vector(self.query.tolist())))
        note = f"What is proved: {with_full_stop(self._statement(self.obstacle))}" if self.obstacle else ""
        title = f"Copy {next(iter(self.wanted))}" if len(self.wanted) == 1 else f"Read {blend}"
        return Card(title, tuple(facts), note=note)

    def to_json(self) -> dict[str, Any]:
        told = {"distance_bound": self.distance_bound, "obstacle": self.obstacle}
        return super().to_json() | {
            "possible": self.possible,
            "says": self._statement(self.certificate),
            "least_norm": plain(self.least_norm),
            "least_norm_within_tol": plain(self.least_norm_within_tol),
            "distance_at_least": plain(self.distance_at_least),
            "distance_at_least_below_norm": plain(self.distance_at_least_below_norm),
            **{name: None if each is None else self._statement(each) for name, each in told.items()},
            "measures": {
                "distance": "total variation of the weights", "output_distance": "Euclidean distance of the output"
            },
        }  # fmt: skip

    def _statement(self, certificate: Certificate) -> str:
        """The statement of a certificate, with the labels of the wanted items."""
        wanted = np.atleast_1d(certificate.data.get("items", certificate.data.get("item", ())))
        return certificate.worded(dict(zip((int(i) for i in wanted), self.wanted, strict=False)))


def copy(
    memory: Memory | ArrayLike, item: Item, tol: float = 1e-3, form: Form = "smallest", noise: ArrayLike | None = None
) -> Design:
    """Find the query of least norm that reads one item alone.

    Args:
        memory: The memory, or keys as rows.
        item: Label or index of the item.
        tol: Largest total-variation distance of the weights from 1 on the item and 0 elsewhere.
        form: As for `blend`.
        noise: As for `blend`.

    Returns:
        A `Design`. Where no query within tol was found, its status is "out of reach" (proved) or "best found".

    Raises:
        QkvError: If the item is unknown or an argument is out of range.

    Example:
        >>> import qkv
        >>> design = qkv.design.copy(qkv.Memory.orthonormal(n=10, d=16), item=3, tol=1e-3)
        >>> design.status, round(design.scale, 4)
        ('exact', 9.104)
    """
    memory = memory_of(memory)
    return blend(memory, {memory.labels[memory.index(item)]: 1.0}, tol, form, noise)


def blend(
    memory: Memory | ArrayLike,
    weights: Weights,
    tol: float = 1e-3,
    form: Form = "smallest",
    noise: ArrayLike | None = None,
) -> Design:
    """Find the query of least norm that reads a weighted average of items in the wanted ratios, with a leak within tol.

    Args:
        memory: The memory, or keys as rows.
        weights: Wanted weight by label or index; the weights sum to 1.
        tol: Largest total-variation distance ½Σ|α_i − w_i| of the weights from the wanted ones; with exact ratios
            that is the leak, the weight on all other items.
        form: "smallest" for the query of least norm, or "textbook" for t·Σk_i over the wanted items with the smallest
            t, which exists for orthogonal keys of one norm.
        noise: A covariance for each key, (n, d, d), one for all, (d, d), or variances, (n,). The query then minimises
            the variance of the wanted scores instead of its norm.

    Returns:
        A `Design` with the query and its certificate. Where no query with the exact ratios was found, it is the nearest
        in total variation that was found, and `obstacle` and `distance_bound` hold what is proved.

    Raises:
        QkvError: If an item is unknown or an argument is out of range.

    Example:
        >>> import qkv
        >>> memory = qkv.Memory.orthonormal(n=10, d=16)
        >>> design = qkv.design.blend(memory, {0: 0.5, 1: 0.5}, tol=1e-3)
        >>> bool(design.certificate.verify()), design.distance <= 1e-3
        (True, True)
    """
    memory = memory_of(memory)
    spec = BlendSpec.of(memory, weights, tol)
    if not isinstance(form, str) or form not in FORMS:
        raise QkvError(f"a query of form {form!r:.60}", "there is no such form", f"Use one of {', '.join(FORMS)}")
    norm = common_norm(memory.keys.numpy())
    metric = None if noise is None else _score_variance(noise, spec, memory)
    if form == "textbook" and (norm is None or metric is not None):
        why = "noise was given" if metric is not None else "these keys are not orthogonal vectors of one length"
        raise QkvError("a textbook query t·Σk_i", why, "Use form='smallest', which works for any keys")
    if norm is not None and metric is None:
        attempts, evidence = _closed_form_attempts(memory, spec, norm, form), None
    else:
        attempts, evidence = _program_attempts(memory, spec, metric)
    if attempts and attempts[-1].distance <= spec.tol:
        return attempts[-1]
    return _nearest_design(memory, spec, attempts, evidence)


def _closed_form_attempts(memory: Memory, spec: BlendSpec, norm: float, form: str) -> list[Design]:
    """Designs with exact ratios for orthogonal keys, aimed further below tol until one is certified within it."""
    attempts: list[Design] = []
    for margin in SAFETY_MARGINS:
        aim = dataclasses.replace(spec, tol=spec.tol * (1 - margin))
        query = _closed_form(memory.keys.numpy(), norm, aim, textbook=form == "textbook")
        attempts.append(_design("exact", memory, spec, query, bound_norm=form == "smallest"))
        if attempts[-1].distance <= spec.tol:
            break
    return attempts


def _program_attempts(
    memory: Memory, spec: BlendSpec, metric: FloatArray | None
) -> tuple[list[Design], conic.Solution]:
    """Designs with exact ratios by the conic program, aimed further below tol until one is certified within it.

    The second result is the last solution of the program: where there is no query, evidence of that.
    """
    keys = memory.keys.numpy()
    # The program is expensive to repeat: it starts with a margin that covers the rounding of the certificate.
    margins = SAFETY_MARGINS[2:] if keys.size > FLOAT64_FIRST_SIZE else SAFETY_MARGINS[1:]
    attempts: list[Design] = []
    for margin in margins:
        query, solution = _solve_program(keys, dataclasses.replace(spec, tol=spec.tol * (1 - margin)), metric)
        if query is None:
            break
        attempts.append(_design("exact", memory, spec, query, bound_norm=metric is None))
        if attempts[-1].distance <= spec.tol:
            break
    return attempts, solution


def _nearest_design(memory: Memory, spec: BlendSpec, attempts: list[Design], evidence: conic.Solution | None) -> Design:
    """The nearest weights that were found, with what is proved about the wanted ones."""
    keys, items = memory.keys.numpy(), list(spec.items)
    found = _design("best found", memory, spec, nearest_query(keys, items, spec.wanted, spec.tol), bound_norm=False)
    # Where tol is too small for float64, attempts with the exact ratios exist, and may come closer.
    best = min([*attempts, found], key=lambda d: d.distance)
    obstacle = None
    if evidence is not None and evidence.status != "solved":
        inside = inside_certificate(keys, items[0]) if len(items) == 1 else None
        obstacle = inside or no_query_certificate(keys, spec, evidence)
    best = dataclasses.replace(best, obstacle=obstacle)
    if best.distance <= spec.tol:
        return dataclasses.replace(best, status="within")
    bound = distance_bound(keys, spec)
    if bound is None or float(bound.data["tol"]) < spec.tol:
        bound = exclusion_within_tol(keys, spec) or bound
    # Another key scores as high as one that no query selects, so its weight is at most 1/2.
    unselectable = obstacle is not None and obstacle.kind == "inside" and "exact" in obstacle.claims and spec.tol < 0.5
    excluded = bound is not None and excludes_all(bound) and float(bound.data["tol"]) >= spec.tol
    status: Status = "out of reach" if unselectable or excluded else "best found"
    return dataclasses.replace(best, status=status, distance_bound=bound)


def memory_of(given: Memory | ArrayLike) -> Memory:
    """`given` as a memory; keys so large or small that squares leave the range of float64 are refused."""
    memory = given if isinstance(given, Memory) else Memory(given)
    size = float(memory.keys.abs().max())
    if size != 0 and not 1 / MAX_KEY_ENTRY < size < MAX_KEY_ENTRY:
        problem = f"the largest entry of the keys is {size:.3g}"
        raise QkvError("designing a query", problem, "Scale the keys to entries near 1; the query scales the other way")
    return memory


def _solve_program(
    keys: FloatArray, aim: BlendSpec, metric: FloatArray | None
) -> tuple[FloatArray | None, conic.Solution]:
    """The query of the conic program, or None; for one item, a query that selects its key is always feasible."""
    items = list(aim.items)
    solution = conic.smallest_query(keys, items, aim.wanted, aim.tol, metric)
    if solution.status == "solved":
        return solution.x, solution
    feasible = selecting_query(keys, items[0]) if len(items) == 1 else None
    if feasible is None:
        return None, solution
    scores = keys @ feasible
    gap = float(scores[items[0]] - np.delete(scores, items[0]).max())
    feasible = feasible * np.log((len(keys) - 1) * (1 - aim.tol) / aim.tol) / gap
    shorter = conic.smallest_query(keys, items, aim.wanted, aim.tol, metric, start=feasible)
    return (shorter.x if shorter.status == "solved" else feasible), dataclasses.replace(solution, status="solved")


def _closed_form(keys: FloatArray, norm: float, spec: BlendSpec, textbook: bool) -> FloatArray:
    """The query for orthogonal keys of one norm β, where score i is β² times the i-th coefficient.

    With t + log w_i on the wanted items and 0 on the n-m others, the leak is (n-m)/(n-m+e^t), so the smallest
    scale is t = log((n-m)(1-ε)/ε). Adding a constant to every score changes no weight; subtracting the mean
    minimises the norm of the coefficients, and so of the query.
    """
    n, m = len(keys), len(spec.items)
    items, logs = list(spec.items), np.log(spec.wanted)
    scores = np.zeros(n)
    scores[items] = logs - logs.mean()
    free = n - m + float(np.exp(scores[items]).sum())
    if n - m <= spec.tol * free:  # the ratios alone keep the leak within tol
        return scores @ keys / norm**2
    scores[items] = np.log((n - m) * (1 - spec.tol) / spec.tol) + logs
    return (scores if textbook else scores - scores.mean()) @ keys / norm**2


def _design(status: Status, memory: Memory, spec: BlendSpec, query: FloatArray, bound_norm: bool) -> Design:
    """The certified design of a query; with `bound_norm`, certificates bound the norm of any such query from below."""
    keys = memory.keys.numpy()
    items = list(spec.items)
    data: dict[str, Any] = {
        "keys": keys, "values": memory.values.numpy(), "query": query,
        "items": items, "wanted": spec.wanted,
    }  # fmt: skip
    multipliers = _multipliers(keys, items, query) if bound_norm else None
    if multipliers is not None:
        data |= {"multipliers": multipliers, "tol": spec.tol}
    certificate = Certificate.issue("weights", data)
    norm = float(np.linalg.norm(query))
    if float(certificate.claims.get("norm_at_least", 0.0)) > norm:
        # The ratios of the query are rounded, so it can be a little shorter than any with the exact ones. A bound that
        # is not above it is true too, and does not seem to contradict it.
        certificate = dataclasses.replace(certificate, claims={**certificate.claims, "norm_at_least": norm})
    ratio_bound = (
        _ratio_bound(keys, spec, query, float(certificate.claims.get("norm_at_least", 0.0))) if bound_norm else None
    )
    if float(certificate.claims.get("norm_at_least", 1.0)) <= 0:  # tol is so loose that a zero query meets it
        certificate = dataclasses.replace(
            certificate, claims={k: v for k, v in certificate.claims.items() if k != "norm_at_least"}
        )
    scores = keys @ query
    rest = np.delete(scores, items)
    if status == "exact" and not _has_ratios(scores[items], spec.wanted):
        status = "within"
    gap = float(scores[items].min() - rest.max()) if len(rest) and status == "exact" else 0.0
    return Design(
        status=status,
        wanted={memory.labels[i]: w for i, w in zip(items, spec.weights, strict=True)},
        tol=spec.tol,
        query=torch.from_numpy(query),
        scale=gap if gap > 0 else float(np.linalg.norm(query)),
        distance=float(certificate.claims["distance"]),
        output_distance=float(certificate.claims["output"]),
        certificate=certificate,
        ratio_bound=ratio_bound,
    )


def _has_ratios(scores: FloatArray, wanted: FloatArray) -> bool:
    """Whether scores of the wanted items give the wanted ratios, to rounding."""
    logs = np.log(wanted)
    off = (scores - scores[0]) - (logs - logs[0])
    return bool(np.abs(off).max() <= MAX_RATIO_ERROR * (1 + np.abs(logs).max()))


def _ratio_bound(keys: FloatArray, spec: BlendSpec, query: FloatArray, known: float) -> Certificate | None:
    """The norm bound of the ratios alone, where it is above the `known` one of ratios and leak together."""
    items = list(spec.items)
    if len(items) == 1:
        return None
    ratios = keys[items] - keys[items[0]]
    data = {"keys": keys, "items": items, "wanted": spec.wanted, "tol": spec.tol}
    found = Certificate.issue("no query", data | {"multipliers": np.linalg.lstsq(ratios.T, query, rcond=None)[0]})
    least = min(float(found.claims["norm_at_least"]), float(np.linalg.norm(query)))
    return dataclasses.replace(found, claims={"norm_at_least": least}) if least > max(0.0, known) else None


def _multipliers(keys: FloatArray, items: list[int], query: FloatArray) -> FloatArray | None:
    """Lagrange multipliers of the ratios relative to that of the leak, for the proof that no query is shorter.

    At the optimum q = λ(k_a - Σp_i k_i) + Σν_i(k_i - k_a) with p the weights among the other items; the proof needs
    ν/λ. None where λ is not positive: the leak inequality then bounds nothing.
    """
    ratios = keys[items] - keys[items[0]]
    rest = np.delete(np.arange(len(keys)), items)
    if len(rest) == 0:
        return None
    scores = keys[rest] @ query
    p = np.exp(scores - scores.max())
    leak_gradient = keys[items[0]] - (p / p.sum()) @ keys[rest]
    found = np.linalg.lstsq(np.vstack([leak_gradient, ratios]).T, query, rcond=None)[0]
    positive = found[0] * np.linalg.norm(leak_gradient) > 1e-12 * np.linalg.norm(query)
    return found[1:] / found[0] if positive else None


def _score_variance(noise: ArrayLike, spec: BlendSpec, memory: Memory) -> FloatArray:
    """The metric Σ w_i Σ_i over the wanted items, so that qᵀMq is the variance of their scores, plus a small ridge."""
    wanted_covariances = covariances(noise, memory.n, memory.d)[list(spec.items)]
    mean = torch.einsum("i,ijk->jk", torch.tensor(spec.weights, dtype=torch.float64), wanted_covariances).numpy()
    ridge = 1e-6 * float(np.trace(mean)) / memory.d + 1e-12
    return mean + ridge * np.eye(memory.d)
