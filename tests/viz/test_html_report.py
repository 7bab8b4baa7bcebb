"""The look and the page: one set of colours, nothing fetched, nothing that can be injected."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import qkv
from qkv.tour import CHAPTERS, run
from qkv.viz import html_report, theme
from qkv.viz.plots import design as plots


class Balance(HTMLParser):
    """Counts open elements, and collects what would be fetched and which ids and anchors there are."""

    VOID = frozenset({"meta", "br", "img", "path", "use", "rect", "link"})

    def __init__(self):
        super().__init__()
        self.open, self.fetched, self.ids, self.anchors = [], [], [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.fetched += [
            v for k, v in attrs if k in ("src", "href", "xlink:href") and v and not v.startswith(("#", "data:"))
        ]
        self.anchors += [v[1:] for k, v in attrs if k in ("href", "xlink:href") and v and v.startswith("#")]
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def parsed(text):
    page = Balance()
    page.feed(text)
    assert page.open == []
    return page


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    return run(tmp_path_factory.mktemp("tour")).read_text(encoding="utf-8")


def test_the_tour_is_one_page_that_fetches_nothing_and_whose_anchors_lead_somewhere(tour):
    page = parsed(tour)
    assert page.fetched == []
    assert set(page.anchors) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert not re.search(r"@import|url\((?!#)", tour)


def test_the_tour_has_a_chapter_for_each_function_and_pictures_with_their_commands(tour):
    assert tour.count("<h2") == len(CHAPTERS)
    assert tour.count("<figure>") == tour.count("<figcaption>") >= 6
    assert tour.count("<pre>") == tour.count("<figure>")
    assert "8.293049" in tour  # log(8 · 0.999 / 0.002), the smallest t
    assert "Certificate holds" in tour and "REFUSED" not in tour


def test_colours_in_pictures_are_those_of_the_style_sheet():
    memory = qkv.Memory.orthonormal(4, 4)
    drawn = theme.svg(plots.reading(memory, qkv.design.blend(memory, {0: 0.5, 1: 0.5})))
    tokens = theme.tokens()
    assert tokens["item-a"] in drawn and tokens["item-b"] in drawn
    assert f"var(--ink, {tokens['ink']})" in drawn and f'"{tokens["ink"]}"' not in drawn
    assert tokens["item-a"] == "#e69f00" and tokens["item-b"] == "#0072b2"  # Okabe and Ito's orange and blue


def test_text_from_results_is_escaped_and_indices_are_set_low():
    page = html_report.page("<b>", "lead", [html_report.Chapter("A <script>", ("v_a & `v_a < 1`",))])
    assert "<script>" not in page and "<b>" not in page
    assert "v<sub>a</sub> &amp; <code>v_a &lt; 1</code>" in page


@pytest.mark.parametrize("suffix", [".svg", ".png", ".html"])
def test_pictures_are_written_whole_in_each_format(suffix, tmp_path):
    drawn = plots.shares([2, 4], [0.1, 0.5], 10)
    theme.save(drawn, tmp_path / f"p{suffix}")
    start = (tmp_path / f"p{suffix}").read_bytes()[:20]
    assert start.startswith({".svg": b"<?xml", ".png": b"\x89PNG", ".html": b"<!doctype"}[suffix])
    with pytest.raises(qkv.QkvError, match="gif"):
        theme.save(drawn, tmp_path / "p.gif")
    assert [p.suffix for p in tmp_path.iterdir()] == [suffix]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(qkv.QkvError, match="--out"):
        run(tmp_path / "file" / "tour")


def test_pictures_of_every_kind_are_drawn():
    keys = np.array([[0.0, 0], [4, 0], [0, 4], [1, 1]])
    answers = qkv.design.copyable(keys)
    for drawn in (plots.hull(qkv.Memory(keys), answers), plots.margins(answers), plots.subspaces()):
        assert theme.svg(drawn).count("<path") > 3
