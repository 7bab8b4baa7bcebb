"""Constructors of what the prover's steps take: numbers with ranges, assumptions, matrix polynomials, claims.

The tests build everything through this module, so that a constructor that changes is changed here only.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import sympy as sp

from qkv.claims.semantics.declarations import build_context
from qkv.claims.semantics.quantifiers import instances
from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.case_split import by_cases
from qkv.claims.symbolic.errors import NeedSign, TooLarge, Unsupported
from qkv.claims.symbolic.factors import Factor, turn
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial, identity, scalar, vector
from qkv.claims.symbolic.proof import PROVED, REFUTED
from qkv.claims.symbolic.prover import decide
from qkv.claims.symbolic.sign_analysis import Assumptions
from qkv.claims.syntax.markdown import read

GIVES_UP = (
    Unsupported,
    TooLarge,
    NeedSign,
    sp.polys.polyerrors.BasePolynomialError,
    ArithmeticError,
    NotImplementedError,
    TypeError,
    ValueError,
)
"""What the prover takes as "not decided" (prover._decide)."""


@dataclass(frozen=True)
class Number:
    """A symbol and the range it is allowed: `lo` and `hi` are None where the range has no end."""

    symbol: sp.Symbol
    lo: Fraction | None = None
    hi: Fraction | None = None
    lo_open: bool = False
    hi_open: bool = False
    whole: bool = False

    @property
    def range(self) -> Range:
        return Range(self.lo, self.hi, self.lo_open, self.hi_open, self.whole)

    def allows(self, value: Fraction) -> bool:
        over = self.lo is None or value > self.lo or (value == self.lo and not self.lo_open)
        under = self.hi is None or value < self.hi or (value == self.hi and not self.hi_open)
        return over and under and (not self.whole or value.denominator == 1)


def number(name: str, interval: str = "(-oo, oo)", whole: bool = False) -> Number:
    """number("s", "(0, 1]"): the symbol has the SymPy assumptions that the evaluator gives it."""
    lo_text, hi_text = interval[1:-1].replace(" ", "").split(",")
    lo = None if lo_text == "-oo" else Fraction(lo_text)
    hi = None if hi_text == "oo" else Fraction(hi_text)
    lo_open, hi_open = lo is not None and interval[0] == "(", hi is not None and interval[-1] == ")"
    positive = lo is not None and (lo > 0 or (lo == 0 and lo_open))
    options = {"positive": True} if positive else {"real": True}
    if whole:
        options["integer"] = True
    return Number(sp.Symbol(name, **options), lo, hi, lo_open, hi_open, whole)


def assume(*numbers: Number) -> Assumptions:
    return Assumptions({one.symbol: one.range for one in numbers})


def bounded(assumptions: Assumptions, *symbols: sp.Symbol) -> Assumptions:
    """The same assumptions, and unknowns that lie in (0, 1]."""
    return Assumptions(assumptions.ranges, assumptions.unit | set(symbols), assumptions.fixed)


def range_in(assumptions: Assumptions, one: Number) -> Number:
    """The number with the range that some assumptions leave it; a fixed number has a range of one point."""
    fixed = [value for symbol, value in assumptions.fixed if symbol == one.symbol]
    if fixed:
        at = Fraction(int(fixed[0].p), int(fixed[0].q))
        return Number(one.symbol, at, at)
    where = assumptions.ranges.get(one.symbol, Range())
    return Number(one.symbol, where.lo, where.hi, where.lo_open, where.hi_open, where.whole)


def pieces(numbers: tuple[Number, ...], decide_piece, null: frozenset = frozenset()):
    """Case distinction over the ranges of some numbers."""
    return by_cases(assume(*numbers), decide_piece, frozenset(one.symbol for one in numbers), null)


# Matrix polynomials.
def vector_atom(name: str, space: str = "d") -> Factor:
    return Factor(name, "vector", space)


def basis_atom(name: str, columns: str) -> Factor:
    return Factor(name, "basis", "d", columns)


def rotation_atom(angle) -> Factor:
    return turn(sp.sympify(angle))


def polynomial(atom: Factor) -> MatrixPolynomial:
    return vector(atom)


def number_polynomial(value) -> MatrixPolynomial:
    return scalar(sp.sympify(value))


def identity_polynomial(space: str) -> MatrixPolynomial:
    return identity(space)


def atoms_of(word) -> list[tuple[str, str, sp.Expr | None, bool]]:
    """Kind, name, angle and whether transposed, of each atom of a word."""
    return [(atom.kind, atom.name, atom.angle, atom.flipped) for atom in word]


# Claims.
def argued(given: str, let: str, then: str) -> str:
    """What the symbolic part alone makes of a claim: "proved", "refuted" or "open"."""
    lines = [f"given {given}"] * bool(given) + [f"let {let}"] * bool(let) + [f"then {then}"]
    (claim,) = read("```claim x\n" + "\n".join(lines) + "\n```")
    return {PROVED: "proved", REFUTED: "refuted"}.get(decide(instances(build_context(claim))).kind, "open")
