"""qkv grade: the annotated sheet, exit codes, JSON, pages, tables, claims; one sheet's failure stays its own."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from qkv.claims import check
from qkv.cli.sheets import annotated
from qkv.errors import QkvError
from qkv.sheets import grade_files

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "sheets"))
from sample_grades import sample_grade  # noqa: E402

EXAMPLE = ROOT / "examples" / "answer_sheet.tex"


def test_the_answers_come_first_then_every_line_with_sign_and_reason():
    lines = annotated(sample_grade()).splitlines()
    assert lines[0] == "sheets/ada.tex: demo" and "       read λ as the scale" in lines
    answers, formulas = lines.index("Answers"), lines.index("Line by line")
    assert answers < formulas
    assert lines[answers + 1].split() == ["–", "no", "answer", "a", "the", "condition", "for", "copying"]
    assert "✗ misses" in lines[answers + 2] and "line 14" in lines[answers + 2]
    text = "\n".join(lines[formulas:])
    assert "  14 ✗ wrong    \\alpha_a = \\frac{1}{2}\n       alpha_a is 0.146 at n = 10" in text
    assert "follows from line 14: c is not that" in text and "left minus right is 0" not in text
    assert "or read as: phi = x" in text
    assert "Look at line 14 first." in text and lines[-1] == "Part (e) was not found."


def test_show_prints_readings_and_derivations():
    text = annotated(sample_grade(), show=True)
    assert "| then alpha_a = 1/2" in text and ". k_a'q = 1/2" in text and "left minus right is 0" in text


def test_no_line_of_a_reason_is_wider_than_the_page():
    assert max(map(len, annotated(sample_grade()).splitlines())) < 180


@pytest.mark.slow
def test_the_example_has_the_mistakes_that_were_put_in(shell, tmp_path):
    page, table, claims = tmp_path / "one.html", tmp_path / "one.csv", tmp_path / "one.md"
    done = shell("grade", EXAMPLE, "--html", page, "--csv", table, "--claims", claims)
    assert done.code == 1 and done.err == ""
    data = shell("grade", EXAMPLE, "--json").data
    assert [sheet["file"] for sheet in data["sheets"]] == [str(EXAMPLE)]
    answers = {a["part"]: a["verdict"] for a in data["sheets"][0]["answers"]}
    assert answers["b"] == "misses" and answers["d.i"] in ("meets", "limit") and answers["c.i"] in ("meets", "limit")
    assert {19, 30} <= {s["line"] for s in data["sheets"][0]["statements"] if s["verdict"] == "wrong"}
    assert 'id="line-18"' in page.read_text("utf-8") and "✗ misses" in page.read_text("utf-8")
    (row,) = csv.DictReader(io.StringIO(table.read_text("utf-8")))
    assert row["b"] == "misses"
    verdicts = check(claims.read_text("utf-8"))
    assert len(verdicts) > 5 and not [v for v in verdicts if v.verdict == "malformed"]


def test_a_class_is_graded_in_processes_and_a_sheet_that_fails_does_not_stop_it(shell, files, tmp_path):
    page, table = tmp_path / "class.html", tmp_path / "class.csv"
    names = ["sheet.tex", "scan.pdf", "right.tex", "none.tex"]
    done = shell("grade", *(files / n for n in names), "--processes", 2, "--html", page, "--csv", table)
    assert done.code == 2 and "It is a PDF, not text" in done.err and "cannot be read" in done.err
    assert [line.split(": ")[0].rpartition("/")[2] for line in done.out.splitlines()[:4]] == names
    assert "4 sheets" in done.out and "Commonest mistakes" in page.read_text("utf-8")
    assert len(table.read_text("utf-8").splitlines()) == 5


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "no file was given"),
        (["sheet.tex", "--problem", "cake"], "cake"),
        (["sheet.tex", "--html", "none/x.html"], "does not exist"),
        (["sheet.tex", "--html", "x.pdf"], "is not the ending"),
        (["sheet.tex", "--csv", "none/x.csv"], "does not exist"),
        (["sheet.tex", "--csv", "x.xlsx"], "Use .csv, .tsv, .txt"),
        (["sheet.tex", "--processes", "0"], "--processes"),
    ],
)
def test_what_is_refused(shell, files, monkeypatch, words, problem):
    monkeypatch.chdir(files)
    done = shell("grade", *words)
    assert done.code == 2 and problem in done.err and "Traceback" not in done.err and done.out == ""


@pytest.mark.parametrize("text", ["", "\n\n", "Dear teacher, I was ill.\n"])
def test_a_sheet_in_which_nothing_was_read_exits_2(shell, tmp_path, text):
    (tmp_path / "empty.md").write_text(text)
    done = shell("grade", tmp_path / "empty.md", "--json")
    assert done.code == 2 and "empty.md: " in done.err and json.loads(done.out)["sheets"][0]["statements"] == []


def test_a_single_path_is_not_taken_letter_by_letter():
    for paths in ("a.tex", Path("a.tex")):
        with pytest.raises(QkvError, match=r"paths is the one path 'a.tex'\. Give a list of paths"):
            grade_files(paths)


def test_check_says_how_to_grade_a_sheet(shell, files):
    done = shell("check", files / "sheet.tex")
    assert done.code == 2 and f"qkv grade {files / 'sheet.tex'}" in done.err


def test_the_example_of_the_explorer_is_that_of_the_documents():
    packaged = ROOT / "src" / "qkv" / "sheets" / "answer_sheet.tex"
    assert packaged.read_text("utf-8") == EXAMPLE.read_text("utf-8")


@pytest.mark.slow
def test_from_the_shell_the_first_lines_come_soon(files):
    done = subprocess.run(
        [sys.executable, "-m", "qkv", "grade", str(files / "right.tex")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(files / "right.tex"))
