"""Growths: as expressions, in quotients, in order; terms of quotients; unknowns that may move."""

from fractions import Fraction

import pytest
import sympy as sp
from build import assume, bounded, number

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.errors import NeedSign, Unsupported
from qkv.claims.symbolic.growth_terms import (
    CONSTANT,
    Growth,
    RemainderLeads,
    Terms,
    _degree,
    _known,
    _reduced,
    _require_falling,
    compare,
    largest,
    terms_of,
)
from qkv.claims.symbolic.sign_analysis import Ratio
from qkv.claims.symbolic.unknowns import Gap, Remainder, RestSum, Theta

x = sp.Symbol("x", positive=True)
GROWTHS = {
    "e^(2x) x^3 log x": Growth(((1, sp.Integer(2)),), sp.Integer(3), sp.Integer(1)),
    "e^(x^2 - x) / x": Growth(((2, sp.Integer(1)), (1, sp.Integer(-1))), sp.Integer(-1), sp.Integer(0)),
    "1 / log x": Growth((), sp.Integer(0), sp.Integer(-1)),
}
WRITTEN = {
    "e^(2x) x^3 log x": sp.exp(2 * x) * x**3 * sp.log(x),
    "e^(x^2 - x) / x": sp.exp(x**2 - x) / x,
    "1 / log x": 1 / sp.log(x),
}


@pytest.mark.parametrize("name", GROWTHS)
def test_a_growth_is_written_with_its_powers_and_logarithms(name):
    assert sp.simplify(GROWTHS[name].expression(x) / WRITTEN[name]) == 1


@pytest.mark.parametrize("top", GROWTHS)
@pytest.mark.parametrize("bottom", GROWTHS)
def test_a_quotient_is_the_quotient_of_the_expressions(top, bottom):
    found = GROWTHS[top].over(GROWTHS[bottom]).expression(x)
    assert sp.simplify(found * WRITTEN[bottom] / WRITTEN[top]) == 1


X, S, B = number("x", "(0, oo)"), number("s", "(0, 1)"), number("b")
share, free = S.symbol, B.symbol
HERE = assume(X, S, B)


def growth(exponent=0, power=0, logs=0):
    """e^exponent x^power (log x)^logs, the exponent a polynomial without a constant."""
    poly = sp.Poly(exponent, x)
    parts = tuple((monom[0], c) for monom, c in poly.terms() if c != 0)
    return Growth(parts, sp.sympify(power), sp.sympify(logs))


LADDER = [
    growth(-(x**2), 5),
    growth(-x, 9),
    growth(-share * x, 3, 1),
    growth(0, -2),
    growth(0, -2, 3),
    growth(0, -share),
    growth(0, 0, -1),
    CONSTANT,
    growth(0, 0, sp.Rational(1, 2)),
    growth(0, 0, 2),
    growth(0, share),
    growth(0, 1, -4),
    growth(0, 1),
    growth(share * x, -7),
    growth(x),
    growth(x, 0, 1),
    growth(x, 1, -1),
    growth(x**2 - 3 * x),
    growth(x**2),
]


def test_growths_are_ordered_by_exponent_then_power_then_logarithm():
    for j, one in enumerate(LADDER):
        for k, other in enumerate(LADDER):
            assert compare(one, other, HERE) == ("0" if j == k else "+" if j > k else "-"), (one, other)
            assert largest({one: 1, other: 1}, HERE) == LADDER[max(j, k)]


def test_growths_that_a_sign_would_order_ask_for_it():
    for one, difference in ((growth(free * x), free), (growth(0, free - 1), free - 1), (growth(0, share - free), None)):
        with pytest.raises(NeedSign) as missing:
            compare(one, CONSTANT, HERE)
        assert difference is None or missing.value.expr == difference
        with pytest.raises(NeedSign):
            largest({one: 1, CONSTANT: 1}, HERE)
    beyond = HERE.narrow(free, Range(Fraction(1), None, True))
    rates = (free, sp.Integer(1), free + 2, sp.Integer(3))
    assert largest({growth(rate * x): 1 for rate in rates}, beyond) == growth((free + 2) * x)


def test_the_difference_of_two_rates_must_have_a_strict_sign():
    assert _known(sp.Integer(0), HERE) == "0" and _known(share, HERE) == "+" and _known(share - 1, HERE) == "-"
    weak = number("w", "[0, oo)")
    for expr in (weak.symbol, -weak.symbol, free):
        with pytest.raises(NeedSign):
            _known(expr, assume(weak, B))


def terms(part, loose=frozenset(), here=HERE):
    return Terms(part, {CONSTANT: sp.Integer(1)}, x, here, loose)


def test_terms_of_equal_growth_are_joined_and_those_that_cancel_are_passed_over():
    root = sp.sqrt(3 + 2 * sp.sqrt(2))  # = 1 + sqrt(2), written differently
    one, same, lower = growth(root * x), growth((1 + sp.sqrt(2)) * x), growth(0, 1)
    assert terms({}).largest({}) is None
    assert terms({}).largest({one: sp.Integer(2), same: sp.Integer(3), lower: sp.Integer(7)})[1] == 5
    assert terms({}).largest({one: sp.Integer(2), same: sp.Integer(-2), lower: share}) == (lower, share)
    assert terms({}).largest({one: share, same: -share}) is None
    assert terms({}).leading({lower: -share, CONSTANT: free}) == (lower, -share)
    with pytest.raises(Unsupported):
        terms({}).leading({one: share, same: -share})
    with pytest.raises(NeedSign):
        terms({}).leading({lower: free, CONSTANT: share})


def test_a_coefficient_that_decides_must_not_move():
    moves = Theta("")
    assert terms({}).certain(2 * moves) == 2 * moves
    assert terms({}, frozenset({moves})).certain(3 * share) == 3 * share
    with pytest.raises(Unsupported, match="may move") as why:
        terms({}, frozenset({moves})).certain(2 * moves)
    assert not isinstance(why.value, RemainderLeads)
    with pytest.raises(RemainderLeads):
        terms({}).certain(1 + Remainder(1))


@pytest.mark.parametrize(
    ("expr", "top", "bottom"),
    [
        (
            (3 * sp.exp(2 * x) - share * x) / (x * sp.log(x) - 5),
            {growth(2 * x): 3, growth(0, 1): -share},
            {growth(0, 1, 1): 1, CONSTANT: -5},
        ),
        (
            (sp.exp(x) + 2 * sp.exp(x) * x + 7) / (sp.exp(share * x) + sp.exp(x)),
            {growth(x): 1, growth(x, 1): 2, CONSTANT: 7},
            {growth(share * x): 1, growth(x): 1},
        ),
        ((sp.exp(x) + sp.exp(3 * x)) / sp.exp(2 * x), {CONSTANT: 1, growth(2 * x): 1}, {growth(x): 1}),
        (x**3 - x**3 + sp.exp(3) * x, {growth(0, 1): sp.exp(3)}, {CONSTANT: 1}),
        (sp.exp(2 * share + x), {growth(x): sp.exp(2 * share)}, {CONSTANT: 1}),
        (x ** sp.Rational(1, 2) * sp.log(x) ** 2, {growth(0, sp.Rational(1, 2), 2): 1}, {CONSTANT: 1}),
        (sp.exp(share * sp.log(x) + x) + 1, {growth(x, share): 1, CONSTANT: 1}, {CONSTANT: 1}),
        (sp.exp(x**8 + 2 * x), {growth(x**8 + 2 * x): 1}, {CONSTANT: 1}),
        (sp.Integer(0), {}, {CONSTANT: 1}),
    ],
    ids=str,
)
def test_top_and_bottom_are_sorted_by_growth(expr, top, bottom):
    """Both, put together again, are the expression; each growth stands once."""
    found = terms_of(expr, x, HERE, frozenset())
    whole = [sum((c * g.expression(x) for g, c in part.items()), sp.Integer(0)) for part in (found.top, found.bottom)]
    assert sp.simplify(whole[0] - expr * whole[1]) == 0
    assert (found.top, found.bottom) == (top, bottom)


@pytest.mark.parametrize(
    "expr",
    [
        sp.exp(x**9),
        sp.exp(1 / x),
        sp.exp(sp.sqrt(x)),
        sp.exp(x * sp.log(x)),
        sp.exp(sp.log(x) ** 2),
        sp.log(x + 1),
        x**x,
        sp.sin(x),
        sp.log(x) ** share,
    ],
    ids=str,
)
def test_what_has_no_growth_of_this_form_is_refused(expr):
    with pytest.raises(Unsupported):
        terms_of(expr, x, HERE, frozenset())


def test_generators_that_all_terms_share_are_divided_out():
    g, h = sp.symbols("g h", positive=True)
    found = _reduced(Ratio(g**3 * h + 2 * g**2, g**5 - g**2 * h, {g: x, h: 2 * x}, {}))
    assert (found.top, found.bottom) == (g * h + 2, g**3 - h)
    kept = _reduced(Ratio(g * h + 1, g**2, {g: x}, {}))
    assert (kept.top, kept.bottom) == (g * h + 1, g**2)
    assert _reduced(Ratio(g, g**2 * h, {g: x, h: x}, {})).bottom == g * h
    assert [_degree(term, g) for term in (g**3 * h, h, sp.sqrt(g) * h, g)] == [3, 0, 0, 1]


THETA, GAP, OTHER, REST = Theta(""), Gap(sp.Symbol("k", real=True), False), Gap(free, True), RestSum("", True)
LOOSE = frozenset({THETA, GAP, OTHER, REST})


@pytest.mark.parametrize(
    "expr",
    [
        THETA * sp.exp(-x),
        THETA**2 * x + 1,
        sp.sqrt(THETA) * x + 1,
        sp.exp(-GAP) * x + 1,
        sp.exp(-2 * GAP - OTHER) * x + 1,
        sp.exp(-share * GAP + x) + 1,
        Remainder(1) * x + 1,
        Remainder(1) ** 2 * sp.exp(-GAP) * THETA + 1,
        (1 + THETA) / (1 + sp.exp(-GAP) * x),
    ],
    ids=str,
)
def test_bounded_factors_may_move(expr):
    found = terms_of(expr, x, HERE, LOOSE)
    whole = [sum((c * g.expression(x) for g, c in part.items()), sp.Integer(0)) for part in (found.top, found.bottom)]
    assert sp.simplify(whole[0] - expr * whole[1]) == 0


@pytest.mark.parametrize(
    "expr",
    [
        GAP * x + 1,
        REST * x + 1,
        x + THETA**share,
        sp.exp(GAP) + x,
        sp.exp(GAP - OTHER) + x,
        sp.exp(-free * GAP) + x,
        sp.exp(GAP**2) + x,
        sp.exp(GAP**2 - GAP) + x,
        sp.exp(-GAP * OTHER) + x,
        sp.exp(THETA) + x,
        sp.exp(Remainder(1)) + x,
        sp.log(THETA) + x,
        sp.exp(-GAP * x),
        x**THETA,
    ],
    ids=str,
)
def test_factors_that_may_move_without_bound_are_refused(expr):
    with pytest.raises(Unsupported):
        terms_of(expr, x, HERE, LOOSE)


def test_a_number_that_may_move_is_bounded_only_if_it_lies_in_the_unit_interval():
    w = sp.Symbol("w", positive=True)
    assert terms_of(w * x, x, bounded(HERE, w), frozenset({w})).top == {growth(0, 1): w}
    with pytest.raises(Unsupported):
        terms_of(w * x, x, HERE, frozenset({w}))
    assert terms_of(w * x, x, HERE, frozenset()).top == {growth(0, 1): w}


def test_an_exponent_falls_with_each_of_its_gaps():
    for exponent in (-GAP, -2 * GAP - share * OTHER, -GAP + free, sp.Integer(0)):
        _require_falling(exponent, {GAP, OTHER}, HERE)
    for exponent in (GAP, GAP**2, -GAP * OTHER, -GAP + GAP**3, free * GAP, -GAP + OTHER):
        with pytest.raises(Unsupported):
            _require_falling(sp.expand(exponent), {GAP, OTHER}, HERE)
    with pytest.raises(Unsupported, match="score"):
        _require_falling(-THETA, {THETA}, HERE)
