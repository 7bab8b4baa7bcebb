"""PackedLayout: variable-length sequences packed end to end, without padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from qkv.core.kernels.ragged import RaggedPlan

Shape = tuple[int, int]


class PackedLayout:
    """How sequences of several lengths lie end to end in one tensor of N tokens, without padding.

    Embeddings, norms, projections and MLPs work on all N tokens at once; attention works on views of the sequences
    (`split`, `join`) or on a plan of their lengths (`plan`).

    A layout is of one of three kinds: whole sequences; the continuation of sequences of which a KV cache already holds
    `past_length` tokens; or a decoding step, one new token for each sequence (`decoding_step`).

    Attributes:
        shapes: pairs (b, t): b sequences of t tokens, one shape after another.
        past_length: tokens of every sequence that a KV cache already holds; positions start there.
        is_step: whether this is a decoding step.
        device: where index tensors are made.

    Example:
        >>> import torch
        >>> from qkv.model import GPT, ModelConfig, PackedLayout
        >>> layout = PackedLayout([(2, 3), (1, 4)])  # two sequences of 3 tokens, then one of 4
        >>> layout.positions.tolist()
        [0, 1, 2, 0, 1, 2, 0, 1, 2, 3]
        >>> model = GPT(ModelConfig(vocab_size=9, d_model=16)).eval()
        >>> model(torch.arange(10) % 9, layout).shape
        torch.Size([10, 9])
    """

    def __init__(
        self,
        shapes: Iterable[Shape],
        past_length: int = 0,
        *,
        step_positions: Tensor | None = None,
        step_sequences: Tensor | None = None,
    ) -> None:
        self.shapes = tuple((int(b), int(t)) for b, t in shapes)
        self.past_length = past_length
        self.is_step = step_positions is not None
        self.device = step_positions.device if step_positions is not None else torch.device("cpu")
        self._step_positions, self._step_sequences = step_positions, step_sequences
        self._attended: Tensor | None = None

    @classmethod
    def decoding_step(cls, positions: Tensor, sequences: Tensor | None = None) -> PackedLayout:
        """One new token for each sequence, at the given positions.

        Args:
            positions: position (r,) of each new token in its sequence.
            sequences: which sequences of the KV cache they continue, (r,); if it is None, all of them in order.
        """
        return cls([(len(positions), 1)], step_positions=positions, step_sequences=sequences)

    def to(self, device: torch.device) -> PackedLayout:
        """This layout, with index tensors made on another device."""
        self.device = device
        return self

    @cached_property
    def max_length(self) -> int:
        """Tokens of the longest sequence, including those in the KV cache."""
        if self._step_positions is not None:
            return max(1, int(self._step_positions.max()) + 1)
        return self.past_length + max(t for _, t in self.shapes)

    @cached_property
    def positions(self) -> Tensor:
        """Position (N,) of each token in its sequence."""
        if self._step_positions is not None:
            return self._step_positions
        length = np.array(self._lengths)
        start = np.repeat(np.cumsum(length) - length, length)
        return torch.from_numpy(np.arange(self.past_length, self.past_length + len(start)) - start).to(self.device)

    @cached_property
    def sequences(self) -> Tensor:
        """Index (N,) of the sequence that each token belongs to."""
        if self._step_sequences is not None:
            return self._step_sequences
        if self.is_step:
            return torch.arange(len(self.positions), device=self.device)
        return torch.from_numpy(np.repeat(np.arange(len(self._lengths)), self._lengths)).to(self.device)

    @property
    def covers_cache(self) -> bool:
        """Whether a decoding step has one token for every sequence of the KV cache, in order."""
        return self._step_sequences is None

    def attended(self, n_positions: int) -> Tensor:
        """Mask (r, 1, 1, n_positions) of a decoding step: the cached positions that each new token attends."""
        if self._attended is None or self._attended.shape[-1] != n_positions:
            positions = torch.arange(n_positions, device=self.device)
            self._attended = (positions <= self.positions[:, None])[:, None, None, :]
        return self._attended

    def as_steps(self, keep: Tensor) -> PackedLayout:
        """The tokens in `keep`, each as a decoding step of its sequence."""
        sequences = self.sequences[keep]
        n_sequences = sum(b for b, _ in self.shapes)
        covers = self.covers_cache and torch.equal(sequences, torch.arange(n_sequences, device=self.device))
        return PackedLayout.decoding_step(self.positions[keep], None if covers else sequences)

    def plan(self, keep: Tensor | None = None) -> RaggedPlan:
        """The ragged kernel's plan, if the tokens in `keep` have queries (all, if None)."""
        return self._plan if keep is None else RaggedPlan(self._lengths, keep)

    @cached_property
    def _plan(self) -> RaggedPlan:
        return RaggedPlan(self._lengths)

    @cached_property
    def _lengths(self) -> list[int]:
        return [t for b, t in self.shapes for _ in range(b)]

    def split(self, x: Tensor) -> Sequence[Tensor]:
        """Views (b, heads, t, d) for each shape, of packed vectors (N, heads, d)."""
        parts = [x] if len(self.shapes) == 1 else x.split([b * t for b, t in self.shapes])
        return [part.unflatten(0, shape).transpose(1, 2) for part, shape in zip(parts, self.shapes, strict=True)]

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Packed vectors (N, heads · d), from (b, heads, t, d) for each shape."""
        flat = [part.transpose(1, 2).reshape(b * t, -1) for part, (b, t) in zip(parts, self.shapes, strict=True)]
        return flat[0] if len(flat) == 1 else torch.cat(flat)
