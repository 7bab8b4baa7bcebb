"""Statements about subspaces: "keeps and removes" and "intersect", against exact fractions."""

import math

import numpy as np
import oracle
import pytest

import qkv
from qkv.design.certificates import Certificate
from qkv.design.certificates.statements import projection
from qkv.design.certificates.statements.base import InvalidCertificate


def test_bounds_of_a_projection_are_those_of_exact_arithmetic():
    a, b = [[1.0], [0.0]], [[1.0], [1.0]]
    exact = {"A": a, "B": b, "M": [[1.0, -1.0], [0.0, 0.0]], "C": [[1.0, -1.0]]}
    assert Certificate("projection", exact, {"keeps": 0.0, "removes": 0.0, "coordinates": 0.0}).verify()
    tilted = {**exact, "M": [[1.0, -0.5], [0.0, 0.0]]}  # leaves half of B: |M B| = 1/2
    assert Certificate("projection", tilted, {"keeps": 0.0, "removes": 0.5}).verify()
    assert not Certificate("projection", tilted, {"keeps": 0.0, "removes": math.nextafter(0.5, 0)}).verify()
    assert oracle.truth("projection", tilted, {"keeps": 0.0, "removes": 0.5})


@pytest.mark.parametrize("seed", range(8))
def test_issued_bounds_are_confirmed_by_an_independent_judge(seed):
    rng = np.random.default_rng(seed)
    made = qkv.design.project(rng.normal(size=(5, 2)), rng.normal(size=(5, 2))).certificate
    plain = {name: np.asarray(value).tolist() for name, value in made.data.items()}
    assert made.verify() and oracle.truth("projection", plain, dict(made.claims))


def test_an_intersection_is_exact_only_where_ranks_of_fractions_say_so():
    a, x = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [1.0, 2.0]
    meets = {"A": a, "B": [[1.0], [2.0], [0.0]], "x": x, "y": [1.0]}
    nearly = {"A": a, "B": [[1.0], [2.0], [1e-300]], "x": x, "y": [1.0]}
    assert Certificate("intersection", meets, {"gap": 0.0, "exact": 0.0}).verify()
    assert not Certificate("intersection", nearly, {"gap": 1e-299, "exact": 0.0}).verify()
    assert Certificate("intersection", nearly, {"gap": 1e-299}).verify()


def test_the_zero_vector_in_both_spans_shows_nothing():
    data = {"A": [[1.0], [0.0]], "B": [[0.0], [1.0]], "x": [0.0], "y": [0.0]}
    found = Certificate("intersection", data, {"gap": 1.0}).verify()
    assert not found and "zero vector" in found.why


def test_norms_of_what_is_kept_and_removed_worked_out_by_hand():
    data = {"A": [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], "B": [[1.0], [0.0], [2.0]], "M": np.diag([1.0, 3.0, 0.0])}
    found = projection._measure(projection._parse(data), False, {})
    assert float(found["keeps"]) == 2.0 and float(found["removes"]) == 1.0 and set(found) == {"keeps", "removes"}
    found = projection._measure(projection._parse(data | {"C": [[1.0, 3.0, 1.0], [0.0, 1.0, 0.0]]}), False, {})
    # C A - I = [[0, 3], [0, 0]] and C B = (3, 0)
    assert float(found["coordinates"].mid()) == pytest.approx(18**0.5, rel=1e-15)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"B": [[1.0], [0.0]]}, "A, B and M do not fit"),
        ({"M": np.eye(3)[:2]}, "A, B and M do not fit"),
        ({"M": np.eye(3)[:, :2]}, "A, B and M do not fit"),
        ({"C": np.ones((1, 3))}, "C and A do not fit"),
        ({"C": np.ones((2, 2))}, "C and the vectors do not fit"),
    ],
)
def test_shapes_of_a_projection_that_do_not_fit_are_refused(changes, why):
    good = {"A": np.eye(3, 2), "B": [[1.0], [0.0], [2.0]], "M": np.eye(3)}
    assert projection._parse(good | {"C": np.ones((2, 3))})["C"].shape == (2, 3)
    with pytest.raises(InvalidCertificate, match=why):
        projection._parse(good | changes)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"B": [[1.0], [0.0]]}, "A and B do not fit"),
        ({"x": [1.0]}, "A and x do not fit"),
        ({"y": [1.0, 1.0]}, "B and y do not fit"),
    ],
)
def test_shapes_of_an_intersection_that_do_not_fit_are_refused(changes, why):
    good = {"A": np.eye(3, 2), "B": [[1.0], [0.0], [2.0]], "x": [1.0, 2.0], "y": [1.0]}
    assert projection._parse_intersection(good)["y"].tolist() == [1.0]
    with pytest.raises(InvalidCertificate, match=why):
        projection._parse_intersection(good | changes)


def test_a_gap_is_relative_to_the_vector_of_the_first_span():
    data = {"A": np.eye(3, 2), "B": [[3.0], [4.0], [12.0]], "x": [3.0, 4.0], "y": [1.0]}
    parsed = projection._parse_intersection(data)
    assert float(projection._measure_intersection(parsed, False, {})["gap"]) == 12 / 5
    both = projection._measure_intersection(parsed, False, {"exact": [0.0]})
    assert both["exact"] == 1 and float(both["gap"]) == 12 / 5
    flat = projection._parse_intersection(data | {"B": [[3.0], [4.0], [0.0]]})
    assert projection._measure_intersection(flat, False, {"exact": [0.0]})["exact"] == 0


def test_statements_about_subspaces_in_words():
    assert projection._describe({}, {"keeps": 0.12345, "removes": 0.5}) == (
        "M A = A to within 0.124 and M B = 0 to within 0.5, so for v_a = A x and v_b = B y, M(v_a + v_b) differs from "
        "v_a by at most 0.124·|x| + 0.5·|y|"
    )
    assert projection._describe_intersection({}, {"gap": 0.0, "exact": 0.0}).startswith("span A and span B share")
    said = projection._describe_intersection({}, {"gap": 0.12345})
    assert said == (
        "A x and B y differ by at most 0.124 of the length of A x: a matrix that keeps the one and removes the other "
        "has a norm of at least 8.1"
    )
    assert projection._describe_intersection({}, {"gap": 0.0}).endswith("at least inf")
    assert projection._describe_intersection({}, {"gap": 4.0}).endswith("at least 0.249")
    assert "at least 1.99" in projection._describe_intersection({}, {"gap": 0.5})  # below 1/gap, not 2
