"""The theme: colours of one style sheet, figures that leave matplotlib's global settings alone, and files."""

import inspect
import subprocess
import sys

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


@pytest.mark.parametrize("suffix", [".svg", ".png", ".html"])
def test_pictures_are_written_in_each_format_and_others_are_refused(suffix, tmp_path):
    drawn = design.shares([2, 4], [0.1, 0.5], 10)
    theme.save(drawn, tmp_path / f"p{suffix}")
    start = (tmp_path / f"p{suffix}").read_bytes()[:20]
    assert start.startswith({".svg": b"<?xml", ".png": b"\x89PNG", ".html": b"<!doctype"}[suffix])
    with pytest.raises(qkv.QkvError, match="gif"):
        theme.save(drawn, tmp_path / "p.gif")
    assert [p.suffix for p in tmp_path.iterdir()] == [suffix]


def test_a_title_is_escaped_in_html(tmp_path):
    theme.save(design.shares([2, 4], [0.1, 0.5], 10), tmp_path / "p.html", "a < b")
    assert "<title>a &lt; b</title>" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_a_plot_function_and_saving_leave_the_global_settings_as_they_were(make_figure, tmp_path):
    settings = dict(matplotlib.rcParams)
    drawn = make_figure()
    assert dict(matplotlib.rcParams) == settings
    theme.figure_svg(drawn)
    for suffix in (".svg", ".png"):
        theme.save(drawn, tmp_path / f"p{suffix}")
    assert dict(matplotlib.rcParams) == settings


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
