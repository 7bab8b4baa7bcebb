"""Noise page: exact moments and samples, for three layouts of heads."""

import itertools

import numpy as np
import pytest
from marks import spread

from qkv import Memory
from qkv.core.display import number
from qkv.noise import Gaussian, reading_moments

expect = pytest.importorskip("playwright.sync_api").expect


def test_a_slider_shows_the_variance_of_the_library(watched):
    one = watched()
    page = one.open("noise")
    page.locator("[data-name=along] input[type=range]").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    body = one.last("/api/noise")
    assert body["along"] > 0.5
    memory = Memory(np.eye(body["n"]))
    noise = Gaussian(isotropic=body["isotropic"], along={0: body["along"]})
    q = body["scale"] * (memory.keys[0] + memory.keys[1])
    exact = reading_moments(memory, q, noise)
    expect(page.locator("[data-fact='one head mean']")).to_have_text(number(float(exact.weights_mean[0])))
    expect(page.locator("[data-fact='one head variance']")).to_have_text(number(float(exact.weights_var[0])))
    two = reading_moments(memory, [body["scale"] * memory.keys[0], body["scale"] * memory.keys[1]], noise)
    expect(page.locator("[data-fact='two heads variance']")).to_have_text(number(float(two.weights_var[0])))
    least = float(page.locator("[data-fact='min variance variance']").inner_text())
    assert least < float(two.weights_var[0]) / 100


@pytest.mark.slow
def test_more_heads_read_an_average_of_more_items(watched):
    one = watched()
    page = one.open("noise?isotropic=0.001")
    page.locator("[data-name=heads] input[type=range]").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    body = one.last("/api/noise")
    assert body["heads"] == 4
    expect(page.locator(".lead")).to_contain_text("We want a quarter each of a, b, c and d")
    memory, noise = Memory(np.eye(10)), Gaussian(isotropic=0.001, along={0: 0.5})
    four = reading_moments(memory, list(6 * memory.keys[:4]), noise)
    expect(page.locator("[data-fact='four heads mean']")).to_have_text(number(float(four.weights_mean[0])))
    expect(page.locator("[data-fact='four heads variance']")).to_have_text(number(float(four.weights_var[0])))
    together = reading_moments(memory, 6 * memory.keys[:4].sum(0), noise)
    expect(page.locator("[data-fact='one head variance']")).to_have_text(number(float(together.weights_var[0])))
    page.wait_for_function("location.hash.includes('heads=4')")
    names = {}
    exec(page.locator("[data-python]").text_content(), names)
    assert [report.name for report in names["reports"]] == ["one head", "four heads", "min variance"]
    assert float(four.weights_var[0]) == pytest.approx(names["reports"][1].variance)


@pytest.mark.slow
def test_more_heads_than_items_in_a_link_are_reduced(watched):
    one = watched()
    page = one.open("noise?n=4&heads=8")
    assert one.last("/api/noise")["heads"] == 3
    expect(page.locator("[data-name=heads] input[type=range]")).to_have_attribute("max", "3")
    expect(page.locator("[data-fact='three heads mean']")).to_be_visible()


@pytest.mark.slow
def test_the_bars_are_the_exact_distribution_where_every_key_is_noisy(watched):
    one = watched()
    page = one.open("noise?isotropic=0.02&n=6&scale=4")
    one.settled()
    expect(page.locator(".how")).to_contain_text("Bars: the exact distribution of the weight of a.")
    rng = np.random.default_rng(0)
    keys = np.eye(6) + 0.02**0.5 * rng.standard_normal((40_000, 6, 6))
    keys[:, 0, 0] += 0.5**0.5 * rng.standard_normal(40_000)
    scores = keys @ (4.0 * np.array([1, 1, 0, 0, 0, 0]))
    alpha = np.exp(scores - scores.max(1, keepdims=True))
    alpha = alpha[:, 0] / alpha.sum(1)
    bars = page.locator(".layout >> nth=0").locator("[data-mark=rect] rect")
    tall = np.array([float(bars.nth(i).get_attribute("height")) for i in range(bars.count())])
    edges = np.clip(0.48 + 0.04 * np.arange(-12, 14), 0, 1)
    share = np.histogram(alpha, edges)[0] / len(alpha)
    assert len(tall) == len(share)
    assert np.abs(tall / tall.sum() - share).max() < 0.01


def test_there_is_a_dot_per_sample_and_sampling_again_moves_them(watched):
    one = watched()
    page = one.open("noise?n_samples=60")
    dots = page.locator(".layout >> nth=0").locator("[data-mark=dot] circle")
    expect(dots).to_have_count(60)
    before = dots.first.get_attribute("cx")
    page.get_by_role("button", name="Sample again").click()
    one.settled()
    expect(dots).to_have_count(60)
    assert dots.first.get_attribute("cx") != before


@pytest.mark.slow
def test_a_fast_slider_builds_no_queue_and_ends_on_the_newest_value(watched):
    one = watched()
    page = one.open("noise?n=50")
    one.settled()
    before = len(one.bodies)
    slider = page.locator("[data-name=scale] input[type=range]")
    slider.evaluate(
        """(slider) => { for (let i = 0; i < 80; i++) {
             slider.value = 2 + i / 10; slider.dispatchEvent(new Event("input", { bubbles: true })); } }"""
    )
    body = one.last("/api/noise")
    assert body["scale"] == pytest.approx(9.9)
    assert len(one.bodies) - before < 40
    memory = Memory(np.eye(50))
    exact = reading_moments(memory, 9.9 * (memory.keys[0] + memory.keys[1]), Gaussian(isotropic=1e-6, along={0: 0.5}))
    expect(page.locator("[data-fact='one head variance']")).to_have_text(number(float(exact.weights_var[0])))


def test_a_late_reply_never_replaces_a_newer_one(watched):
    one = watched()
    page = one.open("noise")
    one.settled()
    held = []
    page.route("**/api/noise", lambda route: held.append(route) if not held else route.continue_())
    box = page.locator("[data-name=n] input.box")
    box.fill("12")
    page.wait_for_timeout(200)
    box.fill("20")  # waits for the one that is held, then aborts it
    memory = Memory(np.eye(20))
    exact = reading_moments(memory, 6 * (memory.keys[0] + memory.keys[1]), Gaussian(isotropic=1e-6, along={0: 0.5}))
    expect(page.locator("[data-fact='one head variance']")).to_have_text(number(float(exact.weights_var[0])))
    page.unroute("**/api/noise")


def test_a_refusal_is_shown_as_a_sentence(watched):
    one = watched()
    page = one.open("noise")
    one.settled()
    refusal = {"request": "reading under noise", "problem": "too many requests are waiting", "hint": "Try again"}
    page.route("**/api/noise", lambda route: route.fulfill(status=503, json={"error": refusal}))
    page.locator("[data-name=n] input.box").fill("12")
    expect(page.locator(".problem")).to_have_text("Reading under noise: too many requests are waiting. Try again.")
    expect(page.locator("[data-fact='one head variance']")).to_be_visible()
    page.unroute("**/api/noise")
    page.locator("[data-name=n] input.box").fill("13")
    expect(page.locator(".problem")).to_have_count(0)
    one.said = [said for said in one.said if "503" not in said]  # the browser logs the staged refusal


SENTENCES = """async (layouts) => { const { spread, successTitle } = await import("/static/pages/noise.js");
  return [spread(layouts), successTitle(layouts)]; }"""


def layouts(variances, probabilities):
    names = ("one head", "two heads", "min variance")
    return [
        {"name": name, "variance": v, "probability": p, "low": low, "high": high}
        for name, v, (low, p, high) in zip(names, variances, probabilities, strict=True)
    ]


@pytest.mark.parametrize(
    ("variances", "probabilities", "compared", "title"),
    spread([
        (
            (0.2, 0.02, 1e-5), ((0.1, 0.1, 0.1), (0.5, 0.5, 0.5), (0.9, 0.9, 0.9)),
            "The weight of a varies most with one head (variance 0.2) and least with the min-variance query "
            "(1.00e-05).",
            "Success is most likely with the min-variance query",
        ),
        (
            (0.1, 0.3, 0.1), ((0.4, 0.5, 0.6), (0.35, 0.45, 0.55), (0.1, 0.1, 0.1)),
            "The weight of a varies most with two heads (variance 0.3) and least with one head and the min-variance "
            "query (0.1).",
            "The numbers do not tell which of one head and two heads succeeds more often",
        ),
        (
            (0.0, 0.0, 0.0), ((1, 1, 1), (1, 1, 1), (1, 1, 1)),
            "The weight of a does not vary with any of them.", "All three layouts succeed equally often",
        ),
        (
            (0.2, 0.2 * (1 + 1e-9), 0.2), ((0, 1e-5, 2e-5), (0, 0, 2.5e-4), (0, 0, 0)),
            "The weight of a varies equally with all of them.",
            "None of the three layouts succeeds with a probability above 0.0003",
        ),
        (
            (0.2, 0.2, 0.2), ((0, 0, 0), (0, 0, 0), (0, 0, 0)),
            "The weight of a varies equally with all of them.",
            "None of the three layouts succeeds: each probability is 0",
        ),
        (
            (0.2, 0.2, 0.2), ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5002), (0.5, 0.5, 0.5)),
            "The weight of a varies equally with all of them.",
            "All three layouts succeed equally often, to within 0.0002",
        ),
        (
            (0.2, 0.1, 0.05), ((0.7, 0.7003, 0.7006), (0.7, 0.7003, 0.7006), (0.7, 0.7003, 0.702)),
            "The weight of a varies most with one head (variance 0.2) and least with the min-variance query (0.05).",
            "The numbers do not tell which of one head, two heads and the min-variance query succeeds more often",
        ),
    ], 4),
)  # fmt: skip
def test_sentences_follow_from_the_numbers(watched, variances, probabilities, compared, title):
    page = watched().open("noise")
    assert page.evaluate(SENTENCES, layouts(variances, probabilities)) == [compared, title]


@pytest.mark.slow
def test_random_comparisons_are_true(watched):
    """400 triples of variances and intervals; the sentence is read back and compared with them."""
    page = watched().open("noise")
    rng = np.random.default_rng(5)
    names = ["one head", "two heads", "the min-variance query"]
    for _ in range(400):
        variances = rng.choice([0.0, 1e-16, 1e-3, 0.2, 0.2 * (1 + 1e-12), rng.random()], 3).tolist()
        middles, widths = rng.choice([0.1, 0.1004, 0.5, rng.random()], 3), rng.choice([0, 1e-9, 3e-4, 0.05], 3)
        triples = [(m - w, m, m + w) for m, w in zip(middles.tolist(), widths.tolist(), strict=True)]
        compared, title = page.evaluate(SENTENCES, layouts(variances, triples))
        if "varies most with " in compared:
            most, least = compared.split("varies most with ")[1].split(" and least with ")
            named = [v for n, v in zip(names, variances, strict=True) if n in most]
            assert named and min(named) >= max(variances) * (1 - 2e-6) and max(variances) > 1e-14
            named = [v for n, v in zip(names, variances, strict=True) if n in least]
            assert named and max(named) <= max(min(variances) * (1 + 2e-6), 1e-14)
        else:
            assert max(variances) <= min(variances) * (1 + 2e-6) or max(variances) < 1e-14
        lows, highs = [t[0] for t in triples], [t[2] for t in triples]
        if title.startswith("Success is most likely with "):
            best = next(i for i, n in enumerate(names) if title.endswith(n))
            assert all(lows[best] > highs[i] for i in range(3) if i != best)
        elif "to within" in title:
            assert float(title.split("within ")[1]) >= max(highs) - min(lows)
        elif title == "All three layouts succeed equally often":
            assert len({*lows, *highs}) == 1
        else:
            assert title.startswith("The numbers do not tell")


@pytest.mark.parametrize(
    ("state", "said"),
    spread([
        ("along=0&isotropic=0", "half of a and half of b. Here no key varies."),
        ("along=0.5&isotropic=0", ", but the key of a varies along itself."),
        ("along=0&isotropic=0.01", ", but every key varies in every direction."),
    ], 3, 1),
)  # fmt: skip
def test_the_lead_says_what_varies(watched, state, said):
    one = watched()
    page = one.open(f"noise?{state}")
    one.settled()
    expect(page.locator(".lead")).to_contain_text(said)
    shown = [float(page.locator(f"[data-fact='{n} variance']").inner_text()) for n in ("one head", "min variance")]
    compared = page.locator("[data-fact=comparison]").inner_text()
    assert ("does not vary" in compared) == (max(shown) < 1e-14)


@pytest.mark.slow
def test_the_axes_say_what_they_show(watched):
    one = watched()
    page = one.open("noise")
    page.wait_for_selector(".layout .chart svg")
    one.settled()
    for i in range(3):
        layout = page.locator(".layout").nth(i)
        expect(layout.locator("[data-mark='x-axis label']")).to_have_text("weight of a")
        expect(layout.locator("[data-mark='y-axis label']")).to_have_text("probability")
    success = page.locator("figure", has=page.locator("h2", has_text="Success is most likely"))
    expect(success.locator("[data-mark='x-axis label']")).to_have_text("probability of success")


METHODS = """async (layouts) => { const { methods, rangeOf } = await import("/static/pages/noise.js");
  return [methods(layouts), layouts.map(rangeOf)]; }"""


def report(name, method, low, high):
    law = {"method": "exact"}
    return {"name": name, "method": method, "low": low, "high": high, "law": law, "weight_samples": [0.5]}


@pytest.mark.slow
def test_an_interval_says_whether_it_is_one_of_confidence_or_numerical(watched):
    page = watched().open("noise")
    said, ranges = page.evaluate(
        METHODS,
        [
            report("one head", "quadrature", 0.4, 0.4 + 1e-9),
            report("two heads", "conditional_mc", 0.71033, 0.71139),
            report("min variance", "quadrature", 0.98765432, 0.99),
        ],
    )
    assert ranges == ["", "95 % interval 0.7103 to 0.7114", "numerical range 0.9876 to 0.99"]
    assert "The probability of success of two heads is estimated from draws, with a 95 % confidence interval" in said
    assert "That of the min-variance query is integrated; the range below it is its numerical error." in said
    said, ranges = page.evaluate(METHODS, [report(n, "exact", 0.3, 0.3) for n in ("one head", "two heads")])
    assert "95 %" not in said and ranges == ["", ""] and "and so is the probability of success" in said
    said, _ = page.evaluate(METHODS, [report(n, "monte_carlo", 0.3, 0.4) for n in ("one head", "two heads")])
    assert "The probability of success is estimated from draws" in said


def test_the_ranges_on_screen_hold_the_intervals_of_the_library(watched):
    """Rounded outward, and called an interval exactly where the probability was drawn."""
    one = watched()
    page = one.open("noise?isotropic=0.01&n=6")
    one.settled()
    reply = page.request.post(f"{one.address}/api/noise", data=one.last("/api/noise")).json()
    assert {layout["method"] for layout in reply["layouts"]} & {"conditional_mc", "monte_carlo"}
    for layout in reply["layouts"]:
        shown = page.locator(f"[data-fact='{layout['name']} range']").inner_text()
        drawn = layout["method"] in ("conditional_mc", "monte_carlo")
        if layout["high"] - layout["low"] < 2e-6:
            assert shown == ""
            continue
        assert shown.startswith("95 % interval" if drawn else "numerical range")
        low, high = (float(x) for x in shown.removeprefix("95 % interval").removeprefix("numerical range").split("to"))
        assert (
            low <= layout["low"]
            and high >= layout["high"]
            and high - low <= 1.01 * (layout["high"] - layout["low"]) + 2e-4
        )


def test_bounds_are_rounded_outward(watched):
    page = watched().open("noise")
    rng = np.random.default_rng(1)
    numbers = [*rng.random(300).tolist(), *(10.0 ** rng.uniform(-12, 0, 300)).tolist(), 0.0, 1.0, 0.99995, 1e-4]
    found = page.evaluate(
        """async (xs) => { const { atLeast, atMost } = await import("/static/lib/numbers.js");
             return xs.map((x) => [atLeast(x), atMost(x)]); }""",
        numbers,
    )
    for x, (low, high) in zip(numbers, found, strict=True):
        assert float(low) <= x <= float(high) and float(high) - float(low) <= 2.1e-3 * x


@pytest.mark.slow
def test_on_a_phone_the_chart_comes_before_the_controls_and_fits_the_first_screen(watched):
    one = watched(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = one.open("noise")
    page.wait_for_selector(".layout .chart svg")
    one.settled()
    controls = page.locator(".controls").bounding_box()
    for i in range(3):
        chart = page.locator(".layout .chart svg").nth(i).bounding_box()
        assert chart["y"] + chart["height"] <= 700 and chart["y"] + chart["height"] <= controls["y"]
        assert page.locator(".layout .facts").nth(i).bounding_box()["y"] < controls["y"]
        assert chart["x"] >= -1 and chart["x"] + chart["width"] <= 390


RESOLUTION = """async (curves) => (await import("/static/pages/noise_study.js")).resolution(curves)"""


def test_the_caption_of_a_study_says_how_fine_it_is(watched):
    page = watched().open("noise")

    def said(*points):
        return page.evaluate(RESOLUTION, [{"points": [{"scale": s, "probability": p} for s, p in points]}])

    assert said((1, 0), (2, 0.01), (4, 0.02)).endswith("From one to the next no curve changes by more than 0.03.")
    assert "they are at most 100 % apart." in said((1, 0), (2, 0.5), (3, 0.52))
    steep = "Computed at 3 scales. Where a curve changes by more than 0.03 from one to the next, they are at most"
    assert said((1, 0), (1.004, 0.9), (50, 0.91)) == f"{steep} 0.41 % apart."


@pytest.mark.slow
def test_a_study_locates_the_step_between_failure_and_success(watched):
    """The scale at which the min-variance query begins to succeed, against the one that follows from its leak."""
    one = watched()
    page = one.open("noise?n=10&isotropic=0")
    page.get_by_role("button", name="Study all scales").click()
    expect(page.locator(".study figcaption")).to_contain_text("Computed at", timeout=120_000)
    apart = float(page.locator(".study figcaption").inner_text().split("at most ")[-1].split(" %")[0])
    assert apart <= 0.6
    job = page.request.get(f"{one.address}/api/jobs").json()["jobs"][0]
    points = job["result"]["curves"][2]["points"]
    before = max(p["scale"] for p in points if p["probability"] == 0)
    after = min(p["scale"] for p in points if p["probability"] == 1)
    assert after / before < 1.006

    def miss(scale):  # of the output from the wanted one, where nothing varies
        weights = np.exp(np.r_[scale, scale, np.zeros(8)])
        return float(np.linalg.norm(weights / weights.sum() - np.r_[0.5, 0.5, np.zeros(8)]))

    assert miss(before) > 0.1 > miss(after)


@pytest.mark.slow
def test_names_at_the_ends_of_curves_do_not_overlap(watched):
    page = watched().open("noise")
    ends = page.evaluate(
        """async (ends) => (await import("/static/pages/noise_study.js")).endLabels(
             ends.map(([name, probability]) => ({ name, points: [{ scale: 50, probability }] })))""",
        [["a", 0.9], ["b", 0.89], ["c", 0.0]],
    )
    assert [end["name"] for end in ends] == ["c", "b", "a"] and ends[0]["at"] == 0
    assert all(q["at"] - p["at"] >= 0.0649 for p, q in itertools.pairwise(ends))


@pytest.mark.slow
def test_the_min_variance_query_is_said_to_minimise_the_sum_over_all_weights(watched):
    """The weight of a alone may vary most with it, so the gloss must not promise otherwise."""
    one = watched()
    page = one.open("noise")
    term = page.locator(".how .term", has=page.get_by_role("button", name="min-variance query"))
    term.locator("button").click()
    expect(term.locator(".meaning")).to_contain_text("the least sum of the variances of all weights")
    expect(term.locator(".meaning")).to_contain_text("The weight of one item alone may vary less with another query.")


@pytest.mark.slow
def test_a_probability_lies_in_the_range_printed_beside_it(watched):
    """500 probabilities with ranges of any width; what is printed is read back."""
    page = watched().open("noise")
    rng = np.random.default_rng(8)
    cases = [{"probability": 0.00642, "low": 0.006138, "high": 0.006714, "method": "monte_carlo"}]
    for _ in range(500):
        p = float(rng.choice([rng.random(), 10 ** rng.uniform(-7, 0), 1 - 10 ** rng.uniform(-7, 0), 0.0, 1.0]))
        low, high = (10 ** rng.uniform(-7, -1, 2)).tolist()
        cases.append({"probability": p, "low": max(0.0, p - low), "high": min(1.0, p + high), "method": "monte_carlo"})
    found = page.evaluate(
        """async (cases) => { const { probabilityOf, rangeOf } = await import("/static/pages/noise.js");
             return cases.map((c) => [probabilityOf(c), rangeOf(c)]); }""",
        cases,
    )
    assert found[0] == ["0.00642", "95 % interval 0.006138 to 0.006714"]
    for said, printed in found:
        value = 1 - float(said[4:]) if said.startswith("1 − ") else float(said)
        if printed:
            low, high = map(float, printed.removeprefix("95 % interval ").split(" to "))
            assert low <= value <= high, (said, printed)
