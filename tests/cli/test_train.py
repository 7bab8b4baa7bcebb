"""The shell: pretrain, finetune, generate, export and import, and what they refuse."""

import json
import os

import pytest
from marks import some, spread
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
    assert code == 0 and json.loads(out)["runs"][0]["step"] == 3
    code, out, _ = qkv(
        "generate",
        tmp_path / "tuned",
        "Where was person 3 born?",
        "--ask --max-new-tokens 5 --json --log-probabilities",
    )
    found = json.loads(out)
    assert code == 0 and len(found["texts"]) == 1 and found["unknown"] == ["?", "W", "h", "p"]
    assert len(found["log_probabilities"][0]) == len(found["tokens"][0])
    code, out, _ = qkv("export", base, "--to hf", "--out", tmp_path / "hf")
    assert code == 0 and "Exported as GPT-2" in out
    code, out, _ = qkv("import", tmp_path / "hf", "--out", tmp_path / "again", "--json")
    assert code == 0 and json.loads(out)["config"]["d_model"] == 32
    same = [qkv("generate", folder, "Person 3", "--max-new-tokens 8")[1] for folder in (base, tmp_path / "again")]
    assert same[0] == same[1]


def test_options_come_from_a_file_and_the_command_line_wins(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, "utf-8")
    file = tmp_path / "run.toml"
    file.write_text(
        f'text = "{tmp_path / "text.txt"}"\nd_model = 32\nn-head = 2\nsteps = 9\nlog-every = 1\npreset = "tiny"\n'
    )
    code, out, refusal = qkv("pretrain", file, "--out", tmp_path / "run", "--steps 3 --json")
    assert code == 0, refusal
    assert json.loads(out)["runs"][0]["step"] == 3
    saved = json.loads((tmp_path / "run" / "config.json").read_text())
    assert saved["model"]["d_model"] == 32 and saved["settings"]["log_every"] == 1
    file.write_text(f'{file.read_text()}out = "{tmp_path / "named"}"\n')
    code, out, refusal = qkv("pretrain", file, "--steps 1 --json")
    assert code == 0, refusal
    assert json.loads(out)["runs"][0]["folder"] == str(tmp_path / "named")
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
        (("generate", "none", "hello"), "there is no such folder"),
        (("export", "none", "--out", "x"), "there is no such folder"),
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


@pytest.mark.slow
def test_a_file_of_options_follows_the_same_rule_as_the_command_line(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT.replace(" was", ". He was"), "utf-8")
    file = tmp_path / "run.toml"
    file.write_text(f'text = "{tmp_path / "text.txt"}"\nd_model = 32\nn_head = 2\nbatch_size = 8\nminutes = 0.005\n')
    code, _, refusal = qkv("pretrain", file, "--out", tmp_path / "run", "--vocab-size 300")
    assert code == 0, refusal
    saved = json.loads((tmp_path / "run" / "config.json").read_text())
    assert saved["recipe"] == saved["data"]["kind"] == "cloze" and saved["model"]["vocab_size"] == 300
    assert "both steps and minutes" in qkv("pretrain", file, "--out", tmp_path / "other", "--steps 3")[2]


@pytest.mark.slow
def test_a_run_trained_by_choice_is_finetuned_by_choice(base, tmp_path):
    (tmp_path / "q.tsv").write_text("Where was person 3 born?\tOslo\n")
    assert json.loads((base / "config.json").read_text())["recipe"] == "custom"
    options = ("--questions", tmp_path / "q.tsv", "--out", tmp_path / "tuned", "--steps 1 --batch-size 1")
    assert qkv("finetune", base, *options)[0] == 0
    saved = json.loads((tmp_path / "tuned" / "config.json").read_text())
    assert saved["recipe"] == "custom" and saved["data"]["kind"] == "questions"
    assert "there is one already" in qkv("finetune", base, *options)[2]
    assert "none called 'cake'" in qkv("finetune", base, "--questions", tmp_path / "q.tsv", "--recipe cake")[2]


@pytest.mark.parametrize(
    ("line", "says"),
    spread(
        [
            ("text = 5", "text is 5, not a text"),
            ("text = true", "text is True, not a text"),
            ('text = ["a"]', "not a text"),
            ('text = ""', "text is '', not a text"),
            ("out = 5", "out is 5"),
            ("questions = 1.5", "questions is 1.5"),
            ("without = {a = 1}", "without is"),
            ("recipe = 5", "recipe is 5"),
            ("preset = []", "preset is []"),
            ("tokenizer = 1979-05-27", "tokenizer is datetime.date"),
            ('minutes = "8"', "minutes is '8', not a number"),
            ("minutes = true", "minutes is True"),
            ('n_layer = "two"', "n_layer is 'two'"),
            ("n_layer = 2.0", "n_layer is 2.0"),
            ("n_layer = 1000000", "n_layer is 1000000, and 1000 is the limit"),
            ("d_model = 99999999999999999999", "d_model is an integer of 67 bits"),
            ("lr = 1979-05-27", "lr is datetime.date"),
            ("steps = inf", "steps is inf"),
            ("seed = [[1]]", "seed is"),
            ("log-every = 1\nlog_every = 2", "given twice"),
            ("a = " + "[" * 5000, "reading options"),
            ("n_layer = " + "9" * 5000, "reading options"),
        ],
        5,
    ),
)
def test_values_of_wrong_types_in_a_file_of_options_are_refused(line, says, tmp_path):
    file = tmp_path / "run.toml"
    file.write_text(line + "\n")
    code, _, refusal = qkv("pretrain", file, "--text", tmp_path / "text.txt", "--out", tmp_path / "run")
    if "text" in line:  # the command line wins, but a wrong file is still wrong
        assert qkv("pretrain", file, "--out", tmp_path / "run")[0] == 2
    assert code == 2 and says in refusal
    assert [p.name for p in tmp_path.iterdir()] == ["run.toml"]


@pytest.mark.parametrize("text", ["[" * 10**5, "[1, 2]", "5", '{"text": 5}', '{"text": "a", "text": "b"}', "{"])
def test_json_files_of_options_that_are_none_are_refused(text, tmp_path):
    (tmp_path / "run.json").write_text(text)
    code, _, refusal = qkv("pretrain", tmp_path / "run.json")
    assert code == 2 and "reading options from" in refusal


@pytest.mark.parametrize("name", some(["loss.gif", "loss", "none/loss.svg", "loss.json"], ["loss.gif"]))
def test_a_picture_that_cannot_be_drawn_is_refused_before_training(name, base, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, "utf-8")
    (tmp_path / "questions.tsv").write_text("Who?\tAda\n", "utf-8")
    for words in (
        ("pretrain", "--text", tmp_path / "text.txt"),
        ("finetune", base, "--questions", tmp_path / "questions.tsv"),
    ):
        code, _, refusal = qkv(*words, "--out", tmp_path / "run", "--steps 1", "--plot", tmp_path / name)
        assert code == 2 and ("picture format" in refusal or "does not exist" in refusal)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_loss_is_drawn_as_pdf(base, tmp_path):
    assert qkv("pretrain", "--resume", "--out", base, "--plot", tmp_path / "loss.pdf")[0] == 0
    assert (tmp_path / "loss.pdf").read_bytes().startswith(b"%PDF")


PEOPLE = "".join(f"{name} Lee. {name} Lee was born in Rome in 18{i}0.\n" for i, name in enumerate(("Ada", "Bo", "Cy")))


@pytest.fixture
def people(tmp_path):
    """The folder of texts about three people, in text.txt, and of a question about one of them."""
    (tmp_path / "text.txt").write_text(PEOPLE)
    (tmp_path / "few.tsv").write_text("Where was Bo Lee born?\tRome\n")
    return tmp_path


def test_the_filtered_text_never_replaces_another_file(people, tmp_path):
    text, few = people / "text.txt", people / "few.tsv"
    for given in (text, tmp_path / "elsewhere.txt"):
        given.write_text(PEOPLE)
        code, _, refusal = qkv("pretrain", "--text", given, "--without", few, "--out", people, SMALL)
        assert code == 2 and "text.txt is there already" in refusal and "another --out" in refusal
        assert text.read_text() == PEOPLE and not (people / "config.json").exists()


def test_a_filtered_text_stays_only_with_its_run(people, tmp_path):
    options = ("--text", people / "text.txt", "--without", people / "few.tsv", "--out", tmp_path / "new" / "run")
    code, _, refusal = qkv("pretrain", *options, "--steps 3 --context-length 2")
    assert code == 2 and "context_length is 2" in refusal and not (tmp_path / "new").exists()
    assert qkv("pretrain", *options, SMALL)[0] == 0
    assert (tmp_path / "new" / "run" / "text.txt").read_text() == "".join(
        line + "\n" for line in PEOPLE.splitlines() if "Bo" not in line
    )
    assert qkv("pretrain", *options, SMALL, "--resume")[0] == 0


def test_of_two_calls_that_leave_people_out_at_once_one_succeeds_and_the_other_is_told(people, tmp_path, monkeypatch):
    from qkv.knowledge.training import text_filter

    options = ("--text", people / "text.txt", "--without", people / "few.tsv", "--out", tmp_path / "run", SMALL)
    real, second = text_filter.drop_texts_about, []

    def drop(*given):
        if not second:
            second.append(None)
            second[:] = [qkv("pretrain", *options)]
        return real(*given)

    monkeypatch.setattr(text_filter, "drop_texts_about", drop)
    first = qkv("pretrain", *options)
    assert sorted((first[0], second[0][0])) == [0, 2]
    refusal = (first if first[0] else second[0])[2]
    assert "is writing to it" in refusal
    assert (tmp_path / "run" / "text.txt").read_text().count("\n") == 2
    assert qkv("pretrain", "--resume", "--out", tmp_path / "run")[0] == 0


def test_a_refused_call_removes_no_filtered_text_that_was_there(people, tmp_path):
    kept = "".join(line + "\n" for line in PEOPLE.splitlines() if "Bo" not in line)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "text.txt").write_text(kept)
    options = ("--text", people / "text.txt", "--without", people / "few.tsv", "--out", tmp_path / "run")
    assert qkv("pretrain", *options, "--steps 3 --context-length 2")[0] == 2
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["text.txt"]
    assert (tmp_path / "run" / "text.txt").read_text() == kept


def test_what_is_no_regular_file_is_refused_instead_of_waited_for(tmp_path, shell):
    (tmp_path / "run").mkdir()
    pipe, device = tmp_path / "options.toml", tmp_path / "device.toml"
    os.mkfifo(pipe)
    device.symlink_to("/dev/full")
    for path in (pipe, device):
        done = shell("pretrain", path)
        assert done.code == 2 and "it is no regular file" in done.err
        (tmp_path / "run" / "config.json").symlink_to(path)
        asked = ("--known", "k.tsv", "--unknown", "u.txt")
        for words in (["ask", "Where?"], ["trust", *asked], ["evaluate", "--questions", __file__]):
            done = shell(words[0], tmp_path / "run", *words[1:])
            assert done.code == 2 and done.err.startswith("qkv: "), done.err
        (tmp_path / "run" / "config.json").unlink()
