"""The curve of right answers against minutes of training."""

from __future__ import annotations

import numpy as np

from qkv.viz.plots.knowledge import accuracy_curve


def test_the_curve_shows_every_point_with_its_interval_and_what_was_published():
    points = [{"minutes": m, "accuracy": a, "low": a - 0.05, "high": a + 0.04} for m, a in ((1, 0.5), (4, 0.9))]
    (axes,) = accuracy_curve(points, {"best": 0.38}).axes
    shown = [text.get_text() for text in axes.texts]
    assert shown == ["published, best: 38 %", "50.0 %", "90.0 %"] and "90 %" in axes.get_title(loc="left")
    heights = [line.get_ydata() for line in axes.lines]
    assert any(np.allclose(y, [0.85, 0.94]) for y in heights) and any(np.allclose(y, [0.5, 0.9]) for y in heights)
