"""Attention of a ragged row equals attention of each of its sequences alone, to the last query that asks."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv.core import variants
from qkv.core.kernels.equal_length import even_causal
from qkv.core.kernels.ragged import RaggedPlan, rows_causal
from qkv.core.rotary import turned


def case(lengths, heads, shared, d=4, seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    whole = torch.randn(sum(lengths), heads + 2 * shared, d, dtype=dtype)
    angle = torch.randn(sum(lengths), 1, d // 2, dtype=torch.float64)
    return whole, torch.polar(torch.ones_like(angle), angle)


def alone(whole, lengths, heads, shared, turns=None):
    """Each sequence by itself, with the keys and values of each head written out."""
    if turns is not None:
        whole = torch.cat((turned(whole[:, : heads + shared], turns), whole[:, heads + shared :]), dim=1)
    out = []
    for part in whole.split(list(lengths)):
        q, k, v = part.transpose(0, 1).split((heads, shared, shared))
        out.append(variants.causal(q, variants.share(k, heads), variants.share(v, heads), scale=0.7).transpose(0, 1))
    return torch.cat(out)


@given(
    lengths=st.lists(st.integers(1, 17), min_size=1, max_size=9),
    shared=st.sampled_from([1, 2, 4]),
    turn=st.booleans(),
    data=st.data(),
)
def test_a_row_reads_what_each_sequence_reads_alone(lengths, shared, turn, data):
    whole, turns = case(lengths, 4, shared)
    want = alone(whole, lengths, 4, shared, turns if turn else None)
    got = rows_causal(whole, None, RaggedPlan(lengths), shared, 0.7, (turns,) if turn else ())
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)
    some = data.draw(st.lists(st.integers(0, sum(lengths) - 1), min_size=1, unique=True))
    keep = torch.tensor(some)
    part = rows_causal(
        whole[:, 4:].contiguous(),
        whole[keep, :4],
        RaggedPlan(lengths, keep),
        shared,
        0.7,
        (turns, turns[keep]) if turn else (),
    )
    torch.testing.assert_close(part, want[keep], rtol=0, atol=1e-12)


@pytest.mark.parametrize("shared", [1, 2])
@pytest.mark.parametrize("turn", [False, True])
def test_gradients_of_a_row_are_right(shared, turn):
    lengths, keep = [3, 1, 5, 2], torch.tensor([1, 2, 8, 7, 9])
    whole, turns = case(lengths, 2, shared)
    asking, rest = whole[keep, :2].clone(), whole[:, 2:].clone()
    for x in (whole, asking, rest):
        x.requires_grad_(True)
    given = (turns, turns[keep]) if turn else ()
    assert torch.autograd.gradcheck(
        lambda x: rows_causal(x, None, RaggedPlan(lengths), shared, 0.7, given[:1]), (whole,)
    )
    assert torch.autograd.gradcheck(
        lambda x, q: rows_causal(x, q, RaggedPlan(lengths, keep), shared, 0.7, given), (rest, asking)
    )


@given(
    count=st.integers(1, 5),
    length=st.integers(1, 9),
    shared=st.sampled_from([1, 2, 4]),
    turn=st.booleans(),
)
def test_sequences_of_one_length_read_the_same_head_by_head(count, length, shared, turn):
    lengths = [length] * count
    whole, turns = case(lengths, 4, shared)
    want = alone(whole, lengths, 4, shared, turns if turn else None)
    got = even_causal(whole, length, shared, 0.7, turns if turn else None)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shared", [1, 2, 4])
@pytest.mark.parametrize("turn", [False, True])
def test_gradients_head_by_head_are_right(shared, turn):
    whole, turns = case([3, 3], 4, shared)
    whole.requires_grad_(True)
    assert torch.autograd.gradcheck(lambda x: even_causal(x, 3, shared, 0.7, turns if turn else None), (whole,))


def test_every_token_has_a_slot_of_its_own():
    lengths = np.random.default_rng(0).integers(1, 60, 40).tolist()
    rows = RaggedPlan(lengths, torch.arange(0, sum(lengths), 7))
    for placing, heads in ((rows.keys, 3), (rows.queries, 4)):
        slot = placing.slot(heads)
        assert len(np.unique(slot)) == slot.size and slot.max() < placing.slots * heads
        assert len(placing.padding(heads)) + slot.size == placing.slots * heads
    assert rows.keys.slots < 1.2 * sum(lengths)


def test_half_precision_stays_half_and_close():
    lengths = [5, 9, 2]
    whole, turns = case(lengths, 4, 2, dtype=torch.float32)
    turns = turns.to(torch.complex64)
    want = rows_causal(whole, None, RaggedPlan(lengths), 2, 0.7, (turns,))
    half = whole.bfloat16().requires_grad_(True)
    got = rows_causal(half, None, RaggedPlan(lengths), 2, 0.7, (turns,))
    got.float().sum().backward()
    assert got.dtype == half.grad.dtype == torch.bfloat16
    torch.testing.assert_close(got.float(), want, rtol=0.05, atol=0.05)


def test_half_precision_stays_half_and_close_head_by_head():
    whole, turns = case([6, 6], 4, 2, dtype=torch.float32)
    turns = turns.to(torch.complex64)
    half = whole.bfloat16().requires_grad_(True)
    got = even_causal(half, 6, 2, 0.7, turns)
    got.float().sum().backward()
    assert got.dtype == half.grad.dtype == torch.bfloat16
    torch.testing.assert_close(got.float(), even_causal(whole, 6, 2, 0.7, turns), rtol=0.05, atol=0.05)
