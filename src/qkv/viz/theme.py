"""Colours of theme.css, and matplotlib figures in them, without changing matplotlib's global settings."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.core.files import check_output_path, replacing, write_text
from qkv.errors import QkvError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLOT_SUFFIXES = (".svg", ".pdf", ".png", ".html")
SAVE_OPTIONS: dict[str, dict[str, Any]] = {
    ".svg": {"format": "svg", "metadata": {"Date": None}},
    ".pdf": {"format": "pdf", "metadata": {"CreationDate": None}},
    ".png": {"format": "png", "dpi": 200},
}
"""Options of matplotlib's savefig; no file holds the time at which it was written."""


@cache
def css() -> str:
    """The text of theme.css."""
    return resources.files("qkv.viz").joinpath("theme.css").read_text(encoding="utf-8")


@cache
def tokens() -> dict[str, str]:
    """Colours of the light theme, by custom property without its leading dashes."""
    light = css().split("@media")[0]
    return dict(re.findall(r"--([a-z-]+):\s*(#[0-9a-f]{6})", light))


@cache
def rc_parameters() -> dict[str, Any]:
    """The matplotlib rc parameters of the theme."""
    t = tokens()
    return {
        "font.family": "sans-serif",
        "font.size": 9.5,
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.titlepad": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": t["quiet"],
        "axes.labelcolor": t["quiet"],
        "xtick.color": t["quiet"],
        "ytick.color": t["quiet"],
        "text.color": t["ink"],
        "axes.titlecolor": t["ink"],
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "svg.fonttype": "none",
        "svg.hashsalt": "qkv",
        "lines.linewidth": 2.0,
    }


@contextmanager
def rc_context() -> Iterator[None]:
    """Apply the theme's rc parameters inside a block, or as the decorator `@rc_context()` inside a plot function.

    Matplotlib reads most parameters when an artist is created, so a plot function runs inside this context; the
    parameters that it reads on drawing are applied by `RcFigure`. Outside, `matplotlib.rcParams` is unchanged.
    """
    import matplotlib  # here, since the web pages read this module for its style sheet and draw nothing

    with matplotlib.rc_context(rc_parameters()):
        yield


@rc_context()
def figure(columns: int = 1, height: float = 2.9, width: float = 7.2, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure with `columns` axes side by side, `width` by `height` inches; `options` go to `Figure.subplots`."""
    from qkv.viz.rc_figure import RcFigure

    drawn = RcFigure(rc_parameters(), tokens()["paper"], figsize=(width, height), layout="constrained")
    axes = drawn.subplots(1, columns, squeeze=False, **options)
    return drawn, list(axes[0])


def figure_svg(drawn: Figure) -> str:
    """The figure as an SVG element whose text and lines take the page's colours, so that it suits a dark page too."""
    buffer = io.StringIO()
    drawn.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    for name in ("ink", "quiet", "faint", "paper"):
        text = text.replace(tokens()[name], f"var(--{name}, {tokens()[name]})")
    return re.sub(r"font: ([\d.]+px) [^;\"]*", r"font: \1 system-ui, sans-serif", text)


def save(drawn: Figure, path: str | Path, title: str = "qkv") -> None:
    """Write a figure as .svg, .pdf, .png or .html, atomically.

    Raises:
        QkvError: The suffix is none of these, or nothing can be written there.
    """
    path = Path(path)
    check_plot_path(path)
    suffix = path.suffix.lower()
    if suffix == ".html":
        head = f"<!doctype html><meta charset='utf-8'><title>{html.escape(title)}</title><style>{css()}</style>"
        write_text(path, f"{head}\n<main><figure>{figure_svg(drawn)}</figure></main>\n")
        return
    with replacing(path) as temporary:
        drawn.savefig(temporary, facecolor=tokens()["paper"], **SAVE_OPTIONS[suffix])


def check_plot_path(path: str | Path | None) -> None:
    """Check that a figure can be written to `path`, before any work is done.

    Raises:
        QkvError: The suffix is not .svg, .pdf, .png or .html, or nothing can be written there.
    """
    if path is None:
        return
    if Path(path).suffix.lower() not in PLOT_SUFFIXES:
        raise QkvError(
            f"plotting to {path}",
            f"'{Path(path).suffix}' is not a supported picture format",
            f"Use {', '.join(PLOT_SUFFIXES)}",
        )
    check_output_path(path)
