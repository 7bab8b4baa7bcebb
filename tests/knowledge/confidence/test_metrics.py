"""Measures of confidence against direct counting, closed forms and SciPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from qkv.errors import QkvError
from qkv.knowledge.confidence.logistic import LogisticModel, chosen, fit, logistic
from qkv.knowledge.confidence.metrics import aurc, auroc, prr, reliability, risk_coverage, threshold
from qkv.knowledge.intervals import T95, difference, over_seeds, wilson

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
def test_risk_is_what_answering_the_surest_few_gives_on_average_over_ties(rows):
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
def test_perfect_scores_have_a_rejection_ratio_of_one_and_equal_ones_of_nought(rows):
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
        if 100 * wrong <= (100 - percent) * all_ and chance(wrong - 1, all_ - 1, percent) <= 0.1 * 100 ** (all_ - 1)
    ]
    assert threshold(s, y, percent / 100) == (min(safe) if safe else math.inf)


def chance(wrong, n, percent):
    """Of 100ⁿ equally likely cases, those with so few wrong."""
    return sum(math.comb(n, k) * (100 - percent) ** k * percent ** (n - k) for k in range(wrong + 1))


def test_the_threshold_keeps_its_level_on_new_answers():
    random, shares = np.random.default_rng(1), []
    for _ in range(300):
        p = random.random(400)
        y = random.random(400) < p
        t = threshold(p[:200], y[:200], 0.9)
        said = p[200:] >= t
        shares.append(y[200:][said].mean() if said.any() else 1.0)
    assert np.mean(shares) >= 0.9


@given(st.integers(1, 500), st.floats(0, 1))
def test_wilson_agrees_with_scipy(n, share):
    right = round(share * n)
    theirs = stats.binomtest(right, n).proportion_ci(method="wilson")
    assert wilson(right, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_newcombes_interval_for_a_difference_is_his():
    assert difference((56, 70), (48, 80)) == pytest.approx((0.0524, 0.3339), abs=5e-5)  # his 1998 paper, method 10


def test_students_table_is_students():
    assert np.allclose(T95, stats.t.ppf(0.975, np.arange(1, 21)), atol=1e-3)
    mean, low, high = over_seeds([1.0, 2.0, 4.0])
    theirs = stats.t.interval(0.95, 2, loc=7 / 3, scale=stats.sem([1, 2, 4]))
    assert (mean, low, high) == pytest.approx((7 / 3, *theirs), abs=1e-3)


def test_logistic_regression_finds_the_minimum_that_scipy_finds():
    random = np.random.default_rng(2)
    x = random.normal(size=(80, 3)) * [1, 5, 0.1] + [0, 3, 0]
    y = (x[:, 0] + random.logistic(size=80) > 0).astype(float)
    z = (x - x.mean(0)) / x.std(0)

    def loss(w):
        score = z @ w[:3] + w[3]
        return np.logaddexp(0, np.where(y > 0, -score, score)).sum() + 0.7 * (w[:3] ** 2).sum() / 2

    best = optimize.minimize(loss, np.zeros(4), tol=1e-12)
    found = fit(x, y, ridge=0.7)
    assert np.allclose([*found.weights, found.bias], best.x, atol=1e-4)
    assert np.allclose(found(x), 1 / (1 + np.exp(-found.score(x))))


def test_a_probe_is_judged_on_rows_it_did_not_see():
    random = np.random.default_rng(3)
    x, y = random.normal(size=(60, 200)), random.random(60) < 0.5  # nothing to learn, and room to learn it by heart
    model, scores = chosen(x, y)
    assert abs(auroc(scores, y) - 0.5) < 0.25 < auroc(model.score(x), y) - 0.5
    separable = fit(np.arange(10.0)[:, None], np.arange(10) > 4, ridge=1e-6)
    assert (
        np.isfinite(separable.weights).all()
        and auroc(separable.score(np.arange(10.0)[:, None]), np.arange(10) > 4) == 1
    )


def test_extreme_scores_do_not_overflow():
    assert logistic(np.array([-1e4, 0, 1e4])).tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("measure", [auroc, aurc, prr, reliability])
def test_what_is_no_list_of_scores_and_labels_is_refused(measure):
    for scores, labels in (([], []), ([0.1], [1, 0]), ([math.nan, 0.2], [1, 0]), ([0.1, 0.2], [1, 2])):
        with pytest.raises(QkvError):
            measure(scores, labels)


def test_one_sided_labels_and_damaged_probes_are_refused():
    for call in (lambda: auroc([1, 2], [1, 1]), lambda: prr([1, 2], [0, 0]), lambda: fit(np.ones((3, 1)), [1, 1, 1])):
        with pytest.raises(QkvError):
            call()
    with pytest.raises(ValueError):
        LogisticModel.from_json({"mean": [0], "scale": [1], "weights": [1, 2], "bias": 0})
    for wrong in ((3, 2), (-1, 2), (0, 0)):
        with pytest.raises(QkvError):
            wilson(*wrong)
