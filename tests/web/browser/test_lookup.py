"""Lookup page: what is on screen is what the library computes."""

import contextlib
import io
import re

import pytest
from harness import downloaded

from qkv import Memory
from qkv.core.display import number
from qkv.design import leak

expect = pytest.importorskip("playwright.sync_api").expect


def reading_of(body):
    return Memory(body["keys"], body["values"], body["labels"]).read(body["query"], scale=body["scale"])


def run(code):
    """The names that the copied Python code defines."""
    names = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "copied", "exec"), names)
    return names


def test_a_slider_shows_the_numbers_of_the_library(watched):
    one = watched()
    page = one.open("lookup")
    slider = page.locator("[data-name=scale] input[type=range]")
    slider.focus()
    for _ in range(12):
        page.keyboard.press("ArrowLeft")
    body = one.last("/api/lookup")
    assert body["scale"] < 4
    reading = reading_of(body)
    for label, weight in zip(body["labels"][:3], reading.weights.tolist(), strict=False):
        shown = f"{weight:.3f}" if weight >= 0.0005 else number(weight, 2)
        expect(page.locator(f"[data-weight={label}]")).to_have_text(shown)
    found = leak(
        Memory(body["keys"], body["values"], body["labels"]), body["query"], body["wanted"], scales=[body["scale"]]
    )
    expect(page.locator("[data-fact=leak]")).to_have_text(number(float(found.leaks[0])))
    certified = leak(Memory(body["keys"], body["values"], body["labels"]), body["query"], body["wanted"]).scale
    expect(page.locator("h2", has_text=f"From scale {number(certified)} on")).to_be_visible()


def test_the_query_can_be_dragged_typed_and_moved_by_keys(watched):
    one = watched()
    page = one.open("lookup")
    handle = page.locator(".keyspace .handle rect")
    box, target = (
        handle.bounding_box(),
        page.locator(".keyspace .key >> nth=3").locator("circle >> nth=-1").bounding_box(),
    )
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(target["x"] + 30, target["y"] - 20, steps=6)
    page.mouse.up()
    dragged = one.last("/api/lookup")
    assert dragged["query"][0] < 0 and dragged["query"][1] < 0
    expect(page.locator("h2", has_text="Most of the weight is on d")).to_be_visible()
    page.locator(".keyspace .handle").focus()
    page.keyboard.press("Shift+ArrowRight")
    assert one.last("/api/lookup")["query"][0] == pytest.approx(dragged["query"][0] + 0.5)
    page.locator("[data-name=q1]").fill("1/4")
    assert one.last("/api/lookup")["query"][0] == 0.25
    page.locator("[data-name=q1]").fill("import os")
    expect(page.locator("[data-name=q1]")).to_have_attribute("aria-invalid", "true")
    assert one.last("/api/lookup")["query"][0] == 0.25


def test_blend_these_gives_the_designed_query_and_its_certified_scale(watched):
    one = watched()
    page = one.open("lookup")
    page.get_by_role("button", name="Blend these").click()
    expect(page.locator(".found.yes")).to_contain_text("✓ Certified")
    reading = reading_of(one.last("/api/lookup"))
    assert reading.weights[:2].tolist() == pytest.approx([0.5, 0.5], abs=2e-3)
    title = page.locator("h2", has_text="certified to be at most 0.001").inner_text()
    scale = float(page.locator("[data-name=scale] input.box").input_value())
    assert float(re.search(r"scale ([\d.]+)", title)[1]) == pytest.approx(scale, rel=1e-3)


def test_titles_name_the_items_with_most_of_the_weight(watched):
    one = watched()
    page = one.open("lookup?scale=0")
    expect(page.locator("h2", has_text="The weight is spread over all 6 items")).to_be_visible()
    page = one.open('lookup?wanted={"a":1,"b":1}')
    page.get_by_role("button", name="Blend these").click()
    expect(page.locator(".found.yes")).to_be_visible()
    expect(page.locator("h2", has_text="The weight is on a and b")).to_be_visible()


def test_a_key_inside_the_hull_is_drawn_with_its_proof(watched):
    page = watched().open('lookup?layout=inside&wanted={"a":1}')
    assert page.locator(".proof polygon").count() == 0
    page.get_by_role("button", name="Copy this").click()
    expect(page.locator(".found.no")).to_contain_text("✗ Impossible")
    expect(page.locator(".proof polygon")).to_be_visible()
    parts = [float(t) for t in page.locator(".proof text").all_text_contents()]
    assert len(parts) == 3 and sum(parts) == pytest.approx(1, abs=2e-3)


def test_what_is_copied_as_python_runs_and_gives_the_number(watched):
    one = watched()
    page = one.open("lookup?scale=2.5")
    one.settled()
    page.get_by_role("button", name="Copy as Python").click()
    expect(page.locator(".said")).to_have_text("Python copied")
    reading = run(page.evaluate("navigator.clipboard.readText()"))["reading"]
    expect(page.locator("[data-weight=a]")).to_have_text(f"{float(reading.weights[0]):.3f}")


@pytest.mark.parametrize("kind", ["SVG", "PNG", "JSON"])
def test_pictures_and_numbers_can_be_downloaded(watched, kind):
    one = watched()
    page = one.open("lookup")
    page.wait_for_selector(".chart svg")
    content = downloaded(page, "lookup", kind)
    assert len(content) > 2000
