"""SymPy expressions back to nodes: the node has the value of the expression."""

import numpy as np
import pytest
import sympy as sp
from claim_builders import context_of, expression

from qkv.claims.numeric.evaluator import Instance, evaluate
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.node_conversion import expression_node
from qkv.claims.symbolic.unknowns import KeyLength

CONTEXT = context_of("t > 0, s real, gamma_1 real", "", "t = s + gamma_1")


@pytest.mark.parametrize(
    "text",
    ["t", "s - 3/7", "exp(2*t)/(s + 5)", "log(t + 2)^2", "sqrt(t)*s^3", "exp(1)*t", "t^(-2)", "gamma_1*exp(s*t)", "0"],
)
def test_values_agree(text):
    algebra = Evaluator(CONTEXT)
    found = sp.sympify(algebra.number(expression(text)))
    node = expression_node(algebra, found, (1, 1))
    numbers = {"t": 0.7, "s": -1.3, "gamma_1": 2.5}
    arrays = {name: np.full((1, 1, 1), value) for name, value in numbers.items()}
    inst = Instance(CONTEXT, 1, 2, arrays, {}, {}, {})
    expected = float(found.subs({algebra.symbol(n): v for n, v in numbers.items()}))
    assert float(evaluate(inst, node)[0, 0, 0]) == pytest.approx(expected, rel=1e-12)


def test_what_the_language_has_no_word_for_has_no_node():
    algebra = Evaluator(CONTEXT)
    t = algebra.symbol("t")
    for expr in (sp.Symbol("t"), KeyLength("a", "gamma") + t, sp.erf(t), t * sp.pi, sp.Abs(algebra.symbol("s"))):
        assert expression_node(algebra, expr, (1, 1)) is None
