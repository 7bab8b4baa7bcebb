"""Plots of designs show the numbers of the results."""

import numpy as np
import pytest
import torch

import qkv
from qkv.viz import theme
from qkv.viz.plots import design as plots


def title(axes):
    return axes.get_title("left") or axes.get_title()


def texts(axes):
    return [t.get_text() for t in axes.texts]


def test_the_bars_are_the_weights_and_the_point_is_the_certified_distance():
    memory = qkv.Memory.orthonormal(6, 8)
    design = qkv.design.blend(memory, {2: 0.25, 4: 0.75})
    left, right = plots.reading(memory, design).axes
    weights = memory.read(design.query).weights
    heights = [bar.get_height() for bar in left.patches]
    order = [int(label.get_text()) for label in left.get_xticklabels()]
    assert order[:2] == [2, 4] and sorted(order) == list(range(6))
    assert heights == pytest.approx(weights[order].tolist())
    curve, _, point = right.lines
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (design.scale, design.distance)
    at = np.argmin(np.abs(curve.get_xdata() - design.scale))
    assert curve.get_ydata()[at] == pytest.approx(design.distance, rel=0.2)


def test_many_items_are_cut_to_the_heaviest():
    memory = qkv.Memory(np.random.default_rng(0).standard_normal((60, 8)))
    left, _ = plots.reading(memory, qkv.design.copy(memory, 7)).axes
    assert len(left.patches) == plots.MAX_BARS and left.get_xticklabels()[0].get_text() == "7"


def test_a_design_without_a_scale_says_so():
    memory = qkv.Memory.orthonormal(4, 6)
    _, right = plots.reading(memory, qkv.design.copy(memory, 0, tol=0.8)).axes
    assert "No query is needed" in title(right)


def test_an_arrow_is_drawn_for_every_vertex_of_the_hull():
    keys = np.random.default_rng(1).standard_normal((25, 2))
    result = qkv.design.copyable(keys)
    (axes,) = plots.hull(qkv.Memory(keys), result).axes
    arrows = [t for t in axes.texts if getattr(t, "arrow_patch", None) is not None]
    assert len(arrows) == len(result.vertices)
    assert f"The {len(result.vertices)} corners" in title(axes)


def test_the_histogram_counts_every_finite_margin():
    result = qkv.design.copyable(np.random.default_rng(2).standard_normal((80, 5)))
    (axes,) = plots.margins(result).axes
    assert sum(bar.get_height() for bar in axes.patches) == len(result.vertices)
    assert title(axes) == f"{len(result.vertices)} of 80 keys can be selected"


def test_the_projection_in_the_picture_is_exact():
    (axes,) = plots.subspaces().axes
    assert "M s = v_a" in texts(axes) and "span B" in texts(axes)


def test_the_wiring_shows_the_weights_of_self_attention():
    X = 3 * torch.eye(3, dtype=torch.float64)
    wiring = qkv.design.wire(X, {0: 2, 1: 0}, {0: [1.0], 1: [0.0]})
    axes = plots.wiring(X, wiring.Q, wiring.K, wiring.V).axes
    shown = np.asarray(axes[0].images[0].get_array())
    assert np.allclose(shown, qkv.self_attention(X, wiring.Q, wiring.K, wiring.V).weights)
    assert np.array_equal(np.asarray(axes[3].images[0].get_array()), wiring.V.numpy())


def test_the_curve_of_a_token_stays_above_the_certified_bound():
    a, b, c, d = 4 * np.eye(4)
    X = np.array([d + b, a, c + b])
    found = qkv.design.reach(X, 1, d, b)
    (axes,) = plots.reach(X, 1, {"u_d": (d, found)}, b).axes
    curve, bound = axes.lines
    assert min(curve.get_ydata()) >= found.at_least == bound.get_ydata()[0]
    assert title(axes) == "No multiple brings the output to the target"


def test_shares_are_annotated_in_percent():
    (axes,) = plots.shares([2, 4], [0.1, 0.55], 400).axes
    assert {"10 %", "55 %"} <= set(texts(axes)) and "400" in title(axes)


def test_pictures_of_every_kind_are_drawn():
    keys = np.array([[0.0, 0], [4, 0], [0, 4], [1, 1]])
    answers = qkv.design.copyable(keys)
    for drawn in (plots.hull(qkv.Memory(keys), answers), plots.margins(answers), plots.subspaces()):
        assert theme.figure_svg(drawn).count("<path") > 3
