"""Grids of b bits: against NumPy's own arithmetic, and what rounding may and may not move."""

import numpy as np
import pytest
import torch

from qkv.errors import QkvError
from qkv.heads.key_grid import checked_bits, checked_per, inexact, key_grid


def random_keys(seed, n=40, d=8, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    scale = torch.logspace(-3, 3, d, dtype=torch.float64)
    return (torch.randn(2, n, d, generator=generator, dtype=torch.float64) * scale).to(dtype)


@pytest.mark.parametrize("per", ["channel", "token"])
@pytest.mark.parametrize("bits", range(1, 9))
def test_every_entry_goes_to_the_nearest_level(bits, per):
    keys = random_keys(bits)
    found = key_grid(keys, bits, per).rounded(keys).numpy()
    axis = 1 if per == "channel" else 2
    low, high = keys.numpy().min(axis, keepdims=True), keys.numpy().max(axis, keepdims=True)
    levels = np.stack([low + (high - low) * i / (2**bits - 1) for i in range(2**bits)])
    nearest = np.abs(levels - keys.numpy()[None]).min(0)
    assert np.abs(found - keys.numpy()) == pytest.approx(nearest, rel=1e-9, abs=1e-9)
    assert np.abs(levels - found[None]).min(0).max() <= 1e-9 * np.abs(keys.numpy()).max()


@pytest.mark.parametrize("per", ["channel", "token"])
def test_extreme_entries_do_not_move(per):
    keys = random_keys(3)
    moved = (key_grid(keys, 3, per).rounded(keys) - keys).abs() > 1e-9 * keys.abs()
    free = inexact(keys, per)
    assert not (moved & ~free).any()
    assert int((~free).sum()) == 2 * keys.numel() // keys.shape[1 if per == "channel" else 2]


def test_errors_are_uniform_on_a_step():
    keys = torch.randn(1, 20000, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    grid = key_grid(keys, 5)
    error = (grid.rounded(keys) - keys) / grid.step
    assert float(error.abs().max()) <= 0.5 + 1e-9
    assert error.var(1)[0].tolist() == pytest.approx([1 / 12] * 4, rel=0.03)


def test_equal_entries_stay():
    keys = torch.full((1, 5, 3), 0.3, dtype=torch.float64)
    assert torch.equal(key_grid(keys, 2).rounded(keys), keys)
    assert not inexact(keys).any()


def test_bits_of_each_channel():
    keys, bits = random_keys(0), torch.tensor([1, 2, 3, 4, 5, 6, 7, 8])
    found = key_grid(keys, bits).rounded(keys)
    for channel, b in enumerate(bits.tolist()):
        one = key_grid(keys[..., channel : channel + 1], b).rounded(keys[..., channel : channel + 1])
        assert torch.allclose(found[..., channel : channel + 1], one, rtol=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_a_stored_grid_covers_its_entries(seed):
    keys = random_keys(seed, dtype=torch.float32) + 100 * seed
    for bits in range(1, 9):
        grid = key_grid(keys, bits, stored=True)
        assert grid.low.dtype == grid.step.dtype == torch.float16
        error = (grid.rounded(keys) - keys).abs()
        assert (error <= grid.step.float() * 0.5 * (1 + 1e-3) + 1e-6 * keys.abs()).all()


def test_what_16_bits_cannot_hold_is_refused():
    with pytest.raises(QkvError, match="more than 16 bits can hold"):
        key_grid(torch.tensor([[0.0], [1e6]]), 4, stored=True)


def test_refusals():
    assert checked_bits("x", 4) == (4,) and checked_bits("x", [8, 1]) == (8, 1) and checked_bits("x", (), True) == ()
    for odd in (0, 9, [], [4, 4], "4", [4.5], None, True):
        with pytest.raises(QkvError):
            checked_bits("x", odd)
    with pytest.raises(QkvError, match="Choose channel or token"):
        checked_per("x", "head")
