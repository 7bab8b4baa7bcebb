"""Limit statements, against evaluation far out with mpmath's precision."""

import pytest
import sympy as sp
from build import argued, number
from claim_builders import context_of, expression

from qkv.claims.semantics.quantifiers import instances
from qkv.claims.symbolic.errors import Unsupported
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.factors import Factor, member, unnamed_sum
from qkv.claims.symbolic.limit_statements import (
    _can_be_long,
    _reachable,
    follower,
    item_limit_formula,
    limit_statement,
    names_in_conditions,
    path_of,
    relation_in_limit,
    within,
)
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial
from qkv.claims.symbolic.proof import CONDITIONAL, PROVED, REFUTED, UNKNOWN
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


@pytest.mark.parametrize(
    ("interval", "reached"),
    [
        ("(-oo, oo)", [-sp.oo, -1, 0, 1, sp.oo]),
        ("(0, oo)", [0, 1, sp.oo]),
        ("(-oo, 0)", [-sp.oo, -1, 0]),
        ("(0, 1)", [0, 1]),
        ("[-1, 0]", [-1, 0]),
    ],
)
def test_what_a_number_may_go_to(interval, reached):
    where = number("x", interval).range
    assert [to for to in (-sp.oo, -1, 0, 1, sp.oo) if _reachable(where, sp.sympify(to))] == reached


@pytest.mark.parametrize(
    ("given", "then", "kind"),
    [
        ("t > 0", "-t -> -oo as t -> oo", PROVED),
        ("t > 0", "t -> -oo as t -> oo", REFUTED),
        ("t > 0", "t -/-> oo as t -> oo", REFUTED),
        ("t > 0", "t -/-> -oo as t -> oo", PROVED),
        ("t > 0", "1/t -> oo as t -> oo", REFUTED),
        ("t real", "t^3 -> -oo as t -> -oo", PROVED),
        ("t real", "t^2 -> oo as t -> -oo", PROVED),
        ("t > 0", "1/t -> 0 as t -> oo", PROVED),
        ("t > 0", "t -> 0 as t -> oo", REFUTED),
        ("t > 0", "t -/-> 0 as t -> oo", PROVED),
        ("t > 0", "exp(-t) -> 1 as t -> 0", PROVED),
        ("t > 0", "exp(-t) -> 1/2 as t -> 0", REFUTED),
        ("0 < s < 1", "s^2 -> 1 as s -> 1", PROVED),
        ("t > 0, s > 0", "s/t -> 0 as t -> oo, s -> oo", PROVED),
        ("t > 0, s > 0", "s/(s + 1/t) -> 1 as t -> oo, s -> oo", PROVED),
        ("t > 0, s real", "s^2/(1 + t) -> 0 as t -> oo", PROVED),
        ("t > 0, s real", "s*t -> oo as t -> oo", "open"),
        ("u_a, u_b orthogonal of norm beta, beta > 0", "u_a/beta -> 0 as beta -> oo", REFUTED),
        ("u_a, u_b orthogonal of norm beta, beta > 0", "u_a/beta -/-> 0 as beta -> oo", PROVED),
        ("u_a, u_b orthogonal of norm beta, beta > 0", "u_a/beta^2 -> 0 as beta -> oo", PROVED),
        ("u_a, u_b orthogonal of norm beta, beta > 0", "u_a*u_b'/beta^2 -> 0 as beta -> oo", REFUTED),
        ("u_a, u_b orthonormal, t > 0", "exp(-t)*u_a + u_b -> u_b as t -> oo", PROVED),
        ("u_a, u_b orthonormal, t > 0", "exp(-t)*u_a + u_b -/-> u_a as t -> oo", PROVED),
        ("u_a free, u_b free, t > 0", "u_a + u_b/t -> u_b as t -> oo", REFUTED),
        ("u_a free, u_b free, t > 0", "u_a + u_b/t -/-> u_b as t -> oo", UNKNOWN),
        ("n >= 2, u free", "u/n -> 0 as n -> oo", "open"),
        ("n >= 2", "1/n -> 0 as n -> oo", PROVED),
    ],
)
def test_limits_of_numbers_and_vectors(given, then, kind):
    context = context_of(given, "", then)
    if kind == "open":
        assert decide(instances(context)).kind == UNKNOWN
    else:
        assert limit_statement(context, context.claim.statement.core).kind == kind


def test_refutations_that_hold_for_all_values_are_sure():
    assert decided("u_a, u_b orthonormal, t > 0", "", "u_a + u_b/t -> u_b as t -> oo").sure
    assert not decided("u_a free, u_b free, t > 0", "", "u_a + u_b/t -> u_b as t -> oo").sure
    assert decided("t > 0", "", "1/t -> 1 as t -> oo").sure


@pytest.mark.parametrize(
    ("given", "let", "then", "text"),
    [
        ("t > 0", "", "1/t -> 1 as t -> oo", "the limit is 0 as t -> oo"),
        ("t > 0", "", "exp(-1 + 1/t) -> 1 as t -> oo", "the limit is exp(-1) = 0.3679 as t -> oo"),
        ("t > 0", "", "2 + 1/t -> 1 as t -> oo", "the limit is 2 as t -> oo"),
        ("t > 0", "", "1/t -> 0 as t -> oo", "every part of left minus right goes to 0 as t -> oo"),
        ("t > 0", "", "t -> oo as t -> oo", "the limit is oo"),
        (f"{KEYS}, s real", "q = s*t*k_a", "alpha_a -> 1 as t -> oo", "true when s > 0; false when s <= 0"),
        (f"{KEYS}, s real", "q = s*t*k_a", "alpha_a -/-> 1 as t -> oo", "true when s <= 0; false when s > 0"),
    ],
)
def test_the_reason_names_the_limit(given, let, then, text):
    assert decided(given, let, then).because == text


def test_reasons_of_random_limits():
    sure = decided(NOISE, "q = t*mu_b", "c -> v_b as eps -> 0, t -> oo")
    assert "eps -> 0, t -> oo" in sure.because
    lengths = decided("gamma ~ N(1, 4), t > 0", "", "gamma/t -> 0 as t -> oo")
    assert lengths.kind == PROVED and lengths.because.endswith("almost surely, so in probability")
    found = decided("gamma ~ N(1, 4), t > 0", "", "exp(gamma*t)/(1 + exp(gamma*t)) -> 1 as t -> oo")
    assert found.kind == CONDITIONAL and found.because.startswith("true with probability 0.6915 in the limit")
    assert found.condition.text == "gamma > 0" and found.condition.law == (1, 4)
    assert sorted(s.text for s in found.steps if "probability" in s.text) == [
        "gamma < 0: probability 0.3085, false",
        "gamma > 0: probability 0.6915, true",
    ]
    with pytest.raises(Unsupported):
        decided("gamma ~ N(1, 4), s real, t > 0", "", "exp(gamma*t) + exp(s*t) -> 0 as t -> oo")


def test_a_conditional_limit_of_free_vectors_is_not_settled():
    found = decided(f"{KEYS}, s real", "q = s*t*k_a", "c -> v_a as t -> oo")
    assert found.kind == UNKNOWN and found.because == "true when s > 0, and perhaps elsewhere"
    orthonormal = decided(f"{KEYS}, v_1..v_n orthonormal, s real", "q = s*t*k_a", "c -> v_a as t -> oo")
    assert orthonormal.kind == CONDITIONAL and orthonormal.condition.text == "s > 0"


def test_the_arrow_is_printed_as_far_as_it_is_shown():
    for then, arrow in [
        ("alpha_a -> 1 as t -> oo", r"\to"),
        ("alpha_a -/-> 1 as t -> oo", r"\to"),
        ("alpha_a -> 0 as t -> oo", r"\not\to"),
        ("alpha_a -/-> 0 as t -> oo", r"\not\to"),
    ]:
        found = decided(f"{KEYS}, t > 0", "q = t*k_a", then)
        (sides,) = [s.latex for s in found.steps if s.text.startswith("left side: ") and "right side" in s.text]
        assert rf"\;{arrow}\;" in sides, then


def in_limit(given, let, then):
    context = context_of(given, let, then)
    return relation_in_limit(context, context.claim.statement.core)


@pytest.mark.parametrize(
    ("given", "let", "then", "kind"),
    [
        ("t > 0, t -> oo", "", "1/t < 1 < 2 + 1/t", PROVED),
        ("t > 0, t -> oo", "", "1/t < 1 < 1/t", REFUTED),
        ("t > 0, t -> oo", "", "1/t = 0", PROVED),
        ("t > 0, t -> oo", "", "1/t != 0", REFUTED),
        ("t > 0, t -> oo, s real", "", "s + 1/t > 1", CONDITIONAL),
        ("mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), eps -> 0", "", "k_a'mu_a = 1", PROVED),
        ("mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), eps -> 0", "", "k_a'mu_a = 2", REFUTED),
    ],
)
def test_relations_of_limits(given, let, then, kind):
    assert in_limit(given, let, then).kind == kind


def test_relations_of_limits_show_their_values():
    found = in_limit("t > 0, t -> oo", "", "exp(-1 + 1/t) < 1/2")
    assert found.because == "the limits of both sides are exp(-1) = 0.3679, 1/2 = 0.5"
    assert any(s.text == "limits of both sides as t -> oo: exp(-1) = 0.3679, 1/2 = 0.5" for s in found.steps)


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ("t > 0, t -> oo", "t > 1"),
        ("t > 0, t -> oo", "1 < t"),
        ("t > 0, t -> oo", "-t < 1"),
        ("t > 0, t -> oo, gamma ~ N(0, 1)", "gamma + 1/t < 1"),
        ("t > 0, t -> oo, u free", "u/t = 0*u"),
    ],
)
def test_limits_that_are_random_infinite_or_vectors_are_not_compared(given, then):
    with pytest.raises(Unsupported):
        in_limit(given, "", then)


def near(given, let, then):
    context = context_of(given, let, then)
    return within(context, context.claim.statement.core)


GAMMA = "gamma ~ N(1, 4), t > 0"
STEP = "exp(gamma*t)/(1 + exp(gamma*t))"  # goes to 1 with probability 0.6915, and to 0 else


@pytest.mark.parametrize(
    ("then", "kind", "value"),
    [
        (f"{STEP} within 1/10 of 1 with probability >= 0.69 as t -> oo", PROVED, 0.691462),
        (f"{STEP} within 1/10 of 1 with probability > 0.69 as t -> oo", PROVED, 0.691462),
        (f"{STEP} within 1/10 of 1 with probability >= 0.70 as t -> oo", REFUTED, 0.691462),
        (f"{STEP} within 1/10 of 0 with probability >= 0.30 as t -> oo", PROVED, 0.308538),
        (f"{STEP} within 2 of 0 with probability >= 0.99 as t -> oo", PROVED, 1.0),
        (f"{STEP} within 1/10 of 5 with probability >= 0.01 as t -> oo", REFUTED, 0.0),
        (f"{STEP} within 2 of 0 with probability >= 1 as t -> oo", UNKNOWN, None),
        (f"{STEP} within 1 of 0 with probability >= 0.5 as t -> oo", UNKNOWN, None),  # on the edge
    ],
)
def test_probabilities_of_ending_near(then, kind, value):
    found = near(GAMMA, "", then)
    assert found.kind == kind
    assert found.probability == (None if value is None else pytest.approx(value, abs=1e-6))


def test_statements_of_nearness_that_are_refused():
    with pytest.raises(Malformed):
        near(GAMMA, "", f"{STEP} within 0 of 1 with probability >= 1/2 as t -> oo")
    with pytest.raises(Malformed):
        near(GAMMA, "", f"{STEP} within 1/2 of 1 with probability <= 1/2 as t -> oo")
    with pytest.raises(Unsupported):
        near(GAMMA, "", "gamma within 1/2 of 1 with probability >= 1/2")


def test_the_steps_of_nearness_tell_each_region():
    found = near(GAMMA, "", f"{STEP} within 1/10 of 1 with probability >= 0.69 as t -> oo")
    said = sorted(s.text for s in found.steps if "probability" in s.text)
    assert said == [
        "gamma < 0: probability 0.3085, off by -1: outside",
        "gamma > 0: probability 0.6915, off by 0: within",
    ]


def test_free_values_with_a_coefficient_that_is_never_zero_may_be_long():
    v, z = member("v", "a"), member("v", "*")
    s = sp.Symbol("s", real=True)
    for given, word, coefficient, wanted in [
        (KEYS, (v,), sp.Integer(-1), True),
        (KEYS, (v,), s, False),
        (KEYS, (v,), sp.Integer(0), False),
        (KEYS, (Factor("w", "vector"),), sp.Integer(1), False),
        (KEYS, (v, v.turned()), sp.Integer(1), False),
        (KEYS, (unnamed_sum(z),), sp.Integer(1), True),
        ("k_1..k_n orthonormal, 3 <= n <= 5", (unnamed_sum(z),), sp.Integer(1), False),
        ("k_1..k_n orthonormal, 3 <= n <= 5", (v,), sp.Integer(1), True),
        (f"{KEYS}, v_1..v_n orthonormal", (v,), sp.Integer(1), False),
        (f"{KEYS}, v_1..v_n free", (v,), sp.Integer(1), True),
    ]:
        algebra = Evaluator(context_of(given, "q = k_a", "c = v_a"))
        ends = MatrixPolynomial({word: coefficient}, ("d", "1"))
        assert _can_be_long(algebra, ends, Assumptions()) is wanted, (given, word, coefficient)


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ("n >= 2", "-n -> -oo as n -> oo"),
        ("n >= 2, t > 0", "t/n -> 0 as n -> oo, t -> oo"),
        ("n >= 2, gamma ~ N(0, 1)", "gamma/n -> 0 as n -> oo"),
        ("n >= 2, u free", "u'u/n -> 0 as n -> oo"),
    ],
)
def test_limits_without_a_formula_in_n(given, then):
    context = context_of(given, "", then)
    assert item_limit_formula(context, context.claim.statement.core) is None


def test_a_formula_tells_whether_it_is_to_tend():
    context = context_of("n >= 2", "", "1/n -/-> 1 as n -> oo")
    assert item_limit_formula(context, context.claim.statement.core).tends is False


def test_names_in_conditions_are_found_through_definitions():
    given = "k_1..k_n free, q free, n >= 2, t > 0, s real, w > s, k_j'q - k_i'q >= m for i != j"
    context = context_of(f"{given}, y real", "m = 2*t", "alpha_j > 0")
    found = names_in_conditions(context)
    assert {"t", "w", "s"} <= found and "y" not in found


def test_statistics_of_weights_have_limits():
    given = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + 1/2*mu_a*mu_a'), n >= 3"
    for then, kind in [
        ("Var[alpha_b] -> 0 as eps -> 0, t -> oo", REFUTED),
        ("P[alpha_a > 1/3] -> 1 as eps -> 0, t -> oo", REFUTED),
        ("Var[alpha_b]/t -> 0 as eps -> 0, t -> oo", PROVED),
    ]:
        assert decided(given, "q = t*(mu_a + mu_b)", then).kind == kind, then
    with pytest.raises(Unsupported, match="statistic times"):
        decided(given, "q = t*(mu_a + mu_b)", "t*Var[alpha_b] -> 0 as eps -> 0, t -> oo")
    half = decided(given, "q = t*(mu_a + mu_b)", "E[alpha_b] -> 1/2 as eps -> 0, t -> oo")
    assert half.kind == PROVED
    assert any("so the limit may be taken inside" in s.text for s in half.steps)
