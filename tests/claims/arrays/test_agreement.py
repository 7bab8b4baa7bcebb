"""The normal form of an expression and the expression itself have the same value at exact instances."""

from pathlib import Path

import pytest
from test_statements import read_statements

from qkv.claims.arrays import exact_values as exact
from qkv.claims.arrays.closed_forms import terms_at
from qkv.claims.arrays.context import build_array_context, is_about_arrays
from qkv.claims.arrays.errors import NoValue, Unsupported
from qkv.claims.arrays.evaluator import ArrayEvaluator
from qkv.claims.arrays.instances import drawn
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.markdown import read

CLAIMS = Path(__file__).parents[1]
FILES = sorted((CLAIMS / "textbook").glob("*.md"))
FRESH = [
    p for p in sorted((CLAIMS / "hard_statements").glob("fresh_*.md")) if " in R^" in p.read_text(encoding="utf-8")
]


def sides_of(claim):
    for node in L.nodes(claim.statement.core):
        if isinstance(node, L.Relation):
            yield from node.pairs()


def agreements(context, left, right, seeds):
    """For each seed, whether the balls of both ways to evaluate the two sides overlap."""
    evaluator = ArrayEvaluator(context)
    try:
        forms = evaluator.pair(left, right)
    except Unsupported:
        return
    for seed in seeds:
        with exact.precision():
            try:
                inst = drawn(context, seed)
                values = exact.pair(inst, left, right)
                for form, value in zip(forms, values, strict=True):
                    found = terms_at(inst, form)
                    yield all(x.overlaps(y) for x, y in zip(found.entries(), value.entries(), strict=True))
            except NoValue:
                continue


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_normal_forms_have_the_value_of_the_expression(path):
    assert compared(path, 2) > 50


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES + FRESH, ids=lambda p: p.stem)
def test_all_normal_forms_have_the_value_of_the_expression(path):
    assert compared(path, 1) > 100


def compared(path, step):
    """How many values were compared, of every step-th statement; all of them agree."""
    count = 0
    for statement in list(read_statements(path))[::step]:
        (claim,) = read(statement.block())
        if not isinstance(claim, L.Claim) or not is_about_arrays(claim):
            continue
        if any(isinstance(n, L.Stat) for n in L.nodes(claim.statement)):
            continue  # a mean has no value at an instance
        try:
            context = build_array_context(claim)
        except L.Malformed:
            continue
        for left, _, right in sides_of(claim):
            found = list(agreements(context, left, right, (1, 2, 4, 5, 7)))
            assert all(found), statement
            count += len(found)
    return count
