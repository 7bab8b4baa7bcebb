"""The documents are executed: code runs, shown output and verdicts are real, examples work, links lead somewhere."""

import contextlib
import doctest
import importlib.util
import io
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from marks import some

ROOT = Path(__file__).resolve().parents[1]


def by_path(folder, name):
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


refresh = by_path("docs", "refresh")
DOCUMENTS = [*refresh.DOCUMENTS, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FAST_EXAMPLES = [path for path in EXAMPLES if path.stem not in ("induction_circuit", "one_head_is_enough")]


def every(*slow, without=()):
    """Marks a test that is run for every document; those that take long are slow."""
    paths = [path for path in DOCUMENTS if path.name not in without]
    fast = [path for path in paths if path.name not in slow]
    return pytest.mark.parametrize("path", some(paths, fast), ids=lambda p: str(p.relative_to(ROOT)))


EVERY = every()
GUIDES = sorted((ROOT / "docs").glob("guide-*.md"))


@pytest.fixture
def registries():
    """The tables that the how-to pages add to, as they were before."""
    from qkv.core.variants import VARIANTS
    from qkv.design.certificates.statements import KINDS

    saved = [(table, dict(table)) for table in (VARIANTS, KINDS)]
    yield
    for table, before in saved:
        table.clear()
        table.update(before)


def run_blocks(path, names):
    """Run all Python of a document from top to bottom; the output of blocks with a prompt must be what is shown."""
    for kind, block in re.findall(r"```(python|pycon)\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.S):
        if kind == "python":
            exec(compile(block, str(path), "exec"), names)
            continue
        test = doctest.DocTestParser().get_doctest(block, names, path.name, str(path), 0)
        test.globs = names  # shared by all blocks
        failures, runner = io.StringIO(), doctest.DocTestRunner(verbose=False)
        with contextlib.redirect_stdout(failures):
            runner.run(test, clear_globs=False)
        assert not runner.failures, failures.getvalue()


@every("knowledge.md", "guide-knowledge.md", "training.md")
def test_python_in_the_documents_runs_from_top_to_bottom(path, registries, monkeypatch):
    monkeypatch.chdir(ROOT)
    run_blocks(path, {"__name__": path.stem})


def test_a_block_whose_output_is_not_what_is_shown_fails(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 2\n```\n\n```pycon\n>>> x + 1\n4\n```\n")
    with pytest.raises(AssertionError, match="Expected"):
        run_blocks(page, {})
    page.write_text("```python\nx = 2\n```\n\n```pycon\n>>> x + 1\n3\n```\n")
    run_blocks(page, {})


@every("sheets.md", "code-map.md")
def test_what_the_documents_show_is_what_the_commands_print(path, tmp_path):
    text = path.read_text(encoding="utf-8")
    assert refresh.refreshed(text, tmp_path) == text, "run: python docs/refresh.py"


@every("claims-tutorial.md", without=["claims.md"])  # which has its own test, tests/claims/test_documentation.py
def test_the_verdicts_in_the_documents_are_those_of_check(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("````claims\n") == len(refresh.CLAIMS.findall(text)), "claims without their verdicts"
    assert refresh.with_verdicts(text) == text, "run: python docs/refresh.py"


def test_no_formula_of_the_mathematics_is_refuted():
    text = (ROOT / "docs" / "mathematics.md").read_text(encoding="utf-8")
    shown = "".join(re.findall(r"^```text\n(.*?)```", text, flags=re.M | re.S))
    verdicts = re.findall(r": (\w+)$", shown, flags=re.M)
    assert len(verdicts) >= 15 and set(verdicts) == {"proved"}


@pytest.mark.parametrize("path", some(EXAMPLES, FAST_EXAMPLES), ids=lambda p: p.name)
def test_examples_run(path):
    before = {p: p.read_bytes() for p in ROOT.joinpath("examples").iterdir() if p.is_file()}
    run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()
    assert {p: p.read_bytes() for p in before} == before


@pytest.mark.slow
def test_the_benchmark_of_blend_runs_and_ends_in_json():
    run = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "blend.py"), "--quick"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert all(row["holds"] for row in json.loads(run.stdout.splitlines()[-1])["blend"])


def slug(heading):
    """The anchor of a heading, as Markdown viewers make it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.replace("`", ""))
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")


def prose(path):
    """A document without its code."""
    text = re.sub(r"^(`{3,}).*?^\1`*$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "", text)


@EVERY
def test_links_lead_to_files_and_headings_that_exist(path):
    for target in re.findall(r"\]\(([^)]+)\)", prose(path)):
        if re.match(r"\w+:", target):
            continue
        file, _, anchor = target.partition("#")
        to = (path.parent / file).resolve() if file else path
        assert to.exists(), f"{path.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", to.read_text(encoding="utf-8"), flags=re.M)
            assert anchor in {slug(h) for h in headings}, f"{path.name} links to {target}"


@pytest.mark.parametrize("path", GUIDES, ids=lambda p: p.name)
def test_a_guide_begins_with_its_question_a_picture_and_an_example(path):
    text = path.read_text(encoding="utf-8")
    assert text.splitlines()[0].endswith("?")
    assert text.index("![") < text.index("## A first example") < re.search("```(console|pycon)", text).start()


def test_the_readme_is_short_and_links_every_guide():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150 and len(GUIDES) == 5
    assert all(f"docs/{guide.name}" in text for guide in GUIDES)


def commands_in(text):
    """The `qkv …` and `python benchmarks/…` that a document mentions, in blocks of the shell and between backticks."""
    lines = [
        line.split("  #")[0]
        for block in re.findall(r"```(?:sh)?\n(.*?)```", text, flags=re.S)
        for line in block.splitlines()
    ]
    found = [line.strip().removeprefix("$ ") for line in [*lines, *re.findall(r"`([^`\n]+)`", text)]]
    return [line for line in found if re.match(r"(qkv|python benchmarks/\w+\.py)( |$)", line)]


@cache
def all_commands():
    import typer

    from qkv.cli import app

    return typer.main.get_command(app)


def unknown_in(command):
    """The first word of a command that qkv does not have, or an option that it does not take; None if there is none."""
    here, words = all_commands(), command.split()[1:]
    while words and getattr(here, "commands", None) and re.fullmatch(r"[a-z-]+", words[0]) and words[0][0] != "-":
        if words[0] not in here.commands:
            return words[0]
        here = here.commands[words.pop(0)]
    any_of = list(getattr(here, "commands", {}).values()) if words[:1] == ["…"] else []  # `qkv design … --save FILE`
    options = {option for c in (here, *any_of) for p in c.params for option in (*p.opts, *p.secondary_opts)}
    options |= {"--help", "-h"}
    given = [word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    return next((option for option in given if option not in options), None)


@EVERY
def test_commands_that_the_documents_mention_exist(path):
    for command in commands_in(path.read_text(encoding="utf-8")):
        if command.startswith("python"):
            assert (ROOT / command.split()[1]).is_file(), command
        else:
            assert unknown_in(command) is None, command


def test_unknown_commands_and_options_are_noticed():
    assert unknown_in("qkv desing blend x.csv") == "desing"
    assert unknown_in("qkv design blend x.csv --weihgts a=1") == "--weihgts"
    assert unknown_in("qkv design blend x.csv --weights a=1 --json") is None
    text = "Run `qkv check a.md`, or\n\n```sh\nqkv serve   # page\npython benchmarks/blend.py\n```\n"
    assert commands_in(text) == ["qkv serve", "python benchmarks/blend.py", "qkv check a.md"]
