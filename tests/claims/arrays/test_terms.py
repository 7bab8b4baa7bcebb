"""Products of matrices in normal form."""

import sympy as sp

import qkv
from qkv.claims.arrays.terms import Factor, Products, Terms, common_ends, ones, unit


def matrix(name, rows="n", cols="n", kind=""):
    return Factor(name, rows, cols, kind)


def test_a_product_of_a_permutation_and_its_transpose_is_the_identity():
    products = Products()
    p = products.single(matrix("P", kind="permutation"))
    assert products.times(p.transposed(), p).parts == {(): 1}
    assert products.times(p, products.single(ones("n"))).key == products.single(ones("n")).key


def test_a_plain_matrix_is_not_orthogonal():
    products = Products()
    a = products.single(matrix("A"))
    assert () not in products.times(a.transposed(), a).parts


def test_inner_products_are_numbers_and_equal_their_transpose():
    products = Products()
    x, y = (products.single(matrix(name, "n", "1")) for name in "xy")
    assert products.inner(x, y) == products.inner(y, x)
    assert products.inner(x, x).is_nonnegative and not products.inner(x, y).is_nonnegative


def test_unit_vectors_pick_entries():
    products = Products()
    one, two = (products.single(unit(item, "n")) for item in "ab")
    assert products.inner(one, one) == 1 and products.inner(one, two) == 0


def test_common_ends_are_those_of_every_word():
    p, a, b = matrix("P", kind="permutation"), matrix("A"), matrix("B")
    both = Terms({(p, a): sp.Integer(1), (p, b): sp.Integer(2)}, "n", "n")
    end, rest = common_ends(both, ("permutation",))
    assert end == p and set(rest.parts) == {(a,), (b,)}
    other = Terms({(p, a): sp.Integer(1), (b,): sp.Integer(2)}, "n", "n")
    assert common_ends(other, ("permutation",))[0] is None


def test_atoms_of_two_claims_differ_even_if_their_names_are_the_same():
    first, second = (
        products.inner(*[products.single(matrix("x", "n", "1"))] * 2) for products in (Products(), Products())
    )
    assert first != second and first.name == second.name


def test_what_a_claim_declares_does_not_leak_into_the_next():
    weight = "```claim\ngiven p in simplex^n\nthen p_a >= 0\nthen p_a <= 1\n```"
    entry = "```claim\ngiven p in R^n\nthen p_a >= 0\nthen p_a <= 1\n```"
    for _ in range(2):
        assert [v.verdict for v in qkv.check(weight)] == ["proved", "proved"]
        assert [v.verdict for v in qkv.check(entry)] == ["refuted", "refuted"]
