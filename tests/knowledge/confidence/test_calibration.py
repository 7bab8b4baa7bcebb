"""The badge: what it is fitted on and measured on are different people, and what it promises it keeps."""

import json

import numpy as np
import pytest

from qkv.errors import QkvError
from qkv.knowledge import Badge, ask, biographies, questions, trust
from qkv.knowledge.confidence import calibration as module
from qkv.knowledge.confidence.badge import FILE, FORMAT, MADE_UP, NAMES, REMEMBERED, rule_of_thumb
from qkv.knowledge.confidence.calibration import fit_badge
from qkv.knowledge.confidence.features import signals
from qkv.knowledge.confidence.metrics import auroc
from qkv.knowledge.datasets.templates import about_nobody
from qkv.knowledge.studies.setup import StudySetup, drilled
from qkv.knowledge.studies.setup import people as taught
from qkv.viz.plots.knowledge import reliability


def world(n, seed):
    """Numbers as a model might show them: half the people read of, most of those answered right and surely."""
    random = np.random.default_rng(seed)
    seen = np.arange(n) % 2 == 0
    right = seen & (random.random(n) < 0.8)
    sure = np.where(right, -0.2, -3.0) + random.normal(size=n) * 0.9
    numbers = np.column_stack(
        (sure, 5 + sure, -sure, np.exp(np.minimum(sure, 0)), np.where(seen, -1.0, -4.0), sure, sure, sure)
    )
    hidden = random.normal(size=(n, 8)) + np.where(seen, 1.0, -1.0)[:, None] * [1, *[0] * 7]
    return numbers + random.normal(size=numbers.shape) * 0.3, hidden, seen, right


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95])
def test_what_is_called_remembered_is_right_as_often_as_asked(level):
    shares, wrong, covered = [], [], []
    for seed in range(12):
        numbers, hidden, seen, right = world(400, seed)
        badge = fit_badge(numbers, hidden, seen, right, level)
        numbers, hidden, seen, right = world(400, seed + 100)
        words = np.array([j.badge for j in badge.judge(numbers, hidden)])
        shares.append(right[words == REMEMBERED].mean())
        wrong.append(1 - right[words == MADE_UP].mean())
        covered.append((words[right] == REMEMBERED).mean())
    assert np.mean(shares) > level - 0.02 and np.mean(wrong) > level - 0.03 and np.mean(covered) > 0.6


def test_a_badge_survives_its_file_and_a_damaged_one_is_refused(tmp_path):
    numbers, hidden, seen, right = world(200, 0)
    badge = fit_badge(numbers, hidden, seen, right, 0.9)
    assert Badge.load(tmp_path) is None
    badge.save(tmp_path)
    again = Badge.load(tmp_path)
    assert again == badge and again.judge(numbers, hidden) == badge.judge(numbers, hidden)
    text = (tmp_path / FILE).read_text()
    data = json.loads(text)
    broken = [text[:-20], "[]", "{}", text.replace(FORMAT, "other")]
    broken += [json.dumps({**data, "probe": {**data["probe"], "weights": [1]}}), json.dumps({**data, "more": 1})]
    for each in broken:
        (tmp_path / FILE).write_text(each)
        with pytest.raises(QkvError, match="damaged"):
            Badge.load(tmp_path)


def test_without_measurements_the_badge_is_a_rule_of_thumb():
    assert [j.badge for j in rule_of_thumb([-0.01, -0.3, -3])] == ["remembered", "unsure", "made up"]


def test_a_badge_that_cannot_keep_its_promise_says_nothing():
    random = np.random.default_rng(5)
    numbers, hidden = random.normal(size=(120, len(NAMES))), random.normal(size=(120, 4))
    seen, right = np.arange(120) % 2 == 0, random.random(120) < 0.5
    badge = fit_badge(numbers, hidden, seen, right, 0.99)
    assert not any(j.badge == REMEMBERED for j in badge.judge(numbers, hidden))


def test_too_few_of_a_kind_are_refused():
    numbers, hidden, seen, right = world(400, 1)
    for changed in ((seen, np.zeros(400, bool)), (np.ones(400, bool), right)):
        with pytest.raises(QkvError, match="to fit it on"):
            fit_badge(numbers, hidden, *changed, 0.9)


def test_trust_holds_people_out_measures_every_signal_and_ask_uses_its_badge(run, people, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LEAST", 3)
    asked = questions(people, ["city", "year"])  # years were never asked for in training: most will be wrong
    strangers = [f"Where was {name} born?" for name in people.invented(30, seed=2)]
    found = trust(run, asked, strangers, level=0.6, save=False)
    assert not (run.folder / FILE).exists()
    assert found.known + found.unknown == len(found.rows()) and found.unknown == 15
    held = {row["question"] for row in found.rows()}
    for person in people:  # both questions on somebody are on the same side
        assert (f"Where was {person.name} born?" in held) == (f"When was {person.name} born?" in held)
    assert {m.signal for m in found.signals} == {
        "log_probability", "margin", "entropy", "agreement", "familiarity", "weakest", "bare", "prior", "probe",
        "badge",
    }  # fmt: skip
    counts = found.counts.values()
    assert sum(c["right"] + c["wrong"] + c["unknown"] for c in counts) == len(held)
    assert 12 <= sum(c["invented"] for c in counts) <= 15  # half as many as held out, but for those that were given
    said = [row for row in found.rows() if row["badge"] == "remembered"]
    assert found.precision == pytest.approx(np.mean([row["right"] for row in said]) if said else 1.0)
    data = json.loads(json.dumps(found.to_json()))
    assert {"precision", "coverage", "signals", "ece", "reliability"} <= set(data)
    path = tmp_path / "unknown.txt"
    path.write_text("\n".join(strangers), "utf-8")
    try:
        assert trust(run, asked, path, level=0.6).to_json() == found.to_json()
        answer = ask(run, asked.pairs[0][0])
        assert answer.evidence["right"] is not None and "of the time" in answer.why
    finally:
        (run.folder / FILE).unlink()


def test_invented_names_do_not_make_up_for_strangers_that_were_not_given(run, people):
    known, strangers = (
        questions(people, ["city", "year"]),
        [f"Where was {n} born?" for n in people.invented(30, seed=2)],
    )
    with pytest.raises(QkvError, match="there are 15 people it never read of"):
        trust(run, known, strangers, save=False)


def test_where_nothing_is_called_remembered_the_card_says_so(run, people, monkeypatch):
    monkeypatch.setattr(module, "LEAST", 3)
    strangers = [f"Where was {name} born?" for name in people.invented(30, seed=2)]
    found = trust(run, questions(people, ["city", "year"]), strangers, level=0.999, samples=2, save=False)
    assert not found.any and found.coverage == 0
    assert "No answer could be called “remembered”" in found.card().title and "lower level" in str(found.card().facts)
    title = reliability(found).axes[1].get_title(loc="left")
    assert title == "No answer could be called “remembered”"


def test_a_model_that_had_to_know_the_names_can_tell_them_from_names_put_together(tmp_path):
    facts, _ = taught(60, seed=3)
    texts, asked = biographies(facts, 1, title=True).texts, list(questions(facts))
    apart = {}
    for share in (0.0, 0.5):
        school = StudySetup(people=60, exposures=70, width=64, vocab=900, named=share)
        run = drilled(tmp_path / f"{share}", texts, asked[:30], school, seed=0)
        known = [question for question, _ in asked]
        found = signals(run, [*known, *about_nobody(known)], samples=0)
        apart[share] = auroc(found.column("weakest"), np.arange(120) < 60)
    assert apart[0.5] > 0.95 and apart[0.5] > apart[0.0] + 0.1
