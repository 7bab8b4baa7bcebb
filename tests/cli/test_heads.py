import csv
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("transformers")
sys.path.insert(0, str(Path(__file__).parents[1] / "heads"))
from families import text, tiny, tokenizer

from qkv.cli import app


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("model") / "gpt2"
    tiny("gpt2").save_pretrained(out)
    tokenizer().save_pretrained(out)
    (out.parent / "text.txt").write_text(text(30))
    return out


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_the_table_as_json_csv_and_card(folder, tmp_path):
    words = folder.parent / "text.txt"
    found = run("heads", folder, "--text", words, "--effect-tokens", "16", "--json", "--csv", tmp_path / "heads.csv")
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert len(document["rows"]) == 12 and document["tokens"] == 30
    rows = list(csv.DictReader((tmp_path / "heads.csv").open()))
    assert [r["kind"] for r in rows] == [r["kind"] for r in document["rows"]]
    card = run("heads", folder, "--text", words, "--effect-tokens", "16")
    assert card.exit_code == 0 and "Heads of" in card.stdout


def test_a_run_of_ones_own_has_heads_too(tmp_path):
    import qkv

    config = qkv.model.ModelConfig(n_layer=2, n_head=2, d_model=16, context_length=48)
    qkv.train.pretrain(["Ada was born in London."] * 4, tmp_path / "run", config, steps=2, batch_size=2)
    (tmp_path / "text.txt").write_text("Ada was born in London.")
    found = run("heads", tmp_path / "run", "--text", tmp_path / "text.txt", "--json")
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["model"] == str(tmp_path / "run") and len(document["rows"]) == 4


def test_refusals(folder, tmp_path):
    from qkv.errors import QkvError

    for arguments, why in (
        (("heads", folder, "--text", tmp_path / "none.txt"), "reading the text"),
        (("heads", tmp_path, "--text", folder.parent / "text.txt"), "no config.json"),
        (("models", "get", "gpt5"), "there is no model of this name"),
    ):
        found = run(*arguments)
        assert isinstance(found.exception, QkvError) and why in str(found.exception)
