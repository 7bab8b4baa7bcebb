"""Claims page: a verdict beside each claim while it is edited."""

import re

import pytest
from marks import some

from qkv import check
from qkv.claims.catalogue import documents
from qkv.web.claim_examples import EXAMPLES

expect = pytest.importorskip("playwright.sync_api").expect

HEAD = "```claim mine\ngiven k_1..k_n orthonormal, n >= 3, t > 0\nlet q = t*k_a\n"


def test_a_typed_claim_gets_the_verdict_of_the_library(watched):
    one = watched()
    page = one.open("claims")
    text = page.get_by_label("Claims", exact=True)
    text.fill(HEAD + "then c -> v_a as t -> oo\nthen alpha_a = 1/2\nthen alpha_a > 1/2\n```\n")
    expected = check(text.input_value())
    shown = page.locator(".verdict .word")
    expect(shown).to_have_count(3, timeout=30_000)
    assert (
        [w.split()[1] for w in shown.all_inner_texts()]
        == [v.verdict for v in expected]
        == ["proved", "refuted", "conditional"]
    )
    expect(page.get_by_role("button", name="Line 4: proved. Show why")).to_be_visible()
    text.press("ControlOrMeta+End")
    text.fill(HEAD + "then c -> v_b as t -> oo\n```\n")
    expect(page.locator(".count")).to_have_text("1 refuted")


@pytest.mark.slow
def test_reasons_and_formulas_are_shown_without_a_click(watched):
    page = watched().open("claims")
    expect(page.locator(".verdict.conditional .because")).to_contain_text("True exactly when", timeout=60_000)
    for verdict in page.locator(".verdict").all():
        expect(verdict.locator(".because")).to_be_visible()
        expect(verdict.locator(".says .katex-html").first).to_be_visible()
    expect(page.locator(".verdict.conditional .because .katex-html")).to_be_visible()
    assert "\\log" in page.locator(".verdict.conditional .because annotation").text_content()
    expect(page.locator(".verdict.proved .because").first).to_contain_text("numerical instances agree")


def test_derivations_and_counterexamples_open_on_click(watched):
    page = watched().open("claims")
    page.get_by_role("button", name="Line 4: proved. Show why").click(timeout=60_000)
    expect(page.locator(".verdict.proved .derivation .katex-html").first).to_be_visible()
    page.locator(".verdict.refuted summary").click()
    expect(page.locator(".verdict.refuted pre")).to_contain_text("t = ")
    expect(page).to_have_url(re.compile("open=average"))


@pytest.mark.parametrize("name", some(["copy", "subspaces"], ["copy"]))
def test_examples_are_offered_by_topic(watched, name):
    page = watched().open("claims")
    example = next(e for e in EXAMPLES if e.name == name)
    page.get_by_role("group", name="Examples by topic").get_by_role("button", name=example.topic).click()
    expect(page.get_by_label("Claims", exact=True)).to_have_value(example.text)
    expect(page.locator(f"[data-example={name}]")).to_have_attribute("aria-pressed", "true")
    expected = check(example.text)
    expect(page.locator(".count")).to_have_text(
        ", ".join(f"{many} {kind}" for kind, many in expected.counts().items()), timeout=60_000
    )
    assert [w.split()[1] for w in page.locator(".verdict .word").all_inner_texts()] == [v.verdict for v in expected]
    assert "write-up" not in page.locator("main").inner_text()


@pytest.mark.slow
def test_the_syntax_is_explained_beside_the_editor(watched):
    page = watched().open("claims")
    syntax = page.get_by_role("region", name="How to write a claim")
    expect(syntax).to_be_visible()
    for word in ("given", "let", "then"):
        expect(syntax.locator("dt code", has_text=re.compile(f"^{word}$"))).to_be_visible()
    editor, box = page.locator(".editor").bounding_box(), syntax.bounding_box()
    assert box["y"] < editor["y"] + editor["height"] + 100 and box["y"] < 900


@pytest.mark.slow
def test_on_a_phone_the_verdicts_come_before_the_syntax(watched):
    page = watched(viewport={"width": 390, "height": 844}).open("claims")
    expect(page.locator(".verdict .word")).to_have_count(4, timeout=60_000)
    assert page.locator(".verdict").first.bounding_box()["y"] < page.locator(".syntax").bounding_box()["y"]


@pytest.mark.slow
def test_an_answer_sheet_can_be_started_from(watched):
    page = watched().open("claims")
    text = dict(documents())["supplement"]
    page.locator("[data-name=catalogue] option >> nth=1").wait_for(state="attached")
    page.locator("[data-name=catalogue]").select_option("supplement")
    expect(page.get_by_label("Claims", exact=True)).to_have_value(text)
    expected = check(text)
    expect(page.locator(".verdict .word")).to_have_count(len(expected), timeout=150_000)
    expect(page.locator(".count")).to_have_text("4 proved", timeout=150_000)
    assert page.locator(".verdict .says").evaluate_all("all => all.map((e) => e.dataset.says)") == [
        v.says for v in expected
    ]


def test_a_malformed_claim_says_where(watched):
    page = watched().open("claims")
    page.get_by_label("Claims", exact=True).fill(HEAD + "then alpha_a >\n```\n")
    expect(page.locator(".verdict.malformed")).to_contain_text("line 4", timeout=60_000)


def test_starting_from_a_document_asks_before_it_replaces_typed_text(watched):
    page = watched().open("claims")
    text, choice = page.get_by_label("Claims", exact=True), page.locator("[data-name=catalogue]")
    page.locator("[data-name=catalogue] option >> nth=1").wait_for(state="attached")
    shipped = dict(documents())
    mine = HEAD + "then alpha_a > 0\n```\n"
    text.fill(mine)
    choice.select_option("supplement")
    expect(page.get_by_role("alertdialog")).to_contain_text("would replace the text that you have typed")
    expect(text).to_have_value(mine)
    page.get_by_role("button", name="Keep my text").click()
    expect(page.get_by_role("alertdialog")).to_have_count(0)
    expect(text).to_have_value(mine)
    choice.select_option("supplement")
    page.get_by_role("button", name="Replace it").click()
    expect(text).to_have_value(shipped["supplement"])
    page.locator("[data-example=average]").click()  # nothing was typed since
    expect(page.get_by_role("alertdialog")).to_have_count(0)
    expect(text).not_to_have_value(shipped["supplement"])
