"""Help pages: nothing is cut off, defaults are those that will be used, values are completed."""

import dataclasses
import os
import re
import subprocess
import sys

import pytest
import typer
from marks import some, spread

from qkv.cli import app
from qkv.cli.help_format import one_of
from qkv.model.config import PRESETS, ModelConfig, preset
from qkv.train.recipes import RECIPES, plan_finetuning, plan_pretraining
from qkv.train.settings import TrainSettings


def pages(group, words=()):
    """The words of every command and group of the program."""
    yield words
    for name, command in getattr(group, "commands", {}).items():
        yield from pages(command, (*words, name))


PAGES = list(pages(typer.main.get_command(app)))


@pytest.mark.parametrize("words", some(PAGES, PAGES[::3]), ids=" ".join)
@pytest.mark.parametrize("width", [40, *(pytest.param(more, marks=pytest.mark.slow) for more in (60, 80, 120))])
def test_no_help_page_is_cut_off_and_all_its_words_stand_at_every_width(words, width, shell, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    done = shell(*words, "-h")
    assert done.code == 0 and done.out == shell(*words, "--help").out
    assert "..." not in re.sub(r"(ARGS\]|files\]?|prompts\]?|RUN\.\.\.\}|RUN)\.\.\.", "", done.out)
    assert max(map(len, done.out.splitlines())) <= max(width, 51)
    monkeypatch.setenv("COLUMNS", "1000")
    broken = [re.sub(r"\s+", "", page) for page in (done.out, shell(*words, "-h").out)]
    assert broken[0] == broken[1]


@pytest.mark.slow
def test_the_summary_of_every_command_is_a_whole_sentence(shell):
    for group in ((), ("design",), ("noise",)):
        listed = " ".join(shell(*group, "-h").out.split())
        for words in PAGES:
            if words and words[:-1] == group:
                page = " ".join(shell(*words, "-h").out.split())
                summary = re.search(rf"{words[-1]} (.+?\.)( |$)", listed.split("Commands:")[1])[1]
                assert summary.rstrip(".") in page


def test_a_group_without_a_command_shows_its_help_and_is_bad_input(shell):
    assert shell("design").code == shell("noise").code == 2


def described(page):
    """The text of each option of a help page."""
    text = page[page.index("Options:") :]
    parts = re.split(r"\n  (?=-)", text)
    return {part.split()[0].rstrip(","): " ".join(part.split()).replace("from- ", "from-") for part in parts[1:]}


def default_of(text, name):
    """What the description of an option says is its default; of those with names, that of one name."""
    shown = re.search(r"\[default: ([^\]]*)\]", text)[1]
    for part in shown.split("; "):
        value, names = re.fullmatch(r"(.*?)(?: \(([\w, ]+)\))?", part).groups()
        if names is None or name in names.split(", "):
            return value
    raise AssertionError((text, name))


@pytest.mark.parametrize(
    ("words", "recipe"),
    spread([
        ("pretrain", "cloze"),
        ("pretrain --minutes 3", "cloze"),
        ("pretrain --objective cloze", "cloze"),
        ("pretrain --recipe course --steps 5", "course"),
        ("pretrain --recipe=course", "course"),
        ("pretrain --recipe cake", "cloze"),
        ("pretrain --steps 5", "custom"),
        ("pretrain --objective next", "custom"),
        ("pretrain --preset tiny", "custom"),
        ("pretrain --tokenizer characters", "custom"),
        ("finetune", "cloze"),
        ("finetune none --steps 5", "cloze"),
        ("finetune {run} --steps 5", "custom"),
        ("finetune {run} --recipe course", "course"),
    ], 3),
)  # fmt: skip
def test_help_shows_the_defaults_of_the_recipe_that_would_run(words, recipe, trained, shell):
    words = words.format(run=trained / "run").split()
    out = shell(*words, "-h").out
    assert f"Defaults are those of the recipe {recipe}." in " ".join(out.split())
    stage = RECIPES[recipe].pretraining if words[0] == "pretrain" else RECIPES[recipe].finetuning
    assert default_of(described(out)["--lr"], None) == str(stage.settings.lr)
    assert default_of(described(out)["--optimizer"], None) == stage.settings.optimizer


@pytest.mark.parametrize("recipe", RECIPES)
def test_pretrain_and_finetune_show_the_defaults_that_each_recipe_uses(recipe, shell, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    plans = {
        "pretrain": plan_pretraining(recipe, None, None, None, None, {}),
        "finetune": plan_finetuning(recipe, recipe, None, None, False, {}),
    }
    for verb, plan in plans.items():
        shown = described(shell(verb, "--recipe", recipe, "-h").out)
        for cls, values in ((ModelConfig, plan.config), (TrainSettings, plan.settings)):
            for field in dataclasses.fields(cls) if cls is TrainSettings or verb == "pretrain" else ():
                said = default_of(shown[f"--{field.name.replace('_', '-')}"], recipe)
                if field.name != "steps":
                    assert said == str(getattr(values, field.name)), field.name
                elif plan.minutes:
                    assert said == f"as many as fit into {plan.minutes:g} minutes"
                else:
                    assert said == (f"{plan.epochs} epochs" if plan.epochs else str(plan.settings.steps))
        if plan.minutes:
            assert default_of(shown["--minutes"], recipe) == f"{plan.minutes:g}"
    scratch = plan_finetuning(recipe, recipe, None, None, True, {})
    assert (
        f"[default with --from-scratch: {scratch.settings.objective}]"
        in described(shell("finetune", "-h").out)["--objective"]
    )


def test_pretrain_shows_the_sizes_of_presets(shell):
    shown = described(shell("pretrain", "--preset", "tiny", "-h").out)
    for name in PRESETS:
        chosen = plan_pretraining(None, name, None, None, None, {}).config
        assert chosen == preset(name)
        for field in dataclasses.fields(ModelConfig):
            text = shown[f"--{field.name.replace('_', '-')}"]
            if "with --preset" in text:
                said = default_of(
                    text.replace("[default:", "[other:").replace("[default with --preset:", "[default:"), name
                )
            else:
                said = default_of(text, None)
            assert said == str(getattr(chosen, field.name)), (name, field.name)


@pytest.mark.parametrize(
    ("typed", "expected"),
    spread([
        ("qkv des", {"design"}),
        ("qkv design blend --for", {"--form"}),
        ("qkv design copy --form ", {"smallest", "textbook"}),
        ("qkv design wire x.npz --prefer r", {"rank"}),
        ("qkv noise compare --picture ", {"weights", "variance", "success"}),
        ("qkv pretrain --attention r", {"rope"}),
        ("qkv pretrain --recipe ", set(RECIPES)),
        ("qkv pretrain --objective ", {"span", "next", "salient", "cloze"}),
        ("qkv finetune x --precision b", {"bfloat16"}),
        ("qkv study a", {"ablation"}),
        ("qkv export x --to ", {"hf"}),
    ], 3),
)  # fmt: skip
def test_commands_options_and_values_are_completed(typed, expected):
    words = typed.split(" ")
    asked = {"_QKV_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    code = "import sys; sys.argv = ['qkv']; from qkv.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **asked})
    assert expected <= set(done.stdout.split()), done.stderr
    assert not done.stderr


@pytest.mark.parametrize("name", some(["bash", "zsh", "fish"], ["bash"]))
def test_the_script_of_each_shell_is_shown(name):
    code = "import sys; sys.argv = ['qkv', '--show-completion', sys.argv[1]]; from qkv.cli import main; main()"
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # else the shell that started this process is taken
    done = subprocess.run(
        [sys.executable, "-c", code, name], capture_output=True, text=True, env={**os.environ, **named}
    )
    assert "_QKV_COMPLETE" in done.stdout, done.stderr


def test_values_are_completed_by_their_beginning():
    assert one_of(("norm", "rank"))("r") == ["rank"] and one_of(("a", "b"))("") == ["a", "b"]
