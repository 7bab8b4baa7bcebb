"""trust: every person is judged out of fold, and the badge keeps its level on new answers."""

import json
import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import special

from qkv.errors import QkvError
from qkv.knowledge import ask, questions, trust
from qkv.knowledge.confidence import calibration as module
from qkv.knowledge.confidence.badge import FILE, MADE_UP, REMEMBERED, Badge
from qkv.knowledge.confidence.calibration import MIN_PER_KIND, _calibration_split, _questions, fit_badge
from qkv.knowledge.confidence.features import FEATURES, answer_features
from qkv.knowledge.confidence.kind_levels import KindLevel
from qkv.knowledge.datasets.templates import name_of
from qkv.knowledge.intervals import wilson_interval
from qkv.train import checkpoint
from qkv.train.runs import load
from qkv.viz.plots.knowledge import reliability


def invented_names(people):
    return [f"Where was {name} born?" for name in people.invented_names(30, seed=2)]


@pytest.mark.parametrize("level", [*(pytest.param(low, marks=pytest.mark.slow) for low in (0.8, 0.9)), 0.95])
def test_remembered_answers_are_right_as_often_as_required(level, simulate):
    shares, wrong, covered = [], [], []
    for seed in range(12):
        badge, _ = fit_badge(*simulate(400, seed), level)
        values, right, groups = (each[simulate(400, seed + 100)[2] != "invented"] for each in simulate(400, seed + 100))
        badges = np.array([j.badge for j in badge.judge(values)])
        assert set(groups) == {"known", "outsider"}
        shares.append(right[badges == REMEMBERED].mean())
        wrong.append(1 - right[badges == MADE_UP].mean())
        covered.append((badges[right] == REMEMBERED).mean())
    assert np.mean(shares) > level and np.mean(wrong) > level - 0.02 and np.mean(covered) > 0.6


def test_a_badge_without_evidence_calls_nothing_remembered():
    random = np.random.default_rng(5)
    values = random.normal(size=(180, len(FEATURES)))
    groups, right = np.array(["known", "outsider", "invented"] * 60), random.random(180) < 0.5
    badge, _ = fit_badge(values, right, groups, 0.99)
    assert badge.remembered.level < 0.6
    assert badge.remembered.accepted == 0 or badge.remembered.more == np.inf


def test_too_few_questions_of_a_kind_are_refused(simulate):
    values, right, groups = simulate(400, 1)
    for changed in ((np.zeros(400, bool), groups), (right, np.full(400, "known")), (right, np.full(400, "invented"))):
        with pytest.raises(QkvError, match="to fit it on"):
            fit_badge(values, *changed, 0.9)


def test_trust_judges_everybody_out_of_fold_and_ask_uses_its_badge(run, people, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    asked = questions(people, ["city", "year"])  # there are no training questions for years: most will be wrong
    unknown = invented_names(people)
    found = trust(run, asked, unknown, level=0.6, save=False)
    assert not (run.folder / FILE).exists() and not found.held_out and not found.kept_earlier
    assert found.known + found.unknown + found.empty >= len(found.rows()) == found.known + found.unknown
    assert [q.feature for q in found.features] == [*FEATURES, "badge"]
    counts = found.counts.values()
    assert sum(c["right"] + c["wrong"] + c["unknown"] for c in counts) == len(found.rows())
    assert 20 <= sum(c["invented"] for c in counts) <= 240  # at most four for each known question
    remembered = [row for row in found.rows() if row["badge"] == "remembered"]
    assert found.precision == pytest.approx(np.mean([row["right"] for row in remembered]) if remembered else 1.0)
    assert found.stated_level == found.badge.remembered.level <= found.level == 0.6
    data = json.loads(json.dumps(found.to_json()))
    assert {"precision", "coverage", "features", "ece", "reliability", "stated_level", "plain"} <= set(data)
    limits = {each["group"]: each for each in data["outside"]}
    for kind, group, name in (
        ("unknown", "outsider", "people not in the text"),
        ("invented", "invented", "invented names"),
    ):
        of_kind = sum(c[kind] for c in counts)
        assert limits[group]["n"] == of_kind and found.counts[REMEMBERED][kind] <= limits[group]["allowed"]
        said = dict(found.card().facts)[name]
        assert said.startswith(f"{found.counts[REMEMBERED][kind]} of {of_kind} answers")
        assert ("measured, not guaranteed" in said) != limits[group]["shown"] == ("at most 3 % of such names" in said)
    right_known = [row for row in found.rows() if row["right"] and row["seen"]]
    called = sum(row["badge"] == REMEMBERED for row in right_known)
    assert data["known_coverage"] == found.known_coverage == pytest.approx(called / len(right_known))
    path = tmp_path / "unknown.txt"
    path.write_text("\n".join(unknown), "utf-8")
    try:
        assert trust(run, asked, path, level=0.6).to_json() == found.to_json()
        answer = ask(run, asked.pairs[0][0])
        assert answer.evidence["right"] is not None and "than one never read" in answer.why
        assert answer.badge == "unsure" or "95 % confidence" in answer.guarantee
        unnamed = ask(run, "where was he born?")
        assert unnamed.badge in (None, "unsure") and "no name was found" in unnamed.why
    finally:
        (run.folder / FILE).unlink()


def test_with_a_calibration_share_people_are_held_out(run, people, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    asked = questions(people, ["city", "year"])
    found = trust(run, asked, invented_names(people), level=0.6, calibration=0.5, save=False, n_samples=0)
    held_out = {row["question"] for row in found.rows()}
    assert found.held_out and found.known + found.empty >= 25 and len(held_out) < len(asked)
    for person in people:  # both questions about a person are on the same side, unless an answer is empty
        both = {f"Where was {person.name} born?", f"When was {person.name} born?"} & held_out
        assert len(both) in (0, 2) or found.empty


@pytest.mark.slow
def test_a_lower_level_never_covers_less(run, people, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    asked, unknown = questions(people, ["city", "year"]), invented_names(people)
    levels = (0.3, 0.8, 0.99)
    found = [trust(run, asked, unknown, level=level, n_samples=0, save=False) for level in levels]
    covers = [each.coverage for each in found]
    assert covers == sorted(covers, reverse=True)
    for each in found:
        assert each.stated_level <= max(each.level, 0.5)  # below one half, one half is shown
        assert (each.more_questions == 0) == (each.stated_level >= each.level)


@pytest.mark.slow
def test_a_fit_that_came_to_nothing_keeps_the_badge_that_works(run, people, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    asked, unknown = questions(people, ["city", "year"]), invented_names(people)
    try:
        assert trust(run, asked, unknown, level=0.5, max_outside=0.9, n_samples=0).stated_level > 0
        works = (run.folder / FILE).read_text()
        wrong = [(question, answer + "?" * (i % 5 > 0)) for i, (question, answer) in enumerate(asked)]
        nothing = trust(run, wrong, unknown, level=0.99, n_samples=0)
        assert nothing.stated_level == 0 and nothing.kept_earlier and (run.folder / FILE).read_text() == works
        assert "kept" in dict(nothing.card().facts)["not saved"]
    finally:
        (run.folder / FILE).unlink()


def test_the_rows_of_trust_give_its_figures(run, people, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    found = trust(run, questions(people, ["city", "year"]), invented_names(people), level=0.6, save=False, n_samples=0)
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
        assert row["badge"] == found.badge.calibrator.badge_of_score(special.logit(row["p_right"]))


@pytest.mark.slow
def test_repeated_questions_show_no_more_and_the_interval_counts_people(run, people, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    options = {"level": 0.6, "max_outside": 0.9, "save": False}
    asked, unknown = list(questions(people, ["city", "year"]).pairs), invented_names(people)
    once = trust(run, asked, unknown, **options)
    assert trust(run, asked * 3, [*unknown, *unknown], **options).to_json() == once.to_json()
    called = Counter(name_of(row["question"]) for row in once.rows() if row["badge"] == REMEMBERED)
    assert called and called.total() == once.n_remembered
    draws = once.n_remembered**2 / sum(count**2 for count in called.values())
    assert (once.low, once.high) == pytest.approx(wilson_interval(once.precision * draws, draws))
    assert any("which the interval counts" in remark for remark in once.remarks) == (len(called) < once.n_remembered)


def test_wrong_is_not_said_of_guesses_about_people_whose_answer_nobody_gave(run, people, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    asked = list(questions(people, ["city"]).pairs)
    unknown = invented_names(people)
    options = {"level": 0.6, "max_outside": 0.9, "save": False}
    for answered, says in ((unknown, "wrong, or about somebody who is not in the text, at least"), (
        [(question, "Nowhere") for question in unknown], "wrong at least",
    )):  # fmt: skip
        found = trust(run, asked, answered, **options)
        assert found.badge.n_unanswered == (len(unknown) if answered is unknown else 0)
        assert found.badge.statement(MADE_UP).startswith(says) or not found.badge.calibrator.made_up.accepted


def test_nobody_is_known_and_unknown(run, people):
    asked = list(questions(people, ["city"]).pairs)
    names = "|".join(name_of(question) for question, _ in asked[3:5])
    with pytest.raises(QkvError, match=rf"2 names are among the known and the unknown people, such as ({names})"):
        trust(run, asked, [*invented_names(people), asked[3][0], asked[4][0]])


def test_a_name_with_more_questions_than_others_is_said_to_count_once(run, people, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    both, one = list(questions(people, ["city", "year"]).pairs), list(questions(people, ["city"]).pairs)
    options = {"level": 0.6, "max_outside": 0.9, "save": False}
    said = "some have more questions than others: what is guaranteed counts each name once, by one of its questions"
    assert said not in trust(run, one, invented_names(people), **options).remarks
    assert said in trust(run, [*one, *both[:10]], invented_names(people), **options).remarks


def test_invented_names_do_not_replace_unknown_people_that_were_not_given(run, people):
    with pytest.raises(QkvError, match="there are 15 questions about people who are not in the text"):
        trust(run, questions(people, ["city", "year"]), invented_names(people)[:15], save=False, n_samples=0)


def test_if_nothing_is_called_remembered_card_and_figure_say_so(run, people, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    asked = questions(people, ["city", "year"])
    wrong = [(question, answer + "?" * (i % 5 > 0)) for i, (question, answer) in enumerate(asked)]
    found = trust(run, wrong, invented_names(people), level=0.999, n_samples=2, save=False)
    assert not found.any_remembered and found.coverage == 0 == found.stated_level and found.more_questions is None
    assert found.card().title == "No answer can be called “remembered” at 99.9 %"
    assert "no set of the surest answers passes both the level" in dict(found.card().facts)["for 99.9 %"]
    title = reliability(found).axes[1].get_title(loc="left")
    assert title == "No answer can be called “remembered”"
    low = replace(found, level=0.3).card()  # below one half, one half is what could not be shown
    assert low.title == "No answer can be called “remembered” at 50 %, the least that is called so"
    assert "for 50 %" in dict(low.facts) and "30 %" not in str(low)


def test_the_split_is_by_person_with_the_same_share_of_known_and_unknown():
    names = [
        f"{first} {last}" for first in ("Ada", "Alan", "Emmy", "Kurt") for last in ("Lovelace", "Turing", "Noether")
    ]
    asked = [form.format(name) for name in names for form in ("Where was {} born?", "When was {} born?")]
    seen = np.arange(24) < 16
    fitted = _calibration_split([name_of(q) for q in asked], seen, 0.5, seed=0)
    assert (fitted[::2] == fitted[1::2]).all() and fitted[:16].sum() == 8 and fitted[16:].sum() == 4
    assert (fitted != _calibration_split([name_of(q) for q in asked], seen, 0.5, seed=1)).any()
    assert _calibration_split([name_of(q) for q in asked], seen, 1.0, seed=0).all()


class NoText:
    """A check of names without any text."""

    checked, unchecked, text, trained = (), (), None, frozenset()

    def __contains__(self, name):
        return False


@pytest.mark.parametrize("calibration", [1.0, 0.5])
def test_invented_names_stand_where_the_frame_has_the_name(calibration):
    frames = ["which tool does … need?"]
    names = [f"{one}ish {two}er" for one, two in zip("abcdefghijklmnop", "qrstuvwxyzabcdef", strict=True)]
    known = [(f"which tool does {name} need?", "saw") for name in names]
    unknown = [(f"which tool does {name} need?", "") for name in ("dry mast", "raw keel")]
    pairs, groups, fitted, limiting, _ = _questions(known, unknown, NoText(), frames, calibration, 0)
    made = groups == "invented"
    assert not (fitted & limiting).any() and not (limiting & ~made).any()
    assert (fitted & made).sum() == 32 * calibration and limiting.sum() == 32 * calibration
    for question, _ in pairs:
        name = name_of(question, frames)
        assert question == f"which tool does {name} need?" and len(name.split()) == 2
    asked = {question for question, _ in (*known, *unknown)}
    assert not asked & {pairs[i][0] for i in np.flatnonzero(made)}
    if calibration < 1:  # those for the limit are made of the names to fit on, and none of those to measure on
        assert (~fitted & ~limiting)[:16].sum() == 8


@pytest.mark.parametrize(
    "wrong", [{"calibration": 0.0}, {"calibration": 1.1}, {"level": 1.0}, {"confidence": 0.0}, {"max_outside": 0.0}]
)
def test_shares_out_of_range_are_refused_before_the_work(run, people, wrong):
    with pytest.raises(QkvError, match="calibrating trust"):
        trust(run, questions(people), invented_names(people), **wrong)


def test_where_the_level_cannot_be_guaranteed_the_card_says_which_can_and_what_it_would_take(run, people, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    asked, unknown = questions(people, ["city", "year"]), invented_names(people)
    found = trust(run, asked, unknown, level=0.98, max_outside=0.9, n_samples=0, save=False)
    made = found.badge.remembered
    assert 0.5 < found.stated_level < 0.98 and made.level == found.stated_level
    assert found.card().title.startswith("“remembered”: right at least ") and "95 % confidence" in found.card().title
    assert float(found.card().title.split("at least ")[1].split(" %")[0]) <= 100 * made.level
    said = dict(found.card().facts)["for 98 %"]
    assert (made.right == made.accepted) <= (said.startswith("about ") and f"{found.more_questions} more" in said)


def test_a_run_that_says_nothing_is_refused_with_that_reason(run, people, monkeypatch):
    def empty(*args, **options):
        found = answer_features(*args, **options)
        return replace(found, texts=tuple(("", *rest) for _, *rest in found.texts))

    monkeypatch.setattr(module, "answer_features", empty)
    asked, names = questions(people, ["city"]), invented_names(people)
    with pytest.raises(QkvError, match=rf"gives an empty answer to {len(asked) + len(names)} of \d+ questions"):
        trust(run, asked, names, save=False, n_samples=0)


def test_a_badge_is_bound_to_the_weights_that_answered_whatever_became_of_the_folder(
    run, people, monkeypatch, tmp_path
):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    shutil.copytree(run.folder, tmp_path / "run")
    opened = load(tmp_path / "run")
    asked, unknown = questions(people, ["city", "year"]), invented_names(people)
    other = {name: 2 * tensor for name, tensor in checkpoint.weights_of(opened.model).items()}
    checkpoint.save(opened.folder, opened.step, other, {})  # another process trains it on meanwhile
    trust(opened, asked, unknown, level=0.6, n_samples=0)
    assert ask(opened, asked.pairs[0][0]).evidence["right"] is not None  # the weights in memory are those of the badge
    with pytest.raises(QkvError, match="fitted on other weights"):
        ask(opened.folder, asked.pairs[0][0])
    with torch.no_grad():
        next(opened.model.parameters()).mul_(1.5)
    with pytest.raises(QkvError, match="fitted on other weights"):
        ask(opened, asked.pairs[0][0])


def test_known_questions_about_names_that_training_asked_about_are_left_out(run, people, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    known = questions(people, ["city"])
    names = [name_of(question) for question, _ in known]
    check, shown = module.NameCheck, names[:7]

    def patched(*args):
        found = check(*args)
        found.trained = frozenset(f"In which town was {name} born?" for name in shown)
        return found

    monkeypatch.setattr(module, "NameCheck", patched)
    monkeypatch.setattr(module, "frames_of", lambda run: ["Where was … born?", "In which town was … born?"])
    found = trust(run, known, invented_names(people), level=0.6, save=False, n_samples=0)
    assert "known questions left out, since training asked about the same names: 7" in " ".join(str(found).split())
    assert found.known == len(known) - 7 and not {row["question"] for row in found.rows()} & {
        q for q, _ in list(known)[:7]
    }
    shown = names[: len(names) - 2]
    with pytest.raises(QkvError, match="known questions are about names that the run was trained on with questions"):
        trust(run, known, invented_names(people), level=0.6, save=False, n_samples=0)


def in_kinds(run, monkeypatch, *frames):
    """The run as if it had been trained on questions of these kinds."""
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    monkeypatch.setitem(run.data, "frames", list(frames))


CITY, YEAR = "Where was … born?", "When was … born?"


def test_a_badge_speaks_only_of_the_kinds_of_questions_that_it_was_fitted_on(run, people, monkeypatch):
    in_kinds(run, monkeypatch, CITY, YEAR)
    try:
        found = trust(run, questions(people), invented_names(people), level=0.5, max_outside=0.9, n_samples=0)
        assert [kind.kind for kind in found.badge.kinds] == [CITY] and found.remarks
        assert found.badge.kinds == Badge.load(run.folder).kinds
        assert found.badge.kinds[0][1:] == (found.stated_level, found.badge.calibrator.made_up.level)
        name = people.people[0].name
        of_kind, other = (ask(run, frame.replace("…", name), n_samples=0) for frame in (CITY, YEAR))
        assert of_kind.evidence["right"] is not None and "another kind" not in of_kind.why
        assert other.badge == "unsure" and other.guarantee is None and other.evidence["right"] is None
        assert "fitted on questions such as “Where was … born?”; this is another kind" in other.why
    finally:
        (run.folder / FILE).unlink()


def test_questions_worded_as_none_that_the_run_was_trained_on_are_left_out_and_counted(run, people, monkeypatch):
    in_kinds(run, monkeypatch, CITY)
    known, unknown = list(questions(people)), invented_names(people)
    once = trust(run, known, unknown, level=0.6, save=False, n_samples=0)
    strange = [(question.replace("Where", "where"), answer) for question, answer in known]
    found = trust(run, known + strange, [*unknown, "Birthplace of Ada Berg?"], level=0.6, save=False, n_samples=0)
    said = f"questions left out, worded as none that the run was trained on: {len(known) + 1}"
    assert {*found.remarks} == {*once.remarks, said} and found.counts == once.counts
    with pytest.raises(QkvError, match=r"0 of 30 known questions remain .*such as 'where was .*as in training"):
        trust(run, strange, unknown, level=0.6, save=False, n_samples=0)
    with pytest.raises(QkvError, match="worded as none"):
        trust(run, known, [question.upper() for question in unknown], level=0.6, save=False, n_samples=0)


def test_a_kind_that_one_group_lacks_is_left_out_and_counted(run, people, monkeypatch):
    in_kinds(run, monkeypatch, CITY, YEAR)
    unknown = invented_names(people)
    years = [question.replace("Where", "When") for question in unknown]
    for more, kinds in ((years[: MIN_PER_KIND - 1], (CITY,)), (years[:MIN_PER_KIND], (CITY, YEAR))):
        options = {"level": 0.6, "save": False, "n_samples": 0}
        found = trust(run, questions(people, ["city", "year"]), [*unknown, *more], **options)
        left_out = 0 if YEAR in kinds else len(people) + len(more)
        said = f"fewer than {MIN_PER_KIND} known or {MIN_PER_KIND} unknown ones: {left_out}"
        assert tuple(kind.kind for kind in found.badge.kinds) == kinds
        assert (said in str(found.remarks)) == bool(left_out)
        assert found.to_json()["kinds"] == [kind._asdict() for kind in found.badge.kinds]
        assert ("of each kind alone" in str(found)) == (len(kinds) > 1 and found.stated_level > 0)
        in_fit = 2 * len(people) if YEAR not in kinds else 3 * len(people) + len(more)
        assert found.known + found.unknown + found.empty == in_fit


def test_questions_without_a_name_are_counted_and_are_no_names_outside_the_text(run, people, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    known = [*questions(people), ("where does it come from?", "Ulm"), ("what is it?", "tin")]
    found = trust(run, known, invented_names(people), level=0.6, save=False, n_samples=0)
    text = "; ".join(found.remarks)
    assert "in 2 questions no name was found: each counts as one of its own" in text
    assert "known names are not in the text" not in text


def test_known_and_unknown_questions_that_were_exchanged_are_refused(run, people, monkeypatch):
    monkeypatch.setattr(module, "MIN_QUESTIONS", 3)
    known, unknown = list(questions(people)), [(question, "Ulm") for question in invented_names(people)]
    text = [f"{person.name} was born in {person.city}." for person in people]
    assert trust(run, known, unknown, level=0.6, save=False, n_samples=0, text=text).known == len(known)
    with pytest.raises(QkvError, match=r"no known name is in the text .* Exchange known and unknown questions"):
        trust(run, unknown, known, level=0.6, save=False, n_samples=0, text=text)


def test_answers_of_a_kind_of_which_nothing_is_shown_are_counted_as_ask_calls_them(run, people, monkeypatch):
    in_kinds(run, monkeypatch, CITY)
    options = {"level": 0.5, "max_outside": 0.9, "save": False, "n_samples": 0}
    found = trust(run, questions(people), invented_names(people), **options)
    assert found.n_remembered
    monkeypatch.setattr(module, "kind_levels", lambda *_: (KindLevel(CITY, 0.0, 0.0), KindLevel(YEAR, 0.9, 0.0)))
    nothing = trust(run, questions(people), invented_names(people), **options)
    assert nothing.stated_level and not nothing.n_remembered and nothing.coverage == 0
    assert sum(nothing.counts["unsure"].values()) == sum(n for each in found.counts.values() for n in each.values())
    assert {row["badge"] for row in nothing.rows()} == {"unsure"}
    assert "Where was … born? no level of one half or more is shown: unsure" in " ".join(str(nothing).split())
