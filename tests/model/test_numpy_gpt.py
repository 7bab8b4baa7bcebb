"""The model in NumPy says what the model in torch says, at once and token by token."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.errors import QkvError
from qkv.model.config import ModelConfig
from qkv.model.gpt import GPT
from qkv.model.numpy_gpt import NumpyGPT

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
    return model, NumpyGPT.of(model)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape.values())))
@given(data=st.data())
@settings(max_examples=12)
def test_it_says_what_torch_says_however_the_tokens_are_dealt_out(shape, data):
    model, plain = both(shape)
    length = data.draw(st.integers(1, 24))
    tokens = np.random.default_rng(length).integers(0, 30, (3, length))
    wanted = model(torch.tensor(tokens)).detach().double().log_softmax(-1).numpy()
    cuts = sorted(data.draw(st.sets(st.integers(1, length), max_size=4)) | {length})
    past, parts, first = None, [], 0
    for last in cuts:
        hidden, past = plain.read(tokens[:, first:last], past)
        parts.append(plain.logs(hidden))
        first = last
    assert np.abs(np.concatenate(parts, 1) - wanted).max() < 2e-4
    assert np.array_equal(past.tokens, tokens)


def test_a_sequence_that_goes_on_from_another_row_s_past_follows_that_row():
    _, plain = both({"attention": "rope"})
    tokens = np.arange(12).reshape(2, 6)
    _, past = plain.read(tokens[:, :5])
    hidden, _ = plain.read(tokens[[1], 5:], past.pick(np.array([1])))
    assert np.allclose(hidden[0, 0], plain.read(tokens)[0][1, 5], atol=1e-5)
    strange, _ = plain.read(tokens[[1], 5:], past.pick(np.array([0])))
    assert not np.allclose(hidden, strange, atol=1e-2)


def test_what_is_longer_than_the_model_holds_is_refused():
    _, plain = both({"attention": "causal"})
    with pytest.raises(QkvError, match="holds 24"):
        plain.read(np.zeros((1, 25), dtype=int))
    _, past = plain.read(np.zeros((1, 24), dtype=int))
    with pytest.raises(QkvError, match="holds 24"):
        plain.read(np.zeros((1, 1), dtype=int), past)
