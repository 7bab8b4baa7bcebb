"""Witnesses as numbers and as assignments that Python accepts."""

import pytest
import sympy as sp

from qkv.claims.symbolic.proof import Witness


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (sp.Rational(1, 3), 1 / 3),
        (sp.Integer(-2), -2.0),
        (sp.sqrt(2), 2**0.5),
        ("t*mu_a", None),
        (sp.Symbol("r"), None),
    ],
)
def test_a_witness_is_a_number_or_text(value, number):
    witness = Witness("r", value)
    assert witness.number == (None if number is None else pytest.approx(number))
    values = {}
    exec(witness.assignment(), {}, values)
    assert values["r"] == (pytest.approx(number) if number is not None else str(value))
