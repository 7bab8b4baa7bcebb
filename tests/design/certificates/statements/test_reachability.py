"""The statement "no multiple reaches the target", against an independent judge and sampled multiples."""

import math

import numpy as np
import oracle
import pytest
from flint import arb
from scipy.special import softmax

import qkv
from qkv.design.certificates import Certificate
from qkv.design.certificates.statements import reachability
from qkv.design.certificates.statements.base import InvalidCertificate


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


# Each function by itself


def share(qx, qu, ku, keys=((3.0,), (1.0,)), i=0):
    balls = [[arb(v)] if not isinstance(v, arb) else [v] for v in (qx, qu, ku)]
    return reachability._own_share(i, balls[0], balls[1], [[arb(k) for k in key] for key in keys], balls[2])


def test_the_own_share_is_that_at_the_lowest_difference_of_scores():
    """D(r) = r²/2 + 3r + 4 is lowest at -3, where it is -1/2; and D(r) = 4 where the query does not move."""
    assert float(share(2.0, 1.0, 0.5).mid()) == pytest.approx(1 / (1 + math.exp(0.5)), rel=1e-14)
    assert float(share(2.0, 0.0, 0.0).mid()) == pytest.approx(1 / (1 + math.exp(-4)), rel=1e-14)
    three = share(2.0, 1.0, 0.5, ((3.0,), (1.0,), (2.0,)))
    assert float(three.mid()) == pytest.approx(1 / (1 + math.exp(0.5) + math.exp(-2 + 2**2 / 2)), rel=1e-14)
    second = share(2.0, 1.0, 0.5, ((1.0,), (3.0,)), i=1)
    assert float(second.mid()) == pytest.approx(1 / (1 + math.exp(0.5)), rel=1e-14)
    assert share(2.0, 1.0, 0.5, ((3.0,),)) == 1


def test_without_a_lowest_difference_nothing_is_kept():
    assert share(2.0, 1.0, -0.5) == 0  # it falls without bound on both sides
    assert share(2.0, 1.0, 0.0) == 0  # it is linear
    for unknown in (arb(0, 0.1), arb(0.05, 0.1)):
        found = share(2.0, 1.0, unknown)
        assert found.contains(0) and found.contains(1)
    still = share(arb(2), arb(0, 0.1), arb(0))
    assert still.contains(0) and still.contains(1)


def test_the_smallest_and_the_largest():
    assert reachability._smallest([arb(3), arb(1), arb(2)]) == 1 == reachability._smallest([arb(1)])
    assert reachability._largest([arb(1), arb(3), arb(2)]) == 3
    assert reachability._dot([arb(2), arb(3)], [arb(5), arb(7)]) == 31


MOVING = {
    "X": np.array([[1.0, 0.5, 0.0], [0.0, 2.0, 1.0], [-1.0, 1.0, 0.5]]),
    "Q": np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0]]),
    "K": np.array([[0.5, 0.5, 0.0], [0.25, 1.0, 0.0]]), "V": np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]),
    "along": np.array([0.5, 1.0, 0.0]), "target": np.array([-1.0, -9.0]), "token": 1, "range": 40.0,
}  # fmt: skip


def bounds_by_hand(data):
    """The bounds near and far from the docstring, and without the drift, with plain numbers."""
    X, Q, K, V, u, y, h = (data[k] for k in ("X", "Q", "K", "V", "along", "target", "normal"))
    i, reach = data["token"], data["range"]
    others = [j for j in range(len(X)) if j != i]
    c2 = (Q @ u) @ (K @ u)
    lowest = []
    for j in others:
        linear = (Q @ X[i]) @ (K @ u) + (Q @ u) @ (K @ X[i]) - (Q @ u) @ (K @ X[j])
        lowest.append((Q @ X[i]) @ (K @ X[i]) - (Q @ X[i]) @ (K @ X[j]) - linear**2 / (4 * c2))
    s = 1 / (1 + sum(math.exp(-m) for m in lowest))
    sides = (X @ V.T - y) @ h
    near = min(sides[i], *(s * sides[i] + (1 - s) * sides[j] for j in others))
    vu = V @ u
    far = s * (reach * vu @ vu - abs(vu @ V @ X[i])) - max(abs(vu @ V @ X[j]) for j in others) - abs(vu @ y)
    length = np.linalg.norm(h)
    return near / length, (near - reach * abs(h @ vu)) / length, far / np.linalg.norm(vu)


def measured(data):
    return reachability._measure(reachability._parse(data), False, {})["distance"]


def test_without_drift_the_near_bound_holds_for_every_multiple():
    data = MOVING | {"normal": np.array([-2.0, 1.0]) * 3}  # V u = (1/2, 1)
    free, near, far = bounds_by_hand(data)
    assert near == free and float(measured(data).mid()) == pytest.approx(free, rel=1e-13)
    assert far != pytest.approx(free)


@pytest.mark.parametrize(("normal", "reach"), [((0.0, 1.0), 1e-3), ((0.0, 1.0), 40.0), ((-2.0, 1.001), 300.0)])
def test_with_drift_the_bound_is_the_smaller_of_near_and_far(normal, reach):
    data = MOVING | {"normal": np.array(normal), "range": reach}
    _, near, far = bounds_by_hand(data)
    assert float(measured(data).mid()) == pytest.approx(min(near, far), rel=1e-12)


def test_no_multiple_comes_nearer_than_the_bound():
    data = MOVING | {"normal": np.array([-2.0, 1.0])}
    bound = float(measured(data).mid())
    for r in np.linspace(-60, 60, 241):
        X = data["X"].copy()
        X[1] += r * data["along"]
        scores = (data["Q"] @ X[1]) @ (X @ data["K"].T).T
        output = softmax(scores) @ X @ data["V"].T
        assert np.linalg.norm(output - data["target"]) >= bound - 1e-9


def test_one_token_alone_moves_with_the_multiple():
    data = MOVING | {"X": MOVING["X"][:1], "token": 0, "normal": np.array([0.0, 1.0]), "range": 100.0}
    near = (9.5 - 100.0) / 1.0
    far = (100 * 1.25 - abs(0.5 * 1.0 + 1.0 * 0.5) - 9.5) / 1.25**0.5
    assert float(measured(data).mid()) == pytest.approx(min(near, far), rel=1e-13)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"Q": np.ones((2, 4))}, "the direction do not fit"),
        ({"V": np.ones((2, 4))}, "the direction do not fit"),
        ({"Q": np.ones((3, 3))}, "the rows of Q and K do not fit"),
        ({"target": np.ones(3)}, "V, the target and the normal do not fit"),
        ({"normal": np.ones(3)}, "V, the target and the normal do not fit"),
        ({"range": math.inf}, "the range of multiples"),
        ({"range": math.nan}, "the range of multiples"),
        ({"range": 0.0}, "the range of multiples"),
        ({"normal": np.zeros(2)}, "the normal of the hyperplane is zero"),
        ({"token": -1}, "token must be"),
    ],
)
def test_each_defect_is_refused_by_itself(changes, why):
    good = MOVING | {"normal": np.array([0.0, 1.0])}
    assert reachability._parse(good | {"range": 5e-324})["range"] == 5e-324
    with pytest.raises(InvalidCertificate, match=why):
        reachability._parse(good | changes)


def test_the_statement_names_the_token_and_the_distance():
    assert reachability._describe({"token": 2}, {"distance": 0.1234567}, lambda i: f"t{i}") == (
        "whatever multiple of the direction is added to token t2, its output stays at least 0.123456 away from the "
        "target"
    )
