"""Limit statements, against evaluation far out with mpmath's precision."""

import pytest
import sympy as sp
from build import argued
from claim_builders import context_of, expression

from qkv.claims.semantics.quantifiers import instances
from qkv.claims.symbolic.errors import Unsupported
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.limit_statements import (
    follower,
    item_limit_formula,
    limit_statement,
    path_of,
    relation_in_limit,
    within,
)
from qkv.claims.symbolic.proof import CONDITIONAL, PROVED, REFUTED
from qkv.claims.symbolic.prover import decide
from qkv.claims.symbolic.sign_analysis import Assumptions
from qkv.claims.syntax.nodes import Malformed

KEYS = "k_1..k_n orthonormal, n >= 3"
NOISE = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + 1/2*mu_a*mu_a'), n >= 3"


def decided(given, let, then):
    context = context_of(given, let, then)
    return limit_statement(context, context.claim.statement.core)


@pytest.mark.parametrize(
    ("let", "text"),
    [
        ("q = t*(k_a + k_b)", "alpha_a"),
        ("q = t*(2*k_a + k_b)", "alpha_b"),
        ("q = -t*k_a", "alpha_a"),
        ("q = -t*k_a", "alpha_b"),
        ("q = log(t)*k_a", "alpha_a"),
        ("q = t*k_a", "exp(t)*(1 - alpha_a)"),
        ("q = t*k_a", "(t^2 + t)/(3*t^2 - 1)"),
    ],
)
def test_limits_agree_with_values_far_out(let, text):
    context = context_of(f"{KEYS}, t > 0", let, f"{text} -> 0 as t -> oo")
    algebra = Evaluator(context)
    core = context.claim.statement.core
    n, t = algebra.symbol("n"), algebra.symbol("t")
    follow = follower(algebra, path_of(context, core.approach, core.at))
    value = algebra.number(expression(text))
    limit = follow(value, Assumptions({n: context.numbers["n"], t: context.numbers["t"]}))
    for count in (3, 10):
        far = (
            sp.N(value.subs({n: count, t: 10**5}), 60, maxn=10**6)
            if "log" in let
            else sp.N(value.subs({n: count, t: 400}), 600)
        )
        assert abs(far - limit.subs(n, count)) < 1e-2


@pytest.mark.parametrize(
    ("given", "let", "then", "kind"),
    [
        (KEYS, "q = t*(k_a + k_b)", "c -> (v_a + v_b)/2 as t -> oo", PROVED),
        (KEYS, "q = t*(k_a + k_b)", "c -> v_a as t -> oo", REFUTED),
        (KEYS, "q = t*(k_a + k_b)", "alpha_a -/-> 1/3 as t -> oo", PROVED),
        (KEYS, "q = t*(k_a + k_b)", "alpha_a -/-> 1/2 as t -> oo", REFUTED),
        (f"{KEYS}, s real", "q = s*t*k_a", "alpha_a -> 1 as t -> oo", CONDITIONAL),
        (NOISE, "q = t*mu_b", "c -> v_b as eps -> 0, t -> oo", PROVED),
        (NOISE, "q = t*mu_a", "c -> v_a as eps -> 0, t -> oo", CONDITIONAL),
        ("t > 0", "", "t -> oo as t -> oo", PROVED),
        ("t > 0", "", "-t -> oo as t -> oo", REFUTED),
    ],
)
def test_kinds_of_outcomes(given, let, then, kind):
    assert decided(given, let, then).kind == kind


def test_the_condition_of_a_limit_is_one_comparison():
    found = decided(f"{KEYS}, s real", "q = s*t*k_a", "alpha_a -> 1 as t -> oo")
    assert found.condition.text == "s > 0"
    assert (str(found.condition.relation.sides[0]), found.condition.relation.ops) == ("s", (">",))
    opposite = decided(f"{KEYS}, s real", "q = s*t*k_a", "alpha_a -/-> 1 as t -> oo").condition
    assert opposite.text == "s <= 0"


def test_a_probability_is_that_of_the_normal_law():
    from scipy.stats import norm

    found = decided(NOISE, "q = t*mu_a", "c -> v_a as eps -> 0, t -> oo")
    assert found.probability == pytest.approx(norm.sf(0, 1, 0.5**0.5), rel=1e-12)
    other = decided(NOISE, "q = t*mu_a", "c -/-> v_a as eps -> 0, t -> oo")
    assert other.probability == pytest.approx(norm.cdf(0, 1, 0.5**0.5), rel=1e-12)


def test_the_path_takes_noise_first_and_refuses_what_cannot_be_reached():
    context = context_of(NOISE, "q = t*mu_a", "c -> v_a as eps -> 0, t -> oo")
    path = path_of(context, context.claim.statement.core.approach, (1, 1))
    assert path.vanished == {"eps"} and path.moving == (("t", sp.oo),) and path.words == "eps -> 0, t -> oo"
    for given, then, error in [
        ("0 < t < 1", "t -> 0 as t -> oo", Malformed),
        ("t > 0", "t -> 0 as t -> oo, t -> oo", Malformed),
        ("t > 0", "t ~= 0", Malformed),
        (NOISE, "k_a'mu_a -> 1 as t -> oo, eps -> 0", Unsupported),
        ("n >= 2", "1/n -> 0 as n -> 5", Malformed),
    ]:
        with pytest.raises(error):
            decided(given, "", then)


def test_relations_under_a_limit_compare_the_limits():
    context = context_of(f"{KEYS}, t -> oo", "q = t*(k_a + k_b)", "alpha_a > 2/5")
    assert relation_in_limit(context, context.claim.statement.core).kind == PROVED
    context = context_of(f"{KEYS}, t -> oo", "q = t*(k_a + k_b)", "alpha_a > 3/5")
    found = relation_in_limit(context, context.claim.statement.core)
    assert found.kind == REFUTED and found.because.startswith("in the limit, ")


@pytest.mark.parametrize(("chance", "kind"), [("0.9", PROVED), ("0.95", REFUTED)])
def test_the_probability_of_ending_near_a_target(chance, kind):
    then = f"c within 0.05 of (v_a + v_b)/2 with probability >= {chance} as eps -> 0, t -> oo"
    context = context_of(NOISE, "q_1 = t*mu_a, q_2 = t*mu_b", then)
    found = within(context, context.claim.statement.core)
    assert found.kind == kind and found.probability == pytest.approx(0.92135, abs=1e-4)


def test_the_formula_of_a_limit_in_n():
    context = context_of("k_1..k_n orthonormal, t > 0", "q = t*k_a", "n*alpha_a -> exp(t) as n -> oo")
    formula = item_limit_formula(context, context.claim.statement.core)
    (t, where), *_ = formula.others
    assert formula.tends and where == context.numbers["t"]
    value = formula.difference.subs({formula.size: 10**6, t: 1})
    e = sp.E
    assert sp.N(value - (10**6 * e / (e + 10**6 - 1) - e), 30) == pytest.approx(0, abs=1e-20)
    infinite = context_of("n >= 2", "", "n -> oo as n -> oo")
    assert item_limit_formula(infinite, infinite.claim.statement.core) is None


LENGTH = "mu_1..mu_n orthonormal, gamma ~ N(1, 1/2), n >= 3"


@pytest.mark.parametrize(
    ("items", "kind"), [("for all i", REFUTED), ("for i != a", CONDITIONAL), ("for i != a, b", PROVED)]
)
def test_the_conditions_of_several_items_hold_together(items, kind):
    """alpha_a -> 0 when gamma < 1, alpha_b -> 0 when gamma > 1: never both."""
    lets = "k_i = mu_i, k_a = gamma*mu_a, q = t*(mu_a + mu_b)"
    assert decide(instances(context_of(LENGTH, lets, f"alpha_i -> 0 as t -> oo {items}"))).kind == kind


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ("u_a, u_b orthogonal of norm beta, w free", "u_a'w/beta -> 0 as beta -> oo"),
        ("k_1..k_n free, q free, n >= 2, t > 0, k_j'q - k_i'q >= t for i != j", "exp(-t)*q -> 0 as t -> oo"),
        ("k_1..k_n free, w free, n >= 3, t > 0", "t*(sum_{i != a} exp(k_i'q)) -> 0 as t -> 0"),
    ],
)
def test_what_moves_with_the_limit_is_not_taken_as_constant(given, then):
    let = "q = w/t" if "w free, n" in given else ""
    assert argued(given, let, then) != "proved"
