"""Prover: decide a statement symbolically, by the prover of its kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError as PolynomialError

from qkv.claims.semantics.context import Context, names_used
from qkv.claims.semantics.quantifiers import QuantifierCase
from qkv.claims.symbolic import attention_terms, impossibility, limit_statements, relations
from qkv.claims.symbolic.case_split import common_region, described_region
from qkv.claims.symbolic.conditions import assumptions_of
from qkv.claims.symbolic.errors import NeedSign, TooLarge, Unsupported, WrongShape
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.printing import scalar_text, step
from qkv.claims.symbolic.proof import CONDITIONAL, PROVED, REFUTED, UNKNOWN, Condition, Proof
from qkv.claims.symbolic.sign_analysis import is_zero, sign
from qkv.claims.symbolic.statistics import interval_probability
from qkv.claims.syntax import nodes as L


def decide(cases: Sequence[QuantifierCase]) -> Proof:
    """The symbolic outcome of a claim: proved if every case of its index is, else that of the first worst case."""
    proofs = [(case.label, _decide(case.context)) for case in cases]
    if not proofs:
        return Proof(PROVED, "there is no item that it speaks of", (step("no item meets the condition"),))
    conditional = [found for _, found in proofs if found.kind == CONDITIONAL]
    for kind in (REFUTED, UNKNOWN, CONDITIONAL):
        if kind == CONDITIONAL and len(conditional) > 1:
            return _jointly(conditional, len(proofs) - len(conditional))
        for label, found in proofs:
            if found.kind == kind:
                prefix = f"for {label}: " if label else ""
                # The share of the draws that agree is that of all cases, and is not the probability of this one.
                probability = found.probability if len(proofs) == 1 else None
                return replace(found, because=prefix + found.because, probability=probability)
    steps = tuple(s for label, p in proofs for s in ((step(f"case {label}"), *p.steps) if label else p.steps))
    return Proof(PROVED, proofs[0][1].because, steps)


def _jointly(found: list[Proof], others: int) -> Proof:
    """Several cases that are true under conditions: all are, where their regions overlap."""
    steps = tuple(s for one in found for s in one.steps)
    first = found[0].condition
    regions = [one.condition.region for one in found if one.condition is not None and one.condition.region is not None]
    joint = common_region(regions) if len(regions) == len(found) else None
    if joint is None:
        return Proof(UNKNOWN, "true under conditions that differ from item to item", steps)
    words = "each under its own condition" if others else "every item under its own condition"
    intervals = [where for where in joint[1] if where.point is None or found[0].probability is None]
    if not intervals:
        return Proof(REFUTED, f"{words}, and no {scalar_text(joint[0])} meets all of them", steps, sure=True)
    where = described_region((joint[0], intervals))
    if found[0].probability is None:
        relation = first.relation if first is not None and all(one.condition == first for one in found) else None
        return Proof(CONDITIONAL, f"true when {where}", steps, condition=Condition(where, relation, joint))
    law = first.law if first is not None else None
    if law is None:
        return Proof(UNKNOWN, "true with a probability that is not known for all items at once", steps)
    chance = float(sum((interval_probability(one, *law) for one in intervals), sp.Integer(0)))
    because = f"true with probability {chance:.4f} in the limit, that is when {where}; false otherwise"
    return Proof(CONDITIONAL, because, steps, condition=Condition(where, region=joint, law=law))


def _decide(context: Context) -> Proof:
    """The outcome of one case; what cannot be decided symbolically is UNKNOWN, with the reason."""
    try:
        return _by_kind(context)
    except WrongShape as wrong:
        if wrong.hard:
            raise L.Malformed(wrong.at, str(wrong), wrong.expected or "sides of one shape") from None
        steps = (step(f"the statement asks for {wrong}"),)
        return Proof(REFUTED, f"the shapes do not fit: {wrong}", steps, sure=True)
    except (Unsupported, TooLarge) as why:
        return Proof(UNKNOWN, str(why))
    except NeedSign as why:
        return Proof(UNKNOWN, f"the sign of {scalar_text(why.expr)} is not known")
    except L.Malformed:
        raise
    except (PolynomialError, ArithmeticError, NotImplementedError, TypeError, ValueError) as why:  # SymPy gives up
        return Proof(UNKNOWN, f"beyond the symbolic part ({type(why).__name__})")


def _by_kind(context: Context) -> Proof:
    """Dispatch by the kind of statement."""
    narrowed = any(
        context.numbers[name].lo is not None or context.numbers[name].hi is not None for name in context.random
    )
    counted = any(isinstance(node, L.Stat | L.Chance | L.Within) for node in L.nodes(context.claim.statement))
    ordered = names_used(context, *context.number_conditions)
    narrowed |= any(str(name) in context.random for name in ordered) or bool(context.noise and context.score_conditions)
    if narrowed and counted:
        raise Unsupported("a statistic of a random number under a condition")
    core = context.claim.statement.core
    if isinstance(core, L.Relation):
        return (
            limit_statements.relation_in_limit(context, core) if context.limits else relations.relation(context, core)
        )
    if isinstance(core, L.Limit):
        return limit_statements.limit_statement(context, core)
    if isinstance(core, L.Distribution):
        return _distribution(context, core)
    if isinstance(core, L.Never):
        if _has_mask(context):
            raise Unsupported("impossibility under a mask")
        return impossibility.never(context, core)
    if isinstance(core, L.Within):
        return limit_statements.within(context, core)
    if isinstance(core, L.Equivariant):
        return _equivariant(context, core)
    raise Unsupported("this kind of statement beside keys")


def _distribution(context: Context, core: L.Distribution) -> Proof:
    """Exponentials are positive and the sum of the weights is Z/Z."""
    algebra = Evaluator(context)
    head = core.name.subs[0] if core.name.subs else ""
    if core.name.base != "alpha":
        raise L.Malformed(core.at, f"'{core.name}'", "alpha")
    if head not in context.heads():
        raise L.Malformed(core.at, f"'{core.name}'", "alpha, or alpha_1 for the query q_1")
    terms = attention_terms.softmax_terms(algebra, head)
    assumptions = assumptions_of(algebra)
    weights = [power / terms.total for power in terms.powers.values() if power != 0]  # masked items have weight 0
    rest = terms.rest / terms.total
    total = sum(weights, sp.Integer(0)) + rest
    if not is_zero(total - 1, assumptions):
        return Proof(UNKNOWN, "the weights could not be summed")
    if any(sign(w, assumptions) not in ("+", ">=") for w in [*weights, rest] if w != 0):
        return Proof(UNKNOWN, "the sign of a weight is not settled")
    steps = (
        *attention_terms.softmax_steps(algebra),
        step(
            "each weight is an exponential over a sum of exponentials, so it is positive"
            + ", or 0 where a mask hides the item" * _has_mask(context),
            r"\alpha_i = e^{s_i}/Z > 0" if not _has_mask(context) else r"\alpha_i = e^{s_i}/Z > 0 \;\text{or}\; 0",
        ),
        step("the weights sum to Z/Z = 1", r"\sum_i \alpha_i = Z/Z = 1"),
    )
    signs = "positive, or 0 where a mask hides the item," if _has_mask(context) else "positive"
    return Proof(PROVED, f"every weight is {signs} and they sum to Z/Z = 1", steps)


def _has_mask(context: Context) -> bool:
    return context.causal or bool(context.masked)


def _equivariant(context: Context, core: L.Equivariant) -> Proof:
    """Softmax attention sums over a set: renaming the items renames the terms of the sum and nothing else.

    With c_i = Σ_j e^{q_i·k_j} v_j / Σ_j e^{q_i·k_j} and q, k, v each a fixed function of its own token, replacing x_i
    by x_π(i) gives Σ_j e^{q_π(i)·k_π(j)} v_π(j) / ... = c_π(i), since π runs through the same set. What could break it
    is a matrix that mentions a token, for then q, k or v of one token would depend on another.
    """
    if str(core.name) not in ("c", "alpha"):
        raise L.Malformed(core.at, f"'{core.name}'", "c or alpha")
    if not context.tokens:
        raise L.Malformed(core.at, "permutation of tokens that are not there", "let x_1 = ..., x_2 = ...")
    if _has_mask(context):
        return Proof(UNKNOWN, "a mask, which depends on the order of the tokens")
    for matrix in ("Q", "K", "V"):
        let = context.lets.get(matrix)
        for node in names_used(context, let.value) if let is not None else ():
            if node.base in ("x", "q", "k", "v", "c", "alpha"):
                return Proof(UNKNOWN, f"{matrix} depends on a token")
    if any(let.name.base in ("q", "k", "v", "c", "alpha") for let in context.lets.values()):
        return Proof(UNKNOWN, "a query, key or value is set by hand")
    steps = (
        step(
            "c_i is a ratio of two sums over all tokens j of functions of (x_i, x_j)",
            r"c_i = \sum_j e^{q_i^\top k_j} v_j / \sum_j e^{q_i^\top k_j}",
        ),
        step("a permutation runs through the same tokens, so both sums are unchanged", r"c_i(x_\pi) = c_{\pi(i)}(x)"),
    )
    return Proof(PROVED, "each output is a sum over the set of tokens, which a permutation leaves as it is", steps)
