"""Pages of sheets: every verdict in place, escaped, self-contained; a class with links to its lines."""

import dataclasses
import html
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sheets"))
from sample_grades import STATEMENTS, TEXT, sample_grade

from qkv.sheets.classes import ClassGrade
from qkv.sheets.sheet_files import failed_grade
from qkv.viz.sheets_report import annotated_sheet, class_page, sheet_page, shown_names


class Balanced(HTMLParser):
    """Checks that elements are closed in order, and collects ids and links."""

    VOID = ("meta", "br", "mspace", "link")

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.sources = [], [], [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        self.sources += [v for k, v in attrs if k in ("src", "srcset")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag


def parsed(page):
    found = Balanced()
    found.feed(page)
    assert found.open == [] and len(found.ids) == len(set(found.ids))
    assert found.sources == [] and "<script" not in page and "http" not in " ".join(found.links)
    assert {link[1:] for link in found.links} <= set(found.ids)
    return found


def test_a_sheet_is_shown_line_by_line_with_its_feedback_in_place():
    page = sheet_page(sample_grade())
    parsed(page)
    assert "<title>ada.tex</title>" in page and "Read λ as the scale." in page and "Part (e) was not found." in page
    shown = re.findall(r'<code class="source">(.*?)</code>', page)
    plain = [html.unescape(re.sub(r"<[^>]*>", "", line)).replace("\u200b", "") for line in shown]
    assert plain == TEXT.split("\n")
    line = page[page.index('id="line-14"') : page.index('id="line-15"')]
    assert "✗ misses" in line and "✗ wrong" in line and "1 right, 1 choice" in line and "Derivation, 1 step" in line
    assert '<mark class="refuted" title="wrong">\\alpha_a = \\frac{1}{2}</mark>' in line
    assert '<mark class="proved" title="right">' in line
    later = page[page.index('id="line-15"') : page.index('id="line-16"')]
    assert 'Follows from <a href="#line-14">line 14</a>' in later and "&lt;b&gt;for all&lt;/b&gt;" in later


@pytest.mark.parametrize(("problem", "said"), [("demo", "demo."), ("What is attention?", "What is attention?")])
def test_the_name_of_a_problem_ends_its_sentence(problem, said):
    assert f"Problem: {said}</p>" in sheet_page(sample_grade(problem=problem))


def test_long_runs_of_lines_without_feedback_are_folded():
    page = annotated_sheet(sample_grade())
    assert "<summary>lines 1 to 11</summary>" in page
    assert "<summary>" not in annotated_sheet(sample_grade(statements=(), answers=(), text="a\nb"))
    assert "There is no text" in annotated_sheet(failed_grade("x", "y"))


def test_what_a_student_wrote_is_never_markup():
    evil = "<script>alert(1)</script>\"'&"
    odd = dataclasses.replace(
        STATEMENTS[2], formula=evil, because=evil, claim=evil, readings=(evil,), part=evil, line=1
    )
    grade = dataclasses.replace(
        sample_grade(statements=(odd,), text=evil), file=evil, problem=evil, remarks=(evil,), notation=((evil, evil),)
    )
    for page in (sheet_page(grade), class_page(ClassGrade((grade, grade)))):
        assert "<script" not in page and "alert(1)" in page
        Balanced().feed(page)


def test_a_class_has_its_mistakes_table_groups_and_what_was_not_read():
    found = ClassGrade((sample_grade(), sample_grade("sheets/bob.tex"), failed_grade("sheets/scan.pdf", "not text")))
    page = class_page(found)
    parsed(page)
    assert "2 of 3 sheets were read." in page and "✗ 2 sheets" in page
    assert '<a href="#s1-line-14">bob.tex:14</a>' in page and page.count("scan.pdf") >= 2
    assert re.search(r'<th scope="row"><a href="#s0">ada.tex</a></th>', page)
    assert '✗<span class="unseen"> misses</span></b> <small>1</small>' in page


@pytest.mark.parametrize(
    ("files", "shown"),
    [
        (["a/b/x.md", "a/b/y.md"], ["x.md", "y.md"]),
        (["a/b/x.md", "a/c/x.md"], ["b/x.md", "c/x.md"]),
        (["x.md"], ["x.md"]),
        (["/t/x.md", "y.md"], ["/t/x.md", "y.md"]),
        (["a/x.md", "a/x.md/y"], ["x.md", "x.md/y"]),
        ([], []),
    ],
)
def test_names_of_sheets_leave_out_the_folder_that_all_share(files, shown):
    assert shown_names(files) == shown
