"""Pages of sheets in a browser: nothing widens them, they print light, and axe finds nothing."""

import dataclasses
import sys
from pathlib import Path

import pytest
from marks import some

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sheets"))
from harness import violations
from sample_grades import STATEMENTS, sample_grade

from qkv.sheets.classes import ClassGrade
from qkv.sheets.sheet_files import failed_grade
from qkv.viz.sheets_report import class_page, sheet_page

pytest.importorskip("playwright.sync_api")

LONG = (
    "left minus right is (-1/2 + exp(1/2)/(n - 2 + 2*exp(1/2)))*v_a + (-1/2 + exp(1/2)/(n - 2 + 2*exp(1/2)))*v_b + "
    "1/(n - 2 + 2*exp(1/2))*(sum of the other v_i)"
)
SHEET = sample_grade(statements=(*STATEMENTS[:2], dataclasses.replace(STATEMENTS[2], because=LONG), *STATEMENTS[3:]))
CLASS = ClassGrade((SHEET, sample_grade("sheets/bob.tex"), failed_grade("sheets/scan.pdf", "it is a PDF, not text")))
PAGES = {"sheet": lambda: sheet_page(SHEET), "class": lambda: class_page(CLASS)}


@pytest.fixture
def opened(chromium):
    contexts = []

    def make(kind, **options):
        context = chromium.new_context(**options)
        contexts.append(context)
        shown = context.new_page()
        shown.set_content(PAGES[kind]())
        shown.locator("details").evaluate_all("all => all.forEach((d) => { d.open = true })")
        return shown

    yield make
    for context in contexts:
        context.close()


@pytest.mark.parametrize("kind", PAGES)
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_widens_the_page(opened, kind, width):
    shown = opened(kind, viewport={"width": width, "height": 800})
    assert shown.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("kind", some(PAGES, ["sheet"]))
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_axe_finds_no_violation(opened, kind, scheme):
    assert violations(opened(kind, color_scheme=scheme)) == []


@pytest.mark.parametrize("kind", PAGES)
def test_a_dark_page_prints_light_and_splits_no_note(opened, kind):
    shown = opened(kind, color_scheme="dark")
    assert "rgb(23, 23, 26)" in shown.evaluate("getComputedStyle(document.body).backgroundColor")
    shown.emulate_media(media="print", color_scheme="dark")
    assert "rgb(255, 255, 255)" in shown.evaluate("getComputedStyle(document.body).backgroundColor")
    inside = shown.locator(".note").evaluate_all("all => all.map((e) => getComputedStyle(e).breakInside)")
    assert set(inside) == {"avoid"}
