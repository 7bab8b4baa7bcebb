"""The theme: colours of one style sheet, figures that leave matplotlib's global settings alone, and files."""

import inspect
import subprocess
import sys
import time

import matplotlib
import pytest

import qkv
from qkv.viz import theme
from qkv.viz.plots import design, knowledge, noise, studies, training


def test_colours_in_pictures_are_those_of_the_style_sheet():
    memory = qkv.Memory.orthonormal(4, 4)
    drawn = theme.figure_svg(design.reading(memory, qkv.design.blend(memory, {0: 0.5, 1: 0.5})))
    tokens = theme.tokens()
    assert tokens["item-a"] in drawn and tokens["item-b"] in drawn
    assert f"var(--ink, {tokens['ink']})" in drawn and f'"{tokens["ink"]}"' not in drawn
    assert tokens["item-a"] == "#e69f00" and tokens["item-b"] == "#0072b2"  # Okabe and Ito's orange and blue


@pytest.mark.parametrize("suffix", [".svg", ".png", ".html", ".pdf", ".PDF", ".Svg"])
def test_pictures_are_written_in_each_format_and_others_are_refused(suffix, tmp_path):
    drawn = design.shares([2, 4], [0.1, 0.5], 10)
    path, starts = tmp_path / f"p{suffix}", {"svg": b"<?xml", "png": b"\x89PNG", "html": b"<!doctype", "pdf": b"%PDF-"}
    theme.save(drawn, path)
    assert path.read_bytes().startswith(starts[suffix[1:].lower()])
    with pytest.raises(qkv.QkvError, match="gif"):
        theme.save(drawn, tmp_path / "p.gif")
    assert [p.suffix for p in tmp_path.iterdir()] == [suffix]


@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".png"])
def test_a_figure_that_is_saved_twice_is_the_same_file(suffix, tmp_path, monkeypatch):
    written = []
    for epoch in (0, 10**9):
        monkeypatch.setattr(time, "time", lambda epoch=epoch: float(epoch))
        theme.save(design.shares([2, 4], [0.1, 0.5], 10), tmp_path / f"p{suffix}")
        written.append((tmp_path / f"p{suffix}").read_bytes())
    assert written[0] == written[1] and (suffix != ".pdf" or b"CreationDate" not in written[0])


def test_places_where_nothing_can_be_written_are_refused_before_the_work(tmp_path):
    (tmp_path / "folder.svg").mkdir()
    for path, says in (
        ("none/p.svg", "does not exist"),
        ("folder.svg", "is a folder"),
        ("p", "'' is not"),
        ("p.", "''"),
    ):
        with pytest.raises(qkv.QkvError, match=says):
            theme.check_plot_path(tmp_path / path)
    assert theme.check_plot_path(None) is None and theme.check_plot_path(tmp_path / "p.pdf") is None


def test_a_title_is_escaped_in_html(tmp_path):
    theme.save(design.shares([2, 4], [0.1, 0.5], 10), tmp_path / "p.html", "a < b")
    assert "<title>a &lt; b</title>" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_a_plot_function_and_saving_leave_the_global_settings_as_they_were(make_figure, tmp_path):
    settings = dict(matplotlib.rcParams)
    drawn = make_figure()
    assert dict(matplotlib.rcParams) == settings
    theme.figure_svg(drawn)
    theme.save(drawn, tmp_path / "p.png")
    assert dict(matplotlib.rcParams) == settings


@pytest.mark.slow
def test_a_figure_does_not_depend_on_the_caller_s_settings(make_figure):
    expected = theme.figure_svg(make_figure())
    with matplotlib.rc_context({"lines.linewidth": 7, "text.color": "red", "xtick.color": "red", "font.size": 30}):
        assert theme.figure_svg(make_figure()) == expected
        drawn = make_figure()
    assert theme.figure_svg(drawn) == expected  # drawn later, under other settings than it was made


def test_every_plot_function_has_an_example(figures):
    """The two tests above cover every public function that returns a figure."""
    public = {
        f"{module.__name__.rsplit('.', 1)[1]}.{name}"
        for module in (design, knowledge, noise, studies, training)
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert public - {"studies.study_figure"} <= set(figures)
    assert {name for name in figures if name.startswith("studies.")}


def test_pyplot_is_not_imported_and_no_figure_is_registered_with_it():
    code = (
        "import sys; from qkv.viz import theme; from qkv.viz.plots.design import shares; "
        "theme.figure_svg(shares([2, 4], [0.1, 0.5], 10)); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_style_sheet_is_read_without_matplotlib():
    code = "import sys; from qkv.viz import theme; theme.css(); theme.tokens(); assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
