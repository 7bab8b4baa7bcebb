"""The shell: pretrain, finetune, generate, export and import, and what they refuse."""

import json

import pytest
from typer.testing import CliRunner

from qkv.cli import app

TEXT = "\n".join(f"Person {i} was born in {('Rome', 'Oslo')[i % 2]}." for i in range(30))
SMALL = "--d-model 32 --n-head 2 --batch-size 8 --steps 4"


def qkv(*arguments):
    """Run one command in this process: (exit code, standard output, refusal)."""
    words = [part for a in arguments for part in (a.split() if isinstance(a, str) and a.startswith("--") else [str(a)])]
    result = CliRunner(env={"COLUMNS": "96"}).invoke(app, words)
    refusal = str(result.exception) if result.exception and not isinstance(result.exception, SystemExit) else ""
    return (2 if refusal else result.exit_code), result.stdout, refusal


@pytest.fixture
def base(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, "utf-8")
    code, _, refusal = qkv("pretrain", "--text", tmp_path / "text.txt", "--out", tmp_path / "base", SMALL)
    assert code == 0, refusal
    return tmp_path / "base"


def test_the_whole_way_from_text_to_answers_and_out_and_in_again(base, tmp_path):
    (tmp_path / "q.tsv").write_text("Where was person 3 born?\tOslo\nWhere was person 4 born?\tRome\n")
    options = ("--questions", tmp_path / "q.tsv", "--out", tmp_path / "tuned", "--steps 3 --batch-size 2 --json")
    code, out, _ = qkv("finetune", base, *options)
    assert code == 0 and json.loads(out)["step"] == 3
    code, out, _ = qkv(
        "generate", tmp_path / "tuned", "Where was person 3 born?", "--ask --new 5 --json --log-probabilities"
    )
    found = json.loads(out)
    assert code == 0 and len(found["texts"]) == 1 and found["unknown"] == ["?", "W", "h", "p"]
    assert len(found["log_probabilities"][0]) == len(found["tokens"][0])
    code, out, _ = qkv("export", base, "--to hf", "--out", tmp_path / "hf")
    assert code == 0 and "Exported as GPT-2" in out
    code, out, _ = qkv("import", tmp_path / "hf", "--out", tmp_path / "again", "--json")
    assert code == 0 and json.loads(out)["config"]["d_model"] == 32
    same = [qkv("generate", folder, "Person 3", "--new 8")[1] for folder in (base, tmp_path / "again")]
    assert same[0] == same[1]


def test_options_come_from_a_file_and_the_command_line_wins(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, "utf-8")
    file = tmp_path / "run.toml"
    file.write_text(
        f'text = "{tmp_path / "text.txt"}"\nd_model = 32\nn-head = 2\nsteps = 9\nlog-every = 1\npreset = "tiny"\n'
    )
    code, out, refusal = qkv("pretrain", file, "--out", tmp_path / "run", "--steps 3 --json")
    assert code == 0, refusal
    assert json.loads(out)["step"] == 3
    saved = json.loads((tmp_path / "run" / "config.json").read_text())
    assert saved["model"]["d_model"] == 32 and saved["settings"]["log_every"] == 1
    file.write_text(f'{file.read_text()}out = "{tmp_path / "named"}"\n')
    code, out, refusal = qkv("pretrain", file, "--steps 1 --json")
    assert code == 0, refusal
    assert json.loads(out)["folder"] == str(tmp_path / "named")
    file.write_text("widht = 3\n")
    assert "no option widht" in qkv("pretrain", file)[2]
    assert "no such file" in qkv("pretrain", tmp_path / "none.toml")[2].lower()


def test_going_on_refuses_contradictions_and_draws_the_curve(base, tmp_path):
    code, out, _ = qkv("pretrain", "--resume", "--out", base, "--plot", tmp_path / "loss.svg")
    assert code == 0 and "Trained to step 4" in out
    assert "<svg" in (tmp_path / "loss.svg").read_text()
    assert "d_model is 32 there and 64 here" in qkv("pretrain", "--resume", "--out", base, "--d-model 64")[2]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("pretrain",), "there is no text"),
        (("pretrain", "--text", "none.txt"), "there is no such file"),
        (("pretrain", "--text", "none.txt", "--attention linear"), "attention is 'linear'"),
        (("pretrain", "--text", "none.txt", "--objective guess"), "none called 'guess'"),
        (("pretrain", "--text", "none.txt", "--preset huge"), "none called 'huge'"),
        (("generate", "none", "hello"), "there is no config.json"),
        (("export", "none", "--out", "x"), "there is no config.json"),
        (("import", "none.pt", "--out", "x"), "there is no such file"),
    ],
)
def test_refusals_say_what_to_do(arguments, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, refusal = qkv(*arguments)
    assert code == 2 and why in refusal
    assert not list(tmp_path.iterdir())


def test_every_field_is_an_option_with_its_help():
    _, out, _ = qkv("pretrain", "--help")
    for words in (
        "--n-kv-head",
        "--no-tie-embeddings",
        "--checkpoint-every",
        "Attention heads in each block",
        "--resume",
    ):
        assert words in " ".join(out.split()), words


def test_generating_without_prompts_is_refused(base):
    assert "there are no prompts" in qkv("generate", base)[2]
    assert "top_p is 7" in qkv("generate", base, "Person", "--temperature 1 --top-p 7")[2]
