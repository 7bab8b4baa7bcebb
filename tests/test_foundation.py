"""What holds of the project as a whole: imports, versions, the tree, the style of its modules."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import qkv

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "qkv"
MODULES = sorted(SOURCE.rglob("*.py"))


def docstring(path):
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]


@pytest.mark.parametrize("command", [["-c", "import qkv"], ["-m", "qkv", "--help"], ["-m", "qkv", "design", "--help"]])
def test_importing_qkv_and_asking_for_help_leave_torch_and_numpy_alone(command):
    code = command if command[0] == "-m" else ["-c", command[1]]
    run = subprocess.run([sys.executable, "-X", "importtime", *code], capture_output=True, text=True, check=True)
    imported = {line.rsplit("|", 1)[-1].strip() for line in run.stderr.splitlines() if "|" in line}
    assert "qkv" in imported
    assert not imported & {"torch", "numpy", "scipy", "clarabel", "matplotlib", "sympy", "flint"}


def test_torch_is_pinned_to_one_version_in_one_constraints_file():
    pin = (ROOT / "constraints.txt").read_text().split()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert pin == ["torch==2.13.0"]
    assert pin[0] in project["dependencies"]
    assert "-c constraints.txt" in (ROOT / "Makefile").read_text()


def test_every_module_says_in_one_line_what_it_is_for_and_stays_readable():
    for path in MODULES:
        assert docstring(path), f"{path} has no docstring"
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 600, f"{path} should be split"


def test_the_tree_in_the_readme_lists_every_module_with_its_own_docstring():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\s*([\w/]+\.py)\s{2,}(.+)$", readme.split("## The tree")[1], flags=re.M))
    actual = {str(p.relative_to(SOURCE)): docstring(p) for p in MODULES}
    assert listed == actual


def test_public_names_resolve_and_unknown_ones_do_not():
    for name in qkv.__all__:
        assert getattr(qkv, name) is not None
    for floor in (qkv.design, qkv.noise, qkv.model, qkv.train, qkv.knowledge):
        for name in floor.__all__:
            assert callable(getattr(floor, name))
    with pytest.raises(AttributeError):
        _ = qkv.nothing
    with pytest.raises(AttributeError):
        _ = qkv.design.nothing


def test_public_functions_are_not_hidden_by_modules_of_the_same_name():
    imports = "import qkv, qkv.design.hull.selectable, qkv.noise.robust.robust_query, qkv.noise.moments.mixture"
    names = "qkv.design.copyable, qkv.design.reach, qkv.noise.harden, qkv.noise.reading_moments"
    code = f"{imports}\nassert all(callable(f) for f in ({names}))"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def test_every_public_name_is_documented():
    text = "".join(p.read_text(encoding="utf-8") for p in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    floors = ("design", "noise", "model", "train", "knowledge")
    own = [name for name in qkv.__all__ if name not in ("claims", "core", *floors)]
    for name in own + [f"{floor}.{n}" for floor in floors for n in getattr(qkv, floor).__all__]:
        assert name in text, f"{name} is nowhere in README.md or docs/"


def test_no_file_names_a_registry_or_a_path_of_one_machine():
    ours = [p for p in ROOT.rglob("*") if p.suffix in {".py", ".md", ".toml", ".txt", ".css", ""} and p.is_file()]
    for path in ours:
        if path.relative_to(ROOT).parts[0].startswith((".", "tour")):
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        assert not re.search(r"(?<![\w.])/(home|root|work|Users)/\w", text), path
        assert "index-url" not in text or path == Path(__file__), path
