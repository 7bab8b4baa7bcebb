"""A matplotlib figure that is drawn with rc parameters of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure


class RcFigure(Figure):
    """A figure that applies its rc parameters whenever it is drawn.

    Matplotlib reads some parameters only when it draws (further ticks, text in an SVG file and the ids in it), which
    may be long after the figure was made: on saving, or in a notebook. The global `rcParams` stay as they are.

    The figure is not registered with pyplot: no backend is switched, and nothing has to be closed.
    """

    def __init__(self, rc: Mapping[str, Any], **options: Any) -> None:
        self._rc = dict(rc)
        with matplotlib.rc_context(self._rc):
            super().__init__(**options)

    def draw(self, renderer: RendererBase) -> None:
        """Draw the figure with its rc parameters."""
        with matplotlib.rc_context(self._rc):
            super().draw(renderer)
