"""Sums over the columns of a basis, against random orthonormal bases."""

import numpy as np
import pytest
from build import argued
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

GIVEN = "A, B orthonormal bases at right angles, x in R^m, y in R^p"
EVERY = settings(
    max_examples=settings.default.max_examples * 3 // 5,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


class Bases:
    """A (d x m) and B (d x p) with orthonormal columns at right angles, and coordinates x and y."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        m, p = (int(v) for v in rng.integers(2, 4, size=2))
        columns = np.linalg.qr(rng.normal(size=(8, 8)))[0]
        self.A, self.B = columns[:, :m], columns[:, m : m + p]
        self.x, self.y = rng.normal(size=m), rng.normal(size=p)


# Text of a d x d matrix, and its value; the sums are over all columns.
MATRICES = {
    "sum_i a_i*a_i'": lambda w: sum(np.outer(a, a) for a in w.A.T),
    "sum_i 2*a_i*a_i'": lambda w: sum(2 * np.outer(a, a) for a in w.A.T),
    "sum_i b_i*b_i'": lambda w: sum(np.outer(b, b) for b in w.B.T),
    "sum_i A*A'*a_i*a_i'": lambda w: sum(w.A @ w.A.T @ np.outer(a, a) for a in w.A.T),
    "sum_i B*B'*a_i*a_i'": lambda w: sum(w.B @ w.B.T @ np.outer(a, a) for a in w.A.T),
    "sum_i (a_i*a_i' - 3*a_i*a_i')": lambda w: sum(-2 * np.outer(a, a) for a in w.A.T),
    "sum_i a_i*a_i'*a_1*a_1'": lambda w: np.outer(w.A[:, 0], w.A[:, 0]),
    "sum_i a_i*a_i'*(A*A' + a_1*a_1')": lambda w: w.A @ w.A.T + np.outer(w.A[:, 0], w.A[:, 0]),
    "A*A' + a_1*a_1'": lambda w: w.A @ w.A.T + np.outer(w.A[:, 0], w.A[:, 0]),
    "a_1*a_1'": lambda w: np.outer(w.A[:, 0], w.A[:, 0]),
    "a_1*a_1'*A*A'": lambda w: np.outer(w.A[:, 0], w.A[:, 0]),
    "A*A'*a_1*a_2'*B*B'": lambda w: np.zeros((8, 8)),
    "A*A'": lambda w: w.A @ w.A.T,
    "B*B'": lambda w: w.B @ w.B.T,
    "2*A*A'": lambda w: 2 * w.A @ w.A.T,
    "-2*A*A'": lambda w: -2 * w.A @ w.A.T,
    "A*A' + B*B'": lambda w: w.A @ w.A.T + w.B @ w.B.T,
    "I": lambda w: np.eye(8),
    "0*A*A'": lambda w: np.zeros((8, 8)),
}
VECTORS = {"A*x": lambda w: w.A @ w.x, "B*y": lambda w: w.B @ w.y, "(A*x + B*y)": lambda w: w.A @ w.x + w.B @ w.y}


def holds(left, right, tries=5) -> bool:
    return all(np.allclose(left(w), right(w), atol=1e-10) for w in map(Bases, range(tries)))


@EVERY
@given(st.sampled_from(sorted(MATRICES)), st.sampled_from(sorted(MATRICES)), st.sampled_from(["", *sorted(VECTORS)]))
def test_an_identity_is_decided_as_random_bases_say(one, other, applied):
    left, right = MATRICES[one], MATRICES[other]
    if applied:
        vector = VECTORS[applied]
        true = holds(lambda w: left(w) @ vector(w), lambda w: right(w) @ vector(w))
        text = f"({one})*{applied} = ({other})*{applied}"
    else:
        true, text = holds(left, right), f"{one} = {other}"
    found = argued(GIVEN, "", text)
    assert found != ("refuted" if true else "proved"), text


@pytest.mark.parametrize(
    "text",
    [
        "sum_i a_i*a_i' = A*A'",
        "sum_i b_i*b_i' = B*B'",
        "sum_i 2*a_i*a_i' = 2*A*A'",
        "sum_i a_i*a_i'*A*x = A*x",
        "sum_i a_i*a_i'*B*y = 0",
        "sum_i b_1*b_1'*a_i*a_i' = 0",
        "sum_i a_i*a_i'*(A*x + B*y) = A*x",
        "A'*(sum_i a_i*a_i') = A'",
    ],
)
def test_true_sums_over_columns_are_proved(text):
    assert argued(GIVEN, "", text) == "proved"


@pytest.mark.parametrize(
    "text",
    [
        "sum_i a_i'*a_i = 1",
        "sum_i a_i = A*x",
        "sum_i a_i*b_i' = A*B'",
        "sum_i a_1*a_i' = A*A'",
        "sum_i (a_i*a_i' + b_1*b_1') = A*A' + b_1*b_1'",
        "sum_i a_i*a_i' = I",
        "sum_i a_i*a_i' = 2*A*A'",
        "sum_i a_i*a_i'*B*y = B*y",
    ],
)
def test_other_sums_over_columns_are_not_proved(text):
    assert argued(GIVEN, "", text) != "proved"


def test_a_wrong_identity_is_noticed_by_random_bases():
    assert holds(MATRICES["sum_i a_i*a_i'"], MATRICES["A*A'"])
    assert not holds(MATRICES["sum_i a_i*a_i'"], MATRICES["I"])
    assert not holds(MATRICES["sum_i a_i*a_i'"], MATRICES["B*B'"])
    assert not holds(MATRICES["sum_i A*A'*a_i*a_i'"], MATRICES["2*A*A'"])


@pytest.mark.parametrize(
    "text", ["sum_i a_i*a_i'*a_1 = a_1", "A*A'*a_1 = a_1", "a_1'*A*A' = a_1'", "b_1'*A*A'*a_1 = 0", "a_2'*A*A'*a_1 = 0"]
)
def test_a_projection_keeps_a_column(text):
    assert argued(GIVEN, "", text) == "proved"
