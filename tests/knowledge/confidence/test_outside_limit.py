"""The limit of names outside the text: true as often as it says, and the strongest that their number allows."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from qkv.errors import QkvError
from qkv.knowledge.confidence.outside_limit import MAX_OUTSIDE, OutsideLimit, outside_limit

scores = st.lists(st.floats(-9, 9), min_size=1, max_size=400)


def exact_upper(k, n, confidence=0.95):
    return stats.binomtest(k, n, alternative="less").proportion_ci(confidence, method="exact").high


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(scores, st.floats(0.01, 0.5), st.sampled_from([0.8, 0.95]))
def test_as_many_names_pass_as_the_exact_bound_allows(rows, wanted, confidence):
    found = outside_limit(rows, "outsider", wanted, confidence)
    n = len(rows)
    assert sum(s > found.threshold for s in rows) <= found.allowed and found.n == n
    assert found.bound == pytest.approx(exact_upper(found.allowed, n, confidence))
    if found.shown:
        assert exact_upper(found.allowed, n, confidence) <= wanted + 1e-12
        assert exact_upper(found.allowed + 1, n, confidence) > wanted - 1e-12
    else:
        assert exact_upper(0, n, confidence) > wanted and found.allowed <= wanted * n + 1e-6
    assert OutsideLimit.from_json(json.loads(json.dumps(found.to_json(), allow_nan=False))) == found


@pytest.mark.parametrize(("n", "allowed", "shown"), [(98, 2, False), (99, 0, True), (250, 2, True), (500, 8, True)])
def test_how_many_of_so_many_names_may_pass_at_three_percent(n, allowed, shown):
    found = outside_limit(np.arange(n), "invented")
    assert found.wanted == MAX_OUTSIDE == 0.03 and (found.allowed, found.shown) == (allowed, shown)
    assert found.threshold == n - 1 - allowed
    said = str(found)
    assert (
        said == "at most 3 % of such names (95 % confidence)" if shown else said.startswith("measured, not guaranteed")
    )


@pytest.mark.parametrize("n", [40, 99, 250, 500])
def test_at_most_one_statement_in_twenty_is_false(n):
    # The share of uniform scores above a threshold is known without a sample; rounding makes ties, which help.
    random, draws = np.random.default_rng(n), 4000
    found = [outside_limit(random.random(n), "outsider") for _ in range(draws)]
    false = sum(1 - each.threshold > each.bound for each in found) / draws
    assert 0.03 < false <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)
    rounded = [outside_limit(np.round(random.random(n), 1), "outsider") for _ in range(300)]
    above = [max(0.0, 0.95 - each.threshold) for each in rounded]  # P(round(U, 1) > t) for t of 0, 0.1, …
    assert sum(a > each.bound + 1e-9 for a, each in zip(above, rounded, strict=True)) <= 0.09 * 300


def test_a_limit_that_is_not_shown_is_not_called_a_guarantee():
    found = outside_limit(np.arange(60), "outsider")
    assert found.allowed == 1 and not found.shown and found.bound > 0.03
    assert "60 such names are too few for 3 %" in str(found)
    stated = float(str(found).split("show at most ")[1].split(" %")[0])
    assert stated >= 100 * found.bound > stated - 0.1


def test_other_than_scores_is_refused():
    for rows, wanted, confidence in (((), 0.03, 0.95), ([math.nan], 0.03, 0.95), ([1.0], 0.0, 0.95), ([1.0], 0.1, 1.0)):
        with pytest.raises(QkvError, match="limiting the names"):
            outside_limit(rows, "outsider", wanted, confidence)
    data = outside_limit([1.0, 2.0], "outsider").to_json()
    for changed in ({"bound": None}, {"group": 3}, {"n": "two"}, {"threshold": math.inf}):
        with pytest.raises(ValueError, match="not a number"):
            OutsideLimit.from_json({**data, **changed})


def test_a_confidence_is_never_rounded_up_to_certainty():
    limit = outside_limit(np.arange(300.0), "outsider", 0.03, 0.9999)
    assert "99.99 % confidence" in str(limit) and "100 %" not in str(limit)
