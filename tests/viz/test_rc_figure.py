"""A figure with rc parameters of its own."""

import io

import matplotlib

from qkv.viz.rc_figure import RcFigure


def written(figure):
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def test_parameters_that_matplotlib_reads_on_drawing_are_those_of_each_figure():
    salt = {"svg.hashsalt": "x"}
    text, outlines = (RcFigure({**salt, "svg.fonttype": fonttype}, figsize=(2, 2)) for fonttype in ("none", "path"))
    for figure in (text, outlines):
        figure.subplots().plot([0, 1])
    before = dict(matplotlib.rcParams)
    assert "<text" in written(text) and "<text" not in written(outlines)
    assert written(text) == written(text)  # the salt makes ids the same again
    assert dict(matplotlib.rcParams) == before


def test_parameters_are_applied_when_the_figure_is_made():
    assert RcFigure({"figure.facecolor": "#123456"}).get_facecolor()[0] == 0x12 / 255


def test_a_notebook_shows_a_figure_as_the_last_line_of_a_cell_without_pyplot():
    from IPython.core.formatters import DisplayFormatter

    from qkv.viz.theme import figure

    drawn, (axes,) = figure()
    axes.plot([0, 1])
    shown, _ = DisplayFormatter().format(drawn)
    assert shown["image/png"].startswith(b"\x89PNG") or shown["image/png"].startswith("iVBOR")
