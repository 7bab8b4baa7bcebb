"""The exact evaluator: balls that contain the values of the evaluator in floats, and exactly orthogonal frames."""

from fractions import Fraction

import numpy as np
import pytest
from claim_builders import context_of, expression
from flint import ctx, fmpq_mat

from qkv.claims.numeric.arithmetic import Balls, Symbols
from qkv.claims.numeric.evaluator import CannotEvaluate, evaluate
from qkv.claims.numeric.exact_evaluator import ExactInstance, exact_number, frame_matrix, value
from qkv.claims.numeric.instances import instances

KEYS = "k_1..k_n orthonormal, n >= 3, t > 0"
FREE = "k_1..k_n free, q free, w free, n >= 2, t > 0"
BASES = "A, B orthonormal bases at right angles, x in R^m, y in R^p"


@pytest.mark.parametrize(
    ("given", "let", "text"),
    [
        (KEYS, "q = t*(k_a + k_b)", "alpha_a"),
        (KEYS, "q = t*(k_a + k_b)", "c"),
        (KEYS, "q_1 = t*k_a, q_2 = k_b", "c"),
        (KEYS, "q_1 = t*k_a, q_2 = k_b", "alpha_{2,b}"),
        (FREE, "", "c - sum_i alpha_i v_i"),
        (FREE, "", "norm(k_a - 2*k_b)*Phi(t)/sqrt(t)"),
        (FREE, "", "sum_{i != a} exp(k_i'q)"),
        (FREE, "", "R(t)*q - t^3*w"),
        (FREE, "", "k_a*k_b' - 2*I"),
        ("k_1..k_n orthogonal of norm beta, n >= 2", "q = k_a", "alpha_a*beta^2 + k_a'q"),
        (BASES, "M = A*A'", "M*(A*x + B*y)"),
        (BASES, "", "sum_{i=1}^m a_i*a_i'*A*x"),
        ("u_a, u_b, p_a orthogonal of norm 2", "x_1 = u_a + p_a, x_2 = u_b, V = 3*I, Q = u_a*u_b'", "c_1 + v_2"),
        ("s >= 1/3, t = 1/7", "", "s^2/t - log(s + 1)"),
        ("mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), n >= 2", "q = mu_a", "alpha_a - k_b'q"),
        ("gamma ~ N(1, 1/2)", "", "exp(gamma) - gamma"),
    ],
)
def test_balls_contain_what_floats_compute(given, let, text):
    context, expr = context_of(given, let, f"{text} = {text}"), expression(text)
    for inst in instances(context, 10):
        draw = min(3, inst.samples - 1)
        floats = evaluate(inst, expr)
        floats = floats[draw if len(floats) > 1 else 0]
        exact = ExactInstance.of(inst, Balls(), draw)
        try:
            found = value(exact, expr)
        except CannotEvaluate:  # too many items
            continue
        assert Balls().shape(found) == floats.shape
        middle = np.array([[float(found[i, j].mid()) for j in range(floats.shape[1])] for i in range(floats.shape[0])])
        if not context.noise:  # keys are drawn by another root of the covariance
            np.testing.assert_allclose(middle, floats, rtol=1e-9, atol=1e-9)
        assert all(float(x.rad()) < 1e-6 * (1 + abs(float(x.mid()))) for x in found.entries())


@pytest.mark.parametrize("d", [2, 5, 8])
def test_frames_are_orthogonal_exactly_and_those_of_the_floats(d):
    reflections = ((1, *[2] * (d - 1)), tuple(range(-1, d - 1)))
    exact = frame_matrix(reflections, d)
    identity = fmpq_mat(d, d, [int(i == j) for i in range(d) for j in range(d)])
    assert exact * exact.transpose() == identity
    from qkv.claims.numeric.evaluator import Frame

    floats = np.array([[float(Fraction(int(exact[i, j].p), int(exact[i, j].q))) for j in range(d)] for i in range(d)])
    np.testing.assert_allclose(Frame(reflections).matrix(d), floats, atol=1e-12)


def test_ends_of_ranges_and_equal_numbers_are_what_the_claim_says():
    context = context_of("1/3 <= s <= 1/3, t >= 1/7, r = log(s + 2)", "", "s = s")
    (inst,) = instances(context, 1)
    inst.put("t", 1 / 7)
    exact = ExactInstance.of(inst, Symbols())
    assert str(exact_number(exact, "s")) == "1/3" and str(exact_number(exact, "t")) == "1/7"
    assert str(exact_number(exact, "r")) in ("log(7/3)", "log(1/3 + 2)")


def test_an_empty_sum_has_the_shape_of_a_summand():
    context = context_of("k_1..k_n orthonormal, n = 1", "q = k_a", "sum_{i != a} alpha_i v_i = c - alpha_a*v_a")
    (inst,) = instances(context, 1)
    left = context.claim.statement.core.sides[0]
    assert evaluate(inst, left).shape == (1, inst.d, 1)
    assert Balls().shape(value(ExactInstance.of(inst, Balls()), left)) == (inst.d, 1)


@pytest.mark.parametrize("text", ["log(0 - t)", "1/(t - t)", "sqrt(0 - t)", "k_a + k_a*k_a'", "E[t]"])
def test_what_has_no_value_is_not_invented(text):
    (inst,) = instances(context_of("k_1..k_n free, t > 0, n = 2", "", "k_a = k_b"), 1)
    with pytest.raises(CannotEvaluate):
        value(ExactInstance.of(inst, Balls()), expression(text))


def test_more_bits_give_smaller_balls():
    (inst,) = instances(context_of("t > 1", "", "t = t"), 1)
    radii = []
    for bits in (64, 256, 1024):
        with ctx.workprec(bits):
            radii.append(float(value(ExactInstance.of(inst, Balls()), expression("exp(t)/3"))[0, 0].rad()))
    assert radii[0] > radii[1] >= radii[2] and radii[1] < 1e-70
