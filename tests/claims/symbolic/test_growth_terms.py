"""Growths: what they are as expressions, and their quotients."""

import pytest
import sympy as sp

from qkv.claims.symbolic.growth_terms import Growth

x = sp.Symbol("x", positive=True)
GROWTHS = {
    "e^(2x) x^3 log x": Growth(((1, sp.Integer(2)),), sp.Integer(3), sp.Integer(1)),
    "e^(x^2 - x) / x": Growth(((2, sp.Integer(1)), (1, sp.Integer(-1))), sp.Integer(-1), sp.Integer(0)),
    "1 / log x": Growth((), sp.Integer(0), sp.Integer(-1)),
}
WRITTEN = {
    "e^(2x) x^3 log x": sp.exp(2 * x) * x**3 * sp.log(x),
    "e^(x^2 - x) / x": sp.exp(x**2 - x) / x,
    "1 / log x": 1 / sp.log(x),
}


@pytest.mark.parametrize("name", GROWTHS)
def test_a_growth_is_written_with_its_powers_and_logarithms(name):
    assert sp.simplify(GROWTHS[name].expression(x) / WRITTEN[name]) == 1


@pytest.mark.parametrize("top", GROWTHS)
@pytest.mark.parametrize("bottom", GROWTHS)
def test_a_quotient_is_the_quotient_of_the_expressions(top, bottom):
    found = GROWTHS[top].over(GROWTHS[bottom]).expression(x)
    assert sp.simplify(found * WRITTEN[bottom] / WRITTEN[top]) == 1
