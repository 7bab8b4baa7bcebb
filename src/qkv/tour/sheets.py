"""The chapter of the tour on answer sheets: a sheet with mistakes, as it comes back."""

from __future__ import annotations

import time
from importlib import resources

from qkv.errors import with_full_stop
from qkv.sheets import grade
from qkv.viz.html_report import Chapter

FILE = "answer_sheet.tex"


def sheets() -> Chapter:
    """Grade the example sheet, which is written in LaTeX and holds some mistakes."""
    text = resources.files("qkv.sheets").joinpath(FILE).read_text(encoding="utf-8")
    start = time.monotonic()
    found = grade(text, file=FILE)
    seconds = time.monotonic() - start
    first = found.mistakes[0]
    return Chapter(
        "An answer sheet as it was written",
        (
            f"`qkv grade` reads a sheet of {len(text.splitlines())} lines of LaTeX as its author wrote it, with no claim in it, and decides "
            f"{len(found.statements)} formulas in {seconds:.0f} s. It is feedback, not a mark.",
            found,
            with_full_stop(f"The first mistake is in line {first.line}: {first.because}"),
        ),
    )
