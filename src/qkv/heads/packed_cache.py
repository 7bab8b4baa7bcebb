"""A key-value cache for transformers that stores keys in few bits: packed, channel by channel, the last tokens whole.

Keys arrive after rotation. As soon as a block of tokens is older than the last `tail` ones, each of its channels gets a
grid (low and step, 16 bits each) and codes of as many bits as the channel has. The codes are stored as bit planes:
plane p of a channel holds bit p of all codes of the block, so that any number of bits is packed without waste.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from qkv.core.validation import whole
from qkv.errors import MissingExtra, QkvError, kind_of
from qkv.heads.allocation import Allocation, check_model, check_shape
from qkv.heads.attention_model import AttentionModel, HeadShape, from_transformers
from qkv.heads.key_grid import HALF, MAX_BITS, checked_bits, key_grid

try:
    from transformers.cache_utils import Cache, DynamicLayer
except ImportError:
    raise MissingExtra("a quantised key cache", "hf") from None

REQUEST = "a quantised key cache"


class PackedKeyLayer(DynamicLayer):
    """The cache of one layer: packed keys of whole blocks, whole keys of the last tokens, whole values.

    Args:
        bits: Bits of each channel, (key heads, size).
        basis: Matrices that take a key to the coordinates that are stored, (key heads, size, size), or None.
        tail: Tokens whose keys are kept whole, at least.
        group: Tokens of a block, a multiple of 8.
        exact_prompt: Whether tokens of one forward pass see each other's keys whole.
    """

    keys: Any  # of the last tokens; transformers says Tensor | None
    values: Any  # of all tokens

    def __init__(self, bits: Tensor, basis: Tensor | None, tail: int, group: int, exact_prompt: bool) -> None:
        super().__init__()
        self.bits, self.tail, self.group, self.exact_prompt = bits.long(), tail, group, exact_prompt
        self.basis = None if basis is None else basis.double()
        self.inverse = None if basis is None else torch.linalg.inv(basis.double())
        flat = self.bits.flatten()
        self.channel = torch.repeat_interleave(torch.arange(len(flat)), flat)  # of each plane
        self.place = torch.cat([torch.arange(int(b)) for b in flat])  # which bit a plane holds
        self.packed: Tensor | None = None  # (batch, planes, tokens / 8), uint8
        self.low: Tensor | None = None  # (batch, channels, blocks)
        self.step: Tensor | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Add tokens; returns all keys, those of packed blocks as they are stored, and all values."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        fresh = torch.cat([self.keys, key_states], -2)
        self.values = torch.cat([self.values, value_states], -2)
        before = self.unpacked()
        seen = fresh if before is None else torch.cat([before, fresh], -2)
        self.keys = fresh
        self._pack_old_blocks()
        if not self.exact_prompt:
            before = self.unpacked()
            seen = self.keys if before is None else torch.cat([before, self.keys], -2)
        return seen, self.values

    def _pack_old_blocks(self) -> None:
        """Pack the blocks that are older than the tail."""
        blocks = max(0, self.keys.shape[-2] - self.tail) // self.group
        if not blocks:
            return
        old, self.keys = self.keys[..., : blocks * self.group, :], self.keys[..., blocks * self.group :, :].clone()
        if self.basis is not None:
            old = (old.double() @ self.basis.to(old.device).mT).float()
        batch, heads, _, size = old.shape
        by_block = old.reshape(batch, heads, blocks, self.group, size).float()
        grid = key_grid(by_block, self.bits.to(old.device)[:, None, None, :], stored=True)
        codes = grid.codes(by_block).to(torch.uint8).permute(0, 1, 4, 2, 3).reshape(batch, heads * size, -1)
        planes = (codes[:, self.channel.to(old.device)] >> self.place.to(old.device)[:, None].to(torch.uint8)) & 1
        weights = torch.tensor([1 << i for i in range(8)], dtype=torch.uint8, device=old.device)
        packed = (planes.reshape(batch, len(self.channel), -1, 8) * weights).sum(-1, dtype=torch.uint8)
        low, step = (
            part[:, :, :, 0].transpose(2, 3).reshape(batch, heads * size, blocks) for part in (grid.low, grid.step)
        )
        if self.packed is None or self.low is None or self.step is None:
            self.packed, self.low, self.step = packed, low.contiguous(), step.contiguous()
        else:
            self.packed, self.low, self.step = (
                torch.cat(pair, -1) for pair in ((self.packed, packed), (self.low, low), (self.step, step))
            )

    def unpacked(self) -> Tensor | None:
        """The keys of the packed blocks, (batch, key heads, tokens, size); None if there are none."""
        if self.packed is None or self.low is None or self.step is None:
            return None
        device, batch = self.packed.device, len(self.packed)
        heads, size = self.bits.shape
        places = torch.arange(8, dtype=torch.uint8, device=device)
        planes = ((self.packed[..., None] >> places) & 1).flatten(-2)
        codes = torch.zeros(batch, heads * size, planes.shape[-1], dtype=torch.uint8, device=device)
        codes.index_add_(1, self.channel.to(device), planes << self.place.to(device)[:, None].to(torch.uint8))
        low, step = (part.float().repeat_interleave(self.group, -1) for part in (self.low, self.step))
        found = (low + codes * step).reshape(batch, heads, size, -1).mT
        if self.inverse is not None:
            found = found.double() @ self.inverse.to(device).mT
        return found.to(self.dtype)

    def get_seq_length(self, *args: Any) -> int:
        """Tokens in the cache."""
        return 0 if not self.is_initialized or self.values.numel() == 0 else int(self.values.shape[-2])

    def key_bytes(self) -> int:
        """Bytes that the keys occupy in memory: codes, grids, and the whole keys of the last tokens."""
        held = [part for part in (self.packed, self.low, self.step, self.keys) if part is not None]
        return sum(part.untyped_storage().nbytes() for part in held)

    def reset(self) -> None:
        """Forget all tokens."""
        self.packed = self.low = self.step = None
        if self.is_initialized:
            self.keys, self.values = self.keys[..., :0, :].clone(), self.values[..., :0, :].clone()

    def crop(self, *args: Any) -> None:
        """Refused: rounded tokens cannot be made whole again, which decoding with an assistant would need."""
        raise QkvError(REQUEST, "tokens were to be taken back", "Generate without an assistant model")

    def _each_part(self, change: Any) -> None:
        for name in ("packed", "low", "step", "keys", "values"):
            part = getattr(self, name)
            if part is not None:
                setattr(self, name, change(part))

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Follow the beams of a beam search."""
        if self.get_seq_length():
            self._each_part(lambda part: part.index_select(0, beam_idx.to(part.device)))

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat each text of the batch."""
        if self.get_seq_length():
            self._each_part(lambda part: part.repeat_interleave(repeats, 0))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep some texts of the batch."""
        if self.get_seq_length():
            self._each_part(lambda part: part[indices, ...])


PackedKeyLayer.is_croppable = False


class QuantisedCache(Cache):
    """A transformers cache whose keys are stored in few bits; `quantised_cache` makes one.

    Args:
        bits: Bits of each channel, (layers, key heads, size).
        basis: The basis whose coordinates are stored, (layers, key heads, size, size), or None.
        tail: Tokens whose keys are kept whole, at least.
        group: Tokens of a block, a multiple of 8.
        exact_prompt: Whether tokens of one forward pass see each other's keys whole.
    """

    def __init__(self, bits: Tensor, basis: Tensor | None, tail: int, group: int, exact_prompt: bool) -> None:
        self.bits, self.tail, self.group = bits.long(), tail, group
        super().__init__(
            layers=[
                PackedKeyLayer(own, None if basis is None else basis[layer], tail, group, exact_prompt)
                for layer, own in enumerate(bits)
            ]
        )

    def key_bytes(self) -> int:
        """Bytes that the keys occupy in memory."""
        return sum(layer.key_bytes() for layer in self._packed_layers())

    def whole_key_bytes(self) -> int:
        """Bytes that the keys would occupy without packing, in the model's own type: as many as the values."""
        filled = [layer for layer in self._packed_layers() if layer.get_seq_length()]
        return sum(layer.values.numel() * layer.values.element_size() for layer in filled)

    def _packed_layers(self) -> list[PackedKeyLayer]:
        return [layer for layer in self.layers if isinstance(layer, PackedKeyLayer)]

    def promised_key_bytes(self, tokens: int, *, batch: int = 1, entry_bytes: int = 4) -> int:
        """Bytes of the keys of so many tokens: bits / 8 of each entry of a packed block, 4 for each channel of a block,
        and whole entries for the tokens that are no block yet.

        Args:
            tokens: Tokens of each text.
            batch: Number of texts.
            entry_bytes: Bytes of a whole entry: 4 in float32, 2 in float16 and bfloat16.
        """
        blocks = max(0, tokens - self.tail) // self.group
        channels = self.bits.numel()
        packed = blocks * self.group * int(self.bits.sum()) // 8 + blocks * channels * 2 * HALF.itemsize
        return batch * (packed + (tokens - blocks * self.group) * channels * entry_bytes)


def quantised_cache(
    model: Any,
    bits: int | Allocation | str | Path,
    *,
    tail: int = 32,
    group: int = 128,
    exact_prompt: bool = True,
    any_model: bool = False,
) -> QuantisedCache:
    """A key-value cache of few bits for a model: `model.generate(…, past_key_values=quantised_cache(model, 4))`.

    Args:
        model: A transformers model, or an AttentionModel.
        bits: Bits of every channel from 1 to 8, or an allocation, or the file of one.
        tail: The last tokens, whose keys are kept whole.
        group: Tokens of a block that share a grid, a multiple of 8.
        exact_prompt: Whether tokens of one forward pass, such as a prompt, see each other's keys whole. Without, a
            prompt sees its own rounded keys, as a measurement of the rounding needs.
        any_model: Whether to take an allocation that was made for a model with other weights, such as one that was
            finetuned since; what its card says was not measured on this one.

    Returns:
        An empty cache.

    Raises:
        QkvError: Bits are out of range, the file is damaged, the allocation is for a model with other heads or other
            weights, or the model's tokens see those that come after them.
        MissingExtra: transformers is not installed.

    Example:
        >>> import qkv
        >>> model = qkv.heads.open("models/smollm2")  # doctest: +SKIP
        >>> cache = qkv.heads.quantised_cache(model, "bits.json")  # doctest: +SKIP
        >>> model.model.generate(ids, past_key_values=cache)  # doctest: +SKIP
    """
    shape = _shape(model)
    inner = model.model if isinstance(model, AttentionModel) else model
    _check_every_layer(inner, shape)
    tail, group = whole(REQUEST, "tail", tail, 0), whole(REQUEST, "group", group, 8)
    if group % 8:
        raise QkvError(REQUEST, f"group is {group}", "Give a multiple of 8")
    if isinstance(bits, str | Path):
        bits = Allocation.load(bits)
    if isinstance(bits, Allocation):
        check_shape(REQUEST, bits, shape)
        if not any_model:
            check_model(REQUEST, bits, inner)
        return QuantisedCache(bits.bits, bits.basis, tail, group, bool(exact_prompt))
    if isinstance(bits, bool) or not isinstance(bits, int):
        problem = f"bits is {kind_of(bits)}"
        raise QkvError(REQUEST, problem, f"Give a number from 1 to {MAX_BITS}, an allocation or its file")
    (even,) = checked_bits(REQUEST, bits)
    every = torch.full((shape.layers, shape.key_heads, shape.size), even)
    return QuantisedCache(every, None, tail, group, bool(exact_prompt))


def _check_every_layer(model: Any, shape: HeadShape) -> None:
    """Refuse models some of whose layers keep something else than keys and values."""
    layers = getattr(model.config, "num_hidden_layers", shape.layers)
    if layers != shape.layers:
        problem = f"{shape.layers} of the model's {layers} layers have attention, the others keep another state"
        raise QkvError(REQUEST, problem, "Use a model whose layers all have attention")


def _causal(model: AttentionModel) -> AttentionModel:
    if not model.causal:
        problem = f"in {model.name} each token sees all, so that nothing is generated and no keys are kept"
        raise QkvError(REQUEST, problem, "Give a model that generates text")
    return model


def _shape(model: Any) -> HeadShape:
    if isinstance(model, AttentionModel):
        return _causal(model).shape
    if not isinstance(model, torch.nn.Module) or not hasattr(model, "config"):
        problem = f"the model is {kind_of(model)}"
        raise QkvError(REQUEST, problem, "Give a transformers model or one of qkv.heads.open")
    training = model.training
    try:
        return _causal(from_transformers(model, None)).shape
    finally:
        model.train(training)
