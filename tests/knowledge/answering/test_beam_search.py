"""Beam search against enumeration of all answers and against greedy decoding."""

import itertools

import pytest
import torch
from marks import spread

from qkv.errors import QkvError
from qkv.knowledge.answering import beam_search as module
from qkv.knowledge.answering.beam_search import beam_search
from qkv.model.config import ATTENTIONS
from qkv.model.decoding import decode
from qkv.model.numpy_gpt import NumpyGPT

STOP = 1


@pytest.mark.parametrize("attention", spread(list(ATTENTIONS), 2))
def test_a_wide_beam_finds_exactly_the_most_likely_answers_of_an_enumeration(attention, random_model):
    model, max_tokens = random_model(attention), 3
    prompts = [[2, 3, 4], [0, 2, 2, 4, 3, 3], [4]]
    found = beam_search(NumpyGPT.from_torch(model), prompts, 400, max_tokens, STOP)
    for prompt, candidates in zip(prompts, found, strict=True):
        every = {}
        for length in range(max_tokens + 1):
            for tokens in itertools.product([0, 2, 3, 4], repeat=length):
                text = [*tokens, STOP] if length < max_tokens else list(tokens)
                logs = model(torch.tensor([[*prompt, *text]]))[0].double().log_softmax(-1)
                every[tokens] = sum(float(logs[len(prompt) - 1 + i, t].detach()) for i, t in enumerate(text))
        best = max(p for t, p in every.items() if len(t) < max_tokens)
        wanted = sorted(every.items(), key=lambda item: -item[1])[:5]
        assert [c.tokens for c in candidates[:5]] == [tokens for tokens, _ in wanted]
        assert [c.log_probability for c in candidates[:5]] == pytest.approx([p for _, p in wanted], abs=1e-4)
        assert all(c.ended == (len(c.tokens) < max_tokens) for c in candidates if c.log_probability > best - 8)


def test_the_result_for_a_prompt_does_not_depend_on_the_other_prompts_and_is_sorted(random_model):
    model = random_model("rope", vocab_size=9, seed=3)
    prompts = [[3, 4, 5], [6, 7], [8, 3, 3, 4]]
    together = beam_search(NumpyGPT.from_torch(model), prompts, 3, 5, STOP)
    for prompt, found in zip(prompts, together, strict=True):
        (alone,) = beam_search(NumpyGPT.from_torch(model), [prompt], 3, 5, STOP)
        assert [c.tokens for c in alone] == [c.tokens for c in found]
        assert sorted((c.log_probability for c in found), reverse=True) == [c.log_probability for c in found]


def test_batches_of_prompts_do_not_change_the_result(random_model, monkeypatch):
    model = NumpyGPT.from_torch(random_model("rope", vocab_size=9, seed=3))
    prompts = [[3, 4], [6, 7], [8, 3], [5, 5]]
    whole = beam_search(model, prompts, 3, 5, STOP)
    monkeypatch.setattr(module, "MAX_BATCH_PROMPTS", 3)
    parts = beam_search(model, prompts, 3, 5, STOP)
    assert [[c.tokens for c in each] for each in parts] == [[c.tokens for c in each] for each in whole]


@pytest.mark.parametrize("seed", range(5))
def test_a_beam_of_one_is_greedy_decoding(random_model, seed):
    model = random_model("rope", vocab_size=9, seed=seed)
    prompts = [[3, 4, 5], [6, 7], [8, 3, 3, 4]]
    greedy = decode(model, prompts, 5, stop=STOP)
    found = beam_search(NumpyGPT.from_torch(model), prompts, 1, 5, STOP)
    for (candidate,), tokens in zip(found, greedy.tokens, strict=True):
        assert list(candidate.tokens) == list(tokens)


@pytest.mark.parametrize("bad", [([], 2, 3), ([[]], 2, 3), ([[1]], 0, 3), ([[1]], 2, 0), ([[1] * 13], 2, 3)])
def test_impossible_searches_are_refused(bad, random_model):
    with pytest.raises(QkvError):
        beam_search(NumpyGPT.from_torch(random_model("rope")), bad[0], bad[1], bad[2], STOP)
