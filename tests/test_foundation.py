"""Properties of the whole project: imports, versions, the code map, sizes of modules and functions."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import qkv

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "qkv"
MODULES = sorted(SOURCE.rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = ("core", "design", "noise", "claims", "model", "train", "knowledge")


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def docstring(path):
    return (ast.get_docstring(tree_of(path)) or "").splitlines()[0]


@pytest.mark.parametrize("command", [["-c", "import qkv"], ["-m", "qkv", "--help"], ["-m", "qkv", "design", "--help"]])
def test_importing_qkv_and_asking_for_help_leave_torch_and_numpy_alone(command):
    code = command if command[0] == "-m" else ["-c", command[1]]
    run = subprocess.run([sys.executable, "-X", "importtime", *code], capture_output=True, text=True, check=True)
    imported = {line.rsplit("|", 1)[-1].strip() for line in run.stderr.splitlines() if "|" in line}
    assert "qkv" in imported
    assert not imported & {"torch", "numpy", "scipy", "clarabel", "matplotlib", "sympy", "flint"}


def test_the_development_pin_of_torch_lies_in_the_range_that_the_package_admits():
    pin = (ROOT / "constraints.txt").read_text().split()
    assert pin == ["torch==2.13.0"]
    assert "torch>=2.6,<3" in PROJECT["dependencies"]
    assert "-c constraints.txt" in (ROOT / "Makefile").read_text()


def test_the_lowest_versions_that_are_tested_are_the_lowest_that_are_admitted():
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    for requirement in PROJECT["dependencies"]:
        name, low = re.match(r"([\w-]+)>=([\d.]+)", requirement).groups()
        if name != "torch":
            pinned = tuple(map(int, pins[name].split(".")))
            admitted = tuple(map(int, low.split(".")))
            assert pinned[: len(admitted)] == admitted and not any(pinned[len(admitted) :]), requirement


def test_every_module_has_a_docstring_and_at_most_600_lines():
    for path in MODULES:
        assert docstring(path), f"{path} has no docstring"
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 600, f"{path} should be split"


def test_functions_have_at_most_60_lines_of_code_or_a_reason():
    """Docstrings do not count. A longer function says why in a comment `# long: …` in its body."""
    for path in MODULES:
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                described = ast.get_docstring(node, clean=False)
                length = node.end_lineno - node.lineno + 1 - (described.count("\n") + 1 if described else 0)
                reason = any("# long:" in line for line in lines[node.lineno - 1 : node.end_lineno])
                assert length <= 60 or reason, f"{path}: {node.name} has {length} lines"


def test_the_code_map_lists_every_module_with_its_own_docstring():
    code_map = (ROOT / "docs" / "code-map.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\s*([\w/]+\.py)\s{2,}(.+)$", code_map, flags=re.M))
    actual = {str(p.relative_to(SOURCE)): docstring(p) for p in MODULES}
    assert listed == actual, "run: python docs/refresh.py"


def test_the_readme_stays_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 180


def test_no_module_keeps_an_old_name():
    """Names that nobody could guess; their successors are in docs/architecture.md."""
    old = (
        "tending far beside growing words world sieve witnesses obstacle steering vertices leading mixing direct exact"
    )
    old += (
        " steadying hardening opening incoming outgoing drills interest spread shipped answerer looking trusting school"
    )
    assert not {p.stem for p in MODULES} & set(old.split())


def test_no_two_modules_import_each_other_even_indirectly():
    """Top-level imports only; imports for type checking do not run and do not count."""
    names = {".".join(p.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): p for p in MODULES}
    graph = {name: _imported(path, set(names)) for name, path in names.items()}
    done, path_now = set(), []

    def visit(name):
        if name in path_now:
            raise AssertionError(" -> ".join([*path_now[path_now.index(name) :], name]))
        if name in done:
            return
        path_now.append(name)
        for other in sorted(graph[name]):
            visit(other)
        path_now.pop()
        done.add(name)

    for name in graph:
        visit(name)


def _imported(path, known):
    """Modules that a module imports when it is itself imported."""
    found, todo = set(), list(tree_of(path).body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
        elif isinstance(node, ast.If | ast.Try):
            todo += [*node.body, *node.orelse, *getattr(node, "finalbody", []), *getattr(node, "handlers", [])]
        elif isinstance(node, ast.ExceptHandler):
            todo += node.body
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in known}
        elif isinstance(node, ast.ImportFrom) and node.module:
            each = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (each & known) or ({node.module} & known)
    return found


@pytest.mark.parametrize(
    "package",
    [p for p in sorted(SOURCE.iterdir()) if (p / "__init__.py").is_file()],
    ids=lambda p: p.name,
)
def test_the_reading_order_of_a_package_names_every_part(package):
    parts = [p.stem for p in package.glob("*.py")] + [p.parent.name for p in package.glob("*/__init__.py")]
    text = ast.get_docstring(tree_of(package / "__init__.py"))
    assert "Reading order" in text
    assert not [part for part in parts if part != "__init__" and not re.search(rf"\b{part}\b", text)]


def test_public_functions_are_not_hidden_by_modules_of_the_same_name():
    imports = "import qkv, qkv.design.hull.selectable, qkv.noise.robust.robust_query, qkv.noise.moments.mixture"
    names = "qkv.design.copyable, qkv.design.reach, qkv.noise.harden, qkv.noise.reading_moments"
    code = f"{imports}\nassert all(callable(f) for f in ({names}))"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def test_every_public_name_is_documented():
    text = "".join(p.read_text(encoding="utf-8") for p in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    own = {f"qkv.{name}" for name in qkv.__all__ if name not in PACKAGES}
    for package in PACKAGES:
        for name in getattr(qkv, package).__all__:
            short = f"qkv.{name}" in own or package in ("core", "claims")  # documented by their short names
            assert (name if short else f"{package}.{name}") in text, f"{package}.{name} is in no document"
    for name in own:
        assert name.removeprefix("qkv.") in text, f"{name} is in no document"


def test_no_file_names_a_registry_or_a_path_of_one_machine():
    ours = [p for p in ROOT.rglob("*") if p.suffix in {".py", ".md", ".toml", ".txt", ".css", ""} and p.is_file()]
    for path in ours:
        if path.relative_to(ROOT).parts[0].startswith((".", "tour")):
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        assert not re.search(r"(?<![\w.])/(home|root|work|Users)/\w", text), path
        assert "index-url" not in text or path == Path(__file__), path
