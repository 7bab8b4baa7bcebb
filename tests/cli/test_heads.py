import csv
import json
import sys
from pathlib import Path

import pytest
from marks import spread
from typer.testing import CliRunner

pytest.importorskip("transformers")
sys.path.insert(0, str(Path(__file__).parents[1] / "heads"))
from families import text, tiny, tokenizer

from qkv.cli import app
from qkv.errors import QkvError


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
    zero = run("heads", folder, "--text", words, "--effect-tokens", "16", "--removal", "zero", "--json")
    other = json.loads(zero.stdout)
    assert (document["removal"], other["removal"]) == ("mean", "zero")
    assert [r["effect"] for r in document["rows"]] != [r["effect"] for r in other["rows"]]


def test_the_table_with_bits(folder, tmp_path):
    words, out = folder.parent / "text.txt", tmp_path / "heads.csv"
    found = run("heads", folder, "--text", words, "--effect-tokens", "8", "--bits", "4,3", "--json", "--csv", out)
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)["rounding"]
    assert document["bits"] == [4, 3] and len(document["rows"]) == 24 and len(document["kl"]) == 2
    rows = list(csv.DictReader(out.open()))
    assert float(rows[0]["certified_3"]) == document["rows"][1]["certified"]


def test_allocated_bits_make_a_cache(folder, tmp_path):
    from qkv.heads import Allocation, from_transformers, quantised_cache

    words, out = tmp_path / "words.txt", tmp_path / "bits.json"
    words.write_text(text(60, 3))
    found = run("heads", folder, "--text", words, "--window", "30", "--allocate", "3", "--out", out)
    assert found.exit_code == 0, found.output
    assert (
        "30 other tokens" in found.stdout and "uniform" in found.stdout and str(out) in found.stdout.replace("\n", "")
    )
    assert Allocation.load(out).mean_bits == 3
    model = from_transformers(tiny("gpt2"), tokenizer())
    ids = model.windows(text(20))[0][None]
    cache = quantised_cache(model, out, tail=0, group=8)
    assert model.model.generate(ids, past_key_values=cache, max_new_tokens=5, pad_token_id=0).shape[1] > 20
    other = run("heads", folder, "--text", words, "--evaluate", folder.parent / "text.txt", "--allocate", "3", "--json")
    assert json.loads(other.stdout)["evaluation_tokens"] == 30


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
        (("heads", folder, "--text", folder.parent / "text.txt", "--removal", "none"), "Choose mean or zero"),
        (("models", "get", "gpt5"), "there is no model of this name"),
    ):
        found = run(*arguments)
        assert isinstance(found.exception, QkvError) and why in str(found.exception)


@pytest.mark.parametrize("command", ["heads", "certify"])
@pytest.mark.parametrize(
    "head", ["0." + "9" * 5000, "9" * 5000 + ".0", "0", "0.", ".1", "0.1.2", "-1.0", "0.٣", "0.1\n"]
)
def test_what_names_no_head_is_refused_in_a_short_sentence(command, head, folder, tmp_path):
    given = (command, folder, "--text", folder.parent / "text.txt", f"--head={head}")
    found = run(*given, *(("--save", tmp_path / "r.json") if command == "certify" else ()))
    assert isinstance(found.exception, QkvError) and "not of the form LAYER.HEAD" in str(found.exception)
    assert len(str(found.exception)) < 150


@pytest.mark.parametrize(
    ("options", "why"),
    spread(
        [
            ("--head 0.0 --per token", "--per with --head"),
            ("--head 0.0 --window 8", "--window with --head"),
            ("--head 0.0 --effect-tokens 8", "--effect-tokens with --head"),
            ("--head 0.0 --removal zero", "--removal with --head"),
            ("--head 0.0 --csv x.csv", "--csv with --head"),
            ("--head 0.0 --out x.json", "--out with --head"),
            ("--head 0.0 --own-basis", "--own-basis with --head"),
            ("--head 0.0 --allocate 3", "--head with --allocate"),
            ("--allocate 3 --csv x.csv", "--csv with --allocate"),
            ("--allocate 3 --html x.html", "--html with --allocate"),
            ("--allocate 3 --bits 4", "--bits with --allocate"),
            ("--allocate 3 --per token", "--per with --allocate"),
            ("--allocate 3 --effect-tokens 8", "--effect-tokens with --allocate"),
            ("--out x.json", "--out without --allocate"),
            ("--evaluate x.txt", "--evaluate without --allocate"),
            ("--own-basis", "--own-basis without --allocate"),
            ("--token 3", "--token without --head"),
            ("--no-harden", "--no-harden without --head"),
            ("--per token", "--per without --bits"),
        ],
        5,
    ),
)
def test_options_without_effect_are_refused(folder, tmp_path, monkeypatch, options, why):
    from qkv.errors import QkvError

    monkeypatch.chdir(tmp_path)
    found = run("heads", folder, "--text", folder.parent / "text.txt", *options.split())
    assert isinstance(found.exception, QkvError) and str(found.exception).startswith(why + ":")
    assert not list(tmp_path.iterdir())


def test_options_with_an_effect_are_kept(folder, tmp_path):
    words = folder.parent / "text.txt"
    page = tmp_path / "head.html"
    for options in (
        ["--head", "0.1", "--token", "3", "--no-harden", "--bits", "3", "--html", page],
        ["--bits", "3", "--per", "token", "--window", "16", "--effect-tokens", "4"],
    ):
        assert run("heads", folder, "--text", words, *options).exit_code == 0


def test_certified_radii_verify_and_a_tampered_file_is_refused(folder, tmp_path):
    words, file = folder.parent / "text.txt", tmp_path / "radius.json"
    found = run("certify", folder, "--head", "1.2", "--text", words, "--save", file, "--json")
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["queries"] > 20 and "still does if every key moves by less than" in document["statements"][0]
    checked = run("design", "verify", file)
    assert checked.exit_code == 0 and "Certificate holds" in checked.stdout
    saved = json.loads(file.read_text())
    for part, name, change in (
        ("claims", "radius", lambda v: [r * 1.001 for r in v]),
        ("data", "items", lambda v: [v[0] + 1, *v[1:]]),
        ("data", "queries", lambda v: [[-x for x in row] for row in v]),
    ):
        tampered = json.loads(json.dumps(saved))
        tampered["certificates"][0][part][name] = change(tampered["certificates"][0][part][name])
        (tmp_path / "tampered.json").write_text(json.dumps(tampered))
        refused = run("design", "verify", tmp_path / "tampered.json")
        assert refused.exit_code == 1 and "REFUSED" in refused.stdout


def test_a_file_that_no_certificate_can_be_saved_to_is_refused_before_the_model_is_opened(tmp_path):
    (tmp_path / "text.txt").write_text("a b c")
    found = run("certify", "no_model", "--head", "0.0", "--text", tmp_path / "text.txt", "--save", tmp_path / "r.txt")
    assert isinstance(found.exception, QkvError) and ".txt" in found.exception.problem


@pytest.mark.slow
def test_the_heads_of_a_finetuned_run_that_look_up_the_name(tmp_path):
    import qkv

    config = qkv.model.ModelConfig(n_layer=2, n_head=2, d_model=32, context_length=64)
    people = [("Ada Lovelace", "London"), ("Emmy Noether", "Erlangen"), ("Alan Turing", "Rome"), ("Kurt Gödel", "Brno")]
    pairs = [(f"Where was {name} born?", city) for name, city in people]
    texts = [f"{name} was born in {city}." for name, city in people]
    qkv.train.pretrain(texts, tmp_path / "base", config, steps=2, batch_size=2)
    qkv.train.finetune(tmp_path / "base", pairs, tmp_path / "run", steps=150, batch_size=4)
    (tmp_path / "q.tsv").write_text("".join(f"{q}\t{a}\n" for q, a in pairs))
    found = run("name-heads", tmp_path / "run", "--questions", tmp_path / "q.tsv", "--count", "2", "--json")
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["model"] == str(tmp_path / "run") and len(document["rows"]) == 4
    # what decoding in qkv itself answers
    answers = qkv.knowledge.evaluate(tmp_path / "run", pairs)
    assert document["whole"]["right"] == answers.accuracy
    assert len(document["removed"]) == 2 and document["without"]["loss"] > document["whole"]["loss"]
