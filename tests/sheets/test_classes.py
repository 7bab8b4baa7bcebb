"""A class: rows and columns, alike answers, counted mistakes, CSV that spreadsheets take for text."""

import csv
import dataclasses
import io

import pytest
from sample_grades import ANSWERS, STATEMENTS, sample_grade

from qkv.sheets.classes import ClassGrade, question_labels
from qkv.sheets.sheet_files import failed_grade

GOOD = dataclasses.replace(
    ANSWERS[1],
    given="q = t(k_a + k_b)",
    verdict="limit",
    because="as t -> oo",
    claim="given k_1..k_n orthonormal\nlet q = t*(k_a + k_b)\nthen c -> v_a as t -> oo",
)


@pytest.fixture(scope="module")
def found():
    other = dataclasses.replace(
        ANSWERS[1],
        line=3,
        given="q = k_b/2 + k_a/2",
        claim=ANSWERS[1].claim.replace("(k_a + k_b)/2", "k_b/2 + k_a/2", 1),
    )
    return ClassGrade(
        (
            sample_grade(),
            sample_grade("sheets/bob.tex", (ANSWERS[0], other), STATEMENTS[2:3]),
            sample_grade("sheets/eve.md", (GOOD,), ()),
            failed_grade("sheets/scan.pdf", "it is a PDF, not text"),
        )
    )


def test_equivalent_answers_are_one_group(found):
    groups = [(g.part, g.verdict, [str(p) for p in g.places]) for g in found.alike if g.part == "b"]
    assert groups == [
        ("b", "misses", ["sheets/ada.tex:14", "sheets/bob.tex:3"]),
        ("b", "limit", ["sheets/eve.md:14"]),
    ]
    numbers = found.group_numbers()
    assert numbers[0, "b", ANSWERS[1].asked] == numbers[1, "b", ANSWERS[1].asked] == 1
    assert numbers[2, "b", ANSWERS[1].asked] == 2


def test_the_commonest_mistakes_come_first_and_what_follows_is_not_counted(found):
    assert [(m.kind, m.part, m.n_sheets) for m in found.mistakes] == [("answer", "b", 2), ("formula", "b", 2)]
    assert all("v_a + v_b)/2" not in m.written for m in found.mistakes if m.kind == "formula")
    assert [str(p) for p in found.mistakes[0].places] == ["sheets/ada.tex:14", "sheets/bob.tex:3"]


def test_everything_that_was_not_read_is_listed_with_the_sheets_that_failed(found):
    assert [(str(n.place), n.because) for n in found.not_read] == [
        ("sheets/ada.tex:16", "two readings disagree"),
        ("sheets/scan.pdf", "It is a PDF, not text"),
    ]


def test_the_table_has_a_row_for_each_sheet_and_a_column_for_each_question(found):
    rows = found.table("demo")
    assert [part for part, _ in found.questions("demo")] == ["a", "b", "c", "d"]
    assert [[a.verdict if a else None for a in answers] for _, answers in rows] == [
        ["none", "misses", "limit", "prose"],
        ["none", "misses", None, None],
        [None, "limit", None, None],
    ]


def test_csv_has_a_row_for_each_sheet(found):
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [r["sheet"] for r in rows] == [g.file for g in found]
    assert [(r["b"], r["b group"]) for r in rows] == [("misses", "1"), ("misses", "1"), ("limit", "2"), ("", "")]
    assert rows[0]["wrong formulas"] == "1" and rows[0]["first mistake at line"] == "14"
    assert rows[3]["remarks"] == "It is a PDF, not text"


def test_no_cell_is_taken_for_a_formula_by_a_spreadsheet():
    text = ClassGrade((failed_grade("=cmd.tex", "+1"),)).to_csv()
    assert [row[0] for row in csv.reader(io.StringIO(text))][1] == "'=cmd.tex" and "'+1" in text


def test_a_class_of_several_problems_has_a_table_for_each():
    found = ClassGrade((sample_grade(), sample_grade("x.md", problem="other")))
    assert found.problems == ("demo", "other") and len(found.table("demo")) == len(found.table("other")) == 1


def test_a_part_with_several_questions_has_numbered_columns():
    assert question_labels([("c", "x"), ("c", "y"), ("d", "x")]) == ["c", "c #2", "d"]


def test_the_card_says_what_most_got_wrong(found):
    text = str(found)
    assert "4 sheets" in text and "not graded  1 of 4" in text and "2 sheets" in text and "2, to look at" in text
