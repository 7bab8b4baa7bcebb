"""Every fact about the expressions of the tagged statements holds at exact instances."""

from pathlib import Path

import pytest
from test_statements import read_statements

from qkv.claims.arrays import exact_values as exact
from qkv.claims.arrays.closed_forms import at_instance
from qkv.claims.arrays.context import build_array_context, is_about_arrays
from qkv.claims.arrays.errors import NoValue, Unsupported
from qkv.claims.arrays.evaluator import ArrayEvaluator
from qkv.claims.arrays.facts import Fact, Library
from qkv.claims.arrays.instances import drawn
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.markdown import read
from qkv.claims.syntax.rewriting import free_indices

CLAIMS = Path(__file__).parents[1]
STATEMENTS = [*sorted((CLAIMS / "textbook").glob("*.md")), *sorted((CLAIMS / "hard_statements").glob("fresh_*.md"))]
FILES = [path for path in STATEMENTS if " in R^" in path.read_text(encoding="utf-8")]  # those about arrays


def facts_of(context, relation):
    """The facts about the difference of both sides."""
    evaluator = ArrayEvaluator(context)
    for left, _, right in relation.pairs():
        try:
            one, two = evaluator.pair(left, right)
            if one.is_number:
                yield from Library(evaluator).about(evaluator.tidied(one.number() - two.number()))
        except Unsupported:
            continue


def violations(context, facts, seeds):
    """Facts that are certainly violated at an instance, and how many were compared."""
    found, compared = [], 0
    for seed in seeds:
        with exact.precision():
            try:
                inst = drawn(context, seed)
                if not exact.meets(inst):
                    continue
            except NoValue:
                continue
            for fact in facts:
                try:
                    value = at_instance(inst, fact.value)
                except (NoValue, NotImplementedError, KeyError):
                    continue
                compared += 1
                if value < 0 or (fact.strict and value <= 0):
                    found.append((fact, inst.assignment()))
    return found, compared


def contexts(path, step):
    for statement in list(read_statements(path))[::step]:
        (claim,) = read(statement.block())
        core = claim.statement.core if isinstance(claim, L.Claim) else None
        if not isinstance(core, L.Relation) or not is_about_arrays(claim):
            continue
        if any(isinstance(n, L.Stat) for n in L.nodes(claim.statement)) or "i" in free_indices(core):
            continue  # a mean has no value at an instance, and i stands for every item
        try:
            yield statement, build_array_context(claim), core
        except L.Malformed:
            continue


def checked(path, step, seeds):
    compared = 0
    for statement, context, core in contexts(path, step):
        found, count = violations(context, list(facts_of(context, core)), seeds)
        assert not found, (statement, found[:2])
        compared += count
    return compared


def test_facts_hold_at_instances():
    assert sum(checked(path, 40, (2, 5)) for path in FILES) > 200


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_all_facts_hold_at_instances(path):
    assert checked(path, 1, (1, 2, 5, 6, 14)) > 200


def test_a_wrong_fact_is_noticed():
    (claim,) = read("```claim x\ngiven z in R^n\nthen max(z) <= norm(z)\n```")
    context = build_array_context(claim)
    ((fact, *_),) = [list(facts_of(context, claim.statement.core))]
    found, compared = violations(context, [fact, Fact(-1 - fact.value, "wrong")], (2, 5))
    assert compared and found and found[0][0].why == "wrong"
