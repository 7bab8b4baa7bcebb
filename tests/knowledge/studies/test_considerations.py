"""Study "considerations": candidates by hand, with a tiny random model, stopped and continued, and refusals."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

from qkv.errors import QkvError
from qkv.knowledge import study
from qkv.knowledge.language_models.prompts import about
from qkv.knowledge.language_models.signals import SignalReader
from qkv.knowledge.studies import considerations


@pytest.fixture(scope="module")
def model() -> Any:
    """A tiny random model, made as for the tests of qkv.knowledge.language_models."""
    from qkv.knowledge.language_models.causal_model import from_transformers

    path = Path(__file__).parents[1] / "language_models" / "conftest.py"
    spec = importlib.util.spec_from_file_location("tiny_language_models", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return from_transformers(made.tiny_model(), made.tiny_tokenizer(chat=True))


def test_candidates_have_the_probabilities_of_the_model_in_every_way(model: Any) -> None:
    reader, question = SignalReader(model, "city"), about("Immanuel Kant", "city")
    ((candidates, same),) = considerations.consider(reader, [question])
    assert 0 <= same <= 1 and len(candidates) >= 2
    means = [each["probability"] for each in candidates]
    assert means == sorted(means, reverse=True) and sum(means) <= 1 + 1e-6
    for each in candidates:
        assert len(each["ways"]) == len(reader.ways) and each["probability"] == pytest.approx(np.mean(each["ways"]))
    greedy = reader.read([question])
    own = {each["answer"]: each["ways"][0] for each in candidates}
    chance = float(np.exp(greedy.column("log_probability")[0]))
    assert max(own.values()) >= chance * (1 - 1e-4)  # spellings of one name are added up
    # each question by itself gives what it gives among others
    (first, *_) = considerations.consider(reader, [question, about("Plato", "city")])
    assert [e["answer"] for e in first[0]] == [e["answer"] for e in candidates]
    assert [e["probability"] for e in first[0]] == pytest.approx(means, rel=1e-3)


def test_spellings_of_one_name_are_one_candidate() -> None:
    found = [("Malaga", np.array([0.1, 0.3])), ("Rome", np.array([0.35, 0.2])), ("Málaga", np.array([0.2, 0.1]))]
    candidates, same = considerations._merged(found)
    assert [each["answer"] for each in candidates] == ["Malaga", "Rome"]
    assert candidates[0]["ways"] == pytest.approx([0.3, 0.4]) and candidates[0]["probability"] == pytest.approx(0.35)
    assert same == 0.5  # the first way prefers Rome


def test_the_table_counts_where_the_right_answer_is() -> None:
    def row(kind: str, right: float) -> dict[str, Any]:
        both = [{"answer": "A", "probability": 0.5}, {"answer": "B", "probability": 0.25}]
        return {"kind": kind, "right": right, "candidates": both, "ways_with_the_same_answer": 1.0}

    rows = [row("first", 0.5), row("later", 0.25), row("never", 0.0), row("never", 0.0)]
    first, later, never = considerations.table(rows)
    assert [r["people"] for r in (first, later, never)] == [1, 1, 2] and never["share"] == 0.5
    assert first["right"] == 0.5 and later["right"] == 0.25 and never["right"] is None
    assert "75 % of the probability" in considerations.remarks(rows)[0]


def test_a_study_of_a_model_stops_and_goes_on(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(considerations, "PEOPLE_PER_CELL", 2)
    assert study("considerations", tmp_path, model=model, people=2, relation="country").done == 1
    measured: list[str] = []
    found = study(
        "considerations", tmp_path, model=model, people=4, relation="country", callback=lambda c, *_: measured.append(c)
    )
    assert measured == ["seed-0-people-2"]  # the first cell is read from its file
    assert found.complete and found.done == 2 and sum(row["people"] for row in found.rows) == 4
    assert sum(row["share"] for row in found.rows) == pytest.approx(1)
    assert json.loads((tmp_path / "study.json").read_text())["name"] == "considerations"
    assert "Is the right country among the answers" in str(found)
    with pytest.raises(QkvError, match="other settings"):
        study("considerations", tmp_path, model=model, people=4, relation="city")


def test_a_model_is_needed_here_and_refused_elsewhere(tmp_path: Path, model: Any) -> None:
    with pytest.raises(QkvError, match="none is given"):
        study("considerations", tmp_path)
    with pytest.raises(QkvError, match="trains models of its own"):
        study("rare_facts", tmp_path, model=model)
