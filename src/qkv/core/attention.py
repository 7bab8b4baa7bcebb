"""Scores to weights to output: one query, many, several heads, self-attention."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from qkv.core.display import Card, Displayable, number, vector
from qkv.core.masks import allowed
from qkv.core.validation import ArrayLike, same_length, same_width, tensor
from qkv.errors import QkvError

Label = str | int
Number = float | int  # spelled out, because a run-time type checker takes "float" to exclude 2
SHOWN = 10  # rows of a card, before "… more"


@dataclass(frozen=True, eq=False)
class Reading(Displayable):
    """What attention looked up: the weight of every item, and the output they make.

    `heads`, where there are several, holds each head's own weights; `weights` is then their mix.
    """

    weights: Float[Tensor, "*rows n"]
    output: Float[Tensor, "*rows dv"]
    labels: tuple[Label, ...] | None = None
    heads: Float[Tensor, "*each n"] | None = None

    def card(self) -> Card:
        return self._one() if self.weights.dim() == 1 else self._many()

    def _one(self) -> Card:
        """One query: its items, heaviest first; by size, since a mix may weigh an item negatively."""
        n = len(self.weights)
        order = self.weights.abs().argsort(descending=True, stable=True).tolist()
        heads = [] if self.heads is None or self.heads.dim() != 2 else list(self.heads)
        rows = tuple(
            (self._name(i), number(float(self.weights[i])), *(number(float(h[i])) for h in heads))
            for i in order[:SHOWN]
        )
        rest = float(self.weights[order[SHOWN:]].sum())
        return Card(
            title=f"Reading of {_counted(n, 'item')}" + (f" by {_counted(len(heads), 'head')}" if heads else ""),
            facts=(("output", vector(self.output.tolist())),),
            columns=("item", "weight", *(f"head {h}" for h in range(len(heads)))),
            rows=rows,
            note=f"… {_counted(n - SHOWN, 'more item')}, with {number(rest)} in all" if n > SHOWN else "",
        )

    def _many(self) -> Card:
        """Many queries: for each the item it attends most."""
        *shape, n = self.weights.shape
        count = math.prod(shape)
        rows = []
        for at in range(min(count, SHOWN)):
            where = tuple(int(i) for i in torch.unravel_index(torch.tensor(at), tuple(shape)))
            row = self.weights[where]
            top = int(row.abs().argmax())
            rows.append((", ".join(map(str, where)), self._name(top), number(float(row[top]))))
        return Card(
            title=f"Readings of {_counted(n, 'item')} by {_counted(count, 'query', 'queries')}",
            facts=(("outputs", " × ".join(map(str, self.output.shape))),),
            columns=("query", "attends most", "weight"),
            rows=tuple(rows),
            note=f"… {_counted(count - SHOWN, 'more query', 'more queries')}" if count > SHOWN else "",
        )

    def _name(self, item: int) -> str:
        return str(item if self.labels is None else self.labels[item])


# --- On tensors: nothing is checked or detached, so that gradients pass. ---


def softmax(
    scores: Float[Tensor, "*rows n"], mask: Bool[Tensor, "*#rows #n"] | None = None
) -> Float[Tensor, "*rows n"]:
    """e^s over its sum. A row whose mask allows nothing is 0/0, that is NaN: check masks before.

    torch.softmax subtracts the row's maximum first, so no score is too large; and e^(-inf) is exactly 0.
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.softmax(scores, dim=-1)


def read(
    queries: Float[Tensor, "*#batch m d"],
    keys: Float[Tensor, "*#batch n d"],
    values: Float[Tensor, "*#batch n dv"],
    scale: Number | Tensor = 1.0,
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
) -> tuple[Float[Tensor, "*#batch m n"], Float[Tensor, "*#batch m dv"]]:
    """The weights of every query on every item, and the outputs."""
    alpha = softmax(scale * (queries @ keys.mT), mask)
    return alpha, alpha @ values


def read_heads(
    queries: Float[Tensor, "h d"],
    keys: Float[Tensor, "n d"],
    values: Float[Tensor, "n dv"],
    mix: Float[Tensor, " h"],
    scale: Number | Tensor = 1.0,
    mask: Bool[Tensor, "#h #n"] | None = None,
) -> tuple[Float[Tensor, " n"], Float[Tensor, " dv"], Float[Tensor, "h n"]]:
    """The mixed weights, the mixed output and each head's weights, of heads that share their keys."""
    each, outputs = read(queries, keys, values, scale, mask)
    return mix @ each, mix @ outputs, each


def read_self(
    X: Float[Tensor, "*batch n d"],
    Q: Float[Tensor, "dk d"],
    K: Float[Tensor, "dk d"],
    V: Float[Tensor, "dv d"],
    scale: Number | Tensor = 1.0,
    mask: Bool[Tensor, "*#batch #n #n"] | None = None,
) -> tuple[Float[Tensor, "*batch n n"], Float[Tensor, "*batch n dv"]]:
    """Tokens reading each other: q_i = Q x_i, k_j = K x_j, v_j = V x_j, with the tokens as rows of X."""
    return read(X @ Q.mT, X @ K.mT, X @ V.mT, scale, mask)


# --- On any arrays: everything is checked, and comes out in float64. ---


def weights(scores: ArrayLike, mask: ArrayLike | None = None) -> Tensor:
    """The softmax of `scores` over their last axis; what `mask` does not allow gets exactly 0."""
    asked = "weights of scores"
    s = tensor("scores", scores)
    if s.dim() == 0:
        raise QkvError(asked, "scores is a single number", "Give one score for each item, as a list")
    return softmax(s, None if mask is None else allowed(asked, mask, tuple(s.shape)))


def attend(
    query: ArrayLike,
    keys: ArrayLike,
    values: ArrayLike,
    *,
    scale: Number = 1.0,
    mask: ArrayLike | None = None,
) -> Reading:
    """What one query (d,), or each of many (m, d), reads from n keys (n, d) and values (n, dv)."""
    asked = "attending"
    q = tensor("query", query)
    if q.dim() not in (1, 2):
        raise QkvError(
            asked,
            f"query has shape {tuple(q.shape)}",
            "Give one query of shape (d,), or several of shape (m, d)",
        )
    k, v = _items(asked, "query", q, keys, values)
    shape = (*q.shape[:-1], len(k))
    seen = None if mask is None else torch.atleast_2d(allowed(asked, mask, shape))
    alpha, output = read(torch.atleast_2d(q), k, v, finite(asked, "scale", scale), seen)
    check_range(asked, alpha, output)
    return Reading(alpha[0], output[0]) if q.dim() == 1 else Reading(alpha, output)


def attend_heads(
    queries: ArrayLike,
    keys: ArrayLike,
    values: ArrayLike,
    *,
    mix: ArrayLike | None = None,
    scale: Number = 1.0,
    mask: ArrayLike | None = None,
) -> Reading:
    """What several heads (h, d) on shared keys read together: Σ mix_h · reading_h, by default the average."""
    asked = "attending with several heads"
    q = tensor("queries", queries, "h d")
    k, v = _items(asked, "queries", q, keys, values)
    m = torch.full((len(q),), 1 / len(q), dtype=torch.float64) if mix is None else tensor("mix", mix, "h")
    same_length(asked, queries=q, mix=m)
    seen = None if mask is None else allowed(asked, mask, (len(q), len(k)))
    alpha, output, each = read_heads(q, k, v, m, finite(asked, "scale", scale), seen)
    check_range(asked, each, alpha, output)
    return Reading(alpha, output, heads=each)


def self_attention(
    X: ArrayLike,
    Q: ArrayLike,
    K: ArrayLike,
    V: ArrayLike,
    *,
    scale: Number = 1.0,
    mask: ArrayLike | None = None,
) -> Reading:
    """What each token (row of X) reads: score_ij = scale (Q x_i)·(K x_j), output_i = Σ_j weight_ij V x_j."""
    asked = "self-attention"
    x = tensor("X", X, "n d")
    q, k, v = tensor("Q", Q, "h d"), tensor("K", K, "h d"), tensor("V", V, "dv d")
    same_width(asked, X=x, Q=q, K=k, V=v)
    same_length(f"{asked} with Q and K of shape (h, d)", **{"rows of Q": q, "rows of K": k})
    seen = None if mask is None else allowed(asked, mask, (len(x), len(x)))
    alpha, output = read_self(x, q, k, v, finite(asked, "scale", scale), seen)
    check_range(asked, alpha, output)
    return Reading(alpha, output)


def finite(asked: str, name: str, value: Any) -> float:
    """`value` as a finite float."""
    try:
        out = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        out = math.nan
    if isinstance(value, str) or not math.isfinite(out):
        raise QkvError(asked, f"{name} is {value!r}", "Give a finite number")
    return out


def _items(asked: str, name: str, q: Tensor, keys: ArrayLike, values: ArrayLike) -> tuple[Tensor, Tensor]:
    k, v = tensor("keys", keys, "n d"), tensor("values", values, "n dv")
    same_length(asked, keys=k, values=v)
    same_width(asked, **{name: q}, keys=k)
    return k, v


def check_range(asked: str, *results: Tensor) -> None:
    """Products of finite inputs can overflow, and softmax then gives NaN: never an answer."""
    if not all(bool(torch.isfinite(result).all()) for result in results):
        raise QkvError(
            asked,
            "the products of its inputs exceed the range of float64",
            "Use smaller vectors or a smaller scale",
        )


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
