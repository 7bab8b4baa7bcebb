"""Statements about subspaces: "keeps and removes" and "intersect", against exact fractions."""

import math

import numpy as np
import oracle
import pytest

import qkv
from qkv.design.certificates import Certificate


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
