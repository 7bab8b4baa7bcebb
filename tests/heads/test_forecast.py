"""Expected cost of keys of few bits: errors of the right size, a mean over draws, and the KL that rounding has."""

import pytest
import torch
from families import text, tiny, tokenizer
from marks import spread

from qkv.heads.allocation import rounded_keys
from qkv.heads.attention_model import from_transformers
from qkv.heads.divergence import mean_kl
from qkv.heads.forecast import DRAWS, drawn_errors, forecasts
from qkv.heads.key_grid import inexact


def opened(family="llama", seed=0):
    return from_transformers(tiny(family, seed), tokenizer(), name=family)


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_errors_are_uniform_within_half_a_step_and_spare_the_extremes(bits):
    keys = torch.randn(1, 2, 4000, 8, generator=torch.Generator().manual_seed(bits))
    values = torch.zeros_like(keys)
    change = drawn_errors(torch.full((1, 2, 8), bits), None, torch.Generator().manual_seed(0))
    moved, same = change(0, keys, values)
    step = (keys.amax(-2) - keys.amin(-2)) / (2**bits - 1)
    errors = (moved - keys) / step[..., None, :]
    assert same is values and float(errors.abs().max()) <= 0.5 + 1e-3
    assert int((errors == 0).sum()) >= 2 * 16 and bool((errors[~inexact(keys)] == 0).all())
    assert float(errors.square().mean()) == pytest.approx(1 / 12, rel=0.02)
    assert abs(float((errors[:, :, 1:] * errors[:, :, :-1]).mean())) < 0.002  # from one token to the next


def test_errors_in_a_basis_are_those_of_its_coordinates():
    keys = torch.randn(1, 1, 2000, 4, generator=torch.Generator().manual_seed(1))
    basis = torch.randn(1, 1, 4, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    change = drawn_errors(torch.full((1, 1, 4), 3), basis, torch.Generator().manual_seed(0))
    errors = (change(0, keys, keys)[0] - keys).double() @ basis[0].mT
    own = keys.double() @ basis[0].mT
    step = (own.amax(-2) - own.amin(-2)) / 7
    assert (errors / step[..., None, :]).square().mean((0, 1, 2)).numpy() == pytest.approx(1 / 12, rel=0.1)


@pytest.mark.parametrize("family", spread(["gpt2", "llama", "gemma2", "gpt_oss"], 3))
@pytest.mark.parametrize("bits", [4, 6])
def test_the_forecast_is_what_rounding_costs(family, bits):
    model = opened(family)
    windows, even = model.windows(text(320), 64), torch.full((3, model.shape.key_heads, model.shape.size), bits)
    measured = mean_kl(model, windows, rounded_keys(even))
    (found,) = forecasts(model, windows, [(even, None)], draws=8)
    assert found.kl == pytest.approx(measured, rel=0.25) and 0 < found.spread < 0.5 * found.kl


def test_several_choices_are_forecast_at_once_and_the_seed_decides():
    model = opened()
    windows = model.windows(text(96), 32)
    choices = [(torch.full((3, 2, 8), bits), None) for bits in (3, 5)]
    both = forecasts(model, windows, choices, seed=4)
    assert both == [forecasts(model, windows, [one], seed=4)[0] for one in choices]
    assert both[0].kl > both[1].kl and both[0].draws == DRAWS
    assert both != forecasts(model, windows, choices, seed=5)
