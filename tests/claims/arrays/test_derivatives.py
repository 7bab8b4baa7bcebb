"""Derivatives as expressions, against differences of the values of the expression itself."""

import pytest

from qkv.claims.arrays import exact_values as exact
from qkv.claims.arrays.context import build_array_context
from qkv.claims.arrays.instances import ArrayInstance, drawn
from qkv.claims.syntax.markdown import read

STEP = 2.0**-60


def values(inst, expr):
    found = exact.value(inst, expr)
    return [float(x.mid()) for x in found.entries()], (found.nrows(), found.ncols())


def moved(inst, name, place, by):
    from fractions import Fraction

    rows = [list(row) for row in inst.arrays[name]]
    rows[place][0] += Fraction(by)
    return ArrayInstance(inst.context, inst.sizes, inst.numbers, {**inst.arrays, name: rows}, inst.items)


@pytest.mark.parametrize(
    ("function", "inner"),
    [
        ("jac", "softmax(z)"),
        ("jac", "sigmoid(z)"),
        ("jac", "tanh(A*z)"),
        ("jac", "sin(z) + cos(2*z)"),
        ("jac", "exp(z)"),
        ("jac", "z .* z"),
        ("jac", "(A*z) .* sigmoid(z)"),
        ("jac", "A*softmax(z) - z"),
        ("grad", "lse(A*z)"),
        ("grad", "norm(A*z)^2"),
        ("grad", "z'*A*z"),
        ("grad", "sum_i z_i"),
        ("grad", "entropy(softmax(z))"),
        ("grad", "entropy(softmax(A*z))"),
        ("grad", "cross_entropy(y, softmax(A*z))"),
        ("grad", "cross_entropy(softmax(y), softmax(z)) + y'*z"),
    ],
)
def test_a_derivative_is_the_limit_of_differences(function, inner):
    (claim,) = read(f"```claim x\ngiven z, y in R^n, A in R^{{n x n}}\nthen {function}({inner}, z) = A\n```")
    context = build_array_context(claim)
    call = claim.statement.core.sides[0]
    for seed in (1, 2, 4):
        with exact.precision():
            inst = drawn(context, seed)
            inst.arrays |= {"y": [[x + 1] for (x,) in inst.arrays.get("z")], "A": drawn(context, seed + 5).arrays["A"]}
            inst.arrays["A"] = [
                [(3 * i - 2 * j + seed) % 5 - 2 for j in range(inst.sizes["n"])] for i in range(inst.sizes["n"])
            ]
            inst.arrays["A"] = [[type(inst.arrays["z"][0][0])(x) for x in row] for row in inst.arrays["A"]]
            found, (rows, cols) = (
                values(inst, call) if "sum_i" not in inner else ([1.0] * inst.sizes["n"], (inst.sizes["n"], 1))
            )
            for place in range(inst.sizes["n"]):
                ends = [exact.value(moved(inst, "z", place, by), call.args[0]) for by in (STEP, -STEP)]
                slopes = [
                    float(((a - b) / (2 * STEP)).mid()) for a, b in zip(*(e.entries() for e in ends), strict=True)
                ]
                own = [found[i * cols + place] for i in range(rows)] if function == "jac" else [found[place]]
                assert own == pytest.approx(slopes, rel=1e-9, abs=1e-9)
