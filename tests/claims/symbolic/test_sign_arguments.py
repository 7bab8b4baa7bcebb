"""Signs by longer arguments: known inequalities, near misses, and a comparison with dense sampling."""

from fractions import Fraction
from itertools import product

import mpmath
import pytest
import sympy as sp
from reference import SIGNS

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic import sign_arguments
from qkv.claims.symbolic.factors import Factor
from qkv.claims.symbolic.sign_analysis import Assumptions, Ratio
from qkv.claims.symbolic.sign_arguments import _joined, _pieces, _range, _Search, _within_bounds, argued_sign
from qkv.claims.symbolic.unknowns import InnerProduct, Statistic

x, y = sp.symbols("x y", real=True)
t = sp.Symbol("t", positive=True)
ANY, POSITIVE = Range(), Range(Fraction(0), None, True)
UNIT, CLOSED = Range(Fraction(0), Fraction(1), True, True), Range(Fraction(0), Fraction(1))


def signed(expr, **ranges):
    known = {"x": x, "y": y, "t": t}
    return argued_sign(sp.sympify(expr), Assumptions({known[name]: where for name, where in ranges.items()}))


@pytest.mark.parametrize(
    ("expr", "ranges", "wanted"),
    [
        (sp.exp(t) - 1 - t, {"t": POSITIVE}, "+"),
        (sp.exp(t) - 1 - t - t**2 / 2, {"t": POSITIVE}, "+"),
        (t - 1 - sp.log(t), {"t": POSITIVE}, ">="),
        (sp.log(1 + t) - t / (1 + t), {"t": POSITIVE}, "+"),
        (sp.exp(x) - sp.E * x, {"x": ANY}, ">="),
        (sp.exp(x) - 1 - x, {"x": ANY}, ">="),
        (x * (sp.exp(x) - 1), {"x": ANY}, ">="),
        (x**2 + x * y + y**2, {"x": ANY, "y": ANY}, ">="),
        (x**2 + y**2 + 1 - x * y - x - y, {"x": ANY, "y": ANY}, ">="),
        (sp.sqrt(x**2 + y**2) - x, {"x": ANY, "y": ANY}, ">="),
        (sp.sqrt(x**2 + 1) - x, {"x": ANY}, "+"),
        (sp.sqrt(t) - t, {"t": UNIT}, "+"),
        (sp.log(t), {"t": UNIT}, "-"),
        (1 + sp.erf(x), {"x": ANY}, "+"),
        (sp.erf(t), {"t": POSITIVE}, "+"),
        (sp.exp(x) - sp.exp(x**2), {"x": UNIT}, "+"),
        (sp.exp(x) - sp.exp(x**2), {"x": CLOSED}, ">="),
        (2 * sp.exp(-2) - t * sp.exp(-t), {"t": Range(Fraction(2), None)}, ">="),
    ],
)
def test_known_inequalities(expr, ranges, wanted):
    assert signed(expr, **ranges) == wanted
    assert signed(-expr, **ranges) == {"+": "-", "-": "+", ">=": "<="}[wanted]


@pytest.mark.parametrize(
    ("expr", "ranges"),
    [
        (sp.exp(t) - 1 - sp.Rational(101, 100) * t, {"t": POSITIVE}),
        (sp.exp(t) - 1 - t - sp.Rational(51, 100) * t**2, {"t": POSITIVE}),
        (t - sp.Rational(99, 100) - sp.log(t) - sp.Rational(2, 100), {"t": POSITIVE}),
        (sp.exp(x) - sp.Rational(272, 100) * x, {"x": ANY}),
        (x**2 + sp.Rational(201, 100) * x * y + y**2, {"x": ANY, "y": ANY}),
        (sp.sqrt(x**2 + y**2) - x - y, {"x": ANY, "y": ANY}),
        (sp.erf(x), {"x": ANY}),
        (sp.sqrt(t) - t, {"t": POSITIVE}),
        (sp.log(t), {"t": POSITIVE}),
        (sp.exp(x) - sp.exp(x**2), {"x": ANY}),
        (1 / x - 1, {"x": ANY}),
        (sp.log(x) + 1, {"x": ANY}),
    ],
)
def test_no_sign_is_found_where_there_is_none(expr, ranges):
    assert signed(expr, **ranges) is None


def test_products_of_vectors_are_bounded_by_their_norms():
    u, w = Factor("u", "vector", "d"), Factor("w", "vector", "d")
    uu, uw, ww = InnerProduct(u, u), InnerProduct(u, w), InnerProduct(w, w)
    none = Assumptions()
    assert argued_sign(uu * ww - uw**2, none) == ">="
    assert argued_sign(sp.sqrt(uu) * sp.sqrt(ww) - uw, none) == ">="
    assert argued_sign(sp.sqrt(uu) + sp.sqrt(ww) - sp.sqrt(uu + 2 * uw + ww), none) == ">="
    assert argued_sign(uu * ww - 2 * uw**2, none) is None
    assert argued_sign(sp.sqrt(uu + 2 * uw + ww) - sp.sqrt(uu), none) is None


def _random_expression(rng):
    """A sum of a few products of simple functions of x and t with small coefficients."""
    parts = [x, t, x**2, t**2, sp.exp(x), sp.exp(-t), sp.log(1 + t), sp.sqrt(1 + x**2), sp.erf(x), sp.Integer(1), x * t]
    total = sp.Integer(0)
    for _ in range(rng.randint(2, 4)):
        total += (
            sp.Rational(rng.randint(-4, 4), rng.choice([1, 2])) * rng.choice(parts) * rng.choice([1, 1, *parts[:6]])
        )
    return total


@pytest.mark.parametrize(("count", "least"), [(8, 1), pytest.param(60, 8, marks=pytest.mark.slow)])
def test_signs_agree_with_dense_sampling(count, least):
    import random

    rng = random.Random(5)
    found = 0
    ranges = {"x": Range(Fraction(-1), Fraction(2)), "t": POSITIVE}
    xs = [-1, -0.999, -0.7, -0.4, -0.1, -1e-6, 0, 1e-6, 0.03, 0.2, 0.5, 0.8, 1, 1.3, 1.7, 2]
    ts = [1e-9, 1e-4, 0.01, 0.1, 0.3, 0.7, 1, 1.5, 2.3, 4, 7, 20, 100]
    for _ in range(count):
        expr = _random_expression(rng)
        sign = signed(expr, **ranges) if expr != 0 else None
        if sign is None:
            continue
        found += 1
        value = sp.lambdify((x, t), expr, modules="mpmath")
        for a in xs:
            for b in ts:
                got = value(mpmath.mpf(a), mpmath.mpf(b))
                held = {"+": got > 0, "-": got < 0, ">=": got >= -1e-12, "<=": got <= 1e-12, "0": abs(got) < 1e-12}
                assert held[sign], (expr, sign, a, b, got)
    assert found >= least


# Single arguments, each with what it may not claim.
MEAN = Statistic("E", (x,))
HERE = Assumptions({x: ANY, y: ANY, t: POSITIVE})
NONE = Ratio(sp.Integer(0), sp.Integer(1), {}, {})


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (2 * sp.log(1 + t) - sp.log(1 + 2 * t), "+"),  # (1 + t)^2 = 1 + 2t + t^2
        (sp.log(1 + 2 * t) - 2 * sp.log(1 + t), "-"),
        (6 * sp.log(1 + t), "+"),
        (-6 * sp.log(1 + t), "-"),
        (7 * sp.log(1 + t), None),
        (-7 * sp.log(1 + t), None),
        (sp.log(1 + t) / 2, None),
        (sp.log(1 + t) + t, "+"),
        (sp.log(1 + x**2), ">="),
        (sp.log(1 + t + t**2) - 2 * sp.log(1 + t) + sp.log(1 + x**2 / 4) - sp.log(1 + x**2), "-"),
        (sp.log(1 + t) ** 2, None),
        (sp.log(1 + t) * sp.log(2 + t), None),
        (t * sp.log(1 + t), None),
        (sp.log(x), None),
        (sp.log(x) - sp.log(y), None),
        (sp.log(t) - 1, None),
        (t + 1, None),
    ],
    ids=str,
)
def test_logarithms_have_the_sign_of_their_product_minus_one(expr, wanted):
    assert _Search()._by_logarithms(expr, HERE, 3) == wanted


def test_a_sum_with_a_root_has_the_sign_of_its_value():
    for a, b, base in product(range(-3, 4), range(-3, 4), range(5)):
        value = a + b * mpmath.sqrt(base)
        found = _Search()._of_sum(sp.Integer(a), sp.Integer(b), sp.Integer(base), HERE, 3)
        assert SIGNS[found](value if abs(value) > 1e-12 else 0), (a, b, base)
        if b != 0 and a * b < 0:
            assert found == ("0" if abs(value) < 1e-12 else "+" if value > 0 else "-")
        if a * b > 0:
            assert found == ("+" if a > 0 else "-")
    assert _Search()._of_sum(sp.Integer(1), sp.Integer(1), sp.Integer(-1), HERE, 3) is None
    assert _Search()._of_sum(sp.Integer(1), sp.Integer(1), x, HERE, 3) is None
    assert _Search()._of_sum(sp.Integer(1), x, sp.Integer(2), HERE, 3) is None


@pytest.mark.parametrize(
    ("a", "b", "base", "wanted"),
    [
        (x, 1, x**2 + 1, "+"),
        (x, -1, x**2 + 1, "-"),
        (x, 1, x**2, ">="),
        (x, -1, x**2, "<="),
        (x, sp.Rational(1, 2), x**2 + 1, None),
        (x, 2, x**2, ">="),
        (x, 0, x**2 + 1, None),
        (t, 0, x**2 + 1, "+"),
        (x**2, 1, x**2, ">="),
        (-t, 1, t**2 + 1, "+"),
        (-t, 1, t**2, "0"),
        (-2 * t, 1, t**2, "-"),
        (t, -1, t**2 + 1, "-"),
    ],
    ids=str,
)
def test_a_sum_with_a_root_of_an_expression(a, b, base, wanted):
    assert _Search()._of_sum(sp.sympify(a), sp.sympify(b), base, HERE, 3) == wanted


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (sp.sqrt(x**2 + 1) - x, "+"),
        (3 * sp.sqrt(x**2 + 1) ** 3 - x * sp.sqrt(x**2 + 1) ** 2, "+"),
        (x - sp.sqrt(x**2 + 1), "-"),
        (sp.sqrt(1 + t) * (2 + t) - t * sp.sqrt(1 + t), ">="),  # weak, as a is 0
        ((1 + t) ** sp.Rational(3, 2) - sp.sqrt(1 + t), ">="),  # t sqrt(1 + t)
        ((1 + t) ** sp.Rational(3, 2) - t - 1, "+"),
        ((1 + t) ** sp.Rational(5, 2) - 1 - 2 * t, "+"),  # (1 + t)^5 > (1 + 2t)^2
        (3 * (1 + t) ** 2 - sp.sqrt(1 + t), "+"),
        ((2 + x**2) ** sp.Rational(3, 2) - sp.sqrt(2 + x**2) - x, "+"),  # (1 + x^2) S > x
        (sp.sqrt(1 + t) - t, None),
        (sp.cbrt(1 + t) - 1, None),
        (x + 1, None),
    ],
    ids=str,
)
def test_roots_are_taken_out(expr, wanted):
    assert _Search()._by_roots(expr, HERE, 3) == wanted


def test_a_square_has_one_sign_where_its_discriminant_is_not_positive():
    for a, b, c in product((-1, 2), range(-3, 4), (-1, 0, 1)):
        poly = sp.expand(a * x**2 + b * x + c)
        under = b * b - 4 * a * c
        strict, weak = ("+", ">=") if a > 0 else ("-", "<=")
        wanted = strict if under < 0 else weak if under == 0 else None
        assert _Search()._by_squares(NONE, poly, HERE, 3) == wanted, poly
    assert _Search()._by_squares(NONE, x**3 + 1, HERE, 3) is None
    assert _Search()._by_squares(NONE, y * x**2 + 1, HERE, 3) is None
    assert _Search()._by_squares(NONE, x + 1, HERE, 3) is None


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (sp.exp(2 * t) - sp.exp(t), "+"),
        (sp.exp(t) - sp.exp(2 * t), "-"),
        (2 * sp.exp(t) - sp.exp(-t), "+"),
        (sp.exp(t) - 2 * sp.exp(-t), None),
        (sp.exp(-t) - 2 * sp.exp(t), "-"),
        (sp.exp(x**2) - sp.exp(-(x**2)), ">="),
        (sp.exp(-(x**2)) - sp.exp(x**2), "<="),
        (sp.exp(x) - sp.exp(x + 1), "-"),
        (sp.exp(x) + sp.exp(y), "+"),
        (-sp.exp(x) - 3 * sp.exp(y), "-"),
        (1 - sp.exp(t), "-"),
        (sp.exp(t) - 1, "+"),
        (t * sp.exp(x) - 1, None),
        (sp.exp(t) + sp.exp(x) - 1, None),
        (t - 1, None),
    ],
    ids=str,
)
def test_two_exponentials_are_compared_by_their_exponents(expr, wanted):
    assert _Search()._by_exponents(expr, HERE, 3) == wanted


def on(interval):
    lo, hi = (None if end in ("-oo", "oo") else Fraction(end) for end in interval[1:-1].split(","))
    return Assumptions(
        {x: Range(lo, hi, interval[0] == "(" and lo is not None, interval[-1] == ")" and hi is not None)}
    )


@pytest.mark.parametrize(
    ("expr", "interval", "wanted"),
    [
        (sp.exp(x) - 1 - x, "[0,oo)", ">="),
        (sp.exp(x) - 1 - x, "(0,oo)", "+"),
        (x + 1 - sp.exp(x), "[0,oo)", "<="),
        (x + 1 - sp.exp(x), "(0,oo)", "-"),
        (sp.exp(x) - x, "[0,oo)", "+"),
        (x - sp.exp(x), "[0,oo)", "-"),
        (sp.exp(x) - 1, "(-oo,0)", "-"),
        (sp.exp(x) - 1, "(-oo,0]", "<="),
        (1 - sp.exp(x), "(-oo,0)", "+"),
        (1 - sp.exp(x), "(-oo,0]", ">="),
        (sp.exp(x) - 2, "[0,oo)", None),
        (sp.exp(x) - 2, "[1,oo)", "+"),
        (sp.exp(x) - 3, "[0,1]", "-"),
        (2 - sp.exp(x), "[0,1]", None),
        (3 - sp.exp(x), "[0,1)", "+"),
        (sp.log(1 + x) - x, "(0,oo)", "-"),
        (sp.exp(x) - 1, "(-oo,oo)", None),
        (sp.Abs(x) + 1, "[0,oo)", None),
        (1 / x, "[-1,1]", None),
    ],
    ids=str,
)
def test_a_function_that_rises_or_falls_is_compared_with_its_ends(expr, interval, wanted):
    assert _Search()._by_ends(expr, on(interval), 3) == wanted
    assert _Search()._by_ends(expr, on(interval), 0) is None


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (sp.exp(x) + x**3, True),
        (sp.erf(x) * sp.log(t), True),
        (sp.log(x), False),
        (sp.log(1 + x**2), True),
        (1 / x, False),
        (1 / t, True),
        (1 / (x**2 + 1), True),
        (x**2 + y, True),
        (sp.sqrt(x), False),
        (sp.sqrt(t), True),
        (sp.sqrt(x**2), False),
        (sp.sqrt(x**2 + 1), True),
        (sp.sin(x), False),
    ],
    ids=str,
)
def test_what_is_differentiable(expr, wanted):
    assert _Search()._smooth(expr, HERE, 3) is wanted


@pytest.mark.parametrize(
    ("expr", "end", "wanted"),
    [
        (sp.exp(x) + y, 0, 1 + y),
        (sp.log(1 + x), 0, 0),
        (sp.log(x), 0, None),
        (1 / x, 0, None),
        (1 / x, 2, sp.Rational(1, 2)),
        (x**2, 0, 0),
        (sp.sqrt(x), 0, 0),
        (1 / sp.sqrt(x), 0, None),
        (sp.sqrt(x), -1, None),
        (sp.sqrt(x), 4, 2),
        (1 / (x - 3), 2, -1),
        (sp.sqrt(x + y), 0, None),
    ],
    ids=str,
)
def test_the_value_at_an_end_where_the_function_is_continuous(expr, end, wanted):
    found = _Search()._at(expr, x, Fraction(end), HERE, 3)
    if wanted is None:
        assert found is None
    else:
        assert found[0] == wanted and found[1].ranges == {y: ANY, t: POSITIVE}


@pytest.mark.parametrize(
    ("expr", "interval", "wanted"),
    [
        (x * (sp.exp(x) - 1), "(-oo,oo)", ">="),
        (x * (sp.exp(x) - 1), "[-1,1]", ">="),
        (-x * (sp.exp(x) - 1), "(-oo,oo)", "<="),
        (sp.log(x) * (x - 1), "(0,oo)", ">="),  # split at 1
        (x**3, "(-oo,oo)", None),
        (x * (sp.exp(x) - 1), "(0,oo)", None),  # 0 is no place to split, and 1 does not help
        (x**3, "[0,oo)", None),
    ],
    ids=str,
)
def test_a_range_is_split_at_zero_or_one(expr, interval, wanted):
    found = _Search()._by_cases(expr, on(interval), 3)
    assert found == wanted or (wanted is None and found in ("+", ">="))
    assert _Search()._by_cases(expr, on(interval), 0) is None


def test_where_a_range_is_split(monkeypatch):
    asked = []
    monkeypatch.setattr(sign_arguments, "_pieces", lambda symbol, where, cut, *rest: asked.append((symbol, cut)) or [])
    monkeypatch.setattr(sign_arguments, "_joined", lambda found: None)
    a, b = sp.symbols("a b", real=True)
    for expr, interval, cuts in [
        (sp.exp(x), "(-oo,oo)", [0, 1]),
        (x**3, "(-oo,oo)", [0]),
        (sp.exp(x), "[0,oo)", [1]),
        (sp.exp(x), "[-1,oo)", [0, 1]),
        (sp.exp(x), "(-oo,1]", [0]),
        (sp.log(x), "(-oo,0]", []),
        (sp.erf(x), "[1,2]", []),
        (sp.erf(x), "[1/2,2]", [1]),
        (sp.exp(x) * a * b, "[1/2,2]", None),
        (sp.exp(x) * a * b * y, "[1/2,2]", []),  # more than three numbers
    ]:
        asked.clear()
        assert _Search()._by_cases(expr, on(interval), 3) is None
        if cuts is not None:
            assert [cut for symbol, cut in asked if symbol == x] == cuts, expr
        else:
            assert len(asked) == 5  # a and b at 0 and 1, x at 1


def test_the_pieces_of_a_range_are_the_place_what_lies_above_and_what_lies_below():
    where = Range(Fraction(-2), Fraction(3), True, False)
    here = Assumptions({x: where, y: ANY})
    (at, first), (over, second), (under, third) = _pieces(x, where, Fraction(1), x + y, here)
    assert at == 1 + y and x not in first.ranges and first.ranges[y] == ANY
    (positive,) = over.free_symbols - {y}
    assert positive.is_positive and second.ranges[positive] == Range(Fraction(1), Fraction(3), True, False)
    assert under == x + y and third.ranges[x] == Range(Fraction(-2), Fraction(1), True, True)
    undefined, *_ = _pieces(x, where, Fraction(0), 1 / x, here)
    assert isinstance(undefined[0], sp.Dummy)
    (_, _), (same, _), _ = _pieces(t, POSITIVE, Fraction(1), t + y, HERE)
    assert same == t + y


VALUES = {"+": (1, 2), "-": (-1, -3), "0": (0,), ">=": (0, 2), "<=": (0, -2)}


def test_the_sign_of_all_cases_together():
    for found in product((*VALUES, None), repeat=2):
        if None in found:
            assert _joined(list(found)) is None
            continue
        values = [v for one in found for v in VALUES[one]]
        wanted = next((s for s in ("0", "+", "-", ">=", "<=") if all(SIGNS[s](v) for v in values)), None)
        assert _joined(list(found)) == wanted


def test_ranges_of_numbers_and_unknowns():
    theta, some = sp.Symbol("theta", positive=True), sp.Symbol("m", nonnegative=True)
    here = Assumptions({x: CLOSED}, frozenset({theta}))
    assert _range(x, here) == CLOSED and _range(theta, here) == Range(Fraction(0), Fraction(1), True, False)
    assert _range(t, here) == POSITIVE and _range(some, here) == Range(Fraction(0), None) and _range(y, here) == ANY


@pytest.mark.parametrize(
    ("inside", "where"),
    [
        (x, Range(Fraction(-1), Fraction(1), True, True)),
        (t, Range(Fraction(0), Fraction(1), True, True)),
        (-t, Range(Fraction(-1), Fraction(0), True, True)),
        (x**2, Range(Fraction(0), Fraction(1), False, True)),
        (-(x**2), Range(Fraction(-1), Fraction(0), True, False)),
    ],
    ids=str,
)
def test_error_functions_are_bounded_by_the_sign_of_their_argument(inside, where):
    expr, wider = _within_bounds(sp.erf(inside, evaluate=False) + y, HERE)
    (fresh,) = expr.free_symbols - {y}
    assert expr == fresh + y and wider.ranges[fresh] == where and wider.ranges[y] == ANY


def test_products_of_vectors_become_lengths_times_cosines():
    u, w = Factor("u", "vector", "d"), Factor("w", "vector", "d")
    uu, uw, ww = InnerProduct(u, u), InnerProduct(u, w), InnerProduct(w, w)
    expr, wider = _within_bounds(uu + 2 * uw + 3 * ww, HERE)
    (cosine,) = [s for s in expr.free_symbols if s.name.startswith("cos")]
    a, b = (sp.Symbol(f"|{name}|", nonnegative=True) for name in "uw")
    assert sp.expand(expr - a**2 - 2 * a * b * cosine - 3 * b**2) == 0
    assert wider.ranges[cosine] == Range(Fraction(-1), Fraction(1))
    assert _within_bounds(uu + 1, HERE) == (uu + 1, HERE)  # no product of two different vectors
    assert _within_bounds(x + 1, HERE) == (x + 1, HERE)


def test_each_argument_is_one_step_deeper(monkeypatch):
    depths = {}
    for name in ("_by_logarithms", "_by_roots", "_by_squares", "_by_ends", "_by_exponents"):
        monkeypatch.setattr(_Search, name, lambda self, *rest, name=name: depths.setdefault(name, rest[-1]) and None)
    assert _Search()._irreducible(NONE, x**3 - t, HERE, 4) is None
    assert depths == dict.fromkeys(("_by_logarithms", "_by_roots", "_by_squares", "_by_ends", "_by_exponents"), 3)
    monkeypatch.setattr(
        _Search, "_product", lambda self, got, poly, here, depth: depths.setdefault("product", depth) and None
    )
    monkeypatch.setattr(
        _Search, "_by_cases", lambda self, expr, here, depth: depths.setdefault("cases", depth) and None
    )
    assert _Search()._sign(x**3 - t, HERE, 4) is None
    assert depths["product"] == 4 and depths["cases"] == 3


def test_bounds_and_cases_are_one_step_deeper(monkeypatch):
    depths = []
    monkeypatch.setattr(_Search, "sign", lambda self, expr, here, depth: depths.append(depth))
    assert _Search()._sign(sp.erf(x) - t, HERE, 4) is None
    assert depths[0] == 3
    depths.clear()
    assert _Search()._by_cases(x**3 - t, HERE, 4) is None
    assert set(depths) == {3}


def test_the_search_ends(monkeypatch):
    expr = sp.exp(t) - 1 - t
    assert _Search().sign(expr, HERE, 6) == "+"
    assert _Search().sign(expr, HERE, 0) is None
    search = _Search()
    search.left = 0
    assert search.sign(t, HERE, 6) is None
    search.left = 1
    assert search.sign(t + 1, HERE, 6) == "+"
    monkeypatch.setattr(sign_arguments, "MAX_OPERATIONS", int(expr.count_ops()) - 1)
    assert _Search().sign(expr, HERE, 6) is None
    monkeypatch.setattr(sign_arguments, "MAX_OPERATIONS", int(expr.count_ops()))
    assert _Search()._sign(expr, HERE, 6) == "+"


def test_a_search_does_not_ask_the_same_twice():
    search = _Search()
    assert search.sign(t + 1, HERE, 3) == "+"
    left = search.left
    assert search.sign(t + 1, HERE, 3) == "+" and search.left == left
    assert search.sign(t + 1, Assumptions({t: UNIT}), 3) == "+" and search.left == left - 1


@pytest.mark.parametrize("expr", [sp.oo, x + sp.oo, sp.zoo, sp.nan, sp.I * x, sp.exp(MEAN) - 1 - MEAN])
def test_what_is_no_real_function_has_no_sign(expr):
    assert argued_sign(sp.sympify(expr), HERE) is None


def test_factors_of_products_and_quotients():
    rising = sp.exp(t) - 1 - t
    for expr, wanted in [
        (rising * (sp.exp(t) - 1), "+"),
        (-2 * rising**3 * (x**2 + 1), "-"),
        (rising / (1 + x**2), "+"),
        ((x - y) ** 2 * rising, ">="),
        (-((x - y) ** 2) * rising, "<="),
        (rising / (x - 1), None),
        (rising / (-1 - x**2), "-"),
    ]:
        assert argued_sign(expr, HERE) == wanted, expr
    assert argued_sign(x - y, HERE.fix(x, y + t)) == "+"
