import pytest
import torch
from families import CONFIGS, text, tiny, tokenizer

from qkv.errors import QkvError
from qkv.heads.attention_model import from_transformers
from qkv.heads.output_circuit import OutputCircuit, output_circuits, vocabulary_matrix, writing_measures


@pytest.mark.parametrize("family", CONFIGS)
def test_every_family_gives_a_value_and_an_output_matrix(family):
    model = from_transformers(tiny(family), tokenizer())
    circuits = output_circuits(model)
    shape = model.shape
    assert len(circuits) == 3
    assert all(c.value.shape == (shape.key_heads, shape.size, 32) for c in circuits)
    assert all(c.output.shape == (shape.heads, 32, shape.size) for c in circuits)


def test_they_are_the_weights_of_the_model():
    model = from_transformers(tiny("llama"), tokenizer())
    block = model.model.model.layers[1].self_attn
    circuit = output_circuits(model)[1]
    assert torch.allclose(circuit.value.reshape(16, 32), block.v_proj.weight, atol=1e-6)
    assert torch.allclose(circuit.output.transpose(0, 1).reshape(32, 32), block.o_proj.weight, atol=1e-6)
    gpt2 = from_transformers(tiny("gpt2"), tokenizer())
    fused = gpt2.model.transformer.h[2].attn
    circuit = output_circuits(gpt2)[2]
    assert torch.allclose(circuit.value.reshape(32, 32), fused.c_attn.weight[:, 64:].T, atol=1e-6)
    assert torch.allclose(circuit.output.transpose(0, 1).reshape(32, 32), fused.c_proj.weight.T, atol=1e-6)


def test_measures_of_known_matrices():
    basis = torch.linalg.qr(torch.randn(12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64))[0]
    keeps = writing_measures(OutputCircuit(3 * basis.T[None], basis[None]), 0, None)
    assert (keeps.copying, keeps.rank, keeps.subspace) == pytest.approx((1.0, 4.0, 1.0))
    removes = writing_measures(OutputCircuit(-basis.T[None], basis[None]), 0, None)
    assert (removes.copying, removes.subspace) == pytest.approx((-1.0, 0.0), abs=1e-12)
    nothing = writing_measures(OutputCircuit(0 * basis.T[None], basis[None]), 0, None)
    assert (nothing.copying, nothing.rank, nothing.subspace) == (0.0, 0.0, 0.0)


def test_copying_is_the_eigenvalue_share_of_the_whole_matrix_from_token_to_logits():
    model = from_transformers(tiny("llama"), tokenizer())
    circuit = output_circuits(model)[0]
    output, value = (m.double() for m in circuit.head(3))
    embedding, head = model.model.get_input_embeddings().weight, model.model.get_output_embeddings().weight
    whole = torch.linalg.eigvals((head.double() @ output @ value @ embedding.T.double()).detach())
    found = writing_measures(circuit, 3, vocabulary_matrix(model))
    assert found.copying == pytest.approx(float(whole.real.sum() / whole.abs().sum()), abs=1e-6)
    singular = torch.linalg.svdvals(output @ value)[:8]
    share = singular / singular.sum()
    assert found.rank == pytest.approx(float((-(share * share.log()).sum()).exp()))
    symmetric = torch.linalg.eigvalsh((output @ value + (output @ value).T) / 2).flip(0)
    best = max(float(symmetric[:r].sum()) / r**0.5 for r in range(1, 33)) / float(singular.norm())
    assert found.subspace == pytest.approx(best)


def test_the_circuits_say_what_a_head_adds():
    model = from_transformers(tiny("llama"), tokenizer())
    seen = {}
    block = model.model.model.layers[0]
    handle = block.self_attn.register_forward_hook(lambda m, args, out: seen.update(out=out[0]))
    before = block.input_layernorm.register_forward_hook(lambda m, args, out: seen.update(x=out))
    captured = model.capture(text(10))
    handle.remove()
    before.remove()
    circuit, weights = output_circuits(model)[0], captured.calls[0].weights[0]
    parts = [weights[h] @ seen["x"][0] @ (circuit.head(h)[0] @ circuit.head(h)[1]).T for h in range(4)]
    assert torch.allclose(sum(parts), seen["out"][0], atol=1e-5)


def test_maps_that_fit_equally_well_are_refused_and_equal_ones_are_not():
    model = from_transformers(tiny("llama"), tokenizer())
    block = model.model.model.layers[1].self_attn
    with torch.no_grad():
        block.k_proj.weight.copy_(block.v_proj.weight)
    circuit = output_circuits(model)[1]
    assert torch.allclose(circuit.value.reshape(16, 32), block.v_proj.weight, atol=1e-6)
    gpt2 = from_transformers(tiny("gpt2"), tokenizer())
    fused = gpt2.model.transformer.h[2]
    with torch.no_grad():
        fused.attn.c_attn.weight[:, 64:] = 0
        fused.attn.c_attn.bias.zero_()
        fused.ln_2.weight.zero_()
        fused.ln_2.bias.zero_()
    with pytest.raises(QkvError, match="in layer 2 several maps fit"):
        output_circuits(gpt2)


def test_the_output_matrix_is_that_of_its_own_layer():
    model = from_transformers(tiny("llama"), tokenizer())
    layers = model.model.model.layers
    with torch.no_grad():
        for layer in (layers[0], layers[2]):
            layer.self_attn.v_proj.weight.zero_()
    for layer, circuit in zip(layers, output_circuits(model), strict=True):
        assert torch.allclose(circuit.output.transpose(0, 1).reshape(32, 32), layer.self_attn.o_proj.weight, atol=1e-6)
