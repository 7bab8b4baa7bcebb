"""Signs and identities of expressions, against their values at thousands of allowed points (mpmath)."""

import random
from fractions import Fraction

import mpmath
import pytest
import sympy as sp
from build import GIVES_UP, Number, argued, assume, bounded, number
from expressions import expressions, numbers
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import assume as provided
from hypothesis import strategies as st
from reference import SIGNS, Undefined, Unresolved, against, function, places, points

from qkv.claims.symbolic.sign_analysis import is_zero, ratio, sign
from qkv.claims.time_limit import TimedOut, time_limit

T, S, U, N = number("t", "(0, oo)"), number("s", "(0, 1)"), number("u"), number("n", "[2, oo)", whole=True)
t, s, u, n = T.symbol, S.symbol, U.symbol, N.symbol
EVERY = settings(
    max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


def said_of(expr, *given_numbers, seconds=3):
    """The sign, or None where the step gives up."""
    try:
        with time_limit(seconds):
            return sign(expr, assume(*given_numbers))
    except (TimedOut, *GIVES_UP):
        return None


# Generated expressions.
def sign_holds(data):
    here = data.draw(numbers())
    expr = data.draw(expressions(here, depth=data.draw(st.integers(0, 2))))
    provided(not expr.has(sp.zoo, sp.nan, sp.oo))
    said = said_of(expr, *here)
    if said is not None:
        assert against(said, expr, here, random.Random(1)) is None


test_a_sign_holds_at_every_allowed_point = EVERY(given(st.data())(sign_holds))


@pytest.mark.slow
@pytest.mark.parametrize("number_of_run", range(10))
def test_many_more_signs_hold_at_every_allowed_point(number_of_run):
    run = given(st.data())(sign_holds)
    seed(number_of_run)(settings(EVERY, derandomize=False, max_examples=500)(run))()


def weights_hold(data):
    """Claims compare weights: e^a/Z against e^b/Z, 1/2 and 1/n."""
    here = data.draw(numbers(["(0, oo)", "[0, oo)", "(0, 1)", "(1, oo)", "(-1, 1)", "(-oo, 0)", "[0, 1]"]))
    x, y, z, count = (one.symbol for one in here)
    pool = [x, 2 * x, -x, y * x, z * x, (1 - y) * x, (y - 1) * x, y * z * x, sp.Integer(0), y, (1 + z) * x]
    scores = [data.draw(st.sampled_from(pool)) for _ in range(3)]
    total = sum((sp.exp(one) for one in scores[:2]), sp.Integer(0)) + (count - 1) * sp.exp(scores[2])
    one = sp.exp(scores[0]) / total
    other = data.draw(st.sampled_from([sp.exp(scores[1]) / total, sp.Rational(1, 2), sp.Integer(1), 1 / count, one**2]))
    said = said_of(one - other, *here)
    if said is not None:
        assert against(said, one - other, here, random.Random(1)) is None


test_a_sign_of_a_difference_of_weights_holds_at_every_allowed_point = EVERY(given(st.data())(weights_hold))


@pytest.mark.slow
@pytest.mark.parametrize("number_of_run", range(3))
def test_many_more_signs_of_differences_of_weights_hold(number_of_run):
    run = given(st.data())(weights_hold)
    seed(number_of_run)(settings(EVERY, derandomize=False, max_examples=300)(run))()


@settings(EVERY, max_examples=settings.default.max_examples * 3 // 5)
@given(st.data())
def test_a_sign_of_a_polynomial_of_one_number_holds_at_every_root_and_between(data):
    """Products of (x - root)^power, also with roots at the ends of the range, where open and closed ends differ."""
    roots = [Fraction(r) for r in data.draw(st.lists(st.sampled_from([-1, 0, 1, 2, "1/2", "1/3"]), max_size=3))]
    where = number("x", data.draw(st.sampled_from(["(0, 1)", "[0, 1]", "(0, 1]", "[0, 1)", "(1, oo)", "[1, oo)"])))
    if data.draw(st.booleans()):
        where = number("x", data.draw(st.sampled_from(["(-oo, 0)", "(-oo, 0]", "(-oo, oo)", "[-1, 2]", "(-1, 2)"])))
    x = where.symbol
    poly = data.draw(st.sampled_from([sp.Integer(1), sp.Integer(-2), x**2 + 1, x**2 - 2, x**2 + x + 1]))
    for root in roots:
        poly *= (x - sp.Rational(root.numerator, root.denominator)) ** data.draw(st.integers(1, 3))
    poly = sp.expand(poly)
    said = said_of(poly, where)
    if said is not None and poly.has(x):
        assert against(said, poly, [where], random.Random(1), 80) is None
        exact = [poly.subs(x, sp.Rational(r.numerator, r.denominator)) for r in roots if where.allows(r)]
        assert all(SIGNS[said](v) for v in exact), (said, poly)


@EVERY
@given(st.data())
def test_the_rational_form_has_the_value_of_the_expression(data):
    """Numerator over denominator, with every generator put back: the same number to 40 digits."""
    here = data.draw(numbers(["(0, oo)", "(0, 1)", "(1, oo)"]))
    expr = data.draw(expressions(here, depth=data.draw(st.integers(0, 2))))
    provided(not expr.has(sp.zoo, sp.nan, sp.oo))
    try:
        with time_limit(3):
            got = ratio(expr)
    except (TimedOut, *GIVES_UP):
        return
    back = dict(got.logs)
    whole = (got.top / got.bottom).xreplace(back).xreplace({g: sp.exp(p) for g, p in got.powers.items()})
    symbols = [one.symbol for one in here]
    one, two = function(expr, symbols), function(whole, symbols)
    for point in points(here, random.Random(2), 5):
        try:
            left, right = one(*point), two(*point)
        except (Undefined, Unresolved):
            continue
        with mpmath.workdps(60):
            assert abs(left - right) <= abs(left) * mpmath.mpf(10) ** -14, (expr, whole, point)


@EVERY
@given(st.data())
def test_rewritten_expressions_differ_by_zero_and_changed_ones_do_not(data):
    here = data.draw(numbers(["(0, oo)", "(0, 1)", "(1, oo)", "(-oo, oo)"]))
    expr = data.draw(expressions(here, depth=1))
    provided(not expr.has(sp.zoo, sp.nan, sp.oo, sp.Abs) and expr != 0)
    rewrite = data.draw(st.sampled_from([sp.expand, sp.together, lambda e: sp.powsimp(sp.expand(e)), sp.factor_terms]))
    other = rewrite(expr)
    more = data.draw(expressions(here, depth=0))
    try:
        with time_limit(3):
            zero, off = is_zero(expr - other), is_zero(expr - other + more)
    except (TimedOut, *GIVES_UP):
        return
    assert zero or other.has(sp.log) or any(not p.exp.is_Integer for p in expr.atoms(sp.Pow) if not p.exp.has(t))
    if off:  # only a term that vanishes everywhere may be added
        assert against("0", more, here, random.Random(3)) is None


# Signs that must be found: what claims need.
FOUND = [
    (sp.exp(t) - 1, "+"),
    (1 - sp.exp(t), "-"),
    (sp.exp(-t) - 1, "-"),
    (1 / (1 + sp.exp(-t)) - sp.Rational(1, 2), "+"),
    (sp.exp(t) / (sp.exp(t) + n - 1), "+"),
    (sp.exp(t) / (sp.exp(t) + n - 1) - 1 / n, "+"),
    (sp.exp(t) / (2 * sp.exp(t) + n - 2) - sp.Rational(1, 2), "<="),
    (sp.exp(2 * t) - 2 * sp.exp(t) + 1, "+"),
    (sp.exp(2 * t) - sp.exp(t), "+"),
    (sp.exp(s * t) - 1, "+"),
    (s * (1 - s), "+"),
    (s * (1 - s) - sp.Rational(1, 4), "<="),
    (s**2 - s + 1, "+"),
    (u**2, ">="),
    (u**2 + 1, "+"),
    (sp.exp(u), "+"),
    (-sp.exp(u) * (1 + u**2), "-"),
    (sp.log(n), "+"),
    (sp.log(1 + t), "+"),
    (-sp.log(1 + t) - s, "-"),
    (sp.sqrt(t) + t, "+"),
    ((t + 1) ** 2 - t**2 - 2 * t - 1, "0"),
    (sp.exp(t) * sp.exp(-t) - 1, "0"),
    (n - 1, "+"),
    (n - 2, ">="),
    (sp.sqrt(2) - sp.Rational(7, 5), "+"),
    (sp.exp(1) - 3, "-"),
    (sp.sqrt(3 + 2 * sp.sqrt(2)) - 1 - sp.sqrt(2), "0"),
]


@pytest.mark.parametrize(("expr", "wanted"), FOUND, ids=str)
def test_the_signs_that_claims_need_are_found(expr, wanted):
    assert said_of(expr, T, S, U, N, seconds=60) == wanted
    assert against(wanted, expr, [T, S, U, N], random.Random(4), 300) is None


@pytest.mark.parametrize(
    ("interval", "at_zero", "at_one"),
    [
        ("(0, 1)", "+", "+"),
        ("[0, 1)", ">=", "+"),
        ("(0, 1]", "+", ">="),
        ("[0, 1]", ">=", ">="),
    ],
)
def test_an_end_that_belongs_to_the_range_weakens_a_strict_sign(interval, at_zero, at_one):
    x = number("x", interval)
    for expr, wanted in ((x.symbol, at_zero), (1 - x.symbol, at_one), ((1 - x.symbol) ** 3, at_one)):
        said = said_of(expr, x)
        assert said in (wanted, None)
        assert said is None or against(said, expr, [x], random.Random(1)) is None
    assert said_of(x.symbol, x) == at_zero


def test_unknowns_in_the_unit_interval_are_covered_up_to_one():
    theta = sp.Symbol("theta", positive=True)
    here = bounded(assume(T), theta)
    unit = Number(theta, Fraction(0), Fraction(1), lo_open=True)
    for expr in (theta, 1 - theta, theta - theta**2, 2 - theta, sp.exp(t) - theta, theta * sp.exp(t) - 1):
        said = sign(expr, here)
        assert said is None or against(said, expr, [T, unit], random.Random(1), 200) is None
    assert sign(1 - theta, here) == ">=" and sign(2 - theta, here) == "+" and sign(theta, here) == "+"


def test_a_number_that_is_fixed_is_put_in():
    here = assume(T, S).fix(s, t + 1)
    assert sign(s - t, here) == "+" and sign(s - t - 1, here) == "0" and is_zero(s - t - 1, here)
    assert sign(s - 2, here) is None


@pytest.mark.parametrize("expr", [sp.oo, sp.zoo, sp.nan, sp.sqrt(-2), sp.log(-1), 1 / (u - 1), sp.log(u), u, u**3])
def test_what_is_undefined_or_of_either_sign_has_no_sign(expr):
    assert said_of(sp.sympify(expr), U) is None


# The references notice what is wrong.
@pytest.mark.parametrize(
    ("said", "expr", "given_number"),
    [
        ("-", sp.exp(t) - 1, T),
        ("+", t - sp.Rational(1, 10**3), T),  # wrong only close to the open end
        ("+", 50 - t, T),  # wrong only far out
        ("+", u**2, U),  # wrong at one point
        ("0", sp.exp(-200 * t), T),  # tiny, not zero
        (">=", (n - 2) * (n - 3) - 1, N),  # wrong at two whole numbers
        ("<=", sp.exp(t) * (1 + sp.exp(-t)) - sp.exp(t), T),  # 1, after all digits cancel
    ],
)
def test_a_wrong_sign_is_noticed(said, expr, given_number):
    assert against(said, expr, [given_number], random.Random(1), 200) is not None


@pytest.mark.parametrize("interval", ["(0, 1)", "[0, 1]", "(-oo, 2]", "(3, oo)", "(-oo, oo)", "[-1, 0)"])
def test_the_points_lie_in_the_range_and_reach_its_ends(interval):
    one = number("x", interval)
    found = places(one, random.Random(1))
    assert all(one.allows(v) for v in found) and len(found) > 12
    for end, is_open in ((one.lo, one.lo_open), (one.hi, one.hi_open)):
        if end is not None:
            assert (end in found) == (not is_open)
            assert min(abs(v - end) for v in found if v != end) <= Fraction(1, 10**6)


def test_zero_is_told_from_what_is_small():
    value = function(sp.exp(-t) * sp.exp(t) - 1 + sp.exp(-1000 * t), [t])
    assert 0 < value(Fraction(1)) < mpmath.mpf(10) ** -430
    assert function((1 + sp.exp(-t)) * sp.exp(t) - sp.exp(t) - 1, [t])(Fraction(3)) == 0


# Signs that were false once: a constant e^(-c) was taken to exceed 1.
FALSE = [
    (t * (2 * sp.exp(-1) - 1), [T], "t*(2/e - 1) is negative: 2/e = 0.74"),
    (t * sp.exp(-sp.sqrt(2)) - t / 2, [T], "e^(-sqrt(2)) = 0.24 is below 1/2"),
    (sp.exp(-sp.Rational(3, 2)) - sp.exp(-t), [number("t", "[0, oo)")], "e^(-3/2) - 1 at t = 0 is negative"),
    (s - sp.exp(-2), [S], "s = 1/10 is below e^(-2) = 0.135"),
]


@pytest.mark.parametrize(
    ("expr", "here"),
    [pytest.param(expr, here, id=why) for expr, here, why in FALSE],
)
def test_a_constant_with_a_negative_exponent_is_below_one(expr, here):
    said = said_of(expr, *here)
    assert said is None or against(said, expr, here, random.Random(1), 300) is None


def test_a_claim_with_a_constant_below_one_is_not_proved():
    assert argued("t > 0", "", "t*exp(-1) > t/2") != "proved"
