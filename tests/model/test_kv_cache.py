"""KVCache against a dictionary of (sequence, position)."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv.model import kv_cache
from qkv.model.kv_cache import KVCache
from qkv.model.packed_sequences import PackedLayout

HEADS, DIM = 2, 3


def vectors(n, seed):
    return torch.randn(2, n, HEADS, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def check(cache, known):
    """Every stored vector is where it belongs, and nothing else was written."""
    k, v = torch.zeros_like(cache.k), torch.zeros_like(cache.v)
    for (sequence, position), (key, value) in known.items():
        k[sequence, :, :, position], v[sequence, :, position] = key, value
    assert torch.equal(cache.k, k) and torch.equal(cache.v, v)


@given(
    shapes=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 5)), min_size=1, max_size=3),
    past=st.integers(0, 4),
    data=st.data(),
)
def test_appended_vectors_lie_at_their_positions(shapes, past, data):
    n_sequences = sum(b for b, _ in shapes)
    cache, known = KVCache(n_sequences, 12, HEADS, DIM, torch.zeros(0, dtype=torch.float64)), {}
    layout = PackedLayout(shapes, past_length=past)
    some = data.draw(st.lists(st.integers(0, n_sequences - 1), min_size=1, unique=True))
    step = PackedLayout.decoding_step(torch.full((len(some),), 11), torch.tensor(some))
    for i, each in enumerate((layout, step)):
        k, v = vectors(len(each.positions), i)
        cache.append(each, k, v)
        known |= dict(
            zip(zip(each.sequences.tolist(), each.positions.tolist(), strict=True), zip(k, v, strict=True), strict=True)
        )
        check(cache, known)
    first = 0
    for (b, t), (k, v) in zip(shapes, cache.sequences_of(layout), strict=True):
        assert k.shape == v.shape == (b, HEADS, past + t, DIM)
        assert torch.equal(k, cache.k[first : first + b, :, :, : past + t].mT)
        assert torch.equal(v, cache.v[first : first + b, :, : past + t])
        first += b


@pytest.mark.parametrize("fraction", [0.0, 2.0])
def test_a_step_reads_the_filled_positions_or_all(monkeypatch, fraction):
    monkeypatch.setattr(kv_cache, "MAX_SLICED_FRACTION", fraction)
    cache = KVCache(3, 10, HEADS, DIM, torch.zeros(0, dtype=torch.float64))
    cache.append(PackedLayout([(3, 4)]), *vectors(12, 0))
    n = 10 if fraction == 0 else 4
    k, v = cache.for_step(PackedLayout.decoding_step(torch.tensor([3, 1, 2])))
    assert k.shape == v.shape == (3, HEADS, n, DIM) and torch.equal(k, cache.k[..., :n].mT)
    k, v = cache.for_step(PackedLayout.decoding_step(torch.tensor([3, 1]), torch.tensor([2, 0])))
    assert torch.equal(v, cache.v[[2, 0], :, :n]) and torch.equal(k, cache.k[[2, 0]][..., :n].mT)


def test_a_view_shares_memory_and_a_selection_does_not():
    cache = KVCache(4, 5, HEADS, DIM, torch.zeros(0))
    part, copy = cache.view(1, 3), cache.select(torch.tensor([3, 1]))
    part.append(PackedLayout([(2, 2)]), *vectors(4, 0).float())
    assert torch.equal(part.k, cache.k[1:3]) and cache.k[1:3].any() and not cache.k[[0, 3]].any()
    assert copy.k.shape[0] == 2 and not copy.k.any()


def test_one_sequence_can_start_all_others():
    one, many = (KVCache(n, 6, HEADS, DIM, torch.zeros(0)) for n in (1, 3))
    one.append(PackedLayout([(1, 4)]), *vectors(4, 0).float())
    many.fill(one, 3)
    for i in range(3):
        assert torch.equal(many.k[i, ..., :3], one.k[0, ..., :3]) and torch.equal(many.v[i, :, :3], one.v[0, :, :3])
    assert not many.k[..., 3:].any() and not many.v[:, :, 3:].any()
