"""Every page: themes, small screens, keyboard, links, screen readers."""

import re

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

READY = {
    "lookup": ".chart svg",
    "noise": ".layout .chart svg",
    "wiring": ".derivation .katex-html",
    "claims": ".verdict",
    "knowledge": ".training",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_shown_in_both_themes(watched, scheme):
    one = watched(color_scheme=scheme)
    for name, ready in READY.items():
        page = one.open(name)
        page.wait_for_selector(ready)
        red, green, blue = (
            int(c) for c in page.evaluate("getComputedStyle(document.body).backgroundColor").strip("rgb()").split(",")
        )
        assert (red + green + blue < 150) == (scheme == "dark")
        assert page.locator(f"nav [aria-current=page][href='#/{name}']").count() == 1


def test_no_page_scrolls_sideways_on_a_phone(watched):
    one = watched(viewport={"width": 375, "height": 812}, has_touch=True, is_mobile=True)
    for name, ready in READY.items():
        page = one.open(name)
        page.wait_for_selector(ready)
        one.settled()
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, name


@pytest.mark.parametrize(
    ("fragment", "change", "seen"),
    [
        ("lookup", ("[data-name=scale] input.box", "2.5"), "[data-fact=leak]"),
        ("noise", ("[data-name=n] input.box", "17"), "[data-fact='two heads variance']"),
        ("wiring", ("[data-name=beta] input.box", "1.7"), ".views h2 >> nth=0"),
        ("claims", ("textarea", "```claim x\ngiven k_1..k_n orthonormal, n >= 3\nthen k_a'k_b = 0\n```"), ".count"),
    ],
)
def test_the_address_restores_the_state(watched, fragment, change, seen):
    one = watched()
    page = one.open(fragment)
    place, text = change
    page.locator(place).fill(text)
    one.settled()
    expect(page).to_have_url(re.compile(r"\?"))  # the address follows 150 ms later
    before = page.locator(seen).inner_text()
    link = page.evaluate("location.href")
    fresh = watched()
    fresh.page.goto(link)
    expect(fresh.page.locator(seen)).to_have_text(before, timeout=30_000)
    assert fresh.page.locator(place).input_value() == text


def test_an_invalid_address_gives_the_default_page(watched):
    one = watched()
    page = one.open("lookup?scale=NaN&query=[1]&n=9e99&wanted=[]&moved=7&layout=sideways")
    expect(page.locator("[data-fact=leak]")).to_be_visible()
    assert page.locator(".problem").count() == 0
    page = one.open("nowhere")
    expect(page.locator("h1")).to_have_text("Lookup")


def test_every_control_is_reachable_by_keyboard_with_a_visible_focus(watched):
    one = watched()
    page = one.open("lookup")
    page.wait_for_selector(".chart svg")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to content")
    met = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        name, ring = page.evaluate(
            """() => { const f = document.activeElement, s = getComputedStyle(f), inner = f.querySelector?.(".reach");
                 const ring = s.outlineStyle !== "none" || (inner && getComputedStyle(inner).stroke !== "none");
                 const name = f.getAttribute("aria-label") || f.textContent.trim() || f.type || f.tagName;
                 return [f === document.body ? "BODY" : name, ring]; }"""
        )
        if name == "BODY":
            break
        assert ring, f"no visible focus on {name}"
        met.add(name)
    assert {"Noise", "query", "Copy as Python", "Blend these", "range"} <= met
    page.locator("nav a", has_text="Noise").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Noise")


def test_results_are_announced(watched):
    page = watched().open("lookup")
    expect(page.locator("[aria-live=polite]")).to_contain_text("Weight of a")


def test_the_first_page_transfers_few_bytes(watched):
    one = watched()
    sizes = []
    one.page.on("response", lambda r: sizes.append(r.request.sizes()))
    one.open("lookup").wait_for_selector(".chart svg")
    total = sum(s["responseBodySize"] + s["responseHeadersSize"] for s in sizes)
    assert 50_000 < total < 600_000
