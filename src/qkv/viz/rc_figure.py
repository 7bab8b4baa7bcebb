"""A matplotlib figure that is drawn with rc parameters of its own."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import matplotlib
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure

NOTEBOOK_DPI = 120
"""Dots per inch of a figure in a notebook."""


class RcFigure(Figure):
    """A figure that applies its rc parameters whenever it is drawn.

    Matplotlib reads some parameters only when it draws (further ticks, text in an SVG file and the ids in it), which
    may be long after the figure was made: on saving, or in a notebook. The global `rcParams` stay as they are.

    The figure is not registered with pyplot: no backend is switched, and nothing has to be closed. A notebook shows it
    as the last line of a cell all the same, on the colour `paper`.
    """

    def __init__(self, rc: Mapping[str, Any], paper: str = "white", **options: Any) -> None:
        self._rc, self._paper = dict(rc), paper
        with matplotlib.rc_context(self._rc):
            super().__init__(**options)

    def draw(self, renderer: RendererBase) -> None:
        """Draw the figure with its rc parameters."""
        with matplotlib.rc_context(self._rc):
            super().draw(renderer)

    def _repr_png_(self) -> bytes:
        """The figure as a notebook shows it, whether or not matplotlib's inline backend is loaded."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=NOTEBOOK_DPI, facecolor=self._paper)
        return buffer.getvalue()
