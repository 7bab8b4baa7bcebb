"""harden: a head that the noise does not reach, and whether more heads help."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from scipy.optimize import brentq

import qkv
from qkv.errors import QkvError
from qkv.noise import Gaussian, harden, reading_moments

MEMORY = qkv.Memory.orthonormal(10, 16, labels=["a", "b", *"cdefghij"])
MU = MEMORY.keys
NOISE = Gaussian(isotropic=1e-6, along={"a": 0.5})
HALF = {"a": 0.5, "b": 0.5}


@pytest.fixture(scope="module")
def hardened():
    return harden(MEMORY, HALF, NOISE, tol=1e-2)


def leak(queries) -> float:
    return float(1 - MEMORY.read_heads(torch.atleast_2d(queries)).weights[:2].sum())


def test_one_hardened_head_has_a_two_hundredth_of_the_variance_at_equal_leak(hardened):
    """The usual answers are brought to the very leak of the hardened one, and to tol."""
    for level in (leak(hardened.query), 1e-2):
        t = brentq(lambda t, level=level: math.log(leak(t * (MU[0] + MU[1])) / level), 0.1, 30)
        one = reading_moments(MEMORY, t * (MU[0] + MU[1]), NOISE)
        t = brentq(lambda t, level=level: math.log(leak(t * MU[:2]) / level), 0.1, 30)
        two = reading_moments(MEMORY, t * MU[:2], NOISE)
        ours = float(hardened.moments.weights_var[:2].max())
        assert ours <= float(one.weights_var[0]) / 200
        assert ours <= float(two.weights_var[0]) / 20
    assert hardened.distance <= hardened.tol == 1e-2
    assert hardened.possible
    assert hardened.query.shape == (16,)


def test_the_hardened_head_looks_past_the_noise(hardened):
    """Its score on k_a does not move with the length of k_a: it is nearly orthogonal to μ_a."""
    q = hardened.query
    assert abs(float(q @ MU[0])) < 1e-2 * float(q.norm())
    for size in (0.2, 1.0, 3.0, -1.0):
        keys = MU.clone()
        keys[0] *= size
        weights = torch.softmax(keys @ q, 0)
        assert torch.allclose(weights[:2], torch.tensor([0.5, 0.5]).double(), atol=0.03)


def test_the_report_names_the_gain_and_says_that_two_hardened_heads_do_better_still(hardened):
    assert hardened.gain > 200
    assert hardened.gain_over_heads > 20
    assert hardened.more_heads_help is True
    assert "More heads help" in hardened.card().note
    assert json.loads(json.dumps(hardened.to_json()))["tol"] == 1e-2
    assert hardened.comparison.names == ("one head", "two heads", "hardened")


def test_two_hardened_heads_are_better_than_one(hardened):
    two = harden(MEMORY, HALF, NOISE, tol=1e-2, heads=2)
    assert two.queries.shape == (2, 16)
    assert float(two.mix.sum()) == pytest.approx(1)
    assert two.squared_error < 0.01 * hardened.squared_error
    assert two.distance <= 1e-2


def test_more_heads_do_not_help_where_telling_the_items_apart_takes_a_long_query():
    """a and b lie side by side: reading both is easy, reading one alone looks along the noise."""
    memory = qkv.Memory([[1.0, 0.01], [1.0, -0.01], [-1.0, 0.0]], np.eye(3), labels=["a", "b", "c"])
    noise = Gaussian(isotropic=1e-3)
    one = harden(memory, HALF, noise)
    assert one.more_heads_help is False
    assert "do not help" in one.advice
    two = harden(memory, HALF, noise, heads=2)
    assert two.more_heads_help is False
    assert 0.9 * one.squared_error < two.squared_error <= one.squared_error * (1 + 1e-6)


@pytest.mark.slow
def test_hardening_never_does_worse_than_the_plain_answer():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        memory = qkv.Memory(rng.normal(size=(12, 8)), rng.normal(size=(12, 3)))
        noise = Gaussian(isotropic=0.01 * rng.random(), along={0: 0.4 * rng.random(), 3: 0.2})
        found = harden(memory, {0: 0.3, 1: 0.7}, noise, tol=0.02)
        assert found.gain >= 1 - 1e-9
        if found.possible:
            assert float(0.5 * (memory.read(found.query).weights - torch.tensor(
                [0.3, 0.7, *[0.0] * 10]).double()).abs().sum()) <= 0.02  # fmt: skip
        error = reading_moments(memory, found.query, noise).squared_error(
            0.3 * memory.values[0] + 0.7 * memory.values[1]
        )
        assert found.squared_error == pytest.approx(float(error))


def test_without_noise_hardening_returns_a_blend_within_tol():
    found = harden(MEMORY, HALF, Gaussian(), tol=1e-2)
    assert found.possible
    assert found.squared_error <= (1e-2 * 2 * float(MEMORY.values.norm(dim=1).max())) ** 2


def test_a_blend_that_no_query_reaches_is_hardened_as_far_as_it_goes():
    """The key in the middle of the others cannot be copied; the answer says so by its distance."""
    keys = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.0, 0.0]])
    found = harden(qkv.Memory(keys, np.eye(5)), {4: 1.0}, Gaussian(isotropic=0.01))
    assert not found.possible
    assert found.distance > 0.5
    assert found.gain_over_heads is None
    assert found.more_heads_help is None


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: harden(MEMORY, {"a": 0.5}, NOISE), "sum to 0.5"),
        (lambda: harden(MEMORY, {"z": 1.0}, NOISE), "'z'"),
        (lambda: harden(MEMORY, HALF, NOISE, tol=0), "tol"),
        (lambda: harden(MEMORY, HALF, NOISE, heads=0), "heads"),
        (lambda: harden(MEMORY, HALF, Gaussian(along={"zz": 1.0})), "'zz'"),
    ],
)
def test_what_cannot_be_hardened_is_refused(ask, says):
    with pytest.raises(QkvError, match=says):
        ask()
