"""Metrics of confidence against direct counting, closed forms and SciPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from qkv.errors import QkvError
from qkv.knowledge.confidence.metrics import aurc, auroc, prr, reliability, risk_coverage

graded = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40).filter(
    lambda rows: len({y for _, y in rows}) == 2
)


@given(graded)
def test_auroc_is_the_share_of_pairs_in_the_right_order(rows):
    pairs = [(a > b) + (a == b) / 2 for a, y in rows for b, z in rows if y and not z]
    found = auroc(*zip(*rows, strict=True))
    assert found == pytest.approx(np.mean(pairs))
    one, two = [s for s, y in rows if y], [s for s, y in rows if not y]
    assert found == pytest.approx(stats.mannwhitneyu(one, two).statistic / len(one) / len(two))


@given(graded)
def test_risk_is_the_mean_over_random_orders_of_ties(rows):
    random = np.random.default_rng(0)
    s, y = (np.array(c) for c in zip(*rows, strict=True))
    coverage, risk = risk_coverage(s, y)
    shuffled = []
    for _ in range(400):
        order = np.lexsort((random.random(len(s)), -s))
        shuffled.append((~y[order]).cumsum() / np.arange(1, len(s) + 1))
    assert np.abs(np.mean(shuffled, 0) - risk).max() < 0.12
    assert risk[-1] == pytest.approx(1 - y.mean()) and coverage[-1] == 1
    assert aurc(s, y) == pytest.approx(risk.mean())


@given(graded)
def test_perfect_scores_have_a_rejection_ratio_of_one_and_equal_ones_of_zero(rows):
    y = [right for _, right in rows]
    assert prr(y, y) == pytest.approx(1)
    assert prr([1.0] * len(y), y) == pytest.approx(0)
    assert prr(np.logical_not(y), y) < 0


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
def test_calibration_error_is_the_weighted_gap_of_ten_bins(rows):
    found = reliability(*zip(*rows, strict=True))
    gap = 0.0
    for k in range(10):
        mine = [(p, y) for p, y in rows if (int(p * 10) if p < 1 else 9) == k]
        gap += abs(sum(p - y for p, y in mine)) / len(rows)
    assert found.ece == pytest.approx(gap) and sum(found.counts) == len(rows)


@pytest.mark.parametrize("measure", [auroc, aurc, prr, reliability])
def test_other_than_scores_and_labels_of_one_length_is_refused(measure):
    for scores, labels in (([], []), ([0.1], [1, 0]), ([math.nan, 0.2], [1, 0]), ([0.1, 0.2], [1, 2])):
        with pytest.raises(QkvError):
            measure(scores, labels)


def test_metrics_of_one_kind_of_label_and_probabilities_outside_0_and_1_are_refused():
    for call in (lambda: auroc([1, 2], [1, 1]), lambda: prr([1, 2], [0, 0])):
        with pytest.raises(QkvError):
            call()
    for probabilities, bins in (([-0.1, 0.2], 10), ([0.1, 1.2], 10), ([0.1, 0.2], 0)):
        with pytest.raises(QkvError, match="reliability"):
            reliability(probabilities, [0, 1], bins)


def test_the_card_of_a_reliability_diagram_lists_the_bins_with_answers():
    found = reliability([0.05, 0.95, 0.97], [0, 1, 0])
    assert found.card().rows == (("0.0 to 0.1", "1", "0.050", "0.000"), ("0.9 to 1.0", "2", "0.960", "0.500"))
    assert found.ece == pytest.approx((0.05 + 2 * 0.46) / 3)
