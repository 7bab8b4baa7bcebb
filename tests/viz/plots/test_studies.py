"""The picture of each study shows its rows."""

import pytest


def test_accuracies_have_a_bar_a_row(figures):
    (axes,) = figures["studies.extraction"]().axes
    assert [bar.get_width() for bar in axes.patches] == [0.9, 0.1]


def test_capacity_has_a_line_a_model_size(figures):
    (axes,) = figures["studies.capacity"]().axes
    curves = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() == "o"]
    assert curves == [[[50, 0.5], [200, 1.5]], [[50, 0.25], [200, 1.25]]]
    assert axes.get_title(loc="left") == "A remark"


def test_rare_facts_leaves_out_what_was_not_measured(figures):
    (axes,) = figures["studies.rare_facts"]().axes
    curves = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() == "o"]
    assert curves == [[[0.0, 0.1], [0.5, 0.4]]] * 2


def test_ablation_shows_accuracies_and_what_a_user_sees(figures):
    left, right = figures["studies.ablation"]().axes
    assert [bar.get_width() for bar in left.patches] == [0.05, 0.8]
    assert sum(bar.get_width() for bar in right.patches) == pytest.approx(2 * 1.0 + 0.85 + 0.425)
