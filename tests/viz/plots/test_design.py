"""Pictures of designs show the numbers that they are given."""

import numpy as np
import pytest

import qkv
from qkv.design import blend, copyable
from qkv.viz import theme
from qkv.viz.plots import design

SQUARE = np.array([[0.0, 0], [4, 0], [0, 4], [1, 1]])


def test_reading_draws_the_weights_of_the_designed_query():
    memory = qkv.Memory.orthonormal(4, 4)
    found = blend(memory, {0: 0.5, 1: 0.5})
    left, _ = design.reading(memory, found).axes
    scores = memory.keys.numpy() @ found.query.numpy()
    weights = np.exp(scores) / np.exp(scores).sum()
    assert [bar.get_height() for bar in left.patches] == pytest.approx(weights.tolist())


def test_hull_counts_corners_and_marks_each_key():
    (axes,) = design.hull(qkv.Memory(SQUARE), copyable(SQUARE)).axes
    assert "3 corners" in axes.get_title(loc="left") and "the 1 other" in axes.get_title(loc="left")
    marked = {tuple(line.get_xydata()[0]) for line in axes.lines if len(line.get_xydata()) == 1}
    assert marked == {tuple(point) for point in SQUARE}


def test_margins_has_one_entry_a_selectable_key():
    (axes,) = design.margins(copyable(SQUARE)).axes
    assert sum(bar.get_height() for bar in axes.patches) == 3
    assert axes.get_title(loc="left") == "3 of 4 keys can be selected"


def test_shares_draws_the_given_shares():
    (axes,) = design.shares([2, 4, 8], [0.1, 0.5, 0.9], 10).axes
    assert axes.lines[0].get_xydata().tolist() == [[2, 0.1], [4, 0.5], [8, 0.9]]


def test_wiring_shows_the_weights_and_three_matrices(figures):
    boxes = figures["design.wiring"]().axes
    weights = np.asarray(boxes[0].images[0].get_array())
    assert len(boxes) == 4 and np.allclose(weights.sum(1), 1) and weights[0, 2] > 0.99 and weights[1, 0] > 0.99


def test_reach_draws_curves_that_stay_above_the_certified_distance(figures):
    (axes,) = figures["design.reach"]().axes
    curves = [line.get_ydata() for line in axes.lines if len(line.get_xdata()) > 10]
    bounds = [line.get_ydata()[0] for line in axes.lines if len(line.get_xdata()) == 2]
    assert len(curves) == len(bounds) == 2
    assert all(min(curve) >= bound > 0 for curve, bound in zip(curves, bounds, strict=True))


def test_pictures_of_every_kind_are_drawn():
    answers = copyable(SQUARE)
    for drawn in (design.hull(qkv.Memory(SQUARE), answers), design.margins(answers), design.subspaces()):
        assert theme.svg(drawn).count("<path") > 3
