"""Every row of the reference of the wider forms: its true example is proved, its false one is refuted."""

import re
from pathlib import Path

import pytest

import qkv

DOCUMENT = Path(__file__).parents[2] / "docs" / "claims.md"
GIVEN = "x, y real, z in R^n, r in simplex^n, A in R^{n x n}, P permutation matrix, w ~ N(0, I), u in R^d"


def rows():
    text = DOCUMENT.read_text(encoding="utf-8").split("### The wider forms")[1]
    assert GIVEN in text
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `") and len(cells) == 4:
            yield cells[0], re.fullmatch(r"`(.*)` *", cells[2])[1], re.fullmatch(r"`(.*)` *", cells[3].rstrip("| "))[1]


@pytest.mark.parametrize(("form", "true", "false"), list(rows()), ids=lambda v: v[:24])
def test_the_examples_of_a_form_have_their_verdicts(form, true, false):
    found = qkv.check(f"```claim x\ngiven {GIVEN}\nthen {true}\nthen {false}\n```")
    assert [v.verdict for v in found] == ["proved", "refuted"], [v.because for v in found]


def test_the_table_has_all_forms():
    assert len(list(rows())) >= 30
