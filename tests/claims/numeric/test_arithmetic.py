"""Both exact arithmetics against known values."""

from fractions import Fraction

import pytest
import sympy as sp
from flint import arb

from qkv.claims.numeric.arithmetic import Balls, Symbols
from qkv.claims.numeric.evaluator import CannotEvaluate


@pytest.mark.parametrize("kind", [Balls(), Symbols()])
def test_functions_and_powers(kind):
    two = kind.number(Fraction(2))
    assert float(kind.function("Phi", kind.number(0.0))) == 0.5
    assert float(kind.function("exp", kind.function("log", two))) == pytest.approx(2)
    assert float(kind.power(two, kind.number(Fraction(-3)))) == 0.125
    assert float(kind.power(two, kind.number(Fraction(1, 2)))) == pytest.approx(2**0.5)
    assert float(kind.norm([kind.number(3.0), kind.number(-4.0)])) == 5
    assert kind.shape(kind.times(two, kind.matrix(2, 3, [1] * 6))) == (2, 3)
    assert kind.surely_positive(two) and not kind.surely_positive(-two)


def test_powers_and_norms_of_a_ball_that_holds_zero_stay_finite():
    ball = arb(0, 1e-30)
    assert Balls().power(ball, arb(2)).is_finite() and Balls().power(ball, arb(3)).contains(0)
    assert Balls().norm([ball, ball]).is_finite()


def test_a_float_is_the_binary_fraction_that_it_is():
    assert Symbols().number(0.1) == sp.Rational(*(0.1).as_integer_ratio())
    assert Balls().number(0.1) == arb(0.1) and Balls().number(0.1).is_exact()


@pytest.mark.parametrize(("kind", "bad"), [(Balls(), arb("nan")), (Symbols(), sp.zoo), (Symbols(), sp.I)])
def test_what_is_not_finite_is_refused(kind, bad):
    with pytest.raises(CannotEvaluate):
        kind.require_finite(bad)
