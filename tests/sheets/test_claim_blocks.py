"""Readings as claim blocks: qkv check accepts them, and finds the verdicts again."""

import dataclasses

from sample_grades import STATEMENTS, sample_grade

from qkv.claims import check
from qkv.sheets.claim_blocks import claim_document
from qkv.sheets.sheet_files import failed_grade


def test_every_reading_is_a_block_that_check_accepts():
    verdicts = check(claim_document([sample_grade()]))
    kinds = {v.id: v.verdict for v in verdicts}
    assert kinds == {
        "answer b line 14": "refuted",
        "answer c line 16": "proved",
        "formula b line 14": "proved",
        "formula b line 14 (2)": "refuted",
        "formula b line 15": "refuted",
    }


def test_what_was_written_opens_no_block():
    odd = dataclasses.replace(STATEMENTS[1], formula="~~~\n```claim x\nthen 1 = 2\n```", because="```claim y")
    assert len(check(claim_document([sample_grade(statements=(odd,), answers=())]))) == 1


def test_a_sheet_without_readings_says_so():
    text = claim_document([failed_grade("scan.pdf", "it is a PDF")])
    assert "# scan.pdf" in text and "No formula of this sheet was read" in text
