"""Evidence: true claims have no instance that disagrees, false ones have one, and ties are not counted as agreement."""

import pytest
from claim_builders import cases_of

import qkv
from qkv.claims.numeric.evidence import N_INSTANCES, Evidence, gather, smallest

KEYS = "k_1..k_n orthonormal, n >= 3, t > 0"
QUERY = "q = t*(k_a + k_b)"


@pytest.mark.parametrize(
    ("given", "let", "then"),
    [
        (KEYS, QUERY, "alpha_a = alpha_b"),
        (KEYS, QUERY, "alpha_a < 1/2"),
        (KEYS, QUERY, "alpha_i > 0"),
        (KEYS, QUERY, "alpha is a probability distribution"),
        (KEYS, QUERY, "alpha_a -> 1/2 as t -> oo"),
        ("r real", "", "no real r makes r^2 = -1"),
        ("u_a, u_b, u_c orthonormal", "x_1 = u_a, x_2 = 2*u_b, x_3 = u_c, V = 2*I", "c is permutation equivariant"),
        ("A, B orthonormal bases at right angles, x in R^m", "", "B'*A*x = 0"),
    ],
)
def test_nothing_speaks_against_what_is_true(given, let, then):
    found = gather(cases_of(given, let, then))
    assert found.agree >= 4 and found.disagree == 0 and found.counterexample is None


@pytest.mark.parametrize(
    ("given", "let", "then"),
    [
        (KEYS, QUERY, "alpha_a = 1/2"),
        (KEYS, QUERY, "alpha_a > 1/2"),
        (KEYS, QUERY, "alpha_i > alpha_a"),
        (KEYS, QUERY, "alpha_a -> 1 as t -> oo"),
        ("r real", "", "no real r makes r^2 = 1"),
        ("u_a, u_b orthonormal", "x_1 = u_a, x_2 = 2*u_b, V = x_1*x_1'", "c is permutation equivariant"),
        ("A, B orthonormal bases, x in R^m", "", "B'*A*x = 0"),
    ],
)
def test_something_speaks_against_what_is_false(given, let, then):
    found = gather(cases_of(given, let, then))
    assert found.disagree and found.counterexample
    exec(found.counterexample, {}, {})


def test_a_tie_is_unclear_for_a_strict_order_and_an_equality_is_not_inequality():
    strict = gather(cases_of("t real", "", "t^2 - t^2 < 0"))
    assert strict.agree == 0
    assert gather(cases_of("t real", "", "t != t")).disagree
    assert gather(cases_of("t > 1", "", "t != 0")).agree


def test_a_hint_is_tried_first():
    cases = cases_of("r real", "", "no real r makes (r - 0.123456)^2 = 0")
    assert gather(cases).disagree == 0
    found = gather(cases, hint=0.123456)
    assert found.disagree and "r = 0.123456" in found.counterexample


def test_a_root_between_two_places_of_the_grid_is_found_for_certain():
    found = gather(cases_of("r real", "", "no real r makes exp(r)*r = 1"))
    assert found.confirmed == found.disagree > 0


@pytest.mark.parametrize(
    "then", ["E[gamma^6] = 15", "E[gamma^6] = 16", "E[gamma_a*gamma_b] = 0", "Var[gamma^2] < 1", "P[gamma > 0] = 0.6"]
)
def test_statistics_of_draws_never_disagree(then):
    found = gather(cases_of("gamma ~ N(0, 1), gamma_a ~ N(0, 1), gamma_b ~ N(0, 1)", "", then))
    assert found.disagree == found.confirmed == 0


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ("t > 0", "log(exp(t) + 1)/t -> 1 as t -> oo"),
        ("t > 0", "t*log(1 + 1/t) -> 1 as t -> oo"),
        ("t > 0", "(exp(t) - 1)/t -> 1 as t -> 0"),
        ("t real", "(exp(30) + t) - exp(30) = t"),
    ],
)
def test_rounding_far_out_does_not_disagree(given, then):
    found = gather(cases_of(given, "", then))
    assert found.agree >= 4 and found.disagree == 0


def test_a_small_constant_is_not_taken_for_a_limit_of_0():
    found = gather(cases_of("0 < s < 0.001", "", "log(1 + exp(s*t))/t -> 0 as t -> oo"))
    assert found.agree == 0 and found.confirmed == 0


def test_the_number_of_instances_and_the_total():
    found = gather(cases_of("t > 0", "", "t > 0"))
    assert found.total == N_INSTANCES == found.agree
    assert gather(cases_of("t > 0", "", "t > 0"), count=8).total == 8
    assert Evidence(1, 2, 3).total == 6


def test_no_instance_is_tried_where_no_query_should_do():
    then = "no query q makes c -> v_a as t -> oo"
    assert gather(cases_of(KEYS, "q = t*k_a", then)).total == 0


def test_the_smallest_instance_is_written_out():
    assert smallest(cases_of("t > 0", "", "t < 0")) == "n = 1\nt = 1.0\nleft = 1.0\nright = 0.0"
    assert smallest([]) is None


def test_statistics_by_draws_agree_only_roughly():
    given = "mu_1..mu_n orthonormal, gamma ~ N(1, 1/2), n >= 3"
    found = gather(cases_of(given, "k_i = mu_i, k_a = gamma*mu_a, q = mu_a", "Var[gamma] = 1/2"))
    assert found.rough == found.agree > 0


@pytest.fixture(scope="module")
def noise():
    """Import the exact moments, as the pipeline does before a claim that needs them."""
    from qkv.noise import reading_moments, success_probability  # noqa: F401


KEYS = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), n >= 3, eps > 0"


@pytest.mark.parametrize(
    "then", ["E[(k_a'mu_b)^4] = 3*eps^2", "E[(k_a'mu_a)^3] = 1 + 3*eps", "E[exp(k_a'mu_b)] = exp(eps/2)"]
)
@pytest.mark.usefixtures("noise")
def test_draws_are_exact_up_to_second_moments_only(then):
    """Draws of mean 0 and covariance I were taken as exact for every moment, and contradicted what is true."""
    found = gather(cases_of(KEYS, "", then))
    assert found.disagree == 0 and found.contradicted == 0


@pytest.mark.usefixtures("noise")
def test_draws_contradict_by_many_times_their_error():
    assert gather(cases_of(KEYS, "", "E[(k_a'mu_b)^4] = 6*eps^2")).contradicted > 0
    assert gather(cases_of("gamma ~ N(0, 1)", "", "P[gamma > 0] = 2/3")).contradicted > 0
    assert gather(cases_of("gamma ~ N(0, 1)", "", "E[exp(9*gamma)] = 1")).contradicted == 0  # a few draws dominate


def test_instances_that_do_not_meet_a_condition_do_not_count():
    """A place that the search rounds to simple numbers may leave the condition: it speaks neither for nor against."""
    text = (
        "```claim x\ngiven k_1..k_n orthonormal, n >= 3, t > 0\nlet q = t*(k_a + k_b)\n"
        "then alpha_a >= 0.49 when e^t >= 24.5*(n - 2)\nthen alpha_a >= 0.49 when e^t >= 24*(n - 2)\n```"
    )
    true, false = qkv.check(text)
    assert true.verdict == "holds" and "speak against" not in true.because
    assert false.verdict == "refuted"
