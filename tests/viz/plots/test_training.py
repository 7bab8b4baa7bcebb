"""The picture of a run shows its log."""

import numpy as np

from qkv.train.metrics_log import History
from qkv.viz.plots.training import losses


def test_losses_are_drawn_as_logged_smoothed_and_validated():
    steps, raw = tuple(range(1, 41)), tuple(1 + 1 / i for i in range(1, 41))
    (axes,) = losses(History(steps, raw, (20, 40), (1.2, 1.1))).axes
    given, smooth, validation = (line.get_xydata() for line in axes.lines)
    assert np.allclose(given, np.stack([steps, raw], 1))
    assert np.allclose(smooth[:, 1], [(raw[i] + raw[i + 1]) / 2 for i in range(39)])  # a window of a twentieth
    assert validation.tolist() == [[20, 1.2], [40, 1.1]]


def test_an_empty_log_is_drawn_without_points():
    (axes,) = losses(History((), (), (), ()), "nothing yet").axes
    assert axes.get_title(loc="left") == "nothing yet" and not len(axes.lines[0].get_xydata())
