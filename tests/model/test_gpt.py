"""One contract for a model of every kind of attention, against a dense float64 reference."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, rms_norm

from qkv.errors import QkvError
from qkv.model import gpt, packed_sequences
from qkv.model.config import ATTENTIONS, PRESETS, ModelConfig, preset
from qkv.model.decoding import Sampler, decode
from qkv.model.gpt import GPT
from qkv.model.layers import RMSNorm, dropout, picked
from qkv.model.packed_sequences import PackedLayout

VOCAB = 19
SHAPE = {"n_layer": 3, "n_head": 4, "d_model": 16, "context_length": 24, "latents": 6, "vocab_size": VOCAB}
CONFIGS = {
    **{name: ModelConfig(attention=name, **SHAPE) for name in ATTENTIONS},
    "rope, grouped": ModelConfig(attention="rope", n_kv_head=2, **SHAPE),
    "causal, plain": ModelConfig(attention="causal", bias=False, tie_embeddings=False, activation="gelu_tanh", **SHAPE),
}
EVERY = pytest.mark.parametrize("name", CONFIGS)


def model_of(name, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    model = GPT(CONFIGS[name]).to(dtype).eval()
    with torch.no_grad():
        for p in model.parameters():  # away from the small values at which it starts, so that mistakes show
            p.add_(torch.randn_like(p) * 0.15)
    return model


def tokens_of(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, VOCAB, shape))


def dense(model, tokens):
    """The logits after one sequence, from the model's weights by the definition, one head and one token at a time."""
    c, w = model.config, {n: p.detach().numpy() for n, p in model.named_parameters()}

    def norm(name, x):
        if c.attention == "rope":
            y = x.astype(np.float32)
            return w[f"{name}.weight"] * (y / np.sqrt((y**2).mean(-1, keepdims=True) + np.float32(c.norm_eps)))
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + c.norm_eps)
        return x * w[f"{name}.weight"] + w.get(f"{name}.bias", 0)

    def linear(name, x):
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0)

    def bend(x):
        inner = x + 0.044715 * x**3 if c.activation == "gelu_tanh" else None
        return x / 2 * (1 + (np.tanh(math.sqrt(2 / math.pi) * inner) if inner is not None else erf(x / math.sqrt(2))))

    def mlp(name, x):
        wide = linear(f"{name}.wide", x)
        if c.attention == "rope":
            gate, value = np.split(wide, 2, axis=-1)
            return linear(f"{name}.out", gate / (1 + np.exp(-gate)) * value)
        return linear(f"{name}.out", bend(wide))

    def turned(x):
        half = c.head_dim // 2
        angle = np.arange(len(x))[:, None] * c.rope_theta ** (-np.arange(half) / half)
        z = (x[:, :half] + 1j * x[:, half:]) * np.exp(1j * angle)
        return np.concatenate((z.real, z.imag), axis=1)

    def heads(x, count):
        return [x[:, i * c.head_dim : (i + 1) * c.head_dim] for i in range(count)]

    def softly(scores, sees, values):
        out = np.zeros((len(scores), values.shape[1]))
        for i, row in enumerate(scores):
            seen = [j for j in range(len(row)) if sees(i, j)]
            if seen:
                power = np.exp(row[seen] - row[seen].max())
                out[i] = power @ values[seen] / power.sum()
        return out

    def self_attention(name, x):
        g = c.n_kv_head_effective
        parts = np.split(linear(f"{name}.qkv", x), [c.d_model, c.d_model + g * c.head_dim], axis=1)
        q, k, v = heads(parts[0], c.n_head), heads(parts[1], g), heads(parts[2], g)
        if c.attention == "rope":
            q, k = [turned(each) for each in q], [turned(each) for each in k]
        each = [
            softly(q[h] @ k[h * g // c.n_head].T / math.sqrt(c.head_dim), lambda i, j: j <= i, v[h * g // c.n_head])
            for h in range(c.n_head)
        ]
        return linear(f"{name}.out", np.concatenate(each, axis=1))

    def synthesizer(name, x):
        a, v = np.split(linear(f"{name}.qv", x), 2, axis=1)
        B, b2 = w[f"{name}.keys"][..., :-1], w[f"{name}.keys"][..., -1]
        each = []
        for h, (inner, values) in enumerate(zip(heads(a, c.n_head), heads(v, c.n_head), strict=True)):
            scores = np.maximum(inner, 0) @ B[: len(x), h].T + b2[: len(x), h]
            each.append(softly(scores, lambda i, j: j <= i, values))
        return linear(f"{name}.out", np.concatenate(each, axis=1))

    def across(name, x, y, sees):
        k, v = np.split(linear(f"{name}.kv", norm(f"{name}.norm", y)), 2, axis=1)
        triples = zip(heads(linear(f"{name}.q", x), c.n_head), heads(k, c.n_head), heads(v, c.n_head), strict=True)
        each = [softly(q @ k.T / math.sqrt(c.head_dim), sees, v) for q, k, v in triples]
        return linear(f"{name}.out", np.concatenate(each, axis=1))

    def block(i, x, attend):
        x = x + attend(f"blocks.{i}.attention", norm(f"blocks.{i}.norm1", x))
        return x + mlp(f"blocks.{i}.mlp", norm(f"blocks.{i}.norm2", x))

    x = w["embedding.weight"][tokens]
    if c.attention != "rope":
        x = x + w["places.weight"][: len(tokens)]
    if c.attention == "perceiver":
        s, last = c.stride, c.n_layer - 1
        z = w["latents.weight"]
        z = block(0, z, lambda name, z: across(name, z, x, lambda i, j: j < (i + 1) * s))
        for i in range(1, last):
            z = block(i, z, self_attention)
        x = block(last, x, lambda name, x: across(name, x, z, lambda p, i: (i + 1) * s <= p))
    else:
        for i in range(c.n_layer):
            x = block(i, x, synthesizer if c.attention == "synthesizer" else self_attention)
    return norm("norm", x) @ w.get("head.weight", w["embedding.weight"]).T


erf = np.vectorize(math.erf)


@EVERY
@pytest.mark.parametrize("length", [1, 5, 24])
def test_it_equals_the_dense_reference(name, length):
    model, tokens = model_of(name), tokens_of(length)
    rope = name.startswith("rope")  # whose norms and angles are rounded to float32, as Llama's are
    want = torch.from_numpy(dense(model, tokens.numpy()))
    torch.testing.assert_close(model(tokens[None])[0].detach(), want, rtol=0, atol=1e-5 if rope else 1e-11)


@EVERY
def test_many_sequences_of_one_length_give_the_same_as_few(name, monkeypatch):
    """Where they are many, attention goes head by head: here they are made to count as many, or as few."""
    model, tokens, calls, grads = model_of(name), tokens_of(3, 24), [], []
    want = torch.from_numpy(np.stack([dense(model, row) for row in tokens.numpy()]))
    real = gpt.even_causal
    monkeypatch.setattr(gpt, "even_causal", lambda *given: calls.append(1) or real(*given))
    for large in (1, 1 << 60):
        monkeypatch.setattr(packed_sequences, "LARGE", large)
        out = model(tokens)
        torch.testing.assert_close(out.detach(), want, rtol=0, atol=1e-5 if name.startswith("rope") else 1e-11)
        grads.append(torch.autograd.grad(out.square().sum(), list(model.parameters())))
    # As often as there are blocks, of the three, in which tokens or latents read each other.
    assert len(calls) == {"synthesizer": 0, "perceiver": 1}.get(name, 3)
    for one, two in zip(*grads, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-9)


@EVERY
def test_no_later_token_changes_an_earlier_output(name):
    model, tokens = model_of(name), tokens_of(24)
    before = model(tokens[None])[0]
    for at in range(1, 24):
        changed = tokens.clone()
        changed[at:] = (changed[at:] + 1) % VOCAB
        torch.testing.assert_close(model(changed[None])[0, :at], before[:at], rtol=0, atol=1e-12)


@EVERY
def test_every_token_that_may_matter_does(name):
    model, tokens = model_of(name), tokens_of(24)
    before = model(tokens[None])[0]
    stride = model.config.stride
    for at in range(24):
        changed = tokens.clone()
        changed[at] = (changed[at] + 1) % VOCAB
        moved = (model(changed[None])[0] - before).abs().amax(-1) > 1e-9
        # A perceiver's token is seen at its own place, and from the end of its latent's block on.
        first = (at // stride + 1) * stride if name == "perceiver" else at
        assert moved.tolist() == [p == at or p >= first for p in range(24)]


@EVERY
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
            return attention.out(attention(z, inner, None, (attention.items(x, layout, None), layout)))

        assert torch.autograd.gradcheck(run, (x, z, *weights))
    else:
        assert torch.autograd.gradcheck(lambda x, *_: attention.out(attention(x, layout, None)), (x, *weights))
    model(tokens).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@EVERY
def test_a_row_of_many_lengths_gives_what_each_sequence_gives_alone(name):
    model = model_of(name)
    lengths = [3, 3, 4, 9, 24]
    each = [tokens_of(t, seed=i) for i, t in enumerate(lengths)]
    layout = PackedLayout([(2, 3), (1, 4), (1, 9), (1, 24)])
    got = model(torch.cat(each), layout).split(lengths)
    for alone, together in zip(each, got, strict=True):
        torch.testing.assert_close(together, model(alone[None])[0], rtol=0, atol=1e-12)


@EVERY
def test_computing_only_what_is_kept_changes_nothing(name):
    model = model_of(name).train()
    tokens, keep = tokens_of(3, 10), torch.tensor([0, 9, 14, 28])
    targets = tokens_of(4, seed=1)
    full = model(tokens).flatten(0, 1)[keep]
    want = cross_entropy(full, targets, reduction="sum")
    grads = torch.autograd.grad(want, list(model.parameters()), allow_unused=True)
    got = model(tokens, keep=keep, targets=targets)
    torch.testing.assert_close(got, want)
    for one, two in zip(grads, torch.autograd.grad(got, list(model.parameters()), allow_unused=True), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-6 if name.startswith("rope") else 1e-11)


@EVERY
@pytest.mark.parametrize("kept", [[3, 8, 11, 23], [0, 2, 3, 9, 10]], ids=["last ones", "any"])
def test_with_a_cache_only_what_is_kept_asks_and_all_is_remembered(name, kept):
    model, layout = model_of(name), PackedLayout([(2, 4), (1, 4), (1, 12)])
    tokens, keep = tokens_of(24), torch.tensor(kept)
    whole, some = model.cache(4, 20), model.cache(4, 20)
    want = model(tokens, layout, cache=whole)[keep]
    torch.testing.assert_close(model(tokens, layout, keep=keep, cache=some), want, rtol=0, atol=1e-12)
    for one, two in zip(whole, some, strict=True):
        torch.testing.assert_close((one.k, one.v), (two.k, two.v), rtol=0, atol=1e-12)


@EVERY
def test_decoding_with_a_cache_equals_running_everything_again(name):
    model = model_of(name)
    prompts = [tokens_of(t, seed=t).tolist() for t in (1, 7, 3, 3, 12, 8)]
    got = decode(model, prompts, 12, log_probabilities=True)
    for prompt, tokens, values in zip(prompts, got.tokens, got.log_probabilities, strict=True):
        text = list(prompt)
        for token, value in zip(tokens, values, strict=True):
            logits = model(torch.tensor([text]))[0, -1].detach()
            assert int(logits.argmax()) == token
            assert float(logits.log_softmax(-1)[token]) == pytest.approx(value, abs=1e-6 if "rope" in name else 1e-10)
            text.append(token)


@EVERY
def test_prompts_that_begin_alike_are_read_once_and_continued_as_if_alone(name):
    model = model_of(name)
    same = tokens_of(6, seed=3).tolist()
    prompts = [[*same, *tokens_of(t, seed=t).tolist()] for t in (1, 5, 2, 5)]
    together = decode(model, prompts, 6, log_probabilities=True)
    for i, prompt in enumerate(prompts):
        alone = decode(model, [prompt], 6, log_probabilities=True)
        assert alone.tokens[0] == together.tokens[i]
        assert alone.log_probabilities[0] == pytest.approx(together.log_probabilities[i], abs=1e-6)


def test_a_stop_ends_a_text_and_leaves_the_others_alone():
    model = model_of("causal")
    prompts = [tokens_of(t, seed=t).tolist() for t in (5, 2, 9, 4)]
    free = decode(model, prompts, 10).tokens
    stop = free[1][3]
    got = decode(model, prompts, 10, stop=stop).tokens
    assert got == [text[: text.index(stop)] if stop in text else text for text in free]
    assert len(got[1]) <= 3 and any(len(text) == 10 for text in got)


def test_sampling_follows_the_model_and_its_limits():
    logits = torch.log(torch.tensor([0.5, 0.3, 0.15, 0.05])).repeat(20000, 1)
    chance = torch.rand(20000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def shares(**how):
        return np.bincount(Sampler(**how)(logits, chance).numpy(), minlength=4) / 20000

    assert shares(temperature=1.0) == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.012)
    squared = np.array([0.25, 0.09, 0.0225, 0.0025])
    assert shares(temperature=0.5) == pytest.approx(squared / squared.sum(), abs=0.012)
    assert shares(temperature=1.0, top_k=2) == pytest.approx([0.625, 0.375, 0, 0], abs=0.012)
    assert shares(temperature=1.0, top_p=0.7) == pytest.approx([0.625, 0.375, 0, 0], abs=0.012)
    assert shares(temperature=1.0, top_p=0.1).tolist() == [1, 0, 0, 0]
    assert shares().tolist() == [1, 0, 0, 0]


def test_samples_depend_on_the_seed_and_not_on_the_batch():
    model, choice = model_of("rope"), Sampler(temperature=1.0, seed=3)
    prompts = [tokens_of(t, seed=t).tolist() for t in (5, 2, 9)]
    together = decode(model, prompts, 8, choice).tokens
    assert decode(model, prompts, 8, choice, rows=1).tokens == together
    assert decode(model, prompts, 8, Sampler(temperature=1.0, seed=4)).tokens != together


@pytest.mark.parametrize(
    ("prompts", "new", "why"),
    [
        ([], 1, "there are none"),
        ([[]], 1, "empty"),
        ([[1] * 20], 9, "20 tokens, and 9 more"),
        ([[VOCAB]], 1, "outside"),
    ],
)
def test_prompts_that_cannot_be_continued_are_refused(prompts, new, why):
    with pytest.raises(QkvError, match=why):
        decode(model_of("causal"), prompts, new)
    with pytest.raises(QkvError, match="top_p is 0"):
        Sampler(top_p=0)


def test_dropout_drops_the_share_it_should_and_keeps_the_mean():
    torch.manual_seed(0)
    x = torch.ones(300, 1001, requires_grad=True)
    y = dropout(x, 0.1)
    y.sum().backward()
    assert float((y == 0).float().mean()) == pytest.approx(26 / 256, abs=2e-3)
    assert float(y.detach().mean()) == pytest.approx(1, abs=2e-3)
    assert torch.equal(x.grad, y.detach())
    torch.manual_seed(0)
    assert torch.equal(dropout(x, 0.1), y)
    assert dropout(x, 0.0) is x


def test_picking_rows_passes_gradients_back_to_them():
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: picked(x, torch.tensor([4, 0, 2])), (x,))


def test_the_quick_norm_is_torchs_norm():
    torch.manual_seed(0)
    norm = RMSNorm(12, 1e-5)
    x, weight = torch.randn(7, 12, requires_grad=True), norm.weight
    with torch.no_grad():
        weight.add_(torch.randn(12))
    want = rms_norm(x.double(), (12,), weight.double(), 1e-5)
    torch.testing.assert_close(norm(x).double(), want, rtol=0, atol=1e-6)
    grad = torch.randn(7, 12)
    for a, b in zip(
        torch.autograd.grad(norm(x), (x, weight), grad),
        torch.autograd.grad(want, (x, weight), grad.double()),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


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


def test_a_sequence_longer_than_the_block_is_refused():
    with pytest.raises(QkvError, match="25 tokens"):
        model_of("causal")(tokens_of(1, 25))


@EVERY
def test_mixed_precision_gives_nearly_the_same_losses_and_gradients(name):
    model = model_of(name, torch.float32).train()
    tokens, keep, targets = tokens_of(40), torch.arange(3, 40, 4), tokens_of(10, seed=1)
    layout = PackedLayout([(2, 5), (3, 10)])
    exact = model(tokens, layout, keep, targets)
    wanted = torch.autograd.grad(exact, list(model.parameters()), allow_unused=True)
    with torch.autocast("cpu", torch.bfloat16):
        got = model(tokens, layout, keep, targets)
    grads = torch.autograd.grad(got, list(model.parameters()), allow_unused=True)
    assert float(got) == pytest.approx(float(exact), rel=0.02)
    flat = [torch.cat([g.flatten() for g in some if g is not None]) for some in (wanted, grads)]
    assert float(torch.nn.functional.cosine_similarity(*flat, dim=0)) > 0.99
