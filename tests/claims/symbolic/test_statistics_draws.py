"""Statistics: closed forms against sampled normal keys and SciPy's normal law, limits against quadrature."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from claim_builders import context_of, expression
from scipy import integrate
from scipy.stats import norm

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.errors import Unsupported
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.limit_statements import follower, path_of
from qkv.claims.symbolic.sign_analysis import Assumptions
from qkv.claims.symbolic.statistics import linear, normal_cdf, region_probability, statistic_limit
from qkv.claims.symbolic.unknowns import Statistic

NOISE = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + 1/2*mu_a*mu_a'), n >= 3, t > 0"
EPS, T = 0.3, 0.8


@pytest.fixture(scope="module")
def draws():
    """k_a and k_b in four dimensions, drawn directly from their distributions."""
    rng = np.random.default_rng(1)
    noise = np.sqrt(EPS) * rng.standard_normal((2, 400_000, 4))
    mean = np.eye(4)
    k_a = mean[0] * (1 + np.sqrt(0.5) * rng.standard_normal((400_000, 1))) + noise[0]
    return k_a, mean[1] + noise[1]


@pytest.mark.parametrize(
    ("text", "sample"),
    [
        ("E[k_a'q]", lambda a, b, q: (a @ q).mean()),
        ("Var[k_a'q]", lambda a, b, q: (a @ q).var()),
        ("Var[k_b'q]", lambda a, b, q: (b @ q).var()),
        ("Cov[k_a'q, k_b'q]", lambda a, b, q: np.cov(a @ q, b @ q)[0, 1]),
        ("Cov[k_a'q, k_a'mu_a]", lambda a, b, q: np.cov(a @ q, a[:, 0])[0, 1]),
        ("Corr[k_a'q, k_a'mu_a]", lambda a, b, q: np.corrcoef(a @ q, a[:, 0])[0, 1]),
        ("P[k_a'q > 1]", lambda a, b, q: (a @ q > 1).mean()),
        ("P[k_a'q < k_b'q]", lambda a, b, q: (a @ q < b @ q).mean()),
        ("P[k_a'q = 1]", lambda a, b, q: 0.0),
    ],
)
def test_closed_forms_agree_with_draws(draws, text, sample):
    algebra = Evaluator(context_of(NOISE, "q = t*(mu_a + 2*mu_b)", f"{text} = 0"))
    value = algebra.number(expression(text)).subs({algebra.symbol("t"): T, algebra.symbol("eps"): EPS})
    q = T * np.array([1.0, 2.0, 0, 0])
    assert float(value) == pytest.approx(sample(*draws, q), abs=0.012)


def test_the_covariance_of_a_vector_is_a_matrix():
    algebra = Evaluator(
        context_of("mu_1..mu_n orthonormal, gamma ~ N(1, 1/2), n >= 2", "w = gamma*mu_a", "w = 0"), frozenset()
    )
    found = algebra.value(expression("Cov[w]"))
    assert found.shape == ("d", "d") and list(found.terms.values()) == [sp.Rational(1, 2)]


def test_the_normal_distribution_function_is_scipys():
    for x in (-3, -0.5, 0, 1, 4):
        assert float(normal_cdf(sp.Rational(x) if x == int(x) else sp.Float(x))) == pytest.approx(
            norm.cdf(x), rel=1e-12
        )


def test_linear_functions_are_taken_apart():
    algebra = Evaluator(context_of("gamma ~ N(1, 1/2), eps ~ N(0, 1)", "", "gamma = eps"))
    g, e = algebra.symbol("gamma"), algebra.symbol("eps")
    assert linear(algebra, 3 * g - e + 2) == (2, {e: -1, g: 3})
    assert linear(algebra, g * e) is None and linear(algebra, sp.exp(g)) is None


def test_a_box_of_independent_normals_has_the_product_of_their_probabilities():
    algebra = Evaluator(context_of("gamma ~ N(1, 1/2), eps ~ N(0, 4)", "", "gamma = eps"))
    g, e = algebra.symbol("gamma"), algebra.symbol("eps")
    ranges = {g: Range().meet(">", Fraction(1, 2)), e: Range().meet("<", Fraction(1))}
    assumptions = Assumptions(ranges)
    found = region_probability(algebra, assumptions, frozenset({g, e}))
    expected = norm.sf(0.5, 1, np.sqrt(0.5)) * norm.cdf(1, 0, 2)
    assert float(found) == pytest.approx(expected, rel=1e-12)


LENGTH = "mu_1..mu_n orthonormal, gamma ~ N(1, 1/2), n >= 3"


@pytest.mark.parametrize("text", ["E[alpha_a]", "Var[alpha_a]", "E[alpha_a*alpha_b]"])
def test_limits_of_statistics_of_weights_agree_with_quadrature_far_out(text):
    """E and Var of alpha_a = e^(gamma t)/(e^(gamma t) + e^t + n - 2) at t = 4000, by quadrature over gamma."""
    then = f"{text} -> 0 as t -> oo"
    context = context_of(LENGTH, "k_i = mu_i, k_a = gamma*mu_a, q = t*(mu_a + mu_b)", then)
    algebra = Evaluator(context)
    statistic = algebra.number(expression(text))
    assert isinstance(statistic, Statistic)
    core = context.claim.statement.core
    follow = follower(algebra, path_of(context, core.approach, core.at))
    limit = statistic_limit(algebra, Assumptions({algebra.symbol("n"): context.numbers["n"]}), statistic, follow)

    def weights(gamma, t=4000.0, n=5):
        scores = np.array([gamma * t, t, *[0.0] * (n - 2)])
        powers = np.exp(scores - scores.max())
        return powers / powers.sum()

    def mean(function):
        density = norm(1, np.sqrt(0.5)).pdf
        return integrate.quad(lambda g: function(weights(g)) * density(g), -6, 8, points=[0, 1], limit=400)[0]

    a = mean(lambda w: w[0])
    expected = {"E[alpha_a]": a, "Var[alpha_a]": mean(lambda w: w[0] ** 2) - a**2}.get(
        text, mean(lambda w: w[0] * w[1])
    )
    assert float(limit) == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("text", ["E[exp((k_a'q)^2)]", "E[log(k_a'q)]", "Corr[t, k_a'q]"])
def test_what_has_no_closed_form_is_not_supported(text):
    algebra = Evaluator(context_of(NOISE, "q = t*mu_a", f"{text} = 0"))
    with pytest.raises(Unsupported):
        algebra.number(expression(text))
