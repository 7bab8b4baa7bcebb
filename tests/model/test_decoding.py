"""Decoding with KV caches against running the whole text again; sampling against the distribution."""

import numpy as np
import pytest
import torch
from dense_reference import EVERY, VOCAB, model_of, tokens_of

from qkv.errors import QkvError
from qkv.model import decoding
from qkv.model.decoding import Sampler, decode


@EVERY
def test_decoding_with_a_cache_equals_running_everything_again(name):
    model = model_of(name)
    prompts = [tokens_of(t, seed=t).tolist() for t in (1, 7, 3, 3, 12, 8)]
    got = decode(model, prompts, 12, log_probabilities=True)
    for prompt, tokens, values in zip(prompts, got.tokens, got.log_probabilities, strict=True):
        text = list(prompt)
        for token, value in zip(tokens, values, strict=True):
            logits = model(torch.tensor([text]))[0, -1].detach()
            assert int(logits.argmax()) == token
            assert float(logits.log_softmax(-1)[token]) == pytest.approx(value, abs=1e-6 if "rope" in name else 1e-10)
            text.append(token)


@EVERY
def test_prompts_that_begin_alike_are_read_once_and_continued_as_if_alone(name):
    model = model_of(name)
    same = tokens_of(6, seed=3).tolist()
    prompts = [[*same, *tokens_of(t, seed=t).tolist()] for t in (1, 5, 2, 5)]
    together = decode(model, prompts, 6, log_probabilities=True)
    for i, prompt in enumerate(prompts):
        alone = decode(model, [prompt], 6, log_probabilities=True)
        assert alone.tokens[0] == together.tokens[i]
        assert alone.log_probabilities[0] == pytest.approx(together.log_probabilities[i], abs=1e-6)


def test_a_stop_ends_a_text_and_leaves_the_others_alone():
    model = model_of("causal")
    prompts = [tokens_of(t, seed=t).tolist() for t in (5, 2, 9, 4)]
    free = decode(model, prompts, 10).tokens
    stop = free[1][3]
    got = decode(model, prompts, 10, stop=stop).tokens
    assert got == [text[: text.index(stop)] if stop in text else text for text in free]
    assert len(got[1]) <= 3 and any(len(text) == 10 for text in got)


def test_sampling_follows_the_model_and_its_limits():
    logits = torch.log(torch.tensor([0.5, 0.3, 0.15, 0.05])).repeat(20000, 1)
    uniform = torch.rand(20000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def shares(**how):
        return np.bincount(Sampler(**how)(logits, uniform).numpy(), minlength=4) / 20000

    assert shares(temperature=1.0) == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.012)
    squared = np.array([0.25, 0.09, 0.0225, 0.0025])
    assert shares(temperature=0.5) == pytest.approx(squared / squared.sum(), abs=0.012)
    assert shares(temperature=1.0, top_k=2) == pytest.approx([0.625, 0.375, 0, 0], abs=0.012)
    assert shares(temperature=1.0, top_p=0.7) == pytest.approx([0.625, 0.375, 0, 0], abs=0.012)
    assert shares(temperature=1.0, top_p=0.1).tolist() == [1, 0, 0, 0]
    assert shares().tolist() == [1, 0, 0, 0]


def test_samples_depend_on_the_seed_and_not_on_the_batch():
    model, sampler = model_of("rope"), Sampler(temperature=1.0, seed=3)
    prompts = [tokens_of(t, seed=t).tolist() for t in (5, 2, 9)]
    together = decode(model, prompts, 8, sampler).tokens
    assert decode(model, prompts, 8, sampler, batch_size=1).tokens == together
    assert decode(model, prompts, 8, Sampler(temperature=1.0, seed=4)).tokens != together


@pytest.mark.parametrize(
    ("prompts", "new", "why"),
    [
        ([], 1, "there are none"),
        ([[]], 1, "empty"),
        ([[1] * 20], 9, "20 tokens, and 9 more"),
        ([[VOCAB]], 1, "outside"),
    ],
)
def test_prompts_that_cannot_be_continued_are_refused(prompts, new, why):
    with pytest.raises(QkvError, match=why):
        decode(model_of("causal"), prompts, new)
    with pytest.raises(QkvError, match="top_p is 0"):
        Sampler(top_p=0)


def test_prompts_are_processed_in_chunks_of_bounded_size(monkeypatch):
    model = model_of("rope, grouped")
    prompts = [tokens_of(t, seed=t).tolist() for t in (1, 7, 3, 3, 12, 8)]
    want = decode(model, prompts, 5, log_probabilities=True)
    for most in (1, 7, 11, 15):
        monkeypatch.setattr(decoding, "MAX_PREFILL_TOKENS", most)
        got = decode(model, prompts, 5, log_probabilities=True)
        assert got.tokens == want.tokens
        for one, two in zip(got.log_probabilities, want.log_probabilities, strict=True):
            assert one == pytest.approx(two, abs=1e-6)


@pytest.mark.parametrize(
    ("lengths", "want"),
    [([3, 3, 3], [(0, 2), (2, 3)]), ([9, 1], [(0, 1), (1, 2)]), ([2, 2, 2], [(0, 3)]), ([7], [(0, 1)])],
)
def test_chunks(monkeypatch, lengths, want):
    monkeypatch.setattr(decoding, "MAX_PREFILL_TOKENS", 6)
    assert list(decoding._chunks(lengths)) == want


@pytest.mark.parametrize(
    ("prompts", "want"),
    [
        ([[1, 2, 3, 4, 5], [1, 2, 3, 4, 6, 7]], 4),
        ([[1, 2, 3, 4, 5], [1, 2, 3, 4, 5]], 4),  # each keeps one token of its own
        ([[1, 2, 3, 5], [1, 2, 3, 4, 6, 7]], 0),  # too short to be worth it
        ([[1, 2, 3, 4, 5, 6]], 0),  # one prompt shares nothing
    ],
)
def test_a_shared_prefix_is_found(prompts, want):
    assert decoding._shared_prefix(prompts) == want


def test_the_model_is_in_training_mode_again_afterwards_even_after_an_error(monkeypatch):
    model = model_of("causal").train()
    decode(model, [[1, 2]], 2)
    assert model.training
    monkeypatch.setattr(decoding, "_prefill", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        decode(model, [[1, 2]], 2)
    assert model.training
    model.eval()
    with pytest.raises(ZeroDivisionError):
        decode(model, [[1, 2]], 2)
    assert not model.training
