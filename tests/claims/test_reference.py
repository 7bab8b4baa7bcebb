"""Every row of the reference of the wider forms: its true example is proved, its false one is refuted."""

import re
from pathlib import Path

import pytest
from marks import spread

import qkv

DOCUMENT = Path(__file__).parents[2] / "docs" / "claims.md"
GIVEN = "x, y real, z in R^n, r in simplex^n, A in R^{n x n}, P permutation matrix, w ~ N(0, I), u in R^d"


def rows():
    text = section("The wider forms")
    assert GIVEN in text
    for form, _, true, false in table(text):
        yield form, code(true), code(false)


def section(name):
    """The text of one part of the reference."""
    return DOCUMENT.read_text(encoding="utf-8").split(f"### {name}\n")[1].split("\n### ")[0]


def table(text):
    """The cells of the rows of a table with four columns."""
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 4 and cells[2].startswith("`"):
            yield cells


def code(cell):
    return re.fullmatch(r"`(.*)` *", cell.rstrip("| "))[1]


def textbook_rows():
    for form, head, true, false in table(section("Forms of textbooks")):
        yield form, code(head).split("; "), code(true), code(false)


@pytest.mark.parametrize(("form", "true", "false"), spread(list(rows()), 3), ids=lambda v: v[:24])
def test_the_examples_of_a_form_have_their_verdicts(form, true, false):
    found = qkv.check(f"```claim x\ngiven {GIVEN}\nthen {true}\nthen {false}\n```")
    assert [v.verdict for v in found] == ["proved", "refuted"], [v.because for v in found]


@pytest.mark.parametrize(("form", "head", "true", "false"), spread(list(textbook_rows()), 3), ids=lambda v: str(v)[:24])
def test_the_examples_of_a_textbook_form_have_their_verdicts(form, head, true, false):
    found = qkv.check("\n".join(["```claim x", *head, f"then {true}", f"then {false}", "```"]))
    assert [v.verdict for v in found] == ["proved", "refuted"], [v.because for v in found]


def test_the_tables_have_all_forms():
    assert len(list(rows())) >= 30
    assert len(list(textbook_rows())) >= 25
