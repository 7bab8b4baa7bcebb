"""Reading answer sheets: documents to parts to formulas.

Reading order: sheet (the results); forms (the form of a sheet, comments, macros); relations (signs); spans (where math
stands, rows); typst (Typst math as LaTeX); parts (labels and headings); regions (answers and the problem's own text);
sentences (the words around a formula); scale_words (a large factor that words give a query); reader (all of it).
"""

from __future__ import annotations

from qkv.sheets.reading.reader import read_sheet as read_sheet
from qkv.sheets.reading.sheet import Formula as Formula
from qkv.sheets.reading.sheet import Passage as Passage
from qkv.sheets.reading.sheet import Sheet as Sheet

__all__ = ["Formula", "Passage", "Sheet", "read_sheet"]
