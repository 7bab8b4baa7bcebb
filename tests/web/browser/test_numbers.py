"""No line break divides a number, however narrow the page: in the explorer, in the documents and in reports."""

import dataclasses
import sys
from pathlib import Path

import pytest
from marks import some, spread

pytest.importorskip("playwright.sync_api")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sheets"))
from sample_grades import sample_grade

from qkv.core.display import Card, Displayable
from qkv.viz.html_report import Chapter, page
from qkv.viz.sheets_report import sheet_page

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}

# Every number of a page that has a place at which a browser breaks lines ("e-05", " %", "< x", "1 − x"), with whether
# it lies on one line when the block around it is as narrow as it can be. The width is restored before the next drawing.
NUMBERS = r"""() => {
  const out = [], range = document.createRange();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  document.querySelectorAll("details").forEach((d) => { d.open = true; });
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest("script, style, svg, math, .katex, textarea, option, pre, .unseen")) continue;
    for (const found of node.data.matchAll(/(?:[<≤≥±] )?(?:1 − )?\d[\d.]*(?:e[-+]\d+)?(?: %| s\b)?/g)) {
      if (!/e-| /.test(found[0])) continue;
      let block = node.parentElement;
      while (getComputedStyle(block).display.startsWith("inline")) block = block.parentElement;
      const before = block.style.cssText;
      block.style.width = block.style.maxWidth = "1px";
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      const tops = [...range.getClientRects()].filter((box) => box.width).map((box) => box.top);
      block.style.cssText = before;
      if (tops.length) out.push([found[0], Math.max(...tops) - Math.min(...tops) < 4]);
    }
  }
  return out;
}"""


def divided(shown, least):
    """Numbers that are divided, after a check that there are some to look at."""
    numbers = shown.evaluate(NUMBERS)
    assert len(numbers) >= least, numbers
    return [number for number, whole in numbers if not whole]


@pytest.mark.parametrize(
    ("fragment", "press", "ready", "least"),
    spread([
        ("lookup?scale=18", None, ".chart svg", 6),
        ('lookup?layout=inside&n=7&wanted={"a":1}', "Copy this", ".found.no", 0),
        ("noise", None, ".layout .chart svg", 5),
        ("wiring?beta=30", None, ".views h2", 0),
        ("heads", None, ".bits tbody tr", 6),
        ("knowledge?q=Where was Person 3 born?", None, "[data-fact=answer]", 0),
    ], 5),
)  # fmt: skip
def test_no_number_of_the_explorer_is_divided(watched, fragment, press, ready, least):
    one = watched(**PHONE)
    shown = one.open(fragment)
    if press:
        shown.get_by_role("button", name=press).click()
    shown.wait_for_selector(ready, timeout=60_000)
    one.settled()
    assert divided(shown, least) == []


def test_a_number_in_a_sentence_of_the_server_is_not_divided(watched):
    shown = watched(**PHONE).open("lookup")
    shown.evaluate(
        """async () => { const { html, render } = await import("/static/lib/html.js");
             const { Problem } = await import("/static/lib/controls.js");
             const place = document.body.appendChild(document.createElement("div"));
             place.id = "said";
             const message = "It is ≤ 1.5e-07, or 3 % of 1 − 2e-05, after 5 s.";
             render(html`<${Problem} error=${{ message }} />`, place); }"""
    )
    assert shown.locator("#said").inner_text() == "It is ≤ 1.5e-07, or 3 % of 1 − 2e-05, after 5 s."
    assert divided(shown, 4) == []


@pytest.mark.parametrize("name", some(["knowledge", "benchmarks", "readme"], ["readme"]))
def test_no_number_of_the_documents_is_divided(watched, name):
    one = watched(**PHONE)
    one.page.goto(f"{one.address}/docs/{name}")
    assert divided(one.page, 1) == []


class Small(Displayable):
    """A result with small numbers wherever a card has text."""

    def card(self):
        return Card(
            "Below 1.5e-07",
            (("error ≤ 1e-06", "at most 2.5e-05, 3 %, < 0.01"),),
            ("p 1e-3",),
            (("4.5e-11",),),
            "And `6e-12`.",
        )


def test_no_number_of_a_report_is_divided(chromium):
    context = chromium.new_context(**PHONE)
    shown = context.new_page()
    shown.set_content(page("Up to 1e-3", "It is at most 2e-04.", [Chapter("Within 7e-05", ("So 8e-06.", Small()))]))
    assert divided(shown, 13) == []
    shown.set_content(page("A sheet", "Lead.", []).replace("<main>", f"<main>{Small()._repr_html_()}"))
    assert divided(shown, 7) == []
    shown.set_content(sheet_page(dataclasses.replace(sample_grade(), remarks=("Weights below 1e-09 are 0.",))))
    assert divided(shown, 1) == []
    context.close()
