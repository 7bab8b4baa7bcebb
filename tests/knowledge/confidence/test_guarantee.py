"""The guarantee: true as often as it says, for scores good and bad; a lower level never accepts less."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from qkv.errors import QkvError
from qkv.knowledge.confidence.guarantee import Guarantee, guarantee, more_needed
from qkv.knowledge.confidence.logistic import expit

graded = st.lists(st.tuples(st.integers(-6, 9), st.booleans()), min_size=1, max_size=300)

# How scores are drawn, and the true probability of being right at a score.
WORLDS = {
    "the scores are true log-odds": (lambda random, n: random.normal(2, 2, n), expit),
    "scores that promise too much": (lambda random, n: random.normal(2, 2, n), lambda s: expit(0.5 * s)),
    "scores that promise too little": (lambda random, n: random.normal(1, 1, n), lambda s: expit(3 * s)),
    "scores that say nothing, just below the level": (
        lambda random, n: random.normal(2, 2, n),
        lambda s: np.full(len(s), 0.949),
    ),
    "the surer the worse": (lambda random, n: random.normal(2, 1, n), lambda s: expit(4 - s)),
    "few different scores": (lambda random, n: np.round(random.normal(2, 2, n)), expit),
    "two kinds of answers": (lambda random, n: random.normal(0, 3, n), lambda s: np.where(s > 0.5, 0.97, 0.02)),
}


def share_of_false_statements(draw, truth, n, level, draws, seed):
    """In how many of these draws of n labelled answers fewer answers of the population are right than is stated."""
    random = np.random.default_rng(seed)
    population = np.sort(draw(random, 200_000))[::-1]
    share_right = truth(population).cumsum() / np.arange(1, len(population) + 1)
    false = 0
    for _ in range(draws):
        scores = draw(random, n)
        found = guarantee(scores, random.random(n) < truth(scores), level)
        if found.accepted:
            accepted = np.searchsorted(-population, -found.threshold, side="left")
            false += share_right[max(accepted - 1, 0)] < found.level
    return false / draws


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(("n", "level"), [(80, 0.8), (250, 0.95), (250, 0.9), (800, 0.95)])
def test_at_most_one_statement_in_twenty_is_false(world, n, level):
    draws = 2000
    found = share_of_false_statements(*WORLDS[world], n, level, draws, seed=n)
    assert found <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)


@pytest.mark.parametrize("world", WORLDS)
def test_few_of_three_hundred_statements_are_false(world):
    assert share_of_false_statements(*WORLDS[world], 120, 0.9, 300, seed=1) <= 0.09


@settings(max_examples=3 * settings.default.max_examples, deadline=None)
@given(graded, st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_a_lower_level_never_accepts_less(rows, one, two):
    s, y = zip(*rows, strict=True)
    low, high = (guarantee(s, y, level) for level in sorted((one, two)))
    assert low.accepted >= high.accepted and low.threshold <= high.threshold
    assert high.level <= max(one, two, 0.5) and (not low.reached) <= (not high.reached)


@settings(max_examples=3 * settings.default.max_examples, deadline=None)
@given(graded, st.floats(0.3, 0.99))
def test_the_statement_is_the_exact_bound_of_its_counts(rows, wanted):
    s, y = (np.array(column) for column in zip(*rows, strict=True))
    found = guarantee(s, y, wanted)
    if not found.accepted:
        assert found.threshold == math.inf and found.level == 0 and found.bound < 0.5
        return
    assert found.threshold >= 0
    accepted = s > found.threshold
    assert (found.accepted, found.right) == (accepted.sum(), y[accepted].sum())
    test = stats.binomtest(int(found.right), int(found.accepted), alternative="greater")
    exact = test.proportion_ci(0.95, method="exact").low
    assert found.bound == pytest.approx(exact) and found.level == pytest.approx(
        min(max(wanted, 0.5), exact)
    )  # nothing below one half is stated


def test_the_surest_answers_are_stated_at_the_level_that_can_be_shown():
    scores, right = np.linspace(4, -4, 100), np.arange(100) < 40
    found = guarantee(scores, right, 0.99)
    assert not found.reached and found.right == found.accepted >= 20
    assert found.level == pytest.approx(0.05 ** (1 / found.accepted))
    assert "right at least" in str(found) and "95 % confidence" in str(found)
    assert guarantee(scores, right, 0.85).reached


@settings(deadline=None)
@given(graded, st.floats(0.5, 0.99))
def test_a_lesser_level_is_stated_with_more_confidence_and_a_reached_one_as_before(rows, wanted):
    scores, right = zip(*rows, strict=True)
    one, two = (guarantee(scores, right, wanted, 0.9, lesser_confidence=more) for more in (None, 0.97))
    assert two.accepted <= one.accepted and two.level <= one.level and two.confidence == one.confidence == 0.9
    assert two == one if one.reached else not two.reached
    if two.accepted and not two.reached:
        assert two.level == pytest.approx(stats.beta.ppf(0.03, two.right, two.accepted - two.right + 1))


def test_how_many_more_answers_the_level_would_take():
    assert more_needed(100, 100, 0.95, 0.95) == 1.0
    factor = more_needed(20, 20, 0.95, 0.95)  # 59 without an error: 0.95⁵⁹ < 0.05
    assert 58 <= 20 * factor <= 59
    assert more_needed(19, 20, 0.95, 0.95) == math.inf
    for right, n in ((60, 61), (195, 200), (48, 49)):
        factor = more_needed(right, n, 0.95, 0.95)
        assert stats.beta.ppf(0.05, factor * right, factor * (n - right) + 1) == pytest.approx(0.95, abs=1e-3)


def test_nothing_is_accepted_where_the_surest_are_right_less_than_half_of_the_time():
    found = guarantee(np.linspace(3, 0, 60), np.arange(60) % 3 == 0, 0.95)
    assert found.accepted == 0 and found.threshold == math.inf and 0 < found.bound < 0.5 and str(found) == "no answer"


@given(graded)
def test_a_guarantee_survives_json(rows):
    found = guarantee(*zip(*rows, strict=True), 0.9)
    assert Guarantee.from_json(json.loads(json.dumps(found.to_json(), allow_nan=False))) == found


def test_without_answers_nothing_is_guaranteed():
    found = guarantee([], [], 0.95)
    assert found.accepted == 0 and found.threshold == math.inf and not found.reached


def test_other_than_numbers_is_refused():
    with pytest.raises(ValueError, match="not a number"):
        Guarantee.from_json({**guarantee([1.0], [1], 0.5).to_json(), "level": "high"})
    for s, y, level in (([1.0], [1, 0], 0.9), ([math.nan], [1], 0.9), ([1.0], [2], 0.9), ([1.0], [1], 1.0)):
        with pytest.raises(QkvError, match="guaranteeing"):
            guarantee(s, y, level)


@pytest.mark.parametrize(
    "wrong", [{"level": 7.0}, {"confidence": 2.0}, {"bound": -0.1}, {"accepted": -3}, {"accepted": 2.5}, {"more": 0.0}]
)
def test_numbers_that_no_guarantee_has_are_refused(wrong):
    good = guarantee(np.linspace(1, 5, 100), np.ones(100, bool), 0.9).to_json()
    assert Guarantee.from_json(good).accepted == 100
    with pytest.raises(ValueError, match="out of range"):
        Guarantee.from_json({**good, **wrong})
