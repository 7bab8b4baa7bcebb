"""Limits of expressions, against values far out (mpmath) and SymPy's own limits."""

import random

import pytest
import sympy as sp
from build import GIVES_UP, argued, assume, bounded, number, pieces, range_in
from expressions import exponents, expressions, numbers
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import assume as provided
from hypothesis import strategies as st
from reference import off_limit

from qkv.claims.symbolic.errors import NeedSign, Unsupported
from qkv.claims.symbolic.growth_limits import MAX_ZERO_ORDER, _by_taylor, _continuous, _in_roots, _root, limit
from qkv.claims.symbolic.sign_analysis import is_zero
from qkv.claims.time_limit import TimedOut, time_limit

T, S, BETA, N = number("t", "(0, oo)"), number("s", "(0, 1)"), number("beta"), number("n", "[2, oo)", whole=True)
t, s, beta, n = T.symbol, S.symbol, BETA.symbol, N.symbol
GIVEN = [T, S, BETA, N]
EVERY = settings(
    max_examples=settings.default.max_examples * 4 // 5,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def limits_of(expr, x, to, here, seconds=3):
    """The numbers of each case of the parameters and the limit there; nothing where the step gives up."""
    parameters = tuple(one for one in here if one.symbol != x and not one.whole)
    fixed = [one for one in here if one not in parameters]
    try:
        with time_limit(seconds):
            cases = pieces((*parameters, *fixed), lambda f: limit(expr, x, to, f))
    except (TimedOut, *GIVES_UP):
        return []
    return [([range_in(c.assumptions, p) for p in here], c.assumptions.put(expr), c.found) for c in cases]


def target(one, data):
    """An end of the range of a number: where it may go."""
    ends = [-sp.oo if one.lo is None else sp.Rational(one.lo.numerator, one.lo.denominator)]
    ends.append(sp.oo if one.hi is None else sp.Rational(one.hi.numerator, one.hi.denominator))
    return sp.oo if one.whole else data.draw(st.sampled_from(ends))


# Generated expressions.
def values_come_to_the_limit(data):
    """Any of the numbers moves, to an end of its range; the others are anywhere in theirs."""
    here = data.draw(numbers())
    expr = data.draw(expressions(here, depth=data.draw(st.integers(0, 2))))
    provided(not expr.has(sp.zoo, sp.nan, sp.oo))
    moving = data.draw(st.sampled_from([here[0], *here]))
    to = target(moving, data)
    provided(expr.has(moving.symbol))
    for case, put, found in limits_of(expr, moving.symbol, to, here):
        assert off_limit(found, put, moving.symbol, to, case, random.Random(1), 4) is None


test_values_far_out_come_to_the_limit = EVERY(given(st.data())(values_come_to_the_limit))


@pytest.mark.slow
@pytest.mark.parametrize("number_of_run", range(10))
def test_many_more_values_far_out_come_to_the_limit(number_of_run):
    run = given(st.data())(values_come_to_the_limit)
    seed(number_of_run)(settings(EVERY, derandomize=False, max_examples=500)(run))()


@settings(EVERY, max_examples=40)
@given(st.data())
def test_weights_far_out_come_to_their_limits_in_every_case(data):
    """e^a/(e^a + e^b + (n - 2) e^c) with exponents that depend on parameters: which is largest is found by cases."""
    here = data.draw(numbers(["(0, oo)", "(0, 1)", "(-1, 1)", "[0, 1]", "(-oo, oo)", "(1, 3)"]))
    x, y, z, count = (one.symbol for one in here)
    scores = [data.draw(exponents(x, [y, z])) for _ in range(3)]
    weight = sp.exp(scores[0]) / (sp.exp(scores[0]) + sp.exp(scores[1]) + (count - 1) * sp.exp(scores[2]))
    provided(weight.has(x))
    for case, put, found in limits_of(weight, x, sp.oo, here):
        assert off_limit(found, put, x, sp.oo, case, random.Random(1), 4) is None


@settings(EVERY, max_examples=40)
@given(st.data())
def test_limits_agree_with_sympy_where_all_other_numbers_are_given(data):
    """SymPy's `limit` (Gruntz's algorithm) on rational functions of e^t, t and log(t)."""
    pool = [t, t**2, sp.exp(t), sp.exp(2 * t), sp.exp(-t), sp.log(t), sp.Integer(1), t * sp.exp(t), sp.sqrt(t)]
    parts = st.lists(st.tuples(st.sampled_from([-2, -1, 1, 3]), st.sampled_from(pool)), min_size=1, max_size=3)
    top, bottom = (sum((c * e for c, e in data.draw(parts)), sp.Integer(0)) for _ in range(2))
    provided(bottom != 0)
    try:
        found = limit(top / bottom, t, sp.oo, assume(T))
    except GIVES_UP:
        return
    assert is_zero(found - sp.limit(top / bottom, t, sp.oo)) or found == sp.limit(top / bottom, t, sp.oo)


@settings(EVERY, max_examples=40)
@given(st.data())
def test_one_limit_after_the_other(data):
    """t -> oo, then beta -> oo, of what is left: each step is a limit, so the second is one of the first's result."""
    slope = data.draw(st.sampled_from([1, -1, 2]))
    pool = [sp.exp(slope * t), sp.exp(beta), sp.exp(-beta), beta, t, 1 / t, n, beta * t, sp.exp(beta * t), sp.log(n)]
    parts = st.lists(st.sampled_from(pool), min_size=1, max_size=3)
    top, bottom = (sum(data.draw(parts), sp.Integer(0)) for _ in range(2))
    big = number("beta", "(0, oo)")
    expr = (top / bottom).subs(beta, big.symbol)
    try:
        first = limit(expr, t, sp.oo, assume(T, big, N))
        provided(not first.has(sp.oo))
        second = limit(first, big.symbol, sp.oo, assume(T, big, N))
    except GIVES_UP:
        return
    assert off_limit(first, expr, t, sp.oo, [T, big, N], random.Random(1), 4) is None
    if first.has(big.symbol):
        assert off_limit(second, first, big.symbol, sp.oo, [big, N], random.Random(1), 4) is None


# Limits that must be found: what claims need.
FOUND = [
    (sp.exp(t) / (sp.exp(t) + n - 1), t, sp.oo, 1),
    (1 / (sp.exp(t) + n - 1), t, sp.oo, 0),
    (sp.exp(t) / (2 * sp.exp(t) + n - 2), t, sp.oo, sp.Rational(1, 2)),
    (sp.exp(t) / (sp.exp(t) + sp.exp(s * t)), t, sp.oo, 1),
    (sp.exp(s * t) / (sp.exp(t) + sp.exp(s * t)), t, sp.oo, 0),
    (t * sp.exp(-t), t, sp.oo, 0),
    (t**5 * sp.exp(-s * t), t, sp.oo, 0),
    (sp.exp(t) / t**3, t, sp.oo, sp.oo),
    (sp.log(t) / t, t, sp.oo, 0),
    (-sp.log(t), t, sp.oo, -sp.oo),
    (sp.sqrt(t) / t, t, sp.oo, 0),
    (t**s / t, t, sp.oo, 0),
    (sp.exp(t * sp.log(n)) / (sp.exp(t * sp.log(n)) + 1), t, sp.oo, 1),
    (sp.exp(2 * sp.log(t)) / t**2, t, sp.oo, 1),
    (sp.exp(t**2 - 5 * t), t, sp.oo, sp.oo),
    (n / (n + sp.exp(t)), n, sp.oo, 1),
    (sp.exp(t) / (sp.exp(t) + n - 1), n, sp.oo, 0),
    (sp.exp(beta), beta, -sp.oo, 0),
    (beta**3, beta, -sp.oo, -sp.oo),
    (sp.sqrt(beta**2) + beta, beta, -sp.oo, 0),
    (sp.log(1 + t), t, sp.oo, sp.oo),
    (sp.log(1 + sp.exp(t)) / t, t, sp.oo, 1),
    (sp.log(1 + sp.exp(s * t)) / t, t, sp.oo, s),
    (sp.log(2 + sp.exp(t)) - t, t, sp.oo, 0),
    (t * sp.log(1 + 1 / t), t, sp.oo, 1),
    (t**2 * (sp.log(1 + 1 / t) - 1 / t), t, sp.oo, -sp.Rational(1, 2)),
    (-sp.exp(t) * sp.log(sp.exp(t) / (sp.exp(t) + n - 1)), t, sp.oo, n - 1),
    (sp.log(n - 1 + sp.exp(t)) / sp.log(n), n, sp.oo, 1),
    (sp.sqrt(t + 1) - sp.sqrt(t), t, sp.oo, 0),
    (sp.sqrt(t**2 + t) - t, t, sp.oo, sp.Rational(1, 2)),
    ((1 + 1 / t) ** t, t, sp.oo, sp.E),
    (t ** (1 / t), t, sp.oo, 1),
    (2**t, t, sp.oo, sp.oo),
    (3**t / 2**t * sp.exp(-t), t, sp.oo, 0),
    (sp.Abs(3 - t) - t, t, sp.oo, -3),
    (sp.exp(t) / (sp.exp(t) + n - 1), t, sp.Integer(0), 1 / n),
    (sp.exp(s * t), s, sp.Integer(0), 1),
    ((3 * t**2 + t) / (2 * t**2 + sp.log(t)), t, sp.oo, sp.Rational(3, 2)),
]


@pytest.mark.parametrize(("expr", "x", "to", "wanted"), FOUND, ids=str)
def test_the_limits_that_claims_need_are_found(expr, x, to, wanted):
    found = limit(expr, x, to, assume(*GIVEN))
    assert found == wanted or is_zero(found - wanted)
    assert off_limit(sp.sympify(wanted), expr, x, to, GIVEN, random.Random(1)) is None


@pytest.mark.parametrize(
    ("expr", "sign_of"), [(sp.exp(beta * t), beta), (sp.exp((beta - 1) * t) + 1, beta - 1), (beta * t, beta)]
)
def test_a_limit_that_depends_on_a_sign_asks_for_it(expr, sign_of):
    with pytest.raises(NeedSign) as missing:
        limit(expr, t, sp.oo, assume(*GIVEN))
    assert sp.expand(missing.value.expr - sign_of) == 0


@pytest.mark.parametrize(
    "expr",
    [sp.sin(t), (1 + 1 / t) ** (t**2), sp.exp(sp.exp(t)), t**t, sp.log(sp.log(t)), t * sp.erf(t)],
)
def test_what_is_no_exponential_rational_expression_is_left_alone(expr):
    with pytest.raises(GIVES_UP):
        limit(expr, t, sp.oo, assume(*GIVEN))


@pytest.mark.parametrize("expr", [(-2) ** n / n, (-1) ** n, sp.sqrt(3 - n), sp.log(2 - n) / n])
def test_what_alternates_or_has_no_real_value_far_out_is_left_alone(expr):
    with pytest.raises(GIVES_UP):
        limit(expr, n, sp.oo, assume(*GIVEN))


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (sp.log(s), -sp.oo),
        (s * sp.log(s), 0),
        ((sp.exp(s) - 1) / s, 1),
        ((sp.exp(s) - 1 - s) / s**2, sp.Rational(1, 2)),
        (sp.log(1 + 3 * s) / s, 3),
        ((sp.exp(sp.sqrt(s)) - 1) / sp.sqrt(s), 1),
        ((sp.exp(s) - 1) / s**2, None),
        (sp.log(1 + s) / s**3, None),
    ],
)
def test_limits_at_zero(expr, wanted):
    if wanted is None:
        with pytest.raises(GIVES_UP):
            limit(expr, s, sp.Integer(0), assume(*GIVEN))
    else:
        assert limit(expr, s, sp.Integer(0), assume(*GIVEN)) == wanted


@pytest.mark.parametrize(
    ("expr", "wanted"), [(sp.erf(t), 1), (2 - 3 * sp.erf(1 - t**2), 5), (sp.erf(t) ** 2 + 1 / t, 1), (sp.erf(1 / t), 0)]
)
def test_error_functions_go_to_their_ends(expr, wanted):
    assert limit(expr, t, sp.oo, assume(*GIVEN)) == wanted


@pytest.mark.parametrize("expr", [1 / s, sp.exp(-1 / s)])
def test_a_limit_at_a_singular_point_is_left_alone(expr):
    with pytest.raises(GIVES_UP):
        limit(expr, s, sp.Integer(0), assume(*GIVEN))


# The references notice what is wrong.
@pytest.mark.parametrize(
    ("said", "expr"),
    [
        (1, sp.exp(-t)),
        (0, sp.exp(t) / (sp.exp(t) + n - 1)),
        (sp.oo, sp.exp(-t)),
        (sp.oo, -sp.exp(t)),
        (-sp.oo, sp.log(t)),
        (0, sp.log(t)),
        (0, sp.log(1 + sp.exp(s * t)) / t),
        (s + sp.Rational(1, 5000), sp.log(1 + sp.exp(s * t)) / t),
        (sp.oo, t ** (1 / t)),
        (sp.oo, 1 - 1 / t),
        (0, sp.exp((s - sp.Rational(1, 2)) * t)),  # right for half of the parameters
        (sp.Rational(1, 2), sp.exp(t) / (2 * sp.exp(t) + sp.exp(sp.Rational(1001, 1000) * t))),
    ],
    ids=str,
)
def test_a_wrong_limit_is_noticed(said, expr):
    assert off_limit(sp.sympify(said), expr, t, sp.oo, GIVEN, random.Random(1), 20) is not None


def test_slow_limits_are_not_called_wrong():
    for expr, to in ((1 / sp.log(t), 0), (sp.log(sp.log(t + 3)), sp.oo), (t ** (1 / t), 1), (sp.exp(s * t), sp.oo)):
        assert off_limit(sp.sympify(to), expr, t, sp.oo, GIVEN, random.Random(1), 20) is None


# Limits that were false once.
LOG = "x is not seen inside a logarithm once e^x is a generator: the logarithm counts as constant"
POWER = "an exponent that moves counts as constant: x^f(x) is compared as a power of x"
EQUAL = "two exponents that are equal but written differently have equal growth, and only the first term is kept"
STRAY = "the generator e^(...) inside a logarithm is not put back"
SMALL = number("s", "(0, 1/1000)")
NEGATIVE = number("s", "(-oo, 0)")
BIG = number("beta", "(0, oo)")
ROOT = sp.sqrt(3 + 2 * sp.sqrt(2))  # = 1 + sqrt(2)
FALSE = [
    (sp.log(1 + sp.exp(SMALL.symbol * t)) / t, t, sp.oo, [T, SMALL], LOG),
    (sp.log(1 + sp.exp(t)) / t, t, sp.oo, [T], LOG),
    (sp.log(1 + sp.exp(t)), t, sp.oo, [T], LOG),
    (sp.log(2 + sp.exp(t)) - t, t, sp.oo, [T], LOG),
    (sp.log(1 + sp.exp(-t)) * t, t, sp.oo, [T], LOG),
    (sp.sqrt(sp.log(1 + sp.exp(t))), t, sp.oo, [T], LOG),
    (1 / sp.log(1 + sp.exp(t)), t, sp.oo, [T], LOG),
    (sp.exp(6 * t) / t**t, t, sp.oo, [T], POWER),
    (sp.exp(6 * t) * sp.exp(-t * sp.log(t)), t, sp.oo, [T], POWER),
    (t ** (1 / t), t, sp.oo, [T], POWER),
    (t ** (1 + 1 / t) / t, t, sp.oo, [T], POWER),
    (t ** sp.exp(-t), t, sp.oo, [T], POWER),
    (sp.exp(sp.log(t) / t), t, sp.oo, [T], POWER),
    (n ** (1 / n), n, sp.oo, [N], POWER),
    (sp.exp(ROOT * t) - sp.exp((1 + sp.sqrt(2)) * t), t, sp.oo, [T], EQUAL),
    (t**ROOT - t ** (1 + sp.sqrt(2)), t, sp.oo, [T], EQUAL),
    (sp.exp(t * sp.Abs(NEGATIVE.symbol)) - sp.exp(-t * NEGATIVE.symbol), t, sp.oo, [T, NEGATIVE], EQUAL),
    (sp.log(1 + sp.exp(s)), s, sp.Integer(0), [S], STRAY),
    (sp.log(1 + sp.exp(BIG.symbol)) * t / (t + 1), t, sp.oo, [T, BIG], STRAY),
]


@pytest.mark.parametrize(
    ("expr", "x", "to", "here"),
    [pytest.param(*case[:4], id=str(case[0])) for case in FALSE],
)
def test_a_limit_that_was_wrong(expr, x, to, here):
    """Giving up is right, too."""
    try:
        found = limit(expr, x, to, assume(*here))
    except GIVES_UP:
        return
    assert found.free_symbols <= {one.symbol for one in here}, found
    assert off_limit(found, expr, x, to, here, random.Random(1)) is None


@pytest.mark.parametrize(
    ("given_text", "then"),
    [
        (g, c)
        for g, c, _ in [
            ("t > 0, 0 < s < 0.001", "log(1 + exp(s*t))/t -> 0 as t -> oo", LOG),
            ("t > 0", "exp(6*t)/t^t -> oo as t -> oo", POWER),
            ("t > 0", "t^(1/t) -> oo as t -> oo", POWER),
            ("t > 0", "exp(t*sqrt(3 + 2*sqrt(2))) - exp(t*(1 + sqrt(2))) -> oo as t -> oo", EQUAL),
            ("t > 0, s < 0", "exp(t*sqrt(s^2)) - exp(-t*s) -> oo as t -> oo", EQUAL),
            ("t > 0, beta > 0", "log(1 + exp(beta))*t/((t + 1)*beta) -> 0 as t -> oo, beta -> oo", STRAY),
        ]
    ],
)
def test_a_claim_that_was_proved_though_it_is_false(given_text, then):
    assert argued(given_text, "", then) != "proved"


@pytest.mark.parametrize(
    ("given_text", "then"),
    [
        (g, c)
        for g, c, _ in [
            ("0 < s < 1", "log(1 + exp(s)) -> log(2) as s -> 0", STRAY),
            ("t > 0, t -> oo", "-t = -t", "-oo is not seen by has(oo), and -oo - (-oo) counts as a difference"),
        ]
    ],
)
def test_a_claim_that_was_refuted_though_it_is_true(given_text, then):
    assert argued(given_text, "", then) != "refuted"


W = sp.Symbol("w", positive=True)  # an unknown in (0, 1] that may move with t


@pytest.mark.parametrize(
    "expr", [W * sp.exp(t), sp.exp(-t) / W, 1 / (1 + W * sp.exp(t)), (W + sp.exp(-t)) / (W + sp.exp(-2 * t))]
)
def test_a_bounded_unknown_that_moves_does_not_decide_a_limit(expr):
    """w = e^(-t) and w = 1 give different limits."""
    with pytest.raises(GIVES_UP):
        limit(expr, t, sp.oo, bounded(assume(T), W), frozenset({W}))


def test_a_bounded_unknown_that_moves_does_no_harm_where_it_falls_behind():
    for expr, wanted in ((sp.exp(-t) * W, 0), (sp.exp(t) / (sp.exp(t) + W), 1), (W * t / (t**2 + W), 0)):
        assert limit(expr, t, sp.oo, bounded(assume(T), W), frozenset({W})) == wanted
        for moved in (sp.Integer(1), sp.exp(-t), sp.exp(-(t**2))):
            assert off_limit(sp.sympify(wanted), expr.subs(W, moved), t, sp.oo, [T], random.Random(1)) is None


def test_the_logarithm_of_a_bounded_unknown_is_not_bounded():
    """w = e^(-e^(2t)) makes log(w) grow."""
    with pytest.raises(GIVES_UP):
        limit(sp.exp(-t) * sp.log(W), t, sp.oo, bounded(assume(T), W), frozenset({W}))


# Single steps.
def test_the_root_that_makes_all_powers_whole():
    power = sp.Rational
    for expr, root in [
        (t**2 + 1, 1),
        (sp.sqrt(t), 2),
        (t ** power(2, 3) + sp.sqrt(t), 6),
        (t ** power(1, 12), 12),
        (t ** power(1, 13), 1),  # beyond the limit
        (sp.sqrt(t + 1), 1),
        (sp.exp(t) * t ** power(-3, 4), 4),
        (t**s, 1),
        (sp.exp(2 * t + s * sp.log(t) / 3), 1),
    ]:
        assert _root(expr, t) == root, expr
    for root in (2, 3):
        found, y = _in_roots(sp.log(t) + t ** power(1, root), t, root)
        assert y.is_positive and sp.expand(found - root * sp.log(y) - y) == 0


def test_limits_of_roots_up_to_the_twelfth():
    assert limit(t ** sp.Rational(1, 12) / (1 + t ** sp.Rational(1, 12)), t, sp.oo, assume(T)) == 1


def test_quotients_of_functions_with_zeros_of_one_order():
    for order in range(1, MAX_ZERO_ORDER):
        assert _by_taylor(3 * s**order, 2 * s**order + s ** (order + 1), s, sp.Integer(0), assume(S)) == sp.Rational(
            3, 2
        )
        assert _by_taylor(s ** (order + 1), s**order, s, sp.Integer(0), assume(S)) == 0
        with pytest.raises(Unsupported):
            _by_taylor(s**order, s ** (order + 1), s, sp.Integer(0), assume(S))
    assert MAX_ZERO_ORDER == 6
    with pytest.raises(Unsupported):
        _by_taylor(s**6, s**6, s, sp.Integer(0), assume(S))
    assert _by_taylor(n * (s - 1), (n + 1) * (1 - s), s, sp.Integer(1), assume(S, N)) == -n / (n + 1)
    with pytest.raises(NeedSign):
        _by_taylor(s, beta * s, s, sp.Integer(0), assume(S, BETA))
    with pytest.raises(Unsupported):
        _by_taylor(sp.Abs(beta), beta, beta, sp.Integer(0), assume(BETA))
    for top in (sp.sqrt(s), sp.log(s) * s, 1 / s):
        with pytest.raises(Unsupported):
            _by_taylor(top, s, s, sp.Integer(0), assume(S))


def test_values_of_continuous_quotients():
    for expr, to, wanted in [
        (sp.exp(s) / (1 + s), 0, 1),
        ((s + n) / (s + 2), 1, (1 + n) / 3),
        ((s**2 - 1) / (s - 1), 1, 2),
        (sp.sqrt(1 + 3 * s), 1, 2),
    ]:
        assert sp.simplify(_continuous(expr, s, sp.Integer(to), assume(S, N)) - wanted) == 0
    with pytest.raises(NeedSign):
        _continuous(1 / (s + beta), s, sp.Integer(0), assume(S, BETA))
    for expr in (1 / s, sp.exp(1 / s), sp.log(s), 2**s, s**s, sp.sqrt(s - 2)):
        with pytest.raises(Unsupported):
            _continuous(expr, s, sp.Integer(0), assume(S))


def test_error_functions_beside_what_moves_are_left_alone():
    for expr in (t * sp.erf(t), sp.exp(sp.erf(t)), 1 / (1 + sp.erf(t)), sp.erf(t) / t):
        with pytest.raises(GIVES_UP):
            limit(expr, t, sp.oo, assume(*GIVEN))
    assert limit(sp.erf(-t) * n + 3, t, sp.oo, assume(*GIVEN)) == 3 - n
    assert limit(sp.erf(s + 1 / t), t, sp.oo, assume(*GIVEN)) == sp.erf(s)
    assert limit(sp.erf(s) * t / (t + 1), t, sp.oo, assume(*GIVEN)) == sp.erf(s)


def test_what_may_move_is_not_taken_as_constant():
    loose = frozenset({W})
    here = bounded(assume(T), W)
    for expr, to in ((W + 1, sp.oo), (W * t, sp.Integer(0)), (W, sp.Integer(0))):
        with pytest.raises(Unsupported):
            limit(expr, t, to, here, loose)
    assert limit(W - W + 1 / t, t, sp.oo, here, loose) == 0
    assert limit(sp.expand((W + 1) ** 2) - (W + 1) ** 2, t, sp.oo, here, loose) == 0
    assert limit(W + 1, t, sp.oo, here) == W + 1
    assert limit(W / t, t, -sp.oo, here, loose) == 0


def test_signs_of_infinite_limits():
    for expr, wanted in [
        (t / (1 - s), sp.oo),
        (-t / (1 - s), -sp.oo),
        (t**2 / (s - 1), -sp.oo),
        (-(t**2) / (s - 1 - t), sp.oo),
        (t - t**2, -sp.oo),
    ]:
        assert limit(expr, t, sp.oo, assume(*GIVEN)) == wanted
    assert limit(beta * t + s * t**2, t, sp.oo, assume(*GIVEN)) == sp.oo
    with pytest.raises(NeedSign):
        limit(beta * t**2 + s * t, t, sp.oo, assume(*GIVEN))
    assert limit((beta * t + 1) / (2 * t), t, sp.oo, assume(*GIVEN)) == beta / 2
