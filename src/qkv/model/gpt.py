"""GPT and Block: from tokens to logits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from qkv.core.kernels import stores_weights
from qkv.errors import QkvError, kind_of
from qkv.model.attention import Source, Synthesizer, make_attention
from qkv.model.config import ModelConfig
from qkv.model.kv_cache import KVCache
from qkv.model.layers import RMSNorm, dropout, norm, select_rows
from qkv.model.linear import Linear
from qkv.model.mlp import MLP, SwiGLU
from qkv.model.packed_sequences import PackedLayout

INIT_STD = 0.02  # standard deviation of initial weights, as in GPT-2


class GPT(nn.Module):
    """A decoder-only Transformer whose attention is chosen by its configuration.

    `causal` is built as GPT-2 and `rope` as Llama; `synthesizer` has attention weights that depend on positions only;
    `perceiver` passes the sequence through a few latents.

    Args:
        config: sizes and attention; `vocab_size` must be set.

    Attributes:
        config: the configuration that it was built from.
        blocks: the Transformer blocks, in order.

    Example:
        >>> import torch
        >>> from qkv.model import GPT, ModelConfig
        >>> model = GPT(ModelConfig(attention="rope", n_layer=2, n_head=2, d_model=16, vocab_size=50)).eval()
        >>> tokens = torch.tensor([[1, 2, 3], [4, 5, 6]])
        >>> model(tokens).shape  # logits of the next token after each token
        torch.Size([2, 3, 50])
        >>> sum(p.numel() for p in model.parameters())
        7536
    """

    def __init__(self, config: ModelConfig) -> None:
        if not isinstance(config, ModelConfig):
            problem = f"the configuration is {kind_of(config)}"
            raise QkvError("making a model", problem, "Give a qkv.model.ModelConfig")
        config.check_memory()
        super().__init__()
        self.config = c = config
        self.embedding = nn.Embedding(c.vocab_size, c.d_model)
        self.places = None if c.attention == "rope" else nn.Embedding(c.context_length, c.d_model)
        self.latents = nn.Embedding(c.latents, c.d_model) if c.attention == "perceiver" else None
        self.blocks: Any = nn.ModuleList(Block(c, make_attention(c, layer)) for layer in range(c.n_layer))
        self.norm = norm(c)
        self.head = Linear(c.d_model, c.vocab_size, bias=False)
        if c.tie_embeddings:
            self.head.weight = self.embedding.weight
        self.apply(partial(_initialise, n_layer=c.n_layer))

    def forward(
        self,
        tokens: Tensor,
        layout: PackedLayout | None = None,
        keep: Tensor | None = None,
        targets: Tensor | None = None,
        cache: Sequence[KVCache] | None = None,
    ) -> Tensor:
        """Logits of the next token, or the loss.

        Args:
            tokens: a batch (b, t) of sequences of one length, or with `layout` packed sequences (N,).
            layout: how packed sequences lie end to end.
            keep: indices of the packed tokens whose logits are wanted; the last block computes no others.
            targets: the next token after each kept token, -1 for none.
            cache: KV caches of all layers (`GPT.cache`), to read from and append to.

        Returns:
            Logits (*tokens.shape, vocab_size), or (len(keep), vocab_size) with `keep`; with `targets`, the sum of
            the cross-entropies.

        Raises:
            QkvError: if a sequence is longer than `config.context_length`.
        """
        if layout is None:
            layout = PackedLayout([(tokens.shape[0], tokens.shape[1])]).to(tokens.device)
        logits = self.head(self.hidden(tokens.flatten(), layout, keep, cache))
        if targets is not None:
            logits = logits.float() if logits.dtype == torch.bfloat16 else logits
            return F.cross_entropy(logits, targets, ignore_index=-1, reduction="sum")
        return logits if keep is not None else logits.view(*tokens.shape, -1)

    def hidden(
        self, tokens: Tensor, layout: PackedLayout, keep: Tensor | None = None, cache: Sequence[KVCache] | None = None
    ) -> Tensor:
        """The final hidden states (N, d_model) of packed tokens, or those of the tokens in `keep`."""
        if layout.max_length > self.config.context_length:
            raise QkvError(
                "running a model",
                f"the longest sequence has {layout.max_length} tokens",
                f"The model's context length is {self.config.context_length}: give shorter sequences",
            )
        # Embed tokens and positions; `rope` rotates queries and keys by position instead.
        x = self.embedding(tokens)
        if self.places is not None:
            x = x + self.places(layout.positions)
        if self.training:
            x = dropout(x, self.config.dropout)
        # The blocks; only the last one can leave out the tokens that are not in `keep`.
        caches: Sequence[KVCache | None] = cache or [None] * len(self.blocks)
        if self.latents is not None:
            x = self._perceive(x, layout, caches, keep)
        else:
            last = len(self.blocks) - 1
            for i, (block, layer_cache) in enumerate(zip(self.blocks, caches, strict=True)):
                x = block(x, layout, layer_cache, keep=keep if i == last else None)
        return self.norm(x)

    def _perceive(
        self, x: Tensor, layout: PackedLayout, caches: Sequence[KVCache | None], keep: Tensor | None
    ) -> Tensor:
        """The blocks of a perceiver: the first reads tokens into latents, the last reads latents back into tokens."""
        assert self.latents is not None
        read_in, *inner_blocks, read_out = self.blocks
        stride = self.config.stride
        keys_values = read_in.attention.keys_values(x, layout, caches[0])
        # Which latents are computed, which tokens they attend, and which latents the tokens attend afterwards.
        if layout.is_step:
            # A latent is computed in the step that brings the last of its tokens: only in some of the sequences.
            ready = ((layout.positions + 1) % stride == 0).nonzero()[:, 0]
            latents = PackedLayout.decoding_step(layout.positions[ready] // stride, ready)
            attended_tokens = PackedLayout.decoding_step(layout.positions[ready], ready)
            attended_latents = PackedLayout.decoding_step(layout.positions // stride - 1)
        else:
            # No shape may be empty: a sequence too short to fill a latent gets one, which no token attends.
            latents = PackedLayout((b, max(1, t // stride)) for b, t in layout.shapes).to(layout.device)
            attended_tokens, attended_latents = layout, latents
        # Latents attend tokens, then each other.
        results = None
        if len(latents.positions):
            z = read_in(self.latents(latents.positions), latents, caches[0], Source(keys_values, attended_tokens))
            for block, cache in zip(inner_blocks, caches[1:-1], strict=True):
                z = block(z, latents, cache)
            results = read_out.attention.keys_values(z, latents, caches[-1])
        # Tokens attend latents.
        return read_out(x, layout, caches[-1], Source(results, attended_latents), keep)

    @property
    def packs_any_lengths(self) -> bool:
        """Whether batches of many different lengths cost no more than batches of few lengths.

        That is so for the ragged kernel; torch's fused kernel is called once for each length.
        """
        c = self.config
        return c.attention in ("causal", "rope") and stores_weights(self.embedding.weight.device, c.context_length)

    def cache(self, n_sequences: int, n_positions: int) -> list[KVCache]:
        """Empty KV caches, one for each layer, to decode `n_sequences` sequences of up to `n_positions` tokens."""
        c = self.config
        # A perceiver's first layer caches tokens, the others latents.
        later = n_positions if self.latents is None else max(1, n_positions // c.stride)
        return [
            KVCache(n_sequences, n, c.n_kv_head_effective, c.head_dim, self.embedding.weight)
            for n in (n_positions, *[later] * (c.n_layer - 1))
        ]


class Block(nn.Module):
    """Pre-norm Transformer block: attention, then an MLP, each with a residual connection."""

    def __init__(self, config: ModelConfig, attention: nn.Module) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.norm1, self.attention = norm(config), cast(Any, attention)
        self.norm2, self.mlp = norm(config), (SwiGLU if config.attention == "rope" else MLP)(config)

    def forward(
        self,
        x: Tensor,
        layout: PackedLayout,
        cache: KVCache | None = None,
        source: Source | None = None,
        keep: Tensor | None = None,
    ) -> Tensor:
        rate = self.dropout if self.training else 0.0
        # Attention. With `keep`, no later block attends the other tokens: from here on only the kept ones are computed.
        heads = self.attention(self.norm1(x), layout, cache, source, keep)
        x = select_rows(x, keep) + dropout(self.attention.out(heads), rate)
        # MLP, token by token.
        return x + dropout(self.mlp(self.norm2(x)), rate)


def compile_parts(model: nn.Module) -> None:
    """Compile norms and MLPs with torch.compile, once for any number of tokens.

    The lengths in a packed batch are new in every step, so compiled attention would be recompiled in every step.
    """
    for part in model.modules():
        if isinstance(part, MLP | SwiGLU | RMSNorm | nn.LayerNorm):
            part.compile(dynamic=True)


def _initialise(module: nn.Module, n_layer: int) -> None:
    """Normal weights, zero biases; projections into the residual stream are smaller, by the number that adds to it."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=INIT_STD)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
    if isinstance(module, Synthesizer):
        nn.init.normal_(module.keys, std=INIT_STD)
    if isinstance(module, Block):
        for out in cast(Any, (module.attention.out, module.mlp.out)):
            nn.init.normal_(out.weight, std=INIT_STD / math.sqrt(2 * n_layer))
