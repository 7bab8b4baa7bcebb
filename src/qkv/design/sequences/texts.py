"""Vocabulary: token and position vectors. Sequences: texts over it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np
import torch

from qkv.core.display import Card, Displayable
from qkv.core.types import ArrayLike, FloatArray, Labels
from qkv.core.validation import tensor, whole
from qkv.errors import QkvError, kind_of

MAX_ENTRY = 1e100
"""Vectors with larger entries are refused: products of four of them would leave the range of float64."""


@dataclasses.dataclass(frozen=True, eq=False)
class Vocabulary(Displayable):
    """Vectors of tokens and of positions: token u at position i of a text is tokens[u] + positions[i].

    Attributes:
        tokens: Token vectors, (n_tokens, d) or narrower: missing entries at the end of a vector are zeros.
        positions: Position vectors, (length, d).
        labels: Names of the tokens; 0..n-1 if none were given.

    Example:
        >>> import qkv
        >>> words = qkv.design.Vocabulary.side_by_side([[3, 4], [1, 0], [0, 2]], length=5, labels=["a", "b", "c"])
        >>> words.vectors([0, 2]).shape, words.tokens[0].tolist()
        (torch.Size([2, 7]), [0.6, 0.8])
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    labels: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        request = "a vocabulary"
        tokens, positions = tensor("tokens", self.tokens, "n d"), tensor("positions", self.positions, "length d")
        if tokens.shape[1] > positions.shape[1]:
            problem = f"its tokens have {tokens.shape[1]} numbers and its positions {positions.shape[1]}"
            raise QkvError(request, problem, "Give vectors of one size, or use Vocabulary.side_by_side")
        if max(float(tokens.abs().max()), float(positions.abs().max())) > MAX_ENTRY:
            raise QkvError(request, f"an entry is above {MAX_ENTRY:g}", "Scale the vectors to entries near 1")
        labels = tuple(range(len(tokens))) if not len(self.labels) else tuple(self.labels)
        if len(labels) != len(tokens):
            raise QkvError(request, f"it has {len(tokens)} tokens and {len(labels)} labels", "Give one label per token")
        for name, value in (("tokens", tokens), ("positions", positions), ("labels", labels)):
            object.__setattr__(self, name, value)

    @classmethod
    def side_by_side(
        cls,
        tokens: ArrayLike,
        length: int | None = None,
        positions: ArrayLike | None = None,
        normalise: bool = True,
        labels: Labels | None = None,
    ) -> Vocabulary:
        """Tokens and positions in coordinates of their own, so that neither disturbs the other.

        Args:
            tokens: Token vectors, (n_tokens, d).
            length: Number of positions, with orthonormal vectors; or give `positions`.
            positions: Position vectors, (length, d_positions).
            normalise: Whether each token vector is divided by its length; every score of a token with itself is then
                above its scores with all others that have another direction.
            labels: Names of the tokens.

        Returns:
            A vocabulary of width d + length, or d + d_positions.

        Raises:
            QkvError: If both or neither of `length` and `positions` are given, or if a token to be normalised is zero.
        """
        request = "a vocabulary with tokens and positions side by side"
        e = tensor("tokens", tokens, "n d")
        if (length is None) == (positions is None):
            raise QkvError(request, "it needs either length or positions", "Give one of them, such as length=128")
        p = (
            torch.eye(whole(request, "length", length), dtype=torch.float64)
            if positions is None
            else tensor("positions", positions, "length d")
        )
        if normalise:
            e = _unit(request, e)
        wide = torch.zeros(len(p), e.shape[1] + p.shape[1], dtype=torch.float64)
        wide[:, e.shape[1] :] = p
        return cls(e, wide, () if labels is None else tuple(labels))

    @property
    def width(self) -> int:
        """Entries of the vector of a token at a position."""
        return int(self.positions.shape[1])

    @property
    def length(self) -> int:
        """The longest text that there are positions for."""
        return len(self.positions)

    def widened(self, entries: int) -> Vocabulary:
        """The same vectors with that many zeros at their end."""
        wide = torch.zeros(self.length, self.width + entries, dtype=torch.float64)
        wide[:, : self.width] = self.positions
        return dataclasses.replace(self, positions=wide)

    def vectors(self, ids: Sequence[int]) -> torch.Tensor:
        """The vectors of a text, (n, d).

        Args:
            ids: The numbers of its tokens.

        Returns:
            tokens[ids[i]] + positions[i], as rows.

        Raises:
            QkvError: If a number is no token, or if there are more of them than positions.
        """
        (checked,) = _texts(self, [ids])
        out = self.positions[: len(checked)].clone()
        out[:, : self.tokens.shape[1]] += self.tokens[list(checked)]
        return out

    def card(self) -> Card:
        facts = (
            ("tokens", f"{len(self.tokens):,} vectors of {self.tokens.shape[1]}"),
            ("positions", f"{self.length:,} vectors of {self.width}"),
        )
        return Card("Vocabulary", facts)


@dataclasses.dataclass(frozen=True, eq=False)
class Sequences(Displayable):
    """Texts over a vocabulary.

    Attributes:
        vocabulary: The vectors.
        ids: For each text, the numbers of its tokens.

    Example:
        >>> import qkv
        >>> words = qkv.design.Vocabulary.side_by_side([[1, 0], [0, 1]], length=4)
        >>> len(qkv.design.Sequences(words, [[0, 1, 0], [1, 1]]).ids)
        2
    """

    vocabulary: Vocabulary
    ids: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", _texts(self.vocabulary, self.ids))

    def card(self) -> Card:
        facts = (("texts", f"{len(self.ids):,}"), ("tokens", f"{sum(map(len, self.ids)):,}"))
        return Card("Sequences", facts)


def _texts(vocabulary: Vocabulary, ids: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Texts as tuples of token numbers, each checked."""
    request = "texts over a vocabulary"
    n, length = len(vocabulary.tokens), vocabulary.length
    out = []
    if not isinstance(ids, Iterable) or isinstance(ids, str):
        raise QkvError(request, f"they are {kind_of(ids)}", "Give a list of lists of token numbers")
    for number, text in enumerate(ids):
        listed = text.tolist() if hasattr(text, "tolist") else text
        if not isinstance(listed, Sequence) or isinstance(listed, str) or not len(listed):
            raise QkvError(request, f"text {number} is {text!r}", "Give each text as a list of token numbers")
        found = tuple(whole(request, f"token {i} of text {number}", u, 0) for i, u in enumerate(listed))
        if max(found) >= n:
            problem = f"text {number} holds token {max(found)}, and there are {n}"
            raise QkvError(request, problem, f"Give numbers from 0 to {n - 1}")
        if len(found) > length:
            problem = f"text {number} has {len(found)} tokens, and there are {length} positions"
            raise QkvError(request, problem, "Cut the text, or give more positions")
        out.append(found)
    if not out:
        raise QkvError(request, "there is no text", "Give at least one list of token numbers")
    return tuple(out)


def _unit(request: str, e: torch.Tensor) -> torch.Tensor:
    """The rows divided by their lengths."""
    scale = e.abs().amax(dim=1, keepdim=True)
    zero = torch.nonzero(scale[:, 0] == 0)
    if len(zero):
        problem = f"the vector of token {int(zero[0])} is zero, so it has no direction"
        raise QkvError(request, problem, "Leave the token out, or set normalise=False")
    e = e / scale
    return e / torch.linalg.vector_norm(e, dim=1, keepdim=True)


def as_array(values: torch.Tensor) -> FloatArray:
    """A tensor as a float64 array."""
    return np.asarray(values, dtype=np.float64)
