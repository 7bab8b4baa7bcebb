"""What a review found to be decided wrongly: nothing false is proved or holds, nothing true is refuted."""

import pytest

import qkv


def verdict(given, let, then):
    givens = f"given {given}\n" if given else ""
    lets = f"let {let}\n" if let else ""
    return qkv.check(f"```claim x\n{givens}{lets}then {then}\n```")[0].verdict


KEYS = "k_1..k_n orthonormal, n >= 4, t > 0"
QUERY = "q = t*(k_a + k_b)"
BASES = "A, B orthonormal bases, x in R^m, y in R^p"
APART = "A, B orthonormal bases at right angles, x in R^m, y in R^p"


@pytest.mark.parametrize(
    ("then", "kind"),
    [
        (r"$\sum_{i=1}^{3} \alpha_i = 1$", "malformed"),
        (r"$\sum_{i=1}^2 \alpha_i = 1$", "malformed"),
        ("sum_{i=1}^3 alpha_i = 1", "malformed"),
        (r"$\sum_{i=1}^{n} \alpha_i = 1$", "proved"),
        (r"$\sum_{i=1}^n \alpha_i = 1$", "proved"),
        ("sum_{i=1}^n alpha_i = 1", "proved"),
        ("sum_{i=1}^{n} alpha_i = 1", "proved"),
    ],
)
def test_a_sum_runs_up_to_n_or_is_malformed(then, kind):
    assert verdict(KEYS, QUERY, then) == kind


@pytest.mark.parametrize(
    ("then", "kind"), [("A'*B*y = 0", "proved"), ("M*s = v_a", "proved"), ("a_1'*b_1 = 0", "proved")]
)
def test_bases_are_at_right_angles_only_when_that_is_said(then, kind):
    lets = "M = A*A', v_a = A*x, v_b = B*y, s = v_a + v_b"
    assert verdict(APART, lets, then) == kind
    assert verdict(BASES, lets, then) == "refuted"


@pytest.mark.parametrize(
    ("then", "kind"),
    [
        ("a_i'*a_j = 0", "refuted"),
        ("a_i'*a_j = 0 for all i", "refuted"),
        ("a_j'*a_i = 0 for all j", "refuted"),
        ("a_i'*a_j = 0 for i != j", "proved"),
        ("a_j'*a_i = 0 for j != i", "proved"),
        ("a_i'*b_j = 0", "proved"),
        ("a_i'*a_i = 1", "proved"),
        ("k_j'*k_i = 0 for all j", "refuted"),
        ("k_j'*k_i = 0 for j != i", "proved"),
        ("sum_i a_i'*a_j = 0", "refuted"),
    ],
)
def test_an_index_may_be_any_that_is_named(then, kind):
    assert verdict(f"{APART}, {KEYS}", "", then) == kind


def test_members_of_two_families_may_be_the_same_vectors():
    given = "k_1..k_n orthonormal, u_1..u_n orthonormal, n >= 3"
    assert verdict(given, "", "no real r makes r*k_a = u_a") not in ("proved", "holds")


@pytest.mark.parametrize(
    ("let", "then", "kinds"),
    [
        ("V = W, W = x_1*x_1'", "c is permutation equivariant", {"refuted", "undecided"}),
        ("V = x_1*x_1'", "c is permutation equivariant", {"refuted"}),
        ("Q = W, W = x_1*x_1'", "alpha is permutation equivariant", {"refuted", "undecided"}),
        ("V = 2*I", "c_1 is permutation equivariant", {"malformed"}),
        ("V = 2*I", "c is permutation equivariant", {"proved"}),
        ("V = 2*I", "alpha is permutation equivariant", {"proved"}),
    ],
)
@pytest.mark.parametrize("count", [2, 3])
def test_an_output_that_knows_a_token_is_not_equivariant(let, then, kinds, count):
    tokens = ", ".join(f"x_{i} = {i}*u_{i}" for i in range(1, count + 1))
    given = ", ".join(f"u_{i}" for i in range(1, count + 1)) + " orthonormal"
    assert verdict(given, f"{tokens}, {let}", then) in kinds


SPREAD = "mu_1..mu_n orthonormal, n = 2, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + 1/2*mu_a*mu_a'), eps -> 0"


@pytest.mark.parametrize(
    ("let", "then"),
    [
        ("c = t*alpha_a*alpha_b", "E[c] -> 0 as t -> oo"),
        ("w = t*alpha_a*alpha_b", "E[w] -> 0 as t -> oo"),
        ("w = t*u, u = alpha_a*alpha_b", "E[w] -> 0 as t -> oo"),
        ("v_i = t*mu_i", "E[alpha_b*alpha_a*v_a] -> 0 as t -> oo"),
        ("w = alpha_a*alpha_b", "t*E[w] -> 0 as t -> oo"),
    ],
)
def test_a_limit_is_not_taken_inside_the_mean_of_something_unbounded(let, then):
    assert verdict(SPREAD, f"q = t*(mu_a + mu_b), {let}", then) not in ("proved", "holds")


def test_a_limit_is_still_taken_inside_the_mean_of_weights():
    for let in ("", ", w = alpha_a*alpha_b"):
        inner = "w" if let else "alpha_a*alpha_b"
        assert verdict(SPREAD, f"q = t*(mu_a + mu_b){let}", f"E[{inner}] -> 0 as t -> oo") == "proved"


@pytest.mark.parametrize(
    ("then", "kinds"),
    [
        ("sqrt(log(t)) -> oo as t -> oo", {"proved", "undecided"}),
        ("sqrt(log(t)) -> 1 as t -> oo", {"refuted", "undecided"}),
        ("sqrt(log(t))/log(t) -> 0 as t -> oo", {"proved", "undecided"}),
        ("log(t)^(3/2)/log(t) -> 1 as t -> oo", {"refuted", "undecided"}),
        ("sqrt(exp(t) + 1) -> oo as t -> oo", {"proved", "holds", "undecided"}),
        ("sqrt(exp(t) + 1)/t -> 0 as t -> oo", {"refuted", "undecided"}),
        ("log(t)^2/t -> 0 as t -> oo", {"proved"}),
    ],
)
def test_powers_of_logarithms_and_exponentials_grow(then, kinds):
    assert verdict("t > 1", "", then) in kinds


@pytest.mark.parametrize(
    ("given", "then", "kinds"),
    [
        ("0 < t < 1, t > s", "t < 1", {"proved", "holds"}),
        ("0 < t < 1, t > s", "s < 1", {"proved", "holds"}),
        ("0 < t < 1, t > s", "t > 1", {"refuted"}),
        ("0 < t < 1, 0 < s < 1, t > s", "t - s < 1", {"proved", "holds", "undecided"}),
        ("x > n, n >= 3, x < 2", "n > 10", {"undecided"}),
        ("x > n, n >= 3, x < 2", "n >= 3", {"undecided"}),
        ("s > 0, t > s", "t > 0", {"proved"}),
        ("x > n, n >= 3", "x > 3", {"proved"}),
    ],
)
def test_a_range_is_kept_beside_an_order_between_numbers(given, then, kinds):
    assert verdict(given, "", then) in kinds


@pytest.mark.parametrize(
    "then",
    [
        "log(log(t)) -> oo as t -> oo",
        "sqrt(log(log(t))) -> oo as t -> oo",
        "(t + 1) - t -> 1 as t -> oo",
        "t*((1 + 1/t) - 1) -> 1 as t -> oo",
        "log(t)*((t + 1) - t)/log(t) -> 1 as t -> oo",
        "log(t + 1) - log(t) -> 0 as t -> oo",
        "t*(log(t + 1) - log(t)) -> 1 as t -> oo",
        "t*(log(t + 1) - log(t)) > 0",
        "no real r makes exp(r) = 0",
        "no real r makes exp(-20*r^2) = 0",
        "no real s makes log(s)^2 + exp(-s) = 0",
    ],
)
def test_what_is_true_is_not_refuted_by_rounding_or_by_slow_growth(then):
    assert verdict("t > 1, 0 < s < 3", "", then) != "refuted"


def test_what_stops_is_refuted_to_grow():
    for then in ("t/(t + 1) -> oo as t -> oo", "exp(-t) -> oo as t -> oo"):
        assert verdict("t > 0", "", then) == "refuted"


def test_the_range_of_a_number_that_is_sought_counts():
    assert verdict("0 < r < 1/10", "", "no real r makes r^2 + r = 2") != "refuted"
    assert verdict("r > 2", "", "no real r makes exp(r - 1) = 1") != "refuted"


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ("r real", "no real r makes exp(r)*r = 1"),
        ("r real", "no real r makes exp(r) + r = 7"),
        ("s > 0, t > 0", "exp(s/t)/(1 + exp(s/t)) -> 1/2 as s -> oo, t -> oo"),
        ("x real", "x^2 - 2*x + 1 > 0"),
    ],
)
def test_a_grid_a_tie_or_a_path_does_not_make_a_claim_hold(given, then):
    assert verdict(given, "", then) not in ("proved", "holds")
