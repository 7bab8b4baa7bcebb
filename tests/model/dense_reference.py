"""Small models of every kind, and their logits by the definition in NumPy, one head and one token at a time."""

import math

import numpy as np
import pytest
import torch

from qkv.model.config import ATTENTIONS, ModelConfig
from qkv.model.gpt import GPT

VOCAB = 19
SHAPE = {"n_layer": 3, "n_head": 4, "d_model": 16, "context_length": 24, "latents": 6, "vocab_size": VOCAB}
CONFIGS = {
    **{name: ModelConfig(attention=name, **SHAPE) for name in ATTENTIONS},
    "rope, grouped": ModelConfig(attention="rope", n_kv_head=2, **SHAPE),
    "causal, plain": ModelConfig(attention="causal", bias=False, tie_embeddings=False, activation="gelu_tanh", **SHAPE),
}
EVERY = pytest.mark.parametrize("name", CONFIGS)


def model_of(name, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    model = GPT(CONFIGS[name]).to(dtype).eval()
    with torch.no_grad():
        for p in model.parameters():  # away from the small values at which it starts, so that mistakes show
            p.add_(torch.randn_like(p) * 0.15)
    return model


def tokens_of(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, VOCAB, shape))


def dense(model, tokens):
    """The logits after one sequence, from the model's weights by the definition, one head and one token at a time."""
    c, w = model.config, {n: p.detach().numpy() for n, p in model.named_parameters()}

    def norm(name, x):
        if c.attention == "rope":
            y = x.astype(np.float32)
            return w[f"{name}.weight"] * (y / np.sqrt((y**2).mean(-1, keepdims=True) + np.float32(c.norm_eps)))
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + c.norm_eps)
        return x * w[f"{name}.weight"] + w.get(f"{name}.bias", 0)

    def linear(name, x):
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0)

    def gelu(x):
        inner = x + 0.044715 * x**3 if c.activation == "gelu_tanh" else None
        return x / 2 * (1 + (np.tanh(math.sqrt(2 / math.pi) * inner) if inner is not None else erf(x / math.sqrt(2))))

    def mlp(name, x):
        hidden = linear(f"{name}.wide", x)
        if c.attention == "rope":
            gate, value = np.split(hidden, 2, axis=-1)
            return linear(f"{name}.out", gate / (1 + np.exp(-gate)) * value)
        return linear(f"{name}.out", gelu(hidden))

    def rotated(x):
        half = c.head_dim // 2
        angle = np.arange(len(x))[:, None] * c.rope_theta ** (-np.arange(half) / half)
        z = (x[:, :half] + 1j * x[:, half:]) * np.exp(1j * angle)
        return np.concatenate((z.real, z.imag), axis=1)

    def heads(x, count):
        return [x[:, i * c.head_dim : (i + 1) * c.head_dim] for i in range(count)]

    def attend(scores, sees, values):
        out = np.zeros((len(scores), values.shape[1]))
        for i, row in enumerate(scores):
            seen = [j for j in range(len(row)) if sees(i, j)]
            if seen:
                power = np.exp(row[seen] - row[seen].max())
                out[i] = power @ values[seen] / power.sum()
        return out

    def self_attention(name, x):
        g = c.n_kv_head_effective
        parts = np.split(linear(f"{name}.qkv", x), [c.d_model, c.d_model + g * c.head_dim], axis=1)
        q, k, v = heads(parts[0], c.n_head), heads(parts[1], g), heads(parts[2], g)
        if c.attention == "rope":
            q, k = [rotated(each) for each in q], [rotated(each) for each in k]
        each = [
            attend(q[h] @ k[h * g // c.n_head].T / math.sqrt(c.head_dim), lambda i, j: j <= i, v[h * g // c.n_head])
            for h in range(c.n_head)
        ]
        return linear(f"{name}.out", np.concatenate(each, axis=1))

    def synthesizer(name, x):
        a, v = np.split(linear(f"{name}.qv", x), 2, axis=1)
        B, b2 = w[f"{name}.keys"][..., :-1], w[f"{name}.keys"][..., -1]
        each = []
        for h, (inner, values) in enumerate(zip(heads(a, c.n_head), heads(v, c.n_head), strict=True)):
            scores = np.maximum(inner, 0) @ B[: len(x), h].T + b2[: len(x), h]
            each.append(attend(scores, lambda i, j: j <= i, values))
        return linear(f"{name}.out", np.concatenate(each, axis=1))

    def across(name, x, y, sees):
        k, v = np.split(linear(f"{name}.kv", norm(f"{name}.norm", y)), 2, axis=1)
        triples = zip(heads(linear(f"{name}.q", x), c.n_head), heads(k, c.n_head), heads(v, c.n_head), strict=True)
        each = [attend(q @ k.T / math.sqrt(c.head_dim), sees, v) for q, k, v in triples]
        return linear(f"{name}.out", np.concatenate(each, axis=1))

    def block(i, x, layer):
        x = x + layer(f"blocks.{i}.attention", norm(f"blocks.{i}.norm1", x))
        return x + mlp(f"blocks.{i}.mlp", norm(f"blocks.{i}.norm2", x))

    x = w["embedding.weight"][tokens]
    if c.attention != "rope":
        x = x + w["places.weight"][: len(tokens)]
    if c.attention == "perceiver":
        s, last = c.stride, c.n_layer - 1
        z = w["latents.weight"]
        z = block(0, z, lambda name, z: across(name, z, x, lambda i, j: j < (i + 1) * s))
        for i in range(1, last):
            z = block(i, z, self_attention)
        x = block(last, x, lambda name, x: across(name, x, z, lambda p, i: (i + 1) * s <= p))
    else:
        for i in range(c.n_layer):
            x = block(i, x, synthesizer if c.attention == "synthesizer" else self_attention)
    return norm("norm", x) @ w.get("head.weight", w["embedding.weight"]).T


erf = np.vectorize(math.erf)
