"""What a head looks up: how much of its weight falls on the previous token, on an earlier copy, on the first token…

All scores are mean weights over the queries for which the pattern can be told apart, so 1 means "always, and wholly".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from qkv.core.validation import whole
from qkv.errors import QkvError

Kind = Literal["previous token", "induction", "duplicate", "first token", "self", "broad", "mixed"]

CLEAR = 0.4
"""A head is named after a pattern that takes at least this share of its weight."""

SPREAD = 0.5
"""A head is called broad if it effectively averages at least this share of the tokens that it sees."""

SKIPPED = 4
"""The first tokens see too few others to tell patterns apart."""

ON_TEXT, ON_REPEATED = "the text", "repeated random tokens"
"""What the kind of a head can be judged on."""


@dataclass(frozen=True)
class Patterns:
    """Mean weight of every head on each pattern; one row for each layer, one column for each head.

    Attributes:
        previous: On the token before.
        induction: On the tokens that followed earlier copies of this token.
        duplicate: On earlier copies of this token.
        first: On the first token.
        itself: On the token itself.
        effective: exp(entropy): how many tokens the head effectively averages. Of a head with a sink, the weights are
            taken as shares of what does not go to the sink.
        share: `effective` as a share of the tokens that are seen.
        repeats: How many queries had an earlier copy of their token.
        told: How many queries see enough tokens to tell the patterns apart; if none does, the figures are of the last
            token of each window.
    """

    previous: Tensor
    induction: Tensor
    duplicate: Tensor
    first: Tensor
    itself: Tensor
    effective: Tensor
    share: Tensor
    repeats: int
    told: int


class PatternSums:
    """Adds up patterns layer by layer, so that no weights need to be kept.

    Args:
        layers: Number of layers.
        heads: Number of heads of a layer.
    """

    NAMES = ("previous", "induction", "duplicate", "first", "itself", "effective", "share")

    def __init__(self, layers: int, heads: int) -> None:
        self.sums = {name: torch.zeros(layers, heads, dtype=torch.float64) for name in self.NAMES}
        self.counts = dict.fromkeys((*self.NAMES, "told"), 0)

    def add(self, layer: int, weights: Tensor, ids: Tensor, visible: Tensor, first_layer: bool) -> None:
        """Add one window.

        Args:
            layer: Which layer.
            weights: (heads, tokens, tokens).
            ids: Token ids of the window.
            visible: (tokens, tokens), which tokens each query sees.
            first_layer: Whether this is the layer in which queries are counted.
        """
        n = len(ids)
        places = torch.arange(n)
        rows = places[min(SKIPPED, n - 1) :]
        earlier = torch.ones(n, n, dtype=torch.bool).tril(-1)
        same = (ids[:, None] == ids[None, :]) & earlier
        after = torch.zeros_like(same)
        after[:, 1:] = same[:, :-1]
        after &= earlier  # the token after a copy that is the query itself tells nothing
        copied = same.any(1) & (places >= SKIPPED)
        followed = after.any(1) & (places >= SKIPPED)
        # Entries in float32 are summed query by query, which few of them matter in, and queries in float64.
        total = weights[:, rows].sum(-1).double().clamp(min=1e-300)
        entropy = torch.special.entr(weights[:, rows]).sum(-1).double() / total + total.log()
        effective = entropy.exp().clamp(min=1).minimum(visible.sum(-1)[rows].double())
        parts = {
            "previous": (weights[:, rows, rows - 1].double().sum(-1), len(rows)),
            "first": (weights[:, rows, 0].double().sum(-1), len(rows)),
            "itself": (weights[:, rows, rows].double().sum(-1), len(rows)),
            "duplicate": (_chosen(weights, same & copied[:, None]), int(copied.sum())),
            "induction": (_chosen(weights, after & followed[:, None]), int(followed.sum())),
            "effective": (effective.sum(-1), len(rows)),
            "share": ((effective / visible.sum(-1)[rows]).sum(-1), len(rows)),
        }
        for name, (value, count) in parts.items():
            self.sums[name][layer] += value
            if first_layer:
                self.counts[name] += count
        if first_layer:
            self.counts["told"] += max(0, n - SKIPPED)

    def result(self) -> Patterns:
        """The means; a pattern that no query could show is NaN."""
        means = {n: s / self.counts[n] if self.counts[n] else s * torch.nan for n, s in self.sums.items()}
        return Patterns(**means, repeats=self.counts["duplicate"], told=self.counts["told"])


def _chosen(weights: Tensor, places: Tensor) -> Tensor:
    """The sum of each head's weights at the places that are marked, (heads,)."""
    row, column = places.nonzero(as_tuple=True)
    return weights[:, row, column].double().sum(-1)


def repeated_tokens(vocabulary: int, n: int, count: int, seed: int, first: int | None, special: set[int]) -> Tensor:
    """Random tokens, twice over: what comes second can only be told by looking at what came first.

    Args:
        vocabulary: Number of tokens to choose from.
        n: Tokens that are repeated.
        count: Number of rows.
        seed: Of the random numbers.
        first: A token to put in front, such as the one that begins every text; None for none.
        special: Tokens to leave out.
    """
    generator = torch.Generator().manual_seed(seed)
    allowed = torch.tensor([i for i in range(vocabulary) if i not in special] or range(vocabulary))
    half = allowed[torch.randint(len(allowed), (count, n), generator=generator)]
    twice = torch.cat([half, half], 1)
    return twice if first is None else torch.cat([torch.full((count, 1), first), twice], 1)


def kind(text: Patterns, repeated: Patterns | None, layer: int, head: int) -> tuple[Kind, float]:
    """The name of what a head does, and the score that gave it.

    Induction and duplicates are judged on repeated random tokens where there are any, since ordinary text also repeats
    the words that a head would look at anyway; the others on the text, if it has a token that can tell them apart.
    """
    copies = text if repeated is None else repeated
    text = repeated if repeated is not None and not text.told and repeated.told else text
    scores: dict[Kind, float] = {
        "previous token": float(text.previous[layer, head]),
        "induction": float(copies.induction[layer, head]),
        "duplicate": float(copies.duplicate[layer, head]),
        "first token": float(text.first[layer, head]),
        "self": float(text.itself[layer, head]),
    }
    clear = {name: score for name, score in scores.items() if score >= CLEAR}
    if clear:
        copying = {name: score for name, score in clear.items() if name in ("induction", "duplicate")}
        return max((copying or clear).items(), key=lambda pair: pair[1])
    share = float(text.share[layer, head])
    if share >= SPREAD:
        return "broad", share
    return "mixed", max(scores.values(), key=lambda s: -1.0 if s != s else s)


def score_text(kind: str, score: float) -> str:
    """A score in two digits; 0.399 of a mixed head is 0.39, since 0.40 would have made a kind."""
    below = kind == "mixed" and CLEAR - 0.005 <= score < CLEAR
    return f"{CLEAR - 0.01 if below else score:.2f}"


def judged_on(kind: str, told_apart: bool, repeated: bool) -> str:
    """What the kind of a head was judged on.

    Args:
        kind: Its name.
        told_apart: Whether a token of the text sees enough others to tell patterns apart.
        repeated: Whether there were repeated random tokens.
    """
    return ON_REPEATED if repeated and (kind in ("induction", "duplicate") or not told_apart) else ON_TEXT


def checked_seed(request: str, seed: Any) -> int:
    """A seed that every generator takes."""
    found = whole(request, "seed", seed, 0)
    if found >= 1 << 32:
        raise QkvError(request, f"seed is {found}", f"Give a whole number below {1 << 32}")
    return found
