"""Claims that fail only at an edge: no false one is proved, no true one refuted, and few false ones hold."""

import re

import numpy as np
import pytest
from generate_edges import edge_claims

import qkv
from qkv.claims.numeric.counterexample import violated
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.markdown import read

LEAKS = re.compile(r"Error|Failed|Polif|Exception|Traceback|gap\(|<k_")


def judged(count, seed):
    false_proved, true_refuted, false_holds, false = [], [], [], 0
    for made in edge_claims(count, seed):
        verdict = qkv.check(made.text, seconds=60)[0]
        seen = (made.text, verdict.verdict, verdict.because)
        assert verdict.verdict != "malformed" and not LEAKS.search(verdict.because), seen
        false += not made.true
        false_proved += [seen] * (not made.true and verdict.verdict == "proved")
        false_holds += [seen] * (not made.true and verdict.verdict == "holds")
        true_refuted += [seen] * (made.true and verdict.verdict == "refuted")
        if verdict.verdict == "refuted":
            shows_violation(made.text, verdict.counterexample)
    assert not false_proved
    assert not true_refuted
    assert len(false_holds) <= 0.03 * false, false_holds


def shows_violation(text, counterexample):
    """The printed sides violate the comparison when the printed Python is run."""
    (claim,) = read(text)
    values: dict = {}
    exec(counterexample, {}, values)
    core = claim.statement.core
    if isinstance(core, L.Relation):
        left, right = (np.array(values[side], dtype=object) for side in ("left", "right"))
        assert any(violated(op, left, right) for op in core.ops), (text, counterexample)


@pytest.mark.parametrize("count", [23, pytest.param(46, marks=pytest.mark.slow)])
def test_some_edge_claims(count):
    judged(count, seed=6)


@pytest.mark.slow
def test_a_hundred_edge_claims():
    judged(115, seed=5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 28))
def test_a_thousand_edge_claims(seed):
    judged(230, seed)
