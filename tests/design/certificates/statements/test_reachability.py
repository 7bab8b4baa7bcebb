"""The statement "no multiple reaches the target", against an independent judge and sampled multiples."""

import numpy as np
import oracle
import pytest
from scipy.special import softmax

import qkv
from qkv.design.certificates import Certificate


@pytest.fixture(scope="module")
def unreachable():
    a, b, c, d = 4 * np.eye(4)
    return qkv.design.reach(np.array([d + b, a, c + b]), token=1, along=d, target=b).certificate


def test_the_bound_is_confirmed_by_an_independent_judge_and_a_larger_one_is_refused(unreachable):
    plain = {name: np.asarray(value).tolist() for name, value in unreachable.data.items()}
    assert unreachable.verify() and oracle.truth("unreachable", plain, dict(unreachable.claims))
    larger = {"distance": unreachable.claims["distance"] * (1 + 1e-9)}
    assert not Certificate("unreachable", unreachable.data, larger).verify()


def test_every_sampled_multiple_keeps_the_certified_distance(unreachable):
    X, u, y = (np.asarray(unreachable.data[name]) for name in ("X", "along", "target"))
    for r in np.concatenate([np.linspace(-5, 5, 501), [-1e5, 1e5]]):
        moved = X.copy()
        moved[1] += r * u
        output = softmax(moved[1] @ moved.T) @ moved
        assert np.linalg.norm(output - y) >= unreachable.claims["distance"] - 1e-9


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"normal": np.zeros(4)}, "normal of the hyperplane is zero"),
        ({"range": 0.0}, "range of multiples"),
        ({"range": -1.0}, "range of multiples"),
        ({"along": np.ones(3)}, "do not fit"),
        ({"token": 3}, "from 0 to 2"),
    ],
)
def test_malformed_evidence_is_refused_with_the_reason(change, why, unreachable):
    found = Certificate("unreachable", {**unreachable.data, **change}, unreachable.claims).verify()
    assert not found and why in found.why


def test_a_normal_along_the_direction_proves_nothing(unreachable):
    drifting = {**unreachable.data, "normal": unreachable.data["along"]}
    assert not Certificate("unreachable", drifting, {"distance": 1e-9}).verify()
