"""Answers with their alternatives and signals, against enumeration, plain forward passes and the weights of heads."""

import itertools
import json
import math
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from qkv.errors import QkvError
from qkv.knowledge import ask, evaluate, questions
from qkv.knowledge.answering.beam_search import likeliest
from qkv.knowledge.answering.name_attention import looks
from qkv.knowledge.confidence.badge import NAMES
from qkv.knowledge.confidence.features import _agreement, read, signals
from qkv.model.config import ModelConfig
from qkv.model.gpt import GPT
from qkv.model.numpy_gpt import NumpyGPT
from qkv.model.packed_sequences import PackedLayout
from qkv.train.generation import generate
from qkv.train.tokenizers import MASK_ID

KINDS = ("causal", "rope", "synthesizer", "perceiver")


def random_model(attention, vocab=5, seed=0):
    torch.manual_seed(seed)
    model = GPT(
        ModelConfig(
            attention=attention, n_layer=2, n_head=2, d_model=16, context_length=12, latents=4, vocab_size=vocab
        )
    ).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return model


@pytest.mark.parametrize("attention", KINDS)
def test_a_wide_beam_finds_exactly_the_likeliest_answers_that_enumeration_finds(attention):
    model, stop, new = random_model(attention), 1, 3
    prompts = [[2, 3, 4], [0, 2, 2, 4, 3, 3], [4]]
    found = likeliest(NumpyGPT.of(model), prompts, 400, new, stop)
    for prompt, candidates in zip(prompts, found, strict=True):
        every = {}
        for length in range(new + 1):
            for tokens in itertools.product([0, 2, 3, 4], repeat=length):
                text = [*tokens, stop] if length < new else list(tokens)
                logs = model(torch.tensor([[*prompt, *text]]))[0].double().log_softmax(-1)
                every[tokens] = sum(float(logs[len(prompt) - 1 + i, t].detach()) for i, t in enumerate(text))
        best = max(p for t, p in every.items() if len(t) < new)
        wanted = sorted(every.items(), key=lambda item: -item[1])[:5]
        assert [c.tokens for c in candidates[:5]] == [tokens for tokens, _ in wanted]
        assert [c.log_probability for c in candidates[:5]] == pytest.approx([p for _, p in wanted], abs=1e-4)
        assert all(c.ended == (len(c.tokens) < new) for c in candidates if c.log_probability > best - 8)


def test_a_beam_does_not_depend_on_who_else_is_asked_and_holds_the_greedy_answer_or_a_likelier_one():
    model = random_model("rope", vocab=9, seed=3)
    prompts = [[3, 4, 5], [6, 7], [8, 3, 3, 4]]
    together = likeliest(NumpyGPT.of(model), prompts, 3, 5, 1)
    for prompt, found in zip(prompts, together, strict=True):
        (alone,) = likeliest(NumpyGPT.of(model), [prompt], 3, 5, 1)
        assert [c.tokens for c in alone] == [c.tokens for c in found]
        assert sorted((c.log_probability for c in found), reverse=True) == [c.log_probability for c in found]


@pytest.mark.parametrize("bad", [([], 2, 3), ([[]], 2, 3), ([[1]], 0, 3), ([[1] * 13], 2, 3)])
def test_beams_refuse_what_they_cannot_search(bad):
    with pytest.raises(QkvError):
        likeliest(NumpyGPT.of(random_model("rope")), bad[0], bad[1], bad[2], 1)


@pytest.mark.parametrize("attention", KINDS)
def test_the_weights_of_heads_are_those_that_make_the_output(attention):
    model, ids = random_model(attention, vocab=20), [5, 7, 9, 11, 3, 4, 2, 8]
    caught = {}
    hooks = [
        b.attention.register_forward_hook(lambda m, a, out, layer=i: caught.update({layer: (a, out)}))
        for i, b in enumerate(model.blocks)
    ]
    model(torch.tensor([ids]))
    for hook in hooks:
        hook.remove()
    each = {(look.layer, look.head): [] for look in looks(NumpyGPT.of(model), ids, (0, 1))}
    for place in range(len(ids)):
        for look in looks(NumpyGPT.of(model), ids, (place, place + 1)):
            each[look.layer, look.head].append(look.weight)
    assert len(each) == (2 if attention == "perceiver" else 4)
    for (layer, head), weights in each.items():
        assert sum(weights) == pytest.approx(1, abs=1e-5)
        (x, *_), out = caught[layer]
        module = model.blocks[layer].attention
        if attention == "perceiver":
            tokens = model.embedding(torch.tensor(ids)) + model.places(torch.arange(len(ids)))
            v = module.kv(module.norm(tokens)).unflatten(-1, (-1, module.head_dim)).chunk(2, 1)[1]
        else:
            v = (module.qkv if attention != "synthesizer" else module.qv)(x).unflatten(-1, (-1, module.head_dim))[
                :, -2:
            ]
        made = torch.tensor(weights) @ v[:, head]
        assert torch.allclose(made, out[-1].unflatten(-1, (2, -1))[head], atol=1e-5)


def test_signals_are_what_plain_forward_passes_say(run, people):
    asked = [q for q, _ in questions(people)][:6]
    found = signals(run, asked, samples=4)
    for i, question in enumerate(asked):
        ids = [*run.tokenizer.encode(question), MASK_ID]
        best = found.candidates[i][0]
        logs = run.model(torch.tensor([[*ids, *best.tokens]])).detach()[0].double().log_softmax(-1)
        steps = logs[len(ids) - 1 :]
        total = sum(float(steps[j, t]) for j, t in enumerate([*best.tokens, MASK_ID]))
        assert found.column("log_probability")[i] == pytest.approx(total, abs=0.02)  # two spellings may be one answer
        assert found.column("entropy")[i] == pytest.approx(float(-(steps.exp() * steps).sum()), rel=1e-3)
        first, last = found.asked[i].name
        bare = [*ids[first:last], MASK_ID]
        logs = run.model(torch.tensor([[*bare, *best.tokens]])).detach()[0].double().log_softmax(-1)[len(bare) - 1 :]
        total = sum(float(logs[j, t]) for j, t in enumerate([*best.tokens, MASK_ID]))
        assert found.column("bare")[i] == pytest.approx(total, abs=1e-3)
        logs = run.model(torch.tensor([bare[:-1]])).detach()[0].double().log_softmax(-1)
        each = [float(logs[j, t]) for j, t in enumerate(bare[1:])]
        assert found.column("familiarity")[i] == pytest.approx(sum(each) / len(each), abs=1e-3)
        assert found.column("weakest")[i] == pytest.approx(min(each), abs=1e-3)
        logs = run.model(torch.tensor([[MASK_ID, *best.tokens]])).detach()[0].double().log_softmax(-1)
        total = sum(float(logs[j, t]) for j, t in enumerate([*best.tokens, MASK_ID]))
        assert found.column("prior")[i] == pytest.approx(total, abs=1e-3)
        name = question.removeprefix("Where was ").removesuffix(" born?")
        assert run.tokenizer.decode(ids[first:last]).strip() == name
        state = run.model.hidden(torch.tensor(ids[:last]), PackedLayout([(1, last)]))
        assert np.allclose(found.hidden[i], state[-1].detach(), atol=1e-4)
        assert 0 <= found.column("agreement")[i] <= 1 and found.column("margin")[i] >= 0


def test_a_name_that_was_read_is_more_familiar_than_a_shuffled_one(run, people):
    known = signals(run, [q for q, _ in questions(people)], samples=0).column("familiarity")
    strange = signals(run, [f"Where was {n} born?" for n in people.invented(30)], samples=0).column("familiarity")
    assert known.mean() > strange.mean() + 0.5


def test_ask_gives_answer_alternatives_badge_evidence_and_heads_as_json(run, people):
    question, _ = questions(people).pairs[0]
    answer = ask(run, question)
    data = json.loads(json.dumps(answer.to_json()))
    assert set(data) == {"question", "answer", "alternatives", "badge", "why", "evidence", "heads", "name"}
    assert data["answer"] == answer.answer == data["alternatives"][0]["text"]
    assert set(data["heads"][0]) == {"layer", "head", "weight"} and len(data["heads"]) == 4
    assert data["evidence"].keys() >= {*NAMES, "probability", "probe", "right"}
    assert data["badge"] in ("remembered", "made up", "unsure") and data["name"] == people.people[0].name
    chances = [a["probability"] for a in data["alternatives"]]
    assert chances == sorted(chances, reverse=True) and sum(chances) <= 1 + 1e-9
    assert "rule of thumb" in answer.why and str(answer.badge) in dict(answer.card().facts)["badge"]
    assert ask(run, question) == answer


@pytest.mark.parametrize("question", ["", "   ", "Where was " + "x" * 500 + " born?"])
def test_questions_that_cannot_be_asked_are_refused(run, question):
    with pytest.raises(QkvError, match="asking"):
        ask(run, question)


def test_a_question_without_a_name_and_one_of_strange_characters_are_answered(run):
    for question in ("who", "Where was Ω🎈 born?", "⁇", "born?"):
        assert read(run, question).name[0] < read(run, question).name[1] < len(read(run, question).ids)
        assert ask(run, question).badge


def test_scores_are_exact_matches_with_intervals_beside_the_baselines(run, people, school, tmp_path):
    asked = questions(people)
    found = evaluate(run, asked, training=asked, unpretrained=school(steps=1), lacking=school(steps=1))
    plain = generate(run, [q for q, _ in asked], ask=True).texts
    right = [said.strip() == true for said, (_, true) in zip(plain, asked, strict=True)]
    assert found.accuracy == sum(right) / 30 and found.right == (tuple(right),) and found.accuracy > 0.5
    assert found.low < found.accuracy <= found.high
    data = found.to_json()
    assert {"accuracy", "low", "high", "n", "baselines"} <= set(data) and data["n"] == 30
    (frequent, no, lacking) = found.baselines.values()
    assert no.accuracy == lacking.accuracy < found.accuracy > frequent.accuracy > 0
    assert [row["right"] for row in found.rows()] == right
    path = tmp_path / "q.tsv"
    path.write_text("".join(f"{q}\t{a}\n" for q, a in asked), "utf-8")
    twice = evaluate([run, school(steps=1)], path)
    assert twice.runs == (found.accuracy, no.accuracy) and twice.accuracy == pytest.approx(np.mean(twice.runs))
    assert math.isclose(len(twice.rows()), 60)


def test_evaluating_nothing_is_refused(run):
    for runs, asked in (([], [("a", "b")]), (run, [])):
        with pytest.raises(QkvError):
            evaluate(runs, asked)


def test_a_folder_answers_as_its_run_does_and_without_torch(run, people):
    question, _ = questions(people).pairs[0]
    assert ask(run.folder, question).answer == ask(run, question).answer
    code = "import sys; from qkv.cli import main\ntry: main()\nfinally: sys.exit('torch' in sys.modules)"
    words = [sys.executable, "-c", code, "ask", str(run.folder), question, "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["answer"] == ask(run, question).answer


def test_weights_that_are_not_those_of_the_configuration_are_refused(run, tmp_path):
    folder = shutil.copytree(run.folder, tmp_path / "run")
    data = json.loads((folder / "config.json").read_text("utf-8"))
    for changes in ({"n_layer": 3}, {"d_model": 64}, {"attention": "causal"}, {"vocab_size": 10}):
        (folder / "config.json").write_text(json.dumps({**data, "model": {**data["model"], **changes}}), "utf-8")
        with pytest.raises(QkvError, match="opening a model"):
            ask(folder, "Where was Ada Lovelace born?")


def test_sampled_answers_agree_as_often_as_the_answer_is_likely():
    along = [np.log([0.9, 0.8]), np.log([0.5]), np.log([0.99, 0.2, 0.7])]
    assert _agreement(along, 20000, 3) == pytest.approx([0.72, 0.5, 0.1386], abs=0.015)
    assert _agreement(along, 0, 3) == pytest.approx([0.72, 0.5, 0.1386])
