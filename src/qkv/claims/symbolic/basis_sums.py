"""Identities of the size that is needed, and sums over the columns of a basis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkv.claims.semantics.context import REST
from qkv.claims.symbolic.matrix_polynomials import Factor, MatrixPolynomial, reduce
from qkv.claims.syntax import nodes as L

if TYPE_CHECKING:
    from qkv.claims.symbolic.evaluator import Algebra


class Unsupported(Exception):
    """Something that this reader cannot reason about; the numerical one may still."""


class WrongShape(Exception):
    """Shapes that do not fit; `hard` when a number meets a vector, which no dimension can mend."""

    def __init__(self, at: L.At, message: str, hard: bool, found: str = "") -> None:
        super().__init__(message)
        self.at, self.hard, self.found = at, hard, found


def sized(
    one: L.Expr, two: L.Expr, left: MatrixPolynomial, right: MatrixPolynomial
) -> tuple[MatrixPolynomial, MatrixPolynomial]:
    """A bare I is the identity of the space that its neighbour lives in: in A'A = I that of the coordinates."""
    if bare_identity(one) and left.shape == ("d", "d") and not (right.scalar or right.anything):
        left = MatrixPolynomial(left.terms, (right.shape[0], right.shape[0]))
    if bare_identity(two) and right.shape == ("d", "d") and not (left.scalar or left.anything):
        right = MatrixPolynomial(right.terms, (left.shape[1], left.shape[1]))
    return left, right


def bare_identity(expr: L.Expr) -> bool:
    """Whether an expression is I or a multiple of it: of matrices and vectors it has nothing else."""
    nodes = list(L.nodes(expr))
    if not any(isinstance(n, L.Name) and str(n) == "I" for n in nodes):
        return False
    return all(
        isinstance(n, L.Num | L.Op | L.Neg) or (isinstance(n, L.Name) and not n.subs) for n in nodes
    ) and not any(isinstance(n, L.Name) and n.base.isupper() and n.base != "I" for n in nodes)


def columns_summed(algebra: Algebra, expr: L.Sum, bases: set[str]) -> MatrixPolynomial:
    """The sum of a_i a_i' over all columns of A is AA'; other sums over columns are left to the numbers."""
    name = min(bases)
    column = f"{name.lower()}_{REST}"
    basis = Factor(name, "basis", "d", algebra.world.bases[name])
    one = algebra.value(L.renamed(expr.inner, expr.index, REST))
    if one.scalar or len(bases) != 1 or expr.but:
        raise Unsupported("a sum over the columns of a basis")
    total = MatrixPolynomial({}, one.shape)
    for word, factor in one.terms.items():
        places = [j for j, atom in enumerate(word) if atom.name == column]
        paired = len(places) == 2 and places[1] == places[0] + 1 and word[places[1]].flipped
        if not paired or word[places[0]].flipped or any(REST in s.name for s in factor.free_symbols):
            raise Unsupported("a sum over the columns of a basis")
        whole = (*word[: places[0]], basis, basis.turned(), *word[places[1] + 1 :])
        reduced = reduce(whole, factor, algebra.inner)
        if reduced is not None:
            total = total.plus(MatrixPolynomial({reduced[0]: reduced[1]}, one.shape))
    return total
