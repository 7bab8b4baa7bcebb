"""The share of lines that tests run is read from a report of coverage, and too small a one fails."""

import json
import sys

import pytest

from faults import line_coverage


def report(path, lines, missed):
    path.write_text(json.dumps({"totals": {"num_statements": lines, "missing_lines": missed}}))
    return path


@pytest.mark.parametrize(("lines", "missed", "code"), [(1000, 0, 0), (1000, 50, 0), (1000, 51, 1), (40, 40, 1)])
def test_too_few_lines_fail_and_the_page_tells_the_share(lines, missed, code, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(line_coverage, "RESULTS", tmp_path)
    monkeypatch.setattr(line_coverage, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    path = report(tmp_path / "report.txt", lines, missed)
    monkeypatch.setattr(sys, "argv", ["line_coverage", str(path)])
    assert line_coverage.main() == code
    assert bool(capsys.readouterr().err) == bool(code)
    page = (tmp_path / "docs" / "reliability.md").read_text()
    assert f"of the {lines:,} lines of `src/qkv`" in page
    if missed == 51:
        assert "run 94.9 % of" in page  # never rounded up


@pytest.mark.parametrize(("lines", "missed"), [(0, 0), (10, 11), (10, -1)])
def test_a_report_that_makes_no_sense_is_refused(lines, missed, tmp_path):
    with pytest.raises(ValueError, match="lines as missed"):
        line_coverage.totals(report(tmp_path / "report.txt", lines, missed))
