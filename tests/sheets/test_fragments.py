"""Fragments of sheets with known truth, in fragments.md: what is true is not called wrong, what is false not right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from marks import spread

from qkv.sheets import grade
from qkv.sheets.problems import load_problem
from qkv.sheets.reading import read_sheet
from qkv.sheets.statements.deciding import Budget
from qkv.sheets.statements.judge import judge

MARK = re.compile(r"[✓✗]|(?<=\$)[~!]|(?<=\$\\\[ )[~!]")
ALLOWED = {
    "✓": {"right", "limit"},
    "✗": {"wrong"},
    "~": {"right", "limit", "choice", "not_read", "absent"},
    "!": {"wrong", "choice", "not_read", "absent"},
}


class Fragment(NamedTuple):
    """One fragment: problem, name of the file, what stands before it, itself; for an answer its part and verdicts."""

    problem: str
    file: str
    setting: str
    text: str
    part: str = ""
    verdicts: str = ""


def fragments() -> list[Fragment]:
    """All fragments of the table."""
    found, problem, file, setting = [], "", "", ""
    for line in (Path(__file__).parent / "fragments.md").read_text(encoding="utf-8").split("\n"):
        heading = re.match(r"## .*\(([\w-]+), (\w+)\)$", line)
        if heading:
            problem, file = heading[1], {"typst": "s.typ", "markdown": "s.md"}[heading[2]]
        elif line.startswith("> "):
            setting = line[2:-1].replace("⏎", "\n")
        elif line.startswith("- "):
            answer = re.match(r"- ([a-e](?:\.i+)?): ([a-z_ ]+) \| (.*)$", line)
            part, verdicts, text = answer.groups() if answer else ("", "", line[2:])
            found.append(Fragment(problem, file, setting, text.replace("⏎", "\n"), part, verdicts))
    return found


def marked(text: str) -> list[tuple[str, str]]:
    """The marks of a text with the formulas that they stand before; in a display, with the row."""
    out = []
    for m in MARK.finditer(text):
        row = text[text.rfind("\n", 0, m.start()) + 1 : m.start()]
        begin = row if row.count("$") % 2 == 0 and "&" in row else ""
        end = re.search(r"\$|\\\]|\\\\|\n", text[m.end() :])
        assert end is not None, text
        out.append((m[0], squeezed(begin + text[m.end() : m.end() + end.start()])))
    return out


def squeezed(formula: str) -> str:
    return re.sub(r"\s|\\quad.*", "", formula)


STATEMENTS = [f for f in fragments() if not f.part]
ANSWERS = [f for f in fragments() if f.part]


def test_the_table_is_long_and_has_true_and_false_ones():
    marks = [mark for f in STATEMENTS for mark, _ in marked(f.text)]
    assert len(STATEMENTS) + len(ANSWERS) >= 300
    assert {mark: marks.count(mark) >= 8 for mark in "✓✗~!"} == dict.fromkeys("✓✗~!", True)


@pytest.mark.parametrize("fragment", spread(STATEMENTS, 6), ids=lambda f: f.text[:60])
def test_statements(fragment):
    sheet = read_sheet(MARK.sub("", fragment.setting + fragment.text), fragment.file)
    left = list(judge(sheet, load_problem(fragment.problem), Budget())[0])
    for mark, formula in marked(fragment.text):
        found = next((s for s in left if squeezed(s.formula) == formula), None)
        if found is not None:
            left.remove(found)
        verdict = found.verdict if found is not None else "absent"
        assert verdict in ALLOWED[mark], (mark, formula, verdict, found and found.because)
    assert not [s.formula for s in left if s.verdict == "wrong"]


@pytest.mark.parametrize("fragment", spread(ANSWERS, 3), ids=lambda f: f.text[:60])
def test_answers(fragment):
    found = grade(fragment.setting + fragment.text, fragment.problem, fragment.file)
    answer = next(a for a in found.answers if a.part == fragment.part)
    assert answer.verdict in fragment.verdicts.split(), answer.because
