"""Impossibility, against NumPy's roots: "no real r makes p(r) = 0" is proved only if p has no real root in range."""

import numpy as np
import pytest
import sympy as sp
from claim_builders import context_of
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.claims.symbolic.errors import Unsupported
from qkv.claims.symbolic.impossibility import never
from qkv.claims.symbolic.limit_statements import limit_statement
from qkv.claims.symbolic.proof import CONDITIONAL, PROVED, REFUTED, UNKNOWN


def decided(given_text, let, then):
    context = context_of(given_text, let, then)
    return never(context, context.claim.statement.core)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=3, max_size=4), st.sampled_from([None, 0, 1]))
def test_polynomials_have_no_root_exactly_when_numpy_finds_none(coefficients, low):
    if coefficients[-1] == 0:
        coefficients = [*coefficients[:-1], 1]
    text = " + ".join(f"({c})*r^{j}" if j else f"({c})" for j, c in enumerate(coefficients))
    found = decided("r real" if low is None else f"r > {low}", "", f"no real r makes {text} = 0")
    roots = np.roots(coefficients[::-1])
    near = [z for z in roots if abs(z.imag) < 1e-3]
    clear = all(abs(z.imag) < 1e-9 for z in near) and all(low is None or abs(z.real - low) > 1e-6 for z in near)
    real = [z.real for z in near if low is None or z.real > low]
    if found.kind == REFUTED:
        value = found.witness.number
        assert abs(np.polyval(coefficients[::-1], value)) < 1e-6 * (1 + abs(value)) ** 4
        assert low is None or value > low
    if found.kind == PROVED and clear:
        assert not real
    if clear and real:
        assert found.kind != PROVED


def test_a_witness_is_the_number_that_does_it():
    found = decided("r real", "", "no real r makes 3*r = 2")
    assert found.kind == REFUTED and found.witness.value == sp.Rational(2, 3)
    assert found.witness.assignment() == "r = 2/3"
    root = decided("r > 0", "", "no real r makes r^2 = 2")
    assert float(root.witness.value) == pytest.approx(2**0.5) and "1.414" in root.witness.assignment()


@pytest.mark.parametrize(
    ("given_text", "let", "then", "kind"),
    [
        ("u_a, u_b orthonormal", "", "no real r makes r*u_a = u_b", PROVED),
        ("u_a, u_b orthonormal", "", "no real r makes r*u_a = 2*u_a", REFUTED),
        ("r real", "", "no real r makes exp(r) = 0", PROVED),
        ("r real", "", "no real r makes exp(r)*r = 1", UNKNOWN),
        ("r real", "", "no real r makes r = r", REFUTED),
    ],
)
def test_kinds_of_outcomes(given_text, let, then, kind):
    assert decided(given_text, let, then).kind == kind


@pytest.mark.parametrize(
    ("given_text", "then"),
    [
        ("u_a free, u_b free", "no real r makes r*u_a = u_b"),
        ("k_1..k_n orthonormal, u_1..u_n orthonormal, n >= 3", "no real r makes r*k_a = u_a"),
        ("r real", "no real r makes r > 1"),
        ("t > 0", "no real r makes r -/-> 0 as t -> oo"),
    ],
)
def test_vectors_that_may_depend_on_each_other_and_inequalities_are_not_supported(given_text, then):
    with pytest.raises(Unsupported):
        decided(given_text, "", then)


NOISE = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + 1/2*mu_a*mu_a'), n >= 3"


def test_a_query_that_does_not_see_the_noise_is_a_witness():
    found = decided(NOISE, "q = t*(mu_a + mu_b)", "no query q makes c -> (v_a + v_b)/2 as eps -> 0, t -> oo")
    assert found.kind == CONDITIONAL and "true of the query given" in found.because
    assert found.witness.name == "q" and found.witness.number is None
    assert "mu_a" not in found.witness.value.replace("not in a", "")  # it scores k_a by nothing random


def test_without_a_query_of_its_own_the_claim_is_refuted():
    found = decided("k_1..k_n orthonormal, n >= 3", "q = t*k_a", "no query q makes c -> v_a as t -> oo")
    assert found.kind == REFUTED and found.witness.name == "q" and found.witness.value.startswith("t*(")
    text = found.witness.value.replace("not in a", "!= a").replace("(- sum", "(-1*sum")
    again = context_of("k_1..k_n orthonormal, n >= 3", f"q = {text}", "c -> v_a as t -> oo")
    assert limit_statement(again, again.claim.statement.core).kind == PROVED
