"""Symbols, inner products and shapes of a claim, against explicit vectors and the rules of the language."""

import pytest
import sympy as sp
from claim_builders import context_of, expression

from qkv.claims.semantics.context import REST
from qkv.claims.symbolic.algebra import (
    SoftmaxTerms,
    described_value,
    orthogonal_terms,
    require_same_shape,
    shape_text,
)
from qkv.claims.symbolic.errors import Unsupported, WrongShape
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.factors import Factor, member, noise_vector, unnamed_mean, unnamed_sum
from qkv.claims.symbolic.matrix_polynomials import ZERO, MatrixPolynomial, identity, scalar, vector
from qkv.claims.symbolic.unknowns import InnerProduct, NoiseScore, RestWeight


def algebra_of(given, let="", then="1 = 1", vanished=frozenset()):
    return Evaluator(context_of(given, let, then), vanished)


@pytest.mark.parametrize(
    ("given", "positive", "integer"),
    [
        ("t > 0", True, None),
        ("t >= 0", None, None),
        ("t > 1", True, None),
        ("t >= 1/2", True, None),
        ("t > -1", None, None),
        ("t < 3", None, None),
        ("t real", None, None),
        ("0 < t <= 1", True, None),
    ],
)
def test_a_symbol_is_positive_only_if_its_range_says_so(given, positive, integer):
    found = algebra_of(given, "", "t = t").symbol("t")
    assert found.is_positive is positive and found.is_real and found.is_integer is integer


def test_whole_numbers_values_and_noise_that_has_vanished():
    algebra = algebra_of(
        "n >= 2, t = 3/2, mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I)", "", "k_a'mu_a = t", frozenset({"eps"})
    )
    assert algebra.symbol("n").is_integer and algebra.symbol("n").is_positive
    assert algebra.symbol("t") == sp.Rational(3, 2) and algebra.symbol("eps") == 0
    assert algebra.symbol("n") is algebra.symbol("n")
    assert algebra.declared_name(algebra.symbol("n")) == "n" and algebra.declared_name(sp.Symbol("z")) is None
    other = algebra.symbol("undeclared")
    assert other.is_real and algebra.declared_name(other) is None


def test_the_number_of_items():
    named = algebra_of("k_a, k_b orthonormal", "q = k_a", "alpha_a = alpha_b")
    assert named.size == 2
    many = algebra_of("k_1..k_n orthonormal, n >= 2", "q = k_a", "alpha_a = 1")
    assert many.size == many.symbol("n")


def test_random_numbers_have_their_mean_and_variance():
    algebra = algebra_of("gamma ~ N(1, 4)", "", "gamma = 1")
    assert algebra.random == {algebra.symbol("gamma"): (1, 4)}


KA, KB, KI = member("k", "a"), member("k", "b"), member("k", REST)
SUM = unnamed_sum(KI)


def test_products_within_an_orthonormal_family():
    algebra = algebra_of("k_1..k_n orthonormal, n >= 4", "q = k_a", "alpha_a = alpha_b")
    n = algebra.symbol("n")
    for one, two, wanted in [
        (KA, KA, 1),
        (KA, KB, 0),
        (KA, KI, 0),
        (KI, KI, 1),
        (SUM, SUM, n - 2),
        (SUM, KI, 1),
        (KI, SUM, 1),
        (SUM, KA, 0),
        (KA.turned(), KA, 1),
    ]:
        assert sp.expand(algebra.inner(one, two) - wanted) == 0, (one, two)


def test_products_of_an_orthogonal_family_have_the_square_of_its_norm():
    algebra = algebra_of("k_1..k_n orthogonal of norm 3, n >= 4", "q = k_a", "alpha_a = alpha_b")
    assert algebra.inner(KA, KA) == 9 and algebra.inner(KA, KB) == 0
    assert sp.expand(algebra.inner(SUM, SUM) - 9 * (algebra.symbol("n") - 2)) == 0


def test_families_of_one_declaration_are_at_right_angles_and_others_need_not_be():
    u, w = member("u", "a"), member("w", "a")
    together = algebra_of("u_1..u_n, w_1..w_n orthonormal", "", "u_a = w_a")
    apart = algebra_of("u_1..u_n orthonormal, w_1..w_n orthonormal", "", "u_a = w_a")
    assert together.inner(u, w) == 0 and isinstance(apart.inner(u, w), InnerProduct)
    free = algebra_of("u_1..u_n free", "", "u_a = u_b")
    assert isinstance(free.inner(u, member("u", "b")), InnerProduct) and isinstance(free.inner(u, u), InnerProduct)
    single = Factor("q", "vector")
    assert isinstance(together.inner(u, single), InnerProduct)


def test_a_mean_of_unnamed_members_is_orthogonal_to_the_named_ones_only():
    algebra = algebra_of("k_1..k_n orthonormal, u_1..u_n orthonormal, q free, n >= 4", "", "alpha_a = alpha_b")
    mean = unnamed_mean(KI, RestWeight(""))
    assert algebra.inner(mean, KA) == 0 == algebra.inner(KB, mean)
    for other in (KI, mean, SUM, member("u", "a")):
        assert isinstance(algebra.inner(mean, other), InnerProduct), other


def test_bases_at_right_angles():
    a, b = Factor("A", "basis", "d", "m"), Factor("B", "basis", "d", "p")
    for given, zero in (("A, B orthonormal bases at right angles", True), ("A, B orthonormal bases", False)):
        algebra = algebra_of(given, "", "A*A' = B*B'")
        assert (algebra.inner(a, b) == 0) is zero
        assert (algebra.inner(member("a", "1"), b) == 0) is zero
        assert (algebra.inner(a, member("b", "1")) == 0) is zero
        assert algebra.inner(member("a", "1"), a) != 0
        assert algebra.inner(a, Factor("x", "vector")) != 0


def test_noise_scores():
    algebra = algebra_of("mu_1..mu_n orthonormal, k_i ~ N(mu_i, I)", "q = mu_a", "alpha_a = 1")
    z, u = noise_vector("a"), member("mu", "a")
    for one, two in ((z, u), (u, z)):
        found = algebra.inner(one, two)
        assert isinstance(found, NoiseScore) and (found.noise, found.direction) == (z, u)
    with pytest.raises(Unsupported, match="two noises"):
        algebra.inner(z, noise_vector("b"))
    for pair in ((z, unnamed_mean(KI, RestWeight(""))), (unnamed_mean(KI, RestWeight("")), z)):
        with pytest.raises(Unsupported, match="beside a mean"):
            algebra.inner(*pair)


@pytest.mark.parametrize(
    ("given", "text", "wanted"),
    [
        ("u_1..u_n orthonormal", "u_a - 2*u_b", True),
        ("u_1..u_n, w_1..w_n orthonormal", "u_a - w_b", True),
        ("u_1..u_n orthonormal, w_1..w_n orthonormal", "u_a - w_b", False),
        ("u_1..u_n free", "u_a - u_b", False),
        ("u_1..u_n orthonormal, x free", "u_a - x", False),
        ("u_1..u_n orthonormal", "u_a*u_b'", False),
        ("u_1..u_n orthonormal, n >= 2", "sum_{i != a} u_i", True),
        ("u_1..u_n orthonormal, n >= 1", "sum_{i != a} u_i", False),  # it may be 0
        ("u_1..u_n orthonormal", "u_a - u_a", False),
    ],
)
def test_terms_are_independent_if_one_declaration_makes_them_orthogonal(given, text, wanted):
    algebra = algebra_of(given, "", f"{text} = {text}")
    assert orthogonal_terms(algebra, algebra.value(expression(text))) is wanted


ONE, COLUMN, ROW = scalar(sp.Integer(1)), vector(KA), vector(KA).transposed()
SQUARE, LOW = identity("d"), vector(Factor("x", "vector", "m"))


def test_shapes_in_words():
    words = [shape_text(value) for value in (ONE, COLUMN, ROW, SQUARE, LOW, LOW.transposed(), identity("m"))]
    assert words == [
        "a number",
        "a vector of d entries",
        "a row of d entries",
        "a d x d matrix",
        "a vector of m entries",
        "a row of m entries",
        "a m x m matrix",
    ]


def test_short_values_are_described_with_their_text():
    assert described_value(ONE) == "a number (1)"
    for letters, shown in ((59, True), (60, False)):
        long = scalar(sp.Symbol("x" * letters))
        assert described_value(long) == (f"a number ({'x' * letters})" if shown else "a number")


def test_values_of_one_shape_may_be_added():
    for one, two in ((ONE, ONE), (COLUMN, COLUMN), (ZERO, COLUMN), (SQUARE, ZERO)):
        require_same_shape(one, two, (1, 1))
    for one, two, hard in [
        (ONE, COLUMN, True),
        (COLUMN, ONE, True),
        (COLUMN, SQUARE, True),
        (COLUMN, ROW, True),
        (COLUMN, LOW, False),
        (SQUARE, identity("m"), False),
    ]:
        with pytest.raises(WrongShape) as wrong:
            require_same_shape(one, two, (3, 4))
        assert wrong.value.hard is hard and wrong.value.at == (3, 4), (one.shape, two.shape)


def test_a_value_that_must_be_a_number():
    algebra = algebra_of("t > 0")
    assert algebra.as_number(ZERO, (1, 1)) == 0 and algebra.as_number(scalar(sp.Integer(3)), (1, 1)) == 3
    assert algebra.as_number(MatrixPolynomial({}, ("1", "1")), (1, 1)) == 0
    for value in (COLUMN, SQUARE):
        with pytest.raises(WrongShape) as wrong:
            algebra.as_number(value, (1, 1))
        assert wrong.value.hard


def test_the_sum_of_all_exponentials():
    x, y, z = sp.symbols("x y z")
    assert SoftmaxTerms("", {"a": x, "b": y}, z, z, False).total == x + y + z
    assert SoftmaxTerms("", {}, z, z, False).total == z
