"""Sums over an index that stands within a function."""

import pytest

from qkv.claims.arrays.context import build_array_context
from qkv.claims.arrays.errors import Unsupported
from qkv.claims.arrays.evaluator import ArrayEvaluator
from qkv.claims.syntax.markdown import read


def normal_form(expr):
    (claim,) = read(f"```claim x\ngiven z in R^n, r, s in simplex^n\nthen {expr} = 0\n```")
    return ArrayEvaluator(build_array_context(claim)).value(claim.statement.core.sides[0])


@pytest.mark.parametrize(
    "inner",
    [
        "softmax(z_i*z)'*z",
        "relu(z - z_i*ones)'*z",
        "sum_j abs(z_i - z_j)*r_j",
        "sum_j relu(z_j + z_i)",
        "norm(z - z_i*ones)",
        "max(z .* (z - z_i*ones))",
    ],
)
def test_an_index_within_a_function_is_no_constant(inner):
    with pytest.raises(Unsupported):
        normal_form(f"sum_i (r_i - s_i)*({inner})")


@pytest.mark.parametrize(
    "expr",
    [
        "sum_i (r_i - s_i)*lse(z)",
        "sum_i r_i*(sum_j s_j) - 1",
        "sum_i sum_j (z_i - z_j)",
        "sum_i (lse(z + z_i*ones) - lse(z) - z_i)",
    ],
)
def test_what_does_not_depend_on_the_index_leaves_the_sum(expr):
    assert not normal_form(expr).parts
