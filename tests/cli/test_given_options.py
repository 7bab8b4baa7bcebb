"""No output of a command replaces one of its inputs, nor another output."""

import json
import os
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from qkv.cli import app
from qkv.cli.given_options import FOLDERS, MODEL_FILES, OUTPUTS, RUN_FILES, WRITTEN_IN
from qkv.cli.help_format import Command
from qkv.errors import QkvError

CALLS = {
    "a sheet and its claims": ("grade {0} --claims {0}", "FILES"),
    "a sheet and its table": ("grade {0} --csv {0}", "FILES"),
    "one of several sheets": ("grade {1} {0} --csv {0}", "FILES"),
    "claims and their page": ("check {0} --html {0}", "FILES"),
    "a memory and a design": ("design copy {0} --item 1 --save {0}", "MEMORY"),
    "a memory and a picture": ("design copyable {0} --plot {0}", "MEMORY"),
    "questions and answers": ("evaluate run --questions {0} --answers {0}", "--questions"),
    "a text and a table of heads": ("heads model --text {0} --csv {0}", "--text"),
    "two outputs": ("grade {1} --html new.html --csv new.html", "--html"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("other", ["same", "relative", "link"])
def test_an_output_that_is_read_or_written_already_is_refused_and_nothing_is_changed(
    name, other, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    call, option = CALLS[name]
    for file in ("given.html", "second.md"):
        (tmp_path / file).write_text("1,2\n3,4\n")
    written = call.format(tmp_path / "given.html", tmp_path / "second.md").split()
    if other == "relative":
        written[-1] = os.path.relpath(written[-1])
    elif other == "link" and name != "two outputs":
        (tmp_path / "link.html").symlink_to("given.html")
        written[-1] = "link.html"
    result = CliRunner().invoke(app, written)
    assert isinstance(result.exception, QkvError) and option in str(result.exception)
    assert "Give another path" in str(result.exception)
    assert (tmp_path / "given.html").read_text() == "1,2\n3,4\n" and not (tmp_path / "new.html").exists()


def commands(command):
    """All commands below one."""
    return [
        each for own in command.commands.values() for each in (commands(own) if hasattr(own, "commands") else [own])
    ]


def test_every_parameter_that_names_a_file_to_write_is_known():
    found = commands(typer.main.get_command(app))
    assert len(found) > 25 and all(isinstance(command, Command) for command in found)
    for command in found:
        for parameter in command.params:
            words = (getattr(parameter, "help", "") or "").lower()
            if parameter.name not in (*OUTPUTS, "tensorboard") and not parameter.name.startswith("save"):
                assert not words.startswith(("write ", "save ", "folder to write", "draw ")), (
                    command.name,
                    parameter.name,
                )


def test_every_option_of_a_folder_to_write_has_the_files_that_are_written():
    for command in commands(typer.main.get_command(app)):
        for parameter in command.params:
            is_folder = parameter.name in FOLDERS and "folder" in (getattr(parameter, "help", "") or "").lower()
            assert not is_folder or command.name in WRITTEN_IN, (command.name, parameter.name)


TINY = {"steps": 1, "n-layer": 1, "d-model": 8, "n-head": 1, "attention": "rope", "tokenizer": "bytepairs"}
TRAIN = " ".join(f"--{name} {value}" for name, value in TINY.items())
TEXTS = "Ada was born in London.\nBob was born in Paris.\n" * 20
SUFFIXES = (".json", ".jsonl", ".safetensors", ".txt", ".html", ".md", ".v")
RUNS = {
    "options in the run": ("pretrain ru/tokenizer.json", {"text": "texts.txt", "out": "ru"}, "CONFIG"),
    "options in the default run": ("pretrain runs/base/log.jsonl", {"text": "texts.txt"}, "CONFIG"),
    "a text in the run": ("pretrain --text ru/model.safetensors --out ru", {}, "--text"),
    "a text in one of the runs": ("pretrain --text ru-1/log.jsonl --out ru --seeds 2", {}, "--text"),
    "a text in the options": ("pretrain o.json --plot p.html", {"text": "p.html", "out": "ru"}, "--text"),
    "questions in the options": ("pretrain o.json --plot q.html", {"text": "texts.txt", "questions": "q.html"},
                                 "--questions"),
    "people in the options": ("pretrain o.json --plot q.html", {"text": "texts.txt", "without": "q.html"}, "--without"),
    "a picture of one seed": ("pretrain --text p-0.html --seeds 2 --plot p.html --out ru", {}, "--text"),
    "a resumed run that is none": ("pretrain --text ru/model.safetensors --out ru --resume", {}, "--text"),
    "questions in the tuned run": ("finetune base --questions ru/config.json --out ru", {}, "--questions"),
    "a picture of a tuned seed": ("finetune base --questions p-1.html --seeds 2 --plot p.html --out ru", {},
                                  "--questions"),
    "a tokenizer in the run": ("import base --tokenizer ru/tokenizer.json --out ru", {}, "--tokenizer"),
    "a document in the export": ("export ru/README.md --out ru", {}, "RUN"),
    "facts in the study": ("study considerations base --facts st/study.json --out st", {}, "--facts"),
    "a cell of the study": ("study considerations base --facts st/cells/x.json --out st", {}, "--facts"),
    "a table in the facts": ("facts fa/facts.json --out fa", {}, "TABLE"),
    "claims among the proofs": ("check certs/Attention.v --kernel --save-proofs certs", {}, "FILES"),
    "weights that are certified": ("certify base --head 0.0 --text texts.txt --save base/model.safetensors", {},
                                   "of the model in base"),
    "a model that is measured": ("heads base --text texts.txt --csv base/config.json", {}, "of the model in base"),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_what_is_read_stays_as_it_was_where_a_folder_or_a_picture_is_written(name, tmp_path, monkeypatch, shell):
    monkeypatch.chdir(tmp_path)
    line, options, told = RUNS[name]
    words = line.split()
    named = {word for word in (*words, *options.values()) if Path(word).suffix in SUFFIXES}
    for path in (tmp_path / file for file in {"texts.txt", *named}):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEXTS)
    if options:
        (tmp_path / words[1]).write_text(json.dumps({**TINY, **options}))
    elif words[0] == "pretrain":
        words += TRAIN.split()
    (tmp_path / "base").mkdir(exist_ok=True)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = shell(*words)
    assert done.code == 2 and told in done.err and "Give another path" in done.err, done.err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_texts_and_options_beside_the_files_of_a_run_are_no_reason_to_refuse_it(tmp_path, monkeypatch, shell):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "texts.txt").write_text(TEXTS)
    (tmp_path / "data" / "options.json").write_text(json.dumps({**TINY, "text": "data/texts.txt", "out": "data"}))
    done = shell("pretrain", "data/options.json", "--json")
    assert done.code == 0, done.err
    written = {path.name for path in (tmp_path / "data").iterdir()} - {"texts.txt", "options.json"}
    assert written and all(any(fnmatchcase(file, each) for each in RUN_FILES) for file in written)
    assert shell("pretrain", "data/options.json", "--resume").code == 0
    assert shell("export", "data", "--out", "hf").code == 0
    exported = {path.name for path in (tmp_path / "hf").iterdir()}
    assert exported and exported <= set(WRITTEN_IN["export"])
    assert all(any(fnmatchcase(file, each) for each in MODEL_FILES) for file in exported - {"README.md"})
    assert shell("facts", "--example", "minerals", "--subjects", "20", "--out", "facts").code == 0
    assert {path.name for path in (tmp_path / "facts").iterdir()} <= set(WRITTEN_IN["facts"])


def test_a_badge_does_not_replace_the_questions_it_is_made_of(trained, tmp_path, shell):
    shutil.copytree(trained / "run", tmp_path / "run")
    badge = tmp_path / "run" / "trust.json"
    shutil.copy(trained / "known.tsv", badge)
    done = shell("trust", tmp_path / "run", "--known", badge, "--unknown", trained / "unknown.txt")
    assert done.code == 2 and "--known, which is read" in done.err
    assert badge.read_bytes() == (trained / "known.tsv").read_bytes()


def test_a_badge_of_a_language_model_does_not_replace_the_facts_it_is_made_of(language_model, tmp_path, shell):
    model = shutil.copytree(language_model, tmp_path / "model")
    (model / "qkv-trust-city.json").write_text("Ada,city,London\n")
    done = shell("trust", model, "--facts", model / "qkv-trust-city.json")
    assert done.code == 2 and "--facts, which is read" in done.err
    assert (model / "qkv-trust-city.json").read_text() == "Ada,city,London\n"


@pytest.mark.parametrize("words", ["--out . --seeds 2", "--out ru --seeds 2 --plot .", "--out ru --seed 1 --seeds 2"])
def test_several_seeds_without_names_for_what_they_write_are_refused(words, tmp_path, monkeypatch, shell):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text(TEXTS)
    done = shell("pretrain", "--text", "texts.txt", *TRAIN.split(), *words.split())
    assert (
        done.code == 2 and done.err.startswith("qkv: ") and [path.name for path in tmp_path.iterdir()] == ["texts.txt"]
    )


@pytest.mark.parametrize("name", ["optimizer-1.safetensors", ".qkv-lock", ".qkv-creating"])
def test_a_link_in_a_circle_in_an_output_folder_is_refused_in_a_sentence(name, tmp_path, monkeypatch, shell):
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text(TEXTS)
    Path("ru").mkdir()
    Path("ru", name).symlink_to(name)
    done = shell("pretrain", "--text", "texts.txt", "--out", "ru", *TRAIN.split())
    assert done.code == 2 and done.err.startswith("qkv: ") and "Traceback" not in done.err


@pytest.mark.parametrize(
    "words",
    ["pretrain --resume --out base --plot texts.html", "finetune base --questions q.tsv --plot texts.html --out ru"],
)
def test_a_picture_does_not_replace_the_text_that_a_run_is_trained_on(words, tmp_path, monkeypatch, shell):
    monkeypatch.chdir(tmp_path)
    Path("texts.html").write_text(TEXTS)
    Path("q.tsv").write_text("Where was Ada born?\tLondon\n")
    assert shell("pretrain", "--text", "texts.html", "--out", "base", *TRAIN.split()).code == 0
    done = shell(*words.split())
    assert done.code == 2 and "is trained on" in done.err and Path("texts.html").read_text() == TEXTS


def test_what_standard_input_comes_from_is_not_replaced(tmp_path):
    keys = tmp_path / "keys.json"
    keys.write_text("[[1, 0], [0, 1]]")
    before = keys.read_text()
    words = ["design", "copy", "-", "--item", "0", "--save", str(keys)]
    with keys.open() as given:
        done = subprocess.run([sys.executable, "-m", "qkv", *words], stdin=given, capture_output=True, text=True)
    assert done.returncode == 2 and "standard input comes from" in done.stderr and keys.read_text() == before
    with keys.open() as given:  # another file is written
        words[-1] = str(tmp_path / "c.json")
        assert subprocess.run([sys.executable, "-m", "qkv", *words], stdin=given, capture_output=True).returncode == 0


def test_theorems_of_documents_of_one_name_have_names_of_their_own(tmp_path, monkeypatch):
    from qkv.claims import pipeline
    from qkv.cli import claims

    seen = []
    monkeypatch.setattr(
        pipeline, "checked_by_kernel", lambda text, kernel, seconds, folder, name: seen.append(name) or []
    )
    texts = [("a/x.md", ""), ("b/x.md", ""), ("a-b.md", ""), ("a_b.md", ""), ("x_of_2.md", ""), ("7.md", "")]
    assert not list(claims._checked(texts, 1.0, tmp_path))
    assert len(set(seen)) == len(texts) and seen[:3] == ["x", "x_of_2", "a_b"] and seen[-1] == "claims_7"


@pytest.mark.parametrize("names", [("Keys.csv", "keys.csv"), ("K\u00e9ys.csv", "Ke\u0301ys.csv")])
def test_an_input_is_not_replaced_under_a_name_of_other_case_or_composition(names, tmp_path, monkeypatch, shell):
    """On a file system to which both names are one; a second name of the file stands for that here."""
    monkeypatch.chdir(tmp_path)
    Path(names[0]).write_text("1,0\n0,1\n1,1\n")
    Path(names[1]).hardlink_to(names[0])
    done = shell("design", "copyable", names[0], "--save", names[1])
    assert done.code == 2 and "it would replace the file of" in done.err
    Path("other").mkdir()
    Path("other", names[0].replace("csv", "json")).hardlink_to(names[0])  # a name elsewhere can be replaced
    assert shell("design", "copyable", names[0], "--save", Path("other", names[0].replace("csv", "json"))).code == 0
    assert Path(names[0]).read_text() == "1,0\n0,1\n1,1\n"


RECORDED = {
    "the text of a run in a document": "ask base.json Where? --plot texts.html",
    "the text of the parent": "ask tuned Where? --plot texts.html",
    "the text of the parent of a run in a document": "ask tuned.json Where? --plot texts.html",
    "trust in a document": "trust base.json --known q.tsv --unknown q.tsv --no-save --plot texts.html",
    "trust in the parent": "trust tuned --known q.tsv --unknown q.tsv --no-save --plot texts.html",
    "finetuning of a document": "finetune base.json --questions q.tsv --objective cloze --out new --plot texts.html",
    "finetuning of two seeds": "finetune b --seeds 2 --questions q.tsv --objective cloze --out new --plot texts.html",
    "a picture of a seed that is resumed": "pretrain --out b --seeds 2 --resume --plot texts.html",
    "a document on standard input": "trust - --known q.tsv --unknown q.tsv --no-save --plot texts.html",
}


@pytest.mark.parametrize("name", RECORDED)
def test_no_picture_replaces_a_text_that_a_document_a_parent_or_a_seed_records(name, tmp_path, monkeypatch, shell):
    monkeypatch.chdir(tmp_path)
    text = "texts-0.html" if "two seeds" in name or "of a seed" in name else "texts.html"
    Path(text).write_text(TEXTS)
    Path("q.tsv").write_text("Where was Ada born?\tLondon\n")
    Path("base.json").write_text(shell("pretrain", "--text", text, "--out", "base", *TRAIN.split(), "--json").out)
    done = shell("finetune", "base", "--questions", "q.tsv", "--out", "tuned", "--steps", "1", "--json")
    Path("tuned.json").write_text(done.out)
    for seed in (0, 1):  # only the second one records the text that the picture of the first would replace
        shutil.copytree("base" if seed else "tuned", f"b-{seed}")
    done = shell(*RECORDED[name].split(), stdin=Path("base.json").read_text())
    assert done.code == 2 and "is trained on" in done.err and Path(text).read_text() == TEXTS, done.err
    assert not Path("new").exists() and not Path("new-0").exists()


def test_parents_in_a_circle_are_followed_to_an_end(tmp_path, monkeypatch, shell):
    monkeypatch.chdir(tmp_path)
    Path("one").mkdir()
    Path("one", "config.json").write_text(json.dumps({"data": {"kind": "questions", "parent": "one"}}))
    done = shell("ask", "one", "Where?", "--plot", "p.svg")
    assert done.code == 2 and "p.svg" not in done.err


@pytest.mark.parametrize("text", ['{"my own": "trust notes"}', "my own trust notes"])
def test_notes_in_place_of_a_badge_are_refused_before_a_question_is_asked(text, trained, tmp_path, shell, monkeypatch):
    monkeypatch.setattr("qkv.knowledge.confidence.calibration.answer_features", lambda *_, **__: pytest.fail("asked"))
    shutil.copytree(trained / "run", tmp_path / "run")
    (tmp_path / "run" / "trust.json").write_text(text)
    asked = ("--known", trained / "known.tsv", "--unknown", trained / "unknown.txt")
    done = shell("trust", tmp_path / "run", *asked)
    assert done.code == 2 and "no badge as qkv wrote it" in done.err and "Move it away" in done.err
    assert (tmp_path / "run" / "trust.json").read_text() == text


def test_a_file_of_the_name_of_a_language_models_badge_is_not_replaced(language_model, tmp_path, shell):
    model = shutil.copytree(language_model, tmp_path / "model")
    (model / "qkv-trust-city.json").write_text('{"mine": 1}')
    done = shell("trust", model, "--facts", "pantheon", "--people", "20")
    assert done.code == 2 and "no badge as qkv wrote it" in done.err
    assert (model / "qkv-trust-city.json").read_text() == '{"mine": 1}'
