"""Statements about hulls: "selects", "inside" and "copyable", against exact fractions."""

from fractions import Fraction

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qkv
from qkv.design.certificates import Certificate


def changed(certificate, data=None, claims=None):
    """The same certificate with some data or claims replaced."""
    return Certificate(certificate.kind, {**certificate.data, **(data or {})}, {**certificate.claims, **(claims or {})})


def test_a_combination_of_thousands_of_keys_is_not_solved_in_fractions():
    keys = np.random.default_rng(0).normal(size=(3000, 8))
    data = {"keys": keys, "item": 0, "indices": np.arange(1, 3000), "weights": np.ones(2999)}
    assert not Certificate("inside", data, {"margin_at_most": 100.0, "exact": 0.0}).verify()


def test_indices_of_a_combination_are_not_cut_to_whole_numbers(counted):
    for name in ("indices", "offsets", "possible"):
        shifted = np.array(counted.data[name], dtype=float)
        shifted[-1] += 1e-7
        assert not changed(counted, data={name: shifted}).verify()


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 3))
def test_a_claimed_margin_is_accepted_if_and_only_if_fractions_confirm_it(seed, n, d):
    rng = np.random.default_rng(seed)
    keys, query = rng.integers(-4, 5, (n, d)).astype(float), rng.integers(-4, 5, d).astype(float)
    if not query.any():
        return
    gap = min(Fraction(float((keys[0] - k) @ query)) for k in keys[1:])
    for claim in (1e-9, 0.25, 0.5, 1.0, 2.0):
        true = gap > 0 and Fraction(claim) ** 2 * Fraction(float(query @ query)) <= gap**2
        data = {"keys": keys, "item": 0, "query": query}
        assert bool(Certificate("selects", data, {"margin": claim}).verify()) == true
        assert (
            oracle.truth("selects", {"keys": keys.tolist(), "item": 0, "query": query.tolist()}, {"margin": claim})
            == true
        )


def test_an_exact_combination_is_told_from_one_that_is_off_by_an_ulp():
    keys = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 0.0], [1.0, np.nextafter(0.0, 1.0)]])
    data = {"keys": keys, "indices": [0, 1], "weights": [0.75, 0.25]}
    claims = {"margin_at_most": 1e-300, "exact": 0.0}
    assert Certificate("inside", {**data, "item": 2}, claims).verify()
    assert not Certificate("inside", {**data, "item": 3}, claims).verify()
    assert Certificate("inside", {**data, "item": 3}, {"margin_at_most": 1e-300}).verify()


def test_one_false_answer_among_many_is_refused():
    result = qkv.design.copyable(np.random.default_rng(3).normal(size=(40, 3)))
    made = result.certificate
    assert made.verify()
    margins = np.array(made.claims["margin"])
    margins[-1] *= 1.5
    assert not changed(made, claims={"margin": margins}).verify()
    flipped = np.array(made.data["possible"], dtype=float)
    flipped[int(result.vertices[0])] = 0.0
    assert not changed(made, data={"possible": flipped}).verify()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"indices": [0, 0]}, "twice"),
        ({"indices": [0, 2]}, "uses the key itself"),
        ({"weights": [-1.0, 2.0]}, "not negative"),
        ({"weights": [0.0, 0.0]}, "not all zero"),
        ({"weights": [1.0]}, "do not fit"),
        ({"item": 7}, "from 0 to 2"),
    ],
)
def test_combinations_that_state_nothing_are_refused(change, why):
    data = {"keys": [[0.0], [2.0], [1.0]], "item": 2, "indices": [0, 1], "weights": [0.5, 0.5]}
    assert Certificate("inside", data, {"margin_at_most": 0.0, "exact": 0.0}).verify()
    found = Certificate("inside", {**data, **change}, {"margin_at_most": 1.0}).verify()
    assert not found and why in found.why
