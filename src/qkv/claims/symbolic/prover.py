"""Symbolic decision of one statement: identities, inequalities, distributions, and the way to the other provers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError as PolynomialError

from qkv.claims.semantics.context import Context, Range, built, on_columns, reached
from qkv.claims.symbolic.basis_sums import sized
from qkv.claims.symbolic.evaluator import Algebra, Unsupported, WrongShape, fit
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial, Scalar, TooLarge
from qkv.claims.symbolic.proof import (
    CONDITIONAL,
    PROVED,
    REFUTED,
    UNKNOWN,
    Proof,
    Step,
    element,
    element_latex,
    latex,
    reading_steps,
    shown,
    step,
)
from qkv.claims.symbolic.sign_analysis import Assumptions, NeedSign, is_zero, sign
from qkv.claims.syntax import nodes as L


def decide(claim: L.Claim) -> Proof:
    """What symbolic argument makes of a claim; numerical evidence is gathered elsewhere."""
    outcomes = [(said, _decide(one)) for said, one in instances(claim)]
    if not outcomes:
        return Proof(PROVED, "there is no item that it speaks of", (step("no item meets the condition"),))
    for kind in (REFUTED, UNKNOWN, CONDITIONAL):
        for said, found in outcomes:
            if found.kind == kind:
                prefix = f"for {said}: " if said else ""
                return replace(found, because=prefix + found.because)
    steps = tuple(s for said, o in outcomes for s in ((step(f"case {said}"), *o.steps) if said else o.steps))
    return Proof(PROVED, outcomes[0][1].because, steps)


def instances(claim: L.Claim) -> list[tuple[str, L.Claim]]:
    """One claim for each case of its index: every named item that it allows, and an item without a name."""
    statement = claim.statement
    quantifier = kept = statement.quantifier
    if quantifier is not None and quantifier.index == "i":
        kept = None
    elif "i" in _free_indices(statement.core, claim):  # before the index that is quantified, which may depend on it
        quantifier = L.Quantifier("i", (), statement.at)
    else:
        kept = None
    if quantifier is None:
        return [("", claim)]
    world = built(claim)
    cases = [item for item in world.items if item not in quantifier.but]
    columns = on_columns(world, quantifier.index, statement.core)
    if columns:  # columns of A and B are no items, and a column may be each of those that are named
        bases = {name.lower() for name in world.bases}
        parts = (*claim.lets, statement)
        named = {s for n in reached(world, *parts) if n.base in bases for s in n.subs}
        bound = {n.index for p in parts for n in L.nodes(p) if isinstance(n, L.Sum | L.Quantifier)} | {"i"}
        cases += sorted(named - {*cases, *quantifier.but, *bound})
    fresh = "other"
    while fresh in {*world.items, *cases}:
        fresh += "s"
    low = world.numbers["n"].hi if "n" in world.numbers else None
    if columns or (not world.closed and (low is None or low > len(world.items))):
        cases.append(fresh)
    out = []
    for item in cases:
        core, when, stands = L.renamed((statement.core, statement.when, kept), quantifier.index, item)
        said = f"{quantifier.index} another item" if item == fresh else f"{quantifier.index} = {item}"
        one = replace(claim, statement=replace(statement, core=core, when=when, quantifier=stands))
        inner = instances(one) if stands else [("", one)]
        out += [(f"{said}, {more}" if more else said, case) for more, case in inner]
    return out


def _free_indices(core: L.Node, claim: L.Claim) -> set[str]:
    defined = {str(let.name) for let in claim.lets}
    declared = {g.name for g in claim.given if isinstance(g, L.Gaussian)}
    bound = {n.index for n in L.nodes(core) if isinstance(n, L.Sum)}
    found: set[str] = set()
    for node in L.nodes(core):
        if isinstance(node, L.Name) and str(node) not in defined and node not in declared:
            found |= {s for s in node.subs if s not in bound}
    return found


def _decide(claim: L.Claim) -> Proof:
    world = built(claim)
    try:
        return _core(world)
    except WrongShape as wrong:
        if wrong.hard:
            raise L.Malformed(wrong.at, str(wrong), wrong.found or "sides of one shape") from None
        return Proof(
            REFUTED,
            f"the shapes do not fit: {wrong}",
            (step(f"the statement asks for {wrong}"),),
            sure=True,
        )
    except (Unsupported, TooLarge) as why:
        return Proof(UNKNOWN, str(why))
    except NeedSign as why:
        return Proof(UNKNOWN, f"the sign of {shown(why.expr)} is not known")
    except L.Malformed:
        raise
    except (PolynomialError, ArithmeticError, NotImplementedError, TypeError, ValueError) as why:  # SymPy gives up
        return Proof(UNKNOWN, f"beyond the symbolic part ({type(why).__name__})")


def _core(world: Context) -> Proof:
    narrowed = any(world.numbers[name].lo is not None or world.numbers[name].hi is not None for name in world.random)
    counted = any(isinstance(node, L.Stat | L.Chance | L.Within) for node in L.nodes(world.claim.statement))
    if narrowed and counted:
        raise Unsupported("a statistic of a random number under a condition")
    from qkv.claims.symbolic import impossibility, limit_statements

    core = world.claim.statement.core
    if isinstance(core, L.Relation):
        return limit_statements.relation_in_limit(world, core) if world.limits else relation(world, core)
    if isinstance(core, L.Limit):
        return limit_statements.limit_statement(world, core)
    if isinstance(core, L.Distribution):
        return _distribution(world, core)
    if isinstance(core, L.Never):
        return impossibility.never(world, core)
    if isinstance(core, L.Within):
        return limit_statements.within(world, core)
    return _equivariant(world, core)


Moving = tuple[tuple[str, Scalar], ...]
"""Numbers and where they go, in their order."""


def frame_of(algebra: Algebra, moving: Moving = ()) -> Assumptions:
    """The ranges of the numbers; x > y between numbers becomes x = y + something positive."""
    world = algebra.world
    ranges = {algebra.symbol(n): r for n, r in world.numbers.items() if algebra.symbol(n).is_Symbol}
    count = len(world.items)
    if "n" in world.numbers and algebra.symbol("n").is_Symbol and not world.closed:
        ranges[algebra.symbol("n")] = ranges[algebra.symbol("n")].meet(">=", Fraction(count))
    frame = Assumptions(ranges, frozenset(algebra.bounded))
    for order in world.orders:
        frame = _ordered(algebra, frame, order, moving)
    return frame


def _outrun(order: L.Relation, moving: Moving) -> bool:
    """Whether a condition says x > bound of a number that goes to infinity, and so past it, before the bound moves."""
    (left, right), (op,) = order.sides, order.ops
    going = [name for name, _ in moving]
    for one, other, how in ((left, right, op), (right, left, TURNED.get(op, op))):
        to = dict(moving).get(str(one)) if isinstance(one, L.Name) else None
        if to is None:
            continue
        first = going.index(str(one))
        later = all(str(n) not in going or going.index(str(n)) > first for n in L.nodes(other) if isinstance(n, L.Name))
        if later and ((to == sp.oo and how in (">", ">=")) or (to == -sp.oo and how in ("<", "<="))):
            return True
    return False


TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _ordered(algebra: Algebra, frame: Assumptions, order: L.Relation, moving: Moving) -> Assumptions:
    (left, right), (op,) = order.sides, order.ops
    if _outrun(order, moving):
        return frame
    going = {name for name, _ in moving}
    if any(isinstance(n, L.Name) and str(n) in going for n in L.nodes(order)):
        raise Unsupported("a condition on a number that goes somewhere else")
    if not isinstance(left, L.Name):
        left, right, op = right, left, TURNED.get(op, op)
    if not isinstance(left, L.Name):
        raise Unsupported("a condition that is not of the form x > expression")
    symbol, bound = algebra.symbol(str(left)), algebra.number(right)
    taken = {s for s, _ in frame.fixed}
    turned = TURNED.get(op, op)
    if not (symbol.is_Symbol and _implied(frame, symbol, bound, op)) and isinstance(right, L.Name):
        other = algebra.symbol(str(right))  # say it of the other one, if that is free to move
        free = other.is_Symbol and other not in taken and other in frame.ranges
        if free and _implied(frame, other, symbol, turned):
            left, symbol, bound, op = right, other, symbol, turned
    if not symbol.is_Symbol or bound.has(symbol) or symbol in taken:
        raise Unsupported("conditions that depend on each other")
    if not _implied(frame, symbol, bound, op):
        raise Unsupported(f"a range of {left} beside another condition on it")
    slack: Scalar = sp.Integer(0)
    if op in (">", "<"):
        slack = sp.Symbol(f"gap({left})", positive=True)
    elif op in (">=", "<="):
        slack = sp.Symbol(f"gap({left})", nonnegative=True)
    return frame.fix(symbol, bound + slack if op in (">", ">=", "=") else bound - slack)


def _implied(frame: Assumptions, symbol: Scalar, bound: Scalar, op: str) -> bool:
    """Whether a number that is only known to lie beyond a bound must lie in its range too."""
    where = frame.ranges.get(symbol, Range())
    for end, is_open, ops, good in (
        (where.lo, where.lo_open, (">", ">=", "="), "+"),
        (where.hi, where.hi_open, ("<", "<=", "="), "-"),
    ):
        if end is None:
            continue
        how = sign(bound - sp.Rational(end.numerator, end.denominator), frame) if op in ops else None
        weak = (">=" if good == "+" else "<=", "0")
        if how != good and not (how in weak and (op in ("<", ">") or not is_open)):
            return False
    return True


def relation(
    world: Context, core: L.Relation, algebra: Algebra | None = None, frame: Assumptions | None = None
) -> Proof:
    """A chain of identities and inequalities, link by link."""
    algebra = algebra or Algebra(world)
    steps: list[Step] = []
    because = ""
    for left, op, right in core.pairs():
        one, two = sized(left, right, algebra.value(left), algebra.value(right))
        fit(one, two, core.at)
        frame = frame_of(algebra)
        found = link(algebra, one, op, two, frame)
        if found.kind != PROVED:
            return replace(found, steps=(*reading_steps(algebra), *steps, *found.steps))
        steps += found.steps
        because = found.because
    return Proof(PROVED, because, (*reading_steps(algebra), *steps))


def link(algebra: Algebra, one: MatrixPolynomial, op: str, two: MatrixPolynomial, frame: Assumptions) -> Proof:
    """One comparison."""
    difference = _tidy(one.minus(two), frame)
    left, right = element(one), element(two)
    said = Step(f"left side: {left}; right side: {right}", rf"{element_latex(one)} \;{_tex(op)}\; {element_latex(two)}")
    if op in ("=", "!="):
        return _equality(algebra, difference, op, frame, said)
    if not difference.scalar and not difference.anything:
        raise WrongShape((0, 0), "an order between vectors", True, "numbers on both sides")
    value = difference.number()
    how = sign(value, frame)
    good = {"<": ("-",), "<=": ("-", "<=", "0"), ">": ("+",), ">=": ("+", ">=", "0")}[op]
    bad = {"<": ("+", ">=", "0"), "<=": ("+",), ">": ("-", "<=", "0"), ">=": ("-",)}[op]
    shown_sign = {"+": "positive", "-": "negative", ">=": "never negative", "<=": "never positive", "0": "zero"}
    if how in good:
        tidy = sp.factor(value) if value.count_ops() < 60 else value
        text = f"left minus right is {shown(tidy)}, which is {shown_sign[how]} for all allowed values"
        return Proof(
            PROVED,
            f"left minus right is {shown_sign[how]} for all allowed values",
            (said, Step(text, f"{latex(value)} {_tex(op)} 0")),
        )
    if how in bad:
        because = f"left minus right is {shown_sign[how]} for all allowed values"
        return Proof(REFUTED, because, (said,), sure=True)
    from qkv.claims.symbolic.thresholds import threshold, tie

    level = tie(algebra, value, frame) if op in ("<", ">") and how in (">=", "<=") else None
    if level is not None:
        name, at = level
        because = f"both sides are equal for {name} = {at}"
        return Proof(REFUTED, because, (said, step(because)), notes={"tie": f"{name} = {at}"})
    found = threshold(algebra, value if op in (">", ">=") else -value, op in (">=", "<="), frame)
    if found is not None:
        return Proof(
            CONDITIONAL,
            f"true exactly when {found}",
            (said, step(f"solving left minus right for the scale: {found}")),
            notes={"when": found},
        )
    return Proof(UNKNOWN, "the sign of left minus right is not settled symbolically", (said,))


def _equality(algebra: Algebra, difference: MatrixPolynomial, op: str, frame: Assumptions, said: Step) -> Proof:
    if not difference.terms:
        done = step("left minus right is 0 for all allowed values", "0 = 0")
        if op == "=":
            return Proof(PROVED, "both sides are the same expression in the scores and vectors", (said, done))
        return Proof(REFUTED, "both sides are equal for all allowed values", (said, done), sure=True)
    left_over = element(difference)
    scalar_sign = sign(difference.number(), frame) if difference.scalar else None
    if op == "=":
        never = scalar_sign in ("+", "-") and not difference.number().free_symbols
        return Proof(REFUTED, f"left minus right is {left_over}", (said,), sure=never)
    if scalar_sign in ("+", "-") or (not difference.scalar and _independent(algebra, difference, frame)):
        return Proof(
            PROVED, f"left minus right is {left_over}, never 0", (said, step(f"left minus right is {left_over}"))
        )
    return Proof(UNKNOWN, "it is not settled symbolically whether both sides can be equal", (said,))


def _independent(algebra: Algebra, difference: MatrixPolynomial, frame: Assumptions) -> bool:
    """Members of one orthogonal family are independent, so one coefficient that is never 0 is enough."""
    families = {word[0].name.split("_")[0] for word in difference.terms if len(word) == 1}
    if len(families) != 1 or any(len(w) != 1 or w[0].name.endswith("+") for w in difference.terms):
        return False
    family = algebra.world.families.get(families.pop())
    if family is None or family.kind not in ("orthonormal", "orthogonal"):
        return False
    return any(sign(c, frame) in ("+", "-") for c in difference.terms.values())


def _tidy(difference: MatrixPolynomial, frame: Assumptions) -> MatrixPolynomial:
    """Drop the words whose coefficients are identically zero."""
    kept = {w: frame.put(c) for w, c in difference.terms.items() if not is_zero(c, frame)}
    return MatrixPolynomial(kept, difference.shape, difference.anything)


def _tex(op: str) -> str:
    return {"<=": r"\le", ">=": r"\ge", "!=": r"\ne"}.get(op, op)


def _distribution(world: Context, core: L.Distribution) -> Proof:
    """Exponentials are positive and the sum of the weights is Z/Z."""
    from qkv.claims.symbolic import attention_terms

    algebra = Algebra(world)
    head = core.name.subs[0] if core.name.subs else ""
    if core.name.base != "alpha":
        raise L.Malformed(core.at, f"'{core.name}'", "alpha")
    if head not in world.heads():
        raise L.Malformed(core.at, f"'{core.name}'", "alpha, or alpha_1 for the query q_1")
    reading = attention_terms.reading(algebra, head)
    frame = frame_of(algebra)
    weights = [power / reading.total for power in reading.powers.values()]
    rest = reading.rest / reading.total
    total = sum(weights, sp.Integer(0)) + rest
    if not is_zero(total - 1, frame):
        return Proof(UNKNOWN, "the weights could not be summed")
    if any(sign(w, frame) not in ("+", ">=") for w in [*weights, rest]) and any(w != 0 for w in weights):
        return Proof(UNKNOWN, "the sign of a weight is not settled")
    steps = (
        *reading_steps(algebra),
        step(
            "each weight is an exponential over a sum of exponentials, so it is positive", r"\alpha_i = e^{s_i}/Z > 0"
        ),
        step("the weights sum to Z/Z = 1", r"\sum_i \alpha_i = Z/Z = 1"),
    )
    return Proof(PROVED, "every weight is positive and they sum to Z/Z = 1", steps)


def _equivariant(world: Context, core: L.Equivariant) -> Proof:
    """Softmax attention sums over a set: renaming the items renames the terms of the sum and nothing else.

    With c_i = Σ_j e^{q_i·k_j} v_j / Σ_j e^{q_i·k_j} and q, k, v each a fixed function of its own token, replacing x_i
    by x_π(i) gives Σ_j e^{q_π(i)·k_π(j)} v_π(j) / ... = c_π(i), since π runs through the same set. What could break it
    is a matrix that mentions a token, for then q, k or v of one token would depend on another.
    """
    if str(core.name) not in ("c", "alpha"):
        raise L.Malformed(core.at, f"'{core.name}'", "c or alpha")
    if not world.tokens:
        raise L.Malformed(core.at, "permutation of tokens that are not there", "let x_1 = ..., x_2 = ...")
    for matrix in ("Q", "K", "V"):
        let = world.lets.get(matrix)
        for node in reached(world, let.value) if let is not None else ():
            if node.base in ("x", "q", "k", "v", "c", "alpha"):
                return Proof(UNKNOWN, f"{matrix} depends on a token")
    if any(let.name.base in ("q", "k", "v", "c", "alpha") for let in world.lets.values()):
        return Proof(UNKNOWN, "a query, key or value is set by hand")
    steps = (
        step(
            "c_i is a ratio of two sums over all tokens j of functions of (x_i, x_j)",
            r"c_i = \sum_j e^{q_i^\top k_j} v_j / \sum_j e^{q_i^\top k_j}",
        ),
        step("a permutation runs through the same tokens, so both sums are unchanged", r"c_i(x_\pi) = c_{\pi(i)}(x)"),
    )
    return Proof(PROVED, "each output is a sum over the set of tokens, which a permutation leaves as it is", steps)
