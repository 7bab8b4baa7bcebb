"""Attention on a span, against the outputs that the weights must make."""

import pytest
import torch

from qkv.knowledge.answering.name_attention import span_attention
from qkv.model.config import ATTENTIONS
from qkv.model.numpy_gpt import NumpyGPT


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_the_weights_of_each_head_make_the_output_of_its_layer(attention, random_model):
    model, ids = random_model(attention, vocab_size=20), [5, 7, 9, 11, 3, 4, 2, 8]
    caught = {}
    hooks = [
        b.attention.register_forward_hook(lambda m, a, out, layer=i: caught.update({layer: (a, out)}))
        for i, b in enumerate(model.blocks)
    ]
    model(torch.tensor([ids]))
    for hook in hooks:
        hook.remove()
    each = {(found.layer, found.head): [] for found in span_attention(NumpyGPT.from_torch(model), ids, (0, 1))}
    for place in range(len(ids)):
        for found in span_attention(NumpyGPT.from_torch(model), ids, (place, place + 1)):
            each[found.layer, found.head].append(found.weight)
    assert len(each) == (2 if attention == "perceiver" else 4)
    for (layer, head), weights in each.items():
        assert sum(weights) == pytest.approx(1, abs=1e-5)
        (x, *_), out = caught[layer]
        module = model.blocks[layer].attention
        if attention == "perceiver":
            tokens = model.embedding(torch.tensor(ids)) + model.places(torch.arange(len(ids)))
            v = module.kv(module.norm(tokens)).unflatten(-1, (-1, module.head_dim)).chunk(2, 1)[1]
        else:
            v = (module.qkv if attention != "synthesizer" else module.qv)(x).unflatten(-1, (-1, module.head_dim))[
                :, -2:
            ]
        made = torch.tensor(weights) @ v[:, head]
        assert torch.allclose(made, out[-1].unflatten(-1, (2, -1))[head], atol=1e-5)


def test_heads_are_sorted_by_weight_and_a_span_has_the_sum_of_its_positions(random_model):
    model, ids = NumpyGPT.from_torch(random_model("rope", vocab_size=20)), [5, 7, 9, 11, 3]
    found = span_attention(model, ids, (1, 3))
    assert [f.weight for f in found] == sorted((f.weight for f in found), reverse=True)
    parts = [{(f.layer, f.head): f.weight for f in span_attention(model, ids, (i, i + 1))} for i in (1, 2)]
    for f in found:
        assert f.weight == pytest.approx(sum(part[f.layer, f.head] for part in parts), abs=1e-6)
