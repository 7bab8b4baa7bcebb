"""Argument checks: what is accepted, in which form it comes out, and what is refused with which words."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import qkv
from qkv.core.validation import (
    MIN_TOLERANCE,
    _odd_entry,
    booleans,
    check_confidence,
    check_range,
    finite,
    mapping,
    same_length,
    same_width,
    tensor,
    tolerance,
    whole,
)
from qkv.errors import QkvError


@pytest.mark.parametrize(
    "value", [[[1, 2], [3, 4]], np.array([[1, 2], [3, 4]], dtype=np.float32), torch.tensor([[1, 2], [3, 4]])]
)
def test_lists_arrays_and_tensors_become_the_same_float64_tensor(value):
    out = tensor("x", value, "n d")
    assert out.dtype == torch.float64 and out.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_later_change_to_the_callers_array_changes_nothing():
    mine = np.ones((2, 2))
    mine.flags.writeable = False
    taken = tensor("x", mine)
    mine.flags.writeable = True
    mine[0, 0] = 7
    assert taken[0, 0] == 1


@pytest.mark.parametrize(
    ("value", "mentions"),
    [
        ([[1.0, float("nan")]], r"1 of its 2 entries .* first at \(0, 1\)"),
        ([[float("inf")]], "infinite"),
        ([], "empty"),
        ([["a"]], r"entry \(0, 0\) is 'a'"),
        ([[1], [2, 3]], "row 1 has length 2, and row 0 has length 1"),
        (np.array([[1j]]), "type"),
        (torch.tensor([[1j]]), "complex"),
        ([1.0, 2.0], "Give a single vector"),
        (None, "type"),
    ],
)
def test_what_is_no_matrix_of_finite_numbers_is_refused(value, mentions):
    with pytest.raises(QkvError, match=mentions):
        tensor("x", value, "n d")


def test_sizes_that_do_not_fit_are_named():
    with pytest.raises(QkvError, match="2 keys and 3 values"):
        same_length("pairing", keys=torch.zeros(2, 1), values=torch.zeros(3, 1))
    with pytest.raises(QkvError, match="keys of dimension 1, query of dimension 2"):
        same_width("reading", keys=torch.zeros(2, 1), query=torch.zeros(2))


def test_sizes_that_fit_are_returned():
    assert same_length("pairing", keys=torch.zeros(2, 1), values=torch.zeros(2, 5)) == 2
    assert same_width("reading", keys=torch.zeros(4, 3), query=torch.zeros(3)) == 3


def test_sparse_and_tracked_tensors_become_plain_ones():
    assert tensor("x", torch.eye(2).to_sparse()).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert not tensor("x", torch.ones(2, requires_grad=True)).requires_grad


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), torch.tensor(3)])
def test_any_integral_type_is_a_whole_number(value):
    got = whole("asking", "n", value)
    assert got == 3 and type(got) is int


@given(st.integers(-5, 5), st.integers(-3, 3))
def test_whole_numbers_below_the_least_are_refused(value, least):
    if value >= least:
        assert whole("asking", "n", value, least) == value
    else:
        with pytest.raises(QkvError, match=f"{least} or more"):
            whole("asking", "n", value, least)


@pytest.mark.parametrize("value", [2, 2.5, np.float32(2.5), torch.tensor(2.5), Fraction(5, 2), -0.0])
def test_any_finite_real_number_becomes_a_float(value):
    assert finite("asking", "scale", value) == float(value) and type(finite("asking", "scale", value)) is float


@pytest.mark.parametrize("value", [MIN_TOLERANCE, 0.5, math.nextafter(1, 0), Fraction(1, 3), np.float64(0.1)])
def test_a_tolerance_lies_between_0_and_1(value):
    assert tolerance("asking", value) == float(value)


@pytest.mark.parametrize("value", [0, 1, 1.0, -0.1, math.nan, math.inf, True, "0.1", None, MIN_TOLERANCE / 2])
def test_other_tolerances_are_refused(value):
    with pytest.raises(QkvError, match="asking: tol is "):
        tolerance("asking", value)


@pytest.mark.parametrize("value", [0, 1, 1.5, -1.0, math.nan, "0.9", None])
def test_a_confidence_level_lies_strictly_between_0_and_1(value):
    assert check_confidence("asking", 0.95) == 0.95
    with pytest.raises(QkvError, match="asking: confidence is "):
        check_confidence("asking", value)


def test_results_beyond_float64_are_refused():
    check_range("asking", torch.ones(2), torch.zeros(0))
    for bad in (math.inf, -math.inf, math.nan):
        with pytest.raises(QkvError, match="exceed the range of float64"):
            check_range("asking", torch.ones(1), torch.tensor([1.0, bad]))


def test_boolean_masks_of_any_array_type_are_accepted():
    for mask in ([True, False], np.array([True, False]), torch.tensor([True, False])):
        assert booleans("asking", mask).tolist() == [True, False]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: whole("asking", "n", 2.0), "n is 2.0"),
        (lambda: whole("asking", "n", True), "n is True"),
        (lambda: whole("asking", "n", "3"), "n is '3'"),
        (lambda: whole("asking", "n", None), "n is None"),
        (lambda: booleans("asking", [[True], [True, False]]), "not an array"),
        (lambda: booleans("asking", ["yes", "no"]), "not an array"),
        (lambda: booleans("asking", np.array([0.0, -np.inf])), "holds torch.float64"),
        (lambda: booleans("asking", torch.tensor([0, 1])), "holds torch.int64"),
        (lambda: finite("asking", "scale", "2"), "scale is '2'"),
        (lambda: finite("asking", "scale", None), "scale is None"),
        (lambda: finite("asking", "scale", [1.0, 2.0]), "Give a finite number"),
        (lambda: finite("asking", "scale", 10**400), "Give a finite number"),
    ],
)
def test_a_bad_argument_is_refused_with_its_reason(call, says):
    with pytest.raises(QkvError) as refusal:
        call()
    assert says in str(refusal.value)


class Series:
    """What a pandas Series offers here; its truth value is ambiguous, so that `not series` raises."""

    ndim = 1

    def __init__(self, labels, numbers):
        self.index, self.numbers = labels, numbers

    def to_dict(self):
        return dict(zip(self.index, self.numbers, strict=True))

    def __bool__(self):
        raise ValueError("The truth value of a Series is ambiguous.")


def test_mappings_and_series_become_dicts():
    for value in ({0: 0.5, 1: 0.5}, Series([0, 1], [0.5, 0.5])):
        assert mapping("blending", "weights", value, "Give weights") == {0: 0.5, 1: 0.5}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({}, "there are no weights"), (Series([], []), "there are no weights"), (np.ones(2), "are an ndarray"),
        (Series([0, 0], [0.5, 0.5]), "a label twice"), ([(0, 1.0)], "are a list"), (None, "are None"),
        (torch.ones(2), "are a Tensor"), ("ab", "are a str"), ({0, 1}, "are a set"),
    ],
)  # fmt: skip
def test_what_is_no_mapping_is_refused(value, says):
    with pytest.raises(QkvError, match=says):
        mapping("blending", "weights", value, "Give weights")


def test_a_series_of_weights_designs_the_query_of_the_dict():
    by_series = qkv.design.blend(np.eye(3), Series([0, 2], [0.25, 0.75]))
    assert torch.equal(by_series.query, qkv.design.blend(np.eye(3), {0: 0.25, 2: 0.75}).query)
    wired = qkv.design.wire(np.eye(3), {0: Series([1, 2], [0.5, 0.5])}, {0: [1.0]})
    assert wired.possible


MASKED = np.ma.MaskedArray([1.0, 2.0], mask=[False, True])


@pytest.mark.parametrize("value", [MASKED, np.ma.MaskedArray(np.eye(2)), [MASKED, MASKED], (MASKED,)])
def test_masked_arrays_are_refused_since_their_mask_would_be_lost(value):
    for call in (lambda: tensor("x", value), lambda: booleans("masking", value), lambda: qkv.Memory(value)):
        with pytest.raises(QkvError, match="is a masked array"):
            call()
    with pytest.raises(QkvError, match="masked"):
        finite("scaling", "scale", np.ma.masked)


def test_a_message_about_an_absurd_argument_is_one_short_line():
    class Silent:
        def __repr__(self):
            raise RuntimeError

    for value in (-(10**5000), "x" * 10**6, Silent(), np.eye(200), [[1] * 999] * 999):
        with pytest.raises(QkvError) as refusal:
            whole("counting", "n", value)
        assert "\n" not in refusal.value.problem and len(refusal.value.problem) < 80


def test_a_label_that_stands_twice_is_refused_whatever_the_object_is():
    class Series:
        """Like pandas', without the number of its dimensions."""

        index = ("a", "a")

        def to_dict(self):
            return {"a": 1.0}

    with pytest.raises(QkvError, match="holds a label twice"):
        mapping("blending", "weights", Series(), "Give a dict")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], ""), ([[], []], ""), ([1, 2], ""), ([[1, 2], []], "row 1 has length 0, and row 0 has length 2"),
        ([[1], 2], "row 1 is no list, and row 0 has length 1"), ([1, "z"], "entry 1 is 'z'"),
        ("z", "it is of type str"),
        ([[[1, 2], [3]]], "row 1 has length 1, and row 0 has length 2"), ([[1, None]], "entry (0, 1) is None"),
    ],
)  # fmt: skip
def test_what_keeps_lists_from_being_an_array_is_named(value, says):
    assert _odd_entry(value) == says


def test_whole_numbers_begin_at_one_unless_told_otherwise():
    assert whole("counting", "n", 1) == 1
    with pytest.raises(QkvError):
        whole("counting", "n", 0)
