"""Validated requests: what a blend, a wiring and a covariance become, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv import Memory, QkvError
from qkv.design.specs import BlendSpec, WiringSpec, covariances

MEMORY = Memory(np.eye(4), labels=["a", "b", "c", "d"])


def test_items_come_by_label_or_index_and_zero_weights_are_dropped():
    spec = BlendSpec.of(MEMORY, {"c": 0.25, 0: 0.75, "b": 0.0}, 1e-3)
    assert spec.items == (2, 0) and spec.weights == (0.25, 0.75) and spec.tol == 1e-3
    assert spec.wanted.tolist() == [0.25, 0.75] and spec.wanted.dtype == np.float64


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=4))
def test_weights_are_normalised_to_within_rounding(parts):
    weights = {i: p / sum(parts) for i, p in enumerate(parts)}
    spec = BlendSpec.of(MEMORY, weights, 0.5)
    assert abs(sum(map(Fraction, spec.weights)) - 1) < Fraction(1, 10**15)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ({"a": 0.5, 0: 0.5}, "named twice"),
        ({"a": 0.4, "b": 0.4}, "Divide them by their sum: 0.5, 0.5"),
        ({"a": 0.0}, "Give positive weights"),
        ({"a": -0.5, "b": 1.5}, "weight of 'a' is -0.5"),
        ({"a": None}, "Give numbers as weights"),
        ({"z": 1.0}, "no item has this label"),
        ([0.5], "the weights are a list"),
        ({}, "there are no weights"),
    ],
)
def test_blends_that_state_nothing_are_refused(weights, says):
    with pytest.raises(QkvError) as refusal:
        BlendSpec.of(MEMORY, weights, 1e-3)
    assert says in str(refusal.value)


def test_rules_become_rows_of_weights_and_writes():
    spec = WiringSpec.of(np.eye(3), {2: 0, 0: {1: 0.25, 2: 0.75}}, {0: [1.0, 2.0], 2: [3.0, 4.0]}, 1e-2)
    assert spec.rules == (2, 0)
    assert spec.wanted.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.25, 0.75]]
    assert spec.writes.tolist() == [[3.0, 4.0], [1.0, 2.0]]


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 4))
def test_covariances_are_expanded_from_every_form(seed, n, d):
    random = np.random.default_rng(seed)
    root = random.standard_normal((n, d, d))
    each = root @ root.transpose(0, 2, 1)
    assert np.allclose(covariances(each, n, d), each)
    variances = random.random(n)
    if (n,) != (d, d):
        expected = variances[:, None, None] * np.eye(d)
        assert np.allclose(covariances(variances, n, d), expected)
    assert torch.equal(covariances(each[0], n, d)[-1], covariances(each[0], n, d)[0])


@pytest.mark.parametrize(
    ("noise", "says"),
    [
        (np.ones(3), "its shape is (3,)"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "eigenvalue -1"),
        ([1.0, float("nan")], "NaN"),
    ],
)
def test_what_is_no_covariance_is_refused(noise, says):
    with pytest.raises(QkvError) as refusal:
        covariances(noise, 2, 2)
    assert says in str(refusal.value)
