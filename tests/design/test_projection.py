"""project: orthogonal, oblique, coordinates, and spans that meet."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import null_space

import qkv


def test_orthonormal_bases_at_right_angles_give_a_times_its_transpose():
    frame = np.linalg.qr(np.random.default_rng(0).standard_normal((7, 5)))[0]
    a, b = frame[:, :2], frame[:, 2:]
    p = qkv.design.project(a, b)
    assert p.form == "A Aᵀ"
    assert np.allclose(p.matrix, a @ a.T, atol=1e-15)
    assert np.allclose(p.coordinates, a.T, atol=1e-15)


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4))
def test_the_matrix_keeps_every_vector_of_a_and_removes_every_vector_of_b(seed, m, p):
    random = np.random.default_rng(seed)
    a, b = random.standard_normal((9, m)), random.standard_normal((9, p))
    found = qkv.design.project(a, b)
    x, y = random.standard_normal(m), random.standard_normal(p)
    scale = np.linalg.norm(np.asarray(found.matrix)) * (np.linalg.norm(a) + np.linalg.norm(b))
    assert np.allclose(np.asarray(found.matrix) @ (a @ x + b @ y), a @ x, atol=1e-12 * scale)
    assert np.allclose(np.asarray(found.coordinates) @ (a @ x + b @ y), x, atol=1e-10 * scale)
    assert found.certificate.verify()
    # Of all such matrices it is the smallest: it vanishes on what is orthogonal to both spans.
    assert np.allclose(np.asarray(found.matrix) @ null_space(np.hstack([a, b]).T), 0, atol=1e-11 * scale)


def test_reading_coordinates_is_told_apart_from_reading_the_vector():
    frame = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    p = qkv.design.project(frame[:, :2], frame[:, 2:])
    va = frame[:, :2] @ [1.0, 2.0]
    assert np.allclose(np.asarray(p.matrix) @ va, va)
    assert np.allclose(np.asarray(p.coordinates) @ va, [1.0, 2.0])
    assert "2 numbers" in p.difference and "vector of 4" in p.difference


def test_spans_that_share_a_vector_are_refused_with_that_vector():
    a = np.array([[1.0, 0], [0, 1.0], [0, 0]])
    b = np.array([[1.0], [2.0], [0.0]])
    p = qkv.design.project(a, b)
    assert not p.possible and p.matrix is None
    v = np.asarray(p.shared)
    assert np.linalg.matrix_rank(np.column_stack([a, v])) == 2
    assert np.linalg.matrix_rank(np.column_stack([b, v]), tol=1e-12) == 1
    assert p.certificate.claims["exact"] == 0
    assert p.certificate.verify()


def test_spans_that_meet_up_to_rounding_are_refused_with_a_bound_on_every_matrix():
    random = np.random.default_rng(3)
    a, b = random.standard_normal((6, 2)), random.standard_normal((6, 2))
    b[:, 0] = a @ [0.3, 0.7]
    p = qkv.design.project(a, b)
    assert not p.possible
    assert p.certificate.verify()


REFUSALS = [
    (np.ones((4, 2)), np.eye(4)[:, :1], "span only 1 dimension"),
    (np.eye(4)[:, :1], np.zeros((4, 1)), "span only 0 dimensions"),
    (np.eye(4)[:, :1], np.eye(5)[:, :1], "4 numbers and B of 5"),
    (np.ones((2, 4)), np.eye(2)[:, :1], "A.T"),
    (np.full((4, 1), np.nan), np.eye(4)[:, :1], "NaN"),
    (np.ones(4), np.eye(4)[:, :1], "shape"),
]


@pytest.mark.parametrize(("a", "b", "mentions"), REFUSALS)
def test_bases_that_make_no_sense_are_refused(a, b, mentions):
    with pytest.raises(qkv.QkvError, match=mentions):
        qkv.design.project(a, b)


def test_spans_that_nearly_meet_are_not_said_to_meet():
    found = qkv.design.project([[1.0], [0]], [[1.0], [1e-10]])
    assert not found.possible and "too near" in found.card().title and "near B" in found.card().facts[0][0]
    assert "No matrix" in qkv.design.project([[1.0], [0]], [[1.0], [0]]).card().title
