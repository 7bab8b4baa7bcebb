"""Certificates: issue and verify, statements in words, and malformed data that proves nothing."""

import dataclasses
import math
import re
from fractions import Fraction

import mpmath
import numpy as np
import oracle
import pytest
from flint import arb, ctx

import qkv
from qkv.design.certificates import Certificate
from qkv.design.certificates import certificate as certificates
from qkv.design.certificates.certificate import Finding
from qkv.design.certificates.statements import KINDS, InvalidCertificate, Statement
from qkv.errors import QkvError


def changed(certificate, data=None, claims=None):
    """The same certificate with some data or claims replaced."""
    return Certificate(certificate.kind, {**certificate.data, **(data or {})}, {**certificate.claims, **(claims or {})})


def test_a_verification_is_true_where_all_holds_and_says_why_where_not(copied):
    good = copied.verify()
    assert good and good.why == "every claim holds" and len(good.findings) == 3
    bad = changed(copied, claims={"output": 1e-9}).verify()
    assert not bad and bad.why.startswith("distance of the output ≤ 1e-09: ≥ 0.0")
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


# Each function by itself

WIDE = arb(1, 0.5)


@pytest.mark.parametrize(
    ("sense", "balls", "claimed", "verdict"),
    [
        ("<=", [arb(1)], [1.0], True),
        ("<=", [arb(1)], [math.nextafter(1, 0)], False),
        ("<=", [WIDE], [1.25], None),
        ("<=", [WIDE], [1.51], True),
        ("<=", [WIDE], [0.5], None),
        ("<=", [WIDE], [0.49], False),
        ("<=", [arb(1), WIDE], [1.0], None),
        ("<=", [arb(1), WIDE], [0.9], False),
        ("<=", [arb(1), arb(2)], [1.0, 2.0], True),
        ("<=", [arb(1), arb(2)], [2.0, 1.0], False),
        (">=", [arb(1)], [1.0], True),
        (">=", [arb(1)], [math.nextafter(1, 2)], False),
        (">=", [WIDE], [0.49], True),
        (">=", [WIDE], [1.5], None),
        (">=", [WIDE], [1.51], False),
        (">=", [arb(1), WIDE], [1.0], None),
        (">=", [arb.nan()], [1.0], None),
        ("<=", [arb.nan()], [1.0], None),
        ("<=", [arb(1)] * 3, [1.0] * 2, False),
        ("<=", [], [1.0], True),
    ],
)
def test_a_claim_is_proved_refuted_or_neither(sense, balls, claimed, verdict):
    assert certificates._compare(sense, balls, claimed) is verdict


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        (1, [1.0]), (0.5, [0.5]), ("inf", [math.inf]), (["-inf", 2], [-math.inf, 2.0]),
        (np.array([1.0, 2.0]), [1.0, 2.0]),
        ((1, 2), [1.0, 2.0]), (2**53, [2.0**53]), (np.float64(0.5), [0.5]), (math.inf, [math.inf]),
    ],
)  # fmt: skip
def test_bounds_are_numbers_or_infinite_words(value, numbers):
    assert certificates._numbers("b", value) == numbers


@pytest.mark.parametrize(
    "value", [True, "1", "nan", math.nan, [1.0, None], [[1.0]], 2**53 + 1, [False], np.array([True])]
)
def test_bounds_that_are_no_numbers_are_refused(value):
    with pytest.raises(InvalidCertificate, match="the bound 'b'"):
        certificates._numbers("b", value)


@pytest.mark.parametrize(
    ("value", "sense", "text"),
    [
        (0.1234567, "<=", "0.123457"), (0.1234567, ">=", "0.123456"), (0.1234567, None, "0.1234567"),
        ([1.0, 2.0, 3.0, 4.0], "<=", "1, 2, 3, 4"), ([1.0, 2.0, 3.0, 4.0, 5.0], "<=", "1, 2, 3, 4, … 1 more"),
        ([1.0] * 7, ">=", "1, 1, 1, 1, … 3 more"),
    ],
)  # fmt: skip
def test_bounds_are_shown_rounded_outwards_and_four_of_them(value, sense, text):
    assert certificates._bound_text(value, sense) == text


def test_arrays_are_copied_and_everything_else_is_left_as_it_is():
    given = np.array([1, 2])
    copy = certificates._read_only(given)
    given[0] = 9
    assert copy.tolist() == [1.0, 2.0] and copy.dtype == np.float64 and not copy.flags.writeable
    listed = certificates._read_only([[1, 2], [3, 4]])
    assert listed.tolist() == [[1, 2], [3, 4]] and not listed.flags.writeable
    for value in ("causal", 3, 0.5, {"0": 1}, None):
        assert certificates._read_only(value) is value
    hidden = np.ma.masked_array([1.0, 2.0], [True, False])
    assert certificates._read_only(hidden) is hidden


@dataclasses.dataclass(frozen=True)
class Tried:
    """A statement that records how it is measured: with a radius that shrinks from one precision to the next."""

    radii: tuple[float, ...]
    value: float = 1.0

    def decide(self, claims, float64_first=False, senses=None):
        asked = []

        def measure(parsed, in_float64, bounds):
            asked.append((in_float64, ctx.prec))
            return {"x": arb(self.value, self.radii[min(len(asked), len(self.radii)) - 1])}

        spec = Statement((), dict, measure, lambda *a: "", senses or {"x": "<=", "y": "<="}, (), {"x": "the number"})
        return list(certificates._decide(spec, {}, claims, float64_first)), asked


def test_precision_rises_until_every_claim_is_decided():
    found, asked = Tried((1.0, 1e-3, 1e-9)).decide({"x": [1.0 + 1e-6]})
    assert asked == [(False, 128), (False, 512), (False, 2048)]
    assert [f.holds for f in found] == [True] and found[0].claim == "the number ≤ 1.00001" and found[0].why[:2] == "≤ "
    found, asked = Tried((1e-9,)).decide({"x": [1.0 + 1e-6]}, float64_first=True)
    assert asked == [(True, 128)] and found[0].holds
    found, asked = Tried((1.0, 1e-9)).decide({"x": [1.0 - 1e-6]}, float64_first=True)
    assert asked == [(True, 128), (False, 128)] and not found[0].holds
    assert found[0].claim == f"the number ≤ {1.0 - 1e-6!r}"


def test_what_the_highest_precision_cannot_tell_is_refused():
    found, asked = Tried((1.0,)).decide({"x": [1.5]})
    assert len(asked) == 3 and [f.holds for f in found] == [False]
    assert found[0].claim == "the number ≤ 1.5" and found[0].why.startswith(
        "it cannot be told from 1.5 in the precision"
    )


def test_a_claim_that_the_data_cannot_decide_is_refused_and_the_others_are_decided():
    found, asked = Tried((1e-9,)).decide({"y": [1.0], "x": [2.0]})
    assert [(f.claim, f.holds) for f in found] == [("y", False), ("the number ≤ 2", True)] and len(asked) == 1
    assert found[0].why == "the data does not hold what this claim needs"


def test_findings_show_what_was_recomputed_rounded_outwards():
    spec = Statement((), dict, dict, str, {"a": "<=", "b": ">="}, (), {})
    third = arb(1) / 3
    assert certificates._finding(spec, "a", [third], [0.5], True) == Finding("a ≤ 0.5", True, "≤ 0.333334")
    assert certificates._finding(spec, "b", [third], [0.25], True) == Finding("b ≥ 0.25", True, "≥ 0.333333")
    assert certificates._finding(spec, "a", [third], [0.1234567], False).claim == "a ≤ 0.1234567"
    assert certificates._finding(spec, "a", [WIDE], [2.0], True).why == "≤ 1.50001"
    assert certificates._finding(spec, "b", [WIDE], [0.25], True).why == "≥ 0.499999"
    wrong = certificates._finding(spec, "a", [third] * 3, [0.5] * 2, False)
    assert wrong == Finding("a", False, "2 bounds for 3 measured numbers")
    assert certificates._finding(spec, "a", [third] * 3, [0.5], True).why == "≤ 0.333334, 0.333334, 0.333334"
    assert certificates._finding(spec, "a", [third] * 2, [0.5, 0.6], True).holds


SELECTS = {"keys": [[1.0], [0.0]], "item": 0, "query": [2.0]}


def test_bounds_that_show_nothing_are_refused():
    for margin in (0.0, -1.0, [1.0, 0.0]):
        why = Certificate("selects", SELECTS, {"margin": margin}).verify().why
        assert "the bound 'margin' is not above 0, so it shows nothing" in why
    assert Certificate("selects", SELECTS, {"margin": 5e-324}).verify()
    inside = {"keys": [[0.0], [2.0], [1.0]], "item": 2, "indices": [0, 1], "weights": [0.5, 0.5]}
    for exact in (1.0, -1.0, [0.0, 0.0]):
        why = Certificate("inside", inside, {"margin_at_most": 0.0, "exact": exact}).verify().why
        assert "the bound 'exact' can only be 0" in why
    assert Certificate("inside", inside, {"margin_at_most": 0.0, "exact": 0}).verify()


def test_named_quantities_alone_are_issued():
    data = {"keys": np.eye(2), "values": np.eye(2), "query": [1.0, 0.0], "items": [0], "wanted": [1.0]}
    assert set(Certificate.issue("weights", data).claims) == {"distance", "output"}
    made = Certificate.issue("weights", data, "distance")
    leak = 1 / (1 + math.e)
    assert set(made.claims) == {"distance"} and made.claims["distance"] == pytest.approx(leak, rel=1e-14)
    assert mpmath.mpf(made.claims["distance"]) >= 1 / (1 + mpmath.e)
    assert Certificate.issue("selects", SELECTS).claims == {"margin": 1.0}


def test_statements_of_what_there_is_not_and_exclusions():
    assert Certificate("spell", {}, {}).statement == "spell" and Certificate(3, {}, {}).statement == "3"
    assert not Certificate(3, {}, {}).verify() and not Certificate(["weights"], {}, {}).verify()
    assert "above every other" in Certificate("selects", SELECTS, {"margin": 1.0}).worded({0: "first"})
    assert "key first" in Certificate("selects", SELECTS, {"margin": 1.0}).worded({0: "first"})
    for claims, all_ in (({"exact": 0.0}, True), ({"norm_at_least": math.inf}, True), ({"norm_at_least": 1.0}, False)):
        assert Certificate("no query", {}, claims).excludes_all is all_
    assert Certificate("no query", {}, {}).excludes_all is False


def test_a_verification_without_findings_shows_nothing():
    assert not certificates.Verification("x", ())
    good, bad = Finding("a", True, "1"), Finding("b", False, "2")
    assert certificates.Verification("x", (good,)) and not certificates.Verification("x", (good, bad))
    assert certificates.Verification("x", (good, bad)).why == "b: 2"
    assert certificates.Verification("x", (good,)).card().title == "Certificate holds"
    assert [row[0] for row in certificates.Verification("x", (good, bad)).card().rows] == ["✓", "✗"]


def test_the_first_certificate_of_a_file_is_loaded(tmp_path):
    one, two = Certificate("selects", SELECTS, {"margin": 1.0}), Certificate("selects", SELECTS, {"margin": 0.5})
    certificates.save([one, two], tmp_path / "two.json")
    assert Certificate.load(tmp_path / "two.json").claims == {"margin": 1.0}
    assert [c.claims["margin"] for c in certificates.load(tmp_path / "two.json")] == [1.0, 0.5]


def test_cards_show_bounds_in_their_sense():
    facts = dict(Certificate("selects", SELECTS, {"margin": 0.1234567}).card().facts)
    assert facts["margin"] == "0.123456"
    assert dict(Certificate("spell", {}, {"margin": 0.1234567}).card().facts)["margin"] == "0.1234567"


def test_missing_data_and_silent_errors_are_named():
    without = {name: value for name, value in SELECTS.items() if name != "item"}
    assert Certificate("selects", without, {"margin": 1.0}).verify().why.endswith("it lacks 'item'")
    assert (
        Certificate("selects", SELECTS, {"margin": 1.0, "more": 1.0})
        .verify()
        .why.endswith("claims unknown here: ['more'], claims missing: []")
    )
