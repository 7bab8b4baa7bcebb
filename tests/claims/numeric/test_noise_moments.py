"""Exact moments of weights against quadrature over the one random number, and probabilities against the normal law."""

import numpy as np
import pytest
from claim_builders import context_of, expression
from scipy import integrate
from scipy.stats import norm

import qkv
from qkv.claims.numeric import noise_moments
from qkv.claims.numeric.evaluator import CannotEvaluate
from qkv.claims.numeric.instances import instances

EPS = 1e-7  # next to nothing, so that one random length is left
NUMBERS = f"n = 4, t = 3, eps = {EPS:.7f}"
GIVEN = f"mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + 1/2*mu_a*mu_a'), {NUMBERS}"


@pytest.fixture(scope="module")
def inst():
    return next(iter(instances(context_of(GIVEN, "q = t*(mu_a + mu_b)", "Var[alpha_a] < 1"), 1)))


def weights(length, t=3.0, n=4):
    scores = np.array([length * t, t, *[0.0] * (n - 2)])
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def mean(function):
    density = norm(1, np.sqrt(0.5)).pdf
    return integrate.quad(lambda g: function(weights(g)) * density(g), -7, 9, limit=300)[0]


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("E[alpha_a]", lambda: mean(lambda w: w[0])),
        ("E[2*alpha_a + alpha_b - 1]", lambda: mean(lambda w: 2 * w[0] + w[1] - 1)),
        ("Var[alpha_a]", lambda: mean(lambda w: w[0] ** 2) - mean(lambda w: w[0]) ** 2),
        ("Cov[alpha_a, alpha_b]",
         lambda: mean(lambda w: w[0] * w[1]) - mean(lambda w: w[0]) * mean(lambda w: w[1])),
    ],
)  # fmt: skip
def test_moments_agree_with_quadrature(inst, text, reference):
    value, error = noise_moments.moment(inst, expression(text))
    assert float(value[0, 0, 0]) == pytest.approx(reference(), abs=5e-6)
    assert error < 1e-6


def test_a_correlation_is_the_covariance_over_the_deviations(inst):
    both, one, two = (
        float(noise_moments.moment(inst, expression(text))[0][0, 0, 0])
        for text in ("Cov[alpha_a, alpha_b]", "Var[alpha_a]", "Var[alpha_b]")
    )
    found = float(noise_moments.moment(inst, expression("Corr[alpha_a, alpha_b]"))[0][0, 0, 0])
    assert found == pytest.approx(both / np.sqrt(one * two), rel=1e-9)


def test_events_are_those_of_the_normal_length(inst):
    """alpha_a > alpha_b exactly when the length exceeds 1, which it does half of the time."""
    low, high = noise_moments.event(inst, expression("P[alpha_a > alpha_b]"))
    assert low - 1e-3 <= 0.5 <= high + 1e-3 and high - low < 0.02
    below = noise_moments.event(inst, expression("P[alpha_a < alpha_b]"))
    assert below == pytest.approx((1 - high, 1 - low))


def test_the_probability_of_an_output_near_a_target(inst):
    context = context_of(GIVEN, "q = t*(mu_a + mu_b)", "alpha_a within 0.1 of 1/2 with probability >= 0.5")
    one = next(iter(instances(context, 1)))
    (low, high), _ = noise_moments.nearness(one, context.claim.statement.core)
    lengths = norm(1, np.sqrt(0.5)).ppf((np.arange(20_000) + 0.5) / 20_000)
    share = np.mean([abs(weights(g)[0] - 0.5) <= 0.1 for g in lengths])
    assert low - 2e-3 <= share <= high + 2e-3


def test_only_linear_functions_of_weights_have_exact_moments(inst):
    assert noise_moments.moment(inst, expression("E[alpha_a*alpha_b]")) is None
    assert noise_moments.moment(inst, expression("Var[k_a'q]")) is None
    with pytest.raises(CannotEvaluate):
        noise_moments.moment(inst, expression("Corr[alpha_a, sum_i alpha_i]"))


def test_it_applies_where_all_noise_is_in_the_keys(inst):
    assert noise_moments.applies(inst)
    other = next(iter(instances(context_of("gamma ~ N(1, 1/2)", "", "gamma > 0"), 1)))
    assert not noise_moments.applies(other)


def test_exact_moments_agree_with_qkv_noise():
    given = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + 1/2*mu_a*mu_a'), n = 10"
    context = context_of(f"{given}, t = 20, eps = 0.000001", "q = t*(mu_a + mu_b)", "Var[alpha_a] < 1")
    inst = next(iter(instances(context, 1)))
    value, error = noise_moments.moment(inst, context.claim.statement.core.sides[0])
    memory = qkv.Memory(np.eye(10))
    spread = qkv.noise.reading_moments(
        memory, 20 * (memory.keys[0] + memory.keys[1]), qkv.noise.Gaussian(1e-6, along={0: 0.5})
    )
    assert abs(float(value[0, 0, 0]) - float(spread.weights_var[0])) < 1e-8 + error
