"""The documents are executed: Python blocks run, console blocks show real output, examples work."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture(scope="module")
def refresh():
    spec = importlib.util.spec_from_file_location("refresh", ROOT / "docs" / "refresh.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_python_in_the_documents_runs_from_top_to_bottom(path):
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.S)
    names = {"__name__": path.stem}
    for block in blocks:
        exec(compile(block, str(path), "exec"), names)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_what_the_documents_show_is_what_the_commands_print(path, refresh, tmp_path):
    text = path.read_text(encoding="utf-8")
    assert refresh.refreshed(text, tmp_path) == text, "run: python docs/refresh.py"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples_run(path):
    before = {p: p.read_bytes() for p in ROOT.joinpath("examples").iterdir() if p.is_file()}
    run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()
    assert {p: p.read_bytes() for p in before} == before


def test_the_benchmark_of_blend_runs_and_ends_in_json():
    run = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "blend.py"), "--quick"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert all(row["holds"] for row in json.loads(run.stdout.splitlines()[-1])["blend"])


def test_links_between_documents_lead_somewhere():
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"
