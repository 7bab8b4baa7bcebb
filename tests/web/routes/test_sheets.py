"""Sheets: replies have the grades of the library, line by line; the report is that of the command line."""

import pytest

from qkv.sheets.problems import SHIPPED
from qkv.viz.sheets_report import sheet_page
from qkv.web import limits

SHEET = "# (b)\n\nTake $q = \\frac12 (k_a + k_b)$, so $k_a^\\top q = \\frac12$.\n"


def test_the_feedback_is_that_of_the_library_with_every_line(post, run_code):
    found = post("/api/grade", {"text": SHEET, "file": "mine.md"})
    again = run_code(found["python"])["feedback"].to_json()
    bare = {
        **found,
        "statements": [
            {k: v for k, v in s.items() if k not in ("latex", "because_pieces")} for s in found["statements"]
        ],
        "answers": [
            {k: v for k, v in a.items() if k not in ("latex", "asked_pieces", "because_pieces")}
            for a in found["answers"]
        ],
    }
    assert {name: bare[name] for name in again} == again
    assert [(line["number"], line["text"]) for line in found["lines"]] == list(enumerate(SHEET.split("\n"), 1))
    assert {s["line"] for s in found["statements"]} == {3}
    for one in (*found["statements"], *found["answers"]):
        assert "".join(piece["text"] for piece in one["because_pieces"]) == one["because"]


def test_the_problems_and_the_example_can_be_started_from(client):
    found = client.get("/api/sheets").json()
    assert [p["id"] for p in found["problems"]] == list(SHIPPED) and found["file"] == "answer_sheet.tex"
    assert "\\item[(b)]" in found["example"]


def test_the_report_is_the_page_of_the_command_line(client):
    from qkv.sheets import grade

    found = client.post("/api/grade/report", json={"text": SHEET, "file": "mine.md"})
    assert found.headers["content-disposition"].startswith("attachment") and "<script" not in found.text
    assert found.text == sheet_page(grade(SHEET, file="mine.md"))


@pytest.mark.parametrize(
    "body",
    [
        {"text": "x" * (limits.MAX_SHEET_TEXT + 1)},
        {"text": "x", "problem": "../../etc/passwd"},
        {"text": "x", "problem": "cake"},
        {"text": "x", "file": "x" * 300},
        {"text": 1},
        {},
    ],
)
def test_what_is_too_long_or_unknown_is_refused(client, body):
    found = client.post("/api/grade", json=body)
    assert found.status_code == 422 and found.json()["error"]["problem"]


def test_the_problems_that_can_be_named_are_the_shipped_ones(client):
    names = client.get("/api/openapi.json").json()["components"]["schemas"]["GradeRequest"]["properties"]["problem"]
    assert str(list(SHIPPED)) in str(names)


def test_a_sheet_that_is_nothing_gets_an_empty_reply(post):
    found = post("/api/grade", {"text": "\u0001\u2028 nothing"})
    assert found["statements"] == [] and not found["failed"]
