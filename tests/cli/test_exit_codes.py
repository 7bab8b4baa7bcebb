"""Exit codes of every command: 0 fine, 1 the answer is no, 2 bad input; a closed pipe and Ctrl-C are none of them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from marks import first_of_each, spread
from typer.testing import CliRunner

from qkv.cli import app
from qkv.cli.exit_codes import BAD_INPUT, BROKEN_PIPE, FINE, NEGATIVE, exit_if_negative
from qkv.errors import QkvError
from qkv.model import Sampler

ROOT = Path(__file__).resolve().parents[2]
NOISE = "--isotropic 0.01"
WITHOUT_VERDICT = {
    "noise moments", "noise probability", "noise sample", "noise compare", "read", "serve", "tour", "facts", "pretrain",
    "finetune", "generate", "export", "import", "evaluate", "ask", "trust", "study",
    "heads", "models get", "certify", "name-heads",
}  # fmt: skip
CASES = [
    ("read keys.csv --query query.json", FINE),
    ("read keys.csv", BAD_INPUT),
    ("check true.md", FINE),
    ("check false.md", NEGATIVE),
    ("check malformed.md", BAD_INPUT),
    ("check none.md", BAD_INPUT),
    ("grade right.tex", FINE),
    ("grade sheet.tex", NEGATIVE),
    ("grade right.tex scan.pdf", BAD_INPUT),
    ("design copy keys.csv --item a", FINE),
    ("design copy inside.csv --item middle", NEGATIVE),
    ("design copy keys.csv --item z", BAD_INPUT),
    ("design blend keys.csv --weights a=1/2,b=1/2", FINE),
    ("design blend inside.csv --weights middle=1/2,a=1/2", NEGATIVE),
    ("design blend keys.csv --weights a=1/2", BAD_INPUT),
    ("design project spans.npz B", FINE),
    ("design project spans.npz A", NEGATIVE),
    ("design project spans.npz C", BAD_INPUT),
    ("design wire tokens.npz --reads 0:2,1:0 --writes writes", FINE),
    ("design wire same.npz --reads 0:1,1:0 --writes writes", NEGATIVE),
    ("design wire tokens.npz --reads 0:9 --writes writes", BAD_INPUT),
    ("design reach tokens.npz --token 0 --along u_d --target u_b --tol 0.99", FINE),
    ("design reach tokens.npz --token 1 --along u_d --target u_b", NEGATIVE),
    ("design reach tokens.npz --token 9 --along u_d --target u_b", BAD_INPUT),
    ("design copyable keys.csv", FINE),
    ("design copyable inside.csv", NEGATIVE),
    ("design copyable none.csv", BAD_INPUT),
    ("design verify good.json", FINE),
    ("design verify tampered.json", NEGATIVE),
    ("design verify keys.csv", BAD_INPUT),
    (f"noise moments keys.csv --query query.json {NOISE}", FINE),
    ("noise moments keys.csv --query query.json", BAD_INPUT),
    (f"noise probability keys.csv --query query.json --weights a=1/2,b=1/2 {NOISE}", FINE),
    (f"noise probability keys.csv --query query.json --weights a=1/3 {NOISE}", BAD_INPUT),
    (f"noise sample keys.csv --query query.json --n-draws 100 {NOISE}", FINE),
    (f"noise sample keys.csv --query query.json --n-draws 0 {NOISE}", BAD_INPUT),
    (f"noise compare keys.csv --weights a=1/2,b=1/2 {NOISE}", FINE),
    (f"noise compare keys.csv --weights a=1/2,b=1/2 --picture cake {NOISE}", BAD_INPUT),
    (f"noise harden keys.csv --weights a=1/2,b=1/2 {NOISE}", FINE),
    (f"noise harden inside.csv --weights middle=1 {NOISE}", NEGATIVE),
    (f"noise harden keys.csv --weights a=1/2,b=1/2 --heads 0 {NOISE}", BAD_INPUT),
    (f"noise sweep heads.npz --processes 1 {NOISE}", FINE),
    (f"noise sweep inside.csv --processes 1 --weights middle=1 {NOISE}", NEGATIVE),
    (f"noise sweep keys.csv {NOISE}", BAD_INPUT),
    ("serve --port 99999", BAD_INPUT),
    ("tour --out keys.csv", BAD_INPUT),
    ("facts --example minerals --subjects 4 --out minerals", FINE),
    ("facts --out minerals", BAD_INPUT),
    ("pretrain --text {text} --out base --steps 1 --batch-size 2 --n-layer 1 --d-model 16 --n-head 2", FINE),
    ("pretrain --text none.txt", BAD_INPUT),
    ("finetune {run} --questions {known} --out tuned --steps 1 --batch-size 2", FINE),
    ("finetune none --questions {known}", BAD_INPUT),
    ("generate {run} Ada --max-new-tokens 2", FINE),
    ("generate {run}", BAD_INPUT),
    ("export {run} --out hf", FINE),
    ("export none --out hf", BAD_INPUT),
    ("import hf --out again", BAD_INPUT),
    ("evaluate {run} --questions {known}", FINE),
    ("evaluate {run} --questions none.tsv", BAD_INPUT),
    ("ask {run} Who? --n-samples 0", FINE),
    ("ask none Who?", BAD_INPUT),
    ("trust {run} --known {known} --unknown none.txt", BAD_INPUT),
    ("study cake --out study", BAD_INPUT),
    ("ask {model} Why?", FINE),
    ("evaluate {model} --facts pantheon --people 2", FINE),
    ("evaluate {model}", BAD_INPUT),
    ("evaluate {model} --facts none.csv", BAD_INPUT),
    ("evaluate {model} --facts pantheon --relation cake", BAD_INPUT),
    ("trust {model} --facts pantheon --people 2", BAD_INPUT),
    ("trust {model} --known {known}", BAD_INPUT),
    ("study considerations {model} --people 2 --out considered", FINE),
    ("study considerations --out considered", BAD_INPUT),
    ("study considerations none --out considered", BAD_INPUT),
    ("study considerations {model} --relation cake --out considered", BAD_INPUT),
    ("study ablation {model} --out considered", BAD_INPUT),
    ("design wire-texts words.npz --reads previous --length 4", FINE),
    ("design wire-texts alike.npz --reads duplicate --length 4 --texts torn.json", NEGATIVE),
    ("design wire-texts words.npz --reads next", BAD_INPUT),
    ("heads {run} --text {text} --window 16 --effect-tokens 8", FINE),
    ("heads none --text {text}", BAD_INPUT),
    ("heads {run} --text name.txt --head 0.0 --no-harden", FINE),
    ("heads example --text name.txt --head 1.0 --no-harden", FINE),
    ("heads example --text name.txt --head 7.0", BAD_INPUT),
    ("heads example --text name.txt --head cake", BAD_INPUT),
    ("heads example --text name.txt", BAD_INPUT),
    ("serve --model none", BAD_INPUT),
    ("heads {run} --text {text} --window 16 --effect-tokens 8 --bits 4,3", FINE),
    ("heads {run} --text {text} --bits four", BAD_INPUT),
    ("heads {run} --text {text} --evaluate {known} --window 16 --allocate 2.5 --out bits.json", FINE),
    ("heads {run} --text {text} --allocate 0", BAD_INPUT),
    ("heads {run} --text {text} --allocate 3 --evaluate {text}", BAD_INPUT),
    ("heads {run} --text {text} --bits 9", BAD_INPUT),
    ("heads {run} --text {text} --bits 4 --per head", BAD_INPUT),
    ("certify {run} --head 0.0 --text {text} --save radius.json", FINE),
    ("certify {run} --head one --text {text} --save radius.json", BAD_INPUT),
    ("name-heads {run} --questions {known} --count 1", FINE),
    ("name-heads {run} --questions {known} --count 99", BAD_INPUT),
    ("models get cake", BAD_INPUT),
    ("cake", BAD_INPUT),
    ("design", BAD_INPUT),
    ("read --cake", BAD_INPUT),
    ("-h", FINE),
    ("--version", FINE),
]


def verbs(group, prefix=""):
    """Every command of the program, with the name of its group."""
    for name, command in group.commands.items():
        yield from verbs(command, f"{name} ") if hasattr(command, "commands") else [prefix + name]


VERBS = sorted(verbs(typer.main.get_command(app)))
SLOW = {
    "heads {run} --text {text} --window 16 --effect-tokens 8",
    "heads {run} --text {text} --window 16 --effect-tokens 8 --bits 4,3",
    "heads {run} --text {text} --evaluate {known} --window 16 --allocate 2.5 --out bits.json",
    "trust {model} --facts pantheon --people 2",
}


def verb_and_code(case):
    """What a case is about: its command with its exit code, and whether its model is one of transformers."""
    line, code = case
    verb = next((verb for verb in VERBS if line.startswith(f"{verb} ")), line)
    return verb, code, "{model}" in line


@pytest.mark.parametrize(("line", "code"), first_of_each(CASES, verb_and_code, SLOW), ids=[line for line, _ in CASES])
def test_the_exit_code_is_the_documented_one(line, code, files, trained, shell, monkeypatch, request):
    monkeypatch.chdir(files)
    if "verify" in line:
        shell("design", "copy", "keys.csv", "--item", "a", "--save", "good.json")
        text = (files / "good.json").read_text()
        (files / "tampered.json").write_text(re.sub(r'"distance": [\d.e-]+', '"distance": 0.0', text))
    model = request.getfixturevalue("language_model") if "{model}" in line else None
    places = {"run": trained / "run", "text": trained / "text.txt", "known": trained / "known.tsv", "model": model}
    words = line.format(**places).split()
    done = shell(*words)
    assert done.code == code, done.err
    if code == BAD_INPUT and "malformed" not in line:
        assert done.err and "Traceback" not in done.err
    elif code == NEGATIVE:
        assert done.out and not done.err


def test_every_command_has_a_case_for_every_code_that_it_can_have():
    found = {verb: {code for line, code in CASES if line.startswith(f"{verb} ")} for verb in VERBS}
    for verb, codes in found.items():
        assert BAD_INPUT in codes, verb
        assert (NEGATIVE in codes) != (verb in WITHOUT_VERDICT), verb


def test_the_documented_table_is_that_of_the_cases():
    text = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([a-z][a-z -]*)` \| (.+?) \|$", text, flags=re.M))
    assert sorted(rows) == VERBS
    for verb, when in rows.items():
        assert (when == "–") == (verb in WITHOUT_VERDICT), verb


def test_only_a_no_is_negative():
    exit_if_negative(True)
    exit_if_negative(None)
    with pytest.raises(typer.Exit) as left:
        exit_if_negative(False)
    assert left.value.exit_code == NEGATIVE


@pytest.mark.parametrize(
    "line", spread(["--help", "check examples/answers.md", "design copy --orthonormal 40x400 --json",
                    "design copy --orthonormal 3x3 --item 9 --json"], 4),
)  # fmt: skip
def test_a_reader_that_closes_the_pipe_ends_a_command_quietly(line):
    script = f"{sys.executable} -m qkv {line} | true; exit ${{PIPESTATUS[0]}}"
    # The reader has gone before anything is written, since Python takes longer to start than `true`.
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=ROOT, env={**os.environ})
    said = [text for text in done.stderr.splitlines() if not text.startswith("qkv: ")]  # the refusal itself may be said
    assert done.returncode == BROKEN_PIPE and said == []


def test_a_closed_standard_output_is_no_error():
    script = f"{sys.executable} -m qkv design copy --orthonormal 3x3 >&-"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env={**os.environ})
    assert done.returncode == FINE and done.stderr == ""


READING = "import os, sys; sys.argv[1:] = os.environ['WORDS'].split(); from qkv.__main__ import main; main()"


def with_streams(words, redirections, cwd, **environment):
    """A command whose standard streams the shell redirects: exit code, standard output and standard error."""
    script = f'exec {sys.executable} -c "$0" {redirections}'
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "WORDS": words, **environment}
    done = subprocess.run(["bash", "-c", script, READING], capture_output=True, text=True, cwd=cwd, env=variables)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words", ["design copyable keys.csv --json", "design copyable keys.csv", "read none.csv --json", "nothing --json"]
)
def test_a_full_standard_output_is_one_message_and_bad_input(words, unbuffered, files):
    code, _, err = with_streams(words, "> /dev/full", files, PYTHONUNBUFFERED=unbuffered)
    assert code == BAD_INPUT and "Traceback" not in err and err
    assert "No space left" in err or "keys.csv" not in words


@pytest.mark.parametrize("words", ["read none.csv --query query.json --json", "nothing", "design copyable keys.csv -x"])
def test_a_full_standard_error_does_not_change_the_exit_code(words, files):
    code, out, err = with_streams(words, "2> /dev/full", files)
    assert code == BAD_INPUT and err == "" and bool(out) == ("--json" in words)
    assert with_streams(words, "> /dev/full 2> /dev/full", files)[0] == BAD_INPUT


@pytest.mark.parametrize(
    "words",
    spread(["design copy - --item top", "read keys.csv --query -", "generate - hi",
            "noise moments keys.csv --query query.json --noise -", "design blend keys.csv --weights -"], 5, 2),
)  # fmt: skip
def test_a_closed_standard_input_is_refused_in_a_sentence(words, files):
    code, out, err = with_streams(words, "<&-", files)
    assert code == BAD_INPUT and out == "" and err.startswith("qkv: reading JSON from standard input: ")
    assert err.count("\n") == 1


def test_a_current_folder_that_is_gone_is_refused_in_a_sentence(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'rmdir "$PWD" && exec {sys.executable} -c "$0"'
    variables = {**os.environ, "WORDS": "design copy --orthonormal 3x3 --json"}
    done = subprocess.run(["bash", "-c", script, READING], capture_output=True, text=True, cwd=gone, env=variables)
    assert done.returncode == BAD_INPUT and done.stderr.startswith("qkv: running qkv: the current folder ")
    assert done.stderr.count("\n") == 1 and '"schema": "qkv/error"' in done.stdout


@pytest.mark.parametrize(
    "words, is_document",
    [
        ("read keys.csv --query query.json --scale -- --json", True),
        ("read keys.csv --orthonormal 2x2 -- --json", False),
    ],
)
def test_two_dashes_end_the_options_unless_they_are_the_value_of_one(words, is_document, files, shell, monkeypatch):
    monkeypatch.chdir(files)
    done = shell(*words.split())
    assert done.code == BAD_INPUT and done.err and bool(done.out) == is_document


@pytest.mark.parametrize("words", ["grade right.tex --html", "grade right.tex sheet.tex --csv", "check true.md --html"])
def test_a_page_that_cannot_be_written_leaves_one_document(words, files, shell, monkeypatch):
    def full(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.chdir(files)
    monkeypatch.setattr("qkv.core.files.write_text", full)
    done = shell(*words.split(), "page.html" if "--html" in words else "page.csv", "--json")
    assert done.code == BAD_INPUT and done.data["schema"] == "qkv/error" and "No space left" in done.err


@pytest.mark.parametrize(
    "verb", [["facts", "--example", "minerals", "--out", "x"], ["ask", "run", "Hi"], ["generate", "run"]]
)
def test_a_seed_below_zero_is_refused_in_a_sentence(verb):
    done = CliRunner().invoke(app, [*verb, "--seed", "-1"])
    assert done.exit_code == 2 and "seed" in done.output and "Traceback" not in done.output


def test_a_seed_beyond_64_bits_is_refused_in_a_sentence():
    with pytest.raises(QkvError, match="seed is an integer of 100 bits"):
        Sampler(seed=10**30)
