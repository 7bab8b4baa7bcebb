"""ask: answer, alternatives, badge, evidence and attention; from a folder without torch and SciPy."""

import json
import math
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from qkv.errors import QkvError
from qkv.knowledge import ask, questions
from qkv.knowledge.answer import _probability, explain
from qkv.knowledge.answering.answer_model import load_answer_model
from qkv.knowledge.answering.beam_search import Candidate
from qkv.knowledge.confidence.badge import Badge, Judgement
from qkv.knowledge.confidence.calibration import fit_badge
from qkv.knowledge.confidence.features import FEATURES, AnswerFeatures
from qkv.knowledge.confidence.kind_levels import KindLevel


def features(probabilities, agreement=0.75):
    """Features of one answer with these probabilities of the answer and the alternatives."""
    logs = [math.log(p) for p in probabilities]
    values = np.zeros((1, len(FEATURES)))
    values[0, [0, 1, 3]] = logs[0], logs[0] - (logs[1] if len(logs) > 1 else -50), agreement
    texts = tuple("ABCDE"[: len(logs)])
    return AnswerFeatures((), (texts,), (tuple(Candidate((), each, True) for each in logs),), values, np.zeros((1, 2)))


def test_ask_gives_answer_alternatives_badge_evidence_and_heads_as_json(run, people):
    question, _ = questions(people).pairs[0]
    answer = ask(run, question)
    data = json.loads(json.dumps(answer.to_json()))
    assert set(data) == {"question", "answer", "alternatives", "badge", "why", "evidence", "heads", "name", "guarantee"}
    assert data["answer"] == answer.answer == data["alternatives"][0]["text"]
    assert set(data["heads"][0]) == {"layer", "head", "weight"} and len(data["heads"]) == 4
    assert data["evidence"].keys() == {*FEATURES, "probability", "seen", "right"}
    assert data["badge"] in ("remembered", "made up", "unsure") and data["name"] == people.people[0].name
    chances = [a["probability"] for a in data["alternatives"]]
    assert chances == sorted(chances, reverse=True) and sum(chances) <= 1 + 1e-9
    assert "rule of thumb" in answer.why and str(answer.badge) in dict(answer.card().facts)["badge"]
    assert ask(run, question) == answer


@pytest.mark.parametrize("question", ["", "   ", "Where was " + "x" * 500 + " born?", None, 5, ["a", "b"]])
def test_questions_that_cannot_be_asked_are_refused(run, question):
    with pytest.raises(QkvError, match="asking"):
        ask(run, question)


def test_what_is_no_run_and_endless_samples_are_refused_in_a_sentence(run):
    with pytest.raises(QkvError, match="opening a run: it is None, not a run"):
        ask(None, "Where was Ada born?")
    with pytest.raises(QkvError, match="1,000,000,000 sampled answers are too many"):
        ask(run, "Where was Ada born?", n_samples=10**9)


def test_a_question_without_a_name_says_so_and_names_no_head(run):
    for question in ("who", "⁇", "born?", "where was he born?"):
        found = ask(run, question)
        assert found.name == "" and found.heads == () and "no name was found in the question" in found.why
        assert not [name for name, _ in found.card().facts if name.startswith("attention on")]
    found = ask(run, "Where was Ω🎈 born?")
    assert found.name and found.heads and "no name" not in found.why


def test_an_empty_answer_has_no_badge(run):
    empty = [found for found in (ask(run, q) for q in ("who", "a", "?", "of", "was")) if not found.answer]
    assert empty
    for found in empty:
        assert found.badge is None and found.why.startswith("the most likely answer is empty; it has probability")
        assert "badge" not in found.why and "badge" not in dict(found.card().facts)
        assert found.card().title == "(no answer)" == found.card().rows[0][0]


def test_a_folder_answers_as_its_run_does_without_torch_or_scipy(run, people):
    question, _ = questions(people).pairs[0]
    assert ask(run.folder, question).answer == ask(run, question).answer
    code = (
        "import sys; from qkv.cli import main\n"
        "try: main()\n"
        "finally: sys.exit(' '.join({'torch', 'scipy'} & set(sys.modules)) or 0)"
    )
    command = [sys.executable, "-c", code, "ask", str(run.folder), question, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["answer"] == ask(run, question).answer


def test_a_damaged_run_is_refused(run, tmp_path):
    folder = shutil.copytree(run.folder, tmp_path / "run")
    data = json.loads((folder / "config.json").read_text("utf-8"))
    for changes in ({"n_layer": 3}, {"d_model": 64}, {"attention": "causal"}, {"vocab_size": 10}):
        (folder / "config.json").write_text(
            json.dumps({**data, "model": {**data["model"], **changes}, "checksum": "edited"}), "utf-8"
        )
        with pytest.raises(QkvError, match="opening a model"):
            ask(folder, "Where was Ada Lovelace born?")


@pytest.mark.parametrize(
    ("probabilities", "samples", "judged", "wanted"),
    [
        (
            (0.5, 0.2),
            8,
            Judgement("unsure", None, None),
            "the answer has probability 0.5, 2.5 times that of “B”; 6 of 8 sampled answers agree. "
            "This badge is a rule of thumb: calibrate it with qkv trust.",
        ),
        (
            (0.9, 0.03, 0.01),
            0,
            Judgement("remembered", 0.97, 0.8),
            "the answer has probability 0.9, 30 times that of “B”; its features resemble those of people in the "
            "training text. The probability that the person was in the text and that this one is right is estimated at "
            "97 %.",
        ),
        (
            (0.99, 0.0001),
            4,
            Judgement("made up", 0.001, 0.2),
            "the answer has probability 0.99, over 1000 times that of “B”; 3 of 4 sampled answers agree; its features "
            "resemble those of people who are not in the training text. The probability that the person was in "
            "the text and that this one is right is estimated at under 1 %.",
        ),
        (
            (1.0,),
            0,
            Judgement("remembered", 0.999, 0.9),
            "the answer has probability 1; its features resemble those of people in the training text. "
            "The probability that the person was in the text and that this one is right is estimated at over 99 %.",
        ),
    ],
)
def test_the_reason_states_probability_runner_up_agreement_and_calibration(probabilities, samples, judged, wanted):
    assert explain(features(probabilities), judged, samples) == wanted


@pytest.fixture(scope="module")
def generous_badge():
    """A badge that calls every answer remembered, with a guarantee."""
    random = np.random.default_rng(0)
    right = np.arange(120) % 2 == 0
    values = np.where(right, -0.2, -3.0)[:, None] + random.normal(size=(120, len(FEATURES))) * 0.3
    badge, _ = fit_badge(values, right, ["known" if each else "outsider" for each in right], 0.9)
    always = replace(badge.remembered, threshold=-math.inf)
    return replace(badge, calibrator=replace(badge.calibrator, remembered=always))


@pytest.fixture
def generous(run, generous_badge, tmp_path, monkeypatch):
    """A function that gives the run with that badge, both of these kinds of questions."""

    def with_kinds(*frames):
        made = generous_badge.calibrator
        kinds = tuple(KindLevel(frame, made.remembered.level, made.made_up.level) for frame in frames)
        badge = replace(generous_badge, kinds=kinds)
        monkeypatch.setattr(Badge, "load", classmethod(lambda cls, folder, weights: badge))
        return replace(load_answer_model(run), frames=frames)

    return with_kinds


KINDS = ("Where was … born?", "Which country did … come from?")


def test_a_question_of_another_kind_than_the_badge_was_fitted_on_has_no_guarantee(generous, people):
    model, name = generous(*KINDS), people.people[0].name
    for known in people.people[:2]:
        found = ask(model, f"Where was {known.name} born?", n_samples=0)
        assert found.badge == "remembered" and found.guarantee and "another kind" not in found.why
    others = (
        "How many legs has {}?",
        "Who killed {}?",
        "where was {} born?",
        "Where was {} buried?",
        "When was {} born?",
        "Was {} born?",
        "{}",
        "{} was born in",
        "Where was {} born? And when?",
        "Which country did {} hate?",
    )
    answers = [ask(model, question.format(name), n_samples=0) for question in others]
    assert any(found.answer for found in answers)
    for found in answers:
        assert found.badge == ("unsure" if found.answer else None) and found.guarantee is None, found.question
        assert found.evidence["right"] is None and found.evidence["seen"] is None
        if not found.answer:
            continue
        assert "questions such as “Where was … born?”" in found.why and "another kind" in found.why
        assert "rule of thumb" not in found.why


@pytest.mark.parametrize("question", ["Where was  {} born?", "Where was {}  born?", "Where was {} {}  {} born?"])
def test_a_name_with_spaces_around_it_is_of_another_kind(generous, people, question):
    found = ask(generous(*KINDS), question.format(*["Ada"] * 3), n_samples=0)
    assert found.badge in ("unsure", None) and found.guarantee is None


@pytest.mark.parametrize("word", ["not", "often", "usually"])
def test_an_adverb_beside_the_name_makes_another_question(generous, people, word):
    for question in (
        f"Where was {people.people[0].name} {word} born?",
        f"Where was {word} {people.people[0].name} born?",
    ):
        found = ask(generous(*KINDS), question, n_samples=0)
        assert found.badge in ("unsure", None) and found.guarantee is None
        assert "another kind" in found.why or not found.answer


@pytest.mark.parametrize(("level", "badge"), [(0.61, "remembered"), (0.0, "unsure")])
def test_a_kind_of_question_has_its_own_level(generous, people, monkeypatch, level, badge):
    model, load = generous(*KINDS), Badge.load
    asked = f"Where was {people.people[0].name} born?"
    assert "right at least 90 %" in ask(model, asked, n_samples=0).guarantee
    kinds = (KindLevel(KINDS[0], level, 0.0), KindLevel(KINDS[1], 0.9, 0.0))
    monkeypatch.setattr(Badge, "load", classmethod(lambda cls, *a: replace(load(*a), kinds=kinds)))
    found = ask(model, asked, n_samples=0)
    assert found.badge == badge and found.guarantee == (
        f"right at least {100 * level:.0f} % of the time (95 % confidence)" if level else None
    )
    assert ("Of this kind of question alone" in found.why) == (not level)


@pytest.mark.parametrize("name", ["the", "of the", "he", "who", "The", "?", "...", "–", "it", "a", " "])
def test_a_stop_word_or_a_sign_in_the_place_of_the_name_is_no_name(generous, name):
    found = ask(generous(*KINDS), f"Where was {name} born?", n_samples=0)
    assert found.name == "" and found.badge in ("unsure", None) and found.guarantee is None


def test_a_run_that_records_no_kind_of_question_says_what_its_guarantee_holds_for(generous, people):
    found = ask(generous(), f"Where was {people.people[0].name} born?", n_samples=0)
    assert found.guarantee and "does not record which questions it was trained on" in found.why


def test_questions_that_are_no_text_are_refused_and_control_characters_are_shown_escaped(run):
    for question in ("Where was \udcff born?", "\ud800", "Where was Ada\udce9 born?"):
        with pytest.raises(QkvError, match="not UTF-8"):
            ask(run, question)
    found = ask(run, "Where was Ada\x1b[31m\x07 born?", n_samples=0)
    shown = str(found.card())
    assert not any(each in shown for each in ("\x1b", "\x07"))
    assert "attention on Ada\\x1b[31m\\x07" in dict(found.card().facts)


def test_beside_the_estimate_of_one_answer_stands_what_the_guarantee_is_of(generous, people):
    found = ask(generous(), f"Where was {people.people[0].name} born?", n_samples=0)
    assert found.badge == "remembered" and "this one is right is estimated at" in found.why
    assert "a share of all answers that it calls so, and says nothing of a single one" in found.why


@pytest.mark.parametrize(
    ("p", "shown"), [(0.5, "0.5"), (0.9939, "0.99"), (0.9972, "1 − 0.0028"), (1 - 1e-9, "1 − 1.0e-09")]
)
def test_a_probability_is_never_one_by_rounding(p, shown):
    assert _probability(math.log(p)) == shown and _probability(0.0) == "1"
