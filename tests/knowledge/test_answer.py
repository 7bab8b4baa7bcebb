"""ask: answer, alternatives, badge, evidence and attention; from a folder without torch and SciPy."""

import json
import math
import shutil
import subprocess
import sys

import numpy as np
import pytest

from qkv.errors import QkvError
from qkv.knowledge import ask, questions
from qkv.knowledge.answer import explain
from qkv.knowledge.answering.beam_search import Candidate
from qkv.knowledge.confidence.badge import Judgement
from qkv.knowledge.confidence.features import FEATURES, AnswerFeatures


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
    assert set(data) == {"question", "answer", "alternatives", "badge", "why", "evidence", "heads", "name"}
    assert data["answer"] == answer.answer == data["alternatives"][0]["text"]
    assert set(data["heads"][0]) == {"layer", "head", "weight"} and len(data["heads"]) == 4
    assert data["evidence"].keys() == {*FEATURES, "probability", "probe", "seen", "right"}
    assert data["badge"] in ("remembered", "made up", "unsure") and data["name"] == people.people[0].name
    chances = [a["probability"] for a in data["alternatives"]]
    assert chances == sorted(chances, reverse=True) and sum(chances) <= 1 + 1e-9
    assert "rule of thumb" in answer.why and str(answer.badge) in dict(answer.card().facts)["badge"]
    assert ask(run, question) == answer


@pytest.mark.parametrize("question", ["", "   ", "Where was " + "x" * 500 + " born?"])
def test_questions_that_cannot_be_asked_are_refused(run, question):
    with pytest.raises(QkvError, match="asking"):
        ask(run, question)


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
            "training text. Answers with such features are right 97 % of the time.",
        ),
        (
            (0.99, 0.0001),
            4,
            Judgement("made up", 0.001, 0.2),
            "the answer has probability 0.99, over 1000 times that of “B”; 3 of 4 sampled answers agree; its features "
            "resemble those of people who are not in the training text. Answers with such features are right under 1 % "
            "of the time.",
        ),
        (
            (1.0,),
            0,
            Judgement("remembered", 0.999, 0.9),
            "the answer has probability 1; its features resemble those of people in the training text. "
            "Answers with such features are right over 99 % of the time.",
        ),
    ],
)
def test_the_reason_states_probability_runner_up_agreement_and_calibration(probabilities, samples, judged, wanted):
    assert explain(features(probabilities), judged, samples) == wanted
