"""GPT: one contract for every kind of attention, against a dense float64 reference."""

import numpy as np
import pytest
import torch
from dense_reference import EVERY, VOCAB, dense, model_of, tokens_of
from torch.nn.functional import cross_entropy

from qkv.core import kernels
from qkv.errors import QkvError
from qkv.model.config import ModelConfig
from qkv.model.gpt import GPT, compile_parts
from qkv.model.packed_sequences import PackedLayout


@EVERY
@pytest.mark.parametrize("length", [1, 5, 24])
def test_it_equals_the_dense_reference(name, length):
    model, tokens = model_of(name), tokens_of(length)
    rope = name.startswith("rope")  # whose norms and angles are rounded to float32, as Llama's are
    want = torch.from_numpy(dense(model, tokens.numpy()))
    torch.testing.assert_close(model(tokens[None])[0].detach(), want, rtol=0, atol=1e-5 if rope else 1e-11)


@EVERY
def test_many_sequences_of_one_length_give_the_same_as_few(name, monkeypatch):
    """The equal-length kernel is taken for many sequences, the ragged one for few: here the threshold is moved."""
    model, tokens, calls, grads = model_of(name), tokens_of(3, 24), [], []
    want = torch.from_numpy(np.stack([dense(model, row) for row in tokens.numpy()]))
    real = kernels.equal_length_causal
    monkeypatch.setattr(kernels, "equal_length_causal", lambda *given: calls.append(1) or real(*given))
    for large in (1, 1 << 60):
        monkeypatch.setattr(kernels, "MIN_HEADWISE_SCORES", large)
        out = model(tokens)
        torch.testing.assert_close(out.detach(), want, rtol=0, atol=1e-5 if name.startswith("rope") else 1e-11)
        grads.append(torch.autograd.grad(out.square().sum(), list(model.parameters())))
    # Once for each of the three blocks in which tokens, or latents, attend each other.
    assert len(calls) == {"synthesizer": 0, "perceiver": 1}.get(name, 3)
    for one, two in zip(*grads, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-9)


@EVERY
def test_no_later_token_changes_an_earlier_output(name):
    model, tokens = model_of(name), tokens_of(24)
    before = model(tokens[None])[0]
    for at in range(1, 24):
        changed = tokens.clone()
        changed[at:] = (changed[at:] + 1) % VOCAB
        torch.testing.assert_close(model(changed[None])[0, :at], before[:at], rtol=0, atol=1e-12)


@EVERY
def test_every_token_that_may_matter_does(name):
    model, tokens = model_of(name), tokens_of(24)
    before = model(tokens[None])[0]
    stride = model.config.stride
    for at in range(24):
        changed = tokens.clone()
        changed[at] = (changed[at] + 1) % VOCAB
        moved = (model(changed[None])[0] - before).abs().amax(-1) > 1e-9
        # A perceiver's token is seen at its own place, and from the end of its latent's block on.
        first = (at // stride + 1) * stride if name == "perceiver" else at
        assert moved.tolist() == [p == at or p >= first for p in range(24)]


@EVERY
def test_packed_sequences_give_what_each_gives_alone(name):
    model = model_of(name)
    lengths = [3, 3, 4, 9, 24]
    each = [tokens_of(t, seed=i) for i, t in enumerate(lengths)]
    layout = PackedLayout([(2, 3), (1, 4), (1, 9), (1, 24)])
    got = model(torch.cat(each), layout).split(lengths)
    for alone, together in zip(each, got, strict=True):
        torch.testing.assert_close(together, model(alone[None])[0], rtol=0, atol=1e-12)


@EVERY
def test_computing_only_what_is_kept_changes_nothing(name):
    model = model_of(name).train()
    tokens, keep = tokens_of(3, 10), torch.tensor([0, 9, 14, 28])
    targets = tokens_of(4, seed=1)
    full = model(tokens).flatten(0, 1)[keep]
    want = cross_entropy(full, targets, reduction="sum")
    grads = torch.autograd.grad(want, list(model.parameters()), allow_unused=True)
    got = model(tokens, keep=keep, targets=targets)
    torch.testing.assert_close(got, want)
    for one, two in zip(grads, torch.autograd.grad(got, list(model.parameters()), allow_unused=True), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-6 if name.startswith("rope") else 1e-11)


@EVERY
@pytest.mark.parametrize("kept", [[3, 8, 11, 23], [0, 2, 3, 9, 10]], ids=["last ones", "any"])
def test_with_a_cache_only_kept_tokens_have_logits_and_all_are_cached(name, kept):
    model, layout = model_of(name), PackedLayout([(2, 4), (1, 4), (1, 12)])
    tokens, keep = tokens_of(24), torch.tensor(kept)
    whole, some = model.cache(4, 20), model.cache(4, 20)
    want = model(tokens, layout, cache=whole)[keep]
    torch.testing.assert_close(model(tokens, layout, keep=keep, cache=some), want, rtol=0, atol=1e-12)
    for one, two in zip(whole, some, strict=True):
        torch.testing.assert_close((one.k, one.v), (two.k, two.v), rtol=0, atol=1e-12)


def test_a_sequence_longer_than_the_context_is_refused():
    with pytest.raises(QkvError, match="25 tokens"):
        model_of("causal")(tokens_of(1, 25))


@EVERY
def test_mixed_precision_gives_nearly_the_same_losses_and_gradients(name):
    model = model_of(name, torch.float32).train()
    tokens, keep, targets = tokens_of(40), torch.arange(3, 40, 4), tokens_of(10, seed=1)
    layout = PackedLayout([(2, 5), (3, 10)])
    exact = model(tokens, layout, keep, targets)
    wanted = torch.autograd.grad(exact, list(model.parameters()), allow_unused=True)
    with torch.autocast("cpu", torch.bfloat16):
        got = model(tokens, layout, keep, targets)
    grads = torch.autograd.grad(got, list(model.parameters()), allow_unused=True)
    assert float(got.detach()) == pytest.approx(float(exact.detach()), rel=0.02)
    flat = [torch.cat([g.flatten() for g in some if g is not None]) for some in (wanted, grads)]
    assert float(torch.nn.functional.cosine_similarity(*flat, dim=0)) > 0.99


def test_compiling_covers_norms_and_mlps_only(monkeypatch):
    compiled = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, **how: compiled.append((type(self).__name__, how)))
    compile_parts(model_of("rope"))
    assert {name for name, _ in compiled} == {"RMSNorm", "SwiGLU"} and len(compiled) == 3 * 3 + 1
    assert all(how == {"dynamic": True} for _, how in compiled)


@EVERY
def test_models_that_may_pack_any_lengths_are_those_of_the_ragged_kernel(name):
    assert model_of(name).packs_any_lengths == (name not in ("synthesizer", "perceiver"))
    assert not model_of(name).to("meta").packs_any_lengths


@pytest.mark.parametrize("n_layer", [2, 8])
def test_initial_weights_have_the_scale_of_gpt2(n_layer):
    torch.manual_seed(0)
    model = GPT(ModelConfig(n_layer=n_layer, d_model=128, vocab_size=200))
    for block in model.blocks:
        assert float(block.attention.qkv.weight.detach().std()) == pytest.approx(0.02, rel=0.05)
        for out in (block.attention.out, block.mlp.out):
            assert float(out.weight.detach().std()) == pytest.approx(0.02 / (2 * n_layer) ** 0.5, rel=0.05)
            assert not out.bias.any()
    assert model.head.weight is model.embedding.weight
