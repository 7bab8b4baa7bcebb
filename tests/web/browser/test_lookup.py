"""Lookup page: what is on screen is what the library computes."""

import contextlib
import io
import re

import numpy as np
import pytest
from harness import downloaded
from marks import some, spread

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


def test_a_certificate_is_shown_only_for_the_query_that_it_is_about(watched):
    one = watched()
    page = one.open("lookup")
    certified = page.locator(".found", has_text="Certified")
    page.get_by_role("button", name="Blend these").click()
    expect(certified).to_be_visible()
    page.locator("[data-name=scale] input.box").fill("0.5")
    expect(certified).to_have_count(0)
    expect(page.locator("[data-weight=a]")).to_have_text("0.287")
    page.wait_for_timeout(300)
    page.reload()
    expect(page.locator(".found")).to_contain_text("The query shown is another one.")
    expect(certified).to_have_count(0)
    page.get_by_role("button", name="Show the designed query").click()
    expect(certified).to_be_visible()
    for change in ("q1", "q2"):
        page.locator(f"[data-name={change}]").fill("0.3")
        expect(certified).to_have_count(0)
        page.get_by_role("button", name="Show the designed query").click()
        expect(certified).to_be_visible()
    page.get_by_label("Part of a, as a number").fill("3")
    expect(page.locator(".found")).to_have_count(0)
    page.get_by_role("button", name="Blend these").click()
    expect(certified).to_be_visible()
    page.locator(".keyspace .key >> nth=2").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".found")).to_have_count(0)
    page = one.open('lookup?verb=copy&wanted={"a":1,"b":1}')  # a link that contradicts itself designs what is wanted
    expect(page.locator(".found")).to_contain_text("The query shown is another one.")
    assert set(one.last("/api/design/blend")["weights"]) == {"a", "b"}


@pytest.mark.parametrize("n", some([3, 4], [3]))
def test_an_equal_blend_of_all_items_is_applied(watched, n):
    one = watched()
    wanted = ",".join(f'"{label}":1' for label in "abcd"[:n])
    page = one.open(f"lookup?n={n}&wanted={{{wanted}}}")
    page.get_by_role("button", name="Blend these").click()
    expect(page.locator(".found.yes")).to_contain_text("at most")
    assert one.last("/api/lookup")["query"] == [0, 0]
    expect(page.locator("[data-weight=a]")).to_have_text(f"{1 / n:.3f}")
    expect(page.locator("h2", has_text="All weights are equal")).to_be_visible()
    expect(page.locator("h2", has_text="Nothing can leak: every item is wanted")).to_be_visible()


@pytest.mark.slow
def test_a_designed_query_beyond_the_slider_is_applied(watched):
    one = watched()
    page = one.open('lookup?n=3&moved={"a":[1,0],"b":[0.99,0.005],"c":[0.99,-0.005]}&wanted={"a":1}')
    page.get_by_role("button", name="Copy this").click()
    expect(page.locator(".found.yes")).to_be_visible()
    body = one.last("/api/lookup")
    assert body["scale"] == 200 and float(reading_of(body).weights[0]) >= 1 - 1.001e-3


@pytest.mark.parametrize(
    ("state", "title"),
    spread([
        ('scale=60&wanted={"a":1,"d":1}', "The leak tends to 0 as the scale grows"),
        ('query=[0,0]&wanted={"a":1}', "The leak never goes away: as the scale grows it tends to 0.833"),
        ('query=[-1,0]&wanted={"a":1}', "The leak never goes away: as the scale grows it tends to 1"),
        ('scale=150&wanted={"a":1,"b":1}', "From scale 4.685 on the leak is certified to be at most 0.001"),
    ], 4, 2),
)  # fmt: skip
def test_the_title_of_the_leak_follows_from_its_limit(watched, state, title):
    one = watched()
    page = one.open(f"lookup?{state}")
    expect(page.locator("h2", has_text="leak")).to_have_text(title)
    body = one.last("/api/lookup")
    if title.startswith("The leak never"):
        memory = Memory(body["keys"], body["values"], body["labels"])
        assert float(leak(memory, body["query"], body["wanted"], scales=[1e5]).leaks[0]) > 0.1


@pytest.mark.slow
def test_the_curve_of_the_leak_reaches_the_current_scale(watched):
    one = watched()
    page = one.open("lookup?scale=150")
    one.settled()
    page.wait_for_selector(".chart [data-mark=line] path")
    ticks = page.locator(".chart [data-mark='x-axis tick label'] text").all_text_contents()
    assert max(map(float, ticks)) >= 150
    # Beyond the smallest leak that is drawn, the curve lies on the floor of the chart; it does not slope down to "now".
    path = page.locator(".chart [data-mark=line] path").get_attribute("d")
    points = [tuple(map(float, p.split(","))) for p in re.findall(r"-?[\d.]+,-?[\d.]+", path)]
    floor = max(y for _, y in points)
    reached = next(i for i, (_, y) in enumerate(points) if y == floor)
    assert reached < len(points) / 4 and all(y == floor for _, y in points[reached:])


def test_bounds_are_rounded_up(watched):
    page = watched().open("lookup")
    found = page.evaluate(
        """async () => { const { atMost } = await import("/static/lib/numbers.js");
             return [5.2417178, 0.0009999, 0.00099994, 1.00001, 12345.6, 1e-20 * 1.23456, 0.5, 0, 999.96, 0.1 + 0.2]
               .map((x) => [x, atMost(x)]); }"""
    )
    assert all(float(text) >= x and float(text) <= x * (1 + 1.1e-3) for x, text in found)
    assert dict(map(tuple, found))[5.2417178] == "5.242" and dict(map(tuple, found))[1.00001] == "1.001"


@pytest.mark.slow
def test_a_vertical_touch_moves_the_query_and_elsewhere_it_scrolls(watched):
    one = watched(viewport={"width": 390, "height": 700}, has_touch=True, is_mobile=True)
    page = one.open("lookup")
    one.settled()
    page.locator(".keyspace svg").scroll_into_view_if_needed()
    page.locator(".keyspace svg").evaluate("(svg) => svg.scrollIntoView({ block: 'center' })")
    session = page.context.new_cdp_session(page)

    def swipe(x, y, by):
        touch = lambda kind, dy: session.send(  # noqa: E731
            "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [] if dy is None else [{"x": x, "y": y + dy}]}
        )
        touch("touchStart", 0)
        for i in range(1, 9):
            touch("touchMove", by * i / 8)
            page.wait_for_timeout(30)
        touch("touchEnd", None)
        page.wait_for_timeout(300)

    box = page.locator(".keyspace .handle rect").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before, top = one.last("/api/lookup")["query"], page.evaluate("scrollY")
    swipe(x, y, 90)
    after = one.last("/api/lookup")["query"]
    assert page.evaluate("scrollY") == top and after[1] < before[1] - 0.5 and abs(after[0] - before[0]) < 0.1
    box = page.locator(".keyspace svg").bounding_box()
    swipe(box["x"] + 12, box["y"] + box["height"] / 2 + 40, -120)
    assert page.evaluate("scrollY") > top + 40


@pytest.mark.slow
def test_titles_name_the_items_with_most_of_the_weight(watched):
    one = watched()
    page = one.open("lookup?scale=0")
    expect(page.locator("h2", has_text="The weight is spread over all 6 items")).to_be_visible()
    page = one.open('lookup?wanted={"a":1,"b":1}')
    page.get_by_role("button", name="Blend these").click()
    expect(page.locator(".found.yes")).to_be_visible()
    expect(page.locator("h2", has_text="The weight is on a and b")).to_be_visible()


@pytest.mark.slow
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


@pytest.mark.parametrize("kind", some(["SVG", "PNG", "JSON"], ["SVG", "JSON"]))
def test_pictures_and_numbers_can_be_downloaded(watched, kind):
    one = watched()
    page = one.open("lookup")
    page.wait_for_selector(".chart svg")
    content = downloaded(page, "lookup", kind)
    assert len(content) > 2000


def table(page):
    """The rows of the path: label, k·q, score, e^(score − max) and weight, as text."""
    rows = page.locator(".path tbody tr:not(.rest)")
    return [rows.nth(i).locator("th, td").all_inner_texts() for i in range(rows.count())]


@pytest.mark.slow
def test_the_path_leads_from_the_dot_product_to_the_weight(watched):
    """Every number of every row is the one that numpy computes from what was sent."""
    one = watched()
    page = one.open("lookup?scale=2.5&query=[0.4,-1.1]")
    body = one.last("/api/lookup")
    dots = np.array(body["keys"]) @ np.array(body["query"])
    scores = 2.5 * dots
    powers = np.exp(scores - scores.max())
    rows = table(page)
    assert [row[0].strip() for row in rows] == body["labels"]
    for row, dot, score, power in zip(rows, dots, scores, powers, strict=True):
        assert row[1:3] == [number(dot, 3), number(score, 3)]
        assert float(row[3]) == pytest.approx(power, rel=0.06, abs=5.1e-4)
        assert float(row[5]) == pytest.approx(power / powers.sum(), rel=0.06, abs=5.1e-4)
    expect(page.locator("[data-fact=sum]")).to_have_text(number(powers.sum()))
    assert "× 2.5" in page.locator(".path thead").inner_text()


@pytest.mark.slow
def test_one_weight_is_worked_out_for_the_item_that_is_picked(watched):
    one = watched()
    page = one.open("lookup?scale=2.5&query=[0.4,-1.1]")
    body = one.last("/api/lookup")
    weights = reading_of(body).weights
    worked = page.locator("[data-fact=worked]")
    expect(worked).to_contain_text(f"{body['labels'][int(weights.argmax())]}: k·q =")
    button = page.get_by_role("button", name="How the weight of c comes about")
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    key, (x, y) = body["keys"][2], body["query"]
    dot = key[0] * x + key[1] * y
    expect(worked).to_contain_text(
        f"c: k·q = {number(key[0])}·{number(x)} + {number(key[1])}·({number(y)}) = {number(dot)}"
    )
    expect(worked).to_contain_text(f"times 2.5 is {number(2.5 * dot)}")
    shown = page.locator("[data-weight=c]").inner_text()
    expect(worked).to_contain_text(f"it is {shown}, the share of vc in the output")


@pytest.mark.slow
def test_the_path_stays_finite_at_the_largest_scale(watched):
    one = watched()
    page = one.open("lookup?scale=200&query=[2.3,2.3]")
    one.settled()
    text = page.locator(".path").inner_text()
    assert not re.search(r"inf|nan|NaN|Infinity", text)
    assert "1.000" in text


@pytest.mark.slow
def test_the_distance_from_the_wanted_blend_stands_beside_the_leak(watched):
    one = watched()
    page = one.open('lookup?wanted={"a":3,"b":1}')
    body = one.last("/api/lookup")
    assert body["wanted"] == {"a": 0.75, "b": 0.25}
    weights = reading_of(body).weights.tolist()
    distance = sum(abs(w - body["wanted"].get(i, 0)) for w, i in zip(weights, body["labels"], strict=True)) / 2
    expect(page.locator("[data-fact=distance]")).to_have_text(number(distance))
    page.get_by_role("button", name="Blend these").click()
    expect(page.locator(".found.yes")).to_be_visible()
    one.settled()
    bound = float(re.search(r"at most ([\d.e-]+)", page.locator(".found.yes").inner_text())[1])
    assert float(page.locator("[data-fact=distance]").inner_text()) <= bound * 1.001
    for name in ("a", "b"):
        page.get_by_role("button", name=f"Remove {name} from the wanted items").click()
    expect(page.locator("[data-fact=distance]")).to_have_count(0)


@pytest.mark.slow
def test_every_item_has_a_colour_and_the_first_are_those_of_okabe_and_ito(watched):
    one = watched()
    page = one.open("lookup?n=50")
    one.settled()
    dots = page.locator(".keyspace .spot")
    colours = [dots.nth(i).get_attribute("fill") for i in range(50)]
    assert len(set(colours)) == 50
    okabe_ito = ["230 159 0", "0 114 178", "0 158 115", "213 94 0", "204 121 167", "86 180 233", "240 228 66"]
    assert colours[:7] == [f"rgb({c})" for c in okabe_ito]
    grey = [c for c in colours if max(v := [int(x) for x in re.findall(r"\d+", c)]) - min(v) < 25]
    assert not grey
    values = one.last("/api/lookup")["values"]
    assert [f"rgb({' '.join(str(round(255 * x)) for x in value)})" for value in values] == colours


@pytest.mark.slow
def test_fifty_items_stay_legible(watched):
    """The largest are named in table, plane and mixture; the others are one row, and all fifty can be opened."""
    one = watched()
    page = one.open("lookup?n=50")
    body = one.last("/api/lookup")
    weights = reading_of(body).weights.numpy()
    rows = table(page)
    named = [row[0].strip() for row in rows]
    heaviest = [body["labels"][i] for i in np.argsort(-weights)[:8]]
    assert set(named) == {*heaviest, "a", "b"} and len(rows) <= 12
    shown = page.locator(".path .rest").inner_text()
    assert shown.startswith(f"the other {50 - len(rows)} together")
    rest = sum(w for w, label in zip(weights, body["labels"], strict=True) if label not in named)
    assert float(page.locator("[data-weight-rest]").inner_text()) == pytest.approx(rest, abs=5.1e-4)
    texts = page.locator(".keyspace .key text").all_text_contents()
    assert {*heaviest, "a", "b"} == set(texts)
    mixed = page.locator(".blend text.part").all_text_contents()
    assert set(heaviest[:6]) <= set(mixed)
    page.get_by_role("button", name="Show all 50 items").click()
    expect(page.locator(".path tbody tr")).to_have_count(50)
    box = page.get_by_role("region", name="The steps of every item")
    assert box.evaluate("(e) => e.scrollHeight > e.clientHeight && e.clientHeight < 450")
    box.focus()
    page.keyboard.press("End")
    expect(page.locator("[data-weight]").last).to_be_in_viewport()
    page.get_by_role("button", name="Show the largest only").click()
    expect(page.locator(".path tbody tr")).to_have_count(len(rows) + 1)


def test_at_scale_0_the_scores_are_0_whatever_the_dot_products(watched):
    page = watched().open("lookup?scale=0")
    expect(page.locator("h2", has_text="At scale 0 every score is 0, so all weights are equal")).to_be_visible()
    cells = page.locator(".path tbody tr").evaluate_all("rows => rows.map(r => [...r.cells].map(c => c.innerText))")
    assert len({row[1] for row in cells}) > 1 and {row[2] for row in cells} == {"0"}
    lead = page.locator(".lead")
    assert "the score is k·q times the scale. The softmax of the scores" in re.sub(r"\s+", " ", lead.inner_text())
