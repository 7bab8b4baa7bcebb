"""Impossibility of r*x = y: a number that does it, searched for on a grid of numbers and parameters."""

from fractions import Fraction
from itertools import product

import pytest
import sympy as sp
from build import argued, assume, number
from claim_builders import context_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qkv.claims.symbolic.errors import Unsupported
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.impossibility import (
    _candidates,
    _common_root,
    _common_root_with,
    _has_certain_scores,
    _lies_in,
    _no_common_root,
    _numerators,
    _query,
    _query_text,
    never,
)
from qkv.claims.symbolic.proof import CONDITIONAL, PROVED, REFUTED, UNKNOWN
from qkv.claims.syntax.nodes import Malformed

KEYS = "k_1..k_n orthonormal, n >= 3"
GRID = [Fraction(k, 2) for k in range(-12, 13)]
PARTS = {
    "r": lambda r, s: r,
    "2*r": lambda r, s: 2 * r,
    "r + 1": lambda r, s: r + 1,
    "r^2": lambda r, s: r * r,
    "1": lambda r, s: 1,
    "2": lambda r, s: 2,
    "0": lambda r, s: 0,
    "-4": lambda r, s: -4,
}
OF_S = {"s": lambda r, s: s, "s + r": lambda r, s: s + r, "s^2": lambda r, s: s * s}


def possible(sides, parameters) -> bool:
    """Whether some r of the grid makes both coefficients equal, for some value of the parameter."""
    return any(all(PARTS_OF[a](r, s) == PARTS_OF[b](r, s) for a, b in sides) for r, s in product(GRID, parameters))


PARTS_OF = PARTS | OF_S


@settings(
    max_examples=settings.default.max_examples * 3 // 5,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(*(st.sampled_from(sorted(PARTS)) for _ in range(4)))
def test_an_impossibility_is_proved_only_if_no_number_does_it(one, two, three, four):
    """Coefficients of two orthonormal keys, without parameters."""
    text = f"no real r makes ({one})*k_a + ({two})*k_b = ({three})*k_a + ({four})*k_b"
    if argued(KEYS, "", text) == "proved":
        assert not possible([(one, three), (two, four)], [Fraction(0)]), text


def test_a_number_that_does_it_is_noticed():
    assert possible([("r", "2"), ("2*r", "-4")], [Fraction(0)]) is False
    assert possible([("r", "2"), ("r^2", "-4")], [Fraction(0)]) is False
    assert possible([("r", "2"), ("r + 1", "r + 1")], [Fraction(0)]) is True
    assert possible([("r", "s"), ("r", "1")], GRID) is True


def test_an_impossibility_and_a_possibility_are_found():
    assert argued(KEYS, "", "no real r makes r*k_a + r*k_b = 2*k_a + k_b") == "proved"
    assert argued(KEYS, "", "no real r makes r*k_a + r*k_b = 2*k_a + 2*k_b") == "refuted"


@pytest.mark.parametrize("parts", [("s", "1"), ("s^2", "1"), ("s + r", "2")])
def test_a_parameter_at_which_both_parts_vanish_is_seen(parts):
    left = ("2*r", "r") if parts[0] == "s + r" else ("r", "r")
    assert possible([(left[0], parts[0]), (left[1], parts[1])], GRID)
    text = f"no real r makes ({left[0]})*k_a + ({left[1]})*k_b = ({parts[0]})*k_a + ({parts[1]})*k_b"
    assert argued(f"{KEYS}, s real", "", text) != "proved"


# Single steps.
R, S = number("r"), number("s")
r, s = R.symbol, S.symbol
ANY = assume(R, S)
POSITIVE = number("r", "(0, oo)")
INTERVALS = ["(-oo, oo)", "(0, oo)", "[0, oo)", "(-oo, 1)", "(-oo, 1]", "(0, 1)", "[0, 1]", "(1/2, 3]"]


@pytest.mark.parametrize("interval", INTERVALS)
def test_a_number_lies_in_a_range_or_not(interval):
    one = number("x", interval)
    for value in (Fraction(v) for v in ("-1", "0", "1/2", "3/4", "1", "3", "4")):
        assert _lies_in(one.range, sp.Rational(value.numerator, value.denominator)) == one.allows(value)
    assert _lies_in(one.range, sp.sqrt(2)) == one.allows(Fraction(141421356, 10**8))
    assert not _lies_in(number("x", interval, whole=True).range, sp.Rational(3, 4))
    assert _lies_in(number("x", interval, whole=True).range, sp.Integer(1)) == one.allows(Fraction(1))


@pytest.mark.parametrize(
    ("values", "here", "wanted"),
    [
        ((r - 2, r**2 - 4), ANY, 2),
        ((r - 2, r - 3), ANY, None),
        ((r**2 + 1,), ANY, None),
        ((s * (r - 1), r**2 - 1), ANY, 1),
        ((r - s,), ANY, None),
        ((r - 2, sp.Integer(0)), ANY, 2),
        ((sp.Integer(0),), ANY, None),
        ((sp.exp(r) - 1,), ANY, None),
        (((r - 3) / (s**2 + 1),), ANY, 3),
        ((r - s, r - 2), ANY.fix(s, sp.Integer(2)), 2),
    ],
    ids=str,
)
def test_a_common_root_of_all_parts(values, here, wanted):
    assert _common_root(values, r, here) == wanted


def test_a_root_outside_the_range_is_none():
    x = POSITIVE.symbol
    assert _common_root((x**2 - 4,), x, assume(POSITIVE)) == 2
    assert _common_root((x + 4,), x, assume(POSITIVE)) is None
    assert _common_root((x**2 + x,), x, assume(POSITIVE)) is None


@pytest.mark.parametrize(
    ("values", "interval", "wanted"),
    [
        ((r - 2, r - 3), "(-oo, oo)", True),
        ((r - 2, r**2 - 4), "(-oo, oo)", False),
        ((r**2 + 1,), "(-oo, oo)", True),
        ((r - s, r - s - 1), "(-oo, oo)", True),
        ((r - s, r - 1), "(-oo, oo)", False),
        ((r - s, r - 1), "(1, oo)", True),
        ((r - s, r - 1), "(-oo, 1)", True),
        ((r - s, r - 1), "[1, oo)", False),
        ((s, r - 1), "(0, oo)", True),
        ((r - 1, s), "(0, oo)", True),
        ((s, r - 1), "[0, oo)", False),
        ((s * (s - 1), (s - 1) * (s - 2)), "(0, oo)", False),  # both vanish at s = 1, for every r
        ((sp.exp(r), r), "(-oo, oo)", False),
    ],
    ids=str,
)
def test_parts_without_a_common_root(values, interval, wanted):
    other = number("s", interval)
    put = tuple(v.subs(s, other.symbol) for v in values)
    assert _no_common_root(put, r, assume(R, other)) is wanted


@pytest.mark.parametrize(
    ("values", "interval", "wanted"),
    [
        ((r - s, r - 1), "(-oo, oo)", (1, 1)),
        ((r - s, r + s - 4), "(-oo, oo)", (2, 2)),
        ((r - s, r - 1), "(1, oo)", None),
        ((r - s, r - 1), "[1, oo)", (1, 1)),
        ((r - s, r**2 - 2), "(-oo, oo)", None),  # irrational
        ((r - s, r - s - 1), "(-oo, oo)", None),
        ((r - 1, s - 3), "(-oo, oo)", (3, 1)),
        ((s - 3, r - 1), "(-oo, oo)", (3, 1)),
        ((s - 1, s - 2), "(-oo, oo)", None),
        ((r - sp.log(s), r), "(0, oo)", None),
        ((r - 1, r - 2), "(-oo, oo)", None),
        ((r - s, r**2 + 1), "(-oo, oo)", None),
    ],
    ids=str,
)
def test_another_number_and_a_root_at_it(values, interval, wanted):
    other = number("s", interval)
    put = tuple(v.subs(s, other.symbol) for v in values)
    found = _common_root_with(put, r, assume(R, other))
    assert found == (None if wanted is None else (other.symbol, *wanted))


def test_two_other_numbers_are_too_many():
    assert _common_root_with((r - s, r - sp.Symbol("w", real=True)), r, ANY) is None


def test_numerators_are_polynomials_of_parts_that_are_not_zero():
    assert _numerators(((r - 1) ** 2 / (s**2 + 1), r - r), r, ANY) == [r**2 - 2 * r + 1]
    for values in ((sp.exp(r) * r,), (sp.sqrt(r),), (sp.Integer(0),), (), (sp.exp(s) * r,)):
        assert _numerators(values, r, ANY) is None


def decided(given_text, let, then):
    context = context_of(given_text, let, then)
    return never(context, context.claim.statement.core)


@pytest.mark.parametrize(
    ("given_text", "let", "then", "kind", "value"),
    [
        ("r real", "", "no real r makes r^2 < 0", PROVED, None),
        ("r real", "", "no real r makes r^2 + 1 <= 0", PROVED, None),
        ("r real", "", "no real r makes -exp(r) >= 0", PROVED, None),
        ("r real", "", "no real r makes 0 > r^2", PROVED, None),
        ("r > 0", "", "no real r makes r + 2 = 0", PROVED, None),
        ("r real", "", "no real r makes r + 2 = 0", REFUTED, -2),
        ("r real", "", "no real r makes 2*r = r + r", REFUTED, "every"),
        (f"{KEYS}, s real", "", "no real r makes r*k_a + r*k_b = s*k_a + k_b", REFUTED, 1),
        (f"{KEYS}, s > 1", "", "no real r makes r*k_a + r*k_b = s*k_a + k_b", PROVED, None),
        (f"{KEYS}, t > 0", "q = t*k_a", "no real r makes r*alpha_a -> 2 as t -> oo", REFUTED, 2),
        (f"{KEYS}, t > 0", "q = t*k_a", "no real r makes alpha_a + r^2 -> 0 as t -> oo", PROVED, None),
        ("t > 0, r real", "", "no real r makes exp(r*t) -> 0 as t -> oo", REFUTED, "every"),
        ("t > 0, r real", "", "no real r makes exp(r*t) -> 1 as t -> oo", REFUTED, 0),
        ("r real", "", "no real r makes exp(r) - r = 1/2", PROVED, None),
        ("r real", "", "no real r makes exp(r) = r + 2", UNKNOWN, None),
    ],
)
def test_outcomes_and_witnesses(given_text, let, then, kind, value):
    found = decided(given_text, let, then)
    assert found.kind == kind
    if value == "every":
        assert found.because.startswith("every r in some range")
    elif value is not None:
        assert found.witness.name == "r" and found.witness.value == value
    assert (found.witness is None) == (kind != REFUTED)


def test_a_witness_tells_the_other_number():
    found = decided(f"{KEYS}, s real", "", "no real r makes r*k_a + 2*r*k_b = s*k_a + 4*k_b")
    assert found.witness.assignment() == "s = 2\nr = 2"


@pytest.mark.parametrize(
    ("given_text", "let", "then"),
    [
        ("gamma ~ N(0, 1)", "", "no real r makes r*gamma = 1"),
        ("gamma ~ N(0, 1)", "", "no real r makes (r*gamma)^2 < 0"),
        ("r real", "", "no real r makes r^2 <= 0"),
        ("r real", "", "no real r makes r < 1"),
        ("r real", "", "no real r makes r = 1 = 2"),
        ("r real", "", "no real r makes r != 1"),
        ("u_a free, u_b free", "", "no real r makes r*u_a = r*u_b + u_a"),
        (f"{KEYS}, t > 0", "q = t*k_a", "no query q makes alpha_a = 1"),
        (f"{KEYS}, t > 0", "q = t*k_a", "no query q makes c -> v_a as t -> 0"),
    ],
)
def test_what_is_not_decided(given_text, let, then):
    with pytest.raises(Unsupported):
        decided(given_text, let, then)


def test_a_number_that_is_fixed_cannot_vary():
    with pytest.raises(Malformed):
        decided("r = 2", "", "no real r makes r = 3")


NOISE = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + 1/2*mu_a*mu_a'), n >= 3"


@pytest.mark.parametrize(
    ("given_text", "let", "then", "kind", "query"),
    [
        (KEYS, "q = t*k_a", "no query q makes c -> v_a as t -> oo", REFUTED, "t*(- sum_{i not in a} k_i)"),
        (f"{KEYS}, t > 0", "q = t*k_b", "no query q makes c -> v_a as t -> oo", CONDITIONAL, "t*(k_a)"),
        (KEYS, "q = t*k_a", "no query q makes c -> 2*v_a as t -> oo", UNKNOWN, None),
        (
            NOISE,
            "q = t*(mu_a + mu_b)",
            "no query q makes c -> v_b as eps -> 0, t -> oo",
            CONDITIONAL,
            "t*(mu_b)",
        ),
    ],
)
def test_queries_that_do_it(given_text, let, then, kind, query):
    found = decided(given_text, let, then)
    assert found.kind == kind
    assert (found.witness.value if found.witness else None) == query
    if kind == CONDITIONAL:
        assert found.because.startswith("true of the query given") and ("not random" in found.because) == (
            "eps" in then
        )
    if kind == REFUTED:
        assert found.because == f"q = {query} makes it true"


def test_candidates_are_all_signs_with_few_keys_first():
    found = _candidates(1)
    assert set(found) == {one for one in product((0, 1, -1), repeat=2) if one != (0, 0)} and len(found) == 8
    assert [sum(map(abs, one)) for one in found] == [1, 1, 1, 1, 2, 2, 2, 2]
    assert len(_candidates(2)) == 26 and _candidates(2)[0] == (0, 0, 1)


@pytest.mark.parametrize(
    ("signs", "same", "text"),
    [
        ((1, -1, 0), "t*(k_a - k_b)", "t*(k_a - k_b)"),
        ((-1, 0, 0), "-t*k_a", "t*(- k_a)"),
        ((0, 1, 1), "t*(k_b + sum_{i != a, b} k_i)", "t*(k_b + sum_{i not in a, b} k_i)"),
        ((0, 0, -1), "-t*(sum_{i != a, b} k_i)", "t*(- sum_{i not in a, b} k_i)"),
    ],
)
def test_a_query_of_signs_is_a_sum_of_keys(signs, same, text):
    context = context_of(f"{KEYS}, t > 0", f"q = {same}", "alpha_a = alpha_b")
    algebra = Evaluator(context)
    made = algebra.value(_query("k", "t", ("a", "b"), signs))
    assert made.minus(algebra.value(context.lets["q"].value)).terms == {}
    assert _query_text("k", "t", ("a", "b"), signs) == text


def test_scores_are_certain_where_no_random_length_is_asked_for():
    context = context_of(NOISE, "q = t*mu_a", "c -> (v_a + v_b)/2 as eps -> 0, t -> oo")
    assert context.items == ("a", "b")
    for signs, certain in (((1, 0, 0), False), ((0, 1, 0), True), ((0, 0, 1), True), ((1, 1, 0), False)):
        q = _query("mu", "t", ("a", "b"), signs)
        assert _has_certain_scores(context, q, frozenset({"eps"})) is certain
