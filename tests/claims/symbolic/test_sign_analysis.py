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

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic import sign_analysis
from qkv.claims.symbolic.errors import TooLarge
from qkv.claims.symbolic.sign_analysis import (
    FLIP,
    Ratio,
    _expanded,
    _factored_sign,
    _from_zero,
    _positive_product,
    _root_sign,
    _shifted,
    _sum_sign,
    _term_sign,
    _unit,
    _with_exponentials,
    _without_bars,
    expanded_logarithms,
    is_zero,
    product_of_signs,
    ratio,
    sign,
)
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


# Single steps, each against what it means for numbers.
VALUES = {"+": (1, 2), "-": (-1, -3), "0": (0,), ">=": (0, 2), "<=": (0, -2)}


def sign_of_all(values):
    """The strongest sign that holds for all of some numbers."""
    return next((s for s in ("0", "+", "-", ">=", "<=") if all(SIGNS[s](v) for v in values)), None)


def test_the_sign_of_a_product_and_of_a_negative():
    for one, ones in VALUES.items():
        assert FLIP[one] == sign_of_all([-v for v in ones])
        for two, twos in VALUES.items():
            assert product_of_signs(one, two) == sign_of_all([a * b for a in ones for b in twos])


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ("2 4", "2"),
        ("6 4", "2"),
        ("1/2 1/3", "1/6"),
        ("-2 -4", "-2"),
        ("-2 4", "2"),
        ("3/2 -3", "3/2"),
        ("-1/3", "-1/3"),
    ],
)
def test_all_values_are_whole_multiples_of_the_unit(values, wanted):
    assert _unit([sp.Rational(v) for v in values.split()]) == sp.Rational(wanted)


def test_exponentials_of_high_powers_are_refused():
    got = ratio(sp.exp(64 * t) + sp.exp(t))
    assert max(sp.Poly(got.top, *got.powers).degree_list()) == 64
    with pytest.raises(TooLarge):
        ratio(sp.exp(65 * t) + sp.exp(t))
    with pytest.raises(TooLarge):
        ratio(sp.exp(-65 * t) + sp.exp(t))


def test_a_quotient_keeps_its_generators_apart():
    expr = sp.exp(2 * t) / (sp.exp(t * s) + 3) + sp.E * sp.log(1 + sp.exp(t))
    got = ratio(expr)
    assert sorted(map(str, got.powers.values())) == sorted(["1", "s*t", "t"])
    point = {t: sp.Rational(1, 3), s: sp.Rational(2, 5)}
    assert abs(sp.N((got.restored(got.top / got.bottom) - expr).subs(point), 30)) < 1e-25
    assert ratio(sp.exp(2 * sp.log(t) + s)).top == t**2 * next(iter(ratio(sp.exp(s)).powers))
    assert ratio(sp.exp(-t) + 1).powers == {sp.Symbol("e^(-t)", positive=True): -t}
    assert ratio(sp.exp(sp.sqrt(2) * t)).powers == {sp.Symbol("e^(sqrt(2)*t)", positive=True): sp.sqrt(2) * t}


def test_powers_and_sums_that_grow_too_large_are_refused(monkeypatch):
    assert _expanded((t + 1) ** 3) == t**3 + 3 * t**2 + 3 * t + 1
    assert _expanded(t**100) == t**100  # a power of one term stays one
    monkeypatch.setattr(sign_analysis, "MAX_POWER", 5)
    assert len(_expanded((t + 1) ** 5).args) == 6
    with pytest.raises(TooLarge, match="high power"):
        _expanded((t + 1) ** 6)
    monkeypatch.setattr(sign_analysis, "MAX_MONOMIALS", 2)  # products of up to 80 terms, of which 8 are left
    assert len(_expanded((t + 1) ** 5 * (t + 2)).args) == 7
    assert len(_expanded((t + 1) * (s + 1) * (u + 1)).args) == 8
    with pytest.raises(TooLarge, match="too large"):
        _expanded((t + s + u) * (n + s + 1))
    with pytest.raises(TooLarge, match="too large"):
        _expanded((t + 1) ** 5 * (t + 2) * (t + 3))  # 128 products, though 8 terms are left


def test_high_powers_of_sums_and_of_generators_have_a_limit():
    assert len(_expanded((t + 1) ** 14).args) == 15
    with pytest.raises(TooLarge):
        _expanded((t + 1) ** 65)
    with pytest.raises(TooLarge):
        _expanded((t + 1) ** 15)  # 2^15 products


y = sp.Symbol("y", real=True)


@pytest.mark.parametrize(
    ("interval", "form", "how"),
    [
        ("[2, oo)", 2 + y, ">="),
        ("(2, oo)", 2 + y, "+"),
        ("(-oo, 3]", 3 - y, ">="),
        ("(-oo, 3)", 3 - y, "+"),
        ("(1, 4)", (1 + 4 * y) / (1 + y), "+"),
        ("[1, 4)", (1 + 4 * y) / (1 + y), ">="),
        ("[1, 4]", 1 + y, ">="),
        ("(1, 4]", 1 + y, "+"),
    ],
)
def test_a_range_is_covered_by_numbers_from_zero_on(interval, form, how):
    found, said = _shifted(number("x", interval).range, y)
    assert sp.simplify(found - form) == 0 and said == how
    assert _shifted(Range(), y) is None


A, C, D = sp.symbols("A C D", real=True)
KNOWN = {A: "+", C: ">="}


@pytest.mark.parametrize(
    ("term", "wanted"),
    [
        (sp.Integer(3), "+"),
        (sp.Integer(-3), "-"),
        (A, "+"),
        (-2 * A, "-"),
        (C, ">="),
        (-C, "<="),
        (A * C, ">="),
        (-A * C**2, "<="),
        (D, None),
        (D**2, ">="),
        (-(D**2), "<="),
        (A**2 * D**4, ">="),
        (D**3, None),
        (A**-1, "+"),
        (A**-2, "+"),
        (C**-1, None),
        (C**-2, None),
        (D**-2, None),
        (sp.sqrt(2) * A, "+"),
        ((1 - sp.sqrt(2)) * A, "-"),
        (sp.sqrt(A), "+"),
        (sp.sqrt(C), ">="),
        (sp.sqrt(D), None),
        (A ** sp.Rational(-1, 2), "+"),
        (C ** sp.Rational(-1, 2), None),
        (A**D, "+"),
        (sp.sqrt(A + 1), None),
    ],
    ids=str,
)
def test_the_sign_of_one_term(term, wanted):
    assert _term_sign(term, KNOWN) == wanted


def test_denominators_are_numbers_times_powers_of_one_plus_something():
    assert _positive_product(3 * ((1 + A) * (1 + C) ** 2), KNOWN) == "+"
    assert _positive_product(-3 * ((1 + C) * (1 + A)), KNOWN) == "-"
    for bottom in ((1 + D) * (1 + A), 2 + A, A, (1 + A) ** sp.Rational(1, 2), -2 * (1 + A) * (2 + C)):
        assert _positive_product(bottom, KNOWN) is None


NONE = Ratio(sp.Integer(0), sp.Integer(1), {}, {})


@pytest.mark.parametrize(
    ("roots", "interval", "wanted"),
    [
        ("1", "(1, oo)", "+"),
        ("1", "[1, oo)", ">="),
        ("1", "(0, oo)", None),
        ("1", "(-oo, 1)", "-"),
        ("1", "(-oo, 1]", "<="),
        ("1", "(-oo, 2]", None),
        ("0 1", "(0, 1)", "-"),
        ("0 1", "[0, 1)", "<="),
        ("0 1", "(0, 1]", "<="),
        ("0 1", "[0, 1]", "<="),
        ("0 1", "(0, 2)", None),
        ("-1 2", "[0, 1]", "-"),
        ("0 2", "[0, 1]", "<="),
        ("0 2", "(0, 1]", "-"),
        ("", "(-oo, oo)", "+"),
        ("5", "(-oo, oo)", None),
        ("-1", "[0, 3]", "+"),
    ],
)
def test_the_sign_of_a_polynomial_of_one_number_by_its_roots(roots, interval, wanted):
    x = number("x", interval)
    poly = sp.expand(sp.Mul(*(x.symbol - sp.Rational(r) for r in roots.split())) * (x.symbol**2 + x.symbol + 1))
    assert _root_sign(poly, NONE, assume(x)) == wanted
    assert _root_sign(-poly, NONE, assume(x)) == (None if wanted is None else FLIP[wanted])


def test_polynomials_of_two_numbers_of_high_degree_or_with_roots_in_coefficients_are_left_alone():
    x = number("x", "(0, oo)")
    assert _root_sign(x.symbol**16 + 1, NONE, assume(x)) == "+"
    assert _root_sign(x.symbol**17 + 1, NONE, assume(x)) is None
    assert _root_sign(x.symbol + t, NONE, assume(x)) is None
    assert _root_sign(x.symbol**2 + sp.sqrt(2), NONE, assume(x)) is None


def test_a_generator_ranges_from_one_on_if_its_exponent_is_not_negative():
    g = sp.Symbol("g", positive=True)
    weak = number("w", "[0, oo)")
    for power, poly, wanted in [
        (t, g**2 - 1, "+"),  # g > 1
        (t, g**2 - 4, None),
        (weak.symbol, g**2 - 1, ">="),  # g >= 1
        (u, g**2 + g, "+"),  # g > 0
        (u, g**2 - 1, None),
        (-t, g**2 + g, "+"),
        (-t, g**2 - 1, None),
    ]:
        assert _root_sign(poly, Ratio(poly, sp.Integer(1), {g: power}, {}), assume(T, U, weak)) == wanted
    held = Ratio(g, sp.Integer(1), {}, {g: sp.log(t)})  # a logarithm may be any number
    assert _root_sign(g**2 - g + 1, held, assume(T)) == "+" and _root_sign(g**2 - 1, held, assume(T)) is None


@pytest.mark.parametrize(
    ("interval", "factor", "positive"),
    [("(-oo, 2)", -1, True), ("(-oo, 2]", -1, False), ("(2, oo)", 1, True), ("[2, oo)", 1, False)],
)
def test_numbers_in_exponents_are_counted_from_their_end(interval, factor, positive):
    x = number("x", interval)
    expr = sp.exp(x.symbol * t) + x.symbol
    found, wider = _from_zero(expr, assume(x, T))
    (fresh,) = found.free_symbols - {t}
    assert fresh.is_positive is (True if positive else None) and fresh.is_nonnegative
    assert wider.ranges[fresh] == Range(Fraction(0), None, positive)
    assert sp.expand(found.subs(fresh, factor * (x.symbol - 2)) - expr) == 0


@pytest.mark.parametrize("interval", ["(-oo, oo)", "[0, oo)", "(0, oo)", "(1, 2)", "[1, 2]"])
def test_numbers_without_one_end_besides_zero_stay(interval):
    x = number("x", interval)
    expr = sp.exp(x.symbol * t)
    assert _from_zero(expr, assume(x, T)) == (expr, assume(x, T))
    assert _from_zero(x.symbol + t, assume(x, T))[0] == x.symbol + t


def test_numbers_outside_exponents_stay():
    x = number("x", "(2, oo)")
    assert _from_zero(x.symbol + sp.exp(t), assume(x, T))[0] == x.symbol + sp.exp(t)


def test_bars_go_where_the_sign_is_known():
    weak = number("w", "(-oo, 0]")
    here = assume(T, U, S, weak)
    bars = sp.Abs(s - 1) + sp.Abs(u) + 2 * sp.Abs(weak.symbol)
    assert _without_bars(bars, here) == 1 - s + sp.Abs(u) - 2 * weak.symbol
    assert _without_bars(sp.Abs(sp.Abs(s - 2) - 5), here) == 3 + s  # |(2 - s) - 5| with 0 < s < 1
    assert sign(sp.Abs(s - 2) - 1, here) == "+" and sign(sp.Abs(u), here) is None
    assert is_zero(sp.Abs(s - 1) + s - 1, here) and not is_zero(sp.Abs(u) - u, here)


def test_powers_with_moving_exponents_become_exponentials():
    assert _with_exponentials(t**u + u**2) == sp.exp(u * sp.log(t)) + u**2
    assert _with_exponentials(u**t) == u**t and _with_exponentials(sp.exp(u)) == sp.exp(u)
    assert is_zero(t**u * t**-u - 1) and is_zero(2 ** (u + 1) - 2 * 2**u) and not is_zero(2**u - 3**u)


def test_logarithms_of_positive_factors_are_taken_apart():
    here = assume(T, S, U, N)
    for expr, wanted in [
        (sp.log(t * s), sp.log(t) + sp.log(s)),
        (sp.log(t**2 / (1 + t)), 2 * sp.log(t) - sp.log(1 + t)),
        (sp.log(2 * sp.exp(u) / t), sp.log(2) + u - sp.log(t)),
        (sp.log(u * t), sp.log(t) + sp.log(u)),
        (sp.log(u), sp.log(u)),
        (sp.log(sp.exp(3 * u)), 3 * u),
    ]:
        assert sp.expand(expanded_logarithms(expr, here) - wanted) == 0, expr
    assert is_zero(sp.log(2 * t) - sp.log(2) - sp.log(t), here)
    assert is_zero(sp.log(sp.exp(t) + sp.exp(2 * t)) - t - sp.log(1 + sp.exp(t)), here)
    assert not is_zero(sp.log(2 * t) - 2 * sp.log(t), here)
    assert not is_zero(sp.log(t * s) - sp.log(t) + sp.log(s), here)


@pytest.mark.parametrize("expr", [sp.oo, sp.nan, sp.zoo, -sp.oo, t - sp.oo, 1, -1, t, sp.E - 1, sp.sqrt(2) - 1])
def test_what_is_not_zero_or_no_number_is_not_shown_to_be_zero(expr):
    assert is_zero(sp.sympify(expr)) is False


def in_unit(expr, interval, **options):
    x = number("x", interval)
    return _sum_sign(expr.subs(u, x.symbol), NONE, assume(x, T), **options)


def test_closed_ends_are_covered_by_continuity_and_only_weakly():
    cubic = (1 - u) * (1 + u**2)
    assert in_unit(sp.expand(cubic), "[0, 1]") is None
    assert in_unit(sp.expand(cubic), "[0, 1]", to_closed_ends=True) == ">="
    assert in_unit(sp.expand(-cubic), "[0, 1]", to_closed_ends=True) == "<="
    assert in_unit(sp.expand(cubic), "[0, 1)") == "+"
    for interval in ("(0, 1)", "[0, oo)", "(-oo, 1]", "(-oo, oo)"):  # nothing to close
        assert in_unit(u**2 + 1, interval, to_closed_ends=True) is None


def test_the_coefficients_after_shifts_show_the_sign():
    weak, theta = number("w", "[0, oo)"), sp.Symbol("theta", positive=True)
    here = bounded(assume(T, S, U, weak), theta)
    low = sp.Symbol("m", nonnegative=True)
    for expr, wanted in [
        (sp.Integer(0) * t + sp.Integer(3), "+"),
        (t + weak.symbol, "+"),
        (weak.symbol + weak.symbol**2, ">="),
        (-weak.symbol - t, "-"),
        (-weak.symbol, "<="),
        (t - s, None),
        (1 - s, "+"),
        (s - 1, "-"),
        (1 - theta, ">="),
        (theta - 2, "-"),
        (low, ">="),
        (low + t, "+"),
        (u, None),
        (u**2 + t, "+"),
        (sp.Symbol("p", positive=True) + low, "+"),
    ]:
        assert _sum_sign(sp.sympify(expr), NONE, here) == wanted, expr


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        ((u - 1) ** 2 * t, ">="),
        (-((u - 1) ** 2) * t, "<="),
        ((u - 1) ** 2 * (u**2 + 1), ">="),
        ((s - 2) ** 2 * (s - 3), "-"),
        ((s - 2) ** 2 * (t + 1), "+"),
        ((u - 1) * (t + 1), None),
        ((u - 1) ** 3 * (t + 1), None),
        ((s - 1) ** 3 * (t + 1), "-"),
        ((s - 1) * (t + 1) * (s - 2), "+"),
        (-2 * (s - 1) * (t + 1), "+"),
    ],
    ids=str,
)
def test_the_sign_of_a_product_factor_by_factor(expr, wanted):
    here = assume(T, S, U)
    assert _factored_sign(sp.expand(expr), NONE, here) == wanted
    assert wanted is None or against(wanted, expr, [T, S, U], random.Random(1), 60) is None


def test_long_polynomials_are_not_factored(monkeypatch):
    square = sp.expand((u - 1) ** 2 * (t + 1))
    assert sign(square, assume(T, U)) == ">="
    monkeypatch.setattr(sign_analysis, "MAX_FACTORED_TERMS", len(square.args))
    assert sign(square, assume(T, U)) == ">="
    monkeypatch.setattr(sign_analysis, "MAX_FACTORED_TERMS", len(square.args) - 1)
    assert sign(square, assume(T, U)) is None


def test_a_sign_is_read_off_few_monomials(monkeypatch):
    monkeypatch.setattr(sign_analysis, "MAX_MONOMIALS", 3)
    assert _sum_sign(t + t**2 + t**3, NONE, assume(T)) == "+"
    monkeypatch.setattr(sign_analysis, "MAX_MONOMIALS", 2)
    assert _sum_sign(t + t**2 + t**3, NONE, assume(T)) is None


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (t / (s - 2), "-"),
        (-t / (s - 2), "+"),
        (t / (t - 1), None),
        (u**2 / (s - 2), "<="),
        ((u - 1) / (u**2 + 1), None),
        (1 / u**2, None),
        (sp.log(t + 1) * (s - 1), "-"),
        (sp.log(s), None),
        (sp.exp(-t) * 2 - 1, None),
        (1 - sp.exp(-t), "+"),
        (sp.exp(-s * t) - 1, "-"),
        (sp.exp(u) - sp.exp(u - 1), "+"),
        (sp.pi - 3, "+"),
        (3 - sp.pi, "-"),
    ],
    ids=str,
)
def test_signs_of_quotients_exponentials_and_logarithms(expr, wanted):
    assert sign(expr, assume(T, S, U, N)) == wanted
