"""Candidate queries: certified margins against exact arithmetic and float64."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.core import rounding_bounds
from qkv.design.hull import candidate_queries


@pytest.mark.parametrize("guess", [candidate_queries.centred, candidate_queries.whitened])
@pytest.mark.parametrize("stretch", [0.0, 6.0])
def test_certified_margins_claim_only_what_double_precision_confirms(guess, stretch):
    random = np.random.default_rng(10)
    keys = random.standard_normal((500, 24)) * 10.0 ** random.uniform(0, stretch, 24) + 100.0
    f, items = rounding_bounds.scaled_keys(keys), np.arange(500)
    queries = guess(f, items)
    claims = candidate_queries.certified_margins(f, items, queries)
    exact = rounding_bounds.margin_lower_bounds(keys, items, queries)
    assert (claims <= exact).all()
    # Single precision decides first, but never instead: every margin that is there is claimed, and sharply.
    assert ((claims > 0) == (exact > 0)).all()
    assert (claims[claims > 0] > 0.98 * exact[claims > 0]).all()


def test_whitening_selects_where_the_centre_does_not():
    random = np.random.default_rng(11)
    keys = random.standard_normal((600, 20)) * np.geomspace(1, 1000, 20)
    f, items = rounding_bounds.scaled_keys(keys), np.arange(600)
    plain, white = (
        candidate_queries.certified_margins(f, items, g(f, items)) > 0
        for g in (candidate_queries.centred, candidate_queries.whitened)
    )
    assert white.sum() > 2 * plain.sum()


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(1, 4), st.sampled_from([1e-150, 1.0, 1e150]))
def test_a_certified_margin_is_never_above_the_exact_one(seed, n, d, size):
    keys = size * np.random.default_rng(seed).standard_normal((n, d))
    f, items = rounding_bounds.scaled_keys(keys), np.arange(n)
    for guess in (candidate_queries.centred, candidate_queries.whitened):
        queries = guess(f, items)
        for j, claim in enumerate(candidate_queries.certified_margins(f, items, queries)):
            if claim > 0:
                q = [Fraction(float(x)) for x in queries[j]]
                gaps = [
                    sum(
                        Fraction(float(a)) * x - Fraction(float(b)) * x
                        for a, b, x in zip(keys[j], keys[i], q, strict=True)
                    )
                    for i in range(n)
                    if i != j
                ]
                assert min(gaps) > 0 and Fraction(claim) ** 2 * sum(x * x for x in q) <= min(gaps) ** 2


def test_whitened_queries_are_the_centred_ones_of_whitened_keys():
    random = np.random.default_rng(3)
    keys = random.standard_normal((200, 5)) @ random.standard_normal((5, 5))
    f, items = rounding_bounds.scaled_keys(keys), np.arange(200)
    offsets = f.offsets
    precision = np.linalg.inv(offsets.T @ offsets / 200)
    expected = offsets @ precision
    expected /= np.linalg.norm(expected, axis=1)[:, None]
    assert np.allclose(candidate_queries.whitened(f, items), expected, atol=1e-9)


def test_a_key_at_the_mean_has_no_candidate_and_claims_nothing():
    keys = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    f, items = rounding_bounds.scaled_keys(keys), np.array([2])
    queries = candidate_queries.centred(f, items)
    assert not queries.any()
    assert candidate_queries.certified_margins(f, items, queries).tolist() == [-np.inf]
