"""qkv evaluate, ask, trust and study from the shell: tables, JSON, pictures, refusals."""

import json
from dataclasses import replace

import pytest
from marks import some
from typer.testing import CliRunner

from qkv.cli import app
from qkv.errors import QkvError
from qkv.knowledge import biographies, pantheon, questions, train_mixed
from qkv.knowledge.confidence import calibration
from qkv.knowledge.studies import pretraining_ablation
from qkv.model.config import ModelConfig
from qkv.train import pretrain
from qkv.train.run_files import steps_taken
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import BytePairs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run that has read of twenty people, and files of questions."""
    here = tmp_path_factory.mktemp("knowledge")
    people = pantheon().sample(20, seed=2)
    asked, texts = questions(people, ["city", "year"]), biographies(people).texts
    train_mixed(
        here / "run",
        texts,
        questions(people).pairs,
        0.6,
        config=ModelConfig(attention="rope", n_layer=2, n_head=2, d_model=48, context_length=80),
        tokenizer=BytePairs.train(texts, 600),
        settings=TrainSettings(steps=120, batch_size=16, lr=8e-3, objective="next", val_fraction=0.0),
    )
    (here / "known.tsv").write_text("".join(f"{q}\t{a}\n" for q, a in asked) + "a bad row\n", "utf-8")
    (here / "unknown.txt").write_text(
        "".join(f"Where was {n} born?\n" for n in people.invented_names(20)) + "a\tb\tc\n", "utf-8"
    )
    return here


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.slow
def test_evaluate_prints_a_table_or_json_and_writes_answers_and_names_bad_rows(folder):
    known = folder / "known.tsv"
    done = call("evaluate", folder / "run", "--questions", known, "--training", known, "--answers", folder / "a.jsonl")
    assert done.exit_code != 0  # the training questions have a bad row, and that is no matter of taste
    good = folder / "good.tsv"
    good.write_text("\n".join(known.read_text("utf-8").splitlines()[:-1]), "utf-8")
    done = call(
        "evaluate", folder / "run", "--questions", known, "--training", good, "--answers", folder / "a.jsonl", "--json"
    )
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["n"] == 40 and 0 <= data["low"] <= data["accuracy"] <= data["high"] <= 1
    assert len(data["baselines"]) == 1 and "line 41" in done.stderr
    rows = [json.loads(line) for line in (folder / "a.jsonl").read_text("utf-8").splitlines()]
    assert sum(row["right"] for row in rows) == round(data["accuracy"] * 40)
    assert "95 % interval" in call("evaluate", folder / "run", "--questions", good).stdout


def test_ask_prints_badge_and_reason_json_and_a_picture(folder):
    question = (folder / "known.tsv").read_text("utf-8").split("\t")[0]
    done = call("ask", folder / "run", question, "--plot", folder / "heads.svg")
    assert done.exit_code == 0 and "badge" in done.stdout and "<svg" in (folder / "heads.svg").read_text("utf-8")
    data = json.loads(call("ask", folder / "run", question, "--json").stdout)
    assert set(data) == {
        "schema",
        "version",
        "question",
        "answer",
        "alternatives",
        "badge",
        "why",
        "evidence",
        "heads",
        "name",
        "guarantee",
    }


def test_trust_leaves_a_badge_that_ask_uses_and_a_picture(folder, monkeypatch):
    monkeypatch.setattr(calibration, "MIN_QUESTIONS", 2)
    options = ("--known", folder / "known.tsv", "--unknown", folder / "unknown.txt", "--level", "0.6")
    done = call("trust", folder / "run", *options, "--plot", folder / "trust.svg", "--json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert {"precision", "coverage", "features", "reliability", "ece"} <= set(data) and (folder / "trust.svg").is_file()
    assert "line 21" in done.stderr  # of the unknown ones
    assert json.loads(call("ask", folder / "run", "Where was Nobody born?", "--json").stdout)["evidence"]["right"] >= 0
    assert "remembered" in call("trust", folder / "run", *options, "--no-save").stdout


@pytest.mark.slow
def test_study_goes_on_and_leaves_table_and_picture(tmp_path, monkeypatch):
    setup = replace(
        pretraining_ablation.SETUP, people=24, exposures=4, d_model=16, n_head=2, vocab_size=500, batch_size=16
    )
    monkeypatch.setattr(pretraining_ablation, "SETUP", setup)
    first = call("study", "ablation", "--out", tmp_path, "--json")
    assert first.exit_code == 0, first.output
    assert json.loads(first.stdout)["done"] == 2 and (tmp_path / "ablation.svg").is_file()
    table = " ".join(call("study", "ablation", "--out", tmp_path).stdout.split())  # however its lines break
    assert "their text was" in table and "deleted" in table
    for name in ("study.json", "ablation.svg"):
        kept = (tmp_path / name).read_bytes()
        (tmp_path / name).write_text("mine")
        refused = call("study", "ablation", "--out", tmp_path)
        assert isinstance(refused.exception, QkvError) and f"{name} is there already" in str(refused.exception)
        assert (tmp_path / name).read_text() == "mine"
        (tmp_path / name).write_bytes(kept)
    other = call("study", "rare_facts", "--out", tmp_path)
    assert isinstance(other.exception, QkvError) and "belongs to the study 'ablation'" in str(other.exception)
    assert (tmp_path / "study.json").read_bytes() and not (tmp_path / "runs" / "share-0-seed-0").exists()


def test_a_picture_that_no_study_drew_is_refused_before_anything_is_measured(tmp_path):
    (tmp_path / "rare_facts.svg").write_text("<svg>mine</svg>")
    refused = call("study", "rare_facts", "--out", tmp_path)
    assert isinstance(refused.exception, QkvError) and "rare_facts.svg is there already" in str(refused.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["rare_facts.svg"]


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "nowhere", "--questions", "known.tsv"),
        ("evaluate", "run", "--questions", "none.tsv"),
        ("ask", "run", ""),
        ("ask", "run", "Where?", "--n-samples", "-1"),
        ("trust", "run", "--known", "known.tsv", "--unknown", "unknown.txt", "--level", "2"),
        ("study", "nothing", "--out", "x"),
    ],
)
def test_refusals_are_one_sentence(folder, words, monkeypatch):
    monkeypatch.chdir(folder)
    done = call(*words)
    assert type(done.exception).__name__ in ("QkvError", "SystemExit") and done.exit_code != 0


@pytest.mark.parametrize("name", some(["p.gif", "p", "none/p.svg"], ["none/p.svg"]))
def test_outputs_that_cannot_be_written_are_refused_before_the_work(name, folder, tmp_path, monkeypatch):
    from qkv.knowledge import answer, evaluation

    def work(*arguments, **options):
        raise AssertionError("the work was begun")

    monkeypatch.setattr(answer, "ask", work)
    monkeypatch.setattr(calibration, "trust", work)
    monkeypatch.setattr(evaluation, "evaluate", work)
    files = ["--known", str(folder / "known.tsv"), "--unknown", str(folder / "unknown.txt")]
    for words in (["ask", str(folder / "run"), "Who?"], ["trust", str(folder / "run"), *files]):
        result = CliRunner().invoke(app, [*words, "--plot", str(tmp_path / name)])
        assert isinstance(result.exception, QkvError)
    words = ["evaluate", str(folder / "run"), "--questions", str(folder / "known.tsv")]
    result = CliRunner().invoke(app, [*words, "--answers", str(tmp_path / "none" / "a.jsonl")])
    assert isinstance(result.exception, QkvError) and "does not exist" in str(result.exception)


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "{run}", "--questions", "{known}", "--relation", "zzz"),
        ("evaluate", "{run}", "--questions", "{known}", "--people", "7"),
        ("evaluate", "{run}", "--questions", "{known}", "--seed", "7"),
        ("trust", "{run}", "--known", "{known}", "--unknown", "{known}", "--relation", "city"),
        ("trust", "{run}", "--known", "{known}", "--unknown", "{known}", "--facts", "pantheon"),
        ("trust", "{run}", "--known", "{known}", "--unknown", "{known}", "--answers", "a.jsonl"),
        ("study", "extraction", "--out", "{run}", "--relation", "country"),
    ],
)
def test_options_without_effect_on_a_run_are_refused(folder, words):
    places = {"run": folder / "run", "known": folder / "known.tsv"}
    done = call(*(word.format(**places) for word in words))
    assert isinstance(done.exception, QkvError) and f"{words[-2]} has no effect here" in str(done.exception)


@pytest.mark.parametrize("verb", ["evaluate", "trust"])
def test_a_folder_that_is_not_there_is_named_before_options_are_judged_by_it(folder, verb):
    done = call(verb, folder / "nowhere", "--facts", "pantheon", "--relation", "city")
    assert isinstance(done.exception, QkvError) and "there is no folder" in str(done.exception)
    done = call(verb, folder / "known.tsv", "--facts", "pantheon")
    assert isinstance(done.exception, QkvError) and "known.tsv is a file" in str(done.exception)


def test_a_run_that_was_stopped_says_so_wherever_it_is_used(folder, shell, tmp_path):
    steps = json.loads((folder / "run" / "config.json").read_text())["settings"]["steps"]
    assert steps_taken(folder / "run") is None and steps_taken(folder) is None
    texts = ["Ada was born in London.", "Where was Ada born?"]

    def stop(step, *_):
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pretrain(texts, tmp_path / "r", "tiny", steps=steps + 10, batch_size=2, d_model=16, n_head=2, callback=stop)
    step, of = steps_taken(tmp_path / "r")
    assert step < of == steps + 10
    (tmp_path / "q.tsv").write_text("Where was Ada born?\tLondon\n")
    for words in (("generate", tmp_path / "r", "Ada"), ("export", tmp_path / "r", "--out", tmp_path / "hf")):
        made = shell(*words)
        assert f"stopped at step {step} of {of}; --resume continues it" in made.err


MINE = '{"run": 0, "question": "Q", "wanted": "A", "answer": "B", "right": false, "note": "mine"}\n'


@pytest.mark.parametrize(
    "held",
    ["Where was Ada born?\tLondon\n", '{"format": 3}\n', "[1]\n", "{" * 2000, "\x00\n", MINE, MINE * 2 + "notes\n"],
)
def test_answers_replace_no_file_that_holds_something_else(shell, tmp_path, held):
    (tmp_path / "other.json").write_text(held)
    (tmp_path / "q.tsv").write_text("Where was Ada born?\tLondon\n")
    made = shell("evaluate", tmp_path, "--questions", tmp_path / "q.tsv", "--answers", tmp_path / "other.json")
    assert made.code == 2 and "holds something other than answers" in made.err
    assert (tmp_path / "other.json").read_text() == held
