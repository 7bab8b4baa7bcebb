"""What rounding the keys to b bits does to every head: predicted, measured, and proved.

Rounding moves an entry of a key by an error of variance step²/12, and does not move the least and the largest entry of
a channel (or token) at all. To first order, a change of score j moves the output by weight_j (value_j - output), which
gives the predicted output error. Where the scores' noise passes about 1, first order says too much, and a sample of
those queries is predicted by the exact moments of `qkv.noise`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from qkv.core.display import Card, Displayable, number
from qkv.core.validation import whole
from qkv.errors import QkvError
from qkv.heads.adapter import AttentionCall, per_head
from qkv.heads.divergence import window_kls
from qkv.heads.key_grid import Per, checked_bits, checked_per, inexact, key_grid
from qkv.heads.patterns import SKIPPED, checked_seed
from qkv.noise.moments.single_head import head_moments

if TYPE_CHECKING:
    from qkv.heads.attention_model import AttentionModel, Progress

Method = Literal["first order", "exact moments", "both"]

WIDE = 1.0
"""Standard deviation of a query's scores from which first order is not used any more."""
EXACT_QUERIES = 4
"""Queries of each head and window that are predicted by exact moments, where the noise is wide."""
NEAREST, NODES = 24, 9
"""Competitors of the top item, and nodes of its own error, for the chance that it stays on top."""
BEYOND = 9.0
"""Distance in standard deviations from which an item has no chance that float64 could tell from 0."""
BLOCK = 64
"""Queries of a window that are looked at together."""
SLACK = 1e-12
"""Rounding of float64 in scores and grids, relative to the largest possible score: far more than it can be."""


@dataclass(frozen=True)
class HeadRounding:
    """One head with its keys rounded to one number of bits.

    Attributes:
        layer: Its layer, from 0.
        head: Its number in the layer, from 0.
        bits: Bits of each entry of a key.
        predicted: Root mean square of the output's error over that of the output, as predicted.
        measured: The same, measured with rounded keys.
        survives_predicted: Chance that the top item stays on top, as predicted.
        survives: Share of queries whose top item stayed on top.
        certified: Share of queries for which no error of half a step in every entry can change the top item.
        noise: Root mean square of the standard deviations of scores.
        wide: Share of queries whose scores vary by more than 1, where first order does not hold.
        exact_queries: How many of these were predicted by exact moments.
        method: What the prediction was made by.
    """

    layer: int
    head: int
    bits: int
    predicted: float
    measured: float
    survives_predicted: float
    survives: float
    certified: float
    noise: float
    wide: float
    exact_queries: int
    method: Method


@dataclass(frozen=True)
class Rounding(Displayable):
    """The heads of a model with their keys rounded.

    Attributes:
        model: The model's name.
        per: Whether each channel or each token has a grid of its own.
        bits: The numbers of bits.
        tokens: Tokens of the text that were read.
        windows: In how many windows; each has grids of its own.
        kl: For each number of bits, the mean KL divergence of the next-token probabilities from those of the model
            itself when all heads' keys are rounded, in nats per token; None for a model that predicts no tokens.
        rows: One for each head and number of bits.
    """

    model: str
    per: Per
    bits: tuple[int, ...]
    tokens: int
    windows: int
    kl: tuple[float, ...] | None
    rows: tuple[HeadRounding, ...]

    def __iter__(self) -> Iterator[HeadRounding]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, layer: int, head: int) -> tuple[HeadRounding, ...]:
        """The rows of one head, one for each number of bits.

        Raises:
            QkvError: There is no such head.
        """
        request = f"head {layer!s:.20}.{head!s:.20} of {self.model} with rounded keys"
        at = whole(request, "layer", layer, 0), whole(request, "head", head, 0)
        found = tuple(row for row in self.rows if (row.layer, row.head) == at)
        if not found:
            problem = f"layers are 0 to {self.rows[-1].layer}, heads 0 to {self.rows[-1].head}"
            raise QkvError(request, problem, "Choose a head that is there")
        return found

    def records(self) -> list[dict[str, Any]]:
        """The rows as dicts: `pandas.DataFrame(rounding.records())`."""
        return [asdict(row) for row in self.rows]

    def to_csv(self) -> str:
        """The rows as comma-separated values with a header."""
        out = io.StringIO()
        writer = csv.DictWriter(out, [f.name for f in fields(HeadRounding)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records())
        return out.getvalue()

    def card(self) -> Card:
        facts = [
            ("read", f"{self.tokens} tokens in {self.windows} window{'s' if self.windows > 1 else ''}"),
            ("rounded", f"every key, with a grid for each {self.per} of a window"),
        ]
        if self.kl is not None:
            shown = ", ".join(f"{number(kl, 3)} at {bits} bits" for bits, kl in zip(self.bits, self.kl, strict=True))
            facts.append(("KL of the whole model", f"{shown} (nats per token)"))
        columns = ("head", "bits", "error", "error predicted", "by", "top stays", "stay predicted", "proved")
        rows = tuple(
            (
                f"{r.layer}.{r.head}", str(r.bits), f"{r.measured:.1%}", f"{r.predicted:.1%}", r.method,
                share_text(r.survives), share_text(r.survives_predicted), percent_rounded_down(r.certified),
            )
            for r in self.rows
        )  # fmt: skip
        return Card(f"Heads of {self.model} with rounded keys", tuple(facts), columns, rows, NOTE)


NOTE = (
    "error: root mean square of the output's error, as a share of the output. top (stays): queries whose top item is "
    "the same with rounded keys. proved: queries whose margin is larger than what errors of half a step can take away. "
    f"Predicted to first order; where scores vary by more than {WIDE:g}, by exact moments of a sample of queries."
)


def percent_rounded_down(share: float) -> str:
    """A share that was proved, in whole percent: never more than was proved; 0.29 is 29%, though 100 · 0.29 is less."""
    return f"{math.floor(100 * share + 1e-9)}%"


def share_text(share: float) -> str:
    """A share in percent, all or nothing only where it is: 0.998 is 99.8%, and 1 is 100%."""
    if 0 < share < 0.005 or 0.995 <= share < 1:
        return "< 0.1%" if share < 0.001 else "> 99.9%" if share > 0.999 else f"{share:.1%}"
    return f"{share:.0%}"


def rounding_columns(rounding: Rounding, layer: int, head: int) -> dict[str, Any]:
    """The figures of one head as columns of one row: `measured_4`, `survives_4`, … for 4 bits."""
    skipped = ("layer", "head", "bits")
    return {
        f"{name}_{row.bits}": value
        for row in rounding.of(layer, head)
        for name, value in asdict(row).items()
        if name not in skipped
    }


def with_rounding(card: Card, rounding: Rounding) -> Card:
    """The card of a table of heads, with columns for each number of bits."""
    facts = rounding.card().facts[1:]
    names = ("error", "error predicted", "top", "proved")
    columns = tuple(f"{bits} bits: {name}" for bits in rounding.bits for name in names)
    by_head = [rounding.rows[i : i + len(rounding.bits)] for i in range(0, len(rounding), len(rounding.bits))]
    cells = [
        tuple(
            cell
            for r in of_head
            for cell in (
                f"{r.measured:.1%}",
                f"{r.predicted:.1%}",
                share_text(r.survives),
                percent_rounded_down(r.certified),
            )
        )
        for of_head in by_head
    ]
    rows = tuple(row + more for row, more in zip(card.rows, cells, strict=True))
    return Card(card.title, card.facts + facts, card.columns + columns, rows, f"{card.note} {NOTE}")


class RoundingParts:
    """Adds up the effects of rounding layer by layer.

    Args:
        layers: Number of layers.
        heads: Number of heads of a layer.
        bits: Numbers of bits, from 1 to 8.
        per: Whether a channel or a token has a grid of its own.
        exact_queries: Queries of each head and window that are predicted by exact moments, where the noise is wide.
        seed: Of the choice of these queries.
    """

    NAMES = (
        "queries", "output", "predicted", "measured", "survives_predicted", "survives", "certified", "variance",
        "wide", "exact",
    )  # fmt: skip

    def __init__(
        self, layers: int, heads: int, bits: Sequence[int], per: Per, exact_queries: int = EXACT_QUERIES, seed: int = 0
    ) -> None:
        self.bits, self.per, self.exact_queries = tuple(bits), per, exact_queries
        self.sums = {name: torch.zeros(len(self.bits), layers, heads, dtype=torch.float64) for name in self.NAMES}
        self.generator = torch.Generator().manual_seed(seed)
        self.kl = [0.0] * len(self.bits)

    def add(self, call: AttentionCall) -> None:
        """Add one window.

        Args:
            call: The layer's attention, of one text.
        """
        if not self.bits:
            return
        blocks = _Queries.blocks(call, self.per)
        for at, bits in enumerate(self.bits):
            last = 2.0**bits - 1
            rounded = key_grid(blocks[0].every_key, bits, self.per).rounded(blocks[0].every_key)
            parts = [_rounded_block(block, rounded, last) for block in blocks]
            linear, noise = (torch.cat([part.pop(name) for part in parts], -1) for name in ("linear", "noise"))
            predicted, exact = self._predicted(blocks, last, linear, noise > WIDE)
            found = {
                **{name: torch.stack([part[name] for part in parts]).sum(0) for name in parts[0]},
                "queries": torch.ones_like(linear).sum(-1),
                "predicted": predicted,
                "variance": noise.square().sum(-1),
                "wide": (noise > WIDE).double().sum(-1),
                "exact": exact,
            }
            for name, value in found.items():
                self.sums[name][at, call.layer] += value

    def _predicted(
        self, blocks: Sequence[_Queries], last: float, linear: Tensor, wide: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Sum of the predicted squared errors of each head, and how many queries were predicted exactly."""
        total, exact = linear.masked_fill(wide, 0).sum(-1), torch.zeros(len(linear), dtype=torch.float64)
        away = torch.cat([block.away for block in blocks], -1)
        for h in wide.any(-1).nonzero()[:, 0].tolist():
            rows = wide[h].nonzero()[:, 0]
            sizes, count = linear[h, rows], self.exact_queries
            farthest = away[h, rows]
            if not count or not bool(farthest.sum() > 0):  # exact moments were not asked for, or values do not differ
                total[h] += sizes.sum()
                continue
            # The mean of square / chance is unbiased for any chances. Half of them follow the first order, half how far
            # the values are from the output: of queries that are sure of their item the first order knows nothing.
            chances = farthest / farthest.sum()
            chances = (chances + sizes / sizes.sum()) / 2 if bool(sizes.sum() > 0) else chances
            drawn = torch.multinomial(chances, count, replacement=True, generator=self.generator).tolist()
            places = {at: int(rows[at]) for at in sorted(set(drawn))}
            tried = {at: blocks[row // BLOCK].exact_square(h, row % BLOCK, last) for at, row in places.items()}
            found = {at: square for at, square in tried.items() if square is not None}
            least = sizes.minimum(farthest)  # for queries whose integral would take too long
            squares = [found.get(at, float(least[at])) / float(chances[at]) for at in drawn]
            total[h] += sum(squares) / count if found else sizes.sum()
            exact[h] = len(found)
        return total, exact

    def compare(self, model: AttentionModel, ids: Tensor, own: Any) -> None:
        """Add the whole model's KL on one window, for a model that predicts tokens.

        Args:
            model: The model.
            ids: Token ids of the window.
            own: What the model returned for them.
        """
        if model.predicts and self.bits:
            found = window_kls(model, ids, own.logits[0], [_rounded_keys(bits, self.per) for bits in self.bits])
            self.kl = [total + more for total, more in zip(self.kl, found, strict=True)]

    def result(self, model: AttentionModel, windows: Sequence[Tensor]) -> Rounding:
        """All heads, and the whole model's KL.

        Args:
            model: The model.
            windows: Token ids of the windows that were added and compared.
        """
        tokens = sum(map(len, windows))
        kl = tuple(total / tokens for total in self.kl) if model.predicts else None
        return Rounding(model.name, self.per, self.bits, tokens, len(windows), kl, tuple(self.rows()))

    def rows(self) -> list[HeadRounding]:
        """One row for each layer, head and number of bits."""
        sums, rows = self.sums, []
        for layer in range(sums["queries"].shape[1]):
            for head in range(sums["queries"].shape[2]):
                for at, bits in enumerate(self.bits):
                    got = {name: float(value[at, layer, head]) for name, value in sums.items()}
                    count, size = got["queries"], got["output"]
                    wide = got["wide"] / count
                    method: Method = "first order" if not got["exact"] else "exact moments" if wide == 1 else "both"
                    rows.append(
                        HeadRounding(
                            layer,
                            head,
                            bits,
                            predicted=(got["predicted"] / size) ** 0.5 if size else 0.0,
                            measured=(got["measured"] / size) ** 0.5 if size else 0.0,
                            survives_predicted=got["survives_predicted"] / count,
                            survives=got["survives"] / count,
                            certified=got["certified"] / count,
                            noise=(got["variance"] / count) ** 0.5,
                            wide=wide,
                            exact_queries=int(got["exact"]),
                            method=method,
                        )
                    )
        return rows


def _rounded_block(block: _Queries, every_rounded: Tensor, last: float) -> dict[str, Tensor]:
    """Sums over some queries of each head with rounded keys; `linear` and `noise` query by query."""
    scores, plain = block.call.scores_and_plain(every_rounded[:, :, : block.call.key.shape[2]])
    moved = (block.call.softmax(scores)[0] @ block.values - block.output).square().sum(-1)
    return {
        "linear": block.unit_square / last**2,
        "noise": block.unit_noise / last,
        "output": block.output.square().sum((-1, -2)),
        "measured": moved.sum(-1),
        "survives_predicted": block.rivals.chance_of_top(last).sum(-1),
        "survives": block.stays_top(plain[0]).double().sum(-1),
        "certified": block.certified(last).double().sum(-1),
    }


@dataclass(frozen=True, eq=False)
class _Queries:
    """Some queries of one layer in float64, and what all numbers of bits share.

    Keys that none of the queries sees are left out, which is almost half of all pairs where tokens see those before.

    Attributes:
        call: The layer's attention, with these queries only.
        every_key: The keys of the whole window, which have the grids.
        values: Values of each head, (heads, tokens, size).
        visible: Which tokens each query sees, (heads, queries, tokens).
        scores: (heads, queries, tokens); -inf for what is not seen.
        plain: The same without a soft cap, which does not change their order but can make them equal.
        output: (heads, queries, size).
        away: Mean square of the distance of the values that are seen from the output, (heads, queries).
        top: The item with the largest score, (heads, queries).
        unit_variance: Variance of each score for a grid of one step (1 bit); 0 for what is not seen.
        unit_square: First-order square of the output's error for a grid of one step, (heads, queries).
        unit_noise: Root mean square of the scores' standard deviations for a grid of one step, (heads, queries).
        unit_error: Largest error of each score for a grid of one step, broadcast over (heads, queries, tokens).
        slack: What float64 may be off by, (heads, queries).
        rivals: What the chance of the top item to stay on top is computed from.
    """

    call: AttentionCall
    every_key: Tensor
    values: Tensor
    visible: Tensor
    scores: Tensor
    plain: Tensor
    output: Tensor
    away: Tensor
    top: Tensor
    unit_variance: Tensor
    unit_square: Tensor
    unit_noise: Tensor
    unit_error: Tensor
    slack: Tensor
    rivals: _Rivals

    def stays_top(self, scores: Tensor) -> Tensor:
        """Whether an item with the largest score of the model's own keys has the largest of these too.

        Of items that tie, each is on top, before rounding and after it: two keys can round to the same one.
        """
        slack = self.slack[..., None]
        tops = self.plain >= self.plain.amax(-1, keepdim=True) - slack
        return (tops & (scores >= scores.amax(-1, keepdim=True) - slack)).any(-1)

    @classmethod
    def blocks(cls, call: AttentionCall, per: Per) -> list[_Queries]:
        """All queries of a layer but the first few, in blocks."""
        tokens = call.query.shape[-2]
        whole = replace(call, key=call.key[:1].double(), value=call.value[:1].double())
        starts = range(min(SKIPPED, tokens - 1), tokens, BLOCK)
        return [cls.of(whole, slice(start, min(start + BLOCK, tokens)), per) for start in starts]

    @classmethod
    def of(cls, call: AttentionCall, rows: slice, per: Per) -> _Queries:
        """Some queries of a layer.

        Args:
            call: The layer's attention, with keys and values in float64.
            rows: Which queries.
            per: Whether a channel or a token has a grid of its own.
        """
        mask = None if call.mask is None or call.mask.shape[-2] == 1 else call.mask[..., rows, :]
        every = replace(
            call,
            query=call.query[:1, :, rows].double(),
            mask=call.mask if mask is None else mask,
            weights=call.weights[:1, :, rows],
        )
        scores, plain = every.scores_and_plain()
        seen = int(torch.isfinite(scores).any(2).any(1)[0].nonzero().max()) + 1  # keys after it are seen by no query
        mine, plain = replace(every, key=every.key[:, :, :seen], value=every.value[:, :, :seen]), plain[0, ..., :seen]
        scores = scores[..., :seen]
        weights, values = mine.softmax(scores)[0], per_head(mine.value, mine.groups)[0]
        scores, output = scores[0], weights @ values
        visible = torch.isfinite(scores)
        # d output / d score_j = weight_j (value_j - output), sinks included: they have a score and the value 0
        away = values.square().sum(-1)[:, None] - 2 * output @ values.mT + output.square().sum(-1, keepdim=True)
        away = away.clamp(min=0)
        query, step = mine.query[0] * mine.scaling, key_grid(every.key, 1, per).step[0]
        variance = per_head((step.square() / 12 * inexact(every.key[0], per))[None, :, :seen], mine.groups)[0]
        unit = variances = (query.square() @ variance.mT).masked_fill(~visible, 0)
        if mine.softcap is not None:  # the cap has the slope 1 - (score / cap)², which is at most 1
            unit = unit * (1 - (scores.masked_fill(~visible, 0) / mine.softcap).square()).square()
        half = per_head(step.expand(every.key.shape[1:])[None, :, :seen], mine.groups)[0] / 2
        half = half[:, :1] if per == "channel" else half
        largest = per_head(every.key.abs().amax((-1, -2), keepdim=True), mine.groups)[0]
        top, slack = plain.argmax(-1), SLACK * (query.abs().sum(-1) * largest[..., 0])
        return cls(
            mine, every.key, values, visible, scores, plain, output, (away * visible).sum(-1) / visible.sum(-1), top,
            unit, (unit * weights.square() * away).sum(-1), (unit.sum(-1) / visible.sum(-1)).sqrt(),
            query.abs() @ half.mT, slack, _Rivals.of(plain, variances, top, visible, slack),
        )  # fmt: skip

    def certified(self, last: float) -> Tensor:
        """Queries whose top item stays on top, whatever error of up to half a step each entry of the keys has."""
        at = self.top[..., None]
        if self.unit_error.shape[-1] == 1:  # the same for all items
            return self.rivals.margin - 2 * self.unit_error[..., 0] / last > self.slack
        error = (self.unit_error / last).expand(self.plain.shape)
        worst = (self.plain.gather(-1, at) - error.gather(-1, at))[..., 0]
        best_other = (self.plain + error).scatter(-1, at, -torch.inf).amax(-1)
        return worst - best_other > self.slack

    def exact_square(self, head: int, row: int, last: float) -> float | None:
        """E‖error of the output‖² of one query for Gaussian scores, by integration; None if that takes too long."""
        seen = self.visible[head, row]
        means, spread = self.scores[head, row][seen], self.unit_variance[head, row][seen] / last**2
        away = self.values[head][seen] - self.output[head, row]
        if self.call.sinks is not None:  # a sink is one more item, with a score of its own and the value 0
            means = torch.cat([means, self.call.sinks[head : head + 1].double()])
            spread, away = torch.cat([spread, spread.new_zeros(1)]), torch.cat([away, -self.output[head, row][None]])
        try:
            return float(head_moments(means, spread, away).output_square.diagonal().sum())
        except QkvError:  # scores vary so widely that the integral would need millions of nodes
            return None


@dataclass(frozen=True, eq=False)
class _Rivals:
    """The items that may take the top item's place, for a grid of one step; finer grids only scale their distances.

    Attributes:
        margin: How far the top item is ahead of the next, (heads, queries).
        near: How far its score is ahead of those of the nearest few, (heads, queries, few).
        nearest: The least of these distances in standard deviations of the difference, (heads, queries).
        near_spread: Standard deviations of these items' scores.
        own_spread: That of the top item's score, (heads, queries, 1).
        far: Distances of the others in standard deviations of the difference, (heads, queries, tokens); inf for what
            is not seen.
        far_nearest: The least of them, (heads, queries).
    """

    margin: Tensor
    near: Tensor
    nearest: Tensor
    near_spread: Tensor
    own_spread: Tensor
    far: Tensor
    far_nearest: Tensor

    @classmethod
    def of(cls, scores: Tensor, variances: Tensor, top: Tensor, visible: Tensor, slack: Tensor) -> _Rivals:
        """The rivals of each query's top item; variances are those of scores for a grid of one step.

        Items that tie with the top one, up to `slack`, leave no margin, but take nobody's place: see `stays_top`.
        """
        at = top[..., None]
        ahead = (scores.gather(-1, at) - scores).masked_fill(~visible, torch.inf).scatter(-1, at, torch.inf)
        margin, ahead = ahead.amin(-1), ahead.masked_fill(ahead <= slack[..., None], torch.inf)
        own = variances.gather(-1, at)
        distance = ahead / (variances + own).sqrt().clamp(min=1e-300)
        nearest = distance.topk(min(NEAREST, distance.shape[-1]), -1, largest=False, sorted=False).indices
        far = distance.float().scatter(-1, nearest, torch.inf)
        spread = variances.gather(-1, nearest).sqrt().clamp(min=1e-150)
        near = ahead.gather(-1, nearest)
        return cls(margin, near, distance.amin(-1), spread, own.sqrt(), far, far.amin(-1))

    def chance_of_top(self, last: float) -> Tensor:
        """Chance that the top item's score stays the largest, for independent Gaussian scores.

        Given the top item's own error, the others fall behind independently: a product of chances, averaged over that
        error by Gauss-Hermite quadrature. Items beyond the nearest few count pair by pair.
        """
        chance, close = torch.ones_like(self.margin), last * self.nearest < BEYOND
        near, spread, own = last * self.near[close], -math.sqrt(2) * self.near_spread[close], self.own_spread[close]
        total = torch.zeros(len(near), dtype=torch.float64)
        for node, weight in zip(*np.polynomial.hermite_e.hermegauss(NODES), strict=True):
            total += weight * (0.5 * torch.erfc((near + own * node) / spread)).prod(-1)
        chance[close] = total / math.sqrt(2 * math.pi)
        far = last * self.far_nearest < BEYOND
        # no item is ahead of the top one, so that distances are not negative and log1p loses no digits
        less = torch.log1p(-0.5 * torch.erfc(last / math.sqrt(2) * self.far[far])).sum(-1)
        chance[far] *= less.double().exp()
        return chance.clamp(max=1)


def _rounded_keys(bits: int, per: Per) -> Any:
    """A change of keys for `AttentionModel.run`: every key rounded to so many bits."""
    return lambda layer, key, value: (key_grid(key, bits, per).rounded(key), value)


def rounding(
    model: AttentionModel,
    text: str | Sequence[str],
    bits: int | Sequence[int] = (4, 3),
    *,
    per: Per = "channel",
    window: int | None = None,
    exact_queries: int = EXACT_QUERIES,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> Rounding:
    """Round the keys of every head, and compare what was predicted with what happens.

    Args:
        model: From `qkv.heads.open`.
        text: One text or several; longer ones are cut into windows, and each has grids of its own.
        bits: One number of bits or several, from 1 to 8.
        per: Whether each "channel" or each "token" has a grid of its own.
        window: Tokens of a window; 512 or the model's context if None.
        exact_queries: Queries of each head and window that are predicted by exact moments where scores vary by more
            than 1; 0 predicts all to first order.
        seed: Of the choice of these queries.
        progress: Called with steps done and in all.

    Returns:
        One row for each head and number of bits, and the whole model's KL.

    Raises:
        QkvError: The text has less than two tokens, the window does not fit, or bits are not from 1 to 8.
    """
    request = "rounding the keys of heads"
    chosen, per = checked_bits(request, bits), checked_per(request, per)
    exact_queries, seed = whole(request, "exact_queries", exact_queries, 0), checked_seed(request, seed)
    windows = model.windows(text, window)
    steps = len(windows) + 1
    parts = RoundingParts(model.shape.layers, model.shape.heads, chosen, per, exact_queries, seed)
    model.stream(
        windows,
        lambda _, call: parts.add(call),
        lambda done, _: progress(done, steps),
        after=lambda number, out: parts.compare(model, windows[number], out),
    )
    found = parts.result(model, windows)
    progress(steps, steps)
    return found
