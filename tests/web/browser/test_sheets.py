"""Sheets page: a sheet that is pasted, dropped, opened or typed comes back with the library's feedback in place."""

import json
import re

import pytest

from qkv.sheets import grade
from qkv.sheets.feedback import words
from qkv.web.sheet_example import EXAMPLE_FILE, example_sheet

expect = pytest.importorskip("playwright.sync_api").expect

SHEET = """# Attention exploration

## (b)

Take $q = \\frac{1}{2}(k_a + k_b)$. Then $k_a^\\top q = \\frac{1}{2}$, and $k_a^\\top q = 3$.
So $k_i^\\top q = 0$ for $i \\neq a, b$.
"""
DROP = """([text, name]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, { type: "text/plain" }));
  const place = document.querySelector(".giving");
  const options = { dataTransfer: data, bubbles: true, cancelable: true };
  for (const kind of ["dragover", "drop"]) place.dispatchEvent(new DragEvent(kind, options));
}"""


def graded(page):
    expect(page.locator(".feedback")).to_be_visible(timeout=90_000)
    expect(page.locator(".graded")).to_have_attribute("aria-busy", "false", timeout=90_000)


def verdicts_on(page, line):
    """The words at one line, those behind a disclosure too."""
    shown = page.locator(f"#line-{line} .note .word").all_text_contents()
    return sorted(text.split(" ", 1)[1] for text in shown)


def expected_on(found, line):
    return sorted(words(one.verdict) for one in (*found.answers, *found.statements) if one.line == line)


@pytest.mark.slow
def test_the_example_comes_back_with_the_verdicts_of_the_library(watched):
    one = watched()
    page = one.open("sheets")
    graded(page)
    found = grade(example_sheet(), file=EXAMPLE_FILE)
    expect(page.locator(".overview .count")).to_contain_text(found.summary())
    assert page.locator(".answers > .note").count() == len(found.answers)
    for line in {s.line for s in found.statements}:
        assert verdicts_on(page, line) == expected_on(found, line), line
    assert one.bodies == [("/api/grade", {"text": example_sheet(), "file": EXAMPLE_FILE, "problem": None})]


def test_a_typed_sheet_is_graded_by_button_or_keyboard_and_shows_when_it_is_old(watched):
    one = watched()
    page = one.open("sheets")
    graded(page)
    text = page.locator("#sheet-text")
    text.fill(SHEET)
    expect(page.get_by_text("This is for the text before your last changes.")).to_be_visible()
    text.press("ControlOrMeta+Enter")
    found = grade(SHEET)
    expect(page.locator("#line-5 mark.refuted")).to_have_text("k_a^\\top q = 3", timeout=90_000)
    graded(page)
    assert verdicts_on(page, 5) == expected_on(found, 5)
    expect(page.get_by_text("This is for the text before your last changes.")).to_have_count(0)
    expect(page.locator("#line-5 .note .katex-html").first).to_be_visible()
    text.fill(SHEET.replace("= 3", "= 4"))
    page.get_by_role("button", name="Give feedback").click()
    expect(page.locator("#line-5 mark.refuted")).to_have_text("k_a^\\top q = 4", timeout=90_000)


@pytest.mark.slow
def test_a_dropped_file_is_graded_at_once_and_nothing_leaves_the_machine(watched):
    one = watched()  # its fixture checks that no request goes elsewhere
    page = one.open("sheets")
    graded(page)
    page.evaluate(DROP, [SHEET, "mine.md"])
    expect(page.locator(".annotated h2")).to_have_text("mine.md", timeout=90_000)
    expect(page.locator("#sheet-text")).to_have_value(SHEET)
    graded(page)
    assert one.bodies[-1] == ("/api/grade", {"text": SHEET, "file": "mine.md", "problem": None})
    page.get_by_role("button", name="Show the example").click()
    expect(page.locator(".annotated h2")).to_have_text(EXAMPLE_FILE, timeout=90_000)


@pytest.mark.slow
def test_a_pasted_sheet_is_graded_at_once(watched):
    one = watched()
    page = one.open("sheets")
    graded(page)
    long = SHEET + "\n" + "Some more words about heads. " * 10
    page.evaluate("(text) => navigator.clipboard.writeText(text)", long)
    page.locator("#sheet-text").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.press("ControlOrMeta+v")
    expect(page.locator("#line-5 mark.refuted")).to_be_visible(timeout=90_000)
    assert one.last("/api/grade")["text"] == long


def test_a_file_can_be_opened_and_what_is_no_text_is_refused(watched):
    page = watched().open("sheets")
    graded(page)
    page.locator("input[type=file]").set_input_files(
        {"name": "my.md", "mimeType": "text/markdown", "buffer": SHEET.encode()}
    )
    expect(page.locator(".annotated h2")).to_have_text("my.md", timeout=90_000)
    page.locator("input[type=file]").set_input_files(
        {"name": "scan.pdf", "mimeType": "application/pdf", "buffer": b"%PDF\x00"}
    )
    expect(page.get_by_role("alert")).to_contain_text("scan.pdf is not text")
    expect(page.locator("#sheet-text")).to_have_value(SHEET)
    page.evaluate(DROP, ["x" * 200_001, "long.txt"])
    expect(page.get_by_role("alert")).to_contain_text("200,001 characters")


@pytest.mark.slow
def test_readings_open_on_a_click_and_lines_are_found_from_the_answers(watched):
    page = watched().open("sheets")
    graded(page)
    page.locator("#line-18 summary", has_text="read").first.click()
    page.locator("#line-18 .note summary", has_text="How it was read").first.click()
    expect(page.locator("#line-18 .note pre").first).to_contain_text("then")
    page.get_by_role("button", name=re.compile("^Look at line")).click()
    expect(page.locator("#line-17")).to_be_focused()
    expect(page.locator("#line-17")).to_be_in_viewport()


@pytest.mark.slow
def test_a_problem_can_be_named(watched):
    one = watched()
    page = one.open("sheets")
    graded(page)
    page.locator("[data-name=problem] option >> nth=1").wait_for(state="attached")
    page.locator("[data-name=problem]").select_option("attention-2021")
    expect(page.locator(".overview")).to_contain_text("attention-2021", timeout=90_000)
    assert one.last("/api/grade")["problem"] == "attention-2021"
    expect(page).to_have_url(re.compile("problem=attention-2021"))


def test_the_feedback_can_be_saved_as_a_page_and_as_json(watched):
    page = watched().open("sheets")
    graded(page)
    with page.expect_download() as found:
        page.get_by_role("button", name="Save as a page").click()
    text = found.value.path().read_text("utf-8")
    assert found.value.suggested_filename == "feedback.html" and "✗ misses" in text and "<script" not in text
    with page.expect_download() as found:
        page.get_by_role("button", name="as JSON").click()
    data = json.loads(found.value.path().read_text("utf-8"))
    assert data["statements"] and data["file"] == EXAMPLE_FILE


@pytest.mark.slow
def test_everything_can_be_reached_by_keyboard(watched):
    page = watched().open("sheets")
    graded(page)
    page.locator("#sheet-text").focus()
    page.keyboard.press("Escape")
    met = []
    page.locator("#sheet-text").focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        met.append(page.evaluate("document.activeElement.textContent.trim().slice(0, 40)"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", met[-1]
    assert "Give feedback" in met and "Open a file" in met and any(m.startswith("Look at line") for m in met)


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_the_answers_come_first_and_nothing_widens_the_page(watched, width):
    page = watched(viewport={"width": width, "height": 844}).open("sheets")
    graded(page)
    page.locator("details").evaluate_all("all => all.forEach((d) => { d.open = true })")
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    overview, sheet = page.locator(".overview").bounding_box(), page.locator(".annotated").bounding_box()
    assert overview["y"] + overview["height"] <= sheet["y"] if width == 390 else overview["x"] < sheet["x"]


@pytest.mark.slow
def test_home_leads_to_sheets(watched):
    page = watched().open("home")
    page.get_by_role("link", name=re.compile("whole answer sheet")).click()
    expect(page.locator("h1")).to_have_text("Sheets")
