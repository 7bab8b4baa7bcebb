"""What a view of a graded sheet shows: its lines with their numbers, and its formulas in LaTeX."""

from __future__ import annotations

from dataclasses import dataclass, field

from qkv.sheets.feedback import Grade
from qkv.sheets.reading.forms import Macro, expanded, form_of, read_document
from qkv.sheets.reading.typst import as_latex


@dataclass(frozen=True)
class SourceView:
    """The lines of a sheet, and how its formulas are set.

    Attributes:
        form: The form of the sheet.
        lines: Numbers and texts of its lines; of a notebook, those of its Markdown cells.
    """

    form: str
    lines: tuple[tuple[int, str], ...]
    _macros: dict[str, Macro] = field(repr=False)

    @classmethod
    def of(cls, grade: Grade) -> SourceView:
        """The view of a sheet.

        Args:
            grade: The feedback, with the text of the sheet.
        """
        text = grade.text
        document = read_document(text, grade.file)
        if document.form == "notebook":
            lines = tuple(zip(document.lines, document.text.split("\n"), strict=False))
        else:
            lines = tuple(enumerate(text.split("\n"), 1)) if text else ()
        return cls(document.form or form_of(text, grade.file), lines, document.macros)

    def latex(self, formula: str) -> str:
        """A formula of the sheet in LaTeX, with the author's macros put in; as it was written where that fails."""
        bare = formula.strip().strip("$").strip()
        try:
            return as_latex(bare) if self.form == "typst" else expanded(bare, self._macros)
        except (ValueError, LookupError, RecursionError):
            return bare
