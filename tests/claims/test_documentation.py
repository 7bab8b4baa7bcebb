"""Every example of docs/claims.md is checked, and gives the verdicts that the document shows."""

import re
from pathlib import Path

import pytest
from marks import some

import qkv

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "claims.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"````claims\n(.*?)````\n\n```text\n(.*?)```", TEXT, flags=re.S)


def test_every_example_is_followed_by_its_verdicts():
    assert len(EXAMPLES) == TEXT.count("````claims") >= 7


@pytest.mark.parametrize("number", some(range(len(EXAMPLES)), [0, 1, 2, 3, 6]))
def test_the_document_shows_what_comes_out(number):
    claims, shown = EXAMPLES[number]
    assert "".join(f"{v.id}: {v.verdict}\n" for v in qkv.check(claims, seconds=60)) == shown
