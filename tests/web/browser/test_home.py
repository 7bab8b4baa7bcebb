"""Home: what qkv is for, a picture computed in the page, and a card per question whose first task works."""

import json
import re

import numpy as np
import pytest
from marks import some

expect = pytest.importorskip("playwright.sync_api").expect

KEYS = np.array([[1, 0.25], [0.2, 1], [-0.95, 0.5], [-0.6, -0.85], [0.65, -0.8]])
QUESTIONS = [
    "What does attention look up?", "What does noise do?", "Is my answer right?", "What does my model’s head do?",
    "Can a head be built to my rules?", "What does it remember?",
]  # fmt: skip
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def softmax(scores):
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def shown(weight):
    if weight < 0.0005:
        return "< 0.001"
    return f"{weight:.3f}" if weight <= 0.9995 else f"1 − {1 - weight:.2g}"


def paused(one):
    """Home with its picture at rest, and the state of the picture."""
    page = one.open("home")
    button = page.locator(".play button")
    if button.inner_text() == "Pause":
        button.click()
    expect(page.locator(".moving")).to_have_attribute("data-playing", "false")
    figure = page.locator(".moving")
    return page, json.loads(figure.get_attribute("data-query")), float(figure.get_attribute("data-scale"))


def card(page, question):
    return page.locator(".card", has=page.get_by_role("heading", name=question))


@pytest.mark.parametrize("path", some(["/", "/home", "/#/home", "/#/nowhere", "/#/"], ["/", "/#/nowhere"]))
def test_the_first_page_is_home(watched, path):
    one = watched()
    one.page.goto(one.address + path)
    expect(one.page.locator("h1")).to_have_text("See what attention looks up, and when to trust it")
    expect(one.page.locator("nav [aria-current=page]")).to_have_text("Home")
    expect(one.page).to_have_title("Home · qkv explorer")


def test_links_to_a_state_of_lookup_still_work(watched):
    one = watched()
    one.page.goto(f"{one.address}/#/lookup?scale=2.5")
    expect(one.page.locator("h1")).to_have_text("Lookup")
    expect(one.page.locator("[data-name=scale] input.box")).to_have_value("2.5")


@pytest.mark.slow
def test_the_picture_moves_by_itself_and_can_be_paused(watched):
    page = watched().open("home")
    figure = page.locator(".moving")
    expect(figure).to_have_attribute("data-playing", "true")
    before = figure.get_attribute("data-query")
    page.wait_for_function("(q) => document.querySelector('.moving').dataset.query !== q", arg=before)
    page.get_by_role("button", name="Pause").click()
    held = figure.get_attribute("data-query")
    page.wait_for_timeout(200)
    assert figure.get_attribute("data-query") == held
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("(q) => document.querySelector('.moving').dataset.query !== q", arg=held)


@pytest.mark.slow
def test_the_picture_rests_out_of_sight(watched):
    page = watched(viewport={"width": 1280, "height": 500}).open("home")
    figure = page.locator(".moving")
    before = figure.get_attribute("data-query")
    page.wait_for_function("(q) => document.querySelector('.moving').dataset.query !== q", arg=before)
    page.locator("footer").scroll_into_view_if_needed()
    expect(figure).not_to_be_in_viewport()
    page.wait_for_timeout(200)
    held = figure.get_attribute("data-query")
    page.wait_for_timeout(200)
    assert figure.get_attribute("data-query") == held
    page.locator("h1").scroll_into_view_if_needed()
    page.wait_for_function("(q) => document.querySelector('.moving').dataset.query !== q", arg=held)


@pytest.mark.slow
def test_the_picture_is_still_where_less_motion_is_preferred_but_can_be_played(watched):
    page = watched(reduced_motion="reduce").open("home")
    figure = page.locator(".moving")
    expect(figure).to_have_attribute("data-playing", "false")
    held = figure.get_attribute("data-query")
    page.wait_for_timeout(200)
    assert figure.get_attribute("data-query") == held
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("(q) => document.querySelector('.moving').dataset.query !== q", arg=held)


def test_weights_and_output_are_the_softmax_of_the_query_on_screen(watched):
    page, query, scale = paused(watched())
    weights = softmax(scale * KEYS @ np.array(query))
    assert page.locator(".moving [data-weight]").all_text_contents() == [shown(w) for w in weights]
    values = np.array([[230, 159, 0], [0, 114, 178], [0, 158, 115], [213, 94, 0], [204, 121, 167]]) / 255
    mixed = page.locator(".moving .mixed").get_attribute("fill")
    assert [int(c) for c in re.findall(r"\d+", mixed)] == pytest.approx(255 * weights @ values, abs=0.8)


@pytest.mark.slow
def test_the_computation_in_the_page_agrees_with_numpy(watched):
    """300 random memories, queries and scales, some large enough to overflow without care."""
    page = watched().open("home")
    rng = np.random.default_rng(0)
    cases = []
    for _ in range(300):
        n, d = rng.integers(1, 8), rng.integers(1, 5)
        keys, values, query = rng.normal(size=(n, d)), rng.normal(size=(n, 3)), rng.normal(size=d)
        cases.append((keys, values, query, float(rng.choice([0, 1, 5, 1e4]))))
    found = page.evaluate(
        """async (cases) => { const { read } = await import("/static/lib/attention.js");
             return cases.map(([keys, values, query, scale]) => read({ keys, values }, query, scale)); }""",
        [[k.tolist(), v.tolist(), q.tolist(), s] for k, v, q, s in cases],
    )
    for (keys, values, query, scale), reading in zip(cases, found, strict=True):
        weights = softmax(scale * keys @ query)
        assert np.allclose(reading["weights"], weights, rtol=1e-9, atol=1e-12)
        assert np.allclose(reading["output"], weights @ values, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_the_captions_follow_from_the_numbers_beside_them(watched):
    page, query, scale = paused(watched())
    weights = softmax(scale * KEYS @ np.array(query))
    top = int(weights.argmax())
    label = "abcde"[top]
    reads = f"reads {weights[top]:.3f} of {label}, and {1 - weights[top]:.3f} of other items."
    expect(page.locator("[data-fact=reading]")).to_have_text(
        f"At scale {scale:g} the query {reads}", use_inner_text=True
    )
    expect(page.locator(".moving [data-name=scale] input.box")).to_have_value(f"{scale:g}")
    said = page.locator("[data-fact=trust]").inner_text()
    least, most = map(float, re.findall(r"\d\.\d+", said))
    dots = page.locator(".moving svg circle[fill-opacity]")
    expect(dots).to_have_count(40)
    tracks = page.locator(".moving .track").first
    left, room = float(tracks.get_attribute("x")), float(tracks.get_attribute("width"))
    drawn = [(float(dots.nth(i).get_attribute("cx")) - left) / room for i in range(40)]
    assert (min(drawn), max(drawn)) == pytest.approx((least, most), abs=6e-4)
    verdict = "steady" if most - least < 0.1 else "wavers" if most - least < 0.4 else "do not trust"
    assert f"give {label} between" in said and verdict in said


@pytest.mark.slow
def test_the_verdict_on_a_reading_follows_from_its_range(watched):
    page = watched().open("home")
    found = page.evaluate(
        """async () => { const { trust } = await import("/static/pages/home.js");
             return [[0.9, 0.95], [0.5, 0.7], [0.1, 0.9]].map(([a, b]) => trust(a, b)); }"""
    )
    assert found == ["this reading is steady", "this reading wavers", "do not trust this reading"]


@pytest.mark.slow
def test_query_and_scale_can_be_moved_by_keyboard_and_mouse(watched):
    page, query, _ = paused(watched())
    handle = page.get_by_role("slider", name="Direction of the query")
    handle.focus()
    page.keyboard.press("ArrowLeft")
    moved = json.loads(page.locator(".moving").get_attribute("data-query"))
    turn = np.arctan2(moved[1], moved[0]) - np.arctan2(query[1], query[0])
    assert turn == pytest.approx(np.pi / 36)
    page.locator(".moving [data-name=scale] input.box").fill("0")
    expect(page.locator(".moving [data-weight=a]")).to_have_text("0.200")
    page.locator(".moving [data-name=scale] input.box").fill("12")
    box, plane = handle.bounding_box(), page.locator(".moving .keyspace svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(plane["x"] + 5, plane["y"] + 0.3 * plane["height"], steps=5)  # towards key c
    page.mouse.up()
    expect(page.locator("[data-fact=reading]")).to_contain_text("of c")


@pytest.mark.slow
def test_a_scale_typed_while_the_picture_moves_is_kept(watched):
    page = watched().open("home")
    figure, box = page.locator(".moving"), page.locator(".moving [data-name=scale] input.box")
    for text in ("7.25", "3", "0.125"):
        expect(figure).to_have_attribute("data-playing", "true")
        before = figure.get_attribute("data-query")
        page.wait_for_function("(q) => document.querySelector('.moving').dataset.query !== q", arg=before)
        box.focus()
        expect(figure).to_have_attribute("data-playing", "false")
        box.select_text()
        page.keyboard.type(text)
        expect(box).to_have_value(text)
        expect(figure).to_have_attribute("data-scale", text)
        page.get_by_role("button", name="Play").click()
    box.fill("5.5")  # focus and text at once
    expect(figure).to_have_attribute("data-scale", "5.5")
    expect(box).to_have_value("5.5")


@pytest.mark.slow
def test_items_that_are_read_equally_are_said_to_be(watched):
    page, _, _ = paused(watched())
    box, reading = page.locator(".moving [data-name=scale] input.box"), page.locator("[data-fact=reading]")
    box.fill("0")
    expect(reading).to_have_text("At scale 0 the query reads all items equally: 0.200 of each.", use_inner_text=True)
    box.fill("0.0001")
    expect(reading).to_contain_text("all items equally to three decimals: 0.200 of each.")


def test_there_is_a_card_for_every_question_with_a_first_task(watched):
    page = watched().open("home")
    assert page.locator(".card h3").all_text_contents() == QUESTIONS
    for question in QUESTIONS:
        expect(card(page, question).locator(".task")).to_contain_text("First task, 30 seconds")
    expect(card(page, QUESTIONS[3])).to_contain_text("qkv serve --model FOLDER")
    link = card(page, QUESTIONS[3]).get_by_role("link", name="qkv serve")
    assert page.request.get(link.evaluate("a => a.href")).ok


def test_the_task_of_lookup_gives_the_proof(watched):
    page = watched().open("home")
    card(page, QUESTIONS[0]).get_by_role("link").click()
    page.get_by_role("button", name="Copy this").click()
    expect(page.locator(".found.no")).to_contain_text("No query has exactly these weights.")
    expect(page.locator(".proof polygon")).to_be_visible()


@pytest.mark.slow
def test_the_task_of_noise_shows_two_variances_that_change(watched):
    one = watched()
    page = one.open("home")
    card(page, QUESTIONS[1]).get_by_role("link").click()
    assert one.last("/api/noise")["along"] == 2
    seen = [
        [float(page.locator(f"[data-fact='{name} variance']").inner_text()) for name in ("one head", "min variance")]
    ]
    page.locator("[data-name=scale] input.box").fill("20")
    assert one.last("/api/noise")["scale"] == 20
    expect(page.locator("[data-fact='one head variance']")).not_to_have_text(f"{seen[0][0]:.4g}")
    seen.append([float(page.locator(f"[data-fact='{n} variance']").inner_text()) for n in ("one head", "min variance")])
    assert all(least < one_head / 100 for one_head, least in seen) and seen[0] != seen[1]


@pytest.mark.slow
def test_the_task_of_claims_has_one_wrong_limit_that_can_be_corrected(watched):
    page = watched().open("home")
    card(page, QUESTIONS[2]).get_by_role("link", name="Try it on Claims").click()
    words = page.locator(".verdict .word")
    expect(words.nth(0)).to_contain_text("proved", timeout=60_000)
    expect(words.nth(1)).to_contain_text("refuted")
    text = page.locator("textarea").input_value()
    page.locator("textarea").fill(text.replace("-> 1 as", "-> 1/2 as"))
    expect(words.nth(1)).to_contain_text("proved", timeout=60_000)
    expect(words).to_have_count(2)


@pytest.mark.slow
def test_the_task_of_wiring_has_two_rules_that_a_larger_beta_meets(watched):
    one = watched()
    page = one.open("home")
    with page.expect_response("**/api/wiring"):
        card(page, QUESTIONS[4]).get_by_role("link", name="Try it").click()
    body = one.last("/api/wiring")
    met = lambda beta: [  # noqa: E731
        rule["met"]
        for rule in page.request.post(f"{one.address}/api/wiring", data={**body, "beta": beta}).json()["rules"]
    ]
    assert body["beta"] == 0.8 and met(0.8) == [False, False] and met(1) == [True, True]


@pytest.mark.slow
def test_the_card_of_heads_leads_to_the_page(watched):
    page = watched().open("home")
    card(page, QUESTIONS[3]).get_by_role("link", name="Try it").click()
    expect(page.locator("h1")).to_have_text("Heads")


def test_the_task_of_knowledge_names_a_model_that_is_there(watched):
    page = watched().open("home")
    expect(card(page, QUESTIONS[5]).locator(".task")).to_contain_text("Ask the model tiny something")
    card(page, QUESTIONS[5]).get_by_role("link").click()
    expect(page.locator("h1")).to_have_text("Knowledge")
    expect(page.locator("[data-name=model]")).to_have_value("tiny")


def test_without_a_model_the_task_of_knowledge_is_to_train_one(watched):
    page = watched().open("home")
    found = page.evaluate(
        """async () => { const { cardsOf } = await import("/static/pages/home.js");
             return cardsOf([]).at(-1); }"""
    )
    assert found["takes"] == "a few minutes" and "Press “Train”" in found["task"]


def test_a_term_explains_itself_to_the_keyboard(watched):
    page = watched().open("home")
    term = page.locator(".term", has=page.get_by_role("button", name="query", exact=True))
    button, meaning = term.locator("button"), term.locator(".meaning")
    expect(meaning).to_be_hidden()
    button.focus()
    page.keyboard.press("Enter")
    expect(meaning).to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "true")
    assert button.get_attribute("aria-controls") == meaning.get_attribute("id")
    page.keyboard.press("Escape")
    expect(meaning).to_be_hidden()
    page.keyboard.press("Space")
    expect(meaning).to_be_visible()
    page.locator("h1").click()
    expect(meaning).to_be_hidden()


@pytest.mark.parametrize("name", some(["home", "lookup", "noise"], ["noise"]))
def test_every_term_fits_on_a_phone_and_opens_by_touch(watched, name):
    one = watched(**PHONE)
    page = one.open(name)
    one.settled()
    page.wait_for_selector(".term")
    for i in range(page.locator(".term button").count()):
        term = page.locator(".term").nth(i)
        term.locator("button").tap()
        expect(term.locator(".meaning")).to_be_visible()
        box = term.locator(".meaning").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390, term.inner_text()
        assert len(term.locator(".meaning").inner_text()) > 30
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.keyboard.press("Escape")


def test_the_documents_are_read_offline(watched):
    one = watched()
    page = one.open("home")
    page.get_by_role("link", name="Read the documents").click()
    page.wait_for_url(f"{one.address}/docs/")
    expect(page.locator("h1")).to_be_visible()
    links = page.eval_on_selector_all("main a[href], article a[href]", "links => links.map(a => a.href)")
    assert links
    for link in [link for link in links if link.startswith(one.address)][:4]:
        assert page.goto(link).status == 200
        expect(page.locator("h1").first).to_be_visible()


def test_on_a_phone_the_purpose_and_the_picture_are_on_the_first_screen(watched):
    page = watched(**PHONE).open("home")
    for selector in ("h1", ".pitch .act.main", ".moving .keyspace svg"):
        box = page.locator(selector).bounding_box()
        assert box["y"] < 700 and box["x"] + box["width"] <= 390
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_home_is_light(watched):
    one = watched()
    sizes, paths = [], []
    one.page.on("response", lambda r: (sizes.append(r.request.sizes()), paths.append(r.url)))
    one.open("home").wait_for_selector(".moving [data-weight]")
    one.page.wait_for_load_state("networkidle")
    assert sum(s["responseBodySize"] + s["responseHeadersSize"] for s in sizes) < 150_000
    assert not [path for path in paths if "d3" in path or "katex" in path]
