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
