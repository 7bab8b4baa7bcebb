"""The packed cache: what it stores, how large it is, and that generation works with it."""

import numpy as np
import pytest
import torch
from families import text, tiny, tokenizer
from transformers import DynamicCache

from qkv.errors import QkvError
from qkv.heads.allocation import COUNTS, NUMBERS, Allocation, rounded_keys
from qkv.heads.attention_model import from_transformers
from qkv.heads.divergence import mean_kl
from qkv.heads.key_grid import key_grid
from qkv.heads.packed_cache import PackedKeyLayer, quantised_cache

FAMILIES = [
    "gpt2", "llama", "qwen2", "gpt_oss",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("qwen3", "mistral", "neox", "phi", "opt", "gemma2")),
]  # fmt: skip


def layer_of(bits, basis=None, tail=0, group=8, exact_prompt=False):
    return PackedKeyLayer(torch.as_tensor(bits), basis, tail, group, exact_prompt)


def allocation_of(bits, basis=None):
    """An allocation that nothing was measured of."""
    nothing = dict.fromkeys((*NUMBERS, *COUNTS), 0)
    return Allocation(model="x", bits=bits, basis=basis, **{**nothing, "average": 9.0})


def random_states(seed, batch=2, heads=2, n=24, size=4, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(batch, heads, n, size, generator=generator).to(dtype) for _ in range(2))


@pytest.mark.parametrize("seed", range(25))
def test_what_comes_out_is_the_rounded_key(seed):
    """Random bits, blocks and tails, fed in random portions, against plain rounding block by block."""
    draw = np.random.default_rng(seed)
    bits = torch.tensor(draw.integers(1, 9, (2, 4)))
    group, tail = int(draw.choice([8, 16])), int(draw.integers(0, 12))
    layer = layer_of(bits, tail=tail, group=group)
    keys, values = random_states(seed, n=60)
    start = 0
    while start < 60:
        size = int(draw.integers(1, 30))
        found, kept = layer.update(keys[:, :, start : start + size], values[:, :, start : start + size])
        start += size
    expected, blocks = keys.clone(), max(0, 60 - tail) // group
    for block in range(blocks):
        part = keys[:, :, block * group : (block + 1) * group]
        rounded = key_grid(part, bits[None, :, None, :], stored=True).rounded(part)
        expected[:, :, block * group : (block + 1) * group] = rounded
    assert torch.equal(kept, values) and layer.get_seq_length() == 60
    assert torch.allclose(found, expected, rtol=0, atol=2e-6)
    packed = blocks * group * int(bits.sum()) // 8 + blocks * bits.numel() * 4
    assert layer.key_bytes() == 2 * (packed + (60 - blocks * group) * bits.numel() * 4)


def test_tokens_of_one_pass_see_each_other_whole():
    keys, values = random_states(0)
    layer = layer_of(torch.full((2, 4), 2), exact_prompt=True)
    found, _ = layer.update(keys, values)
    assert torch.equal(found, keys)
    later, _ = layer.update(keys[:, :, :1], values[:, :, :1])
    assert not torch.equal(later[:, :, :24], keys) and torch.equal(later[:, :, 24:], keys[:, :, :1])


def test_a_basis_is_undone():
    generator = torch.Generator().manual_seed(1)
    basis = torch.randn(2, 4, 4, generator=generator, dtype=torch.float64)
    keys, values = random_states(2)
    found, _ = layer_of(torch.full((2, 4), 8), basis).update(keys, values)
    assert torch.allclose(found, keys, atol=0.1) and not torch.equal(found, keys)
    coordinates = (keys.double() @ basis.mT).float().reshape(2, 2, 3, 8, 4)
    rounded = key_grid(coordinates, 8, stored=True).rounded(coordinates).reshape(2, 2, 24, 4)
    assert torch.allclose(found, (rounded.double() @ torch.linalg.inv(basis).mT).float(), atol=1e-4)


def test_batches_follow_beams():
    keys, values = random_states(3)
    layer = layer_of(torch.full((2, 4), 3), tail=4)
    before, _ = layer.update(keys, values)
    layer.reorder_cache(torch.tensor([1, 0]))
    after, _ = layer.update(keys[:, :, :0], values[:, :, :0])
    assert torch.equal(after, before[[1, 0]])
    layer.batch_repeat_interleave(2)
    layer.batch_select_indices(torch.tensor([0, 3]))
    assert torch.equal(layer.update(keys[:, :, :0], values[:, :, :0])[0], before[[1, 0]])
    layer.reset()
    assert layer.get_seq_length() == 0 and layer.unpacked() is None
    with pytest.raises(QkvError, match="taken back"):
        layer.crop(-1)


@pytest.mark.parametrize("family", FAMILIES)
def test_generation(family):
    model = tiny(family)
    ids = torch.randint(3, 97, (2, 30), generator=torch.Generator().manual_seed(0))
    options = {"max_new_tokens": 20, "min_new_tokens": 20, "do_sample": False, "pad_token_id": 0}
    whole = model.generate(ids, **options)
    assert torch.equal(model.generate(ids, past_key_values=quantised_cache(model, 2, tail=50), **options), whole)
    cache = quantised_cache(model, 8, tail=0, group=8)
    fine = model.generate(ids, past_key_values=cache, **options)
    assert fine.shape == whole.shape == (2, 50) and (fine == whole).float().mean() > 0.7
    assert cache.get_seq_length() == 49
    assert cache.key_bytes() == cache.promised_key_bytes(49, batch=2)
    assert cache.key_bytes() < 0.6 * cache.whole_key_bytes()
    coarse = quantised_cache(model, 1, tail=0, group=16)
    assert model.generate(ids, past_key_values=coarse, **options).shape == (2, 50)


def test_beam_search():
    model = tiny("llama")
    ids = torch.randint(3, 97, (1, 24), generator=torch.Generator().manual_seed(0))
    options = {"max_new_tokens": 6, "num_beams": 3, "do_sample": False, "pad_token_id": 0}
    whole = model.generate(ids, **options)
    assert torch.equal(model.generate(ids, past_key_values=quantised_cache(model, 8, tail=64), **options), whole)
    assert model.generate(ids, past_key_values=quantised_cache(model, 3, tail=0, group=8), **options).shape[1] > 24


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen2"])
def test_decoding_equals_a_plain_cache_with_rounded_keys(family):
    """A context is read whole; its cached keys are then rounded, by packing or in place, and the text goes on."""
    model = tiny(family)
    ids = torch.randint(3, 97, (1, 60), generator=torch.Generator().manual_seed(1))
    cache, plain = quantised_cache(model, 3, tail=8, group=16), DynamicCache()
    with torch.no_grad():
        for held in (cache, plain):
            model(input_ids=ids[:, :40], past_key_values=held, use_cache=True)
        for layer in plain.layers:
            part = layer.keys[:, :, :32].reshape(1, -1, 2, 16, layer.keys.shape[-1])
            rounded = key_grid(part, 3, stored=True).rounded(part).reshape(1, part.shape[1], 32, -1)
            layer.keys = torch.cat([rounded, layer.keys[:, :, 32:]], 2)
        found, expected = (
            model(input_ids=ids[:, 40:45], past_key_values=held, use_cache=True).logits for held in (cache, plain)
        )
    assert torch.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("own_basis", [False, True])
def test_the_kl_is_that_of_the_simulation(own_basis):
    model = from_transformers(tiny("llama"), tokenizer())
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(2, 9, (3, 2, 8), generator=generator)
    basis = torch.randn(3, 2, 8, 8, generator=generator, dtype=torch.float64) if own_basis else None
    given = allocation_of(bits, basis)
    ids = model.windows(text(64))[0]
    simulated = mean_kl(model, [ids], rounded_keys(bits, basis))
    cache = quantised_cache(model, given, tail=0, group=64, exact_prompt=False, any_model=True)
    with torch.no_grad():
        own = model.model(input_ids=ids[None]).logits[0].double().log_softmax(-1)
        packed = (
            model.model(input_ids=ids[None], past_key_values=cache, use_cache=True).logits[0].double().log_softmax(-1)
        )
    assert float((own.exp() * (own - packed)).sum(-1).mean()) == pytest.approx(simulated, rel=1e-4)
    assert cache.key_bytes() == cache.promised_key_bytes(64) == 64 * int(bits.sum()) // 8 + 4 * bits.numel()


def test_half_precision():
    model = tiny("llama").to(torch.bfloat16)
    ids = torch.randint(3, 97, (1, 40), generator=torch.Generator().manual_seed(0))
    cache = quantised_cache(model, 4, tail=0, group=8)
    assert model.generate(ids, past_key_values=cache, max_new_tokens=4, do_sample=False, pad_token_id=0).shape[1] > 40
    assert cache.key_bytes() == cache.promised_key_bytes(cache.get_seq_length(), entry_bytes=2)


def test_refusals(tmp_path):
    model = tiny("llama")
    (tmp_path / "bits.json").write_text("{}")
    other = allocation_of(torch.full((3, 2, 4), 3))
    cases = (
        (model, 0, {}, "Give a whole number"), (model, 9, {}, "Give different numbers"),
        (model, 3.5, {}, "Give a number"), (model, None, {}, "Give a number"), (model, True, {}, "Give a number"),
        (model, other, {}, "Allocate bits for this model"), (model, tmp_path / "bits.json", {}, "Write it again"),
        (model, 4, {"group": 12}, "multiple of 8"), (model, 4, {"tail": -1}, "tail"), (5, 4, {}, "Give a transformers"),
    )  # fmt: skip
    for given, bits, options, why in cases:
        with pytest.raises(QkvError, match=why):
            quantised_cache(given, bits, **options)
    model.train()
    quantised_cache(model, 4)
    assert model.training


def test_models_with_layers_of_another_kind_are_refused():
    model = tiny("llama")
    found = from_transformers(model, tokenizer())
    model.config.num_hidden_layers = 4  # as in a hybrid model, one of whose layers has no attention
    with pytest.raises(QkvError, match="3 of the model's 4 layers have attention"):
        quantised_cache(found, 3)
