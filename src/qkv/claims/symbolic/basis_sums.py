"""Identities of the size of their neighbour, and sums over the columns of a basis."""

from __future__ import annotations

from qkv.claims.semantics.context import REST, names_used
from qkv.claims.semantics.expression_properties import bare_identity
from qkv.claims.symbolic.algebra import Algebra
from qkv.claims.symbolic.errors import Unsupported
from qkv.claims.symbolic.factors import Factor, member
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial, reduce
from qkv.claims.symbolic.unknowns import varies_over_unnamed_items
from qkv.claims.syntax import nodes as L


def sized(
    one: L.Expr, two: L.Expr, left: MatrixPolynomial, right: MatrixPolynomial
) -> tuple[MatrixPolynomial, MatrixPolynomial]:
    """Give an identity without a size that of the other operand: in A'A = I it is the identity of the coordinates."""
    if bare_identity(one) and left.shape == ("d", "d") and not (right.scalar or right.anything):
        left = MatrixPolynomial(left.terms, (right.shape[0], right.shape[0]))
    if bare_identity(two) and right.shape == ("d", "d") and not (left.scalar or left.anything):
        right = MatrixPolynomial(right.terms, (left.shape[1], left.shape[1]))
    return left, right


def columns_summed(algebra: Algebra, expr: L.Sum, bases: set[str]) -> MatrixPolynomial:
    """The sum of a_i a_i' over all columns of A is AA'; other sums over columns are not supported."""
    name = min(bases)
    column = member(name.lower(), REST)
    basis = Factor(name, "basis", "d", algebra.context.bases[name])
    if len(bases) != 1 or expr.but:
        raise Unsupported("a sum over the columns of a basis")
    letters = [n for n in names_used(algebra.context, expr.inner) if n.base == name.lower()]
    named = sorted({s for n in letters for s in n.subs if s != expr.index})
    one = algebra.value(L.renamed(expr.inner, expr.index, REST))
    if one.scalar or REST in named:
        raise Unsupported("a sum over the columns of a basis")
    # The columns that the term names are summed one by one; for the others, AA' lacks the named ones.
    projections = [(basis, basis.turned(), 1)]
    projections += [(member(name.lower(), s), member(name.lower(), s).turned(), -1) for s in named]
    total = MatrixPolynomial({}, one.shape)
    for s in named:
        total = total.plus(algebra.value(L.renamed(expr.inner, expr.index, s)))
    for word, factor in one.terms.items():
        places = [j for j, part in enumerate(word) if part.upright() == column]
        paired = len(places) == 2 and places[1] == places[0] + 1 and word[places[1]].flipped
        if not paired or word[places[0]].flipped or varies_over_unnamed_items(factor):
            raise Unsupported("a sum over the columns of a basis")
        for left, right, sign in projections:
            whole = (*word[: places[0]], left, right, *word[places[1] + 1 :])
            reduced = reduce(whole, sign * factor, algebra.inner)
            if reduced is not None:
                total = total.plus(MatrixPolynomial({reduced[0]: reduced[1]}, one.shape))
    return total
