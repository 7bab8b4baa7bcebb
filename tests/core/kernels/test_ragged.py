"""The ragged kernel against attention of each sequence by itself, and its gradients by finite differences."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from qkv.core.kernels import repeat_kv
from qkv.core.kernels.ragged import MAX_GROUPS, RaggedPlan, ragged_causal
from qkv.core.rotary import apply_rotary


def case(lengths, n_head, n_kv_head, d=4, seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    qkv = torch.randn(sum(lengths), n_head + 2 * n_kv_head, d, dtype=dtype)
    angle = torch.randn(sum(lengths), 1, d // 2, dtype=torch.float64)
    return qkv, torch.polar(torch.ones_like(angle), angle)


def each_alone(qkv, lengths, n_head, n_kv_head, rotation=None):
    """Each sequence by itself, by torch's own attention, with keys and values repeated for each head."""
    if rotation is not None:
        qk = apply_rotary(qkv[:, : n_head + n_kv_head], rotation)
        qkv = torch.cat((qk, qkv[:, n_head + n_kv_head :]), dim=1)
    out = []
    for part in qkv.split(list(lengths)):
        q, k, v = part.transpose(0, 1).split((n_head, n_kv_head, n_kv_head))
        k, v = repeat_kv(k, n_head), repeat_kv(v, n_head)
        out.append(scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.7).transpose(0, 1))
    return torch.cat(out)


@given(
    lengths=st.lists(st.integers(1, 17), min_size=1, max_size=9),
    n_kv_head=st.sampled_from([1, 2, 4]),
    rotate=st.booleans(),
    data=st.data(),
)
def test_packed_sequences_give_what_each_gives_alone(lengths, n_kv_head, rotate, data):
    qkv, rotation = case(lengths, 4, n_kv_head)
    rotation = rotation if rotate else None
    want = each_alone(qkv, lengths, 4, n_kv_head, rotation)
    got = ragged_causal(qkv, RaggedPlan(lengths), n_kv_head, 0.7, rotation)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)
    keep = torch.tensor(data.draw(st.lists(st.integers(0, sum(lengths) - 1), min_size=1, unique=True)))
    part = ragged_causal(
        qkv[:, 4:].contiguous(), RaggedPlan(lengths, keep), n_kv_head, 0.7, rotation,
        queries=qkv[keep, :4], query_rotation=rotation[keep] if rotate else None,
    )  # fmt: skip
    torch.testing.assert_close(part, want[keep], rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_kv_head", [1, 2])
@pytest.mark.parametrize("rotate", [False, True])
def test_gradients(n_kv_head, rotate):
    lengths, keep = [3, 1, 5, 2], torch.tensor([1, 2, 8, 7, 9])
    qkv, rotation = case(lengths, 2, n_kv_head)
    queries, kv = qkv[keep, :2].clone(), qkv[:, 2:].clone()
    for x in (qkv, queries, kv):
        x.requires_grad_(True)
    rotation, kept = (rotation, rotation[keep]) if rotate else (None, None)
    assert torch.autograd.gradcheck(lambda x: ragged_causal(x, RaggedPlan(lengths), n_kv_head, 0.7, rotation), (qkv,))
    assert torch.autograd.gradcheck(
        lambda x, q: ragged_causal(
            x, RaggedPlan(lengths, keep), n_kv_head, 0.7, rotation, queries=q, query_rotation=kept
        ),
        (kv, queries),
    )


def test_every_token_has_a_slot_of_its_own():
    lengths = np.random.default_rng(0).integers(1, 60, 40).tolist()
    plan = RaggedPlan(lengths, torch.arange(0, sum(lengths), 7))
    for slot_map, n_head in ((plan.keys, 3), (plan.queries, 4)):
        slots = slot_map.slots(n_head)
        assert len(np.unique(slots)) == slots.size and slots.max() < slot_map.n_slots * n_head
        assert len(slot_map.padding(n_head)) + slots.size == slot_map.n_slots * n_head
    assert plan.keys.n_slots < 1.2 * sum(lengths)


@given(lengths=st.lists(st.integers(1, 200), min_size=1, max_size=40))
def test_groups_are_few_and_cover_all_slots(lengths):
    plan = RaggedPlan(lengths)
    groups = list(plan.groups(4, 2))
    assert len(groups) <= MAX_GROUPS
    assert [g.q_slots.start for g in groups] == [0, *(g.q_slots.stop for g in groups[:-1])]
    assert groups[-1].q_slots.stop == 4 * plan.queries.n_slots and groups[-1].k_slots.stop == 2 * plan.keys.n_slots
    assert all(g.k_slots.stop - g.k_slots.start == g.batch * g.length for g in groups)


def test_half_precision_stays_half_and_close():
    lengths = [5, 9, 2]
    qkv, rotation = case(lengths, 4, 2, dtype=torch.float32)
    rotation = rotation.to(torch.complex64)
    want = ragged_causal(qkv, RaggedPlan(lengths), 2, 0.7, rotation)
    half = qkv.bfloat16().requires_grad_(True)
    got = ragged_causal(half, RaggedPlan(lengths), 2, 0.7, rotation)
    got.float().sum().backward()
    assert got.dtype == half.grad.dtype == torch.bfloat16
    torch.testing.assert_close(got.float(), want, rtol=0.05, atol=0.05)
