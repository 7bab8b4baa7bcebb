"""One look for plots, report and page: the tokens of look.css, and pictures drawn with them."""

from __future__ import annotations

import io
import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.core.files import replacing, write_text
from qkv.errors import QkvError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLOTTABLE = (".svg", ".png", ".html")


@cache
def css() -> str:
    """The style sheet."""
    return resources.files("qkv.viz").joinpath("theme.css").read_text(encoding="utf-8")


@cache
def tokens() -> dict[str, str]:
    """Colours by their meaning, as the light theme has them."""
    light = css().split("@media")[0]
    return dict(re.findall(r"--([a-z-]+):\s*(#[0-9a-f]{6})", light))


def figure(columns: int = 1, height: float = 2.9, width: float = 7.2, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure with that many plots side by side."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    from matplotlib import pyplot

    t = tokens()
    style = {
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
    pyplot.rcParams.update(style)
    drawn, axes = pyplot.subplots(1, columns, figsize=(width, height), layout="constrained", squeeze=False, **options)
    pyplot.close(drawn)  # it lives on as a value; the global list of figures need not hold it
    return drawn, list(axes[0])


def svg(drawn: Figure) -> str:
    """The figure as an SVG element that takes its inks from the page, so that it is right in the dark too."""
    buffer = io.StringIO()
    drawn.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    for name in ("ink", "quiet", "faint", "paper"):
        text = text.replace(tokens()[name], f"var(--{name}, {tokens()[name]})")
    return re.sub(r"font: ([\d.]+px) [^;\"]*", r"font: \1 system-ui, sans-serif", text)


def save(drawn: Figure, path: str | Path, title: str = "qkv") -> None:
    """Write a figure as .svg, .png or .html, whole or not at all."""
    path = Path(path)
    check_plot(path)
    if path.suffix == ".html":
        head = f"<!doctype html><meta charset='utf-8'><title>{title}</title><style>{css()}</style>"
        write_text(path, f"{head}\n<main><figure>{svg(drawn)}</figure></main>\n")
        return
    with replacing(path) as temporary:
        options = {"dpi": 200} if path.suffix == ".png" else {"metadata": {"Date": None}}
        drawn.savefig(temporary, facecolor=tokens()["paper"], **options)


def check_plot(path: str | Path | None) -> None:
    """Refuse a path that cannot be plotted to, before any work is done."""
    if path is not None and Path(path).suffix not in PLOTTABLE:
        raise QkvError(
            f"plotting to {path}",
            f"'{Path(path).suffix}' is not a picture format here",
            f"Use {', '.join(PLOTTABLE)}",
        )
