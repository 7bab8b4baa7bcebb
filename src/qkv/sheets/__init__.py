"""Answer sheets as people write them: read, decide, give feedback.

Reading order: feedback (the results); reading (documents to formulas with the words around them); problems (what is
given and asked); statements (each formula as a claim, decided); answers (the author's constructions, put to the goals);
closeness (what ≈ means in both); pipeline (grade); sheet_files (many files), classes (a class), equivalent_answers
(which answers say the same), claim_blocks and source_view (for what shows them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkv._lazy import lazily

if TYPE_CHECKING:  # what editors and mypy see; at run time the same names are imported when they are first used
    from qkv.sheets.claim_blocks import claim_document as claim_document
    from qkv.sheets.classes import ClassGrade as ClassGrade
    from qkv.sheets.feedback import Grade as Grade
    from qkv.sheets.feedback import GradedAnswer as GradedAnswer
    from qkv.sheets.feedback import Statement as Statement
    from qkv.sheets.pipeline import grade as grade
    from qkv.sheets.reading.reader import read_sheet as read_sheet
    from qkv.sheets.sheet_files import grade_files as grade_files
else:
    _HOME = {
        "GradedAnswer": "feedback",
        "ClassGrade": "classes",
        "claim_document": "claim_blocks",
        "grade_files": "sheet_files",
        "Grade": "feedback",
        "Statement": "feedback",
        "grade": "pipeline",
        "read_sheet": "reading",
    }
    __getattr__, __dir__, __all__ = lazily(__name__, _HOME)
