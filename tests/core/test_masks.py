"""Masks against their definitions, written out token by token."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.core.masks import allowed, causal, latent, padding, window
from qkv.errors import QkvError


@settings(deadline=None)
@given(st.integers(1, 12))
def test_causal_lets_token_i_see_the_tokens_up_to_i(n):
    assert causal(n).tolist() == [[j <= i for j in range(n)] for i in range(n)]


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(1, 15))
def test_a_window_lets_token_i_see_the_last_tokens_including_itself(n, width):
    assert window(n, width).tolist() == [[i - width < j <= i for j in range(n)] for i in range(n)]


@settings(deadline=None)
@given(st.data(), st.integers(1, 8))
def test_padding_lets_every_token_see_the_first_tokens_of_its_sequence(data, n):
    lengths = data.draw(st.lists(st.integers(1, n), min_size=1, max_size=4))
    got = padding(lengths, n)
    assert got.shape == (len(lengths), 1, n)
    assert got.tolist() == [[[j < length for j in range(n)]] for length in lengths]


@pytest.mark.parametrize("lengths", [(2, 3), np.array([2, 3]), torch.tensor([2, 3])])
def test_lengths_may_come_in_any_array(lengths):
    assert padding(lengths, 4).sum((1, 2)).tolist() == [2, 3]


@given(st.integers(1, 5), st.integers(1, 12), st.integers(1, 4))
def test_a_latent_attends_up_to_the_last_token_it_owns(m, n, stride):
    assert latent(m, n, stride).tolist() == [[j < (i + 1) * stride for j in range(n)] for i in range(m)]


def test_masks_combine_with_and():
    both = causal(4) & padding([2, 4], 4)
    assert both.shape == (2, 4, 4)
    assert both[0, 3].tolist() == [True, True, False, False]
    assert torch.equal(both[1], causal(4))
    assert torch.equal(window(5, 2), causal(5) & ~causal(5).tril(-2))


def test_a_mask_is_spread_over_the_scores_it_is_for():
    assert allowed("asking", [True, False], (3, 2)).tolist() == [[True, False]] * 3
    assert allowed("asking", padding([1, 2], 2), (2, 3, 2)).shape == (2, 3, 2)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: causal(0), "a causal mask: n is 0"),
        (lambda: causal(-2), "n is -2"),
        (lambda: window(0, 1), "a window mask: n is 0"),
        (lambda: window(3, 0), "width is 0"),
        (lambda: padding([1, 2], 0), "a padding mask: n is 0"),
        (lambda: padding([1, 0], 3), "lengths[1] is 0"),
        (lambda: padding([1, 4], 3), "lengths[1] is 4, more than n=3"),
        (lambda: padding([1.5], 3), "lengths[0] is 1.5"),
        (lambda: padding([[1, 2]], 3), "lengths[0] is [1, 2]"),
        (lambda: padding([], 3), "lengths is []"),
        (lambda: padding(2, 3), "lengths is 2"),
        (lambda: padding(torch.tensor(2), 3), "lengths is 2"),
        (lambda: allowed("asking", [[[True, True]]], (1, 2)), "(1, 1, 2) but the scores have (1, 2)"),
        (lambda: allowed("asking", window(4, 1) & padding([2], 4), (1, 4, 4)), "row 0, 2 of the mask"),
    ],
)
def test_a_bad_request_is_refused_with_its_reason(call, says):
    with pytest.raises(QkvError) as refusal:
        call()
    assert says in str(refusal.value)
