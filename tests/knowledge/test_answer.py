"""ask: answer, alternatives, badge, evidence and attention; from a folder without torch and SciPy."""

import json
import shutil
import subprocess
import sys

import pytest

from qkv.errors import QkvError
from qkv.knowledge import ask, questions
from qkv.knowledge.confidence.features import FEATURES


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


def test_a_question_without_a_name_and_one_of_unknown_characters_are_answered(run):
    for question in ("who", "Where was Ω🎈 born?", "⁇", "born?"):
        assert ask(run, question).badge


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
        (folder / "config.json").write_text(json.dumps({**data, "model": {**data["model"], **changes}}), "utf-8")
        with pytest.raises(QkvError, match="opening a model"):
            ask(folder, "Where was Ada Lovelace born?")
