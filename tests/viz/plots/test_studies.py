"""Figures of the studies show the numbers of their tables."""

import numpy as np
import pytest

from qkv.knowledge import Study
from qkv.viz.plots.studies import study_figure


def lines(axes):
    return [np.asarray(line.get_xydata()) for line in axes.lines]


def labels(axes):
    return [text.get_text() for text in axes.texts]


def test_accuracies_are_bars_with_intervals_and_values():
    rows = ({"what": "a", "accuracy": 0.25, "interval": (0.1, 0.4)}, {"what": "b", "accuracy": 0.5}, {"what": "c"})
    (axes,) = study_figure(Study("variants", "T", rows, (), 2, 2)).axes
    assert [patch.get_width() for patch in axes.patches] == [0.5, 0.25] and labels(axes) == ["50.0 %", "25.0 %"]
    assert [tuple(line[:, 0]) for line in lines(axes)] == [(0.5, 0.5), (0.1, 0.4)]
    assert axes.get_title(loc="left") == "T"


def test_ablation_shows_accuracy_and_what_a_user_sees():
    rows = (
        {"what": "read", "accuracy": 1.0, "interval": (0.9, 1.0)},
        {"what": "remembered: read", "is_a_place": 1.0, "probability": 0.98, "surely": 0.97},
        {"what": "made up: deleted", "is_a_place": 0.99, "probability": 0.27, "surely": 0.1},
    )
    left, right = study_figure(Study("ablation", "T", rows, (), 2, 2)).axes
    assert [patch.get_width() for patch in left.patches] == [1.0]
    assert [patch.get_width() for patch in right.patches] == [0.97, 0.1, 0.98, 0.27, 1.0, 0.99]
    assert labels(right)[-2:] == ["100 %, remembered", "99 %, made up"]


def test_capacity_has_a_line_for_each_size_with_intervals():
    rows = tuple(
        {"parameters": size, "exposures": e, "bits_per_parameter": bits, "interval": (bits - 0.1, bits + 0.1)}
        for size, e, bits in ((2000, 100, 1.5), (1000, 25, 0.5), (1000, 100, 1.2), (2000, 25, 0.4))
    )
    (axes,) = study_figure(Study("capacity", "T", rows, ("Said.",), 4, 4)).axes
    found = [line.tolist() for line in lines(axes)]
    assert [[25, 0.5], [100, 1.2]] in found and [[25, 0.4], [100, 1.5]] in found
    assert [[100, pytest.approx(1.1)], [100, pytest.approx(1.3)]] in found
    assert "1,000 parameters" in labels(axes) and axes.get_title(loc="left") == "Said"


def test_rare_facts_has_a_line_for_each_kind_of_fact_and_labels_that_do_not_overlap():
    rows = tuple(
        {"seen_once": s, "made_up": m, "interval": (m - 0.05, m + 0.05), "made_up_of_once": o, "made_up_of_often": f}
        for s, m, o, f in ((0.0, 0.02, None, 0.02), (0.5, 0.15, 0.24, 0.04), (1.0, 0.8, 0.8, None))
    )
    (axes,) = study_figure(Study("rare_facts", "T", rows, (), 3, 3)).axes
    found = [line.tolist() for line in lines(axes)]
    assert [[0.0, 0.02], [0.5, 0.15], [1.0, 0.8]] in found and [[0.5, 0.24], [1.0, 0.8]] in found
    assert [[0.0, 0.02], [0.5, 0.04]] in found
    heights = sorted(text.xy[1] for text in axes.texts if text.get_text().startswith("of "))
    assert len(heights) == 3 and np.diff(heights).min() >= 0.08 - 1e-9
