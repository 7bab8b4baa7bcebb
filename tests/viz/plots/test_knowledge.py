"""Figures of qkv.knowledge show the numbers that they are given."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from qkv.knowledge import Answer, Trust
from qkv.knowledge.answering.name_attention import HeadAttention
from qkv.knowledge.confidence import metrics
from qkv.knowledge.confidence.trust_result import PlainThreshold
from qkv.knowledge.intervals import wilson_interval
from qkv.viz.plots.knowledge import heads, reliability


def bar_widths(axes):
    return [patch.get_width() for patch in axes.patches]


def test_heads_are_bars_with_their_weights_largest_on_top():
    found = (HeadAttention(1, 0, 0.75), HeadAttention(0, 1, 0.25))
    (axes,) = heads(Answer("Q?", "A", (), "unsure", "", {}, found, "Ada")).axes
    assert bar_widths(axes) == [0.25, 0.75] and [text.get_text() for text in axes.texts] == ["0.25", "0.75"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["layer 0, head 1", "layer 1, head 0"]
    assert "Ada" in axes.get_xlabel() and axes.get_title(loc="left").startswith("Layer 1, head 0")


def test_without_heads_the_title_says_so():
    (axes,) = heads(Answer("Q?", "A", (), "unsure", "", {}, (), "Ada")).axes
    assert axes.get_title(loc="left") == "No head attends to the name"


def test_reliability_shows_bins_with_intervals_and_the_answers_of_each_badge():
    diagram = metrics.reliability([0.05, 0.95, 0.97, 0.98], [0, 1, 1, 0])
    counts = {
        "remembered": {"right": 5, "wrong": 1, "unknown": 2, "invented": 9},
        "unsure": {"right": 3, "wrong": 0, "unknown": 0, "invented": 0},
        "made up": {"right": 0, "wrong": 0, "unknown": 7, "invented": 0},
    }
    alone = PlainThreshold(0.8, 0.9, 0.25, 1, 0)
    found = Trust(
        0.9, 0.55, 0.95, 9, 9, 0.8, 0.625, 0.3, 0.86, 0.6, counts, (), diagram, alone, 130, 2, False, (), True, None, ()
    )  # fmt: skip
    left, right = reliability(found).axes
    points = [tuple(np.ravel(line.get_xydata())) for line in left.lines if len(line.get_xdata()) == 1]
    assert points == [pytest.approx((0.05, 0)), pytest.approx((2.9 / 3, 2 / 3))]
    intervals = [tuple(line.get_ydata()) for line in left.lines[1:] if len(line.get_xdata()) == 2]
    assert intervals == [pytest.approx(wilson_interval(0, 1)), pytest.approx(wilson_interval(2, 3))]
    assert bar_widths(right) == [0, 0, 7, 3, 0, 0, 5, 1, 2]
    assert right.get_title(loc="left") == "5 of 8 “remembered” answers are right"
    assert any("9 about invented names" in text.get_text() for text in right.texts)
    right.figure.draw_without_rendering()
    bars = [bar.get_window_extent() for bar in right.patches if bar.get_width()]
    for box in [text.get_window_extent() for text in right.texts]:
        assert box.x1 <= right.figure.bbox.x1 and not any(box.overlaps(bar) for bar in bars)
    card = found.card()
    assert card.title == "“remembered”: right at least 55 % of the time (95 % confidence)"
    facts = dict(card.facts)
    assert facts["for 90 %"] == "about 130 more questions like these, if as many are right"
    assert facts["measured"].startswith("5 of 8 answers called remembered are right")
    assert "62.5 %, 95 % interval 30.0 to 86.0 %" in facts["measured"] and "2 without an answer" in facts["questions"]
    assert facts["log-probability alone"] == "covers 25.0 %, right at least 80 % of the time"
    assert "is kept" in facts["not saved"]
    assert facts["invented names"] == "9 of 9 answers about them are called remembered; not counted above"
    none = {badge: dict.fromkeys(kinds, 0) for badge, kinds in counts.items()}
    changes = {"stated_level": 0.0, "precision": 1.0, "coverage": 0.0, "counts": none, "more_questions": None}
    fitted = SimpleNamespace(remembered=SimpleNamespace(accepted=0, right=0, bound=0.0))
    empty = replace(found, badge=fitted, **changes).card()
    assert dict(empty.facts)["for 90 %"].startswith(
        "the surest answers are not right often enough; while that share stays"
    )
    assert empty.title == "No answer can be called “remembered” at 90 %" and "invented names" not in dict(empty.facts)


def test_curve_draws_accuracy_against_minutes_beside_what_is_published(figures):
    (axes,) = figures["knowledge.accuracy_curve"]().axes
    assert axes.lines[-1].get_xydata().tolist() == [[1, 0.2], [10, 0.6]]
    assert axes.lines[0].get_ydata()[0] == pytest.approx(0.4)
