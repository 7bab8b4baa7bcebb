"""reach: targets that some multiple reaches, and bounds for every multiple."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import some
from scipy.special import softmax

import qkv


def three_tokens(beta, seed=None):
    frame = np.eye(4) if seed is None else np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 4)))[0].T
    a, b, c, d = beta * frame
    return np.array([d + b, a, c + b]), {"a": a, "b": b, "c": c, "d": d}


def attention(X, Q, K, V):
    """Self-attention written out in numpy."""
    X, Q, K, V = (np.asarray(m) for m in (X, Q, K, V))
    return softmax((X @ Q.T) @ (X @ K.T).T, axis=1) @ (X @ V.T)


@pytest.mark.parametrize("seed", some([None, 0, 5], [5]))
@pytest.mark.parametrize("name", ["d", "c"])
@pytest.mark.parametrize("beta", [1.0, 4.0])
def test_no_multiple_of_u_d_or_u_c_makes_the_second_token_give_u_b(seed, name, beta):
    X, u = three_tokens(beta, seed)
    r = qkv.design.reach(X, token=1, along=u[name], target=u["b"])
    assert not r.possible
    assert r.certificate.verify()
    distances = []
    for multiple in np.concatenate([np.linspace(-3, 3, 301), [-1e4, -100, 100, 1e4]]):
        moved = X.copy()
        moved[1] = moved[1] + multiple * u[name]
        identity = np.eye(X.shape[1])
        distances.append(np.linalg.norm(attention(moved, identity, identity, identity)[1] - u["b"]))
    assert 0.4 * beta < r.at_least <= min(distances) + 1e-12
    assert r.distance <= min(distances) + 1e-3


def test_a_target_that_can_be_reached_is_reached():
    X = np.array([[0.0, 3.0], [3.0, 0.0]])
    r = qkv.design.reach(X, token=0, along=[1.0, 0.0], target=[3.0, 3.0])
    assert r.possible and r.distance < 0.03 and r.at_least <= r.distance
    moved = X.copy()
    moved[0] += [r.multiple, 0.0]
    assert np.linalg.norm(attention(moved, *[np.eye(2)] * 3)[0] - [3.0, 3.0]) == pytest.approx(r.distance)


def test_what_is_neither_reached_nor_excluded_is_called_undecided():
    X, u = three_tokens(4.0)
    r = qkv.design.reach(X, token=1, along=u["b"] - u["a"], target=u["b"])
    assert r.status == "undecided" and r.possible is None
    assert r.certificate is None and r.at_least == 0


def test_a_direction_that_is_none_is_refused():
    with pytest.raises(qkv.QkvError, match="direction is zero"):
        qkv.design.reach(np.eye(2), 0, [0.0, 0.0], [1.0, 0.0])


def test_steering_vectors_of_the_wrong_size_are_refused():
    for along, target in itertools.product([[1.0], [1.0, 0.0]], [[1.0, 0, 0], [0.0, 1.0]]):
        if len(along) == 2 and len(target) == 2:
            continue
        with pytest.raises(qkv.QkvError, match="numbers"):
            qkv.design.reach(np.eye(2), 0, along, target)


@pytest.mark.slow
@settings(max_examples=12)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 3))
def test_no_sampled_multiple_comes_nearer_than_the_certified_bound(seed, n, d):
    random = np.random.default_rng(seed)
    X, u, y = random.standard_normal((n, d)), random.standard_normal(d), 3 * random.standard_normal(d)
    matrices = random.standard_normal((3, d, d))
    r = qkv.design.reach(X, 0, u, y, Q=matrices[0], K=matrices[1], V=matrices[2])
    assert all(c.verify() for c in r.certificates)
    distances = []
    for multiple in np.concatenate([np.linspace(-20, 20, 401), [-1e6, 1e6]]):
        moved = X.copy()
        moved[0] += multiple * u
        distances.append(np.linalg.norm(attention(moved, *matrices)[0] - y))
    assert r.at_least <= min(distances) + 1e-9
    assert r.distance <= np.linalg.norm(attention(X, *matrices)[0] - y) + 1e-12  # r = 0 is on the grid
    status = {True: "reached", False: "out of reach", None: "undecided"}[r.possible]
    assert status == r.status


def test_a_token_alone_moves_along_a_line():
    """One token reads itself: its output is x + r u, so the distance to y is that from a line."""
    x, u, y = np.array([[1.0, 2.0]]), [1.0, 0.0], [5.0, 5.0]
    r = qkv.design.reach(x, 0, u, y)
    assert r.distance == pytest.approx(3.0, abs=1e-6) and r.multiple == pytest.approx(4.0, abs=1e-3)
    assert r.at_least == pytest.approx(3.0, rel=1e-9) and r.status == "out of reach"


def test_the_printed_multiple_gives_the_printed_distance():
    found = qkv.design.reach([[0.0, 3.0], [3.0, 0.0]], 0, [1e6, 0.0], [3.0, 3.0])
    shown = dict(found.card().facts)["best multiple"]
    assert float(shown) == pytest.approx(found.multiple, rel=1e-4) and found.multiple != 0


@pytest.mark.parametrize("size", [1e-200, 1e-100, 1e100, 1e200])
def test_inputs_beyond_the_range_of_products_are_refused_by_name(size):
    X, along, target = np.array([[0.0, 3.0], [3.0, 0.0]]), np.array([1.0, 0.0]), np.array([3.0, 3.0])
    for name, request in (
        ("tokens", (X * size, 0, along, target)),
        ("direction", (X, 0, along * size, target)),
        ("target", (X, 0, along, target * size)),
    ):
        with pytest.raises(qkv.QkvError, match=f"the largest entry of the {name}"):
            qkv.design.reach(*request)


@pytest.mark.parametrize("size", some([1e-40, 1e-15, 1e15, 1e40], [1e40]))
def test_a_direction_of_any_length_reaches_the_same(size):
    X = [[0.0, 3.0], [3.0, 0.0]]
    found = qkv.design.reach(X, 0, along=[size, 0.0], target=[3.0, 3.0])
    plain = qkv.design.reach(X, 0, along=[1.0, 0.0], target=[3.0, 3.0])
    assert found.status == plain.status == "reached"
    assert found.multiple * size == pytest.approx(plain.multiple, rel=1e-3)
