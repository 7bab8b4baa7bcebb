"""Files: encodings, what is no text, failures that stay with their sheet, time limits, processes."""

import sys
import time
import types
from dataclasses import replace

import pytest
from sample_grades import sample_grade

from qkv.errors import QkvError
from qkv.sheets import sheet_files
from qkv.sheets.sheet_files import decoded, grade_file, grade_files, sheet_text


@pytest.fixture
def pipeline(monkeypatch):
    """A stand-in for qkv.sheets.pipeline, whose function a test sets."""
    stand_in = types.ModuleType("qkv.sheets.pipeline")
    monkeypatch.setitem(sys.modules, "qkv.sheets.pipeline", stand_in)

    def use(function):
        stand_in.grade = function

    return use


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("α ≫ 1\r\nb".encode(), "α ≫ 1\nb"),
        ("\ufeffα".encode(), "α"),
        ("注意力".encode("gb18030"), "注意力"),
        ("α".encode("utf-16"), "α"),
        (b"", ""),
    ],
)
def test_encodings(data, text):
    assert decoded("x", data) == text


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"%PDF-1.7\x00\xff", "a PDF"),
        (bytes(range(256)) * 4, "binary"),
        (b"PK\x03\x04\x00\x00", "binary"),
        (b"a\x00b", "binary"),
    ],
)
def test_what_is_no_text_is_refused(data, kind):
    with pytest.raises(QkvError, match=f"it is {kind}, not text"):
        decoded("x", data)


def test_a_file_that_is_too_large_missing_or_a_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sheet_files, "MAX_SHEET_BYTES", 3)
    (tmp_path / "big.md").write_text("four")
    for name, problem in (
        ("big.md", "it has more than 3 bytes"),
        ("none.md", "cannot be read"),
        (".", "it is a folder"),
    ):
        with pytest.raises(QkvError, match=problem):
            sheet_text(tmp_path / name)


def test_a_failure_stays_with_its_sheet(tmp_path, pipeline):
    def grade(text, problem, file, callback=None):
        if "bug" in text:
            raise KeyError(text)
        return sample_grade(file, text="")

    pipeline(grade)
    (tmp_path / "good.md").write_text("fine")
    (tmp_path / "bad.md").write_text("bug")
    (tmp_path / "scan.pdf").write_bytes(b"%PDF-1.4")
    names = ["good.md", "bad.md", "scan.pdf", "none.md"]
    seen = []
    found = grade_files(
        [tmp_path / n for n in names], processes=1, callback=lambda done, total: seen.append((done, total))
    )
    assert [g.failed for g in found] == [False, True, True, True]
    assert found[0].text == "fine" and "which is a bug (KeyError)" in found[1].remarks[0]
    assert "It is a PDF" in found[2].remarks[0] and "cannot be read" in found[3].remarks[0]
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_sheet_that_takes_too_long_is_stopped(tmp_path, pipeline):
    def grade(text, problem, file, callback=None):
        while True:
            try:
                time.sleep(0.01)
            except Exception:
                continue

    pipeline(grade)
    (tmp_path / "slow.md").write_text("x")
    found = grade_file((None, 0.2), str(tmp_path / "slow.md"))
    assert found.failed and "longer than 0.2 s" in found.remarks[0]


def test_a_sheet_whose_time_is_over_keeps_its_answers_and_is_not_called_right(tmp_path, pipeline):
    answered = sample_grade("slow.md")

    def grade(text, problem, file, callback):
        callback(replace(answered, statements=()))
        while True:
            time.sleep(0.01)

    pipeline(grade)
    (tmp_path / "slow.md").write_text("x")
    seen = []
    found = grade_file((None, 0.2), str(tmp_path / "slow.md"), seen.append)
    assert found.answers == answered.answers and seen[0].answers == answered.answers
    assert found.failed and found.nothing_wrong is None
    assert found.summary() == "Only the answers were decided."
    assert found.remarks[-1].startswith("It took longer than 0.2 s, so that only the answers were decided.")


def test_an_unknown_problem_is_a_refusal_and_no_remark(tmp_path, pipeline):
    pipeline(lambda text, problem, file, callback=None: pytest.fail("no sheet may be read"))
    (tmp_path / "a.md").write_text("x")
    with pytest.raises(QkvError, match="there is no such file"):
        grade_files([tmp_path / "a.md"], "cake", processes=1)


def test_the_sheet_on_which_a_worker_dies_is_found_and_the_others_are_graded(tmp_path, monkeypatch):
    from qkv.parallel import WorkerDied

    calls = []

    class Pool:
        """Dies where the path of the bad sheet is among the pieces."""

        size = 2

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def map(self, work, shared, pieces, callback):
            calls.append(len(pieces))
            if ("bad.md",) in pieces:
                raise WorkerDied("distributing the work", "a worker process died", "Give it more memory")
            return [sample_grade(path) for (path,) in pieces]

    monkeypatch.setattr(sheet_files, "_fresh", lambda pool: Pool())
    names = [f"{i}.md" for i in range(6)] + ["bad.md", "7.md"]
    found = sheet_files._graded(Pool(), (None, 1.0), names, None)
    assert [g.file for g in found] == names and [g.failed for g in found] == [n == "bad.md" for n in names]
    assert max(calls) == 8 and len(calls) <= 7
