"""ModelConfig: presets, fields, and what is refused."""

import dataclasses
import random
import subprocess
import sys

import pytest
from dense_reference import SHAPE

from qkv.errors import QkvError
from qkv.model.config import ATTENTIONS, PRESETS, ModelConfig, preset
from qkv.model.gpt import GPT


def test_presets_have_the_sizes_they_promise():
    course = preset("course", vocab_size=100)
    assert (course.n_layer, course.n_head, course.d_model, course.context_length) == (4, 8, 256, 128)
    assert set(PRESETS) == {"tiny", "small", "course"}
    assert all(f.metadata["help"] for f in dataclasses.fields(ModelConfig))
    assert ModelConfig.from_json(course.to_json()) == course


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"attention": "ropes"}, "did you mean rope"),
        ({"d_model": 30}, "not a multiple of 4 heads"),
        ({"n_layer": 0}, "n_layer is 0"),
        ({"attention": "rope", "n_kv_head": 3}, "cannot share 3"),
        ({"n_kv_head": 2}, "only rope takes"),
        ({"attention": "perceiver", "latents": 7}, "7 latents"),
        ({"dropout": 1.0}, "dropout is 1"),
        ({"activation": "relu"}, "activation is 'relu'"),
    ],
)
def test_impossible_configurations_are_refused_with_the_reason(change, why):
    with pytest.raises(QkvError, match=why):
        ModelConfig(**{**SHAPE, **change})


def test_unknown_fields_presets_and_types_are_refused():
    with pytest.raises(QkvError, match="did you mean n_layer"):
        ModelConfig.from_json({"layer": 2})
    with pytest.raises(QkvError, match="n_layer is 'two'"):
        ModelConfig.from_json({"n_layer": "two"})
    with pytest.raises(QkvError, match="did you mean tiny"):
        preset("tinny")


def test_sizes_that_follow_from_others():
    plain = ModelConfig(n_head=4, d_model=96, context_length=32, latents=8)
    assert (plain.head_dim, plain.n_kv_head_effective, plain.d_ff_effective, plain.stride) == (24, 4, 384, 4)
    grouped = ModelConfig(attention="rope", n_head=4, n_kv_head=2, d_model=96)
    assert (grouped.head_dim, grouped.n_kv_head_effective) == (24, 2)
    assert ModelConfig(attention="rope", d_model=128).d_ff_effective == 344  # 8/3 · 128 = 341.3, in multiples of 8
    assert ModelConfig(d_ff=10).d_ff_effective == 10


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_every_preset_is_valid_for_every_attention(name, attention):
    assert preset(name, attention=attention).attention == attention


@pytest.mark.parametrize(("wrong", "kind"), [(3, "an int"), ([("n_layer", 2)], "a list"), (None, "None")])
def test_only_a_mapping_is_a_configuration(wrong, kind):
    with pytest.raises(QkvError, match=f"reading a model's configuration: it is {kind}"):
        ModelConfig.from_json(wrong)


def test_integers_are_floats_but_booleans_are_no_integers():
    assert ModelConfig.from_json({"dropout": 0}).dropout == 0.0
    with pytest.raises(QkvError, match="n_layer is True"):
        ModelConfig.from_json({"n_layer": True})
    with pytest.raises(QkvError, match="bias is 1"):
        ModelConfig.from_json({"bias": 1})


def test_all_problems_are_named_at_once():
    with pytest.raises(QkvError, match=r"n_layer is 0; dropout is 2"):
        ModelConfig(n_layer=0, dropout=2)


def test_it_needs_no_torch():
    code = "import sys, qkv.model.config; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_the_number_of_parameters_is_that_of_the_model(attention):
    draw = random.Random(attention)
    for _ in range(30):
        n_head = draw.choice([1, 2, 4])
        latents = draw.randrange(1, 5)
        config = ModelConfig(
            attention=attention,
            n_layer=draw.randrange(2, 5),
            n_head=n_head,
            n_kv_head=draw.choice([0, 1, n_head]) if attention == "rope" else 0,
            d_model=n_head * draw.choice([2, 4, 8]),
            d_ff=draw.choice([0, 7, 24]),
            context_length=latents * draw.randrange(1, 9),
            latents=latents,
            vocab_size=draw.randrange(1, 50),
            bias=draw.random() < 0.5,
            tie_embeddings=draw.random() < 0.5,
        )
        model = GPT(config)
        assert config.n_parameters == sum(p.numel() for p in model.parameters())
        tables = sum(2 * b.numel() if b.is_complex() else b.numel() for n, b in model.named_buffers() if "table" in n)
        assert config._n_rotary == tables


@pytest.mark.parametrize("name", ["n_layer", "n_head", "d_model", "d_ff", "context_length", "vocab_size", "latents"])
@pytest.mark.parametrize("value", [10**8, 10**18, 10**18 + 1])
def test_absurd_sizes_are_refused_before_anything_is_built(name, value):
    with pytest.raises(QkvError, match=f"{name} is {value}, and [0-9]+ is the limit"):
        ModelConfig(**{name: value})


@pytest.mark.parametrize(("sign", "digits"), [(1, 19), (-1, 5000), (1, 400)])
@pytest.mark.parametrize("name", ["n_layer", "dropout", "rope_theta"])
def test_integers_beyond_any_size_are_refused_as_such(name, sign, digits):
    with pytest.raises(QkvError, match=f"{name} is an integer of [0-9]+ bits"):
        ModelConfig.from_json({name: sign * 10**digits})
    with pytest.raises(QkvError, match=f"{name} is "):
        ModelConfig.from_json({name: [sign * 10**digits]})


def test_sizes_that_are_allowed_one_by_one_are_refused_together():
    with pytest.raises(QkvError, match=r"it would have [0-9,]+ numbers, and 100,000,000,000 is the limit"):
        ModelConfig(n_layer=1000, n_head=1, d_model=2**16)
    with pytest.raises(QkvError, match="numbers"):
        ModelConfig(attention="rope", n_layer=1000, n_head=1, d_model=2**10, context_length=2**20)
    assert ModelConfig(attention="rope", n_layer=80, n_head=64, n_kv_head=8, d_model=8192, d_ff=28672).n_parameters
    with pytest.raises(QkvError, match="rope_theta is inf"):
        ModelConfig(rope_theta=float("inf"))


def test_long_values_are_cut_in_messages():
    with pytest.raises(QkvError) as refusal:
        ModelConfig.from_json({"n_layer": [list(range(1000))] * 50})
    assert len(str(refusal.value)) < 300


def test_a_model_that_does_not_fit_into_memory_is_refused_before_it_is_built():
    large = ModelConfig(attention="rope", n_layer=100, n_head=64, d_model=8192)
    with pytest.raises(QkvError, match=r"parameters take [0-9.e+]+ GB, and this machine has [0-9.]+ GB"):
        GPT(large)
    ModelConfig().check_memory()
