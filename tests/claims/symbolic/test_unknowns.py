"""Typed symbols: equal by type and fields, with the right assumptions, ordered by name, and picklable."""

import pickle

import pytest
import sympy as sp

from qkv.claims.semantics.context import REST
from qkv.claims.symbolic.factors import Factor, member, noise_vector, turn
from qkv.claims.symbolic.unknowns import (
    Gap,
    InnerProduct,
    KeyLength,
    KeyShift,
    NoiseScore,
    RestSum,
    RestWeight,
    Score,
    Statistic,
    Theta,
    UnreducedProduct,
    is_of_unnamed_item,
    varies_over_unnamed_items,
)

Q = Factor("q", "vector")
KA, KI = member("k", "a"), member("k", REST)
T = sp.Symbol("t", positive=True)
SCORE = InnerProduct(KA, Q)

UNKNOWNS = [
    SCORE,
    InnerProduct(KI, Q),
    InnerProduct(Q, Q),
    NoiseScore(noise_vector("a"), KA),
    NoiseScore(noise_vector(REST), KA),
    UnreducedProduct((KA.turned(), turn(T), Q)),
    UnreducedProduct((KI.turned(), turn(T), Q)),
    Gap(SCORE, True),
    Gap(SCORE, False),
    Gap(T, True),
    Gap(InnerProduct(KI, Q), True),
    RestSum("", True),
    RestSum("1", False),
    Theta(""),
    RestWeight(""),
    KeyLength("a", "gamma"),
    KeyLength(REST, "gamma"),
    KeyShift("a", KA),
    KeyShift("a", KI),
    Statistic("Var", (sp.exp(T) / (1 + SCORE),)),
    Statistic("E", (RestWeight(""),)),
    Statistic("P", (T * SCORE,)),
]


@pytest.mark.parametrize("one", UNKNOWNS, ids=str)
def test_copies_are_equal_and_hash_alike(one):
    again = type(one)(*one.fields)
    loaded = pickle.loads(pickle.dumps(one))  # noqa: S301
    for copy in (again, loaded):
        assert copy == one and hash(copy) == hash(one) and type(copy) is type(one)
        assert copy.fields == one.fields and copy.assumptions0 == one.assumptions0
        assert sp.expand(copy - one) == 0


def test_an_expression_of_unknowns_survives_pickling():
    expr = sp.exp(SCORE) / (sp.exp(SCORE) + RestSum("", True)) + Gap(SCORE, False) ** 2
    assert pickle.loads(pickle.dumps(expr)) == expr  # noqa: S301


def test_different_unknowns_are_different():
    assert len(set(UNKNOWNS)) == len(UNKNOWNS)
    for one in UNKNOWNS:
        plain = sp.Symbol(one.name, **{k: v for k, v in one.assumptions0.items() if k != "commutative"})
        assert one != plain and plain not in {one}


@pytest.mark.parametrize(
    ("one", "positive", "nonnegative"),
    [
        (InnerProduct(Q, Q), None, True),
        (InnerProduct(KA, Q), None, None),
        (Gap(SCORE, True), True, True),
        (Gap(SCORE, False), None, True),
        (RestSum("", True), True, True),
        (RestSum("", False), None, True),
        (Theta(""), True, True),
        (RestWeight(""), True, True),
        (Statistic("Var", (SCORE,)), None, True),
        (Statistic("P", (SCORE,)), None, True),
        (Statistic("Cov", (SCORE, T)), None, None),
        (Statistic("E", (SCORE,)), None, None),
        (KeyLength("a", "gamma"), None, None),
    ],
    ids=str,
)
def test_sympy_knows_what_is_known_of_them(one, positive, nonnegative):
    assert one.is_real and one.is_Symbol and one.is_commutative
    assert (one.is_positive, one.is_nonnegative) == (positive, nonnegative)


def test_products_are_symmetric():
    assert InnerProduct(KA, Q) is InnerProduct(Q.turned(), KA)
    word = (KA.turned(), turn(T), Q)
    assert UnreducedProduct(word) == UnreducedProduct((Q.turned(), turn(-T), KA))
    assert UnreducedProduct(word) != UnreducedProduct((Q.turned(), turn(T), KA))
    assert all(isinstance(x, Score) for x in (SCORE, UnreducedProduct(word), NoiseScore(noise_vector("a"), Q)))


def test_fields_are_what_they_were_made_of():
    gap = Gap(SCORE, True)
    assert (gap.of, gap.strict) == (SCORE, True)
    assert {SCORE.left, SCORE.right} == {KA, Q}
    noise = NoiseScore(noise_vector("a").turned(), Q)
    assert (noise.noise, noise.direction) == (noise_vector("a"), Q)
    stat = Statistic("Cov", (SCORE, T))
    assert (stat.function, stat.inner) == ("Cov", (SCORE, T))
    assert (KeyLength("a", "gamma").item, RestSum("2", True).head) == ("a", "2")


@pytest.mark.parametrize("one", UNKNOWNS, ids=str)
def test_only_unknowns_of_an_unnamed_item_differ_between_unnamed_items(one):
    """By the names, which are independent of the property: * is the unnamed item, but it is the product sign too."""
    named = {SCORE: False, InnerProduct(KI, Q): True, Gap(InnerProduct(KI, Q), True): True, RestWeight(""): True}
    of_rest = {
        NoiseScore(noise_vector(REST), KA),
        UNKNOWNS[6],
        KeyLength(REST, "gamma"),
        KeyShift("a", KI),
        UNKNOWNS[20],
    }
    assert is_of_unnamed_item(one) == (named.get(one, False) or one in of_rest)
    assert varies_over_unnamed_items(T + sp.exp(one)) == is_of_unnamed_item(one)
    assert not is_of_unnamed_item(T)


def test_terms_are_printed_in_the_order_of_names():
    """As plain symbols of the same names are: the types do not change the order of a printed sum or product."""
    distinct = {one.name: one for one in UNKNOWNS}.values()  # a strict gap has the name of one that is not
    total = sum((j + 2) * one for j, one in enumerate(distinct)) + T
    plain = total.xreplace({one: sp.Symbol(one.name, **one._assumptions_orig) for one in UNKNOWNS})
    assert str(total) == str(plain)
    assert [str(a) for a in total.as_ordered_terms()] == [str(a) for a in plain.as_ordered_terms()]


def test_substitution_and_differentiation_treat_them_as_symbols():
    expr = sp.exp(2 * SCORE) * T
    assert expr.subs(SCORE, 0) == T and expr.xreplace({SCORE: T}) == sp.exp(2 * T) * T
    assert sp.diff(expr, SCORE) == 2 * expr
    assert sp.degree(sp.Poly(SCORE**3 + T, SCORE)) == 3
