"""An instance as Python: the assignments run, and the formulas recomputed from them give both sides."""

import numpy as np
import pytest
from claim_builders import context_of

from qkv.claims.numeric.counterexample import python_assignments
from qkv.claims.numeric.instances import instances


def assigned(given, let, then, number=0):
    context = context_of(given, let, then)
    inst = list(instances(context, number + 1))[number]
    values = {}
    exec(python_assignments(inst, context.claim.statement.core), {}, values)
    return values


@pytest.mark.parametrize("number", [0, 9])
def test_both_sides_follow_from_the_numbers(number):
    values = assigned("k_1..k_n orthonormal, n >= 3, t > 0", "q = t*(k_a + k_b)", "alpha_a = 1/2", number)
    keys = {name: np.array(v) for name, v in values["k"].items()}
    query = values["t"] * (keys["a"] + keys["b"])
    scores = np.array([key @ query for key in keys.values()] + [0.0] * (values["n"] - len(keys)))
    assert values["left"] == pytest.approx(np.exp(scores[0]) / np.exp(scores).sum(), abs=1e-4)
    assert values["right"] == 0.5


def test_vectors_and_matrices_are_lists():
    values = assigned("A orthonormal basis, x in R^m", "", "A*x = 0")
    np.testing.assert_allclose(np.array(values["A"]) @ np.array(values["x"]), values["left"], atol=1e-5)
    assert values["right"] == 0.0


def test_what_overflows_is_still_python():
    values = assigned("t > 0", "", "exp(exp(exp(t*20))) = 1")
    assert values["left"] == float("inf")


def test_shapes_that_do_not_fit_have_no_value():
    assert assigned("A orthonormal basis, x in R^m", "", "A*x + x = x")["left"] is None


def test_limits_probabilities_and_impossibilities_show_their_sides():
    assert {"left", "right"} <= set(assigned("t > 0", "", "t -> 1 as t -> oo"))
    assert {"left", "right"} <= set(assigned("r real", "", "no real r makes r = 1"))
    assert {"left", "target"} <= set(assigned("gamma ~ N(1, 1/2)", "", "gamma within 1 of 2 with probability >= 0.5"))
