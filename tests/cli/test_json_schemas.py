"""Documents of --json: real output of every command is validated against its schema, which the docs hold."""

import dataclasses
import json
import re
from pathlib import Path

import jsonschema
import pytest
import typer
from marks import first_of_each

from qkv.cli import app
from qkv.cli.json_documents import document_text, error_text, schema_name
from qkv.cli.json_schemas import MODELS, file_name, schema_of, write_schemas
from qkv.errors import QkvError

ROOT = Path(__file__).resolve().parents[2]
NOISE = "--isotropic 0.01"
BLEND = "--weights a=1/2,b=1/2"
LINES = [
    "read keys.csv --query query.json",
    "read keys.csv --query two.json",
    "read keys.csv --query mixed.json",
    "check true.md false.md malformed.md",
    "check --catalogue --seconds 0.001",
    "grade sheet.tex",
    "grade sheet.tex words.md scan.pdf none.tex --processes 1",
    "grade",
    "grade sheet.tex --problem cake",
    "design copy keys.csv --item a",
    "design copy inside.csv --item middle",
    "design copy one.csv",
    "design copy inside.csv --item middle --tol 0.9",
    f"design blend keys.csv {BLEND}",
    "design blend inside.csv --weights middle=1/2,a=1/2",
    "design blend keys.csv --weights a=1 --form textbook",
    "design project spans.npz B",
    "design project spans.npz A",
    "design wire tokens.npz --reads 0:2,1:0 --writes writes",
    "design wire same.npz --reads 0:1,1:0 --writes writes",
    "design wire tokens.npz --reads 0:2,1:0 --writes writes --prefer rank",
    "design reach tokens.npz --token 1 --along u_d --target u_b",
    "design reach tokens.npz --token 0 --along u_d --target u_b --tol 0.99",
    "design copyable keys.csv",
    "design copyable inside.csv",
    "design copyable one.csv",
    "design verify saved.json",
    f"noise moments keys.csv --query query.json {NOISE}",
    "noise moments keys.csv --query query.json --bits 3",
    "noise moments keys.csv --query query.json --covariance cov.json --along a=1/2",
    f"noise probability keys.csv --query query.json {BLEND} {NOISE}",
    f"noise sample keys.csv --query query.json --n-draws 100 {NOISE}",
    f"noise sample keys.csv --query query.json --n-draws 2 {NOISE}",
    f"noise compare keys.csv {BLEND} {NOISE}",
    f"noise harden keys.csv {BLEND} {NOISE}",
    f"noise harden keys.csv {BLEND} --heads 2 {NOISE}",
    "noise harden keys.csv --weights a=1 --isotropic 1e-300",
    f"noise sweep heads.npz --processes 1 {NOISE}",
    f"noise sweep heads.npz --processes 1 --weights 0=1/2,1=1/2 {NOISE}",
    "facts --example minerals --subjects 4 --out minerals",
    "facts --example cake",
    "pretrain --text {text} --out base --seeds 2 --steps 1 --batch-size 2 --n-layer 1 --d-model 16 --n-head 2",
    "pretrain --resume --out {run} --text {text}",
    "finetune {run} --questions {known} --out tuned --steps 1 --batch-size 2",
    "generate {run} Ada --max-new-tokens 2",
    "generate {run} Ada ⁇ --max-new-tokens 2 --log-probabilities",
    "export {run} --out hf",
    "import hf --out again",
    "evaluate {run} {run} --questions {known} --training {known} --ablated {run}",
    "ask {run} Who?",
    "ask {run} Where+was+Ada+Lovelace+born? --n-samples 0",
    "ask {run} ?",
    "trust {run} --known {known} --unknown {unknown} --level 0.6 --no-save",
    "study ablation --out study",
    "ask {model} In+which+city+was+Plato+born?",
    "evaluate {model} --facts pantheon --people 3 --relation country",
    "evaluate {model}",
    "trust {model} --facts pantheon --people 2",
    "study considerations {model} --people 2 --out considered",
    "study considerations --out considered",
    "design wire-texts words.npz --reads induction --length 4 --sink 0",
    "design wire-texts words.npz --reads previous --length 4 --texts texts.json",
    "design wire-texts alike.npz --reads duplicate --length 4 --texts torn.json",
    "heads {run} --text {text} --window 16 --effect-tokens 8",
    "heads {run} --text {text} --window 16 --effect-tokens 8 --bits 4,2 --per token",
    "heads {run} --text name.txt --head 0.1 --token 2 --bits 3",
    "heads example --text name.txt --head 1.1 --no-harden",
    "heads example --text name.txt --head 1",
    "heads {run} --text {text} --evaluate {known} --window 16 --allocate 3 --out bits.json",
    "heads {run} --text {text} --window 8 --allocate 9",
    "certify {run} --head 0.0 --text {text} --save radius.json",
    "name-heads {run} --questions {known} --count 1",
    "models get minilm --out minilm",
    "read keys.csv",
    "design copy keys.csv --item z",
    "design copy keys.csv --cake",
    "design cake",
    "cake",
    "noise",
    "read none.csv --query query.json",
    "ask none Who?",
    "study cake --out x",
]


def has_json(command):
    return any("--json" in parameter.opts for parameter in command.params)


def commands(group, prefix=""):
    for name, command in group.commands.items():
        yield from commands(command, f"{name} ") if hasattr(command, "commands") else [(prefix + name, command)]


def no_odd_numbers(value):
    if isinstance(value, dict):
        return all(no_odd_numbers(v) for v in value.values())
    if isinstance(value, list):
        return all(no_odd_numbers(v) for v in value)
    return value not in ("nan", "inf", "-inf", "NaN", "Infinity")


@pytest.fixture
def prepared(files, trained, shell, monkeypatch):
    """The folder that the commands run in, with every file that they name."""
    from qkv.knowledge.confidence import calibration
    from qkv.knowledge.studies import pretraining_ablation

    monkeypatch.chdir(files)
    (files / "one.csv").write_text("name,x,y\na,4,0\n")
    (files / "two.json").write_text("[[1, 0], [0, 1]]")
    (files / "mixed.json").write_text('{"queries": [[1, 0], [0, 1]], "query": [[1, 0], [0, 1]], "mix": [0.3, 0.7]}')
    (files / "cov.json").write_text("[[0.1, 0], [0, 0.2]]")
    monkeypatch.setattr(calibration, "MIN_QUESTIONS", 1)
    small = dataclasses.replace(
        pretraining_ablation.SETUP, people=24, exposures=2, d_model=16, n_head=2, vocab_size=500, batch_size=16
    )
    monkeypatch.setattr(pretraining_ablation, "SETUP", small)
    return files


def verb_of(line):
    """The command of a line, and whether its model is one of transformers."""
    return next((v for v in sorted(MODELS, key=len, reverse=True) if line.startswith(v)), "error"), "{model}" in line


@pytest.mark.parametrize("line", first_of_each(LINES, verb_of))
def test_the_output_of_every_command_is_one_document_of_its_schema(line, prepared, trained, shell, request):
    places = {"run": trained / "run", "text": trained / "text.txt", "known": trained / "known.tsv"}
    if "{model}" in line:
        places["model"] = request.getfixturevalue("language_model")
    if line.startswith("import"):
        assert shell("export", trained / "run", "--out", "hf").code == 0
    if "verify" in line:
        shell("design", "copy", "inside.csv", "--item", "middle", "--save", "saved.json")
    words = line.format(**places, unknown=trained / "unknown.txt").split()
    done = shell(*(word.replace("+", " ") for word in words), "--json")
    assert done.out.count("\n") == 1 and done.out.endswith("\n"), done.err
    verb, _ = verb_of(line)
    if done.code == 2 and not (line.startswith("check") or " none.tex" in line):
        verb = "error"
        assert done.err and done.data["message"].strip()
    assert done.data["schema"] == schema_name(verb)
    jsonschema.validate(done.data, schema_of(verb), cls=jsonschema.Draft202012Validator)
    assert no_odd_numbers(done.data)


def test_every_command_with_json_has_a_schema_and_lines_that_validate_it():
    with_json = {name for name, command in commands(typer.main.get_command(app)) if has_json(command)}
    assert with_json == set(MODELS) - {"error"}
    for verb in with_json - {"tour"}:  # it takes minutes
        assert any(line.startswith(f"{verb} ") for line in LINES), verb


@pytest.mark.parametrize("verb", MODELS)
def test_schemas_are_closed_and_require_every_field(verb):
    schema = schema_of(verb)
    jsonschema.Draft202012Validator.check_schema(schema)
    for part in (*([] if "anyOf" in schema else [schema]), *schema.get("$defs", {}).values()):
        assert part["additionalProperties"] is False and set(part["required"]) == set(part["properties"])


def test_the_documents_hold_the_schemas(tmp_path):
    folder = ROOT / "docs" / "schemas"
    assert {p.name for p in folder.iterdir()} == {file_name(verb) for verb in MODELS}
    for path in write_schemas(tmp_path):
        assert path.read_text("utf-8") == (folder / path.name).read_text("utf-8"), "run: python docs/refresh.py"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.pop("query"),
        lambda d: d.update(more=1),
        lambda d: d.update(tol="nan"),
        lambda d: d.update(schema="qkv/read"),
        lambda d: d.update(version=2),
        lambda d: d["query"].append("x"),
    ],
)
def test_a_document_that_was_spoiled_is_refused_by_its_schema(spoil, shell):
    data = shell("design", "copy", "--orthonormal", "3x3", "--json").data
    spoil(data)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema_of("design copy"), cls=jsonschema.Draft202012Validator)


def test_numbers_that_json_lacks_become_null_in_any_document():
    assert json.loads(document_text({"a": [float("nan"), {"b": float("inf")}]}, "read"))["a"] == [None, {"b": None}]


def test_a_refusal_has_its_parts_and_a_usage_error_has_none():
    parts = json.loads(error_text(QkvError("a", "b", "c")))
    assert (parts["request"], parts["problem"], parts["hint"], parts["message"]) == ("a", "b", "c", "a: b. c.")
    assert json.loads(error_text("No such option"))["hint"] is None


def test_the_tour_prints_one_document(shell, tmp_path, monkeypatch):
    import qkv.tour
    from qkv.viz.html_report import Chapter

    fields = {f.name for f in dataclasses.fields(Chapter)}
    assert fields
    monkeypatch.setattr(qkv.tour, "CHAPTERS", ())
    done = shell("tour", "--out", tmp_path, "--json")
    assert done.code == 0, done.err
    jsonschema.validate(done.data, schema_of("tour"))
    assert re.search("report.html$", done.data["report"])
