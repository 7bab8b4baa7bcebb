"""The report: one page that fetches nothing and escapes what it is given."""

from qkv.claims.pipeline import check
from qkv.viz import html_report


def test_text_from_results_is_escaped_and_indices_are_set_low():
    page = html_report.page("<b>", "lead", [html_report.Chapter("A <script>", ("v_a & `v_a < 1`",))])
    assert "<script>" not in page and "<b>" not in page
    assert "v<sub>a</sub> &amp; <code>v_a &lt; 1</code>" in page


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
    assert "2 claims: 1 proved, 1 refuted." in page and "✓ proved: one" in page and "✗ refuted: one" in page


def test_a_page_is_written_atomically(tmp_path):
    html_report.write(tmp_path / "r.html", "t", "l", [html_report.Chapter("c", ("text",))])
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == html_report.page(
        "t", "l", [html_report.Chapter("c", ("text",))]
    )
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]
