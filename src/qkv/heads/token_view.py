"""One head on one text, seen from one token: what it looks at, what rounding does to that, and a hardened query."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from qkv.core.display import Card, Displayable, lower_bound, number, times, upper_bound
from qkv.core.memory import Memory
from qkv.core.rounding_bounds import gamma, norms, top_margin_lower_bounds
from qkv.core.validation import whole
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError, kind_of
from qkv.heads.attention_model import checked_model
from qkv.heads.key_grid import inexact
from qkv.heads.patterns import CLEAR, ON_REPEATED
from qkv.heads.rounding import SLACK, HeadRounding, percent_rounded_down, share_text
from qkv.heads.text_survey import Survey, survey
from qkv.noise.head_mix import HeadMix
from qkv.noise.key_noise import MAX_BITS, Gaussian, Quantised, noise_on_keys
from qkv.noise.moments.mixture import reading_moments
from qkv.noise.robust.search import RobustProblem, refine

if TYPE_CHECKING:
    from qkv.heads.adapter import AttentionCall
    from qkv.heads.attention_model import AttentionModel

LINKS = 40
"""Strongest pairs of tokens that a view lists."""
SHOWN = 12
"""Rows of a table in the terminal."""
BITS = (8, 6, 5, 4, 3, 2)
"""Bits for which the spread is computed, beside the one that was asked for."""
SMALLEST_SPREAD = 1e-6
"""Of a weight; smaller ones depend on how the processor rounds."""
TOL = 0.01
"""How far the hardened query's weights may be from the head's own, in total variation."""


@dataclass(frozen=True)
class Link:
    """A token that looks at another.

    Attributes:
        token: The place of the token that looks.
        seen: The place of the token that it looks at.
        weight: With this weight.
        score: And this score.
    """

    token: int
    seen: int
    weight: float
    score: float


@dataclass(frozen=True)
class LookedUp:
    """A token that the chosen token sees.

    Attributes:
        position: Its place in the text.
        token: Its text.
        score: Its score.
        weight: Its weight.
        spread: Standard deviation of its weight under rounding, predicted; None where that is not known.
        rounded: Its weight with keys that are really rounded; None where that is not known.
        hardened: Its weight with the hardened query; None without one.
    """

    position: int
    token: str
    score: float
    weight: float
    spread: float | None
    rounded: float | None
    hardened: float | None


@dataclass(frozen=True)
class Spread:
    """What rounding the keys that a token sees, channel by channel, does to what it reads.

    Attributes:
        bits: Bits of each entry of a key.
        predicted: Root of E‖output − its own‖² over the length of the output, for independent errors of variance Δ²/12,
            and none in the least and the largest entry of a channel, which are levels of the grid.
        measured: ‖output − its own‖ over the length of the output, with keys rounded once to the nearest level.
        same_top: Whether the token with the largest weight is the same with rounded keys.
    """

    bits: int
    predicted: float
    measured: float
    same_top: bool


@dataclass(frozen=True)
class HardenedQuery:
    """A query with nearly the same weights whose output varies less under rounding, beside the model's own.

    Attributes:
        bits: Bits of each entry of a key.
        squared_error: E‖output − the head's own output‖² with the hardened query.
        own_squared_error: The same with the model's query.
        distance: Total-variation distance of its weights from the head's, without rounding; at most 0.01.
        length: Its length over that of the model's query.
        cosine: Its cosine with the model's query.
        query: The query, in the units in which scores are plain inner products.
    """

    bits: int
    squared_error: float
    own_squared_error: float
    distance: float
    length: float
    cosine: float
    query: tuple[float, ...]

    @property
    def gain(self) -> float:
        """How many times larger the squared error of the model's own query is."""
        return self.own_squared_error / self.squared_error if self.squared_error > 0 else 1.0


@dataclass(frozen=True, eq=False)
class HeadView(Displayable):
    """One head of a model on one text, seen from one token.

    Attributes:
        model: The model's name.
        head: The head, such as "18.6".
        kind: What it looks up.
        score: The mean weight that gave the kind.
        judged_on: What the kind and its score were judged on: "the text", or "repeated random tokens".
        tokens: The text's tokens.
        token: The place of the chosen token.
        margin: How much higher the largest score of the chosen token is than the second; None if it sees one token.
        radius: How far every key may move, as a share of the median length of a key that it sees, before another
            token can be on top: a lower bound that holds with rounding errors; None if it sees one token.
        looked_up: The tokens that it sees, the largest weight first.
        links: The strongest pairs in the whole text.
        spread: What rounding does to what the chosen token reads; empty where the head is no plain lookup, or its
            scores are too large to predict it.
        bits: The bits that `looked_up` and `hardened` are for.
        rounding: The whole head, over all tokens, with its keys rounded to each number of bits.
        hardened: The hardened query; None where it was not asked for, or the head is no plain lookup.
        note: Why spread and hardened query are missing; empty if nothing is.
        weights: The weights of all tokens, (tokens, tokens).
    """

    model: str
    head: str
    kind: str
    score: float
    judged_on: str
    tokens: tuple[str, ...]
    token: int
    margin: float | None
    radius: float | None
    looked_up: tuple[LookedUp, ...]
    links: tuple[Link, ...]
    spread: tuple[Spread, ...]
    bits: int
    rounding: tuple[HeadRounding, ...]
    hardened: HardenedQuery | None
    note: str
    weights: Tensor = field(repr=False)

    def named(self, position: int) -> str:
        """A token with its place, as in "5 was"."""
        return f"{position} {shown_token(self.tokens[position])}"

    def card(self) -> Card:
        facts = [("what it looks up", kind_text(self.kind, self.score, self.judged_on))]
        pairs = ", ".join(
            f"{self.named(k.token)} → {self.named(k.seen)} ({shown_weight(k.weight)})" for k in self.links[:6]
        )
        if pairs:
            facts.append(("strongest", pairs))
        if self.margin is not None and self.radius is not None:
            facts.append(("how firmly", firmness_text(self.margin, self.radius)))
        for one in (s for s in self.spread if s.bits in (8, 4, 3, 2, self.bits)):
            kept = "the same token" if one.same_top else "another token"
            said = f"output off by {one.measured:.2%} (predicted {one.predicted:.2%}), {kept} on top"
            facts.append((f"keys of {one.bits} bit{'s' * (one.bits > 1)}", said))
        for row in self.rounding:
            if row.bits in (4, 3, 2, self.bits):
                facts.append((f"whole head, {row.bits} bit{'s' * (row.bits > 1)}", rounding_text(row)))
        if self.hardened is not None:
            facts.append(("hardened query", hardened_text(self.hardened)))
        columns = ["looks at", "score", "weight"]
        columns += [f"at {self.bits} bit{'s' * (self.bits > 1)}", "± predicted"] if self.spread else []
        columns += ["hardened"] if self.hardened is not None else []
        rows = tuple(self._row(one) for one in self.looked_up[:SHOWN])
        left = len(self.looked_up) - len(rows)
        together = shown_weight(sum(one.weight for one in self.looked_up[SHOWN:]))
        many = f"{left} more tokens have {together} together. " if left > 1 else f"1 more token has {together}. "
        rest = many if left else ""
        return Card(
            f"Head {self.head} of {self.model}, seen from {self.named(self.token)}", tuple(facts), tuple(columns), rows,
            (rest + self.note).strip(),
        )  # fmt: skip

    def _row(self, one: LookedUp) -> tuple[str, ...]:
        cells = [f"{one.position} {shown_token(one.token)}", f"{one.score:.2f}", shown_weight(one.weight)]
        if self.spread:
            cells += ["–" if one.rounded is None else shown_weight(one.rounded)]
            cells += ["–" if one.spread is None else shown_spread(one.spread)]
        if self.hardened is not None:
            cells.append("–" if one.hardened is None else shown_weight(one.hardened))
        return tuple(cells)


def shown_token(token: str) -> str:
    """A token as a reader sees it: without spaces around it, and line breaks and the like as in Python."""
    bare = token.strip()
    return bare if bare and bare.isprintable() else repr(token)


def shown_weight(weight: float) -> str:
    """A weight with three decimals, never 0 or 1 by rounding."""
    if 0 < weight < 0.0005:
        return "< 0.001"
    return f"1 − {1 - weight:.1e}" if 0.9995 < weight < 1 else f"{weight:.3f}"


def shown_spread(spread: float) -> str:
    """A standard deviation of a weight; below what the model's single precision resolves, digits mean nothing."""
    return f"< {SMALLEST_SPREAD:.0e}".replace("e-0", "e-") if 0 < spread < SMALLEST_SPREAD else number(spread, 2)


def kind_text(kind: str, score: float, judged_on: str) -> str:
    """What a head looks up, with the number that says so, and on what it was found."""
    if kind == "mixed":  # copies are always judged on repeated tokens; rounded down, since 0.399 is below the limit
        where = f" on {judged_on}" * (judged_on == ON_REPEATED)
        return f"mixed: no pattern takes {CLEAR} of its weight{where}, the largest takes {lower_bound(score, 2)}"
    averages = f"it averages {score:.2f} of the tokens that it sees"
    return f"{kind}: {averages if kind == 'broad' else f'{score:.2f} of its weight'} on {judged_on}"


def firmness_text(margin: float, radius: float) -> str:
    """Margin and radius of one query, in a sentence; the radius is rounded down."""
    if margin <= 0 and radius <= 0:
        return "a tie: no token is alone on top"
    if radius <= 0:
        return f"margin {number(margin)}: too close to certify which token is on top"
    moved = f"while every key moves by less than {lower_bound(radius)} of a key's median length"
    told = f"margin {number(margin)}" if margin > 0 else "a margin too small to tell after the soft cap"
    return f"{told}: the same token stays on top {moved}"


def rounding_text(row: HeadRounding) -> str:
    """What rounding does to a head over all tokens, in a sentence."""
    stays, expected = share_text(row.survives), share_text(row.survives_predicted)
    return (
        f"output off by {row.measured:.2%} (predicted {row.predicted:.2%}); the top item stays for {stays} "
        f"of queries (predicted {expected}, proved for {percent_rounded_down(row.certified)})"
    )


def hardened_text(found: HardenedQuery) -> str:
    """How the hardened query compares with the model's own, in a sentence."""
    if found.squared_error >= found.own_squared_error:
        return f"none was found that has less squared error than the model's own at {found.bits} bits"
    return (
        f"squared error at {found.bits} bits {times(found.gain)} less than with the model's own "
        f"({number(found.squared_error)} against {number(found.own_squared_error)}); weights within "
        f"{upper_bound(found.distance)} of the head's; {found.length:.2f} times as long, cosine {found.cosine:.3f}"
    )


def head_view(
    model: AttentionModel | None,
    layer: int,
    head: int,
    text: str = "",
    *,
    token: int = -1,
    bits: int = 4,
    harden: bool = True,
    rounding: bool = True,
    surveyed: Survey | None = None,
) -> HeadView:
    """Look at one head on one text, from one token.

    Args:
        model: From `qkv.heads.open`; None if `surveyed` is given.
        layer: The head's layer, from 0.
        head: Its number in the layer, from 0.
        text: At most as many tokens as the model's context.
        token: The place of the token that looks; from the end if negative.
        bits: Bits of rounded keys, for `looked_up` and the hardened query.
        harden: Whether to search for a hardened query, which takes seconds.
        rounding: Whether to round the keys of the whole head as well.
        surveyed: The result of `survey` for the text, if there is one already.

    Returns:
        What the token looks at, with scores, weights, and their spread under rounding.

    Raises:
        QkvError: There is no such head or token, or the text does not fit.
    """
    if surveyed is None:
        request = f"looking at head {layer!s:.20}.{head!s:.20}"
        if model is None:
            raise QkvError(request, "there is no model", "Give a model, or a survey")
        checked_model(request, model).head(layer, head)
        surveyed = survey(model, text)
    if not isinstance(surveyed, Survey):
        problem = f"surveyed is {kind_of(surveyed)}"
        raise QkvError(f"looking at head {layer!s:.20}.{head!s:.20}", problem, "Give what model.survey(text) returns")
    request = f"head {layer}.{head} of {surveyed.model}"
    bits = whole(request, "bits", bits)
    if bits > MAX_BITS:
        raise QkvError(request, f"bits is {bits}", f"Give from 1 to {MAX_BITS} bits")
    place = _place(request, token, len(surveyed.tokens))
    summary, weights = surveyed.summary(layer, head), surveyed.weights(layer, head)
    scores = surveyed.scores(layer, head)
    seen = torch.isfinite(scores[place]).nonzero()[:, 0]
    reading = _Reading.of(surveyed, layer, head, place, seen)
    margin, radius = reading.firmness()
    spread: tuple[Spread, ...] = ()
    predicted, rounded = None, None
    hardened, hard_weights, note = None, None, reading.note
    if reading.memory is not None:
        try:
            found = {b: reading.rounded(b) for b in sorted({*BITS, bits}, reverse=True)}
        except QkvError as why:  # scores so large that their errors cannot be integrated over
            note = f"Spread and hardened query are left out: {why.problem}."
        else:
            spread = tuple(one for one, _, _ in found.values())
            _, predicted, rounded = found[bits]
            if harden and len(seen) > 1:
                hardened, hard_weights = reading.hardened(bits)
    whole_head = surveyed.rounding(layer, head, _few_bits(bits)) if rounding else ()
    looked_up = tuple(
        LookedUp(
            int(seen[i]), surveyed.tokens[int(seen[i])], float(scores[place, seen[i]]), float(weights[place, seen[i]]),
            _at(predicted, i), _at(rounded, i), _at(hard_weights, i),
        )
        for i in reading.order(weights[place][seen])
    )  # fmt: skip
    return HeadView(
        surveyed.model, f"{layer}.{head}", summary.kind, summary.score, surveyed.judged_on(summary.kind),
        surveyed.tokens, place, margin, radius, looked_up, _links(weights, scores), spread, bits, whole_head, hardened,
        note, weights,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Reading:
    """The memory that one token sees, with its query; no memory where the head is no plain lookup."""

    memory: Memory | None
    query: Tensor
    keys: Tensor
    call: AttentionCall
    note: str

    @classmethod
    def of(cls, surveyed: Survey, layer: int, head: int, place: int, seen: Tensor) -> _Reading:
        call = surveyed.calls[layer]
        query = call.query[0, head, place].double() * call.scaling
        key_head = head // call.groups
        keys, values = call.key[0, key_head, seen].double(), call.value[0, key_head, seen].double()
        if call.softcap is not None or call.sinks is not None:
            what = "a soft cap on its scores" if call.softcap is not None else "a sink that takes weight"
            note = f"This head has {what}: spread and hardened query are for plain lookups only."
            return cls(None, query, keys, call, note)
        return cls(Memory(keys, values, labels=[int(i) for i in seen]), query, keys, call, "")

    def order(self, weights: Tensor) -> list[int]:
        """The tokens that are seen, the largest weight first; of equal weights, the largest score without a cap."""
        by_score = (self.keys @ self.query).argsort(descending=True, stable=True)
        found: list[int] = by_score[weights[by_score].argsort(descending=True, stable=True)].tolist()
        return found

    def firmness(self) -> tuple[float | None, float | None]:
        """Margin of the query, and a lower bound on its radius as in `qkv.heads.firmness`; None if it sees one token.

        A soft cap does not change the order of scores, and a sink is no item, so the bound holds for both.
        """
        if len(self.keys) < 2:
            return None, None
        keys, plain = self.keys.numpy(), self.keys @ self.query
        margin = float(self.call.capped(plain.topk(2).values).diff().abs())
        item = np.array([int(plain.argmax())])
        ends = np.array([0]), np.array([len(keys) - 1])
        bound = float(top_margin_lower_bounds(keys, self.query[None].numpy(), item, *ends)[0])
        length = float(np.median(norms(keys))) * (1 + gamma(keys.shape[1] + 8))
        return margin, max(bound / 2 / length * (1 - gamma(8)), 0.0) if length > 0 else 0.0

    def noise(self, bits: int) -> Gaussian:
        """Errors of rounding to so many bits: Δ²/12 in each channel, none for its least and its largest entry."""
        assert self.memory is not None
        keys = self.memory.keys
        variances = Quantised(bits).steps(self.memory).square() / 12 * inexact(keys)
        return Gaussian(diagonal=dict(zip(self.memory.labels, variances, strict=True)))

    def rounded(self, bits: int) -> tuple[Spread, Tensor, Tensor]:
        """The spread at so many bits; predicted standard deviations of the weights, and the weights when rounded."""
        assert self.memory is not None
        own = self.memory.read(self.query)
        size = float(own.output.norm()) or 1.0
        moments = reading_moments(self.memory, self.query, self.noise(bits))
        keys = round_to_levels(self.memory.keys, Quantised(bits).steps(self.memory))
        there = Memory(keys, self.memory.values, labels=self.memory.labels).read(self.query)
        predicted = float(moments.squared_error(own.output).clamp(min=0).sqrt()) / size
        measured = float((there.output - own.output).norm()) / size
        same = self._same_top(keys)
        return Spread(bits, predicted, measured, same), moments.weights_var.clamp(min=0).sqrt(), there.weights

    def _same_top(self, keys: Tensor) -> bool:
        """Whether an item with the largest score has the largest with other keys too; of a tie, each item has it."""
        own, there = self.keys @ self.query, keys @ self.query
        slack = SLACK * float(self.query.abs().sum() * self.keys.abs().max())
        return bool(((own >= own.max() - slack) & (there >= there.max() - slack)).any())

    def hardened(self, bits: int) -> tuple[HardenedQuery, Tensor]:
        """A query of less squared error under rounding, searched from the model's own, and its weights."""
        assert self.memory is not None
        own = HeadMix.single(self.query)
        weights = own.weights(self.memory.keys)
        wanted = {label: float(w) for label, w in zip(self.memory.labels, weights, strict=True) if w > 0}
        total = sum(wanted.values())
        spec = BlendSpec.of(self.memory, {label: w / total for label, w in wanted.items()}, TOL)
        task = RobustProblem(self.memory, noise_on_keys("hardening a head", self.noise(bits), self.memory), spec)
        found = refine(task, own)
        query = found.queries[0].detach()
        length, cosine = 1.0, torch.ones(())  # of a query that the search left as it was, be it of zeros
        if not torch.equal(query, self.query):
            length, cosine = float(query.norm() / self.query.norm()), torch.cosine_similarity(query, self.query, dim=0)
        result = HardenedQuery(
            bits, task.value(found), task.value(own), float(task.distance(found)), length, float(cosine),
            tuple(query.tolist()),
        )  # fmt: skip
        return result, found.weights(self.memory.keys).detach()


def round_to_levels(keys: Tensor, steps: Tensor) -> Tensor:
    """Keys rounded to the nearest level of each channel's grid, which begins at the channel's least entry.

    Args:
        keys: (n, d).
        steps: (d,), the distance between two levels; 0 where a channel is constant.
    """
    low = keys.min(dim=0).values
    step = torch.where(steps > 0, steps, torch.ones_like(steps))
    return torch.where(steps > 0, low + ((keys - low) / step).round() * step, keys)


def _links(weights: Tensor, scores: Tensor) -> tuple[Link, ...]:
    """The strongest pairs; those of the first token with itself, which sees nothing else, are left out if causal."""
    n = len(weights)
    alone = torch.isfinite(scores).sum(-1) == 1
    top = weights.masked_fill(alone[:, None], -1).flatten().topk(min(LINKS, n * n))
    found = [(float(w), int(i) // n, int(i) % n) for w, i in zip(top.values, top.indices, strict=True)]
    return tuple(Link(i, j, w, float(scores[i, j])) for w, i, j in found if w > 0)


def _few_bits(bits: int) -> tuple[int, ...]:
    """The numbers of bits for the whole head: the usual ones, and the one that was asked for if it is as few."""
    return tuple(sorted({*BITS, *({bits} if bits <= max(BITS) else ())}, reverse=True))


def _place(request: str, token: int, n: int) -> int:
    request = f"{request}, seen from token {token!r:.40}"
    try:
        place = None if isinstance(token, bool) else operator.index(token)
    except TypeError:
        place = None
    if place is None or not -n <= place < n:
        raise QkvError(request, f"the text has {n} tokens", "Count them from 0, in whole numbers")
    return place % n


def _at(values: Tensor | None, i: int) -> float | None:
    return None if values is None else float(values[i])
