"""Heads against torch.nn.MultiheadAttention, in float64 and in both directions."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import nn

from qkv.core.attention import attend
from qkv.core.masks import causal, padding
from qkv.core.multihead import MultiHead, flip_mha_mask, read_multihead
from qkv.errors import QkvError

D, HEADS, B, M, N = 6, 3, 2, 4, 5
FORMS = [
    {},
    {"bias": False},
    {"kdim": 4, "vdim": 7},
    {"kdim": 4, "vdim": 7, "bias": False},
    {"kdim": 4},
    {"vdim": 7},
]
EVERY_FORM = pytest.mark.parametrize("form", FORMS, ids=str)


def normal(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def module(seed=0, heads=HEADS, **form):
    """torch's own module, with random numbers in its biases too, which it would start at zero."""
    out = nn.MultiheadAttention(D, heads, batch_first=True, dtype=torch.float64, **form).eval()
    with torch.no_grad():
        for i, weight in enumerate(out.parameters()):
            weight.copy_(normal(*weight.shape, seed=100 * seed + i))
    return out


def inputs(form, *batch):
    kdim, vdim = form.get("kdim", D), form.get("vdim", D)
    return normal(*batch, M, D), normal(*batch, N, kdim, seed=1), normal(*batch, N, vdim, seed=2)


def close(got, want):
    torch.testing.assert_close(got, want.detach(), rtol=0, atol=1e-12)


@EVERY_FORM
@pytest.mark.parametrize("batch", [(), (B,)])
@pytest.mark.parametrize("masked", [False, True])
def test_heads_from_torch_attend_as_torch_does(form, batch, masked):
    theirs = module(**form)
    x, y, z = inputs(form, *batch)
    seen = (normal(M, N, seed=3) < 0.5) | (torch.arange(N) == 0) if masked else None
    blocked = flip_mha_mask(seen) if masked else None
    output, each = theirs(x, y, z, attn_mask=blocked, average_attn_weights=False)
    average = theirs(x, y, z, attn_mask=blocked)[1]
    got = MultiHead.from_torch(theirs).attend(x, y, seen, values=z)
    close(got.output, output)
    close(got.heads, each)
    close(got.weights, average)


@EVERY_FORM
def test_a_state_dict_goes_through_unchanged(form):
    state = module(**form).state_dict()
    back = MultiHead.from_torch(state, HEADS).to_state_dict()
    assert set(back) == set(state)
    assert all(torch.equal(back[name], state[name]) for name in state)


@EVERY_FORM
def test_heads_to_torch_attend_as_the_heads_do(form):
    kdim, vdim, size = form.get("kdim", D), form.get("vdim", D), D // HEADS
    shapes = [(HEADS, size, D), (HEADS, size, kdim), (HEADS, size, vdim), (HEADS, D, size)]
    shapes += [(HEADS, size)] * 3 + [(D,)] if form.get("bias", True) else []
    ours = MultiHead(*(normal(*shape, seed=i) for i, shape in enumerate(shapes)))
    theirs = module(seed=7, **form)
    theirs.load_state_dict(ours.to_state_dict())
    x, y, z = inputs(form, B)
    close(ours.attend(x, y, values=z).output, theirs(x, y, z)[0])


def test_tokens_read_themselves_unless_there_is_a_memory():
    theirs, x = module(), normal(B, N, D)
    blocked = torch.ones(N, N, dtype=torch.bool).triu(1)
    close(MultiHead.from_torch(theirs).attend(x, mask=causal(N)).output, theirs(x, x, x, attn_mask=blocked)[0])


def test_a_key_padding_mask_flips_into_a_padding_mask():
    theirs, x = module(), normal(B, N, D)
    ignored = torch.tensor([[False, False, True, True, True], [False] * 5])
    want = theirs(x, x, x, key_padding_mask=ignored)[0]
    ours = MultiHead.from_torch(theirs)
    close(ours.attend(x, mask=flip_mha_mask(ignored)[:, None]).output, want)
    close(ours.attend(x, mask=padding([2, 5], N)).output, want)


def test_flipping_a_mask_twice_gives_it_back():
    assert flip_mha_mask([True, False]).tolist() == [False, True]
    assert torch.equal(flip_mha_mask(flip_mha_mask(causal(3))), causal(3))
    with pytest.raises(QkvError, match="Give booleans"):
        flip_mha_mask([0.0, -math.inf])


def test_a_batch_shares_a_memory_that_has_no_batch():
    ours, (x, y, _) = MultiHead.from_torch(module()), inputs({}, B)
    shared = ours.attend(x, y[0])
    assert shared.weights.shape == (B, M, N) and shared.heads.shape == (B, HEADS, M, N)
    close(shared.output[1], ours.attend(x[1], y[0]).output)
    alone = ours.attend(x[0], y[0], values=y)
    assert alone.weights.shape == (B, M, N) and alone.output.shape == (B, M, D)


def test_heads_are_single_heads_added_up():
    ours, x = MultiHead.from_torch(module(bias=False)), normal(N, D)
    want = torch.zeros(N, D, dtype=torch.float64)
    for Q, K, V, O in zip(ours.Q, ours.K, ours.V, ours.O, strict=True):  # noqa: E741
        want += attend(x @ Q.T, x @ K.T, x @ V.T, scale=1 / math.sqrt(D / HEADS)).output @ O.T
    close(ours.attend(x).output, want)
    assert ours.scale == pytest.approx(1 / math.sqrt(2), abs=1e-15)


def test_heads_need_not_have_the_sizes_that_torch_wants():
    Q, K, V, O = normal(2, 5, 3), normal(2, 5, 4), normal(2, 1, 7), normal(2, 6, 1)  # noqa: E741
    ours = MultiHead(Q, K, V, O, o_bias=np.ones(6))
    got = ours.attend(normal(3, 3), normal(2, 4), values=normal(2, 7))
    assert got.output.shape == (3, 6) and got.heads.shape == (2, 3, 2)
    with pytest.raises(QkvError, match="2 heads of sizes 5 and 1 lead from dimension 3 to 6"):
        ours.to_state_dict()


def test_a_missing_bias_is_written_as_a_zero_one():
    ours = dataclasses.replace(MultiHead.from_torch(module(bias=False)), o_bias=np.arange(D))
    state = ours.to_state_dict()
    assert state["in_proj_bias"].tolist() == [0] * 3 * D
    theirs, x = module(seed=4), normal(N, D)
    theirs.load_state_dict(state)
    close(ours.attend(x).output, theirs(x, x, x)[0])


def test_heads_do_not_change_when_the_module_they_came_from_is_trained():
    theirs = module()
    ours, x = MultiHead.from_torch(theirs), normal(N, D)
    before = ours.attend(x).output
    with torch.no_grad():
        for weight in theirs.parameters():
            weight.zero_()
    assert torch.equal(ours.attend(x).output, before)


def test_a_written_state_dict_shares_no_memory_with_the_heads():
    ours = MultiHead.from_torch(module(kdim=4))
    x, y = normal(N, D), normal(N, 4)
    before = ours.attend(x, y, values=x).output
    for weight in ours.to_state_dict().values():
        weight.zero_()
    assert torch.equal(ours.attend(x, y, values=x).output, before)


def test_gradients_pass_through_the_function_on_tensors():
    ours = MultiHead.from_torch(module(heads=2))
    leaves = [normal(3, D).requires_grad_(), *(w.requires_grad_() for w in vars(ours).values())]
    mask = causal(3)
    assert torch.autograd.gradcheck(lambda x, *w: read_multihead(x, x, x, *w, mask=mask), leaves)


def test_heads_show_their_sizes():
    card = MultiHead.from_torch(module(bias=False)).card()
    assert card.title == "3 heads of size 2"
    assert card.facts[0] == ("Q", "3 × 2 × 6") and card.facts[-1] == ("biases", "none")
    assert MultiHead.from_torch(module()).card().facts[-1] == ("biases", "q, k, v, o")


def state(form=None, drop=(), **changed):
    whole = module(**(form or {})).state_dict() | changed
    return {name: weight for name, weight in whole.items() if name not in drop}


SPLIT = {"kdim": 4, "vdim": 7}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: MultiHead.from_torch(state(), None), "heads is None"),
        (lambda: MultiHead.from_torch(state(), 0), "heads is 0"),
        (lambda: MultiHead.from_torch(state(), 4), "its dimension 6 is not a multiple of 4 heads"),
        (lambda: MultiHead.from_torch(module(), 2), "it has 3 heads and 2 were requested"),
        (lambda: MultiHead.from_torch(module(add_zero_attn=True)), "it has add_zero_attn"),
        (lambda: MultiHead.from_torch(module(add_bias_kv=True)), "it has bias_k, bias_v"),
        (lambda: MultiHead.from_torch([1, 2], 2), "it is a list"),
        (lambda: MultiHead.from_torch({}, 2), "it lacks in_proj_weight, out_proj.weight"),
        (
            lambda: MultiHead.from_torch(nn.Linear(2, 2), 2),
            "it lacks in_proj_weight, out_proj.weight and it has bias, weight",
        ),
        (lambda: MultiHead.from_torch(state(drop=["out_proj.bias"]), 3), "it lacks out_proj.bias."),
        (lambda: MultiHead.from_torch(state(drop=["in_proj_bias"]), 3), "it lacks in_proj_bias."),
        (lambda: MultiHead.from_torch(state(SPLIT, drop=["k_proj_weight"]), 3), "it lacks k_proj_weight."),
        (lambda: MultiHead.from_torch(state(q_proj_weight=normal(6, 6)), 3), "it has q_proj_weight"),
        (
            lambda: MultiHead.from_torch(state(in_proj_weight=normal(18, 5)), 3),
            "in_proj_weight has shape (18, 5)",
        ),
        (lambda: MultiHead.from_torch(state(in_proj_weight=normal(18)), 3), "its shape is (18,)"),
        (
            lambda: MultiHead.from_torch(state({"bias": False}, in_proj_bias="no"), 3),
            "it lacks out_proj.bias",
        ),
        (lambda: MultiHead.from_torch(state(in_proj_bias=normal(6)), 3), "in_proj_bias has shape (6,)"),
        (
            lambda: MultiHead.from_torch(state(SPLIT, v_proj_weight=normal(5, 7), in_proj_bias=normal(9)), 3),
            "v_proj_weight has shape (5, 7); in_proj_bias has shape (9,)",
        ),
        (
            lambda: MultiHead.from_torch(state(in_proj_weight=normal(18, 6) * math.nan), 3),
            "reading in_proj_weight: 108 of its 108 entries are NaN",
        ),
        (
            lambda: MultiHead(normal(2, 3, 4), normal(1, 3, 4), normal(2, 3, 4), normal(2, 4, 2)),
            "h is 2 in Q and 1 in K; f is 3 in V and 2 in O",
        ),
        (
            lambda: MultiHead(*[normal(1, 2, 2)] * 4, q_bias=normal(1, 3), o_bias=normal(5)),
            "e is 2 in Q and 3 in q_bias; do is 2 in O and 5 in o_bias",
        ),
        (lambda: MultiHead(*[normal(2, 2)] * 4), "Q with shape (h, e, d)"),
        (lambda: MultiHead.from_torch(module()).attend(normal(6)), "X has shape (6,)"),
        (lambda: MultiHead.from_torch(module()).attend(normal(2, 5)), "X has shape (2, 5)"),
        (
            lambda: MultiHead.from_torch(module()).attend(normal(2, 6), normal(2, 5)),
            "memory has shape (2, 5)",
        ),
        (
            lambda: MultiHead.from_torch(module(**SPLIT)).attend(normal(2, 6), normal(2, 4)),
            "values has shape",
        ),
        (
            lambda: MultiHead.from_torch(module()).attend(normal(2, 6), normal(2, 6), values=normal(3, 6)),
            "2 items in memory and 3 values",
        ),
        (
            lambda: MultiHead.from_torch(module()).attend(normal(2, 1, 6), normal(3, 1, 6)),
            "Give batches of one shape",
        ),
        (
            lambda: MultiHead.from_torch(module()).attend(normal(2, 6), mask=causal(3)),
            "the mask has shape (3, 3)",
        ),
        (lambda: MultiHead.from_torch(module()).attend(normal(2, 6), mask=~causal(2)), "row 1 of the mask"),
        (lambda: MultiHead.from_torch(module()).attend(normal(2, 6) * 1e200), "exceed the range"),
    ],
)
def test_a_bad_request_is_refused_with_its_reason(call, says):
    with pytest.raises(QkvError) as refusal:
        call()
    assert says in str(refusal.value)
