"""Grade: what is counted, what is a mistake, and what follows from one."""

import dataclasses

import pytest
from sample_grades import ANSWERS, STATEMENTS, sample_grade

from qkv.sheets.feedback import MEANINGS, SIGNS, Grade, words


def test_what_follows_from_a_mistake_is_not_counted_again():
    grade = sample_grade()
    assert grade.counts() == {"right": 1, "wrong": 1, "follows": 1, "choice": 2, "not_read": 1}
    assert grade.answer_counts() == {"limit": 1, "misses": 1, "prose": 1, "none": 1}
    assert [(type(m).__name__, m.line) for m in grade.mistakes] == [("GradedAnswer", 14), ("Statement", 14)]
    assert "1 from an earlier mistake" in grade.summary() and "1 without an answer" in grade.summary()
    assert "follows from line 14: c is not that" in " ".join(str(grade).split())


def test_a_miss_that_follows_from_a_mistake_is_no_mistake_of_its_own():
    missed = dataclasses.replace(ANSWERS[1], follows_from=3)
    grade = sample_grade(answers=(missed,), statements=())
    assert grade.mistakes == () and grade.answer_counts() == {"follows": 1}
    assert grade.nothing_wrong is False  # it is still missed


@pytest.mark.parametrize(
    ("answers", "statements", "nothing_wrong"),
    [
        (ANSWERS[2:], STATEMENTS[:2], True),
        (ANSWERS[:1], (), None),
        ((), (), None),
        (ANSWERS[:2], (), False),
        ((), STATEMENTS[2:3], False),
        ((), STATEMENTS[5:], True),
    ],
)
def test_whether_nothing_is_wrong(answers, statements, nothing_wrong):
    assert sample_grade(answers=answers, statements=statements).nothing_wrong is nothing_wrong


def test_json_has_the_fields_that_are_documented_and_not_the_text():
    data = sample_grade().to_json()
    assert list(data) == ["file", "problem", "notation", "statements", "answers", "remarks", "failed"]
    assert data["statements"][1]["derivation"] == [{"text": "k_a'q = 1/2", "latex": r"k_a^\top q = \frac{1}{2}"}]
    assert data["statements"][3]["follows_from"] == 14 and data["notation"] == [["λ", "the scale"]]
    assert data["answers"][0] == {
        "part": "a", "asked": "the condition for copying", "line": 0, "given": "", "verdict": "none", "because": "",
        "claim": "", "follows_from": None,
    }  # fmt: skip


def test_every_verdict_has_a_sign_and_a_meaning():
    kinds = {s.verdict for s in STATEMENTS} | {a.verdict for a in ANSWERS} | {"limit", "right", "meets", "not_read"}
    assert kinds == set(SIGNS) == set(MEANINGS)
    assert words("not_read") == "not read" and words("none") == "no answer"


def test_an_empty_grade_has_a_card():
    assert "0 formulas." in str(Grade("x.md", "", (), (), ()))
