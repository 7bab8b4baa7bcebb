"""Line coverage: `python -m faults.line_coverage REPORT` stores the totals of `coverage json`, and writes the page.

It fails where less than MIN_PERCENT of the lines are run.
"""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path
from typing import Any

from faults.page import write_page
from faults.processes import ROOT

RESULTS = Path(__file__).parent / "results"
MIN_PERCENT = 95


def totals(report: Path) -> dict[str, Any]:
    """Lines and lines that no test runs, of a report of `coverage json`, with its date."""
    found = json.loads(report.read_text("utf-8"))
    lines, missed = (int(found["totals"][name]) for name in ("num_statements", "missing_lines"))
    if not 0 <= missed <= lines or not lines:
        raise ValueError(f"{report} tells {missed} of {lines} lines as missed")
    return {"date": str(datetime.date.today()), "lines": lines, "missed": missed}


def is_enough(found: dict[str, Any]) -> bool:
    """Whether at least MIN_PERCENT of the lines are run."""
    return 100 * (found["lines"] - found["missed"]) >= MIN_PERCENT * found["lines"]


def main() -> int:
    """Store the totals of the report that is named, and write the page."""
    found = totals(Path(sys.argv[1]))
    (RESULTS / "line-coverage.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    write_page(RESULTS, ROOT / "docs" / "reliability.md")
    if not is_enough(found):
        sys.stderr.write(f"{found['missed']} of {found['lines']} lines are not run; {MIN_PERCENT} % must be\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
