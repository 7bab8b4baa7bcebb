"""Case distinction: the pieces cover every allowed value once, and the sign is one on each of them."""

import random
import re
from fractions import Fraction

import pytest
import sympy as sp
from build import GIVES_UP, Unsupported, number, pieces, range_in
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import SIGNS, places

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.case_split import (
    MAX_CASES,
    Case,
    _inside,
    _words,
    common_region,
    described,
    described_region,
    half_line,
    region,
)
from qkv.claims.symbolic.errors import NeedSign
from qkv.claims.symbolic.sign_analysis import Assumptions, sign

INTERVALS = [
    "(-oo, oo)",
    "(0, oo)",
    "[0, oo)",
    "(0, 1)",
    "[0, 1]",
    "(0, 1]",
    "[-1, 2)",
    "(-oo, 1]",
    "(-oo, 0)",
    "[-2, 3]",
]
ROOTS = [Fraction(v) for v in ("-1", "0", "1", "2", "1/2", "1/3", "-5/2")]
EVERY = settings(
    max_examples=settings.default.max_examples * 3 // 5,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def strict_sign(expr):
    """A decision that needs the sign of an expression, and gives it."""

    def decide(assumptions):
        how = sign(expr, assumptions)
        if how not in ("+", "-", "0"):
            raise NeedSign(expr)
        return how

    return decide


def rational(value):
    return sp.Rational(value.numerator, value.denominator)


def tried(*numbers):
    """Values that are allowed, with every root that may be cut at and its neighbourhood."""
    rng = random.Random(1)
    close = [r + d for r in ROOTS for d in (Fraction(0), Fraction(1, 10**6), Fraction(-1, 10**6))]
    return [sorted({*places(one, rng), *(v for v in close if one.allows(v))}) for one in numbers]


@EVERY
@given(st.sampled_from(INTERVALS), st.lists(st.sampled_from(ROOTS), min_size=1, max_size=4), st.data())
def test_every_value_lies_in_one_piece_and_has_the_sign_found_there(interval, roots, data):
    x = number("x", interval)
    expr = data.draw(st.sampled_from([1, -3])) * sp.Mul(*((x.symbol - rational(r)) for r in roots))
    expr *= data.draw(st.sampled_from([sp.Integer(1), x.symbol**2 + 1, sp.Rational(1, 2)]))
    cases = pieces((x,), strict_sign(sp.expand(expr)))
    for value in tried(x)[0]:
        inside = [case for case in cases if range_in(case.assumptions, x).allows(value)]
        assert len(inside) == 1, (expr, value, [case.said for case in cases])
        assert SIGNS[inside[0].found](expr.subs(x.symbol, rational(value))), (expr, value)


@settings(EVERY, max_examples=settings.default.max_examples * 3 // 5)
@given(st.sampled_from(INTERVALS), st.sampled_from(INTERVALS), st.sampled_from(ROOTS), st.sampled_from(ROOTS))
def test_every_pair_lies_in_one_piece_when_two_numbers_are_cut(first, second, one, other):
    x, y = number("x", first), number("y", second)
    left, right = x.symbol - rational(one), y.symbol - rational(other)

    def decide(assumptions):
        return strict_sign(left)(assumptions), strict_sign(right)(assumptions)

    cases = pieces((x, y), decide)
    rng = random.Random(2)
    xs, ys = tried(x, y)
    for _ in range(80):
        a, b = rng.choice(xs), rng.choice(ys)
        inside = [c for c in cases if range_in(c.assumptions, x).allows(a) and range_in(c.assumptions, y).allows(b)]
        assert len(inside) == 1
        signs = inside[0].found
        assert SIGNS[signs[0]](a - one) and SIGNS[signs[1]](b - other)


@settings(EVERY, max_examples=settings.default.max_examples * 3 // 5)
@given(st.sampled_from(INTERVALS), st.lists(st.sampled_from(ROOTS), min_size=1, max_size=3, unique=True))
def test_single_points_of_random_numbers_are_left_out_and_nothing_else(interval, roots):
    x = number("x", interval)
    expr = sp.expand(sp.Mul(*((x.symbol - rational(r)) for r in roots)))
    cases = pieces((x,), strict_sign(expr), frozenset({x.symbol}))
    for value in tried(x)[0]:
        inside = [case for case in cases if range_in(case.assumptions, x).allows(value)]
        assert len(inside) == (0 if value in roots else 1)
        assert all(SIGNS[case.found](expr.subs(x.symbol, rational(value))) for case in inside)


def _holds(words, name, value):
    """Whether a value meets a description such as "0 < x < 1 or x > 2 or x = 1/2"."""
    for part in words.split(" or "):
        found = re.fullmatch(rf"(?:(\S+) (<=?) )?{name}(?: ([<>=]+) (\S+))?", part.strip())
        assert found is not None, part
        low, low_op, op, end = found.groups()
        good = True
        if low is not None:
            good = value > Fraction(low) if low_op == "<" else value >= Fraction(low)
        if op is not None:
            edge = Fraction(end)
            good &= {
                "<": value < edge,
                "<=": value <= edge,
                ">": value > edge,
                ">=": value >= edge,
                "=": value == edge,
            }[op]
        if good:
            return True
    return False


OPEN = ["(-oo, oo)", "(0, oo)", "(0, 1)", "(-1, 2)", "(-oo, 0)", "(-3, 3)"]


@EVERY
@given(
    st.sampled_from([*OPEN, *INTERVALS]),
    st.lists(st.sampled_from(ROOTS), min_size=1, max_size=3),
    st.sampled_from("+-0"),
)
def test_a_description_in_words_is_that_of_the_cases(interval, roots, wanted):
    x = number("x", interval)
    expr = sp.expand(sp.Mul(*((x.symbol - rational(r)) for r in roots)))
    cases = pieces((x,), strict_sign(expr))
    chosen = [case for case in cases if case.found == wanted]
    if not chosen or len(cases) == 1:
        return
    words = described(chosen)
    for value in tried(x)[0]:
        assert _holds(words, "x", value) == SIGNS[wanted](expr.subs(x.symbol, rational(value))), (words, value)


def test_a_description_includes_a_closed_end_of_the_range():
    x = number("x", "[0, 2]")
    cases = pieces((x,), strict_sign(x.symbol - 1))
    low = described([case for case in cases if case.found == "-"])  # "0 <= x < 1"
    high = described([case for case in cases if case.found == "+"])  # "1 < x <= 2"
    assert _holds(low, "x", Fraction(0)) and _holds(high, "x", Fraction(2))


@pytest.mark.parametrize(
    "expr",
    [
        "x**2 - 2",  # irrational roots
        "x*y - 1",  # two numbers at once
        "x - y",
        "exp(x) - 2",
        "1/x",  # a change of sign at a pole
        "(x - 1)/(x + 1)",
    ],
)
def test_what_cannot_be_cut_at_rational_roots_is_refused(expr):
    x, y = number("x", "(-3, 3)"), number("y", "(-3, 3)")
    with pytest.raises(GIVES_UP):
        pieces((x, y), strict_sign(sp.sympify(expr, locals={"x": x.symbol, "y": y.symbol})))


def test_too_many_cases_are_refused():
    x = number("x", "(0, 100)")
    with pytest.raises(Unsupported):
        pieces((x,), strict_sign(sp.expand(sp.Mul(*((x.symbol - k) for k in range(1, 14))))))


def test_a_decision_that_needs_no_sign_is_made_once():
    x = number("x", "(0, 1)")
    (case,) = pieces((x,), lambda assumptions: "found")
    assert case.found == "found" and case.said == ()


def test_a_hole_or_an_overlap_between_pieces_is_noticed():
    """The check of the tests above on pieces that are wrong."""
    x = number("x", "[0, 2]")
    cases = pieces((x,), strict_sign(x.symbol - 1))
    covering = [
        sum(range_in(c.assumptions, x).allows(v) for c in kept)
        for kept in (cases[1:], [*cases, cases[0]])
        for v in tried(x)[0]
    ]
    assert 0 in covering and 2 in covering


X = sp.Symbol("x", real=True)


def interval(text):
    return number("x", text).range


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("(0, oo)", "x > 0"),
        ("[0, oo)", "x >= 0"),
        ("(-oo, 1)", "x < 1"),
        ("(-oo, 1]", "x <= 1"),
        ("(0, 1)", "0 < x < 1"),
        ("[0, 1)", "0 <= x < 1"),
        ("(0, 1]", "0 < x <= 1"),
        ("[2, 2]", "x = 2"),
        ("(-oo, oo)", "any x"),
    ],
)
def test_intervals_in_words(where, text):
    assert _words(X, interval(where)) == text
    assert described_region((X, [Range(Fraction(5), Fraction(5)), interval(where)])) in (
        f"{text} or x = 5",
        f"x = 5 or {text}",
    )


def test_single_points_come_last():
    assert described_region((X, [Range(Fraction(5), Fraction(5)), interval("(0, 1)")])) == "0 < x < 1 or x = 5"


@pytest.mark.parametrize("where", INTERVALS)
def test_roots_inside_a_range(where):
    one = number("x", where)
    assert all(_inside(one.range, root) == one.allows(root) for root in ROOTS)


def case(where=None, at=None, null=False, cut=True):
    here = Assumptions() if where is None else Assumptions({X: interval(where)})
    here = here if at is None else here.fix(X, sp.Rational(at))
    symbols = frozenset({X}) if cut else frozenset()
    return Case(here, None, ("said",), symbols, frozenset({X}) if null else frozenset())


@pytest.mark.parametrize(
    ("cases", "wanted"),
    [
        ([case("(0, 1)"), case(at=1), case("(1, oo)")], ["(0, oo)"]),
        ([case("(1, oo)"), case("(0, 1)"), case(at=1)], ["(0, oo)"]),
        ([case("(0, 1)"), case("(1, oo)")], ["(0, 1)", "(1, oo)"]),
        ([case("(0, 1)", null=True), case("(1, oo)", null=True)], ["(0, oo)"]),
        ([case("(0, 1)", null=True), case("(1, oo)")], ["(0, 1)", "(1, oo)"]),
        ([case("(-oo, 0)"), case(at=0)], ["(-oo, 0]"]),
        ([case(at=0), case("(0, 1)")], ["[0, 1)"]),
        ([case("(0, 1)"), case(at=2)], ["(0, 1)", "[2, 2]"]),
        ([case("(-oo, 0)"), case("(1, 2)")], ["(-oo, 0)", "(1, 2)"]),
        ([case("(0, 1]"), case("(1, 2)")], ["(0, 2)"]),
        ([case("(-1, 0)"), case("(-oo, -1)"), case(at=-1)], ["(-oo, 0)"]),
    ],
)
def test_touching_intervals_are_joined(cases, wanted):
    assert region(cases) == (X, [interval(where) for where in wanted])


def test_cases_of_no_number_or_of_two_have_no_region():
    other = Case(Assumptions(), None, ("other",), frozenset({sp.Symbol("y")}))
    assert region([case("(0, 1)", cut=False)]) is None and region([case("(0, 1)"), other]) is None
    assert described([case("(0, 1)"), other]) == "said or other" and half_line([case("(0, 1)"), other]) is None


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        (["(0, oo)"], (">", 0)),
        (["[0, oo)"], (">=", 0)),
        (["(-oo, 3)"], ("<", 3)),
        (["(-oo, 3]"], ("<=", 3)),
        (["(0, 1)"], None),
        (["(-oo, oo)"], None),
        (["(-oo, 0)", "(1, oo)"], None),
    ],
)
def test_a_half_line_is_one_comparison(where, wanted):
    assert half_line([case(one) for one in where]) == (None if wanted is None else (X, *wanted))


def test_regions_of_several_conditions_overlap():
    def of(*where):
        return (X, [interval(one) for one in where])

    for regions, wanted in [
        ([of("(0, oo)"), of("(-oo, 1]")], ["(0, 1]"]),
        ([of("(0, 2)", "(3, 4)"), of("[1, oo)")], ["[1, 2)", "(3, 4)"]),
        ([of("(0, 1)"), of("(1, 2)")], []),
        ([of("(0, 1]"), of("[1, 2)")], ["[1, 1]"]),
        ([of("(-oo, oo)")], ["(-oo, oo)"]),
    ]:
        assert common_region(regions) == (X, [interval(one) for one in wanted])
    assert common_region([of("(0, 1)"), (sp.Symbol("y"), [interval("(0, 1)")])]) is None
    assert common_region([]) is None


def test_at_most_as_many_cases_as_allowed():
    x = number("x", "(0, 100)")

    def cut_at(roots):
        def decide(assumptions):
            if assumptions.ranges[x.symbol] == x.range:
                raise NeedSign(sp.Mul(*((x.symbol - k) for k in range(1, roots + 1))))
            return "found"

        return pieces((x,), decide, frozenset({x.symbol}))

    assert len(cut_at(MAX_CASES - 1)) == MAX_CASES == 24
    with pytest.raises(Unsupported, match="too many"):
        cut_at(MAX_CASES)


def test_ends_of_a_range_that_are_roots_are_cut_off():
    x = number("x", "[0, 2]")
    cases = pieces((x,), strict_sign(x.symbol * (x.symbol - 2)))
    assert sorted((c.found, c.said) for c in cases) == [("-", ("0 < x < 2",)), ("0", ("x = 0",)), ("0", ("x = 2",))]
    assert all(c.symbols == {x.symbol} for c in cases)
