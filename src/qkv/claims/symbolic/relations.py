"""Identities and inequalities: chains of comparisons, link by link."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import sympy as sp

from qkv.claims.semantics.context import Context
from qkv.claims.symbolic import thresholds
from qkv.claims.symbolic.algebra import Algebra, orthogonal_terms, require_same_shape
from qkv.claims.symbolic.attention_terms import softmax_steps, with_score_conditions
from qkv.claims.symbolic.basis_sums import sized
from qkv.claims.symbolic.conditions import assumptions_of
from qkv.claims.symbolic.distinguishing_points import differs
from qkv.claims.symbolic.errors import WrongShape
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial
from qkv.claims.symbolic.printing import polynomial_text, scalar_latex, scalar_text, sides_step, step, with_sign
from qkv.claims.symbolic.proof import CONDITIONAL, PROVED, REFUTED, UNKNOWN, Proof
from qkv.claims.symbolic.sign_analysis import Assumptions, is_zero, sign
from qkv.claims.symbolic.sign_arguments import argued_sign
from qkv.claims.symbolic.violations import Place, violating_place
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import NEGATED_OP
from qkv.claims.verdict import Step

SIGN_WORDS = {"+": "positive", "-": "negative", ">=": "never negative", "<=": "never positive", "0": "zero"}
SIGNS_THAT_PROVE = {"<": ("-",), "<=": ("-", "<=", "0"), ">": ("+",), ">=": ("+", ">=", "0")}
SIGNS_THAT_REFUTE = {"<": ("+", ">=", "0"), "<=": ("+",), ">": ("-", "<=", "0"), ">=": ("-",)}
SIGN_IF = {"<": "-", "<=": "<=", ">": "+", ">=": ">="}  # the sign of left minus right
SIGN_UNLESS = {"<": ">=", "<=": "+", ">": "<=", ">=": "-"}
FACTORED_BELOW = 60  # operations of a difference that is factored for printing


def relation(context: Context, core: L.Relation, algebra: Algebra | None = None) -> Proof:
    """Decide a chain of identities and inequalities; `algebra` may have noise that has vanished."""
    algebra = algebra or Evaluator(context)
    steps: list[Step] = []
    because = ""
    for left, op, right in core.pairs():
        one, two = (with_score_conditions(algebra, algebra.value(side)) for side in (left, right))
        one, two = sized(left, right, one, two)
        require_same_shape(one, two, core.at)
        found = link(algebra, one, op, two, assumptions_of(algebra))
        if found.kind != PROVED:
            return replace(found, steps=(*softmax_steps(algebra), *steps, *found.steps))
        steps += found.steps
        because = found.because
    return Proof(PROVED, because, (*softmax_steps(algebra), *steps))


def link(algebra: Algebra, one: MatrixPolynomial, op: str, two: MatrixPolynomial, assumptions: Assumptions) -> Proof:
    """Decide one comparison; the sign between both sides is printed only if it is shown to hold there."""
    found = _link(algebra, one, op, two, assumptions)
    if found.kind == PROVED:
        return replace(found, steps=with_sign(found.steps, _op_latex(op)))
    if found.kind == REFUTED and found.sure:
        return replace(found, steps=with_sign(found.steps, _op_latex(NEGATED_OP[op])))
    if found.kind == REFUTED and op == "=":
        return replace(found, steps=with_sign(found.steps, r"\not\equiv"))
    return found


def _link(algebra: Algebra, one: MatrixPolynomial, op: str, two: MatrixPolynomial, assumptions: Assumptions) -> Proof:
    difference = _without_zeros(one.minus(two), assumptions)
    said = sides_step(one, two)
    if op in ("=", "!="):
        return _equality(algebra, difference, op, assumptions, said)
    if not difference.scalar and not difference.anything:
        raise WrongShape((0, 0), "an order between vectors", True, "numbers on both sides")
    value = difference.number()
    how = argued_sign(value, assumptions)
    if how in SIGNS_THAT_PROVE[op]:
        tidy = sp.factor(value) if value.count_ops() < FACTORED_BELOW else value
        text = f"left minus right is {scalar_text(tidy)}, which is {SIGN_WORDS[how]} for all allowed values"
        because = f"left minus right is {SIGN_WORDS[how]} for all allowed values"
        return Proof(PROVED, because, (said, Step(text, f"{scalar_latex(value)} {_op_latex(op)} 0")))
    if how in SIGNS_THAT_REFUTE[op]:
        because = f"left minus right is {SIGN_WORDS[how]} for all allowed values"
        return Proof(REFUTED, because, (said,), sure=True)
    weak = op in ("<", ">") and sign(value, assumptions) in (">=", "<=")
    level = thresholds.tie(algebra, value, assumptions) if weak else None
    if level is not None:
        because = f"both sides are equal for {level[0]} = {level[1]}"
        return Proof(REFUTED, because, (said, step(because)), place=_equations(algebra, (level,)))
    upward = value if op in (">", ">=") else -value
    found = thresholds.threshold(algebra, upward, op in (">=", "<="), assumptions)
    if isinstance(found, bool):
        because = f"left minus right is {SIGN_WORDS[(SIGN_IF if found else SIGN_UNLESS)[op]]} for all allowed values"
        return Proof(PROVED if found else REFUTED, because, (said, step(because)), sure=not found)
    if found is not None:
        solved = step(f"solving left minus right for the scale: {found.text}")
        return Proof(CONDITIONAL, f"true exactly when {found.text}", (said, solved), condition=found)
    place = violating_place(algebra, value, op, assumptions)
    if place is not None:
        because = "false for " + ", ".join(f"{name} = {_decimal(at)}" for name, at in place)
        return Proof(REFUTED, because, (said, step(because)), place=_equations(algebra, place))
    return Proof(UNKNOWN, "the sign of left minus right is not settled symbolically", (said,))


def _equations(algebra: Algebra, place: Place) -> tuple[L.Relation, ...]:
    """The values of some numbers as equations of the language."""
    at = algebra.context.claim.at
    return tuple(L.Relation((L.Name.parsed(name, at), L.Num(value, at)), ("=",), at) for name, value in place)


def _decimal(value: Fraction) -> str:
    """A fraction as a decimal number where that is exact, and short."""
    text = str(float(value))
    return text if Fraction(text) == value and value.denominator > 1 and "e" not in text else str(value)


def _equality(algebra: Algebra, difference: MatrixPolynomial, op: str, assumptions: Assumptions, said: Step) -> Proof:
    if not difference.terms:
        done = step("left minus right is 0 for all allowed values", "0 = 0")
        if op == "=":
            return Proof(PROVED, "both sides are the same expression in the scores and vectors", (said, done))
        return Proof(REFUTED, "both sides are equal for all allowed values", (said, done), sure=True)
    left_over = polynomial_text(difference)
    scalar_sign = argued_sign(difference.number(), assumptions) if difference.scalar and op == "!=" else None
    if op == "=":
        never = difference.scalar and _is_nonzero_constant(difference.number())
        if not never and not any(differs(c, assumptions) for c in difference.terms.values()):
            return Proof(UNKNOWN, f"it is not settled whether {left_over} is 0", (said,))
        return Proof(REFUTED, f"left minus right is {left_over}", (said,), sure=never)
    if scalar_sign in ("+", "-") or (not difference.scalar and _independent(algebra, difference, assumptions)):
        return Proof(
            PROVED, f"left minus right is {left_over}, never 0", (said, step(f"left minus right is {left_over}"))
        )
    return Proof(UNKNOWN, "it is not settled symbolically whether both sides can be equal", (said,))


def _is_nonzero_constant(value: Scalar) -> bool:
    return not value.free_symbols and sign(value, Assumptions()) in ("+", "-")


def _independent(algebra: Algebra, difference: MatrixPolynomial, assumptions: Assumptions) -> bool:
    """Members of orthogonal families are independent, so one coefficient that is never 0 is enough."""
    if not orthogonal_terms(algebra, difference):
        return False
    return any(sign(c, assumptions) in ("+", "-") for c in difference.terms.values())


def _without_zeros(difference: MatrixPolynomial, assumptions: Assumptions) -> MatrixPolynomial:
    """Drop the terms whose coefficients are identically zero."""
    kept = {w: assumptions.put(c) for w, c in difference.terms.items() if not is_zero(c, assumptions)}
    return MatrixPolynomial(kept, difference.shape, difference.anything)


def _op_latex(op: str) -> str:
    return {"<=": r"\le", ">=": r"\ge", "!=": r"\ne"}.get(op, op)
