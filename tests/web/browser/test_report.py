"""The report in a browser: on a phone only its tables scroll; it prints on few pages; axe finds nothing."""

import re

import pytest
from harness import violations
from marks import some

from qkv.claims import Verdicts, check
from qkv.core.display import Card, Displayable
from qkv.viz.html_report import Chapter, Picture, claims_page, page

pytest.importorskip("playwright.sync_api")

CLAIM = "```claim long\ngiven k_1..k_n orthonormal, n >= 3, t > 0\nlet q = t*(k_a + k_b)\n"
CLAIM += "then alpha_a = exp(t)/(2*exp(t) + n - 2)\n```"


class Wide(Displayable):
    """A result with a table of many columns."""

    def card(self):
        return Card(
            "Wide", columns=tuple(f"column {i}" for i in range(12)), rows=(tuple("0.123456" for _ in range(12)),)
        )


@pytest.mark.parametrize("scheme", some(["light", "dark"], ["light"]))
@pytest.mark.parametrize("width", [390, 1280])
def test_no_table_widens_the_report(chromium, width, scheme):
    context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    shown = context.new_page()
    for text in (
        page("A report", "It has a table.", [Chapter("One", (Wide(),))]),
        claims_page([("Mine", check(CLAIM))]),
    ):
        shown.set_content(text)
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        shown.locator("details").evaluate_all("all => all.forEach((d) => { d.open = true })")
        assert shown.locator("table").count() == 1
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        box = shown.locator("table").bounding_box()
        assert box["x"] + box["width"] <= width
    context.close()


def long_report():
    """Forty statements, with figures, as the chapter of the tour on claims has them."""
    verdicts = check(CLAIM.replace("then ", "then alpha_a < 1/2\nthen alpha_a > 0.4\nthen ", 1))
    many = Verdicts(tuple(verdicts) * 14)
    drawn = Picture('<svg viewBox="0 0 700 300" role="img" aria-label="empty"></svg>', "A picture.", "qkv tour")
    return page("A report", "It is long.", [Chapter(f"Part {i}", (many, *verdicts, drawn)) for i in range(6)])


def printed_pages(shown):
    return len(re.findall(rb"/Type\s*/Page\b", shown.pdf(prefer_css_page_size=True)))


@pytest.mark.slow
def test_a_long_report_prints_on_few_pages_and_splits_no_card(chromium):
    shown = chromium.new_page()
    shown.set_content(long_report())
    pages = printed_pages(shown)
    assert 3 <= pages <= 9
    shown.emulate_media(media="print")
    for place in (".qkv-card", "figure"):
        inside = shown.locator(place).evaluate_all("all => all.map((e) => getComputedStyle(e).breakInside)")
        assert set(inside) == {"avoid"}
    assert shown.locator("h2").first.evaluate("e => getComputedStyle(e).breakBefore") == "auto"
    assert not shown.locator("details[open]").count() and "\\frac" not in shown.locator("body").inner_text()
    shown.locator("details").evaluate_all("all => all.forEach((d) => { d.open = true })")
    assert printed_pages(shown) > 2 * pages
    shown.close()


def test_a_dark_report_prints_light(chromium):
    context = chromium.new_context(color_scheme="dark")
    shown = context.new_page()
    shown.set_content(long_report())
    assert "rgb(23, 23, 26)" in shown.evaluate("getComputedStyle(document.body).backgroundColor")
    shown.emulate_media(media="print", color_scheme="dark")
    assert "rgb(255, 255, 255)" in shown.evaluate("getComputedStyle(document.body).backgroundColor")
    context.close()


@pytest.mark.parametrize(
    ("scheme", "colours"),
    [
        pytest.param("light", False, marks=pytest.mark.slow),
        pytest.param("light", True, marks=pytest.mark.slow),
        pytest.param("dark", True, marks=pytest.mark.slow),
    ],
)
def test_the_report_has_no_axe_violations(chromium, scheme, colours):
    context = chromium.new_context(color_scheme=scheme)
    shown = context.new_page()
    shown.set_content(long_report())
    shown.locator("details").evaluate_all("all => all.forEach((d) => { d.open = true })")
    assert violations(shown, colours) == []
    context.close()
