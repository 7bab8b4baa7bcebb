"""Decide a claim about arrays: a proof in normal form or by facts, or an exact instance that violates it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import sympy as sp

from qkv.claims.arrays import exact_values as exact
from qkv.claims.arrays.closed_forms import at_instance
from qkv.claims.arrays.context import ArrayContext, build_array_context
from qkv.claims.arrays.draws import contradicted_by_draws
from qkv.claims.arrays.errors import NoValue, Unsupported
from qkv.claims.arrays.evaluator import ArrayEvaluator
from qkv.claims.arrays.facts import indexed_items
from qkv.claims.arrays.growth import growth
from qkv.claims.arrays.instances import drawn
from qkv.claims.arrays.signs import is_zero, proved_sign, proved_zero_by_cases, proved_zero_by_conditions
from qkv.claims.arrays.special_places import false_at_angles, false_at_constants, takes_both_signs
from qkv.claims.arrays.terms import Terms
from qkv.claims.arrays.violation_search import nearest_to_violation
from qkv.claims.symbolic.printing import step
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import NEGATED_OP
from qkv.claims.syntax.rewriting import FRESH_INDICES, free_indices
from qkv.claims.verdict import Step, Verdict

N_INSTANCES = 24
MIN_AGREEING = 6


@dataclass(frozen=True)
class Outcome:
    """What was found for one case of a claim."""

    verdict: str
    because: str
    steps: tuple[Step, ...] = ()
    counterexample: str | None = None


def decide(claim: L.Claim) -> Verdict:
    """The verdict on a claim about arrays."""
    context = build_array_context(claim)
    core = claim.statement.core
    if isinstance(core, L.Relation):
        found = _every_item(context, core)
    elif isinstance(core, L.Exists):
        found = _exists(context, core)
    elif isinstance(core, L.Growth):
        found = Outcome(*growth(ArrayEvaluator(context), core))
    else:
        found = Outcome("undecided", "limits and other statements about arrays are not decided yet")
    return Verdict(claim.id, found.verdict, claim.says, found.because, found.steps, found.counterexample)


# Relations.
def _every_item(context: ArrayContext, core: L.Relation) -> Outcome:
    """A relation with an index i is meant for every item: each of those named, and another one."""
    quantifier = context.claim.statement.quantifier
    index = quantifier.index if quantifier is not None else "i"
    subs = {s for n in L.nodes(core) if isinstance(n, L.Name) and str(n) not in context.arrays for s in n.subs}
    bound = {n.index for n in L.nodes(core) if isinstance(n, L.Sum)}
    if any(index in n.subs for v in context.lets.values() for n in _free_names(v, index)):
        return Outcome("undecided", f"a definition with the index {index}, which the statement takes for every item")
    if index not in subs or index not in free_indices(core):
        return _relation(context, core)
    but = quantifier.but if quantifier is not None else ()
    named = [item for item in context.items if item != index and item not in but]
    fresh = next(c for c in FRESH_INDICES if c not in {*context.items, *bound, index})
    if any(item.isdigit() for item in context.items):
        fresh = str(1 + max(int(i) for i in context.items if i.isdigit()))
    outcomes = []
    for item in [*named, fresh]:
        statement = replace(context.claim.statement, core=L.renamed(core, index, item), quantifier=None)
        one = build_array_context(replace(context.claim, statement=statement))
        assert isinstance(one.claim.statement.core, L.Relation)
        outcomes.append(_relation(one, one.claim.statement.core))
    for verdict in ("refuted", "undecided", "holds", "proved"):
        for found in outcomes:
            if found.verdict == verdict:
                return found
    return outcomes[0]


def _free_names(value: L.Expr, index: str) -> list[L.Name]:
    """The names of a definition, if an index is free in it."""
    return [n for n in L.nodes(value) if isinstance(n, L.Name)] if index in free_indices(value) else []


def _relation(context: ArrayContext, core: L.Relation) -> Outcome:
    """A chain of comparisons: proved link by link, and tried on exact instances in any case."""
    evaluator = ArrayEvaluator(context)
    crowded = _too_many_items(evaluator)
    if crowded is not None:
        return Outcome("undecided", crowded)
    steps: list[Step] = []
    reason, shapes_differ = "", False
    proved = True
    for left, op, right in core.pairs():
        try:
            lines, link_steps = _link(evaluator, left, op, right)
        except Unsupported as why:
            lines, link_steps, reason = None, (), str(why)
            shapes_differ |= " beside a " in reason
        steps += link_steps
        if lines is None:
            proved = False
            reason = reason or "no rule shows it"
            break
    tried = _tried(context, core, N_INSTANCES if proved else 4 * N_INSTANCES)
    if not proved and not _variables(context, core):  # a comparison of constants: one evaluation decides it
        proved = tried.certain > 0
    if tried.violation is not None:
        if proved:
            because = "a bug: a proof was found, but an exact instance disagrees"
            return Outcome("undecided", because, tuple(steps), tried.violation)
        return Outcome(
            "refuted", "false for the values shown, as ball arithmetic confirms", _sides_only(steps), tried.violation
        )
    if proved and contradicted_by_draws(context, core):
        return Outcome("undecided", "a bug: a proof was found, but draws disagree", tuple(steps))
    if context.conditions and not tried.total:
        return Outcome("undecided", "no instance was found that meets what is given", tuple(steps))
    if proved:
        seen = f"; {tried.agree} of {tried.total} exact instances agree, none disagrees" if tried.agree else ""
        how = "both sides have the same normal form" if set(core.ops) == {"="} else "by the facts that are listed"
        return Outcome("proved", how + seen, tuple(steps))
    contrary = _contrary(evaluator, core) or false_at_angles(evaluator, core) or _tie_at_zero(context, core)
    contrary = contrary or takes_both_signs(context, core)
    if contrary is not None:
        return Outcome("refuted", contrary, _sides_only(steps))
    return _searched(evaluator, core, tried, reason, steps)


def _too_many_items(evaluator: ArrayEvaluator) -> str | None:
    """Why no instance has as many different entries as are named, so that a claim would say nothing."""
    for size, items in indexed_items(evaluator).items():
        most = evaluator.context.numbers[size].hi if size in evaluator.context.numbers else None
        if most is not None and len(items) > most:
            return f"{len(items)} different entries are named where {size} is at most {most}: no instance meets that"
    return None


def _searched(evaluator: ArrayEvaluator, core: L.Relation, tried: Tried, reason: str, steps: list[Step]) -> Outcome:
    """The outcome where neither a proof nor a simple instance decides: after a search for a violation."""
    if "!=" in core.ops:
        because = f"{reason}; instances cannot show that two numbers are never equal"
        return Outcome("undecided", because, tuple(steps))
    nearest = nearest_to_violation(evaluator.context, core)
    if nearest.violation is not None:
        because = "false for the values shown, as ball arithmetic confirms"
        return Outcome("refuted", because, _sides_only(steps), nearest.violation.assignment())
    if nearest.tie and nearest.place is not None and any(op in ("<", ">") for op in core.ops):
        contrary = false_at_constants(evaluator, core, nearest.place.numbers)
        if contrary is not None:
            return Outcome("refuted", contrary, _sides_only(steps))
        because = f"{reason}; both sides come as near to each other as floats can show"
        return Outcome("undecided", because, tuple(steps))
    if tried.agree >= MIN_AGREEING and not tried.unclear and not tried.narrow:
        return Outcome("holds", f"no proof found ({reason}); all of {tried.agree} exact instances agree", tuple(steps))
    return Outcome("undecided", f"{reason}; the instances do not settle it", tuple(steps))


def _variables(context: ArrayContext, core: L.Relation) -> list[L.Name]:
    """The names in a comparison that are not constants."""
    used = [n for n in L.nodes((core, context.claim.lets)) if isinstance(n, L.Name)]
    return [n for n in used if str(n) != "pi"] or [
        n for r in context.conditions for n in L.nodes(r) if isinstance(n, L.Name)
    ]


def _sides_only(steps: list[Step]) -> tuple[Step, ...]:
    return tuple(s for s in steps if s.text.startswith("left side"))


def _link(
    evaluator: ArrayEvaluator, left: L.Expr, op: str, right: L.Expr
) -> tuple[tuple[str, ...] | None, tuple[Step, ...]]:
    """The lines that prove one comparison (None: not proved), and the steps to print."""
    one, two = evaluator.pair(left, right)
    gap = one.plus(two.scaled(sp.Integer(-1)))
    said = Step(
        f"left side: {_text(one)}; right side: {_text(two)}", rf"\text{{left: {_plain(one)}; right: {_plain(two)}}}"
    )
    if op == "=":
        if all(is_zero(evaluator, c) for c in gap.parts.values()):
            return ("left minus right is 0",), (said, step("left minus right is 0 in normal form"))
        if gap.is_number:
            found = proved_zero_by_cases(evaluator, gap.number())
            equalities = any(r.ops == ("=",) for r in evaluator.context.conditions) or evaluator.given_sizes
            if found is None and equalities:
                found = proved_zero_by_conditions(evaluator, gap.number())
            if found is not None:
                return found.lines, (said, *(step(line) for line in found.lines[:12]))
        return None, (said,)
    if not gap.is_number:
        raise Unsupported("an order between arrays")
    value = gap.number()
    if op == "!=":
        for sign in (1, -1):
            found = proved_sign(evaluator, sign * value, True)
            if found is not None:
                return found.lines, (said, *(step(line) for line in found.lines[:12]))
        return None, (said,)
    upward = value if op in (">", ">=") else -value
    if op in ("<=", ">=") and is_zero(evaluator, upward):
        return ("both sides are equal",), (said, step("both sides are equal"))
    found = proved_sign(evaluator, upward, op in ("<", ">"))
    if found is None:
        return None, (said,)
    larger, smaller = ("left", "right") if op in (">", ">=") else ("right", "left")
    head = step(f"{larger} minus {smaller} is a sum of terms that are never negative:")
    return found.lines, (said, head, *(step(line) for line in found.lines[:12]))


def _text(value: Terms) -> str:
    if value.is_number:
        return str(value.number()).replace("**", "^")
    return value.key.replace("(1)*", "").replace("**", "^")


def _plain(value: Terms) -> str:
    return "".join(c if c not in "_^{}\\" else "\\" + c for c in _text(value))


def _contrary(evaluator: ArrayEvaluator, core: L.Relation) -> str | None:
    """Why a comparison of closed forms fails at an instance, where the sides hold a mean that no instance evaluates."""
    if not any(isinstance(n, L.Stat) for n in L.nodes(core)) or len(core.ops) != 1:
        return None
    (left, right), (op,) = core.sides, core.ops
    try:
        gap = evaluator.tidied(evaluator.number(left) - evaluator.number(right))
        if op == "=" and gap.is_number and gap.is_nonzero:
            return f"left minus right is {gap}"
        down = gap if op in ("<", "<=") else -gap
        strict = op in ("<=", ">=")
        if op in ("=", "!="):
            if op == "!=" and is_zero(evaluator, gap):
                return "both sides are equal for all values"
            return _somewhere(evaluator, gap, lambda x: not x.contains(0)) if op == "=" else None
        if proved_sign(evaluator, down, strict) is not None:
            return "the contrary holds for all values"
        return _somewhere(evaluator, gap, lambda x: x > 0 if op in ("<", "<=") else x < 0)
    except Unsupported:
        return None
    return None


def _somewhere(evaluator: ArrayEvaluator, gap: sp.Expr, violates: Callable[[Any], bool]) -> str | None:
    """An instance at which a closed form violates a comparison with 0, by exact numbers for what it is made of."""
    for seed in range(N_INSTANCES):
        with exact.precision():
            try:
                inst = drawn(evaluator.context, seed)
                if not exact.meets(inst):
                    continue
                value = at_instance(inst, gap)
                if violates(value):
                    where = inst.assignment().replace("\n", ", ")
                    sign = "positive" if value > 0 else "negative" if value < 0 else "not 0"
                    return f"left minus right is {str(gap).replace('**', '^')}, which is {sign} for {where}"[:400]
            except NoValue:
                continue
    return None


def _tie_at_zero(context: ArrayContext, core: L.Relation) -> str | None:
    """Whether both sides of a strict order are equal when all vectors and matrices that are free are 0."""
    free = [name for name, own in context.arrays.items() if own.kind == "" and name not in context.random]
    if not free or len(core.ops) != 1 or core.ops[0] not in ("<", ">", "!=") or context.conditions:
        return None
    evaluator = ArrayEvaluator(context)
    for name in free:
        own = context.arrays[name]
        evaluator.fix(name, Terms({}, own.rows, own.cols))
    try:
        one, two = evaluator.pair(core.sides[0], core.sides[1])
        gap = one.plus(two.scaled(sp.Integer(-1)))
        equal = all(is_zero(evaluator, c) for c in gap.parts.values())
    except Unsupported:
        return None
    return f"both sides are equal for {' = '.join(free)} = 0" if equal else None


# Instances.
@dataclass(frozen=True)
class Tried:
    """How exact instances agree with a relation."""

    total: int
    agree: int
    unclear: int
    violation: str | None = None
    certain: int = 0  # of those that agree, how many do so for certain
    narrow: tuple[str, ...] = ()  # sizes that were 1 in all that agree, though they may be larger


def _tried(context: ArrayContext, core: L.Relation, count: int = N_INSTANCES) -> Tried:
    total = agree = unclear = certain = 0
    narrow = {s for s in context.sizes() if context.numbers[s].hi is None or context.numbers[s].hi != 1}
    for seed in range(3 * count):
        if total == count:
            break
        with exact.precision():
            try:
                inst = drawn(context, seed)
                if not exact.meets(inst):
                    continue
                total += 1
                known = exact.holds(inst, core)
                if known is False:
                    return Tried(total, agree, unclear, inst.assignment())
                certain += known is True
                if known or exact.nearly_equal(inst, core):
                    agree += 1
                    narrow -= {size for size, found in inst.sizes.items() if found > 1}
                else:
                    unclear += 1
            except NoValue:
                continue
    return Tried(total, agree, unclear, certain=certain, narrow=tuple(sorted(narrow)))


# Existence.
def _exists(context: ArrayContext, core: L.Exists) -> Outcome:
    """Some values make the relation true: a witness proves it, a proof of the contrary for all values refutes it."""
    named = {str(name) for name in core.names}
    declared = {*context.arrays, *(n for n in context.numbers if n not in context.sizes() | {"n", "d"})}
    used = {str(n) for n in L.nodes((core.inner, tuple(context.conditions))) if isinstance(n, L.Name)}
    used |= {n.base for n in L.nodes(core.inner) if isinstance(n, L.Name)}
    missing = sorted((declared & used) - named)
    if missing:
        raise L.Malformed(core.at, f"{', '.join(missing)}, which is not said to exist", "every variable behind exists")
    crowded = _too_many_items(ArrayEvaluator(context))
    if crowded is not None:
        return Outcome("undecided", crowded)
    for seed in range(3 * N_INSTANCES):
        with exact.precision():
            try:
                inst = drawn(context, seed)
                if exact.meets(inst) and exact.holds(inst, core.inner) is True:
                    return Outcome("proved", "true for " + inst.assignment().replace("\n", ", ")[:250])
            except NoValue:
                continue
    if len(core.inner.ops) == 1:
        contrary = replace(core.inner, ops=(NEGATED_OP[core.inner.ops[0]],))
        try:
            lines, steps = _link(ArrayEvaluator(context), contrary.sides[0], contrary.ops[0], contrary.sides[1])
        except Unsupported as why:
            return Outcome("undecided", f"no witness was found; {why}")
        if lines is not None:
            return Outcome("refuted", "the contrary holds for all values", steps)
        place = false_at_angles(ArrayEvaluator(context), contrary)
        if place is not None:
            return Outcome("proved", place.replace("false for", "true for"))
        crossing = takes_both_signs(context, contrary)
        if crossing is not None:
            return Outcome("proved", crossing)
    return Outcome("undecided", "no witness was found among the values that were tried")
