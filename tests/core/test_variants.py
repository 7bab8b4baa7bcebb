"""One contract for every kind of attention in the table."""

from __future__ import annotations

import cmath
import math
from functools import partial

import numpy as np
import pytest
import torch

from qkv.core import masks
from qkv.core.variants import STRIDE, VARIANTS, WIDTH, read_in, read_out, variant, window
from qkv.errors import QkvError

N, D, DV = 7, 4, 3


def sees_all(i, j):
    return True


def sees_past(i, j):
    return j <= i


def sees_last(width, i, j):
    return i - width < j <= i


def sees_up_to_its_own(stride, latent, j):
    return j < (latent + 1) * stride


def sees_latents_before(stride, i, latent):
    return (latent + 1) * stride <= i


def as_is(x, position):
    return x


def positive(x, position):
    return np.maximum(x, 0)


def rotated(x, position):
    """Rotary positions as multiplication of complex numbers by unit ones."""
    half = len(x) // 2
    pairs = [complex(x[c], x[c + half]) * cmath.exp(1j * position * 10000 ** (-2 * c / len(x))) for c in range(half)]
    return np.array([p.real for p in pairs] + [p.imag for p in pairs])


# What each kind should compute: who sees whom, and what happens to queries and keys first.
REFERENCE = {
    "full": (VARIANTS["full"], sees_all, as_is),
    "causal": (VARIANTS["causal"], sees_past, as_is),
    "window": (VARIANTS["window"], partial(sees_last, WIDTH), as_is),
    "window of 1": (partial(window, width=1), partial(sees_last, 1), as_is),
    "window of 3": (partial(window, width=3), partial(sees_last, 3), as_is),
    "rope": (VARIANTS["rope"], sees_past, rotated),
    "synthesizer": (VARIANTS["synthesizer"], sees_past, as_is),
    "read_in": (VARIANTS["read_in"], partial(sees_up_to_its_own, STRIDE), as_is),
    "read_in by 2": (partial(read_in, stride=2), partial(sees_up_to_its_own, 2), as_is),
    "read_out": (VARIANTS["read_out"], partial(sees_latents_before, STRIDE), as_is),
    "read_out by 2": (partial(read_out, stride=2), partial(sees_latents_before, 2), as_is),
}
QUERIES = {"synthesizer": positive}  # what happens to queries alone
EVERY = pytest.mark.parametrize("name", REFERENCE)
ORDERED = pytest.mark.parametrize("name", [n for n in REFERENCE if n != "full" and not n.startswith("read")])


def test_every_kind_of_the_table_is_under_this_contract():
    assert set(VARIANTS) <= set(REFERENCE)
    assert all(VARIANTS[name] is REFERENCE[name][0] for name in VARIANTS)


def normal(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def tokens(*batch, n=N, m=None):
    return normal(*batch, m or n, D), normal(*batch, n, D, seed=1), normal(*batch, n, DV, seed=2)


def loop(name, q, k, v, scale, mask=None):
    """Attention by the definition, one query and one key at a time; queries are the last of the tokens."""
    _, sees, moved = REFERENCE[name]
    q, k, v = q.numpy(), k.numpy(), v.numpy()
    late = len(k) - len(q)
    out = np.zeros((len(q), v.shape[1]))
    for i, query in enumerate(q):
        query = QUERIES.get(name, as_is)(query, i)
        top = total = 0.0
        for j, key in enumerate(k):
            if sees(i + late, j) and (mask is None or mask[i, j]):
                power = math.exp(scale * float(moved(query, i + late) @ moved(key, j)))
                top, total = top + power * v[j], total + power
        out[i] = top / total if total else 0
    return torch.from_numpy(out)


@EVERY
@pytest.mark.parametrize("scale", [0.5, 1, -2.0])
def test_it_equals_the_definition(name, scale):
    q, k, v = tokens()
    want = loop(name, q, k, v, scale)
    torch.testing.assert_close(REFERENCE[name][0](q, k, v, scale=scale), want, rtol=0, atol=1e-12)


@EVERY
def test_a_mask_narrows_what_it_sees(name):
    q, k, v = tokens()
    mask = (normal(N, N, seed=5) < 0.5) | torch.eye(N, dtype=torch.bool)
    got = REFERENCE[name][0](q, k, v, scale=0.8, mask=mask)
    torch.testing.assert_close(got, loop(name, q, k, v, 0.8, mask), rtol=0, atol=1e-12)


@EVERY
def test_a_query_that_may_see_nothing_reads_zero_and_spoils_no_gradient(name):
    q, k, v = (x.requires_grad_() for x in tokens())
    mask = torch.ones(N, N, dtype=torch.bool)
    mask[2] = False
    got = REFERENCE[name][0](q, k, v, scale=0.8, mask=mask)
    assert (got[2] == 0).all()
    want = loop(name, q.detach(), k.detach(), v.detach(), 0.8, mask)
    torch.testing.assert_close(got.detach(), want, rtol=0, atol=1e-12)
    got.sum().backward()
    assert all(x.grad.isfinite().all() for x in (q, k, v))


@EVERY
@pytest.mark.parametrize("batch", [(2,), (2, 3), (1, 2, 2)])
def test_it_works_batch_by_batch(name, batch):
    call = REFERENCE[name][0]
    q, k, v = tokens(*batch)
    got = call(q, k, v, scale=0.7)
    assert got.shape == (*batch, N, DV)
    for at in np.ndindex(*batch):
        torch.testing.assert_close(got[at], call(q[at], k[at], v[at], scale=0.7), rtol=0, atol=1e-14)


@EVERY
def test_a_padded_batch_gives_what_the_short_sequences_give_alone(name):
    call = REFERENCE[name][0]
    q, k, v = tokens(2)
    got = call(q, k, v, scale=0.7, mask=masks.padding([3, N], N))
    alone = call(q[0, :3], k[0, :3], v[0, :3], scale=0.7)
    torch.testing.assert_close(got[0, :3], alone, rtol=0, atol=1e-14)
    torch.testing.assert_close(got[1], call(q[1], k[1], v[1], scale=0.7), rtol=0, atol=1e-14)


@EVERY
def test_its_weights_sum_to_one_wherever_it_sees_something(name):
    q, k, _ = tokens(2)
    ones = torch.ones(2, N, 1, dtype=torch.float64)
    got = REFERENCE[name][0](q, k, ones, scale=3.0)
    sees = torch.tensor([float(any(REFERENCE[name][1](i, j) for j in range(N))) for i in range(N)]).double()
    torch.testing.assert_close(got, sees[:, None].expand(2, N, 1), rtol=0, atol=1e-14)


@EVERY
def test_its_gradients_are_right(name):
    q, k, v = (x.requires_grad_() for x in tokens(2, n=4))
    assert torch.autograd.gradcheck(partial(REFERENCE[name][0], scale=0.6), (q, k, v))
    mask = masks.padding([2, 4], 4)
    assert torch.autograd.gradcheck(partial(REFERENCE[name][0], scale=0.6, mask=mask), (q, k, v))


@EVERY
def test_it_keeps_the_precision_it_is_given(name):
    q, k, v = (x.float() for x in tokens(2))
    got = REFERENCE[name][0](q, k, v, scale=0.6)
    assert got.dtype == torch.float32
    want = REFERENCE[name][0](*tokens(2), scale=0.6)
    torch.testing.assert_close(got, want.float(), rtol=0, atol=1e-5)


@ORDERED
def test_later_tokens_do_not_change_earlier_outputs(name):
    call = REFERENCE[name][0]
    q, k, v = tokens()
    before = call(q, k, v, scale=0.9)
    for at in range(1, N):
        changed = tuple(torch.cat((x[:at], normal(N - at, x.shape[1], seed=9))) for x in (q, k, v))
        after = call(*changed, scale=0.9)
        torch.testing.assert_close(after[:at], before[:at], rtol=0, atol=1e-14)
        assert not torch.allclose(after[at], before[at])


def test_full_attention_does_see_later_tokens():
    q, k, v = tokens()
    changed = torch.cat((v[:-1], v[-1:] + 1))
    full = VARIANTS["full"]
    assert not torch.allclose(full(q, k, changed, scale=1)[0], full(q, k, v, scale=1)[0])


@ORDERED
@pytest.mark.parametrize("m", [1, 3])
def test_the_last_queries_alone_give_the_last_outputs(name, m):
    q, k, v = tokens(2)
    call = REFERENCE[name][0]
    torch.testing.assert_close(call(q[:, -m:], k, v, scale=0.9), call(q, k, v, scale=0.9)[:, -m:], rtol=0, atol=1e-14)


@ORDERED
def test_more_queries_than_tokens_are_refused(name):
    q, k, v = tokens()
    with pytest.raises(QkvError, match="7 queries for 5 tokens"):
        REFERENCE[name][0](q, k[:5], v[:5], scale=1)


def test_full_attention_takes_any_number_of_queries():
    q, k, v = tokens(n=4, m=9)
    torch.testing.assert_close(VARIANTS["full"](q, k, v, scale=1), loop("full", q, k, v, 1), rtol=0, atol=1e-12)


def test_no_token_reaches_an_earlier_one_through_latents_and_every_finished_block_reaches_later_ones():
    x, latents, stride = normal(12, D), normal(4, D, seed=1), 3

    def through(x):
        z = read_in(latents, x, x, scale=1, stride=stride)
        z = VARIANTS["causal"](z, z, z, scale=1)
        return read_out(x, z, z, scale=1, stride=stride)

    before = through(x)
    for at in range(12):
        moved = x.clone()
        moved[at] += 1
        after = through(moved)
        others = torch.arange(12) != at  # its own query moved too
        reached = ((after - before).abs().amax(1) > 1e-9) & others
        first = (at // stride + 1) * stride
        assert reached.tolist() == [p >= first for p in range(12)]


def test_a_window_of_no_width_is_refused():
    with pytest.raises(QkvError, match="width is 0"):
        window(*tokens(), scale=1, width=0)


def test_a_kind_is_found_by_its_name():
    assert all(variant(name) is VARIANTS[name] for name in VARIANTS)


def test_an_unknown_kind_is_refused_with_the_choices():
    with pytest.raises(QkvError, match=r"Did you mean causal\? Choose from full, causal, window, rope"):
        variant("casual")
    with pytest.raises(QkvError, match=r"none called 'linear'\. Choose from full"):
        variant("linear")
