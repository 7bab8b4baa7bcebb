"""NumpyGPT against the model in torch, at once and token by token."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.errors import QkvError
from qkv.model.config import ModelConfig
from qkv.model.gpt import GPT
from qkv.model.numpy_gpt import NumpyGPT, _erf, shapes

SHAPES = [
    {"attention": "causal"},
    {"attention": "causal", "activation": "gelu_tanh", "bias": False, "tie_embeddings": False},
    {"attention": "rope"},
    {"attention": "rope", "n_kv_head": 2, "tie_embeddings": False},
    {"attention": "synthesizer"},
    {"attention": "perceiver"},
    {"attention": "perceiver", "bias": False},
]


def both(shape):
    torch.manual_seed(0)
    model = GPT(
        ModelConfig(n_layer=3, n_head=4, d_model=32, context_length=24, latents=6, vocab_size=30, **shape)
    ).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return model, NumpyGPT.from_torch(model)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape.values())))
@given(data=st.data())
@settings(max_examples=12)
def test_it_gives_torchs_log_probabilities_in_any_number_of_parts(shape, data):
    model, plain = both(shape)
    length = data.draw(st.integers(1, 24))
    tokens = np.random.default_rng(length).integers(0, 30, (3, length))
    wanted = model(torch.tensor(tokens)).detach().double().log_softmax(-1).numpy()
    cuts = sorted(data.draw(st.sets(st.integers(1, length), max_size=4)) | {length})
    past, parts, first = None, [], 0
    for last in cuts:
        hidden, past = plain.forward(tokens[:, first:last], past)
        parts.append(plain.log_probabilities(hidden))
        first = last
    assert np.abs(np.concatenate(parts, 1) - wanted).max() < 2e-4
    assert np.array_equal(past.tokens, tokens)


def test_a_sequence_that_continues_another_rows_cache_follows_that_row():
    _, plain = both({"attention": "rope"})
    tokens = np.arange(12).reshape(2, 6)
    _, past = plain.forward(tokens[:, :5])
    hidden, _ = plain.forward(tokens[[1], 5:], past.select(np.array([1])))
    assert np.allclose(hidden[0, 0], plain.forward(tokens)[0][1, 5], atol=1e-5)
    strange, _ = plain.forward(tokens[[1], 5:], past.select(np.array([0])))
    assert not np.allclose(hidden, strange, atol=1e-2)


def test_a_sequence_longer_than_the_context_is_refused():
    _, plain = both({"attention": "causal"})
    with pytest.raises(QkvError, match="context length is 24"):
        plain.forward(np.zeros((1, 25), dtype=int))
    _, past = plain.forward(np.zeros((1, 24), dtype=int))
    with pytest.raises(QkvError, match="context length is 24"):
        plain.forward(np.zeros((1, 1), dtype=int), past)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape.values())))
def test_names_and_shapes_of_weights_are_those_of_torch(shape):
    model, _ = both(shape)
    assert shapes(model.config) == {name: tuple(p.shape) for name, p in model.named_parameters()}


def test_weights_of_another_configuration_are_refused():
    model, plain = both({"attention": "causal"})
    with pytest.raises(QkvError, match=r"embedding.weight has shape \(30, 31\), not \(30, 32\)"):
        NumpyGPT(model.config, {**plain.weights, "embedding.weight": np.zeros((30, 31))})
    with pytest.raises(QkvError, match=r"extra has shape \(1,\), not None"):
        NumpyGPT(model.config, {**plain.weights, "extra": np.zeros(1)})


def test_the_error_function_is_accurate_to_its_bound():
    x = np.linspace(-5, 5, 2001)
    exact = np.vectorize(math.erf)(x)
    assert np.abs(_erf(x) - exact).max() < 1.6e-7


@pytest.mark.parametrize("attention", ["causal", "rope", "synthesizer"])
def test_attention_weights_sum_to_one_and_see_no_later_token(attention):
    _, plain = both({"attention": attention})
    seen = []
    plain.forward(np.arange(8)[None], seen=seen)
    assert len(seen) == 3
    for weights in seen:
        assert weights.shape == (1, 4, 8, 8)
        assert np.allclose(weights.sum(-1), 1, atol=1e-6) and not np.triu(weights, 1).any()


def test_it_needs_no_torch():
    code = "import sys, qkv.model.numpy_gpt; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
