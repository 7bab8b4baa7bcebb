"""The report: one page that fetches nothing and escapes what it is given."""

from qkv.claims.pipeline import check
from qkv.claims.verdict import Verdict
from qkv.core.display import Card, Displayable
from qkv.viz import html_report


def test_text_from_results_is_escaped_and_indices_are_set_low():
    page = html_report.page("<b>", "lead", [html_report.Chapter("A <script>", ("v_a & `v_a < 1`",))])
    assert "<script>" not in page and "<b>" not in page
    assert 'v<sub>a</sub> &amp; <code>v_a <span class="whole">&lt; 1</span></code>' in page


def test_pictures_keep_their_ids_apart():
    drawn = '<svg><clipPath id="c"/><path clip-path="url(#c)"/><use href="#c"/></svg>'
    picture = html_report.Picture(drawn, "caption", "qkv tour")
    page = html_report.page("t", "l", [html_report.Chapter("One", (picture, picture))])
    for number in (0, 1):
        assert page.count(f'id="one-{number}-c"') == page.count(f"url(#one-{number}-c)") == 1
        assert page.count(f'href="#one-{number}-c"') == 1


def test_a_page_of_claims_counts_and_shows_each_verdict():
    verdicts = check("```claim one\ngiven k_1..k_n free, q free\nthen alpha_i >= 0\nthen alpha_i > 2\n```\n")
    page = html_report.claims_page([("Mine", verdicts)])
    assert (
        "2 claims: 1 proved, 1 refuted." in page
        and ">✓ proved</span>: one" in page
        and ">✗ refuted</span>: one" in page
    )


def test_a_page_is_written_atomically(tmp_path):
    html_report.write(tmp_path / "r.html", "t", "l", [html_report.Chapter("c", ("text",))])
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == html_report.page(
        "t", "l", [html_report.Chapter("c", ("text",))]
    )
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


def test_formulas_are_set_and_long_parts_are_behind_disclosures():
    verdicts = check(
        "```claim one\ngiven k_1..k_n orthonormal, n >= 3, t > 0\nlet q = t*(k_a + k_b)\nthen alpha_a > 0.49\n"
        + "then $\\alpha_a < \\frac{1}{2}$\n" * 10
        + "```\n"
    )
    page = html_report.claims_page([("Mine", verdicts)])
    assert "\\frac" not in page and "<mfrac>" in page
    assert "<details><summary>All 11 rows</summary><table" in page and "<details open" not in page
    assert "Derivation, " in page and page.count("<details") == page.count("</details>")


def test_a_formula_that_is_not_known_stays_as_it_was_written():
    verdict = Verdict("odd", "undecided", r"$\wp x$", "a < b")
    page = html_report.page("t", "l", [html_report.Chapter("One", (verdict,))])
    assert r"<code>$\wp x$</code>" in page and "<mi>a</mi><mo>&lt;</mo><mi>b</mi>" in page


def test_a_long_card_shows_its_first_facts():
    class Long(Displayable):
        def card(self):
            return Card("Long", tuple((f"fact {i}", str(i)) for i in range(12)), ("i",), (("<1>",),))

    page = html_report.page("t", "l", [html_report.Chapter("One", (Long(),))])
    assert "<summary>3 more</summary>" in page and "<td>&lt;1&gt;</td>" in page


def test_a_reason_begins_with_a_capital_letter_and_names_functions_as_code():
    assert html_report.sentence("both sides agree, as `harden` says") == "Both sides agree, as <code>harden</code> says"
    assert html_report.sentence("lambda -> 0").startswith("<math>")


def test_columns_of_numbers_are_set_to_the_right():
    class Table(Displayable):
        def card(self):
            return Card("T", columns=("name", "share", "bound"), rows=(("a", "75 %", "≤ 1e-05"), ("b", "9 %", "–")))

    page = html_report.page("T", "", [html_report.Chapter("One", (Table(),))])
    assert '<th>name</th><th class="n">share</th><th class="n">bound</th>' in page and page.count('<td class="n">') == 4
