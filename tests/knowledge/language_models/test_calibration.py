"""Badge, trust and scores on synthetic signals with known truth; ask and evaluate with a tiny model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from qkv.errors import QkvError
from qkv.knowledge import Facts, Person, pantheon
from qkv.knowledge.language_models import ask, calibration, evaluate, known_facts, trust
from qkv.knowledge.language_models.answer_file import fingerprint
from qkv.knowledge.language_models.badge import INPUTS, ModelBadge, badge_path, fit_model_badge
from qkv.knowledge.language_models.calibration import measured, names_of_nobody
from qkv.knowledge.language_models.causal_model import CausalModel
from qkv.knowledge.language_models.known_facts import KnownFacts, draw_people, known_groups
from qkv.knowledge.language_models.prompts import Question, about, example_people
from qkv.knowledge.language_models.signals import SIGNALS, Signals

CITIES = {person.name: person.city for person in pantheon()}
ALL_CITIES = tuple(CITIES.values())


def made_up_signals(
    questions: Sequence[Question], seed: int, right_share: float = 0.4, strength: float = 2.0
) -> Signals:
    """Answers of a model that knows a random part of the people, with signals that tell which, and noise."""
    random = np.random.default_rng((seed, len(questions)))
    real = np.array([question.name in CITIES for question in questions])
    knows = real & (random.random(len(questions)) < right_share)
    values = random.normal(size=(len(questions), len(SIGNALS)))
    values[:, list(SIGNALS).index("other_ways")] += strength * knows
    values[:, list(SIGNALS).index("entropy")] = np.abs(values[:, list(SIGNALS).index("entropy")]) + 0.1
    values[:, list(SIGNALS).index("name_bond")] += 2.0 * real
    answers = tuple(
        CITIES[q.name] if known else ALL_CITIES[random.integers(len(ALL_CITIES))]
        for q, known in zip(questions, knows, strict=True)
    )
    hidden = random.normal(size=(len(questions), 12)).astype(np.float32)
    hidden[:, 0] += 2 * real
    n = len(questions)
    return Signals(tuple(questions), answers, ((5,),) * n, (True,) * n, (((5, -1.0),),) * n, values, hidden)


def labelled(n: int, seed: int, **options: float) -> tuple[Signals, list[str]]:
    people = draw_people(None, "city", n, seed)
    names = names_of_nobody(people, n // 2, seed)
    found = made_up_signals([about(name, "city") for name in (*(p.name for p in people), *names)], seed, **options)
    return found, [p.city for p in people] + [""] * len(names)


def fitted(found: Signals, expected: list[str], level: float, seed: int = 0) -> tuple[ModelBadge, Any]:
    return fit_model_badge("city", "print", found, expected, level=level, seed=seed)


@pytest.mark.slow
def test_the_stated_level_holds_on_other_people_in_nearly_all_draws() -> None:
    broken, covered = 0, []
    for seed in range(20):
        badge, _ = fitted(*labelled(300, seed, strength=3.0), level=0.9, seed=seed)
        found, expected = labelled(2000, 1000 + seed, strength=3.0)
        other = measured(badge, None, found, expected)
        broken += other.precision < other.stated_level
        covered.append(other.coverage)
    assert broken <= 3  # 5 % of 20 draws are expected; four or more have a probability below 2 %
    assert np.mean(covered) > 0.4


def test_signals_without_information_guarantee_no_more_than_the_base_rate() -> None:
    badge, fit = fitted(*labelled(400, 3, strength=0.0, right_share=0.3), level=0.95)
    assert badge.remembered.level < 0.75
    assert measured(badge, fit, *labelled(400, 3, strength=0.0, right_share=0.3)).quality("badge").auroc_right < 0.62


@pytest.mark.parametrize("share", [0.55, 0.75])
def test_the_rate_of_an_answer_does_not_give_away_whether_it_is_right(share: float) -> None:
    """A model that answers Rome to everybody, and a share of the people who are from there by chance."""
    false, seen = 0, []
    for seed in range(8):
        found, expected = labelled(80, seed, strength=0.0)
        found = replace(found, answers=("Rome",) * len(found.answers))
        random = np.random.default_rng((seed, 5))
        expected = [("Rome" if random.random() < share else "Oslo") if each else "" for each in expected]
        badge, fit = fitted(found, expected, level=0.9, seed=seed)
        false += badge.remembered.level > share
        false += badge.calibrator.made_up.level > 1 - share
        seen.append(measured(badge, fit, found, expected).quality("badge").auroc_right or 0.5)
    assert false <= 2 and np.mean(seen) < 0.6


def test_every_weight_of_a_model_counts_for_its_fingerprint(model: CausalModel, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    model.model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    stored = replace(model, name=str(folder))
    without_folder = replace(model, name="in memory")
    before, in_memory = fingerprint(stored), fingerprint(without_folder)
    weights = load_file(folder / "model.safetensors")
    for name in weights:
        changed = {other: tensor.clone() for other, tensor in weights.items()}
        changed[name].view(-1)[0] += 1
        save_file(changed, folder / "model.safetensors", metadata={"format": "pt"})
        assert fingerprint(stored) != before, name
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    for parameter in model.model.parameters():
        with torch.no_grad():
            parameter.view(-1)[:2] += torch.tensor([1.0, -1.0])  # the sum stays
            assert fingerprint(without_folder) != in_memory
            parameter.view(-1)[:2] -= torch.tensor([1.0, -1.0])


@pytest.mark.parametrize(
    "file",
    [
        "merges.txt",
        "vocab.txt",
        "spiece.model",
        "trusted_weights.safetensors",
        "vocab.bpe",
        "additional_chat_templates/default.jinja",
    ],
)
def test_every_file_of_a_tokenizer_counts_for_the_fingerprint(model: CausalModel, tmp_path: Path, file: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("one")
    stored = replace(model, name=str(tmp_path))
    before = fingerprint(stored)
    (tmp_path / "qkv-trust-city.json").write_text("a badge does not change the answers")
    (tmp_path / ".qkv-tmp-1f.json").write_text("nor does what a killed save left")
    assert fingerprint(stored) == before
    (tmp_path / file).write_text("two")
    assert fingerprint(stored) != before


def test_a_model_that_says_nothing_is_refused_with_the_count() -> None:
    found, expected = labelled(40, 1)
    found = replace(found, answers=("",) * len(found.answers))
    with pytest.raises(QkvError, match="0 answers are right and 0 wrong"):
        fitted(found, expected, level=0.9)


def test_the_badge_separates_what_its_signals_separate() -> None:
    found, expected = labelled(500, 4, strength=3.0)
    badge, fit = fitted(found, expected, level=0.9)
    result = measured(badge, fit, found, expected)
    assert result.quality("badge").auroc_right > 0.95 > 0.6 > abs(result.quality("margin").auroc_right or 0)
    assert result.quality("badge").auroc_seen > 0.9
    assert result.known == 500 and result.unknown == 0 and not result.held_out
    assert sum(sum(kinds.values()) for kinds in result.counts.values()) == len(expected)
    assert "real people" in str(result) and "in the text" not in str(result)


def test_a_badge_is_read_back_as_it_was_and_refused_when_damaged_or_of_another_model(tmp_path: Path) -> None:
    found, expected = labelled(200, 1)
    badge, _ = fitted(found, expected, level=0.8)
    badge.save(tmp_path)
    again = ModelBadge.load(tmp_path, "city", "print")
    assert again is not None and again.judge(found) == badge.judge(found)
    assert ModelBadge.load(tmp_path, "country", "print") is None
    with pytest.raises(QkvError, match="other weights"):
        ModelBadge.load(tmp_path, "city", "another")
    path = badge_path(tmp_path, "city")
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "model": "another"}))
    with pytest.raises(QkvError, match="damaged"):
        ModelBadge.load(tmp_path, "city", "print")


def test_too_few_right_answers_are_refused_in_a_sentence() -> None:
    found, expected = labelled(60, 2, right_share=0.0)
    with pytest.raises(QkvError, match=r"[01] answers are right and (59|60) wrong"):
        fitted(found, expected, level=0.9)


def test_a_fit_without_invented_names_works() -> None:
    found, expected = labelled(200, 5)
    rows = Signals(*(getattr(found, name)[:200] for name in list(found.__dataclass_fields__)))
    badge, _ = fit_model_badge("city", "x", rows, expected[:200], level=0.8)
    assert badge.calibrator.features == INPUTS and badge.judge(found)[0].p_seen is None


@pytest.mark.slow
def test_trust_writes_a_badge_that_ask_uses(
    model: CausalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    width = 2 * int(model.model.config.hidden_size)

    def fake(_: object, questions: Sequence[Question], **__: object) -> Signals:
        found = made_up_signals(questions, 7, strength=3.0)
        wide = np.zeros((len(questions), width), dtype=np.float32)
        wide[:, :12] = found.hidden
        return Signals(*(getattr(found, name) for name in list(found.__dataclass_fields__)[:-1]), wide)

    question = "In which city was Immanuel Kant born?"
    before = ask(model, question)
    assert before.guarantee is None and "rule of thumb" in before.why and before.name == "Immanuel Kant"
    monkeypatch.setattr(calibration, "read_signals", fake)
    result = trust(model, relation="city", people=200, level=0.8)
    assert result.stated_level == pytest.approx(0.8) and not result.kept_earlier
    try:
        after = ask(model, question)
        assert after.answer == before.answer and after.evidence["right"] is not None
        assert "rule of thumb" not in after.why
        monkeypatch.setattr(calibration, "read_signals", lambda m, q, **k: _useless(q, width))
        assert trust(model, relation="city", people=200, level=0.8).kept_earlier
    finally:
        badge_path(model.name, "city").unlink()
    assert fingerprint(model) == fingerprint(model)


def _useless(questions: Sequence[Question], width: int) -> Signals:
    found = made_up_signals(questions, 8, right_share=0.1, strength=0.0)
    return Signals(
        *(getattr(found, name) for name in list(found.__dataclass_fields__)[:-1]),
        np.zeros((len(questions), width), dtype=np.float32),
    )


def test_ask_gives_an_answer_with_alternatives_evidence_and_heads(model: CausalModel) -> None:
    answer = ask(model, "In which city was Immanuel Kant born?")
    assert answer.alternatives[0].text == answer.answer
    assert [a.probability for a in answer.alternatives[1:]] == sorted(
        (a.probability for a in answer.alternatives[1:]), reverse=True
    )
    assert set(SIGNALS) < set(answer.evidence) and len(answer.heads) == 8
    assert all(0 <= head.weight <= 1 + 1e-6 for head in answer.heads)
    unnamed = ask(model, "why is the sky blue?")
    assert unnamed.name == "" and "no name was found" in unnamed.why and not unnamed.heads
    with pytest.raises(QkvError, match="empty"):
        ask(model, " ")


def test_evaluate_counts_right_answers_by_groups(monkeypatch: pytest.MonkeyPatch, model: CausalModel) -> None:
    monkeypatch.setattr(known_facts, "read_signals", lambda m, q, **k: made_up_signals(q, 1))
    found = evaluate(model, relation="city", people=600, seed=3)
    assert isinstance(found, KnownFacts) and found.n == 600 and 0.3 < found.accuracy < 0.5
    assert found.accuracy == sum(found.right[0]) / 600 == sum(row["right"] for row in found.rows()) / 600
    by_kind = {kind: [g for g in found.groups if g.kind == kind] for kind in ("page views", "occupation", "century")}
    assert all(by_kind.values())
    assert sum(g.n for g in by_kind["page views"]) <= 600
    assert [g.group for g in by_kind["century"]][:2] == ["before Christ", "1 to 1500"]
    assert all(g.low <= g.right / g.n <= g.high for g in found.groups)
    assert "asked for their city" in str(found)


def test_groups_count_exactly() -> None:
    people = [p for p in pantheon().people[:120] if p.name not in example_people()]
    right = [p.occupation == "singer" for p in people]
    groups = {(g.kind, g.group): g for g in known_groups(people, right)}
    singers = sum(p.occupation == "singer" for p in people)
    assert groups["occupation", "singer"].right == groups["occupation", "singer"].n == singers
    first = sum(p in pantheon().people[:100] for p in people)
    assert groups["page views", "rank 1 to 100"].n == first


def test_evaluate_takes_questions_of_your_own(model: CausalModel) -> None:
    pairs = [("In which city was Plato born?", "Athens"), ("Where was Immanuel Kant born?", "Kaliningrad")]
    found = evaluate(model, pairs)
    assert found.n == 2 and found.relation == "city" and found.groups == ()
    mixed = evaluate(model, [*pairs, ("In which year was Plato born?", "427 BC")])
    assert mixed.relation == "" and mixed.n == 3
    with pytest.raises(QkvError, match="no questions"):
        evaluate(model, [])


def test_the_people_drawn_are_in_no_example_and_the_same_for_a_seed() -> None:
    one, two = draw_people(None, "city", 500, 3), draw_people(None, "city", 500, 3)
    assert one == two and one != draw_people(None, "city", 500, 4)
    assert not {p.name for p in draw_people(None, "city", 20_000, 0)} & example_people()
    with pytest.raises(QkvError):
        draw_people(None, "pet", 5, 0)
    dune = Person("Dune", more=(("year", "1965"),))  # of a table title,year
    with pytest.raises(QkvError, match=r"“year” may mean anything in these facts. Call it year of birth"):
        draw_people(Facts((dune,)), "year", 5, 0)
    ada = Person("Ada Berg", year="1965")
    assert draw_people(Facts((dune, ada)), "year", 5, 0) == [ada]


def test_names_of_nobody_are_in_no_row_of_the_shipped_table() -> None:
    people = draw_people(None, "city", 300, 0)
    names = names_of_nobody(people, 150, 0)
    assert len(names) == 150 and not set(names) & set(CITIES)
    assert names_of_nobody(people[:1], 5, 0) == []


def test_empty_answers_have_no_badge_and_no_part_in_its_level():
    found, expected = labelled(120, 3)
    empty = [i % 4 == 1 for i in range(len(expected))]
    answers = tuple("" if gone else answer for gone, answer in zip(empty, found.answers, strict=True))
    with_empty = replace(found, answers=answers)
    rest, wanted = with_empty.not_empty(expected)
    assert len(rest.answers) == len(wanted) == empty.count(False) and all(rest.answers)
    badge, fit = fitted(with_empty, expected, 0.8)
    alone = fitted(rest, wanted, 0.8)[0]
    assert (badge.calibrator, badge.rates) == (alone.calibrator, alone.rates) and len(fit.scores) == len(wanted)
    card = measured(badge, fit, with_empty, expected)
    assert card.empty == sum(empty) and sum(sum(each.values()) for each in card.counts.values()) == len(wanted)


def test_a_folder_or_a_broken_link_is_not_taken_for_a_model_without_a_badge(tmp_path):
    path = badge_path(tmp_path, "city")
    path.mkdir()
    with pytest.raises(QkvError, match="it is no file"):
        ModelBadge.load(tmp_path, "city", "print")
    path.rmdir()
    path.symlink_to(tmp_path / "nothing")
    with pytest.raises(QkvError, match="it is no file"):
        ModelBadge.load(tmp_path, "city", "print")
