"""qkv ask, evaluate and trust of a Hugging Face model folder: tables, JSON, pictures, resumption, refusals."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("transformers")

from qkv.cli import app
from qkv.cli.json_schemas import MODELS
from qkv.knowledge import pantheon
from qkv.knowledge.language_models import calibration


def helpers() -> ModuleType:
    """The tiny models of the tests of qkv.knowledge.language_models."""
    path = Path(__file__).parents[1] / "knowledge" / "language_models" / "conftest.py"
    spec = importlib.util.spec_from_file_location("tiny_language_models", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("tiny") / "model"
    made = helpers()
    made.tiny_model().save_pretrained(here)
    made.tiny_tokenizer(chat=True).save_pretrained(here)
    return here


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_ask_prints_a_card_or_json_and_draws(folder: Path, tmp_path: Path) -> None:
    question = "In which city was Immanuel Kant born?"
    done = call("ask", folder, question, "--plot", tmp_path / "heads.svg", "--json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert all(each["text"].isprintable() for each in data["alternatives"])
    assert data["name"] == "Immanuel Kant" and (tmp_path / "heads.svg").is_file()
    MODELS["ask"].model_validate({k: v for k, v in data.items() if k in MODELS["ask"].model_fields})
    assert "rule of thumb" in " ".join(call("ask", folder, question).stdout.split())


def test_evaluate_asks_for_facts_goes_on_and_draws(folder: Path, tmp_path: Path) -> None:
    words = ("evaluate", folder, "--facts", "pantheon", "--relation", "country", "--people", 30, "--seed", 1)
    answers = tmp_path / "answers.jsonl"
    done = call(*words, "--answers", answers, "--plot", tmp_path / "known.svg", "--json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["n"] == 30 and data["relation"] == "country" and (tmp_path / "known.svg").is_file()
    written = answers.read_bytes()
    again = call(*words, "--answers", answers)
    assert again.exit_code == 0 and answers.read_bytes() == written
    assert "30 people asked for their country" in again.stdout


def test_rows_that_are_left_out_are_named(folder: Path, tmp_path: Path) -> None:
    facts, asked = tmp_path / "facts.csv", tmp_path / "asked.tsv"
    facts.write_text("person,birthplace\nPlato,Athens\nPlato,Rome\n")
    done = call("evaluate", folder, "--facts", facts, "--relation", "city")
    assert done.exit_code == 0 and "1 bad row left out (line 3: Plato has city Athens already" in done.stderr
    asked.write_text("In which city was Plato born?\tAthens\nIn which city was Kant born?\n")
    done = call("evaluate", folder, "--questions", asked)
    assert done.exit_code == 0 and "1 bad row left out" in done.stderr


@pytest.mark.slow
def test_evaluate_takes_a_file_of_questions(folder: Path, tmp_path: Path) -> None:
    asked = tmp_path / "asked.tsv"
    asked.write_text("In which city was Plato born?\tAthens\n")
    done = call("evaluate", folder, "--questions", asked, "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["n"] == 1
    done = call("evaluate", folder)
    assert done.exit_code != 0 and "neither --questions nor --facts was given" in str(done.exception)
    done = call("evaluate", folder, "--questions", asked, "--facts", "pantheon")
    assert done.exit_code != 0 and "both --questions and --facts were given" in str(done.exception)


def test_trust_of_a_model_that_knows_nothing_says_so(folder: Path) -> None:
    done = call("trust", folder, "--facts", "pantheon", "--people", 12)
    assert done.exit_code != 0 and "answers are right and" in str(done.exception)


@pytest.mark.slow
def test_trust_prints_what_is_guaranteed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    from qkv.knowledge.language_models.signals import SIGNALS, Signals

    cities = {person.name: person.city for person in pantheon()}

    width = json.loads((folder / "config.json").read_text())["hidden_size"]

    def fake(model: object, questions: list, **options: object) -> Signals:
        random = np.random.default_rng(0)
        knows = np.array([q.name in cities and bool(random.random() < 0.5) for q in questions])
        values = random.normal(size=(len(questions), len(SIGNALS))) + 6 * knows[:, None]
        n = len(questions)
        answers = tuple(cities[q.name] if own else "Nowhere" for q, own in zip(questions, knows, strict=True))
        hidden = random.normal(size=(n, 2 * width)).astype(np.float32)
        return Signals(tuple(questions), answers, ((5,),) * n, (True,) * n, (((5, -1.0),),) * n, values, hidden)

    monkeypatch.setattr(calibration, "read_signals", fake)
    words = ("trust", folder, "--facts", "pantheon", "--people", 150, "--level", 0.9, "--no-save")
    done = call(*words, "--plot", tmp_path / "trust.svg", "--json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["stated_level"] == 0.9 and data["known"] == 150 and (tmp_path / "trust.svg").is_file()
    MODELS["trust"].model_validate({k: v for k, v in data.items() if k in MODELS["trust"].model_fields})
    text = call(*words).stdout
    assert "real people" in text and "in the text" not in text
    done = call("trust", folder, "--known", "a.tsv")
    assert done.exit_code != 0 and "--known and --unknown are for runs" in str(done.exception)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\0" * 40), "damaged or cut off"),
        (lambda folder: [file.unlink() for file in folder.glob("tokenizer*")], "no tokenizer that can be read"),
        (
            lambda folder: (folder / "config.json").write_text(
                (folder / "config.json").read_text().replace("LlamaForCausalLM", "LlamaModel")
            ),
            "no causal language model",
        ),
        (lambda folder: (folder / "model.safetensors").unlink(), "no weights in safetensors"),
    ],
)
def test_a_folder_that_cannot_be_asked_is_refused_in_a_sentence(
    folder: Path, tmp_path: Path, damage: object, sentence: str
) -> None:
    shutil.copytree(folder, tmp_path / "model")
    damage(tmp_path / "model")  # type: ignore[operator]
    done = call("ask", tmp_path / "model", "Where was Plato born?")
    assert done.exit_code != 0 and sentence in str(done.exception) and "\n" not in str(done.exception)


def test_runs_still_need_their_own_options(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    done = call("evaluate", tmp_path / "run")
    assert done.exit_code != 0 and "--questions is missing" in str(done.exception)
    done = call("trust", tmp_path / "run")
    assert done.exit_code != 0 and "--known or --unknown is missing" in str(done.exception)


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "{model}", "--facts", "pantheon", "--training", "t.tsv"),
        ("evaluate", "{model}", "--facts", "pantheon", "--unpretrained", "run"),
        ("evaluate", "{model}", "--facts", "pantheon", "--ablated", "run"),
        ("evaluate", "{model}", "--facts", "pantheon", "--seeds", "2"),
        ("ask", "{model}", "In which city was Ada Lovelace born?", "--n-samples", "3"),
        ("ask", "{model}", "In which city was Ada Lovelace born?", "--seed", "3"),
        ("trust", "{model}", "--facts", "pantheon", "--calibration", "0.5"),
        ("trust", "{model}", "--facts", "pantheon", "--text", "t.txt"),
    ],
)
def test_options_of_runs_are_refused_with_a_language_model(folder: Path, words: tuple[str, ...]) -> None:
    done = call(*(word.format(model=folder) for word in words))
    assert done.exit_code != 0 and f"{words[-2]} has no effect here" in str(done.exception)
