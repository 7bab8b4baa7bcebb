"""ModelConfig: presets, fields, and what is refused."""

import dataclasses
import subprocess
import sys

import pytest
from dense_reference import SHAPE

from qkv.errors import QkvError
from qkv.model.config import ATTENTIONS, PRESETS, ModelConfig, preset


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


@pytest.mark.parametrize("wrong", [3, [("n_layer", 2)], None])
def test_only_a_mapping_is_a_configuration(wrong):
    with pytest.raises(QkvError, match="reading a model's configuration: it is a"):
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
