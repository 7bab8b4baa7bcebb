"""Wiring page: matrices and their derivation for edited rules."""

import re

import numpy as np
import pytest
from marks import spread

from qkv import self_attention
from qkv.core.display import number
from qkv.design import wire

expect = pytest.importorskip("playwright.sync_api").expect

# x_1 = u_d + u_b, x_2 = u_a, x_3 = u_c + u_b in the basis (u_d, u_b, u_a, u_c)
X = np.array([[1.0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 1]])


def test_beta_moves_the_weights_as_the_library_says(watched):
    one = watched()
    page = one.open("wiring")
    page.locator("[data-name=beta] input[type=range]").focus()
    for _ in range(25):
        page.keyboard.press("ArrowRight")
    beta = one.last("/api/wiring")["beta"]
    assert beta > 1.2
    wired = wire(X, {0: 1, 1: 0}, {0: [0, 1, 0, 0], 1: [0, 1, 0, -1]}, tol=0.05)
    weights = self_attention(beta * X, wired.Q, wired.K, wired.V).weights
    title = f"x1 reads x2 ({number(float(weights[0, 1]), 3)}); x2 reads x1 ({number(float(weights[1, 0]), 3)})"
    expect(page.locator(".views h2 >> nth=0")).to_contain_text(title)


def test_the_derivation_is_set_by_katex(watched):
    page = watched().open("wiring")
    expect(page.locator(".derivation .katex-html").first).to_be_visible()
    loaded = page.evaluate(
        "document.fonts.ready.then(() => [...document.fonts].filter((f) => f.status === 'loaded').map((f) => f.family))"
    )
    assert any("KaTeX" in family for family in loaded)


def test_tokens_and_rules_can_be_written(watched):
    one = watched()
    page = one.open("wiring")
    page.get_by_label("What x_2 writes").fill("2 u_a - 1/2 u_b")
    rules = one.last("/api/wiring")["rules"]
    assert rules[1]["writes"] == {"u_a": 2, "u_b": -0.5}
    page.get_by_role("button", name="Add a token").click()
    assert len(one.last("/api/wiring")["tokens"]) == 4
    expect(page.get_by_label("Weights: ")).to_be_visible()
    page.get_by_label("What x_2 writes").fill("u_a +")
    expect(page.locator(".problem")).to_contain_text("Each field takes a sum of named vectors")
    expect(page.get_by_label("What x_2 writes")).to_have_attribute("aria-invalid", "true")


def test_rules_without_a_solution_are_shown_as_impossible(watched):
    page = watched().open(
        'wiring?tokens=[["x_1","u_a"],["x_2","u_a"],["x_3","u_b"]]&rules=[["x_1","x_2","u_b"],["x_2","x_3","u_b"]]'
    )
    expect(page.locator(".found.no")).to_contain_text("✗ Impossible")
    expect(page.locator(".found.no")).to_contain_text("x1 and x2 are the same vector, so they read the same")


@pytest.mark.slow
def test_rules_that_contradict_each_other_are_red_and_say_why(watched):
    page = watched().open('wiring?rules=[["x_1","x_2","u_b"],["x_2","x_1","u_b - u_c"],["x_3","x_1","u_b"]]')
    expect(page.locator(".outcomes .met")).to_have_count(1)
    unmet = page.locator(".outcomes .unmet")
    expect(unmet).to_have_text([
        "✗ x2: it reads the same as x3, so it writes the same, and the rules say otherwise",
        "✗ x3: it reads the same as x2, so it writes the same, and the rules say otherwise",
    ])  # fmt: skip
    expect(page.locator(".rule.unmet .reason")).to_have_count(2)
    red = page.evaluate("getComputedStyle(document.querySelector('.outcomes .unmet')).color")
    r, g, b = (int(c) for c in red.strip("rgb()").split(","))
    assert r > 1.5 * max(g, b)
    page.get_by_label("What x_3 writes").fill("u_b - u_c")
    expect(page.locator(".unmet")).to_have_count(0)
    expect(page.locator(".outcomes .met")).to_have_count(3)


@pytest.mark.slow
def test_a_new_rule_can_be_met(watched):
    one = watched()
    page = one.open("wiring")
    page.get_by_role("button", name="Add a rule").click()
    expect(page.locator(".outcomes .met")).to_have_count(3)
    expect(page.locator(".unmet")).to_have_count(0)
    expect(page.get_by_role("button", name="Add a rule")).to_be_disabled()  # each token has one
    page.get_by_role("button", name="Add a token").click()
    page.get_by_role("button", name="Add a rule").click()
    expect(page.locator(".outcomes .met")).to_have_count(4)
    assert len({token["name"] for token in one.last("/api/wiring")["tokens"]}) == 4


def test_the_headline_names_every_term_of_a_blend(watched):
    one = watched()
    page = one.open('wiring?rules=[["x_1","1/2 x_2 %2B 1/2 x_3","u_b"]]')
    expect(page.locator(".views h2 >> nth=0")).to_contain_text("x1 reads x")
    title = page.locator(".views h2 >> nth=0").inner_text().split(";")[0]
    assert "x2 (0.4" in title and "x3 (0.4" in title and " and " in title


def test_at_a_small_length_an_unmet_rule_is_red(watched):
    page = watched().open("wiring?beta=0.3")
    expect(page.locator(".outcomes .unmet").first).to_contain_text("from the rule; at β = 1 they are within 0.05")


@pytest.mark.slow
def test_powers_of_ten_are_set_as_powers(watched):
    page = watched().open("wiring?beta=10")
    page.wait_for_selector(".derivation .katex-html")
    expect(page.locator(".derivation .katex-html", has_text="⋅1").first).to_be_visible()
    sources = page.locator(".derivation annotation").all_text_contents()
    assert any("cdot 10^{-" in tex for tex in sources)
    assert not [tex for tex in sources if re.search(r"\de[-+]?\d", tex)]


@pytest.mark.slow
def test_inputs_that_cannot_be_used_have_no_result(watched):
    page = watched().open("wiring")
    expect(page.locator(".views h2").first).to_be_visible()
    page.get_by_label("What x_1 is").fill("u_d +")
    expect(page.get_by_text("Each field takes a sum of named vectors")).to_be_visible()
    expect(page.locator(".views")).to_have_count(0)
    page.get_by_label("What x_1 is").fill("u_d + u_b")
    expect(page.locator(".views h2").first).to_be_visible()


@pytest.mark.parametrize(
    ("typed", "message"),
    spread([
        ("x_2 + x_3", "The rule x_1 reads x_2 + x_3: the weights sum to 2, not to 1. Write 1/2 x_2 + 1/2 x_3"),
        ("2 x_2 - x_3", "the weight of x_3 is negative"),
        ("x_9", "there is no such token"),
    ], 3),
)  # fmt: skip
def test_a_rule_that_cannot_be_used_is_named_as_it_was_typed(watched, typed, message):
    one = watched()
    page = one.open("wiring")
    page.get_by_label("What x_1 reads").fill(typed)
    expect(page.locator(".problem")).to_contain_text(message)
    assert "{" not in page.locator(".problem").inner_text()
    one.said = [said for said in one.said if "422" not in said]  # the browser logs the status


@pytest.mark.slow
def test_a_field_that_cannot_be_read_is_named(watched):
    page = watched().open("wiring")
    page.get_by_label("What x_2 writes").fill("u_a +")
    expect(page.locator(".problem")).to_contain_text("What x_2 writes cannot be read: “u_a +”.")


@pytest.mark.slow
def test_a_row_of_about_equal_weights_is_not_said_to_read_one_token(watched):
    page = watched().open("wiring")
    rows = [[0.33, 0.341, 0.329], [0.1, 0.8, 0.1], [1 / 3, 1 / 3, 1 / 3]]
    reply = {"names": ["x_1", "x_2", "x_3"], "weights": rows, "rules": [{"token": "x_1", "wanted": {"x_2": 1}}]}
    said = page.evaluate(
        """async (reply) => (await import("/static/pages/wiring.js")).title(reply)""",
        reply,
    )
    assert said == "x_1 reads all tokens about equally; x_2 reads x_2 (0.8); x_3 reads all tokens equally"
