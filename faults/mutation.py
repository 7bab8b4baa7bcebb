"""Mutation testing: `python -m faults.mutation [PACKAGE…]` changes one operator or number at a time in a copy of the
source and runs the tests of that module. A change that no test notices survives, and is looked at (survivors.toml).

Mutants are a sample, drawn by a seed. Each is tested in a fork of a process that has imported torch, SymPy and pytest.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import sys
import time
from pathlib import Path
from typing import NamedTuple

from faults.processes import ROOT, Fork, scratch

RESULTS = Path(__file__).parent / "results"
CPU_SECONDS, SECONDS = 90, 600.0
"""Time for the tests of one mutant, of the processor and of the clock; one that makes them hang is killed too."""
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.MatMult: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


class Package(NamedTuple):
    """What is mutated, and which tests belong to it: those of the module first, then those of the package."""

    source: str
    tests: str
    then: tuple[str, ...]


CORRUPTIONS = "tests/design/certificates/test_corruptions.py"
PACKAGES = {
    "core": Package(
        "src/qkv/core", "tests/core", ("tests/design/certificates/test_certificate.py", "tests/design/test_wiring.py")
    ),
    "design/certificates": Package(
        "src/qkv/design/certificates",
        "tests/design/certificates",
        (
            "tests/design/certificates/test_certificate.py",
            "tests/design/certificates/statements",
            f"{CORRUPTIONS}::-0]",
            "tests/cli/test_chaining.py",
        ),
    ),
    "noise/moments": Package("src/qkv/noise/moments", "tests/noise/moments", ("tests/noise/moments/test_mixture.py",)),
    "claims/symbolic": Package(
        "src/qkv/claims/symbolic",
        "tests/claims/symbolic",
        ("tests/claims/test_pipeline.py", "tests/claims/test_statements.py"),
    ),
    "claims/adjudicate": Package(
        "src/qkv/claims/adjudicate.py",
        "tests/claims",
        ("tests/claims/test_pipeline.py", "tests/claims/test_soundness.py"),
    ),
}


class Mutant(NamedTuple):
    """One change: the module, its line with its code, what became of what, and the new source."""

    module: str
    line: int
    code: str
    change: str
    source: str


class Spot(NamedTuple):
    """Where a module can be changed: the place of a node in the walk of its tree, and which of its changes."""

    path: Path
    place: int
    number: int


def spots_of(path: Path) -> list[Spot]:
    """Every place of a module that can be changed. Refusals, annotations and texts are left alone."""
    tree = ast.parse(path.read_text("utf-8"))
    skipped = _skipped(tree)
    return [
        Spot(path, place, number)
        for place, node in enumerate(ast.walk(tree))
        if id(node) not in skipped
        for number in range(_variants(node))
    ]


def mutant_at(spot: Spot) -> Mutant:
    """The module with one change."""
    text = spot.path.read_text("utf-8")
    tree = ast.parse(text)
    node = next(found for place, found in enumerate(ast.walk(tree)) if place == spot.place)
    before = ast.unparse(node.test if isinstance(node, ast.If | ast.IfExp) else node)
    after = _mutate(node, spot.number)
    module = str(spot.path.relative_to(ROOT / "src" / "qkv"))
    line = getattr(node, "lineno", 0)
    code = text.splitlines()[line - 1].strip() if line else ""
    return Mutant(module, line, code, f"{before} → {after}", ast.unparse(ast.fix_missing_locations(tree)))


def changes_of(path: Path) -> list[tuple[str, str]]:
    """(code of the line, change) of every mutant of a module, without their sources."""
    text = path.read_text("utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    skipped, out = _skipped(tree), []
    for node in ast.walk(tree):
        for number in range(0 if id(node) in skipped else _variants(node)):
            if isinstance(node, ast.If | ast.IfExp):
                before, after = ast.unparse(node.test), ast.unparse(ast.UnaryOp(ast.Not(), node.test))
            else:
                copied = copy.deepcopy(node)
                before, after = ast.unparse(node), _mutate(copied, number)
            out.append((lines[getattr(node, "lineno", 1) - 1].strip(), f"{before} → {after}"))
    return out


def _skipped(tree: ast.AST) -> set[int]:
    """Nodes in raise statements, annotations, decorators and blocks for type checkers."""
    out: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.Raise | ast.JoinedStr):
            parts = [node]
        elif isinstance(node, ast.FunctionDef):
            arguments = (*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs)
            parts = [node.returns, *(a.annotation for a in arguments), *node.decorator_list]
        elif isinstance(node, ast.ClassDef):
            parts = [*node.decorator_list]
        elif isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            parts = [node]
        for part in parts:
            out.update(id(found) for found in ast.walk(part)) if part is not None else None
    return out


def _variants(node: ast.AST) -> int:
    """How many mutants a node has."""
    if isinstance(node, ast.Compare):
        return len(node.ops)
    if isinstance(node, ast.Constant):
        return int(isinstance(node.value, bool | int | float))
    if isinstance(node, ast.BinOp):
        return int(type(node.op) in OPERATORS)
    if isinstance(node, ast.UnaryOp):
        return int(isinstance(node.op, ast.Not | ast.USub))
    return int(isinstance(node, ast.BoolOp | ast.If | ast.IfExp))


def _mutate(node: ast.AST, number: int) -> str:
    """Change a node in place; what it is then."""
    if isinstance(node, ast.Compare):
        node.ops[number] = COMPARISONS[type(node.ops[number])]()
    elif isinstance(node, ast.Constant):
        value = node.value
        node.value = not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else value * 2 + 1
    elif isinstance(node, ast.BinOp):
        node.op = OPERATORS[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
        if isinstance(node.op, ast.Not):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.If | ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return ast.unparse(node.test)
    return ast.unparse(node)


def sampled(package: Package, count: int, seed: int) -> list[Mutant]:
    """Mutants of a package: a module is drawn in proportion to its mutants, each mutant at most once."""
    root = ROOT / package.source
    files = [root] if root.is_file() else [p for p in sorted(root.rglob("*.py")) if p.name != "__init__.py"]
    every = [spot for path in files for spot in spots_of(path)]
    return [mutant_at(spot) for spot in random.Random(seed).sample(every, min(count, len(every)))]


def stages_of(package: Package, module: str) -> list[list[str]]:
    """Arguments of pytest in stages: the module's own test file, then those of the package."""
    path = ROOT / "tests" / module
    mirrored = [path.with_name(f"test_{path.stem}.py"), path.parent.with_name(f"test_{path.parent.name}.py")]
    own = [p for p in mirrored if p.is_file()][:1]  # the module's own file, or one for its whole package
    own = own or [p for p in sorted((ROOT / package.tests).rglob("test_*.py")) if p.name == mirrored[0].name]
    own = own or [
        p for p in sorted((ROOT / package.tests).glob("test_*.py")) if str(p.relative_to(ROOT)) != CORRUPTIONS
    ]
    stages = [[str(p) for p in own]]
    for then in package.then:
        path, _, part = then.partition("::")
        stages.append([str(ROOT / path), *(["-k", "-0] or count"] if part else [])])
    return stages


def killed(mutant: Mutant, package: Package, overlay: Path) -> bool:
    """Whether a test notices the mutant, in a copy of the source."""
    path = overlay / "src" / "qkv" / mutant.module
    good = path.read_text("utf-8")
    path.write_text(mutant.source, "utf-8")
    try:
        for stage in stages_of(package, mutant.module):
            if Fork(lambda stage=stage: _run_tests(stage, overlay), overlay).wait(SECONDS).code != 0:
                return True
        return False
    finally:
        path.write_text(good, "utf-8")


def _run_tests(arguments: list[str], overlay: Path) -> None:
    import resource

    import pytest

    for name in [name for name in sys.modules if name == "qkv" or name.startswith("qkv.")]:
        del sys.modules[name]  # those of the source itself, which this process has imported
    sys.path.insert(0, str(overlay / "src"))
    os.environ["PYTHONPATH"] = str(overlay / "src")
    import qkv

    assert Path(qkv.__file__).is_relative_to(overlay)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(ROOT)]
    sys.exit(int(pytest.main([*options, *arguments])))


def main() -> int:
    """Test samples of mutants, and store which survived."""
    parser = argparse.ArgumentParser(prog="python -m faults.mutation", description=__doc__)
    parser.add_argument("packages", nargs="*", help=f"Of {', '.join(PACKAGES)}; all of them if none is given.")
    parser.add_argument("--count", type=int, default=40, help="Mutants of each package.")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for module in (
        "torch",
        "sympy",
        "numpy",
        "scipy.stats",
        "scipy.optimize",
        "mpmath",
        "hypothesis",
        "pytest",
        "lark",
    ):
        __import__(module)
    with scratch() as overlay:
        shutil.copytree(ROOT / "src", overlay / "src", ignore=shutil.ignore_patterns("__pycache__"))
        (overlay / "docs").symlink_to(ROOT / "docs")  # some tests compare them with the source
        for name in given.packages or PACKAGES:
            package, began, alive = PACKAGES[name], time.monotonic(), []
            chosen = sampled(package, given.count, given.seed)
            for mutant in {mutant.module: mutant for mutant in chosen}.values():
                source = ast.unparse(ast.parse((overlay / "src" / "qkv" / mutant.module).read_text("utf-8")))
                if killed(mutant._replace(source=source), package, overlay):
                    raise RuntimeError(f"the tests of {mutant.module} fail without any change")
            for mutant in chosen:
                if not killed(mutant, package, overlay):
                    alive.append({name: value for name, value in mutant._asdict().items() if name != "source"})
                    sys.stdout.write(f"survived: {mutant.module}:{mutant.line}: {mutant.change}\n")
                    sys.stdout.flush()
            found = {
                "package": name, "mutants": len(chosen), "killed": len(chosen) - len(alive), "seed": given.seed,
                "seconds": round(time.monotonic() - began), "survivors": alive,
            }  # fmt: skip
            sys.stdout.write(f"{name}: {found['killed']} of {len(chosen)} killed in {found['seconds']} s\n")
            folder = RESULTS / "mutation"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name.replace('/', '-')}.json").write_text(
                json.dumps(found, indent=1, ensure_ascii=False) + "\n"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
