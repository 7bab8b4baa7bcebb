"""Signals against log-probabilities of plain forward passes; the file of answers that a stopped run continues."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from qkv.errors import QkvError
from qkv.knowledge import pantheon
from qkv.knowledge.language_models import answer_file
from qkv.knowledge.language_models.answer_file import read_signals
from qkv.knowledge.language_models.causal_model import CausalModel, from_transformers
from qkv.knowledge.language_models.prompts import NAME_CONTEXTS, about, understood
from qkv.knowledge.language_models.signals import SIGNALS, SignalReader, answer_text, first_names, invented_names

from .conftest import tiny_model, tiny_tokenizer
from .test_causal_model import plain_logs

NAMES = ("Immanuel Kant", "Plato", "Ada Lovelace")


def log_probability(model: CausalModel, prompt: list[int], tokens: tuple[int, ...]) -> float:
    logs = plain_logs(model.model, [*prompt, *tokens])[len(prompt) - 1 :]
    return sum(float(logs[i, t]) for i, t in enumerate(tokens)) + float(logs[-1][model.ends].logsumexp(-1))


def test_signals_are_what_they_are_called(model: CausalModel) -> None:
    reader = SignalReader(model, "city")
    found = reader.read([about(name, "city") for name in NAMES])
    assert found.values.shape == (3, len(SIGNALS)) and np.isfinite(found.values).all()
    for i, name in enumerate(NAMES):
        question, tokens = found.questions[i], found.tokens[i]
        main, *others = [log_probability(model, reader._ids(way.prompt(question)), tokens) for way in reader.ways]
        nobody = [log_probability(model, reader.prompt(about(other, "city")), tokens) for other in invented_names()]
        wanted = {
            "log_probability": main,
            "mean_log_probability": main / (len(tokens) + 1),
            "other_ways": np.mean(others),
            "movement": np.std([main, *others]),
            "nobody": np.logaddexp.reduce(nobody) - np.log(len(nobody)),
            "contrast": main - np.logaddexp.reduce(nobody) + np.log(len(nobody)),
        }
        words = [model.encode(f" {word}") for word in (name.rpartition(" ")[0], name.rpartition(" ")[2]) if word]
        ids, last, bonds = [token for word in words for token in word], words[-1], []
        for i_context, text in enumerate(NAME_CONTEXTS):
            context = reader._context(text)
            logs = plain_logs(model.model, [*context, *ids])[len(context) - 1 :]
            own = [float(logs[j, token]) for j, token in enumerate(ids)]
            if i_context == 0:
                wanted |= {"name_log_probability": np.mean(own), "name_least": min(own)}
            others = []
            for first in first_names():
                start = [*context, *model.encode(f" {first}")]
                after = plain_logs(model.model, [*start, *last])[len(start) - 1 :]
                others.append(sum(float(after[j, token]) for j, token in enumerate(last)))
            bonds.append(sum(own[-len(last) :]) - np.logaddexp.reduce(others) + np.log(len(others)))
        wanted |= {"name_bond": bonds[0], "bond_among_famous": bonds[1]}
        for signal, value in wanted.items():
            assert found.column(signal)[i] == pytest.approx(value, abs=2e-3), signal
    assert model.decode(reader._context(NAME_CONTEXTS[0])).endswith(NAME_CONTEXTS[0])


def test_every_wording_for_a_relation_is_put_to_the_model_as_badges_are_fitted(model: CausalModel) -> None:
    reader = SignalReader(model, "city")
    asked, same = understood("Where was Immanuel Kant born?"), about("Immanuel Kant", "city")
    assert asked.relation == "city" and asked.text != same.text
    assert reader.prompt(asked) == reader.prompt(same) and reader.prompts(asked) == reader.prompts(same)
    assert reader.name_positions(asked) == reader.name_positions(same)
    found = reader.read([asked, same])
    assert found.answers[0] == found.answers[1] and np.allclose(found.values[0], found.values[1])
    assert found.questions[0].text == "Where was Immanuel Kant born?"
    other = understood("Which city did Immanuel Kant like?")
    assert other.relation == "" and other.text in reader.ways[0].prompt(SignalReader(model, "")._worded(other))


def test_invented_names_are_of_nobody_in_the_shipped_table() -> None:
    assert not set(invented_names()) & {person.name for person in pantheon()}
    assert len(set(first_names())) == 3


def test_an_answer_has_no_full_stop_and_no_quotation_marks(model: CausalModel) -> None:
    for written, text in ((" London.", "London"), (' "London"', "London"), (" Washington, D.C.", "Washington, D.C.")):
        assert answer_text(model, model.encode(written)) == text


def test_the_positions_of_the_name_are_its_last_mention(model: CausalModel) -> None:
    reader = SignalReader(model, "city")
    for name in NAMES:
        question = about(name, "city")
        first, last = reader.name_positions(question)
        assert name in model.decode(reader.prompt(question)[first:last])
        assert name not in model.decode(reader.prompt(question)[first + 1 :])


def test_a_stopped_run_goes_on_and_asks_nothing_twice(
    model: CausalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_file, "QUESTIONS_PER_STEP", 2)
    asked = [about(person.name, "city") for person in pantheon().people[100:105]]
    whole = read_signals(model, asked)
    path, calls = tmp_path / "answers.jsonl", []
    read = SignalReader.read

    def stopping(self: SignalReader, questions: object) -> object:
        calls.append(len(questions))  # type: ignore[arg-type]
        if len(calls) == 3:
            raise KeyboardInterrupt
        return read(self, questions)  # type: ignore[arg-type]

    monkeypatch.setattr(SignalReader, "read", stopping)
    with pytest.raises(KeyboardInterrupt):
        read_signals(model, asked, path=path)
    with path.open("a") as file:
        file.write('{"question": "cut o')
    seen: list[tuple[int, int]] = []
    again = read_signals(model, asked, path=path, progress=lambda done, total: seen.append((done, total)))
    assert calls == [2, 2, 1, 1] and seen == [(4, 5), (5, 5)]
    assert again.answers == whole.answers and np.allclose(again.values, whole.values, atol=2e-3)
    assert np.allclose(again.hidden, whole.hidden, atol=2e-2)
    read_signals(model, asked, path=path)
    assert calls == [2, 2, 1, 1]


def test_answers_of_another_model_or_relation_and_damaged_ones_are_refused(model: CausalModel, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    asked = [about("Plato", "city")]
    read_signals(model, asked, path=path)
    other = from_transformers(tiny_model(seed=5), tiny_tokenizer(), name="another")
    with pytest.raises(QkvError, match="another model"):
        read_signals(other, asked, path=path)
    with pytest.raises(QkvError, match="another relation"):
        read_signals(model, [about("Plato", "country")], path=path)
    lines = path.read_text().splitlines()
    row = json.loads(lines[1])
    for damage in ({"values": row["values"][:-1]}, {"values": [float("nan")] * len(SIGNALS)}, {"question": None}):
        path.write_text("\n".join((lines[0], json.dumps({**row, **damage}), "")))
        if damage == {"question": None}:
            continue
        with pytest.raises(QkvError, match="continuing with the answers"):
            read_signals(model, asked, path=path)
    path.write_text("not json\n")
    with pytest.raises(QkvError, match="continuing with the answers"):
        read_signals(model, asked, path=path)
    with pytest.raises(QkvError, match="same"):
        read_signals(model, [about("Plato", "city"), about("Plato", "year")])


def test_a_question_of_no_relation_has_signals_too(model: CausalModel) -> None:
    found = read_signals(model, [understood("Who taught Immanuel Kant?"), understood("why is the sky blue?")])
    assert np.isfinite(found.values).all()


@pytest.mark.parametrize("layers", [1, 3])
def test_a_model_of_any_number_of_layers_is_read(layers: int) -> None:
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=640, hidden_size=32, intermediate_size=64, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, bos_token_id=0, eos_token_id=2,
    )  # fmt: skip
    made = from_transformers(transformers.LlamaForCausalLM(config), tiny_tokenizer())
    found = SignalReader(made, "city").read([about(name, "city") for name in NAMES])
    assert found.hidden.shape == (3, 64) and np.isfinite(found.values).all()
