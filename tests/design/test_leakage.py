"""leak: the weight outside the wanted items, and the scale from which it is certainly small."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv import Memory, QkvError
from qkv.design import copy, leak


@given(seed=st.integers(0, 10_000), tol=st.floats(1e-9, 0.4), size=st.floats(0.01, 50))
def test_at_the_scale_the_leak_is_within_tol_and_just_below_it_is_not(seed, tol, size):
    random = np.random.default_rng(seed)
    memory, query = Memory(random.standard_normal((6, 3))), size * random.standard_normal(3)
    found = leak(memory, query, tol=tol)
    assert found.scale is not None, "the highest score is alone, so some scale does"
    assert found.certificate.verify()
    top = int((memory.keys @ torch.from_numpy(query)).argmax())
    assert found.items == (top,)
    missed = 1 - memory.read(query, scale=found.scale).weights[top]
    assert missed <= tol * (1 + 1e-6) + 1e-12
    if found.scale > 0:
        assert 1 - memory.read(query, scale=found.scale * (1 - 1e-4)).weights[top] > tol * (1 - 1e-9)
    else:
        assert tol >= 5 / 6


def test_orthonormal_keys_have_the_closed_form():
    memory = Memory.orthonormal(10, 16)
    for wanted in ([3], [1, 4]):
        query = memory.keys[wanted].sum(0)
        m, tol = len(wanted), 1e-4
        assert leak(memory, query, wanted, tol=tol).scale == pytest.approx(math.log((10 - m) * (1 - tol) / (m * tol)))
    design = copy(memory, 3, 1e-4)
    assert leak(memory, design.query, [3], tol=1e-4).scale == pytest.approx(1.0, rel=1e-6)


def test_the_curve_is_the_weight_of_the_others():
    memory = Memory([[1, 0], [0, 1], [-1, 0]], labels=["a", "b", "c"])
    found = leak(memory, [1, 0.5], ["a", "b"], scales=[0, 1, 5], tol=None)
    for scale, missed in zip(found.scales, found.leaks, strict=True):
        assert float(missed) == pytest.approx(float(memory.read([1, 0.5], scale=float(scale)).weights[2]))
    assert found.scale is None and found.certificate is None


def test_the_curve_goes_to_one_and_a_half_times_the_smallest_scale():
    found = leak(Memory.orthonormal(5, 8), Memory.orthonormal(5, 8).keys[0], [0], tol=1e-3)
    assert float(found.scales[0]) == 0 and float(found.scales[-1]) == pytest.approx(1.5 * found.scale)


def test_where_another_item_scores_as_high_there_is_no_such_scale():
    memory = Memory([[1, 0], [1, 0], [0, 1]], labels=["a", "twin", "b"])
    assert leak(memory, [1, 0], ["a"]).scale is None
    assert leak(memory, [1, 0], ["a", "twin"]).scale is not None
    assert leak(memory, [0, 0], ["a"]).scale is None
    assert leak(memory, [1, 0], ["a", "twin", "b"]).scale == 0


def test_a_tampered_certificate_is_refused():
    import dataclasses

    found = leak(Memory.orthonormal(4, 4), [1, 0, 0, 0]).certificate
    assert not dataclasses.replace(found, claims={"distance": found.claims["distance"] / 2}).verify()


def test_bad_input_is_refused():
    memory = Memory.orthonormal(4, 4)
    for query, options in (([1, 0], {}), ([1, 0, 0, 0], {"wanted": []}), ([1, 0, 0, 0], {"wanted": [9]})):
        with pytest.raises(QkvError):
            leak(memory, query, **options)
    with pytest.raises(QkvError):
        leak(memory, [math.nan] * 4)


def test_keys_and_a_single_item_are_taken_as_elsewhere():
    memory = Memory(np.eye(3), labels=["a", "b", "ab"])
    assert leak(memory, [5.0, 0, 0], "ab", tol=None).items == ("ab",)
    assert leak(np.eye(3), [5.0, 0, 0], 0).items == (0,)


@pytest.mark.parametrize("tol", [1e-13, 1e-17, 1e-40, 1e-100, 1e-190])
def test_one_item_has_a_certified_scale_at_any_tolerance(tol):
    found = leak([[1, 0], [0, 1.0]], [1.0, 0.0], [0], tol=tol)
    assert found.scale == pytest.approx(-math.log(tol), rel=1e-6)
    assert found.certificate.verify() and 0 < found.certificate.claims["distance"] <= tol
