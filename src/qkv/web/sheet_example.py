"""The answer sheet that the sheets page starts from."""

from __future__ import annotations

from functools import cache
from importlib import resources

EXAMPLE_FILE = "answer_sheet.tex"


@cache
def example_sheet() -> str:
    """A short sheet in LaTeX with some mistakes; examples/answer_sheet.tex is the same."""
    return resources.files("qkv.sheets").joinpath(EXAMPLE_FILE).read_text(encoding="utf-8")
