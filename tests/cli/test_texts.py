"""qkv design wire-texts: circuits for every text and for given texts, saved and verified again."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file
from typer.testing import CliRunner

from qkv.cli import app
from qkv.errors import QkvError


def qkv(*arguments):
    result = CliRunner().invoke(app, ["design", *map(str, arguments)])
    if isinstance(result.exception, QkvError):
        return 2, str(result.exception)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "model.safetensors"
    vectors = np.random.default_rng(0).normal(size=(12, 5))
    save_file({"word_embeddings.weight": vectors, "other": np.ones(3)}, path)
    return path


@pytest.mark.parametrize("options", [("--reads", "previous"), ("--reads", "induction", "--sink", "0")])
def test_a_circuit_for_every_text_is_saved_and_verified(words, tmp_path, options):
    saved = tmp_path / "circuit.safetensors"
    code, text = qkv("wire-texts", words, "--array", "word_embeddings.weight", "--length", 8, *options, "--save", saved)
    assert code == 0 and "every text of at most 8 tokens over 12" in " ".join(text.split())
    code, text = qkv("verify", saved)
    assert code == 0 and "in every text of at most 8 tokens" in " ".join(text.split())


def test_a_head_for_given_texts_as_json(words, tmp_path):
    texts, saved = tmp_path / "texts.json", tmp_path / "head.json"
    texts.write_text("[[1, 2, 1, 3, 2]]")
    arguments = (words, "--array", "word_embeddings.weight", "--reads", "duplicate", "--length", 5, "--texts", texts)
    code, text = qkv("wire-texts", *arguments, "--save", saved, "--json")
    found = json.loads(text)
    assert code == 0 and found["scope"] == "given texts" and found["rules"] == 2
    assert found["says"].startswith("in the one given text")
    assert qkv("verify", saved)[0] == 0


BAD = {
    "rule": (("--reads", "next"), "there is no such rule"),
    "sink": (("--reads", "previous", "--sink", "1"), "Leave --sink out"),
    "array": (("--reads", "previous", "--array", "embedding"), "the file holds other, word_embeddings.weight"),
    "texts": (("--reads", "previous", "--texts", "nowhere.json"), "there is no such file"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_done_is_refused_in_one_sentence(words, options, message):
    array = () if "--array" in options else ("--array", "word_embeddings.weight")
    code, text = qkv("wire-texts", words, *array, *options)
    assert code == 2 and message in text


@pytest.mark.parametrize("content", ["{", '{"a": 1}', "[1, 2]", pytest.param("[" * 100_000, id="nested")])
def test_files_that_hold_no_texts_are_refused(words, tmp_path, content):
    texts = tmp_path / "texts.json"
    texts.write_text(content)
    code, text = qkv("wire-texts", words, "--array", "word_embeddings.weight", "--reads", "previous", "--texts", texts)
    assert code == 2 and "reading texts from" in text
