"""One adapter for every family: an attention function that transformers calls in place of its own.

The function is registered twice, as attention and as mask: without the second, transformers passes no mask, and the
model silently looks ahead. The computation itself is left to the family's own eager function, so nothing in the
model's output changes; the adapter hands what went in and what came out to a tap.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from qkv.errors import QkvError

NAME = "qkv_heads"
"""The name under which the attention function is registered with transformers."""


@dataclass(frozen=True)
class AttentionCall:
    """What one attention layer computed from; numbers of a model in half precision are widened to float32.

    Attributes:
        layer: Which layer, from 0.
        query: (batch, heads, tokens, size), after rotation.
        key: (batch, key heads, tokens, size), after rotation.
        value: (batch, key heads, tokens, size).
        mask: Added to the scores, broadcast over heads; None if every token sees every token.
        scaling: The factor in front of query · key.
        softcap: Scores are softcap · tanh(score / softcap); None without.
        sinks: A score of each head that takes weight and has no value; None without.
        weights: (batch, heads, tokens, tokens), as the model computed them.
    """

    layer: int
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    scaling: float
    softcap: float | None
    sinks: Tensor | None
    weights: Tensor

    @property
    def groups(self) -> int:
        """How many heads share one key head."""
        return self.query.shape[1] // self.key.shape[1]

    def scores(self, key: Tensor | None = None) -> Tensor:
        """Scores before the softmax, of the given keys or of the model's own; -inf where a token may not look."""
        return self.scores_and_plain(key)[0]

    def scores_and_plain(self, key: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Scores as in `scores`, and without the soft cap: the same tensor if there is none.

        A cap keeps the order of scores, but large ones are equal after it in floating point.
        """
        keys = per_head(self.key if key is None else key, self.groups)
        found = self.query @ keys.transpose(-1, -2) * self.scaling
        plain = self._masked(found)
        if self.softcap is None:
            return plain, plain
        return self._masked(self.capped(found)), plain

    def capped(self, scores: Tensor) -> Tensor:
        """Scores with the soft cap; as they are where there is none, or a token may not look."""
        if self.softcap is None:
            return scores
        return torch.where(scores.isneginf(), scores, self.softcap * torch.tanh(scores / self.softcap))

    def _masked(self, found: Tensor) -> Tensor:
        """Scores with the mask added; -inf where a token may not look."""
        if self.mask is not None:
            mask = self.mask[..., : found.shape[-1]]
            hidden = ~mask if mask.dtype == torch.bool else mask <= torch.finfo(mask.dtype).min / 2
            found = (found if mask.dtype == torch.bool else found + mask).masked_fill(hidden, -torch.inf)
        return found

    def has_bias(self) -> bool:
        """Whether something is added to the scores of tokens that are seen, such as a bias for each distance."""
        if self.mask is None or self.mask.dtype == torch.bool:
            return False
        return bool(((self.mask > torch.finfo(self.mask.dtype).min / 2) & (self.mask != 0)).any())

    def softmax(self, scores: Tensor) -> Tensor:
        """Weights of scores, with the part of the sinks left out."""
        if self.sinks is None:
            return scores.softmax(-1)
        sinks = self.sinks.to(scores.dtype).reshape(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        return torch.cat([scores, sinks], -1).softmax(-1)[..., :-1]


Tap = Callable[[AttentionCall], None]
OutputChange = Callable[[int, Tensor], Tensor]
KeyChange = Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]]


def _is_array(option: Any) -> bool:
    return isinstance(option, Tensor) and option.is_floating_point()


def widened(numbers: Tensor) -> Tensor:
    """Numbers of half precision in float32, which holds them exactly; others as they are."""
    return numbers.float() if numbers.dtype in (torch.float16, torch.bfloat16) else numbers


def per_head(keys: Tensor, groups: int) -> Tensor:
    """Keys or values of each head, from those of each key head."""
    return keys.repeat_interleave(groups, 1) if groups > 1 else keys


class Adapter:
    """The attention of one model, watched and changed.

    Args:
        model: A transformers model whose layers use the attention interface.

    Raises:
        QkvError: The model computes its attention in another way, so that nothing could be seen of it.
    """

    def __init__(self, model: nn.Module) -> None:
        if not model._can_set_attn_implementation():  # type: ignore[operator]
            raise QkvError(
                f"watching the attention of {type(model).__name__}",
                "its family computes attention in code of its own, not through the attention interface of transformers",
                "Open a model of a family that uses the interface, such as Llama, Qwen, Mistral, GPT-2 or BERT",
            )
        self.model = model
        self.tap: Tap | None = None
        self.change_keys: KeyChange | None = None
        self.change_output: OutputChange | None = None
        self.modules: list[nn.Module] = []
        self.additions: set[str] = set()  # what a family's function takes beside queries, keys, values, mask and sinks
        self._lock = threading.RLock()

    @contextmanager
    def attached(
        self, tap: Tap | None = None, *, keys: KeyChange | None = None, output: OutputChange | None = None
    ) -> Iterator[None]:
        """While open, the model's attention goes through this adapter.

        Args:
            tap: Called with each layer's AttentionCall, in the order of the layers.
            keys: Gives the keys and values of a layer to compute with, from the model's own.
            output: Gives the outputs of a layer's heads, (batch, tokens, heads, size), from the model's own.
        """
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import eager_mask

        AttentionInterface.register(NAME, _attention)
        AttentionMaskInterface.register(NAME, eager_mask)
        with self._lock:
            before: str = self.model.config._attn_implementation  # type: ignore[union-attr, assignment]
            self.tap, self.change_keys, self.change_output = tap, keys, output
            for module in self.model.modules():
                _OWNERS[module] = self
            self.model.set_attn_implementation(NAME)  # type: ignore[operator]
            try:
                yield
            finally:
                self.model.set_attn_implementation(before)  # type: ignore[operator]
                self.tap = self.change_keys = self.change_output = None

    def __call__(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
    ) -> tuple[Tensor, Tensor]:
        if module not in self.modules:
            self.modules.append(module)  # layers run in their order, so the first call gives the number of the layer
        layer = self.modules.index(module)
        if self.change_keys is not None:
            key, value = self.change_keys(layer, key, value)
        output, weights = _eager(module)(module, query, key, value, mask, **options)
        if self.tap is not None:
            self.additions |= {n for n, v in options.items() if _is_array(v) and n != "s_aux"}
            scaling, sinks = options.get("scaling"), options.get("s_aux")
            self.tap(
                AttentionCall(
                    layer,
                    widened(query),
                    widened(key),
                    widened(value),
                    mask,
                    query.shape[-1] ** -0.5 if scaling is None else float(scaling),
                    options.get("softcap"),
                    None if sinks is None else widened(sinks.detach()),
                    widened(weights),
                )
            )
        if self.change_output is not None:
            output = self.change_output(layer, output)
        return output, weights


_OWNERS: weakref.WeakKeyDictionary[nn.Module, Adapter] = weakref.WeakKeyDictionary()


def _attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, Tensor]:
    return _OWNERS[module](module, query, key, value, attention_mask, **options)


def _eager(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor]]:
    """The eager attention function of the family that a module belongs to."""
    for cls in type(module).__mro__:
        home = sys.modules.get(cls.__module__)
        found = getattr(home, "eager_attention_forward", None)
        if found is not None:
            return found
    raise QkvError(
        f"watching the attention of {type(module).__name__}",
        "its family has no eager attention function",
        "Open a model whose family uses the attention interface of transformers, such as Llama, Qwen or GPT-2",
    )
