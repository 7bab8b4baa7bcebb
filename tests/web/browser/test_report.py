"""The report in a browser: on a phone its tables scroll, and the page does not."""

import pytest

from qkv.claims import check
from qkv.core.display import Card, Displayable
from qkv.viz.html_report import Chapter, claims_page, page

pytest.importorskip("playwright.sync_api")

CLAIM = "```claim long\ngiven k_1..k_n orthonormal, n >= 3, t > 0\nlet q = t*(k_a + k_b)\n"
CLAIM += "then alpha_a = exp(t)/(2*exp(t) + n - 2)\n```"


class Wide(Displayable):
    """A result with a table of many columns."""

    def card(self):
        return Card(
            "Wide", columns=tuple(f"column {i}" for i in range(12)), rows=(tuple("0.123456" for _ in range(12)),)
        )


@pytest.mark.parametrize("scheme", ["light", "dark"])
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
        assert shown.locator("table").count() == 1
        box = shown.locator("table").bounding_box()
        assert box["x"] + box["width"] <= width
    context.close()
