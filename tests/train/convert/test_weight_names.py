"""Weight names: those that transformers has itself, and the way there and back."""

import pytest
import torch
import transformers

from qkv.errors import QkvError
from qkv.model.config import ModelConfig
from qkv.model.gpt import GPT
from qkv.model.numpy_gpt import shapes
from qkv.train.checkpoint import check_shapes, weights_of
from qkv.train.convert.hf_export import gpt2_config, llama_config
from qkv.train.convert.weight_names import FIRST_MIN_GPT, GPT2, LLAMA, NANO_GPT

SMALL = {"n_layer": 2, "n_head": 4, "d_model": 16, "context_length": 8, "vocab_size": 20}
CASES = [
    (GPT2, ModelConfig(**SMALL)),
    (GPT2, ModelConfig(**SMALL, tie_embeddings=False)),
    (LLAMA, ModelConfig(attention="rope", n_kv_head=2, **SMALL)),
    (LLAMA, ModelConfig(attention="rope", tie_embeddings=False, **SMALL)),
]


@pytest.mark.parametrize(("names", "config"), CASES)
def test_names_and_shapes_are_those_of_transformers(names, config):
    if names is GPT2:
        theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**gpt2_config(config)))
    else:
        theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(**llama_config(config)))
    wanted = {name: tuple(p.shape) for name, p in theirs.named_parameters()}
    found = names.to_theirs(weights_of(GPT(config)), config)
    assert {name: tuple(t.shape) for name, t in found.items()} == wanted
    assert (GPT2.name, LLAMA.name) == ("GPT-2", "Llama")


@pytest.mark.parametrize(
    ("names", "config"), [*CASES, (NANO_GPT, ModelConfig(**SMALL)), (FIRST_MIN_GPT, ModelConfig(**SMALL))]
)
def test_weights_come_back_bit_for_bit(names, config):
    ours = weights_of(GPT(config))
    again = names.to_ours(names.to_theirs(ours, config), config, "a test")
    assert ours.keys() == again.keys() and all(torch.equal(ours[name], again[name]) for name in ours)


def test_biases_that_we_do_not_have_are_zeros():
    config = ModelConfig(**SMALL, bias=False)
    found = GPT2.to_theirs(weights_of(GPT(config)), config)
    biases = {name: t for name, t in found.items() if name.endswith("bias")}
    assert len(biases) == 2 * 6 + 1 and not any(t.any() for t in biases.values())
    assert biases["transformer.h.0.attn.c_attn.bias"].shape == (48,)


def test_missing_weights_are_named():
    config = ModelConfig(**SMALL)
    state = GPT2.to_theirs(weights_of(GPT(config)), config)
    del state["transformer.h.1.mlp.c_fc.bias"]
    with pytest.raises(QkvError, match=r"importing a test as GPT-2.*it lacks transformer.h.1.mlp.c_fc.bias"):
        GPT2.to_ours(state, config, "a test")


def test_shapes_that_do_not_fit_are_refused_in_a_sentence():
    config = ModelConfig(attention="rope", **SMALL)
    state = LLAMA.to_theirs(weights_of(GPT(config)), config)
    state["model.layers.0.self_attn.k_proj.weight"] = torch.zeros(16, 15)
    with pytest.raises(QkvError, match="do not fit together"):
        LLAMA.to_ours(state, config, "a test")


def test_positions_of_another_width_are_left_for_the_check_of_shapes():
    config = ModelConfig(**SMALL)
    state = GPT2.to_theirs(weights_of(GPT(config)), config)
    state["transformer.wpe.weight"] = torch.zeros(8, 15)
    with pytest.raises(QkvError, match=r"places.weight has shape \(8, 15\)"):
        check_shapes(shapes(config), GPT2.to_ours(state, config, "a test"), "a test")
