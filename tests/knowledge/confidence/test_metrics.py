"""Metrics of confidence against direct counting, closed forms and SciPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from qkv.errors import QkvError
from qkv.knowledge.confidence.metrics import aurc, auroc, conformal_threshold, prr, reliability, risk_coverage

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


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=80), st.sampled_from([50, 80, 95]))
def test_the_threshold_is_the_lowest_that_the_conformal_count_allows(rows, percent):
    s, y = (np.array(c) for c in zip(*rows, strict=True))
    counts = {t: (int((~y[s >= t]).sum()) + 1, int((s >= t).sum()) + 1) for t in set(s.tolist())}
    safe = [
        t
        for t, (wrong, all_) in counts.items()  # in whole numbers
        if 100 * wrong <= (100 - percent) * all_
        and cases_with_few_wrong(wrong - 1, all_ - 1, percent) <= 0.1 * 100 ** (all_ - 1)
    ]
    assert conformal_threshold(s, y, percent / 100) == (min(safe) if safe else math.inf)


def cases_with_few_wrong(wrong, n, percent):
    """Of 100ⁿ equally likely cases, those with so few wrong."""
    return sum(math.comb(n, k) * (100 - percent) ** k * percent ** (n - k) for k in range(wrong + 1))


def test_the_threshold_keeps_its_level_on_new_answers():
    random, shares = np.random.default_rng(1), []
    for _ in range(300):
        p = random.random(400)
        y = random.random(400) < p
        t = conformal_threshold(p[:200], y[:200], 0.9)
        said = p[200:] >= t
        shares.append(y[200:][said].mean() if said.any() else 1.0)
    assert np.mean(shares) >= 0.9


@pytest.mark.parametrize("measure", [auroc, aurc, prr, reliability])
def test_other_than_scores_and_labels_of_one_length_is_refused(measure):
    for scores, labels in (([], []), ([0.1], [1, 0]), ([math.nan, 0.2], [1, 0]), ([0.1, 0.2], [1, 2])):
        with pytest.raises(QkvError):
            measure(scores, labels)


def test_metrics_of_one_kind_of_label_and_levels_outside_0_and_1_are_refused():
    for call in (lambda: auroc([1, 2], [1, 1]), lambda: prr([1, 2], [0, 0])):
        with pytest.raises(QkvError):
            call()
    for level in (0.0, 1.0, 2.0):
        with pytest.raises(QkvError, match="level"):
            conformal_threshold([0.1, 0.9], [0, 1], level)
    for probabilities, bins in (([-0.1, 0.2], 10), ([0.1, 1.2], 10), ([0.1, 0.2], 0)):
        with pytest.raises(QkvError, match="reliability"):
            reliability(probabilities, [0, 1], bins)


def test_the_card_of_a_reliability_diagram_lists_the_bins_with_answers():
    found = reliability([0.05, 0.95, 0.97], [0, 1, 0])
    assert found.card().rows == (("0.0 to 0.1", "1", "0.050", "0.000"), ("0.9 to 1.0", "2", "0.960", "0.500"))
    assert found.ece == pytest.approx((0.05 + 2 * 0.46) / 3)
