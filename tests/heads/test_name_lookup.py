import pytest
import torch
from families import CONFIGS, ENCODERS, VOCABULARY, tiny, tokenizer
from marks import spread

from qkv.errors import QkvError
from qkv.heads.ablation import MeanOutputs, token_losses, without_heads
from qkv.heads.attention_model import from_transformers
from qkv.heads.name_lookup import NamedQuestion, name_heads


def decoded(model, ids, count, removed=(), means=None):
    """The answer of greedy decoding, token by token."""
    out = list(ids)
    for _ in range(count):
        out.append(int(model.run(torch.tensor([out]), output=without_heads(removed, means)).logits[0, -1].argmax()))
    return out[len(ids) :]


def means_of(model, questions):
    """Mean outputs over the tokens of questions and answers that something follows."""
    means = MeanOutputs()
    for q in questions:
        model.run(torch.tensor([[*q.ids, *q.answer][:-1]]), output=means)
    return means.result()


def asked(model, seed=0):
    """Questions of several lengths; the model answers the first three as wanted."""
    generator = torch.Generator().manual_seed(seed)
    out = []
    for number, length in enumerate((9, 12, 7, 10)):
        ids = torch.randint(3, VOCABULARY, (length,), generator=generator).tolist()
        answer = decoded(model, ids, 2 + number % 2)
        if number == 3:
            answer[-1] = (answer[-1] + 1) % VOCABULARY
        out.append(NamedQuestion(ids, answer, (2, 2 + 2 + number % 3)))
    return out


@pytest.mark.parametrize("family", spread(sorted(set(CONFIGS) - ENCODERS), 4))
def test_weights_effects_and_answers_are_those_of_one_question_at_a_time(family):
    model = from_transformers(tiny(family), tokenizer(), name=family)
    questions, steps = asked(model), []
    found = name_heads(model, questions, count=2, progress=lambda done, total: steps.append((done, total)))
    assert found.whole.right == 0.75 and found.questions == 4 and len(found) == 12
    assert steps[-1][0] == steps[-1][1] and sorted(steps) == steps
    weights, losses, without = torch.zeros(3, 4, dtype=torch.float64), [], []
    best, means = [(row.layer, row.head) for row in found.rows[:2]], means_of(model, questions)
    for q in questions:
        calls = []
        model.run(torch.tensor([q.ids]), calls.append)
        for call in calls:
            weights[call.layer] += call.weights[0, :, -1, q.name[0] : q.name[1]].double().sum(-1) / 4
        ids = torch.tensor([[*q.ids, *q.answer]])
        losses += token_losses(model, ids)[0, -len(q.answer) :].tolist()
        without += token_losses(model, ids, best, means=means)[0, -len(q.answer) :].tolist()
    assert found.whole.loss == pytest.approx(sum(losses) / len(losses), abs=1e-4)
    assert found.without.loss == pytest.approx(sum(without) / len(without), abs=1e-4)
    for row in found:
        assert row.weight == pytest.approx(float(weights[row.layer, row.head]), abs=1e-5)
    assert [row.weight for row in found] == sorted((row.weight for row in found), reverse=True)
    assert found.removed == tuple(f"{a}.{b}" for a, b in best)
    right = [decoded(model, q.ids, len(q.answer), best, means) == list(q.answer) for q in questions]
    assert found.without.right == sum(right) / 4
    alone = from_transformers(tiny(family), tokenizer())
    third = found.rows[3]
    whole, one = [torch.tensor([[*q.ids, *q.answer]]) for q in questions], [(third.layer, third.head)]
    removed = [token_losses(alone, ids, one, means=means) for ids in whole]
    total = [v for q, of in zip(questions, removed, strict=True) for v in of[0, -len(q.answer) :].tolist()]
    assert third.effect == pytest.approx(sum(total) / len(total) - found.whole.loss, abs=1e-4)
    assert found.random_worst.loss >= found.random.loss and found.random_worst.right <= found.random.right


def test_outputs_of_zero_are_an_option():
    model = from_transformers(tiny("llama"), tokenizer())
    questions = asked(model)
    mean, zero = (name_heads(model, questions, removal=by) for by in ("mean", "zero"))
    best = [(row.layer, row.head) for row in zero.rows[:2]]
    right = [decoded(model, q.ids, len(q.answer), best) == list(q.answer) for q in questions]
    assert zero.without.right == sum(right) / 4 and zero.without.loss != mean.without.loss
    said = [" ".join(str(each).split()) for each in (zero, mean)]
    assert "set to zero" in said[0] and "replaced by its mean over all tokens" in said[1]


def test_refusals():
    model = from_transformers(tiny("gpt2"), tokenizer())
    one = NamedQuestion([5, 6, 7], [8], (1, 2))
    for questions, options, why in (
        ([], {}, "no questions"),
        ([one], {"count": 7}, "more than half"),
        ([one], {"count": 0}, "count"),
        ([one], {"removal": "none"}, "Choose mean or zero"),
        ([NamedQuestion([5] * 60, [8] * 9, (1, 2))], {}, "no longer than 64"),
        ([NamedQuestion([5], [], (0, 1))], {}, "must not be empty"),
    ):
        with pytest.raises(QkvError, match=why):
            name_heads(model, questions, **options)
    with pytest.raises(QkvError, match="predicts no tokens"):
        name_heads(from_transformers(tiny("bert"), tokenizer()), [one])
