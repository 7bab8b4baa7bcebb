"""Answers of a sentence or two with known truth: right ones do not miss, wrong ones do not meet."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from marks import spread

from qkv.sheets.answers import answers_of
from qkv.sheets.problems import load_problem
from qkv.sheets.reading import read_sheet

MEETS, OPEN = {"meets", "limit"}, {"prose", "not_read", "none"}
ALLOWED = {"✓": MEETS, "✗": {"misses"}, "~": MEETS | OPEN, "!": {"misses"} | OPEN, "?": OPEN}


class Fragment(NamedTuple):
    """One answer: problem, part, the place of the question in it, what stands before it, its mark and its text."""

    problem: str
    part: str
    place: int
    setting: str
    mark: str
    text: str


def fragments() -> list[Fragment]:
    """All fragments of the table."""
    found, problem, part, place, setting = [], "", "", 1, ""
    for line in (Path(__file__).parent / "answer_fragments.md").read_text(encoding="utf-8").split("\n"):
        heading = re.match(r"## .*\(([\w-]+), ([\w.]+)(?:, (\d))?\)$", line)
        if heading:
            problem, part, place = heading[1], heading[2], int(heading[3] or 1)
        elif line.startswith("> "):
            setting = line[2:-1].replace("⏎", "\n")
        elif line.startswith("- "):
            found.append(Fragment(problem, part, place - 1, setting, line[2], line[4:].replace("⏎", "\n")))
    return found


FRAGMENTS = fragments()


def test_the_table_is_long_and_has_right_and_wrong_ones():
    marks = [f.mark for f in FRAGMENTS]
    assert len(FRAGMENTS) >= 500 and set(marks) == set(ALLOWED)
    assert marks.count("✓") >= 70 and marks.count("✗") >= 70


@pytest.mark.parametrize("fragment", spread(FRAGMENTS, 6), ids=lambda f: f"{f.part} {f.text[:60]}")
def test_answers(fragment):
    found = answers_of(read_sheet(fragment.setting + fragment.text + "\n", "sheet.md"), load_problem(fragment.problem))
    answer = [a for a in found if a.part == fragment.part][fragment.place]
    assert answer.verdict in ALLOWED[fragment.mark], (answer.verdict, answer.because)
