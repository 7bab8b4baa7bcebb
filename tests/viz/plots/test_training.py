"""The loss curve of a run."""

import numpy as np

from qkv.train.metrics_log import History
from qkv.viz.plots.training import losses


def test_the_curve_shows_the_losses_their_moving_average_and_the_last_values():
    raw = tuple(np.random.default_rng(0).uniform(1, 2, 60).tolist())
    steps = tuple(range(10, 610, 10))
    (axes,) = losses(History(steps, raw, (300, 600), (1.5, 1.25))).axes
    lines = [(line.get_xdata(), line.get_ydata()) for line in axes.lines]
    assert np.array_equal(lines[0][0], steps) and np.array_equal(lines[0][1], raw)
    mean = [np.mean(raw[i : i + 3]) for i in range(58)]  # a window of a twentieth of the points
    assert np.array_equal(lines[1][0], steps[2:]) and np.allclose(lines[1][1], mean)
    assert np.array_equal(lines[2][1], (1.5, 1.25))
    assert {text.get_text() for text in axes.texts} == {f"training {raw[-1]:.3g}", "validation 1.25"}
    assert axes.get_ylim()[0] == 0


def test_a_run_without_a_log_gives_an_empty_picture():
    (axes,) = losses(History((), (), (), ()), title="nothing yet").axes
    assert not axes.texts and axes.get_title(loc="left") + axes.get_title() == "nothing yet"
