"""Heads page: the example without a model, a run, arcs, the grid, the table, one token."""

import re

import numpy as np
import pytest
from harness import downloaded, serving

from qkv.heads.rounding import percent_rounded_down, share_text

expect = pytest.importorskip("playwright.sync_api").expect
pytest.importorskip("transformers")

EXAMPLE = "heads?model=built-in%20example"
TEXT = "the cat saw the dog and the dog saw the cat"


def shown(page):
    """The page with a head, its weights and the details of a token."""
    expect(page.locator(".arcs svg")).to_be_visible(timeout=90_000)
    expect(page.locator("[data-fact=firmly]")).to_be_visible(timeout=90_000)
    return page


@pytest.mark.slow
def test_without_a_model_the_page_says_how_to_name_one_and_shows_the_example(chromium, tmp_path):
    context = chromium.new_context()
    page = context.new_page()
    with serving(runs=tmp_path) as address:
        page.goto(f"{address}/#/heads")
        expect(page.locator("[data-fact=naming]")).to_contain_text("qkv serve --model FOLDER")
        expect(page.locator("[data-fact=title]")).to_have_text(
            "Head 1.0, induction: 1.00 of its weight on repeated random tokens", timeout=90_000
        )
        expect(page.locator("[data-name=model] option")).to_have_text(["built-in example"])
    context.close()


def test_the_numbers_are_those_of_the_library(watched):
    from qkv.heads import example

    page = shown(watched().open(EXAMPLE))
    view = example().head(1, 0).view(TEXT, token=11, harden=False)
    expect(page.locator("[data-name=token] input.box")).to_have_value("11")
    rows = page.locator(".token-detail tbody tr")
    expect(rows.nth(0).locator("th")).to_have_text("3 saw")
    assert rows.count() == 8 and rows.nth(1).locator("td").first.inner_text() == f"{view.looked_up[1].score:.2f}"
    expect(page.locator("[data-fact=firmly]")).to_contain_text("Margin 11.07: the same token stays on top")
    expect(page.locator(".bits tbody tr")).to_have_count(6)


@pytest.mark.slow
def test_a_token_is_chosen_by_slider_text_and_arcs(watched):
    page = shown(watched().open(EXAMPLE))
    page.locator("[data-name=token] input[type=range]").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".front")).to_have_attribute("data-shown", "10")
    page.locator(".shaded [data-place='4']").click()
    expect(page.locator(".front")).to_have_attribute("data-shown", "4")
    expect(page.locator(".token-detail h3")).to_have_text("What “the” looks at")
    box = page.locator(".arcs svg").bounding_box()
    page.mouse.click(box["x"] + 20, box["y"] + 6 + 19 * 5.5)
    expect(page.locator("[data-name=token] input.box")).to_have_value("5")
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + 6 + 19 * 3.5)  # who looks at saw
    expect(page.locator(".front")).to_have_attribute("data-shown", "3")
    assert page.locator(".front .own").count() == 1
    expect(page.locator("[data-name=token] input.box")).to_have_value("5")  # pointing chooses nothing


def test_a_head_is_chosen_in_the_grid_by_mouse_and_keys_and_in_the_table(watched):
    page = shown(watched().open(EXAMPLE))
    page.locator("[data-head='0.1']").click()
    expect(page.locator("[data-fact=title]")).to_contain_text("Head 0.1, duplicate")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-fact=title]")).to_contain_text("Head 0.0, previous token")
    expect(page.locator("button[data-head='0.0']")).to_be_focused()
    assert page.locator(".head-grid [tabindex='0']").count() == 1
    page.get_by_role("button", name="Show head 1.1").click()
    expect(page.locator("[data-fact=title]")).to_have_text(
        "Head 1.1, broad: it averages 1.00 of the tokens that it sees on the text"
    )


@pytest.mark.slow
def test_the_table_sorts_by_every_column(watched):
    page = shown(watched().open(EXAMPLE))
    heads = page.locator(".heads-table tbody th")
    assert heads.all_text_contents() == ["0.0", "0.1", "1.0", "1.1"]
    page.locator(".heads-table thead").get_by_role("button", name="averages").click()
    expect(heads.first).to_have_text("1.1")
    expect(page.locator("[aria-sort=descending]")).to_contain_text("averages")
    page.locator(".heads-table thead").get_by_role("button", name="averages").click()
    expect(heads.first).to_have_text("0.0")
    page.locator(".heads-table thead").get_by_role("button", name="kind").click()
    expect(page.locator(".heads-table tbody td:nth-child(2)")).to_have_text(
        ["broad", "duplicate", "induction", "previous token"]
    )


def test_unknown_numbers_come_last_however_a_column_is_sorted(watched):
    page = watched().open(EXAMPLE)
    found = page.evaluate(
        """async () => { const { sorted } = await import("/static/pages/heads_table.js");
             const rows = [[null, 0], [2, 1], [undefined, 2], [1, 3]].map(([x, head]) => ({ layer: 0, head, x }));
             return [true, false].map((down) => sorted(rows, "x", down).map((row) => row.head)); }"""
    )
    assert [order[:2] for order in found] == [[1, 3], [3, 1]]


def test_shares_are_all_or_nothing_only_where_they_are(watched):
    """As in the terminal, with a space before the sign; what is proved is never rounded up."""
    shares = [0, 0.0004, 0.003, 0.29, 0.57, 0.58, 0.994, 0.996, 0.9995, 1, *np.linspace(0, 1, 101).tolist()]
    found = (
        watched()
        .open(EXAMPLE)
        .evaluate(
            """async (shares) => { const { percentage, provedPercentage } = await import("/static/lib/numbers.js");
             return shares.map((x) => [percentage(x), provedPercentage(x)]); }""",
            shares,
        )
    )
    expected = [(share_text(x).replace("%", " %"), percent_rounded_down(x).replace("%", " %")) for x in shares]
    apart = [(x, got, wanted) for x, got, wanted in zip(shares, found, expected, strict=True) if tuple(got) != wanted]
    assert not [one for one in apart if round(100 * one[0], 6) % 1 != 0.5]  # where Python and JavaScript round alike


@pytest.mark.slow
def test_arcs_are_the_largest_weights_for_any_matrix(watched):
    """50 random matrices: what the page draws of a row and of a column is what numpy selects."""
    page, rng, cases = watched().open(EXAMPLE), np.random.default_rng(0), []
    for _ in range(50):
        n = int(rng.integers(1, 40))
        weights = rng.random((n, n)) ** 5
        cases.append((weights.ravel().tolist(), n, int(rng.integers(n)), bool(rng.integers(2))))
    found = page.evaluate(
        """async (cases) => { const { strongest } = await import("/static/lib/arcs.js");
             return cases.map(([w, n, i, column]) => strongest(new Float64Array(w), n, i, { column })); }""",
        cases,
    )
    for (weights, n, i, column), pairs in zip(cases, found, strict=True):
        row = np.array(weights).reshape(n, n)[:, i] if column else np.array(weights).reshape(n, n)[i]
        order = [int(j) for j in np.argsort(-row, kind="stable")[:12] if row[j] >= 0.02]
        assert [j for j, _ in pairs] == order


@pytest.mark.slow
def test_a_hardened_query_stands_beside_the_models_own(watched):
    page = shown(watched().open(EXAMPLE))
    page.get_by_role("button", name="Harden this query").click()
    expect(page.locator("[data-fact=hardened]")).to_be_visible(timeout=90_000)
    expect(page.locator(".token-detail thead")).to_contain_text("hardened")


@pytest.mark.slow
def test_a_text_of_ones_own_and_one_that_is_too_long(watched):
    one = watched()
    page = shown(one.open(EXAMPLE))
    page.get_by_label("Text", exact=True).fill("to be or not to be")
    page.get_by_role("button", name="Look", exact=True).click()
    expect(page.locator(".shaded")).to_have_text("[start] to be or not to be")
    page.get_by_label("Text", exact=True).fill("word " * 64)
    page.get_by_role("button", name="Look", exact=True).click()
    expect(page.locator(".problem").first).to_contain_text("64 words, and the example takes 63")
    expect(page.locator(".one-head")).to_have_count(0)  # what was shown is about another text
    one.settled()
    one.said = [said for said in one.said if "422" not in said]  # the browser logs the status


@pytest.mark.slow
def test_a_run_is_looked_at_too_and_its_code_works(watched):
    page = shown(watched().open("heads?model=tiny&layer=1&head=1&token=6&text=Where was Person 3 born?"))
    expect(page.locator("[data-fact=title]")).to_contain_text("Head 1.1, ")
    code = page.locator("[data-python]").text_content()
    assert "qkv.heads.open(" in code
    names = {}
    exec(compile(code, "copied", "exec"), names)
    weight = page.locator("[data-weight]").first.inner_text()
    assert names["view"].looked_up[0].weight == pytest.approx(float(weight), abs=6e-4)


def test_a_model_that_was_not_named_is_not_opened(watched):
    one = watched()
    page = one.open("heads?model=elsewhere")
    expect(page.locator(".problem")).to_contain_text("There is no model elsewhere on this server")
    assert not [to for to, _ in one.bodies if to.startswith("/api/heads")]


@pytest.mark.slow
def test_pictures_and_numbers_are_saved(watched):
    page = shown(watched().open(EXAMPLE))
    drawn = downloaded(page, "heads", "SVG").decode()
    assert "Head 1.0, induction" in drawn and drawn.count("<path") >= 3
    downloaded(page, "heads", "JSON")


@pytest.mark.slow
def test_the_effects_are_measured_as_a_job(watched):
    page = shown(watched().open("heads?model=tiny&text=Where was Person 3 born?"))
    page.get_by_role("button", name="Measure what is lost").click()
    expect(page.locator(".heads-table thead")).to_contain_text("effect", timeout=120_000)
    assert all(
        re.fullmatch(r"[−+][\d.e-]+", t) for t in page.locator(".heads-table td:nth-child(8)").all_text_contents()
    )


@pytest.mark.slow
def test_the_question_has_the_same_arcs_on_knowledge(watched):
    page = watched().open("knowledge?q=Where was Person 3 born?")
    figure = page.locator(".asked-head figure")
    expect(figure.locator(".arcs svg")).to_be_visible()
    expect(figure.locator("h2")).to_contain_text("“(answer)” looks most at")
    page.locator("[data-name=asked-head]").select_option("0.1")
    expect(figure.locator("h2")).to_contain_text("Head 0.1:")
