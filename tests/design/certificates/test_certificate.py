"""Certificates: issue and verify, statements in words, and malformed data that proves nothing."""

import dataclasses
import math
import re
from fractions import Fraction

import mpmath
import numpy as np
import oracle
import pytest

import qkv
from qkv.design.certificates import Certificate
from qkv.design.certificates.statements import KINDS
from qkv.errors import QkvError


def changed(certificate, data=None, claims=None):
    """The same certificate with some data or claims replaced."""
    return Certificate(certificate.kind, {**certificate.data, **(data or {})}, {**certificate.claims, **(claims or {})})


def test_a_verification_is_true_where_all_holds_and_says_why_where_not(copied):
    good = copied.verify()
    assert good and good.why == "every claim holds" and len(good.findings) == 3
    bad = changed(copied, claims={"output": 1e-9}).verify()
    assert not bad and bad.why.startswith("distance of the output ≤ 1e-09: ≤ 0.0")
    assert [f.holds for f in bad.findings].count(False) == 1
    assert "REFUSED" in bad.card().title and bad.to_json()["holds"] is False


def test_an_unknown_kind_is_refused_and_the_known_ones_are_named():
    found = Certificate("spell", {}, {}).verify()
    assert not found and all(kind in found.why for kind in KINDS)


def test_missing_and_foreign_claims_and_data_are_named(copied):
    assert "claims missing: ['distance']" in Certificate("weights", copied.data, {"output": 1.0}).verify().why
    assert "unknown here: ['certainty']" in changed(copied, claims={"certainty": 1.0}).verify().why
    assert "not checked here: ['mask']" in changed(copied, data={"mask": "causal"}).verify().why
    without = {name: value for name, value in copied.data.items() if name != "query"}
    assert "it lacks 'query'" in Certificate("weights", without, copied.claims).verify().why


def test_statements_say_what_was_checked(copied, wired, counted):
    assert copied.statement.startswith(
        "this query reads 1 of item 2 to within 0.001 in total variation, with an output"
    )
    assert (
        "; every query with these exact ratios and a leak of at most 0.001 has a norm of at least" in copied.statement
    )
    assert re.match(r"each rule's token reads as wanted to within 0\.0(0999|1\b)", wired.statement)
    assert counted.statement.startswith("of 12 keys, ") and "cannot with a margin above" in counted.statement


def test_a_count_of_exceptions_other_than_0_is_no_proof_of_exactness():
    data = {"keys": [[0.0, 0.0], [4.0, 0.0], [5.0, 1.0]], "item": 2, "indices": [0, 1], "weights": [0.5, 0.5]}
    claims = {"margin_at_most": 10.0, "exact": 1.0}
    assert Certificate("inside", data, {"margin_at_most": 10.0}).verify()
    assert not Certificate("inside", data, claims).verify()
    spans = {"A": [[1.0], [0.0]], "B": [[0.0], [1.0]], "x": [1.0], "y": [1.0]}
    assert Certificate("intersection", spans, {"gap": 2.0}).verify()
    assert not Certificate("intersection", spans, {"gap": 2.0, "exact": 1.0}).verify()


ODD = [
    None, True, "", "1", "nan", "0x1", [], [[]], [[[1.0]]], {}, {"0": 1.0}, [1.0, "2"], ["inf"], [None], [[1.0], 2.0],
    float("nan"), float("inf"), [float("nan")], [[float("inf")]], 10**400, [10**400], -1, 1.5, 2.0000001, 1e300,
    [1e300], 5e-324, 1j, [1j], np.array([1 + 2j]), np.array(["a"]), np.array([object()]), [0, 0], [3, 3], [[0.0, 0.0]],
    b"bytes",
]  # fmt: skip


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_whatever_stands_in_data_or_claims_is_answered_and_nothing_odd_is_believed(kind, genuine):
    made = genuine[kind]
    assert made.verify(), made.verify().why
    for value in ODD:
        for name in made.data:
            verification = changed(made, data={name: value}).verify()
            assert verification.why
            assert not (verification and isinstance(value, str | bytes | dict | complex | None)), (name, value)
            assert not (verification and isinstance(value, float) and not math.isfinite(value)), (name, value)
        for name in made.claims:
            verification = changed(made, claims={name: value}).verify()
            listed = value if isinstance(value, list) else [value]
            real = listed and all(isinstance(v, int | float) or v == "inf" for v in listed) and value is not True
            says_something = real and (listed[0] == "inf" or listed[0] > 0 or kind == "unreachable")
            assert says_something or not verification, (name, value)


@pytest.fixture(scope="module")
def genuine(copied, wired, counted):
    rng = np.random.default_rng(0)
    answers = qkv.design.copyable(rng.normal(size=(12, 2)))
    a, _, _, d = 3 * np.eye(4)
    clash = qkv.Memory(np.array([[0.0, 0], [1, 1], [2, 2], [5, 1]]))
    twins = rng.normal(size=(4, 2))[[0, 1, 1, 2]]
    words = qkv.design.Vocabulary.side_by_side(twins, length=4)
    unplaced = qkv.design.Sequences(qkv.design.Vocabulary(np.eye(3), np.zeros((6, 3))), [[0, 1, 0, 1, 2, 1]])
    made = [
        copied, wired, counted,
        qkv.design.blend(clash, {0: 0.25, 1: 0.5, 2: 0.25}, tol=1e-2).obstacle,
        answers[int(answers.vertices[0])].certificate,
        answers[int(answers.interior[0])].certificate,
        qkv.design.project(rng.normal(size=(4, 2)), rng.normal(size=(4, 1))).certificate,
        qkv.design.project([[1.0, 0], [0, 1], [0, 0]], [[1.0, 0], [1, 0], [0, 1]]).certificate,
        Certificate.issue(
            "no wiring",
            {"X": twins, "rules": [0], "wanted": [[0.0, 1, 0, 0]], "tol": 1e-2,
             "multipliers": [[0.0, 0, 0, 0]], "mix": [[0.0, 0, 1, 0]]},
        ),
        qkv.design.blend(np.eye(3), {0: 0.5, 1: 0.5}, tol=1e-2).within_bound,
        Certificate.issue(
            "no wiring within tol",
            {"X": twins, "rules": [0], "wanted": [[0.0, 1, 0, 0]], "tol": 0.1,
             "multipliers": [[0.0, 1, 0, 0]], "mix": [[0.0, 1, 1, 0]]},
        ),
        qkv.design.reach(np.stack([d, a, d + a]), 1, along=d, target=3 * np.eye(4)[1]).certificate,
        qkv.design.wire_texts(words, qkv.design.induction(sink=3)).certificate,
        qkv.design.wire_texts(qkv.design.Sequences(words, [[0, 1, 0, 2]]), [{1: 0, 3: [1, 2]}]).certificate,
        qkv.design.wire_texts(unplaced, qkv.design.previous()).certificate,
        Certificate.issue(
            "top item",
            {"keys": np.eye(3), "queries": [[0, 2.0, 1], [1.0, 0, 0]], "items": [1, 0],
             "first": [0, 0], "last": [2, 1]},
        ),
    ]  # fmt: skip
    return {c.kind: c for c in made}


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1.0, 1e150, 1e300])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_numbers_of_any_size_are_answered(kind, size, genuine):
    made = genuine[kind]
    for name, value in made.data.items():
        if np.ndim(value):
            assert changed(made, data={name: size * np.asarray(value)}).verify().why


def test_the_oracle_agrees_with_a_reading_that_can_be_done_by_hand():
    """Scores log 3 and 0 give 3/4 and 1/4."""
    log3 = Fraction(math.log(3))
    reading = oracle.Softmax([log3, Fraction(0)])
    assert abs(reading.distance([Fraction(1), Fraction(0)]) - mpmath.mpf(1) / 4) < 1e-16
    assert oracle.truth("selects", {"keys": [[1.0], [0.0]], "item": 0, "query": [2.0]}, {"margin": 1.0})
    assert not oracle.truth("selects", {"keys": [[1.0], [0.0]], "item": 0, "query": [2.0]}, {"margin": 1.1})


def test_an_issued_certificate_verifies_and_nothing_can_change_its_data(genuine):
    for kind, made in genuine.items():
        if kind == "copyable":  # made from the result itself, not issued
            continue
        again = Certificate.issue(kind, made.data, *made.claims)
        assert again.verify(), again.verify().why
        arrays = [value for value in again.data.values() if isinstance(value, np.ndarray)]
        assert arrays and not any(array.flags.writeable for array in arrays)


def test_data_that_states_nothing_cannot_be_certified():
    with pytest.raises(QkvError, match="certifying 'selects': the query is zero"):
        Certificate.issue("selects", {"keys": np.eye(2), "item": 0, "query": np.zeros(2)})


def test_results_are_shown_on_one_line(copied):
    verification = copied.verify()
    assert "\n" not in repr(verification)
    assert dataclasses.is_dataclass(verification) and str(verification.findings[0].holds) == "True"
