"""Sums and products of vectors, bases and rotations, against matrices of exact fractions and of floats."""

import random
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from build import (
    atoms_of,
    basis_atom,
    identity_polynomial,
    number_polynomial,
    polynomial,
    rotation_atom,
    vector_atom,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qkv.claims.symbolic.errors import TooLarge
from qkv.claims.symbolic.matrix_polynomials import scalar

DIMENSION = 4
X, Y, Z = (polynomial(vector_atom(name)) for name in "xyz")
A, B = polynomial(basis_atom("A", "m")), polynomial(basis_atom("B", "p"))
EVERY = settings(
    max_examples=settings.default.max_examples * 3 // 2,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


class World:
    """Numbers for every atom: A and B with orthonormal columns at right angles, exact; vectors of small fractions."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        # A Householder reflection I - 2 u u'/u'u is orthogonal with rational entries: A and B share out its columns.
        u = [Fraction(rng.randrange(1, 5)) for _ in range(DIMENSION)]
        size = sum(v * v for v in u)
        reflection = [[Fraction(int(i == j)) - 2 * u[i] * u[j] / size for j in range(4)] for i in range(4)]
        self.exact = {name: [[Fraction(rng.randrange(-3, 4))] for _ in range(DIMENSION)] for name in "xyz"}
        self.exact |= {"A": [row[:2] for row in reflection], "B": [row[2:] for row in reflection]}

    def matrix(self, kind, name, angle, flipped):
        if kind == "turn":  # R(m) for each pair of coordinates, as in rotary embeddings
            c, s = sp.cos(angle), sp.sin(angle)
            out = sp.Matrix([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, c, -s], [0, 0, s, c]])
        else:
            rows = self.exact[name]
            out = sp.Matrix(len(rows), len(rows[0]), lambda i, j: sp.Rational(*rows[i][j].as_integer_ratio()))
        return out.T if flipped else out

    def inner(self, left, right):
        if {left.kind, right.kind} == {"basis"}:
            return sp.Integer(0)  # A'B = 0 by construction
        return (self.matrix("vector", left.name, None, True) * self.matrix("vector", right.name, None, False))[0, 0]

    def value(self, element):
        """The matrix that a polynomial stands for."""
        sizes = {"d": DIMENSION, "m": 2, "p": 2, "1": 1}
        rows, cols = (sizes[side] for side in element.shape)
        total = sp.zeros(rows, cols)
        for word, factor in element.terms.items():
            product = sp.eye(rows)
            for atom in atoms_of(word):
                product = product * self.matrix(*atom)
            total += factor * product
        return total


class Pair:
    """A polynomial and its matrix, computed side by side."""

    def __init__(self, world, element, matrix=None):
        self.world, self.element = world, element
        self.matrix = world.value(element) if matrix is None else matrix

    def __add__(self, other):
        return Pair(self.world, self.element.plus(other.element), self.matrix + other.matrix)

    def __sub__(self, other):
        return Pair(self.world, self.element.minus(other.element), self.matrix - other.matrix)

    def __mul__(self, other):
        one, two = self.matrix, other.matrix
        product = one[0, 0] * two if self.element.scalar else two[0, 0] * one if other.element.scalar else one * two
        return Pair(self.world, self.element.times(other.element, self.world.inner), product)

    def turned(self):
        return Pair(self.world, self.element.transposed(), self.matrix.T)

    def agrees(self):
        assert self.world.value(self.element).shape == self.matrix.shape
        return (self.world.value(self.element) - self.matrix).applyfunc(sp.expand) == sp.zeros(*self.matrix.shape)


def square(draw, world, depth):
    """A d x d polynomial: x*y', A*A', B*B', I, and sums, products, multiples and transposes of such."""
    if depth == 0:
        kind = draw(st.integers(0, 3))
        if kind == 0:
            vectors = [Pair(world, draw(st.sampled_from([X, Y, Z]))) for _ in range(2)]
            return vectors[0] * vectors[1].turned()
        basis = Pair(world, draw(st.sampled_from([A, B])))
        return Pair(world, identity_polynomial("d")) if kind == 1 else basis * basis.turned()
    one, other = square(draw, world, depth - 1), square(draw, world, depth - 1)
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return one + other
    if kind == 1:
        return one - other
    if kind == 2:
        return one.turned()
    if kind == 3:
        return Pair(world, number_polynomial(draw(st.sampled_from([-2, 3, sp.Rational(1, 2)])))) * one
    return one * other


@EVERY
@given(st.data())
def test_arithmetic_agrees_with_exact_matrices(data):
    world = World(data.draw(st.integers(0, 20)))
    found = square(data.draw, world, data.draw(st.integers(1, 3)))
    assert found.agrees()
    applied = found * Pair(world, data.draw(st.sampled_from([X, Y])))
    assert applied.agrees() and applied.element.shape == ("d", "1")


@EVERY
@given(st.data())
def test_the_laws_of_matrices_hold(data):
    """Associativity, distributivity, and (PQ)' = Q'P'."""
    world = World(data.draw(st.integers(0, 20)))
    p, q, r = (square(data.draw, world, data.draw(st.integers(0, 2))) for _ in range(3))

    def same(one, other):
        assert one.agrees() and other.agrees()
        return one.element.minus(other.element).terms == {} or one.matrix == other.matrix

    assert same((p * q) * r, p * (q * r))
    assert same(p * (q + r), p * q + p * r)
    assert same((p * q).turned(), q.turned() * p.turned())


@pytest.mark.parametrize("seed", range(5))
def test_bases_and_projections(seed):
    world = World(seed)
    a, b, x = Pair(world, A), Pair(world, B), Pair(world, X)
    gram = a.turned() * a
    assert gram.element.minus(identity_polynomial("m")).terms == {} and gram.agrees()
    assert (a.turned() * b).element.terms == {} and (a.turned() * b).agrees()
    projection = a * a.turned()
    assert (projection * projection - projection).element.terms == {}
    assert (projection * (b * b.turned())).element.terms == {}
    assert (projection * x).agrees()


@pytest.mark.parametrize("seed", range(5))
def test_inner_products_and_outer_products(seed):
    world = World(seed)
    x, y, z = Pair(world, X), Pair(world, Y), Pair(world, Z)
    assert (x.turned() * y).element.number() == (x.turned() * y).matrix[0, 0]
    assert (x * y.turned() * z).agrees() and (x * (y.turned() * z)).agrees()
    assert (x * y.turned() * z - x * (y.turned() * z)).element.terms == {}


@EVERY
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=4))
def test_rotations_add_their_angles(steps):
    """R(a)R(b)... = R(a + b + ...), against rotation matrices of floats."""
    angle = sp.Symbol("w", real=True)
    one = identity_polynomial("d")
    inner = World(0).inner
    for step in steps:
        turned = polynomial(rotation_atom(step * angle)) if step else identity_polynomial("d")
        one = one.times(turned.transposed().transposed(), inner)
    at = 0.7
    expected = np.array(World(0).matrix("turn", "R", sum(steps) * at, False), dtype=float)
    (word,) = one.terms or [()]
    found = np.eye(DIMENSION)
    for kind, name, turned_by, flipped in atoms_of(word):
        found = found @ np.array(World(0).matrix(kind, name, turned_by.subs(angle, at), flipped), dtype=float)
    assert np.allclose(found, expected, atol=1e-12) and len(word) <= 1
    assert (len(word) == 0) == (sum(steps) == 0)


def test_a_rotation_and_its_transpose_cancel():
    angle = sp.Symbol("w", real=True)
    turned = polynomial(rotation_atom(3 * angle))
    product = turned.transposed().times(turned, World(0).inner)
    assert product.minus(identity_polynomial("d")).terms == {}


@pytest.mark.parametrize("angles", [(1, 2), (2, 2), (-1, 3)])
def test_scores_of_rotated_vectors_depend_on_the_difference_of_angles(angles):
    w = sp.Symbol("w", real=True)
    one, two = (polynomial(rotation_atom(k * w)) for k in angles)
    left = one.times(X, World(1).inner).transposed().times(two.times(Y, World(1).inner), World(1).inner)
    if angles[0] == angles[1]:
        right = X.transposed().times(Y, World(1).inner)
    else:
        middle = polynomial(rotation_atom((angles[1] - angles[0]) * w))
        right = X.transposed().times(middle, World(1).inner).times(Y, World(1).inner)
    assert left.minus(right).terms == {}


def test_a_number_becomes_one_of_sympy():
    assert scalar(2).terms == {(): 2} and isinstance(scalar(2).terms[()], sp.Integer) and scalar(0).terms == {}
    half = sp.Rational(1, 2)
    assert scalar(half).terms[()] is half


def test_a_number_that_nothing_reduces_is_that_of_its_transpose():
    inner = World(2).inner
    projection = A.times(A.transposed(), inner)
    one = X.transposed().times(projection, inner).times(Y, inner)
    other = Y.transposed().times(projection, inner).times(X, inner)
    assert one.minus(other).terms == {} and one.terms
    assert X.transposed().times(projection, inner).times(Z, inner).minus(one).terms


def test_a_product_that_outgrows_its_bounds_is_refused():
    inner = World(0).inner
    wide = number_polynomial(0)
    wide = X
    for k in range(25):
        wide = wide.plus(polynomial(vector_atom(f"u_{k}")))
    with pytest.raises(TooLarge):
        wide.times(wide.transposed(), inner).times(wide.times(wide.transposed(), inner), inner)


@pytest.mark.parametrize("change", ["coefficient", "order", "transpose", "missing"])
def test_a_wrong_product_is_noticed(change):
    world = World(3)
    x, y, a = Pair(world, X), Pair(world, Y), Pair(world, A)
    right = x * y.turned() * (a * a.turned())
    wrong = {
        "coefficient": lambda: right + right,
        "order": lambda: (a * a.turned()) * (x * y.turned()),
        "transpose": lambda: right.turned(),
        "missing": lambda: x * y.turned(),
    }[change]()
    assert right.agrees() and not Pair(world, wrong.element, right.matrix).agrees()
