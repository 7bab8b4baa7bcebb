"""Attention layers: gradients, KV caches, and parity with transformers' attention."""

import pytest
import torch
from dense_reference import CONFIGS, model_of, tokens_of
from marks import some

from qkv.core import kernels
from qkv.model.attention import CrossAttention, SelfAttention, Source, Synthesizer, make_attention
from qkv.model.config import ModelConfig
from qkv.model.packed_sequences import PackedLayout


@pytest.mark.parametrize("name", some(CONFIGS, ["rope, grouped", "causal"]))
def test_its_gradients_are_right(name):
    model, tokens = model_of(name), tokens_of(2, 6)
    attention = model.blocks[0].attention
    weights = [p for n, p in model.named_parameters() if "attention" in n and n.startswith("blocks.0")]
    # Norms of rope round to float32, so the check is made of the attention alone.
    x = torch.randn(12, 16, dtype=torch.float64, requires_grad=True)
    layout = PackedLayout([(2, 6)])
    if name == "perceiver":
        z = torch.randn(2, 16, dtype=torch.float64, requires_grad=True)
        inner = PackedLayout([(2, 1)])

        def run(x, z, *_):
            return attention.out(attention(z, inner, None, Source(attention.keys_values(x, layout, None), layout)))

        assert torch.autograd.gradcheck(run, (x, z, *weights))
    else:
        assert torch.autograd.gradcheck(lambda x, *_: attention.out(attention(x, layout, None)), (x, *weights))
    model(tokens).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("attention", ["causal", "rope"])
@pytest.mark.parametrize("keep", [None, [0, 5, 139, 140, 200]])
def test_sequences_too_long_to_store_weights_give_the_same(monkeypatch, attention, keep):
    """Beyond the threshold torch's fused kernel is taken; here the threshold is moved to compare with it."""
    torch.manual_seed(0)
    layer = SelfAttention(ModelConfig(attention=attention, n_head=2, d_model=8, context_length=140)).double()
    x = torch.randn(220, 8, dtype=torch.float64, requires_grad=True)
    keep = None if keep is None else torch.tensor(keep)
    results = []
    for longest in (128, 140):
        monkeypatch.setattr(kernels, "MAX_STORED_LENGTH", longest)
        layout = PackedLayout([(2, 40), (1, 140)])
        out = layer(x, layout, keep=keep)
        results.append((out, *torch.autograd.grad(out.square().sum(), (x, layer.qkv.weight))))
    assert results[0][0].shape == (220 if keep is None else 5, 8)
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["causal", "rope", "rope, grouped", "synthesizer"])
@pytest.mark.parametrize("cuts", [[5], [1, 4], [2, 2, 1], [1, 1, 1, 1, 1]])
def test_a_cache_continues_where_earlier_calls_ended(name, cuts):
    """Tokens given in parts, each part a prefill (past_length) or a decoding step, give what they give at once."""
    model = model_of(name)
    layer = model.blocks[0].attention
    x = torch.randn(3, 5, 16, dtype=torch.float64)
    want = layer(x.flatten(0, 1), PackedLayout([(3, 5)])).view(3, 5, 16)
    cache, done = model.cache(3, 5)[0], 0
    for t in cuts:
        part = x[:, done : done + t].flatten(0, 1)
        step = PackedLayout.decoding_step(torch.full((3,), done))
        layout = step if t == 1 and done else PackedLayout([(3, t)], past_length=done)
        got = layer(part, layout, cache).view(3, t, 16)
        torch.testing.assert_close(got, want[:, done : done + t], rtol=0, atol=1e-12)
        done += t


@pytest.mark.parametrize("name", ["causal", "rope, grouped"])
def test_a_decoding_step_may_continue_some_sequences_only(name):
    model = model_of(name)
    layer = model.blocks[0].attention
    x = torch.randn(3, 5, 16, dtype=torch.float64)
    want = layer(x.flatten(0, 1), PackedLayout([(3, 5)])).view(3, 5, 16)
    cache = model.cache(3, 9)[0]
    layer(x[:, :4].flatten(0, 1), PackedLayout([(3, 4)]), cache)
    some = torch.tensor([2, 0])
    step = PackedLayout.decoding_step(torch.tensor([4, 4]), some)
    torch.testing.assert_close(layer(x[some, 4], step, cache), want[some, 4], rtol=0, atol=1e-12)
    kept = layer(x[some, 4], step, cache, keep=torch.tensor([1]))
    torch.testing.assert_close(kept, want[[0], 4], rtol=0, atol=1e-12)


def test_self_attention_is_llamas():
    transformers = pytest.importorskip("transformers")
    from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=16, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=12,
        attn_implementation="sdpa",
    )  # fmt: skip
    theirs = LlamaAttention(config, layer_idx=0).double().eval()
    layer_config = ModelConfig(attention="rope", n_head=4, n_kv_head=2, d_model=16, context_length=12)
    ours = SelfAttention(layer_config).double().eval()
    with torch.no_grad():
        ours.qkv.weight.copy_(torch.cat([getattr(theirs, f"{name}_proj").weight for name in "qkv"]))
        ours.out.weight.copy_(theirs.o_proj.weight)
    x = torch.randn(2, 12, 16, dtype=torch.float64)
    cos_sin = LlamaRotaryEmbedding(config=config)(x.float(), torch.arange(12)[None])
    mask = torch.full((12, 12), -torch.inf, dtype=torch.float64).triu(1)[None, None]
    want = theirs(x, position_embeddings=tuple(each.double() for each in cos_sin), attention_mask=mask)[0]
    got = ours.out(ours(x.flatten(0, 1), PackedLayout([(2, 12)]))).view(2, 12, 16)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


def test_self_attention_is_gpt2s():
    transformers = pytest.importorskip("transformers")
    from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

    torch.manual_seed(0)
    config = transformers.GPT2Config(n_embd=16, n_head=4, n_positions=12, attn_pdrop=0.0, attn_implementation="eager")
    theirs = GPT2Attention(config, layer_idx=0).double().eval()
    ours = SelfAttention(ModelConfig(n_head=4, d_model=16, context_length=12)).double().eval()
    with torch.no_grad():
        for linear, conv in ((ours.qkv, theirs.c_attn), (ours.out, theirs.c_proj)):
            linear.weight.copy_(conv.weight.T)
            linear.bias.copy_(conv.bias.add_(torch.randn_like(conv.bias)))
    x = torch.randn(2, 12, 16, dtype=torch.float64)
    mask = torch.full((12, 12), -torch.inf, dtype=torch.float64).triu(1)[None, None]
    want = theirs(x, attention_mask=mask)[0]
    got = ours.out(ours(x.flatten(0, 1), PackedLayout([(2, 12)]))).view(2, 12, 16)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


def test_each_block_gets_the_layer_of_its_place():
    def layers(attention):
        config = ModelConfig(attention=attention, n_layer=4, context_length=64, latents=16)
        return [type(make_attention(config, i)) for i in range(4)]

    assert layers("causal") == layers("rope") == [SelfAttention] * 4
    assert layers("synthesizer") == [Synthesizer] * 4
    assert layers("perceiver") == [CrossAttention, SelfAttention, SelfAttention, CrossAttention]
