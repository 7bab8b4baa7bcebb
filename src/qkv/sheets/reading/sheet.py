"""Sheet, Formula: an answer sheet as formulas in reading order, with the words around them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SPAN = re.compile(r"\$[^$]*\$")
_WORD = re.compile(r"\w{2}|[\u4e00-\u9fff]")


@dataclass(frozen=True)
class Formula:
    """One formula of a sheet: a span of math, or one row of an aligned display.

    Attributes:
        line: The line of the sheet, from 1.
        source: The formula as it was written, one row of a display by itself.
        math: The same in LaTeX, with the author's macros put in, without alignment signs.
        part: The part in which it stands, such as "c.ii"; empty before the first part. Parts of a further question
            have its number before them, as in "2.a".
        row: The index of the row in its display, 0 for the first and for formulas in the text.
        display: The index of the display whose row it is, or -1 for a formula in the text.
        before: The words before it in its sentence, other formulas between dollar signs.
        after: The words after it in its sentence.
        own_text: Whether it belongs to the text of the problem and not to the answer.
        previous: The sentence before its own.
        nearby: Its own sentence, the one before it and the one after, as far as they stand in the same part; formulas
            between dollar signs.
    """

    line: int
    source: str
    math: str
    part: str
    row: int = 0
    display: int = -1
    before: str = ""
    after: str = ""
    own_text: bool = False
    previous: str = ""
    nearby: tuple[str, ...] = ()

    @property
    def aside(self) -> bool:
        """Whether it stands in a remark between brackets, after words of that remark.

        Example:
            >>> Formula(1, "q = k_a", "q = k_a", "b", before="(The choice ", after=" would do too.)").aside
            True
            >>> Formula(1, "q = k_a", "q = k_a", "b", before="(i) We choose ").aside
            False
        """
        words = _SPAN.sub("", self.before).replace("（", "(").replace("）", ")")
        opened = words.rfind("(")
        return opened > words.rfind(")") and _WORD.search(words[opened:]) is not None


@dataclass(frozen=True)
class Passage:
    """Words of a sheet that belong to one part, without formulas that stand alone.

    Attributes:
        part: The part, as in Formula.
        line: The line on which the passage begins.
        words: The text, formulas between dollar signs.
        own_text: Whether it belongs to the text of the problem.
    """

    part: str
    line: int
    words: str
    own_text: bool = False


@dataclass(frozen=True)
class Sheet:
    """An answer sheet as it was read.

    Attributes:
        file: The name of the file, or empty.
        form: "latex", "markdown", "typst", "notebook" or "text".
        text: The text, comments blanked out.
        formulas: Every formula in reading order, those without a relation too.
        passages: The words in reading order, one passage for each stretch of a part.
        parts: The parts in the order in which they begin.
        cut: Whether the sheet was too long and only its beginning was read.
    """

    file: str
    form: str
    text: str
    formulas: tuple[Formula, ...]
    passages: tuple[Passage, ...]
    parts: tuple[str, ...]
    cut: bool = False
