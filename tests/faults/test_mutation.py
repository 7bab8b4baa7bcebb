"""Mutants are changes that matter, and a test that fails kills them."""

import ast
import tomllib
from pathlib import Path

from faults import mutation
from faults.mutation import Package, changes_of, mutant_at, spots_of, stages_of
from faults.page import explains

ROOT = Path(__file__).resolve().parents[2]

SOURCE = '''
"""Docstring with 5."""
from dataclasses import dataclass

LIMIT = 5


@dataclass(frozen=False)
class Point:
    x: int


def f(x: int, many: bool = True) -> int:
    if x < LIMIT and many:
        raise ValueError(f"{x + 1} is below {LIMIT}")
    return x * 2 if x != 7 else -x
'''


def changes(tmp_path, monkeypatch):
    monkeypatch.setattr(mutation, "ROOT", tmp_path)
    path = tmp_path / "src" / "qkv" / "x.py"
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    (path.parent / "__init__.py").write_text("")
    return [mutant_at(spot) for spot in spots_of(path)]


def test_operators_comparisons_conditions_and_numbers_are_changed_but_no_messages(tmp_path, monkeypatch):
    found = changes(tmp_path, monkeypatch)
    said = {mutant.change for mutant in found}
    assert {"5 → 6", "x < LIMIT → x <= LIMIT", "x * 2 → x / 2", "x != 7 → x == 7", "True → False", "-x → +x"} <= said
    assert "x < LIMIT and many → x < LIMIT or many" in said and not any("x + 1" in each for each in said)
    assert "False → True" not in said  # of a decorator
    assert [(mutant.code, mutant.change) for mutant in found] == changes_of(tmp_path / "src" / "qkv" / "x.py")
    for mutant in found:
        ast.parse(mutant.source)
        assert mutant.source != ast.unparse(ast.parse(SOURCE))


def test_a_mutant_is_killed_by_a_test_that_notices_it_and_survives_one_that_does_not(tmp_path, monkeypatch):
    found = changes(tmp_path, monkeypatch)
    tests = tmp_path / "tests"
    tests.mkdir()
    package = Package("src/qkv/x.py", "tests", ())
    (mutant,) = (m for m in found if m.change == "x * 2 → x / 2")
    import_x = "from qkv import x\n"  # of the copy, not of the source that this process has imported
    (tests / "test_x.py").write_text(import_x + "def test():\n    assert x.f(9) > 0\n")
    assert stages_of(package, "x.py") == [[str(tests / "test_x.py")]]
    assert not mutation.killed(mutant, package, tmp_path)
    (tests / "test_x.py").write_text(import_x + "def test():\n    assert x.f(9) == 18\n")
    assert mutation.killed(mutant, package, tmp_path)
    assert (tmp_path / "src" / "qkv" / "x.py").read_text() == SOURCE


def test_a_reason_is_about_lines_that_are_there_and_without_code_about_one():
    """One that fits any line would excuse mutants that nobody has looked at."""
    known = tomllib.loads((ROOT / "faults" / "survivors.toml").read_text("utf-8"))["survivor"]
    mutants = {each["module"]: [] for each in known}
    for module, found in mutants.items():
        path = ROOT / "src" / "qkv" / module
        found += [{"module": module, "code": code, "change": change} for code, change in changes_of(path)]
    for each in known:
        lines = {mutant["code"] for mutant in mutants[each["module"]] if explains(each, mutant)}
        assert len(lines) == 1 or (lines and each.get("code")), (each, lines)


def test_a_reason_is_not_taken_for_the_same_change_in_another_line():
    reason = {"module": "a.py", "change": "1 → 2", "code": "x = 1", "reason": "x is not read"}
    survivor = {"module": "a.py", "change": "1 → 2", "code": "x = 1  # start", "line": 5}
    assert explains(reason, survivor) and not explains(reason, {**survivor, "code": "y = 1"})
    assert not explains(reason, {**survivor, "module": "b.py"}) and not explains(
        reason, {**survivor, "change": "2 → 3"}
    )
