"""Which kernel is taken when, and that all of them give the same outputs and gradients."""

import pytest
import torch

from qkv.core import kernels
from qkv.core.kernels import (
    MAX_STORED_LENGTH,
    MIN_HEADWISE_SCORES,
    causal_attention,
    choose_kernel,
    packed_causal_attention,
    repeat_kv,
    stores_weights,
)
from qkv.errors import QkvError
from qkv.model.packed_sequences import PackedLayout

CPU, META = torch.device("cpu"), torch.device("meta")


@pytest.mark.parametrize(
    ("device", "shapes", "selects", "want"),
    [
        (CPU, [(64, 64)], False, "equal_length"),
        (CPU, [(16, 64)], False, "equal_length"),  # 16 · 64² is MIN_HEADWISE_SCORES
        (CPU, [(15, 64)], False, "ragged"),
        (CPU, [(64, 64)], True, "ragged"),
        (CPU, [(64, 63), (1, 64)], False, "ragged"),
        (CPU, [(8, MAX_STORED_LENGTH)], False, "equal_length"),
        (CPU, [(8, MAX_STORED_LENGTH + 1)], False, "fused"),
        (CPU, [(8, 3), (1, MAX_STORED_LENGTH + 1)], True, "fused"),
        (META, [(64, 64)], False, "fused"),
    ],
)
def test_the_table_of_the_docstring(device, shapes, selects, want):
    assert MIN_HEADWISE_SCORES == 16 * 64**2
    assert choose_kernel(device, shapes, selects) == want


def test_weights_are_stored_for_short_sequences_on_a_cpu():
    assert stores_weights(CPU, MAX_STORED_LENGTH) and not stores_weights(CPU, MAX_STORED_LENGTH + 1)
    assert not stores_weights(META, 1)


def run(monkeypatch, kernel, shapes, n_kv_head, rotate, keep):
    """Output and gradients when the dispatch is made to choose a kernel."""
    monkeypatch.setattr(kernels, "choose_kernel", lambda *_, **__: kernel)
    layout = PackedLayout(shapes)
    n = sum(b * t for b, t in shapes)
    torch.manual_seed(0)
    whole = torch.randn(n, 4 + 2 * n_kv_head, 6, dtype=torch.float64, requires_grad=True)
    rotation = torch.polar(torch.ones(n, 1, 3, dtype=torch.float64), torch.randn(n, 1, 3, dtype=torch.float64))
    rotation = rotation if rotate else None
    if keep is None:
        out = packed_causal_attention(whole, layout, n_kv_head, 0.7, rotation)
    else:
        keep = torch.tensor(keep)
        out = packed_causal_attention(
            whole[:, 4:], layout, n_kv_head, 0.7, rotation, queries=whole[keep, :4], keep=keep
        )
    grad = torch.randn(out.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return out, *torch.autograd.grad(out, whole, grad)


@pytest.mark.parametrize("n_kv_head", [1, 2, 4])
@pytest.mark.parametrize("rotate", [False, True])
@pytest.mark.parametrize("keep", [None, [0, 3, 11]])
def test_all_kernels_agree_on_sequences_of_one_length(monkeypatch, n_kv_head, rotate, keep):
    names = ("ragged", "fused") if keep else ("equal_length", "ragged", "fused")
    first, *others = (run(monkeypatch, name, [(3, 4)], n_kv_head, rotate, keep) for name in names)
    for other in others:
        for one, two in zip(first, other, strict=True):
            torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_kv_head", [1, 4])
@pytest.mark.parametrize("rotate", [False, True])
@pytest.mark.parametrize("keep", [None, [0, 3, 11, 12]])
def test_ragged_and_fused_agree_on_sequences_of_many_lengths(monkeypatch, n_kv_head, rotate, keep):
    shapes = [(2, 1), (1, 4), (2, 7)]
    one, two = (run(monkeypatch, name, shapes, n_kv_head, rotate, keep) for name in ("ragged", "fused"))
    for a, b in zip(one, two, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_short_and_long_sequences_meet_at_the_threshold(monkeypatch):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 9, 4, dtype=torch.float64) for _ in range(3))
    stored = causal_attention(q, k, v, 0.7)
    monkeypatch.setattr(kernels, "MAX_STORED_LENGTH", 8)
    monkeypatch.setattr(kernels, "stored_causal", lambda *_: pytest.fail("too long to store its weights"))
    torch.testing.assert_close(causal_attention(q, k, v, 0.7), stored, rtol=0, atol=1e-14)


@pytest.mark.parametrize("m", [1, 3, 8])
@pytest.mark.parametrize("longest", [8, 128])
def test_fewer_queries_than_tokens_are_those_of_the_last_tokens(monkeypatch, m, longest):
    monkeypatch.setattr(kernels, "MAX_STORED_LENGTH", longest)
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 9, 4, dtype=torch.float64) for _ in range(3))
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.7)[..., 9 - m :, :]
    torch.testing.assert_close(causal_attention(q[..., 9 - m :, :], k, v, 0.7), want, rtol=0, atol=1e-14)


def test_heads_share_keys_in_groups_of_neighbours():
    torch.manual_seed(0)
    kv = torch.randn(2, 2, 5, 3)
    got = repeat_kv(kv, 6)
    assert all(torch.equal(got[:, h], kv[:, h // 3]) for h in range(6))
    assert repeat_kv(kv, 2) is kv
    with pytest.raises(QkvError, match="6 heads cannot share 4 heads of keys evenly"):
        repeat_kv(torch.randn(1, 4, 5, 3), 6)
