"""The chapter on answer sheets: its numbers are those of the grade that it shows."""

from qkv.sheets.feedback import Grade
from qkv.tour.sheets import sheets


def test_the_chapter_shows_the_mistakes_of_the_example():
    chapter = sheets()
    words, grade, first = chapter.blocks
    assert isinstance(grade, Grade) and grade.mistakes and f"decides {len(grade.statements)} formulas" in words
    mistake = grade.mistakes[0]
    assert first == f"The first mistake is in line {mistake.line}: {mistake.because}."
