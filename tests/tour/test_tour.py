"""The tour is one page: nothing is fetched, and its anchors lead somewhere."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

import qkv
from qkv.tour import CHAPTERS, explorer_commands, run


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


LONG = ("claims become verdicts", "remembered or made up")  # most of the time; what they show has tests of its own


@pytest.fixture(scope="module", params=["short", pytest.param("whole", marks=pytest.mark.slow)])
def chapters(request):
    """Which chapters are written: all of them, or in `make test` those that take little time."""
    return CHAPTERS if request.param == "whole" else tuple(each for each in CHAPTERS if each[0] not in LONG)


@pytest.fixture(scope="module")
def tour(chapters, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qkv.tour.CHAPTERS", chapters)
        return run(tmp_path_factory.mktemp("tour")).read_text(encoding="utf-8")


def test_the_long_chapters_are_chapters():
    assert set(LONG) < {name for name, _ in CHAPTERS}


def test_the_tour_is_one_page_that_fetches_nothing_and_whose_anchors_lead_somewhere(tour):
    page = parsed(tour)
    assert page.fetched == []
    assert set(page.anchors) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert not re.search(r"@import|url\((?!#)", tour)


def test_the_tour_has_a_chapter_for_each_function_and_pictures_with_their_commands(tour, chapters):
    assert tour.count("<h2") == len(chapters)
    assert tour.count("<figure>") == tour.count("<figcaption>") >= 6
    assert tour.count("<pre>") == tour.count("<figure>")
    assert "8.293049" in tour  # log(8 · 0.999 / 0.002), the smallest t
    assert "Certificate holds" in tour and "REFUSED" not in tour


def test_the_tour_prints_on_at_most_fifteen_pages(tour, tmp_path):
    chromium = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("printing needs chromium")
    (tmp_path / "tour.html").write_text(tour, encoding="utf-8")
    flags = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
    )
    made = (f"--user-data-dir={tmp_path / 'profile'}", f"--print-to-pdf={tmp_path / 'tour.pdf'}", "--disable-sync")
    page = (tmp_path / "tour.html").as_uri()
    subprocess.run([chromium, *flags, *made, page], check=True, capture_output=True, timeout=120)
    pages = len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "tour.pdf").read_bytes()))
    assert 5 <= pages <= 15


def test_the_tour_shows_no_raw_latex(tour):
    assert r"\frac" not in tour and "<math" in tour


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(qkv.QkvError, match="--out"):
        run(tmp_path / "file" / "tour")


@pytest.mark.parametrize("has_web", [True, False])
def test_the_explorer_is_started_by_a_command_that_works_here(has_web, monkeypatch, tmp_path):
    program = tmp_path / ".venv" / "bin" / "qkv"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.executable", str(program.with_name("python")))
    monkeypatch.setattr(qkv.tour, "find_spec", lambda name: has_web or None)
    monkeypatch.setenv("PATH", "/nowhere")
    *install, start = explorer_commands().split(" && ")
    assert start == ".venv/bin/qkv serve" and (tmp_path / start.split()[0]).is_file()
    assert bool(install) is not has_web
    assert has_web or (install[0].startswith(".venv/bin/python -m pip install ") and '"fastapi' in install[0])
    monkeypatch.setenv("PATH", str(program.parent))
    assert explorer_commands().endswith("qkv serve") and ".venv/bin/qkv" not in explorer_commands()
