"""Noise page: exact moments and samples, for three layouts of heads."""

import numpy as np
import pytest

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


def test_more_heads_than_items_in_a_link_are_reduced(watched):
    one = watched()
    page = one.open("noise?n=4&heads=8")
    assert one.last("/api/noise")["heads"] == 3
    expect(page.locator("[data-name=heads] input[type=range]")).to_have_attribute("max", "3")
    expect(page.locator("[data-fact='three heads mean']")).to_be_visible()


def test_the_bars_are_the_exact_distribution_where_every_key_is_noisy(watched):
    one = watched()
    page = one.open("noise?isotropic=0.02&n=6&scale=4")
    one.settled()
    expect(page.get_by_text("Bars: the exact distribution of the weight of a.")).to_be_visible()
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
    [
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
            "All three layouts succeed equally often, to within 0.0003",
        ),
        (
            (0.2, 0.1, 0.05), ((0.7, 0.7003, 0.7006), (0.7, 0.7003, 0.7006), (0.7, 0.7003, 0.702)),
            "The weight of a varies most with one head (variance 0.2) and least with the min-variance query (0.05).",
            "The numbers do not tell which of one head, two heads and the min-variance query succeeds more often",
        ),
    ],
)  # fmt: skip
def test_sentences_follow_from_the_numbers(watched, variances, probabilities, compared, title):
    page = watched().open("noise")
    assert page.evaluate(SENTENCES, layouts(variances, probabilities)) == [compared, title]


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
    [
        ("along=0&isotropic=0", "half of a and half of b. Here no key varies."),
        ("along=0.5&isotropic=0", ", but the key of a varies along itself."),
        ("along=0&isotropic=0.01", ", but every key varies in every direction."),
    ],
)
def test_the_lead_says_what_varies(watched, state, said):
    one = watched()
    page = one.open(f"noise?{state}")
    one.settled()
    expect(page.locator(".lead")).to_contain_text(said)
    shown = [float(page.locator(f"[data-fact='{n} variance']").inner_text()) for n in ("one head", "min variance")]
    compared = page.locator("[data-fact=comparison]").inner_text()
    assert ("does not vary" in compared) == (max(shown) < 1e-14)
