"""Parsing of raw data: what is accepted, and what is refused with which reason."""

import numpy as np
import pytest

from qkv.design.certificates.statements import KINDS, InvalidCertificate, Statement, base


def test_every_kind_lists_its_fields_claims_and_senses():
    for name, kind in KINDS.items():
        assert isinstance(kind, Statement), name
        assert set(kind.required) <= set(kind.senses) and set(kind.senses.values()) <= {"<=", ">="}
        assert {*kind.claim_names, *kind.positive, *kind.exact} <= set(kind.senses)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: base.numbers({"x": "text"}, "x"), "no real number"),
        (lambda: base.numbers({"x": [1j]}, "x"), "no real number"),
        (lambda: base.array({"x": [1.0]}, "x", 2), "shape (1,)"),
        (lambda: base.array({"x": []}, "x", 1), "shape (0,)"),
        (lambda: base.array({"x": [np.nan]}, "x", 1), "NaN or infinite"),
        (lambda: base.indices({"x": [0, 0]}, "x", 3), "twice"),
        (lambda: base.indices({"x": [0.5]}, "x", 3), "whole numbers"),
        (lambda: base.indices({"x": [3]}, "x", 3), "from 0 to 2"),
        (lambda: base.indices({"x": []}, "x", 3), "not a list"),
        (lambda: base.scalar({"x": [1.0]}, "x"), "shape (1,)"),
        (lambda: base.tolerance({"tol": 1.0}), "not between 0 and 1"),
        (lambda: base.tolerance({"tol": np.nan}), "not between 0 and 1"),
        (lambda: base.matching("keys and values", 2, 3), "sizes (2, 3)"),
        (lambda: base.distribution({"w": [0.5, 0.4]}, "w", 2), "the sum is 0.9"),
        (lambda: base.distribution({"w": [1.5, -0.5]}, "w", 2), "must be positive"),
        (lambda: base.distribution({"w": [1.0]}, "w", 2), "do not fit"),
    ],
)
def test_malformed_data_is_refused_with_the_reason(call, why):
    with pytest.raises(InvalidCertificate) as refusal:
        call()
    assert why in str(refusal.value)


def test_well_formed_data_comes_out_as_arrays_and_integers():
    assert base.indices({"x": 2}, "x", 3) == [2]
    assert base.scalar({"x": np.float64(0.5)}, "x") == 0.5
    assert base.distribution({"w": [0.25, 0.75]}, "w", 2).tolist() == [0.25, 0.75]
    assert base.array({"x": [[1, 2]]}, "x", 2).dtype == np.float64


@pytest.mark.parametrize(
    ("value", "fine"),
    [
        (2**53, True), (2**53 + 1, False), (2**53 + 2, True), (-(2**53) - 1, False), (2**63, True), (2**63 - 1, False),
        ([1, 2**60 + 1], False), ([1, 2**60], True), (7, True),
    ],
)  # fmt: skip
def test_whole_numbers_must_be_floats_exactly(value, fine):
    if fine:
        assert base.numbers({"x": value}, "x").tolist() == np.asarray(value, dtype=float).tolist()
    else:
        with pytest.raises(InvalidCertificate, match="whole numbers that float64 rounds"):
            base.numbers({"x": value}, "x")


def test_numbers_of_more_digits_must_be_floats_exactly():
    third = np.longdouble(1) / 3
    assert base.numbers({"x": np.longdouble(0.5)}, "x") == 0.5
    with pytest.raises(InvalidCertificate, match="numbers that float64 rounds"):
        base.numbers({"x": np.array([0.5, third])}, "x")
    assert base.numbers({"x": np.array([0.1], dtype=np.float64)}, "x").tolist() == [0.1]


def test_masked_arrays_with_hidden_entries_are_refused():
    with pytest.raises(InvalidCertificate, match="hidden entries"):
        base.numbers({"x": np.ma.masked_array([1.0, 2.0], [False, True])}, "x")
    assert base.numbers({"x": np.ma.masked_array([1.0, 2.0], [False, False])}, "x").tolist() == [1.0, 2.0]
    assert base.numbers({"x": []}, "x").size == 0 and base.numbers({"x": [True]}, "x").tolist() == [1.0]


@pytest.mark.parametrize("raw", [[[0.0]], [-1.0], [2.5], [3.0], [np.nan]], ids=str)
def test_only_whole_numbers_up_to_the_largest_are_accepted(raw):
    with pytest.raises(InvalidCertificate, match="whole numbers from 0 to 2"):
        base.whole("x", np.array(raw), 2)
    assert base.whole("x", np.array([0.0, 2.0]), 2).tolist() == [0, 2]
    assert base.indices({"x": [2, 0]}, "x", 3) == [2, 0]


@pytest.mark.parametrize(("tol", "fine"), [(0.0, False), (5e-324, True), (1.0, False), (np.nextafter(1, 0), True)])
def test_a_tolerance_is_strictly_between_0_and_1(tol, fine):
    if fine:
        assert base.tolerance({"tol": tol}) == tol
    else:
        with pytest.raises(InvalidCertificate, match="not between 0 and 1"):
            base.tolerance({"tol": tol})


@pytest.mark.parametrize(
    ("weights", "fine"),
    [
        ([0.5, 0.5], True), ([1.0, 0.0], False), ([0.5, 0.5 + 2e-9], False), ([0.5, 0.5 - 2e-9], False),
        ([0.5, 0.5 + 5e-10], True), ([0.5, 0.5 - 5e-10], True),
    ],
)  # fmt: skip
def test_wanted_weights_are_positive_and_sum_to_1_within_a_billionth(weights, fine):
    if fine:
        assert base.distribution({"w": weights}, "w", 2).tolist() == weights
    else:
        with pytest.raises(InvalidCertificate, match="must be positive and sum to 1"):
            base.distribution({"w": weights}, "w", 2)


def test_sizes_fit_where_all_are_equal():
    base.matching("this", 2, 2, 2)
    with pytest.raises(InvalidCertificate, match="do not fit"):
        base.matching("this", 2, 2, 3)
    for value, dims in (([[1.0]], 1), ([1.0], 0), (np.zeros((0, 2)), 2)):
        with pytest.raises(InvalidCertificate, match="nonempty axes"):
            base.array({"x": value}, "x", dims)
    with pytest.raises(InvalidCertificate, match="NaN or infinite"):
        base.array({"x": [1.0, np.inf]}, "x", 1)


def test_blends_are_shown_with_six_items_and_rounded_weights_are_marked():
    def text(weights):
        return base.blend_text({"items": list(range(len(weights))), "wanted": weights}, lambda i: f"k{i}")

    assert text([0.25, 1 / 3]) == "0.25 of item k0 + ≈0.3333 of item k1"
    six = " + ".join(f"1 of item k{i}" for i in range(6))
    assert text([1.0] * 6) == six and text([1.0] * 7) == f"{six} + … 1 more" and text([1.0] * 9) == f"{six} + … 3 more"
    assert base.blend_text({"items": 3, "wanted": 1.0}, str) == "1 of item 3"
    assert base.blend_text({"items": [3, 4], "wanted": [1.0]}, str) == "1 of item 3"


def test_a_statement_is_not_tried_in_float64_first_unless_it_says_so():
    assert KINDS["selects"].float64_first({}) is False


def test_whole_numbers_beside_others_in_a_list_are_not_rounded_in_silence():
    for given in ([2**53 + 1, 0.5], [[2**53 + 3, 0.0], [1, 2]], [-(2**53) - 1, 1e300]):
        with pytest.raises(InvalidCertificate, match="whole numbers that float64 rounds"):
            base.numbers({"x": given}, "x")
    assert base.numbers({"x": [2**53 + 2, 0.5]}, "x").tolist() == [2**53 + 2, 0.5]
    assert base.numbers({"x": [2.0**53 + 2, 1e300, np.inf]}, "x").tolist() == [2**53 + 2, 1e300, np.inf]
