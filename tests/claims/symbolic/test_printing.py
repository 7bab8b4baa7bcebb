"""Printed values: text that the parser reads back to the same number, LaTeX of every typed unknown."""

import numpy as np
import pytest
import sympy as sp
from claim_builders import context_of, expression

from qkv.claims.numeric.evaluator import Instance, evaluate
from qkv.claims.semantics.context import REST
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.factors import Factor, member, noise_vector, turn, unnamed_mean, unnamed_sum
from qkv.claims.symbolic.matrix_polynomials import ZERO, MatrixPolynomial, identity, vector
from qkv.claims.symbolic.printing import (
    factor_latex,
    factor_text,
    polynomial_latex,
    polynomial_text,
    scalar_latex,
    scalar_text,
    step,
)
from qkv.claims.symbolic.unknowns import (
    Gap,
    InnerProduct,
    KeyLength,
    KeyShift,
    NoiseScore,
    RestSum,
    RestWeight,
    Statistic,
    Theta,
    UnreducedProduct,
)

T = sp.Symbol("t", positive=True)
Q, KA, KI = Factor("q", "vector"), member("k", "a"), member("k", REST)
SCORE = InnerProduct(KA, Q)
MU = member("mu", "a")


@pytest.mark.parametrize(
    "text", ["2*t - 1/3", "exp(2*t)/(exp(t) + n - 2)", "sqrt(t)*log(t + 1)", "t^(-3)", "exp(1) + t^2", "(t + n)^3/7"]
)
def test_scalars_are_printed_in_the_language_of_claims(text):
    context = context_of("t > 0, n >= 1", "", "t = n")
    algebra = Evaluator(context)
    value = algebra.number(expression(text))
    numbers = {"t": 0.8, "n": 5.0}
    arrays = {name: np.full((1, 1, 1), x) for name, x in numbers.items()}
    arrays["e"] = np.full((1, 1, 1), np.e)
    back = evaluate(Instance(context, 5, 2, arrays, {}, {}, {}), expression(scalar_text(value)))
    assert float(back[0, 0, 0]) == pytest.approx(float(value.subs({algebra.symbol(k): v for k, v in numbers.items()})))


@pytest.mark.parametrize(
    ("expr", "text", "latex"),
    [
        (SCORE, "k_a'q", r"k_{a}^\top q"),
        (InnerProduct(KI, Q), "k_i'q", r"k_{i}^\top q"),
        (2 * SCORE * T, "2*k_a'q*t", r"2 k_{a}^\top q t"),
        (NoiseScore(noise_vector("a"), MU), "z_a'mu_a", r"z_{a}^\top \mu_{a}"),
        (UnreducedProduct((KA.turned(), turn(T), Q)), "(k_a'*R(t)*q)", r"k_{a}^\top R\left(t\right) q"),
        (Gap(SCORE, True), "gap(k_a'q)", r"g_{k_{a}^\top q}"),
        (Gap(T, False), "gap(t)", "g_{t}"),
        (RestSum("", True), "rest", r"\rho_{}"),
        (Theta("1"), "theta1", r"\theta_{1}"),
        (RestWeight("1"), "alpha_i", r"\alpha_{i}"),
        (KeyLength("a", "gamma"), "gamma_a", r"\gamma_{a}"),
        (KeyLength(REST, "length"), "length_i", r"\mathrm{length}_{i}"),
        (KeyShift("a", MU), "g_a,mu_a", r"g_{a,\mu_{a}}"),
        (Statistic("Var", (KeyLength("a", "gamma") * T,)), "Var[gamma_a*t]", r"\mathrm{Var}\left[\gamma_{a} t\right]"),
        (Statistic("P", (SCORE - T,)), "P[k_a'q - t > 0]", r"\mathrm{P}\left[k_{a}^\top q - t > 0\right]"),
        (sp.E**2 + sp.E, "e + exp(2)", "e + e^{2}"),
        (T**2, "t^2", "t^{2}"),
    ],
)
def test_unknowns_are_printed_by_their_type(expr, text, latex):
    assert scalar_text(expr) == text
    assert scalar_latex(expr) == latex


@pytest.mark.parametrize(
    ("factor", "text", "latex"),
    [
        (KA, "k_a", "k_{a}"),
        (KI.turned(), "k_i'", "k_{i}"),
        (MU, "mu_a", r"\mu_{a}"),
        (Q.turned(), "q'", "q"),
        (noise_vector(REST), "z_i", "z_{i}"),
        (unnamed_sum(member("v", REST)), "(sum of the other v_i)", r"\sum_i v_i"),
        (unnamed_sum(member("v", REST)).turned(), "(sum of the other v_i)'", r"\sum_i v_i"),
        (unnamed_mean(member("v", REST), RestWeight("")), "(weighted mean of the other v_i)", r"\bar v"),
        (Factor("A", "basis", "d", "m"), "A", "A"),
    ],
)
def test_factors_are_printed_by_their_type(factor, text, latex):
    assert factor_text(factor) == text
    assert factor_latex(factor) == latex


def test_polynomials():
    two = vector(KA).scaled(sp.Integer(2)).plus(vector(member("k", "b")).scaled(-T))
    assert polynomial_text(two) == "2*k_a - t*k_b"
    assert polynomial_latex(two) == r"\left(2\right) k_{a} + \left(- t\right) k_{b}"
    assert polynomial_text(vector(KA).scaled(T + 1)) == "(t + 1)*k_a"
    assert (polynomial_text(ZERO), polynomial_text(MatrixPolynomial({}, ("d", "1")))) == ("0", "0")
    assert (polynomial_text(identity("d")), polynomial_latex(identity("d"))) == ("I", "I")


def test_a_step_without_a_formula_is_text():
    assert step("k_a is x^2").latex == r"\text{k\_a is x\^2}"
    assert step("text", "x = 1").latex == "x = 1"
