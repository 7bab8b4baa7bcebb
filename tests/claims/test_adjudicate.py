"""The decision table: every row with a proof and evidence that lead to it, and their neighbours that do not."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
import sympy as sp

from qkv.claims.adjudicate import TABLE, Checks, Findings, Traits, adjudicate, plain_reason, row_for
from qkv.claims.numeric.evidence import Evidence
from qkv.claims.semantics.declarations import build_context
from qkv.claims.semantics.quantifiers import instances
from qkv.claims.symbolic.proof import CONDITIONAL, PROVED, REFUTED, UNKNOWN, Condition, Proof, Witness
from qkv.claims.syntax.markdown import read
from qkv.claims.syntax.nodes import Name, Num, Relation
from qkv.claims.verdict import KINDS

T_IS_ZERO = Relation((Name("t", (), (1, 1)), Num(Fraction(0), (1, 1))), ("=",), (1, 1))


class FixedChecks:
    """Stands for `Checks`, with results that a test chooses; one that is not chosen fails when it is asked for."""

    def __init__(self, **known):
        self.known = known

    def __getattr__(self, name):
        assert name in self.known, f"{name} was asked for"
        return self.known[name]


def found(proof, evidence, traits=None, **checks):
    """Row, verdict, reason and counterexample of constructed findings."""
    findings = Findings(proof, evidence, traits or Traits(), FixedChecks(**checks))
    row = row_for(findings)
    return row.name, row.verdict, row.because(findings), row.counterexample(findings)


AGREE, NOTHING = Evidence(16, 0, 0), Evidence(0, 0, 0)
SOME_DISAGREE = Evidence(10, 4, 2, "t = 1.0")
CONFIRMED = Evidence(10, 4, 2, "t = 1.0", confirmed=1)
ALL_DISAGREE = Evidence(0, 16, 0, "t = 1.0")
DRAWN = Evidence(0, 0, 7, "t = 1.0", drawn=7)
UNCLEAR = Evidence(0, 0, 16)
PROOF = Proof(PROVED, "why")
AGAINST = Proof(REFUTED, "why")
SOMETIMES = Proof(CONDITIONAL, "true when t > 1", condition=Condition("t > 1"))
OPEN = Proof(UNKNOWN, "why")

CELLS = [
    # name of the row, proof, evidence, traits, checks, verdict, part of the reason, counterexample
    ("no instance", PROOF, NOTHING, {}, {}, "undecided", "no instance was found", None),
    ("no instance", AGAINST, NOTHING, {}, {}, "undecided", "no instance was found", None),
    ("no instance", SOMETIMES, NOTHING, {}, {}, "undecided", "no instance was found", None),
    # A proof.
    ("proof, but instances of repeated limits disagree", PROOF, SOME_DISAGREE, {"limit_count": 2}, {}, "undecided",
     "a proof was found (why), but", None),
    ("proof, but instances disagree", PROOF, CONFIRMED, {}, {}, "undecided",
     "a bug: the proof (why) and 4 of 16 instances disagree", "t = 1.0"),
    ("proof, but instances disagree", PROOF, SOME_DISAGREE, {"limit_count": 1, "item_limit": True, "computed": True},
     {}, "undecided", "a bug", "t = 1.0"),
    ("proof, but instances disagree in floating point only", PROOF, SOME_DISAGREE, {}, {}, "undecided",
     "a proof was found (why); 4 of 16 instances disagree in floating point, and exact arithmetic confirms none", None),
    ("proof of a limit in n, and the formulas agree", PROOF, UNCLEAR, {"item_limit": True},
     {"item_limit": (True, "tried")}, "proved", "why; tried", None),
    ("proof of a limit in n, and the formulas disagree", PROOF, UNCLEAR, {"item_limit": True},
     {"item_limit": (False, "a bug: no")}, "undecided", "why; a bug: no", None),
    ("proof, but draws contradict it beyond their error", PROOF, replace(DRAWN, contradicted=2), {}, {}, "undecided",
     "the draws of 2 of 7 instances disagree by many times their error", "t = 1.0"),
    ("proof, but draws contradict it beyond their error", PROOF, replace(AGREE, drawn=1, contradicted=1), {}, {},
     "undecided", "a bug: the proof (why)", None),
    ("proof of a statistic that draws do not settle", PROOF, DRAWN, {}, {}, "proved", "too few to tell", None),
    ("proof, but no instance could be evaluated", PROOF, UNCLEAR, {}, {}, "undecided", "no instance could be", None),
    ("proof of a statement about no item", PROOF, NOTHING, {"vacuous": True}, {}, "proved",
     "why; not tried numerically", None),
    ("proof, and instances agree", PROOF, AGREE, {}, {}, "proved",
     "why; 16 of 16 numerical instances agree, none disagrees", None),
    ("proof, and instances agree", PROOF, Evidence(1, 0, 15), {}, {}, "proved", "1 of 16 numerical", None),
    # A refutation.
    ("refutation, and instances disagree", AGAINST, CONFIRMED, {}, {}, "refuted", "why", "t = 1.0"),
    ("refutation, and instances disagree", replace(AGAINST, sure=True), CONFIRMED, {}, {}, "refuted", "why",
     "t = 1.0"),
    ("refutation, and instances disagree", AGAINST, SOME_DISAGREE, {"computed": True}, {}, "refuted", "why", "t = 1.0"),
    ("refutation, and instances disagree", AGAINST, DRAWN, {"computed": True}, {}, "refuted", "why", "t = 1.0"),
    ("refutation that no instance confirms", AGAINST, SOME_DISAGREE, {}, {}, "undecided", "was not confirmed", None),
    ("proof of the contrary, and instances agree at most within the error of a sample", replace(AGAINST, sure=True),
     UNCLEAR, {}, {"smallest_instance": "t = 2.0"}, "refuted", "why", "t = 2.0"),
    ("proof of the contrary, and instances agree at most within the error of a sample", replace(AGAINST, sure=True),
     Evidence(3, 0, 13, rough=3), {}, {"smallest_instance": "t = 2.0"}, "refuted", "why", "t = 2.0"),
    ("refutation at a place", replace(AGAINST, place=(T_IS_ZERO,)), AGREE, {}, {"place_instance": "t = 0.0"},
     "refuted", "why", "t = 0.0"),
    ("refutation that no instance confirms", replace(AGAINST, place=(T_IS_ZERO,)), AGREE, {}, {"place_instance": None},
     "undecided", "was not confirmed", None),
    ("refutation by a witness", replace(AGAINST, witness=Witness("r", sp.Rational(1, 2))), AGREE, {}, {}, "refuted",
     "why", "r = 1/2"),
    ("refutation by a witness", replace(AGAINST, witness=Witness("q", "t*mu_a")), NOTHING,
     {"query_impossibility": True, "impossibility": True}, {}, "refuted", "why", "q = 't*mu_a'"),
    ("refutation of a limit in n, whose formulas do not go there", AGAINST, UNCLEAR, {"item_limit": True},
     {"item_limit": (False, "a bug: no")}, "refuted", "why; the formulas at large n do not go there", None),
    ("refutation that no instance confirms", AGAINST, UNCLEAR, {"item_limit": True}, {"item_limit": (True, "tried")},
     "undecided", "was not confirmed", None),
    ("refutation that no instance confirms", AGAINST, AGREE, {}, {}, "undecided",
     "the argument against it (why) was not confirmed by any of 16 instances", None),
    ("refutation that no instance confirms", replace(AGAINST, sure=True), AGREE, {}, {}, "undecided",
     "was not confirmed", None),
    # A condition, or a probability.
    ("derived probability, but the draws show another", replace(SOMETIMES, probability=0.9), replace(AGREE, share=0.8),
     {}, {}, "undecided", "a bug: the probability 0.9000 was derived; 0.800 of the draws agree", None),
    ("condition or probability", replace(SOMETIMES, probability=0.9), replace(SOME_DISAGREE, share=0.91), {}, {},
     "conditional", "true when t > 1", "t = 1.0"),
    ("condition or probability", replace(SOMETIMES, probability=0.9), AGREE, {}, {}, "conditional", "true when", None),
    ("derived condition, but instances contradict it", SOMETIMES, SOME_DISAGREE, {},
     {"condition_counterexample": "t = 3.0"}, "undecided", "a bug: true when t > 1 was derived", "t = 3.0"),
    ("condition or probability", SOMETIMES, SOME_DISAGREE, {}, {"condition_counterexample": None}, "conditional",
     "true when t > 1", "t = 1.0"),
    # No symbolic result.
    ("instances that cannot show it", OPEN, AGREE, {"too_slow": True, "any_limit": True}, {}, "undecided",
     "moves too slowly to be seen", None),
    ("instances that cannot show it", OPEN, AGREE, {"unsearched": True, "strict": True}, {}, "undecided",
     "none was sought with equal sides", None),
    ("impossibility without a proof", OPEN, AGREE, {"impossibility": True}, {}, "undecided",
     "trying some numbers does not show", None),
    ("impossibility without a proof", OPEN, NOTHING, {"impossibility": True, "query_impossibility": True}, {},
     "undecided", "trying some numbers", None),
    ("repeated limits without a proof", OPEN, AGREE, {"limit_count": 2, "any_limit": True}, {}, "undecided",
     "one after the other", None),
    ("an instance disagrees for certain", OPEN, Evidence(15, 1, 0, "t = 1.0", confirmed=1), {}, {}, "refuted",
     "as exact arithmetic confirms", "t = 1.0"),
    ("an instance disagrees for certain", OPEN, Evidence(0, 16, 0, "t = 1.0", exact=True, confirmed=16), {}, {},
     "refuted", "by exact moments of the noise", "t = 1.0"),
    ("an instance disagrees for certain", OPEN, Evidence(0, 1, 0, "r = 1.0", confirmed=1), {"impossibility": True}, {},
     "refuted", "as exact arithmetic confirms", "r = 1.0"),
    ("instances disagree, but not for certain", OPEN, ALL_DISAGREE, {}, {}, "undecided",
     "16 of 16 numerical instances speak against it, but draws and rounding refute nothing", None),
    ("instances disagree, but not for certain", OPEN, DRAWN, {}, {}, "undecided", "7 of 7 numerical instances", None),
    ("instances disagree, but not for certain", OPEN, ALL_DISAGREE, {"any_limit": True, "limit_count": 1}, {},
     "undecided", "no place on the way to a limit refutes it", None),
    ("instances agree within the error of a sample", OPEN, Evidence(16, 0, 0, rough=1), {}, {}, "undecided",
     "only within the error of a sample", None),
    ("instances agree", OPEN, AGREE, {}, {}, "holds",
     "no proof found (why); all of 16 random and adversarial instances agree", None),
    ("instances agree", OPEN, Evidence(7, 0, 0, exact=True), {}, {}, "holds", "by exact moments", None),
    ("instances agree", OPEN, Evidence(10, 0, 1), {}, {}, "holds", "all of 10", None),
    ("instances are not clear", OPEN, Evidence(10, 0, 2), {}, {}, "undecided", "not clear either", None),
    ("instances are not clear", OPEN, Evidence(10, 0, 1), {"strict": True}, {}, "undecided", "not clear either", None),
    ("instances are not clear", OPEN, Evidence(3, 0, 0), {}, {}, "undecided", "not clear either", None),
    ("instances are not clear", OPEN, NOTHING, {}, {}, "undecided", "not clear either", None),
]  # fmt: skip


@pytest.mark.parametrize(("row", "proof", "evidence", "traits", "checks", "verdict", "because", "example"), CELLS)
def test_each_cell_of_the_table(row, proof, evidence, traits, checks, verdict, because, example):
    name, kind, reason, counterexample = found(proof, evidence, Traits(**traits), **checks)
    assert (name, kind, counterexample) == (row, verdict, example)
    assert because in reason


def test_every_row_has_a_cell_and_every_name_is_a_row():
    assert {row.name for row in TABLE} == {cell[0] for cell in CELLS}
    assert len({row.name for row in TABLE}) == len(TABLE)


def test_every_combination_is_decided_and_no_contradiction_is_called_proved_or_refuted():
    """Whatever comes in, one row decides; a proof with a counterexample, or a refutation with none, is no verdict."""
    counts = (0, 1, 3, 7)
    traits = [Traits(**dict(zip(("any_limit", "strict", "item_limit"), bits, strict=True))) for bits in
              product((False, True), repeat=3)]  # fmt: skip
    for kind, agree, disagree, unclear, trait in product(
        (PROVED, REFUTED, CONDITIONAL, UNKNOWN), counts, counts, counts, traits
    ):
        evidence = Evidence(agree, disagree, unclear, "x" if disagree else None, confirmed=min(disagree, 1))
        checks = {"item_limit": (True, "tried"), "condition_counterexample": None, "smallest_instance": "y"}
        _, verdict, because, _ = found(Proof(kind, "why"), evidence, trait, **checks)
        assert verdict in KINDS and because
        if verdict in ("proved", "holds"):
            assert not disagree and kind in (PROVED, UNKNOWN)
        if verdict == "refuted":
            assert disagree and kind in (REFUTED, UNKNOWN)


def claim_of(given, then):
    (claim,) = read(f"```claim x\ngiven {given}\nthen {then}\n```")
    context = build_context(claim)
    return context, instances(context)


@pytest.mark.parametrize(
    ("given", "then", "expected"),
    [
        ("t > 0", "t > 0", Traits(strict=True)),
        ("t > 0", "t >= 0", Traits()),
        ("t > 0", "1/t -> 0 as t -> oo", Traits(limit_count=1, any_limit=True, computed=True)),
        ("t > 0", "log(t)/t -> 0 as t -> oo", Traits(limit_count=1, any_limit=True, computed=True)),
        ("t > 3", "1/log(log(t)) -> 0 as t -> oo", Traits(limit_count=1, any_limit=True, computed=True, too_slow=True)),
        ("k_1..k_n free, q free, k_a'q > k_i'q for i != a, n >= 2", "alpha_a != alpha_b",
         Traits(strict=True, unsearched=True)),
        ("k_1..k_n free, q free, k_a'q > k_i'q for i != a, n >= 2", "alpha_a >= alpha_b", Traits()),
        ("s > 0, t > 0", "1/(s*t) -> 0 as s -> oo, t -> oo", Traits(limit_count=2, any_limit=True, computed=True)),
        ("t > 0, t -> oo", "1/t >= 0", Traits(limit_count=1, any_limit=True, computed=True)),
        ("k_1..k_n orthonormal, q free", "alpha_a -> 0 as n -> oo",
         Traits(limit_count=1, any_limit=True, item_limit=True, computed=True)),
        ("mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I)", "k_a -> mu_a as eps -> 0",
         Traits(any_limit=True, computed=True)),
        ("mu_1..mu_n orthonormal, k_i ~ N(mu_i, I)", "k_a'mu_a > 0", Traits(strict=True, unsearched=True)),
        ("mu_1..mu_n orthonormal, k_i ~ N(mu_i, I)", "k_a'mu_a >= 0", Traits()),
        ("mu_1..mu_n orthonormal, k_i ~ N(mu_i, I)", "Var(k_a'mu_a) > 0", Traits(strict=True, computed=True)),
        ("r real", "no real r makes r = 1", Traits(impossibility=True)),
        ("k_1..k_n orthonormal, q free", "no query q makes c -> v_a as t -> oo",
         Traits(query_impossibility=True, impossibility=True, limit_count=1, any_limit=True, computed=True)),
        ("k_1..k_n orthonormal, n = 2", "k_i'k_i = 1 for i != a, b", Traits(vacuous=True)),
    ],
)  # fmt: skip
def test_traits_are_read_off_the_statement(given, then, expected):
    context, cases = claim_of(given, then)
    if expected.vacuous:
        cases = []
    assert Traits.of(context, cases) == expected


def test_a_condition_is_tried_on_both_sides():
    context, cases = claim_of("t real", "3 - 2*t > 0")

    def bound(op, value, context=context, cases=cases):
        relation = Relation((Name("t", (), (1, 1)), Num(Fraction(value), (1, 1))), (op,), (1, 1))
        return Checks(context, cases, Proof(CONDITIONAL, "", condition=Condition("", relation)))

    assert bound("<", "3/2").condition_counterexample is None
    assert "t = " in bound("<", "5/2").condition_counterexample  # too much: it is false of t = 2
    always = claim_of("t real", "t^2 + 1 > 0")
    assert "t = " in bound("<", "-5", *always).condition_counterexample  # too little: it is true of t >= -5 as well
    assert "t = " in bound(">", "3/2").condition_counterexample
    assert (
        Checks(context, cases, Proof(CONDITIONAL, "", condition=Condition("t < 3/2"))).condition_counterexample is None
    )
    twice = Checks(context, cases * 2, bound("<", 9)._proof)
    assert twice.condition_counterexample is None  # the condition of one case among several is not tried


def test_the_verdict_carries_the_steps_and_the_statement():
    context, cases = claim_of("t real", "t^2 > 0")
    proof = replace(AGAINST, place=(T_IS_ZERO,))
    verdict = adjudicate(context, cases, proof, AGREE)
    assert (verdict.id, verdict.verdict, verdict.says, verdict.because) == ("x", "refuted", "t^2 > 0", "why")
    values = {}
    exec(verdict.counterexample, {}, values)
    assert values["t"] == 0 == values["left"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("beyond the symbolic part (PolificationFailed); not clear", "beyond the symbolic part; not clear"),
        ("for i = a: left minus right is exp(k_a'q - gap(k_b'q))", "for i = a: left minus right is not 0 everywhere"),
        ("the sign of gap(<k_*,w>) is not known; not clear", "the symbolic part does not settle it; not clear"),
        ("left minus right is 2*t - 1", "left minus right is 2*t - 1"),
        (
            "no proof found (the sign of rest + 1); all agree",
            "no proof found (the symbolic part does not settle it); all agree",
        ),
        ("the growth of theta*exp(-t); not clear", "the symbolic part does not settle it; not clear"),
    ],
)
def test_reasons_hold_no_names_of_the_prover(text, shown):
    assert plain_reason(text) == shown


def test_a_proof_that_two_sides_differ_is_said_to_hold_nowhere_else():
    assert plain_reason("left minus right is gap(t) + 1, never 0") == "left minus right is never 0"
    assert plain_reason("left minus right is gap(t) + 1") == "left minus right is not 0 everywhere"
