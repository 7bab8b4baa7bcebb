"""NumpyGPT: inference without torch, for a process that has one question to answer.

Importing torch takes longer than an answer. So this module imports NumPy alone, and has its own versions of what
`core/rotary.py`, `core/attention.py` and `model/layers.py` do with torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkv.errors import QkvError
from qkv.model.config import ModelConfig

Array = np.ndarray
KV = tuple[Array, Array]
"""Keys and values (b, heads, t, head_dim) of one layer."""
# Abramowitz and Stegun 7.1.26: erf x = 1 - (a₁t + ... + a₅t⁵) e^(-x²) with t = 1/(1 + px), to 1.5e-7 for x ≥ 0.
ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
ERF_P = 0.3275911


@dataclass(frozen=True, eq=False)
class NumpyKVCache:
    """KV cache of sequences of one length: their tokens (b, t), and the keys and values of each layer."""

    tokens: Array
    layers: tuple[KV, ...]

    def select(self, rows: Array) -> NumpyKVCache:
        """The cache of these sequences; an index may occur more than once."""
        return NumpyKVCache(self.tokens[rows], tuple((k[rows], v[rows]) for k, v in self.layers))


class NumpyGPT:
    """A GPT with its weights as NumPy arrays; all sequences of a batch have one length."""

    def __init__(self, config: ModelConfig, weights: Mapping[str, Array]) -> None:
        expected, given = shapes(config), {name: tuple(array.shape) for name, array in weights.items()}
        wrong = sorted(name for name in {*expected, *given} if expected.get(name) != given.get(name))
        if wrong:
            raise QkvError(
                "opening a model",
                f"{wrong[0]} has shape {given.get(wrong[0])}, not {expected.get(wrong[0])}",
                "Give the weights of this configuration, or restore both from a copy",
            )
        self.config, self.weights = config, dict(weights)
        self.head = self.weights["embedding.weight" if config.tie_embeddings else "head.weight"]
        d = config.head_dim
        angles = np.outer(np.arange(config.context_length), 1.0 / config.rope_theta ** (np.arange(0, d, 2) / d))
        self.cos, self.sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    @classmethod
    def from_torch(cls, model: Any) -> NumpyGPT:
        """The NumPy version of a GPT; weights that are float32 on a CPU are shared, not copied."""
        return cls(model.config, {name: p.detach().float().cpu().numpy() for name, p in model.named_parameters()})

    def forward(
        self, tokens: Array, past: NumpyKVCache | None = None, seen: list[Array] | None = None
    ) -> tuple[Array, NumpyKVCache]:
        """Final hidden states (b, t, d_model) of tokens (b, t) that continue `past`, and the new past.

        To `seen` are appended the attention weights (b, heads, t, positions) of each layer that attends tokens.
        """
        c = self.config
        start = past.tokens.shape[1] if past is not None else 0
        if start + tokens.shape[1] > c.context_length:
            raise QkvError(
                "running a model",
                f"a sequence has {start + tokens.shape[1]} tokens",
                f"The model's context length is {c.context_length}: give a shorter sequence",
            )
        all_tokens = tokens if past is None else np.concatenate((past.tokens, tokens), 1)
        if c.attention == "perceiver":  # no cache: all tokens are processed again
            return self._perceive(all_tokens, seen)[:, start:], NumpyKVCache(all_tokens, ())
        x = self._embed(tokens, start)
        layers = []
        attention = self._synthesizer if c.attention == "synthesizer" else self._self_attention
        for layer in range(c.n_layer):
            cached = past.layers[layer] if past is not None else None
            x, kv = attention(f"blocks.{layer}.", x, start, cached, seen)
            x = x + self._mlp(f"blocks.{layer}.", x)
            layers.append(kv)
        return self._norm("norm.", x), NumpyKVCache(all_tokens, tuple(layers))

    def log_probabilities(self, hidden: Array) -> Array:
        """Log-probabilities of the next token, in float64, from final hidden states."""
        logits = (hidden @ self.head.T).astype(np.float64)
        logits -= logits.max(-1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
        return logits

    def _embed(self, tokens: Array, start: int) -> Array:
        """Embeddings of tokens and of the positions from `start` on."""
        x = self.weights["embedding.weight"][tokens]
        places = self.weights.get("places.weight")
        return x if places is None else x + places[start : start + tokens.shape[1]]

    def _self_attention(
        self, block: str, x: Array, start: int, cached: KV | None, seen: list[Array] | None
    ) -> tuple[Array, KV]:
        """x plus causal self-attention, and the extended keys and values."""
        c = self.config
        heads = _split(self._linear(block + "attention.qkv.", self._norm(block + "norm1.", x)), c.head_dim)
        q, k, v = np.split(heads, (c.n_head, c.n_head + c.n_kv_head_effective), axis=1)
        if c.attention == "rope":
            cos, sin = (table[start : start + x.shape[1]] for table in (self.cos, self.sin))
            q, k = _rotate_half_split(q, cos, sin), _rotate_half_split(k, cos, sin)
        k, v = _extend(cached, k, v)
        shared = c.n_head // c.n_kv_head_effective
        repeated = (k, v) if shared == 1 else (np.repeat(k, shared, 1), np.repeat(v, shared, 1))
        out = _attend(q, *repeated, c.head_dim**-0.5, _causal(start, x.shape[1]), seen)
        return x + self._linear(block + "attention.out.", out), (k, v)

    def _synthesizer(
        self, block: str, x: Array, start: int, cached: KV | None, seen: list[Array] | None
    ) -> tuple[Array, KV]:
        """x plus the synthesizer's attention, whose scores come from the token and learned keys of positions."""
        c = self.config
        heads = _split(self._linear(block + "attention.qv.", self._norm(block + "norm1.", x)), c.head_dim)
        q, v = np.maximum(heads[:, : c.n_head], 0), heads[:, c.n_head :]
        _, v = _extend(cached, v, v)
        keys = self.weights[block + "attention.keys"][: v.shape[2]].transpose(1, 0, 2)
        q = np.concatenate((q, np.ones_like(q[..., :1])), -1)
        out = _attend(q, keys[None], v, 1.0, _causal(start, x.shape[1]), seen)
        return x + self._linear(block + "attention.out.", out), (v, v)

    def _perceive(self, tokens: Array, seen: list[Array] | None) -> Array:
        """Final hidden states of a perceiver: latents attend tokens, then each other, then tokens attend latents."""
        c, t = self.config, tokens.shape[1]
        x, n = self._embed(tokens, 0), max(1, t // c.stride)
        allowed = np.arange(t) < c.stride * np.arange(1, n + 1)[:, None]  # latent i: up to the last token that it owns
        z = np.broadcast_to(self.weights["latents.weight"][:n], (len(tokens), n, c.d_model))
        z = self._cross_block("blocks.0.", z, x, allowed, seen)
        for layer in range(1, c.n_layer - 1):
            z, _ = self._self_attention(f"blocks.{layer}.", z, 0, None, None)
            z = z + self._mlp(f"blocks.{layer}.", z)
        return self._norm("norm.", self._cross_block(f"blocks.{c.n_layer - 1}.", x, z, ~allowed.T, None))

    def _cross_block(self, block: str, x: Array, source: Array, allowed: Array, seen: list[Array] | None) -> Array:
        """A block whose attention goes from x to another set of vectors."""
        c = self.config
        q = _split(self._linear(block + "attention.q.", self._norm(block + "norm1.", x)), c.head_dim)
        kv = _split(self._linear(block + "attention.kv.", self._norm(block + "attention.norm.", source)), c.head_dim)
        out = _attend(q, kv[:, : c.n_head], kv[:, c.n_head :], c.head_dim**-0.5, allowed, seen)
        x = x + self._linear(block + "attention.out.", out)
        return x + self._mlp(block, x)

    def _mlp(self, block: str, x: Array) -> Array:
        hidden = self._linear(block + "mlp.wide.", self._norm(block + "norm2.", x))
        if self.config.attention == "rope":
            gate, value = np.split(hidden, 2, -1)
            hidden = gate / (1 + np.exp(-np.maximum(gate, -80.0))) * value  # e^80 is finite in float32
        elif self.config.activation == "gelu_tanh":
            inner = np.float32((2 / np.pi) ** 0.5) * (hidden + np.float32(0.044715) * hidden**3)
            hidden = 0.5 * hidden * (1 + np.tanh(inner))
        else:
            hidden = 0.5 * hidden * (1 + _erf(hidden * np.float32(0.5**0.5)))
        return self._linear(block + "mlp.out.", hidden)

    def _linear(self, name: str, x: Array) -> Array:
        y = x @ self.weights[name + "weight"].T
        bias = self.weights.get(name + "bias")
        return y if bias is None else y + bias

    def _norm(self, name: str, x: Array) -> Array:
        """LayerNorm, or RMSNorm for `rope`."""
        eps, weight, bias = self.config.norm_eps, self.weights[name + "weight"], self.weights.get(name + "bias")
        if self.config.attention != "rope":
            x = x - x.mean(-1, keepdims=True)
        y = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + np.float32(eps)) * weight
        return y if bias is None else y + bias


def shapes(c: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the weights of a model with this configuration."""
    rope = c.attention == "rope"
    bias = c.bias and not rope
    out: dict[str, tuple[int, ...]] = {"embedding.weight": (c.vocab_size, c.d_model)}

    def linear(name: str, rows: int, columns: int) -> None:
        out[f"{name}.weight"] = (rows, columns)
        if bias:
            out[f"{name}.bias"] = (rows,)

    def norm(name: str) -> None:
        out.update({f"{name}.{part}": (c.d_model,) for part in ("weight", "bias")[: 1 + bias]})

    if not c.tie_embeddings:
        out["head.weight"] = (c.vocab_size, c.d_model)
    if not rope:
        out["places.weight"] = (c.context_length, c.d_model)
    if c.attention == "perceiver":
        out["latents.weight"] = (c.latents, c.d_model)
    norm("norm")
    for layer in range(c.n_layer):
        at, edge = f"blocks.{layer}", layer in (0, c.n_layer - 1)
        if c.attention == "synthesizer":
            linear(f"{at}.attention.qv", 2 * c.d_model, c.d_model)
            out[f"{at}.attention.keys"] = (c.context_length, c.n_head, c.head_dim + 1)
        elif c.attention == "perceiver" and edge:
            linear(f"{at}.attention.q", c.d_model, c.d_model)
            norm(f"{at}.attention.norm")
            linear(f"{at}.attention.kv", 2 * c.d_model, c.d_model)
        else:
            linear(f"{at}.attention.qkv", (c.n_head + 2 * c.n_kv_head_effective) * c.head_dim, c.d_model)
        for name, rows, columns in (
            ("attention.out", c.d_model, c.d_model),
            ("mlp.wide", (1 + rope) * c.d_ff_effective, c.d_model),
            ("mlp.out", c.d_model, c.d_ff_effective),
        ):
            linear(f"{at}.{name}", rows, columns)
        norm(f"{at}.norm1")
        norm(f"{at}.norm2")
    return out


def _attend(q: Array, k: Array, v: Array, scale: float, allowed: Array, seen: list[Array] | None) -> Array:
    """Outputs (b, m, d_model) of queries (b, heads, m, d), heads side by side; zero where nothing is allowed."""
    scores = np.where(allowed, (q @ k.swapaxes(-1, -2)) * np.float32(scale), np.float32(-np.inf))
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    weights /= np.maximum(weights.sum(-1, keepdims=True), np.float32(1e-30))
    if seen is not None:
        seen.append(weights)
    out = weights @ v
    return out.swapaxes(1, 2).reshape(len(out), out.shape[2], -1)


def _split(x: Array, head_dim: int) -> Array:
    """(b, heads, t, head_dim) from (b, t, heads · head_dim)."""
    return x.reshape(*x.shape[:2], -1, head_dim).swapaxes(1, 2)


def _rotate_half_split(x: Array, cos: Array, sin: Array) -> Array:
    """Rotary positions, as `core/rotary.py` applies them: each pair (x_c, x_{c+d/2}) rotated."""
    first, second = np.split(x, 2, -1)
    return np.concatenate((first * cos - second * sin, first * sin + second * cos), -1)


def _extend(cached: KV | None, k: Array, v: Array) -> KV:
    """Cached keys and values followed by new ones."""
    return (k, v) if cached is None else (np.concatenate((cached[0], k), 2), np.concatenate((cached[1], v), 2))


def _causal(start: int, n: int) -> Array:
    """Mask (n, start + n): the positions that each of n new tokens, from `start` on, attends."""
    return np.arange(start + n) <= np.arange(start, start + n)[:, None]


def _erf(x: Array) -> Array:
    """The error function to 1.5e-7; scipy.special, which has it, would take longer to import than an answer takes."""
    t = 1 / (1 + np.float32(ERF_P) * np.abs(x))
    series = t * 0
    for a in reversed(ERF):
        series = (series + np.float32(a)) * t
    return np.sign(x) * (1 - series * np.exp(-x * x))
