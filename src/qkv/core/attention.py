"""softmax, attend, attend_heads, self_attention: scores to weights to output."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from qkv.core.display import Card, Displayable, number, vector
from qkv.core.masks import allowed
from qkv.core.types import ArrayLike
from qkv.core.validation import check_range, finite, same_length, same_width, tensor
from qkv.errors import QkvError

Label = str | int
Number = float | int  # spelled out, because a run-time type checker takes "float" to exclude 2
MAX_ROWS_SHOWN = 10
"""Rows of a card, before "… more"."""


@dataclass(frozen=True, eq=False)
class Reading(Displayable):
    """What attention looked up: the weight of every item, and the weighted sum of their values.

    Attributes:
        weights: Attention weights, (n,) for one query or (m, n) for many; for several heads, their mix.
        output: The weighted sum of the values, (dv,) or (m, dv).
        labels: Names of the items, where they come from a `Memory`.
        heads: Each head's own weights, where there are several heads, else None.

    Example:
        >>> import qkv
        >>> reading = qkv.attend([0.0, 0.0], keys=[[1, 0], [0, 1]], values=[[2.0], [4.0]])
        >>> reading.weights.tolist(), reading.output.tolist()
        ([0.5, 0.5], [3.0])
    """

    weights: Float[Tensor, "*rows n"]
    output: Float[Tensor, "*rows dv"]
    labels: tuple[Label, ...] | None = None
    heads: Float[Tensor, "*each n"] | None = None

    def card(self) -> Card:
        return self._one() if self.weights.dim() == 1 else self._many()

    def _one(self) -> Card:
        """One query: its items by the size of their weights, which a mix of heads can make negative."""
        n = len(self.weights)
        order = self.weights.abs().argsort(descending=True, stable=True).tolist()
        heads = [] if self.heads is None or self.heads.dim() != 2 else list(self.heads)
        rows = tuple(
            (self._name(i), number(float(self.weights[i])), *(number(float(h[i])) for h in heads))
            for i in order[:MAX_ROWS_SHOWN]
        )
        rest = float(self.weights[order[MAX_ROWS_SHOWN:]].sum())
        return Card(
            title=f"Reading of {_counted(n, 'item')}" + (f" by {_counted(len(heads), 'head')}" if heads else ""),
            facts=(("output", vector(self.output.tolist())),),
            columns=("item", "weight", *(f"head {h}" for h in range(len(heads)))),
            rows=rows,
            note=f"… {_counted(n - MAX_ROWS_SHOWN, 'more item')}, with {number(rest)} in all"
            if n > MAX_ROWS_SHOWN
            else "",
        )

    def _many(self) -> Card:
        """Many queries: the item that each attends to most."""
        *shape, n = self.weights.shape
        count = math.prod(shape)
        rows = []
        for at in range(min(count, MAX_ROWS_SHOWN)):
            where = tuple(int(i) for i in torch.unravel_index(torch.tensor(at), tuple(shape)))
            row = self.weights[where]
            top = int(row.abs().argmax())
            rows.append((", ".join(map(str, where)), self._name(top), number(float(row[top]))))
        return Card(
            title=f"Readings of {_counted(n, 'item')} by {_counted(count, 'query', 'queries')}",
            facts=(("outputs", " × ".join(map(str, self.output.shape))),),
            columns=("query", "attends most", "weight"),
            rows=tuple(rows),
            note=f"… {_counted(count - MAX_ROWS_SHOWN, 'more query', 'more queries')}"
            if count > MAX_ROWS_SHOWN
            else "",
        )

    def _name(self, item: int) -> str:
        return str(item if self.labels is None else self.labels[item])


# --- On tensors: arguments are neither checked nor detached, so that gradients pass. ---


def softmax(
    scores: Float[Tensor, "*rows n"], mask: Bool[Tensor, "*#rows #n"] | None = None
) -> Float[Tensor, "*rows n"]:
    """Softmax of scores over their last axis, with masked scores set to -inf.

    torch.softmax subtracts the row's maximum first, so large scores do not overflow, and e^(-inf) is exactly 0.
    Arguments are neither checked nor detached, so that gradients pass.

    Args:
        scores: Scores, (..., n).
        mask: Booleans that broadcast to the scores, True where an item may be attended; None allows all.

    Returns:
        Weights of the shape of the scores; each row sums to 1. A row whose mask allows no item is 0/0, that is NaN.

    Example:
        >>> from qkv.core import softmax
        >>> import torch
        >>> softmax(torch.tensor([0.0, 0.0, 5.0]), torch.tensor([True, True, False])).tolist()
        [0.5, 0.5, 0.0]
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
    """The mixed weights, the mixed output and each head's weights, for heads on the same keys and values."""
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
    """Self-attention: q_i = Q x_i, k_j = K x_j, v_j = V x_j, with the tokens as rows of X."""
    return read(X @ Q.mT, X @ K.mT, X @ V.mT, scale, mask)


# --- On any arrays: arguments are checked, results are float64. ---


def weights(scores: ArrayLike, mask: ArrayLike | None = None) -> Tensor:
    """The softmax of `scores` over their last axis; masked items get exactly 0."""
    request = "weights of scores"
    s = tensor("scores", scores)
    if s.dim() == 0:
        raise QkvError(request, "scores is a single number", "Give one score for each item, as a list")
    return softmax(s, None if mask is None else allowed(request, mask, tuple(s.shape)))


def attend(
    query: ArrayLike,
    keys: ArrayLike,
    values: ArrayLike,
    *,
    scale: Number = 1.0,
    mask: ArrayLike | None = None,
) -> Reading:
    """Attention of one query, or of each of several, over keys and values.

    Args:
        query: One query (d,), or several as rows (m, d).
        keys: Keys as rows, (n, d).
        values: Values as rows, (n, dv).
        scale: Factor in front of the scores; models use 1/√d.
        mask: Booleans that broadcast to (n,) or (m, n), True where an item may be attended; None allows all.

    Returns:
        A `Reading` with weights (n,) or (m, n) and output (dv,) or (m, dv), in float64.

    Raises:
        QkvError: If an array is empty, not finite or of the wrong shape, if a row of the mask allows no item, or if
            a score exceeds the range of float64.

    Example:
        >>> import qkv
        >>> reading = qkv.attend([9.0, 0.0], keys=[[1, 0], [0, 1]], values=[[1.0], [0.0]])
        >>> round(float(reading.output[0]), 4)
        0.9999
    """
    request = "attending"
    q = tensor("query", query)
    if q.dim() not in (1, 2):
        raise QkvError(
            request,
            f"query has shape {tuple(q.shape)}",
            "Give one query of shape (d,), or several of shape (m, d)",
        )
    k, v = _items(request, "query", q, keys, values)
    shape = (*q.shape[:-1], len(k))
    seen = None if mask is None else torch.atleast_2d(allowed(request, mask, shape))
    alpha, output = read(torch.atleast_2d(q), k, v, finite(request, "scale", scale), seen)
    check_range(request, alpha, output)
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
    """Several heads on the same keys and values, combined as Σ mix_h · reading_h.

    Args:
        queries: One query per head, as rows (h, d).
        keys: Keys as rows, (n, d).
        values: Values as rows, (n, dv).
        mix: Factor of each head, (h,); None averages the heads.
        scale: Factor in front of the scores.
        mask: Booleans that broadcast to (h, n), True where an item may be attended; None allows all.

    Returns:
        A `Reading` whose weights (n,) and output (dv,) are the mix, and whose `heads` (h, n) are each head's weights.

    Raises:
        QkvError: As for `attend`, and if there are not as many factors in `mix` as queries.

    Example:
        >>> import qkv
        >>> reading = qkv.attend_heads([[50.0, 0], [0, 50.0]], keys=[[1, 0], [0, 1]], values=[[2.0], [4.0]])
        >>> reading.output.tolist()
        [3.0]
    """
    request = "attending with several heads"
    q = tensor("queries", queries, "h d")
    k, v = _items(request, "queries", q, keys, values)
    m = torch.full((len(q),), 1 / len(q), dtype=torch.float64) if mix is None else tensor("mix", mix, "h")
    same_length(request, queries=q, mix=m)
    seen = None if mask is None else allowed(request, mask, (len(q), len(k)))
    alpha, output, each = read_heads(q, k, v, m, finite(request, "scale", scale), seen)
    check_range(request, each, alpha, output)
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
    """Self-attention: score_ij = scale (Q x_i)·(K x_j), output_i = Σ_j weight_ij V x_j.

    Args:
        X: Tokens as rows, (n, d).
        Q: Query matrix, (h, d).
        K: Key matrix, (h, d).
        V: Value matrix, (dv, d).
        scale: Factor in front of the scores.
        mask: Booleans that broadcast to (n, n), True where token i may attend to token j; None allows all.

    Returns:
        A `Reading` with weights (n, n) and output (n, dv), one row per token.

    Raises:
        QkvError: As for `attend`, and if Q, K and V do not fit the tokens or each other.

    Example:
        >>> import qkv
        >>> identity = [[1, 0], [0, 1]]
        >>> reading = qkv.self_attention([[9, 0], [0, 9]], identity, identity, identity)
        >>> reading.weights.round(decimals=3).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    request = "self-attention"
    x = tensor("X", X, "n d")
    q, k, v = tensor("Q", Q, "h d"), tensor("K", K, "h d"), tensor("V", V, "dv d")
    same_width(request, X=x, Q=q, K=k, V=v)
    same_length(f"{request} with Q and K of shape (h, d)", **{"rows of Q": q, "rows of K": k})
    seen = None if mask is None else allowed(request, mask, (len(x), len(x)))
    alpha, output = read_self(x, q, k, v, finite(request, "scale", scale), seen)
    check_range(request, alpha, output)
    return Reading(alpha, output)


def _items(request: str, name: str, q: Tensor, keys: ArrayLike, values: ArrayLike) -> tuple[Tensor, Tensor]:
    k, v = tensor("keys", keys, "n d"), tensor("values", values, "n dv")
    same_length(request, keys=k, values=v)
    same_width(request, **{name: q}, keys=k)
    return k, v


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
