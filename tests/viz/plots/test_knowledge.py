"""Pictures of answers show the weights, counts and accuracies that they are given."""

import pytest


def test_heads_have_a_bar_each_with_the_heaviest_on_top(figures):
    (axes,) = figures["knowledge.heads"]().axes
    assert [bar.get_width() for bar in axes.patches] == [0.2, 0.7]
    assert "Layer 1, head 0" in axes.get_title(loc="left")


def test_reliability_draws_nonempty_bins_and_counts_by_badge(figures):
    left, right = figures["knowledge.reliability"]().axes
    points = [tuple(line.get_xydata()[0]) for line in left.lines if line.get_marker() == "o"]
    assert points == [(0.2, 0.25), (0.9, 0.8)]  # the bin in the middle is empty
    assert sum(bar.get_width() for bar in right.patches) == 3 * (6 + 2 + 1)
    assert "7.0 points" not in left.get_title(loc="left")  # |0.2 - 0.25| · 0.4 + |0.9 - 0.8| · 0.6
    assert f"{100 * (0.05 * 0.4 + 0.1 * 0.6):.1f} points" in left.get_title(loc="left")


def test_curve_draws_accuracy_against_minutes_beside_what_is_published(figures):
    (axes,) = figures["knowledge.curve"]().axes
    assert axes.lines[-1].get_xydata().tolist() == [[1, 0.2], [10, 0.6]]
    assert axes.lines[0].get_ydata()[0] == pytest.approx(0.4)
