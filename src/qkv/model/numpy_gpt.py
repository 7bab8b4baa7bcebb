"""The same model in NumPy: for a process that has one question to ask, and no time to import torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkv.errors import QkvError
from qkv.model.config import ModelConfig

Array = np.ndarray
# Abramowitz and Stegun 7.1.26: erf x = 1 - (a₁t + ... + a₅t⁵) e^(-x²) with t = 1/(1 + px), to 1.5e-7 for x ≥ 0.
ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
ERF_P = 0.3275911


@dataclass(frozen=True, eq=False)
class Past:
    """What was read so far, of sequences of one length: tokens (b, t), and keys and values of each layer."""

    tokens: Array
    layers: tuple[tuple[Array, Array], ...]

    def pick(self, rows: Array) -> Past:
        """The past of these sequences; some may come more than once."""
        return Past(self.tokens[rows], tuple((k[rows], v[rows]) for k, v in self.layers))


class NumpyGPT:
    """A model's configuration and weights as arrays, and how to read with them; sequences have one length."""

    def __init__(self, config: ModelConfig, weights: Mapping[str, Array]) -> None:
        wanted, came = shapes(config), {name: tuple(array.shape) for name, array in weights.items()}
        wrong = sorted(name for name in {*wanted, *came} if wanted.get(name) != came.get(name))
        if wrong:
            raise QkvError(
                "opening a model",
                f"{wrong[0]} has shape {came.get(wrong[0])}, not {wanted.get(wrong[0])}",
                "Give the weights of this configuration, or restore both from a copy",
            )
        self.config, self.weights = config, dict(weights)
        self.head = self.weights["embedding.weight" if config.tie_embeddings else "head.weight"]
        size = config.head_dim
        angles = np.outer(np.arange(config.context_length), 1.0 / config.rope_theta ** (np.arange(0, size, 2) / size))
        self.turns = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    @classmethod
    def of(cls, model: Any) -> NumpyGPT:
        """A GPT's own weights, without a copy where they are float32 in main memory."""
        return cls(model.config, {name: p.detach().float().cpu().numpy() for name, p in model.named_parameters()})

    def read(self, tokens: Array, past: Past | None = None, seen: list[Array] | None = None) -> tuple[Array, Past]:
        """The vectors (b, t, width) from which logits are read, of tokens (b, t) after a past; and the new past.

        Onto `seen` come the weights (b, heads, t, places) of each layer whose queries read tokens.
        """
        c = self.config
        start = past.tokens.shape[1] if past is not None else 0
        if start + tokens.shape[1] > c.context_length:
            raise QkvError(
                "running a model",
                f"a sequence has {start + tokens.shape[1]} tokens",
                f"The model holds {c.context_length}",
            )
        every = tokens if past is None else np.concatenate((past.tokens, tokens), 1)
        if c.attention == "perceiver":  # its latents remember too little to go on from: it reads everything again
            return self._through_latents(every, seen)[:, start:], Past(every, ())
        x = self._embedded(tokens, start)
        layers = []
        for layer in range(c.n_layer):
            attend = self._by_places if c.attention == "synthesizer" else self._by_contents
            before = past.layers[layer] if past is not None else None
            x, kept = attend(f"blocks.{layer}.", x, start, before, seen)
            x = x + self._mlp(f"blocks.{layer}.", x)
            layers.append(kept)
        return self._norm("norm.", x), Past(every, tuple(layers))

    def logs(self, hidden: Array) -> Array:
        """Log-probabilities of the next token, in float64, from the vectors that `read` gives."""
        logits = (hidden @ self.head.T).astype(np.float64)
        logits -= logits.max(-1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
        return logits

    def _embedded(self, tokens: Array, start: int) -> Array:
        x = self.weights["embedding.weight"][tokens]
        places = self.weights.get("places.weight")
        return x if places is None else x + places[start : start + tokens.shape[1]]

    def _by_contents(
        self, at: str, x: Array, start: int, before: tuple[Array, Array] | None, seen: list[Array] | None
    ) -> tuple[Array, tuple[Array, Array]]:
        """Self-attention; with rope, queries and keys are turned by their places."""
        c = self.config
        each = _split(self._linear(at + "attention.qkv.", self._norm(at + "norm1.", x)), c.head_dim)
        q, k, v = (
            each[:, : c.n_head],
            each[:, c.n_head : c.n_head + c.n_kv_head_effective],
            each[:, c.n_head + c.n_kv_head_effective :],
        )
        if c.attention == "rope":
            cos, sin = (table[start : start + x.shape[1]] for table in self.turns)
            q, k = _turned(q, cos, sin), _turned(k, cos, sin)
        k, v = _longer(before, k, v)
        groups = c.n_head // c.n_kv_head_effective
        wide = (k, v) if groups == 1 else (np.repeat(k, groups, 1), np.repeat(v, groups, 1))
        read = _read(q, *wide, c.head_dim**-0.5, _causal(start, x.shape[1]), seen)
        return x + self._linear(at + "attention.out.", read), (k, v)

    def _by_places(
        self, at: str, x: Array, start: int, before: tuple[Array, Array] | None, seen: list[Array] | None
    ) -> tuple[Array, tuple[Array, Array]]:
        """The synthesizer's: scores from the token alone, one for each place."""
        c = self.config
        each = _split(self._linear(at + "attention.qv.", self._norm(at + "norm1.", x)), c.head_dim)
        q, v = np.maximum(each[:, : c.n_head], 0), each[:, c.n_head :]
        _, v = _longer(before, v, v)
        keys = self.weights[at + "attention.keys"][: v.shape[2]].transpose(1, 0, 2)
        q = np.concatenate((q, np.ones_like(q[..., :1])), -1)
        read = _read(q, keys[None], v, 1.0, _causal(start, x.shape[1]), seen)
        return x + self._linear(at + "attention.out.", read), (v, v)

    def _through_latents(self, tokens: Array, seen: list[Array] | None) -> Array:
        """The perceiver's: tokens into latents, latents among themselves, latents back out to tokens."""
        c, t = self.config, tokens.shape[1]
        x, n = self._embedded(tokens, 0), max(1, t // c.stride)
        owned = np.arange(t) < c.stride * np.arange(1, n + 1)[:, None]  # latent i sees what comes up to its last token
        z = np.broadcast_to(self.weights["latents.weight"][:n], (len(tokens), n, c.d_model))
        z = self._crossed("blocks.0.", z, x, owned, seen)
        for layer in range(1, c.n_layer - 1):
            z, _ = self._by_contents(f"blocks.{layer}.", z, 0, None, None)
            z = z + self._mlp(f"blocks.{layer}.", z)
        return self._norm("norm.", self._crossed(f"blocks.{c.n_layer - 1}.", x, z, ~owned.T, None))

    def _crossed(self, at: str, x: Array, source: Array, allowed: Array, seen: list[Array] | None) -> Array:
        """Some read others."""
        c = self.config
        q = _split(self._linear(at + "attention.q.", self._norm(at + "norm1.", x)), c.head_dim)
        kv = _split(self._linear(at + "attention.kv.", self._norm(at + "attention.norm.", source)), c.head_dim)
        read = _read(q, kv[:, : c.n_head], kv[:, c.n_head :], c.head_dim**-0.5, allowed, seen)
        x = x + self._linear(at + "attention.out.", read)
        return x + self._mlp(at, x)

    def _mlp(self, at: str, x: Array) -> Array:
        wide = self._linear(at + "mlp.wide.", self._norm(at + "norm2.", x))
        if self.config.attention == "rope":
            gate, value = np.split(wide, 2, -1)
            bent = gate / (1 + np.exp(-np.maximum(gate, -80.0))) * value
        elif self.config.activation == "gelu_tanh":
            bent = 0.5 * wide * (1 + np.tanh(np.float32((2 / np.pi) ** 0.5) * (wide + np.float32(0.044715) * wide**3)))
        else:
            bent = 0.5 * wide * (1 + _erf(wide * np.float32(0.5**0.5)))
        return self._linear(at + "mlp.out.", bent)

    def _linear(self, at: str, x: Array) -> Array:
        y = x @ self.weights[at + "weight"].T
        bias = self.weights.get(at + "bias")
        return y if bias is None else y + bias

    def _norm(self, at: str, x: Array) -> Array:
        epsilon, weight, bias = self.config.norm_eps, self.weights[at + "weight"], self.weights.get(at + "bias")
        if self.config.attention != "rope":
            x = x - x.mean(-1, keepdims=True)
        y = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + np.float32(epsilon)) * weight
        return y if bias is None else y + bias


def shapes(c: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The weights that a model of a configuration has: names and shapes."""
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


def _read(q: Array, k: Array, v: Array, scale: float, allowed: Array, seen: list[Array] | None) -> Array:
    """What queries (b, h, m, d) read, heads side by side again, (b, m, width); who may see nothing reads zero."""
    scores = np.where(allowed, (q @ k.swapaxes(-1, -2)) * np.float32(scale), np.float32(-np.inf))
    most = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(most), most, 0))
    weights /= np.maximum(weights.sum(-1, keepdims=True), np.float32(1e-30))
    if seen is not None:
        seen.append(weights)
    out = weights @ v
    return out.swapaxes(1, 2).reshape(len(out), out.shape[2], -1)


def _split(x: Array, size: int) -> Array:
    """(b, heads, t, size) from (b, t, heads · size)."""
    return x.reshape(*x.shape[:2], -1, size).swapaxes(1, 2)


def _turned(x: Array, cos: Array, sin: Array) -> Array:
    one, two = np.split(x, 2, -1)
    return np.concatenate((one * cos - two * sin, one * sin + two * cos), -1)


def _longer(before: tuple[Array, Array] | None, k: Array, v: Array) -> tuple[Array, Array]:
    return (k, v) if before is None else (np.concatenate((before[0], k), 2), np.concatenate((before[1], v), 2))


def _causal(start: int, count: int) -> Array:
    """Which of the places up to the last each of the new ones sees."""
    return np.arange(start + count) <= np.arange(start, start + count)[:, None]


def _erf(x: Array) -> Array:
    t = 1 / (1 + np.float32(ERF_P) * np.abs(x))
    series = t * 0
    for a in reversed(ERF):
        series = (series + np.float32(a)) * t
    return np.sign(x) * (1 - series * np.exp(-x * x))
