"""Limits in n, checked on formulas whose limits are known."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
import sympy as sp

from qkv.claims.numeric.item_limit_checks import NOT_TRIED, formulas_agree
from qkv.claims.semantics.ranges import Range

N = sp.Symbol("n", positive=True, integer=True)
T = sp.Symbol("t", positive=True)
POSITIVE = ((T, Range(Fraction(0), None, True)),)


@dataclass
class Formula:
    difference: Any
    size: Any = N
    others: tuple = ()
    tends: bool = True


@pytest.mark.parametrize(
    ("formula", "agrees"),
    [
        (Formula(1 / N), True),
        (Formula(1 / N, tends=False), False),
        (Formula(1 + 1 / N), False),
        (Formula(1 + 1 / N, tends=False), True),
        (Formula(sp.exp(T) / (N + sp.exp(T)), others=POSITIVE), True),
        (Formula(N * sp.exp(T) / (N + sp.exp(T) - 1) - sp.exp(T), others=POSITIVE), True),
        (Formula(N * sp.exp(T) / (N + sp.exp(T) - 1) - 1, others=POSITIVE), False),
        (Formula(sp.sqrt(N + 1) - sp.sqrt(N)), True),
        (Formula(1 / sp.log(N)), True),
        (Formula(1 / sp.log(N), tends=False), False),
        (Formula(1 / sp.sqrt(sp.log(N))), True),
        (Formula(sp.Rational(1, 10) + 1 / sp.log(N)), False),
        (Formula(sp.Rational(1, 10) + 1 / sp.log(N), tends=False), True),
    ],
)
def test_formulas_with_known_limits(formula, agrees):
    found, how = formulas_agree([formula])
    assert found == agrees and ("from 10^3 to 10^" in how) == agrees


def test_one_case_that_fails_is_enough():
    assert not formulas_agree([Formula(1 / N), Formula(sp.Integer(1) + 0 * N)])[0]


def test_what_cannot_be_tried_is_said():
    assert formulas_agree([]) == (True, NOT_TRIED)
    assert formulas_agree([None]) == (True, NOT_TRIED)
    nowhere = ((T, Range(Fraction(100), None)),)  # none of the numbers that are tried lies there
    assert formulas_agree([Formula(T / N, others=nowhere)]) == (True, NOT_TRIED)
