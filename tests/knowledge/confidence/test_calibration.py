"""trust: the badge is fitted and measured on different people, and keeps its level on new answers."""

import json

import numpy as np
import pytest

from qkv.errors import QkvError
from qkv.knowledge import ask, questions, trust
from qkv.knowledge.confidence import calibration as module
from qkv.knowledge.confidence.badge import FILE, MADE_UP, REMEMBERED
from qkv.knowledge.confidence.calibration import _calibration_split, fit_badge
from qkv.knowledge.confidence.features import FEATURES
from qkv.viz.plots.knowledge import reliability


def invented_questions(people):
    return [f"Where was {name} born?" for name in people.invented_names(30, seed=2)]


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95])
def test_remembered_answers_are_right_as_often_as_required(level, simulate):
    shares, wrong, covered = [], [], []
    for seed in range(12):
        badge = fit_badge(*simulate(400, seed), level)
        values, hidden, _, right = simulate(400, seed + 100)
        badges = np.array([j.badge for j in badge.judge(values, hidden)])
        shares.append(right[badges == REMEMBERED].mean())
        wrong.append(1 - right[badges == MADE_UP].mean())
        covered.append((badges[right] == REMEMBERED).mean())
    assert np.mean(shares) > level - 0.02 and np.mean(wrong) > level - 0.03 and np.mean(covered) > 0.6


def test_a_badge_without_evidence_calls_nothing_remembered():
    random = np.random.default_rng(5)
    values, hidden = random.normal(size=(120, len(FEATURES))), random.normal(size=(120, 4))
    seen, right = np.arange(120) % 2 == 0, random.random(120) < 0.5
    badge = fit_badge(values, hidden, seen, right, 0.99)
    assert not any(j.badge == REMEMBERED for j in badge.judge(values, hidden))


def test_too_few_questions_of_a_kind_are_refused(simulate):
    values, hidden, seen, right = simulate(400, 1)
    for changed in ((seen, np.zeros(400, bool)), (np.ones(400, bool), right)):
        with pytest.raises(QkvError, match="to fit it on"):
            fit_badge(values, hidden, *changed, 0.9)


def test_trust_holds_people_out_measures_every_feature_and_ask_uses_its_badge(run, people, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    asked = questions(people, ["city", "year"])  # there are no training questions for years: most will be wrong
    unknown = invented_questions(people)
    found = trust(run, asked, unknown, level=0.6, save=False)
    assert not (run.folder / FILE).exists()
    assert found.known + found.unknown == len(found.rows()) and found.unknown == 15
    held_out = {row["question"] for row in found.rows()}
    for person in people:  # both questions about a person are on the same side
        assert (f"Where was {person.name} born?" in held_out) == (f"When was {person.name} born?" in held_out)
    assert [q.feature for q in found.features] == [
        "log_probability", "margin", "entropy", "agreement", "name_mean_log_probability", "name_min_log_probability",
        "name_only_log_probability", "no_name_log_probability", "probe", "badge",
    ]  # fmt: skip
    counts = found.counts.values()
    assert sum(c["right"] + c["wrong"] + c["unknown"] for c in counts) == len(held_out)
    assert 12 <= sum(c["invented"] for c in counts) <= 15  # half as many as held out, without those that were given
    remembered = [row for row in found.rows() if row["badge"] == "remembered"]
    assert found.precision == pytest.approx(np.mean([row["right"] for row in remembered]) if remembered else 1.0)
    data = json.loads(json.dumps(found.to_json()))
    assert {"precision", "coverage", "features", "ece", "reliability"} <= set(data)
    path = tmp_path / "unknown.txt"
    path.write_text("\n".join(unknown), "utf-8")
    try:
        assert trust(run, asked, path, level=0.6).to_json() == found.to_json()
        answer = ask(run, asked.pairs[0][0])
        assert answer.evidence["right"] is not None and "of the time" in answer.why
    finally:
        (run.folder / FILE).unlink()


def test_the_rows_of_trust_give_its_figures(run, people, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    found = trust(run, questions(people, ["city", "year"]), invented_questions(people), level=0.6, save=False)
    rows = found.rows()
    right = [row for row in rows if row["right"]]
    assert found.coverage == pytest.approx(sum(row["badge"] == REMEMBERED for row in right) / len(right))
    assert found.accuracy == pytest.approx(np.mean([row["right"] for row in rows if row["seen"]]))
    pairs = [
        (a["p_right"] > b["p_right"]) + (a["p_right"] == b["p_right"]) / 2
        for a in rows
        for b in rows
        if a["seen"] and b["seen"] and a["right"] and not b["right"]
    ]
    assert found.quality("badge").auroc_right == pytest.approx(np.mean(pairs))
    for row in rows:
        assert row["badge"] == found.badge.name(row["p_right"])


def test_invented_names_do_not_replace_unknown_people_that_were_not_given(run, people):
    with pytest.raises(QkvError, match="there are 15 questions about people who are not in the text"):
        trust(run, questions(people, ["city", "year"]), invented_questions(people), save=False)


def test_if_nothing_is_called_remembered_card_and_figure_say_so(run, people, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    asked = questions(people, ["city", "year"])
    found = trust(run, asked, invented_questions(people), level=0.999, n_samples=2, save=False)
    assert not found.any_remembered and found.coverage == 0
    assert "No answer can be called “remembered”" in found.card().title and "lower level" in str(found.card().facts)
    title = reliability(found).axes[1].get_title(loc="left")
    assert title == "No answer can be called “remembered”"


def test_the_split_is_by_person_with_the_same_share_of_known_and_unknown():
    names = [
        f"{first} {last}" for first in ("Ada", "Alan", "Emmy", "Kurt") for last in ("Lovelace", "Turing", "Noether")
    ]
    asked = [form.format(name) for name in names for form in ("Where was {} born?", "When was {} born?")]
    seen = np.arange(24) < 16
    fitted = _calibration_split(asked, seen, 0.5, seed=0)
    assert (fitted[::2] == fitted[1::2]).all() and fitted[:16].sum() == 8 and fitted[16:].sum() == 4
    assert (fitted != _calibration_split(asked, seen, 0.5, seed=1)).any()
    with pytest.raises(QkvError, match="calibration share"):
        _calibration_split(asked, seen, 1.0, seed=0)
