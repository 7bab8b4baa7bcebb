"""Imports: Hugging Face folders, nanoGPT and both versions of minGPT, with the logits of the original."""

import json
import pickle
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F

from qkv.errors import QkvError
from qkv.train import runs
from qkv.train.convert.hf_export import export_model
from qkv.train.convert.importer import import_model


def test_an_export_comes_back_bit_for_bit(exported, tmp_path):
    run, folder = exported
    before = torch.get_rng_state()
    again = import_model(folder, tmp_path / "again")
    assert torch.equal(torch.get_rng_state(), before)
    one, two = (load_file(each / "model.safetensors") for each in (run.folder, tmp_path / "again"))
    if not run.config.bias and run.config.attention == "causal":  # GPT-2 has biases: they come back as zeros
        two = {name: t for name, t in two.items() if name in one or t.any()}
    assert one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)
    assert again.tokenizer.encode("Person 7") == run.tokenizer.encode("Person 7")


class NanoAttention(nn.Module):
    """Attention as the state dicts of nanoGPT and minGPT have it, written from their names and shapes."""

    def __init__(self, width, heads, bias, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        if fused:
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width, bias), nn.Linear(width, width, bias)
        else:
            self.query, self.key, self.value, self.proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        q, k, v = self.c_attn(x).chunk(3, -1) if self.fused else (self.query(x), self.key(x), self.value(x))
        q, k, v = (z.unflatten(-1, (self.heads, -1)).transpose(1, 2) for z in (q, k, v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
        y = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.c_proj(y) if self.fused else self.proj(y)


def other_gpt(kind, width=16, heads=2, layers=2, block=12, vocab=11):
    """(state dict, function from tokens to logits) of a model of another library."""
    torch.manual_seed(0)
    bias = kind != "nanoGPT without biases"
    old, tied = kind == "old minGPT", kind.startswith("nanoGPT")
    approximate = "tanh" if kind == "minGPT" else "none"
    wte, wpe = nn.Embedding(vocab, width), nn.Embedding(block, width)
    state = {"tok_emb.weight": wte.weight, "pos_emb": wpe.weight[None]} if old else {}
    if not old:
        state = {"transformer.wte.weight": wte.weight, "transformer.wpe.weight": wpe.weight}
    blocks = []
    names = ("ln1", "attn", "ln2", "mlp.0", "mlp.2") if old else ("ln_1", "attn", "ln_2", "mlp.c_fc", "mlp.c_proj")
    for i in range(layers):
        attention = NanoAttention(width, heads, bias, fused=not old)
        parts = (nn.LayerNorm(width, bias=bias), attention, nn.LayerNorm(width, bias=bias),
                 nn.Linear(width, 4 * width, bias), nn.Linear(4 * width, width, bias))  # fmt: skip
        blocks.append(parts)
        for name, part in zip(names, parts, strict=True):
            prefix = f"blocks.{i}" if old else f"transformer.h.{i}"
            state |= {f"{prefix}.{name}.{key}": value for key, value in part.state_dict().items()}
        if kind == "minGPT":
            state[f"transformer.h.{i}.attn.bias"] = torch.ones(1, 1, block, block).tril()
        if old:
            state[f"blocks.{i}.attn.mask"] = torch.ones(1, 1, block, block).tril()
    norm = nn.LayerNorm(width, bias=bias)
    head = nn.Linear(width, vocab, bias=False)
    if tied:
        head.weight = wte.weight
    final = "ln_f" if old else "transformer.ln_f"
    state |= {f"{final}.{key}": value for key, value in norm.state_dict().items()}
    state["head.weight" if old else "lm_head.weight"] = head.weight
    for _, value in state.items():
        value.data.add_(torch.randn_like(value) * 0.1) if value.requires_grad else None

    @torch.no_grad()
    def logits(tokens):
        x = wte(tokens) + wpe.weight[: tokens.shape[1]]
        for ln1, attention, ln2, wide, narrow in blocks:
            x = x + attention(ln1(x))
            x = x + narrow(F.gelu(wide(ln2(x)), approximate=approximate))
        return head(norm(x))

    return {name: value.detach().clone() for name, value in state.items()}, logits


KINDS = ("nanoGPT", "nanoGPT without biases", "minGPT", "old minGPT")


@pytest.mark.parametrize("kind", KINDS)
def test_state_dicts_of_other_libraries_come_in(kind, tmp_path):
    state, logits = other_gpt(kind)
    path = tmp_path / "model.pt"
    if kind == "nanoGPT":  # a whole checkpoint of a compiled model, which says how many heads there are
        wrapped = {f"_orig_mod.{name}": value for name, value in state.items()}
        torch.save({"model": wrapped, "model_args": {"n_head": 2}, "iter_num": 7}, path)
        run = import_model(path, tmp_path / "run")
    else:
        torch.save(state, path)
        with pytest.raises(QkvError, match="how many heads"):
            import_model(path, tmp_path / "run")
        run = import_model(path, tmp_path / "run", n_head=2)
    x = torch.randint(0, 11, (3, 12))
    with torch.no_grad():
        torch.testing.assert_close(run.model(x), logits(x), rtol=0, atol=1e-5)
    assert run.tokenizer.decode(run.tokenizer.encode("3 1 4")) == "3 1 4"


def test_pickled_code_is_never_run(tmp_path):
    path = tmp_path / "evil.pt"

    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "touched"), "w"))

    torch.save({"model": Evil()}, path)
    with pytest.raises(QkvError, match="more than weights"):
        import_model(path, tmp_path / "run", n_head=2)
    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(QkvError, match="damaged, or holds more"):
        import_model(path, tmp_path / "run", n_head=2)
    assert not (tmp_path / "touched").exists() and not (tmp_path / "run").exists()


def test_what_cannot_cross_is_refused_with_the_reason(text, config, settings, tmp_path):
    out = tmp_path / "run"
    runs.pretrain(text, out, replace(config, attention="synthesizer"), replace(settings, steps=1))
    with pytest.raises(QkvError, match="no model with synthesizer attention"):
        export_model(out, tmp_path / "hf")
    with pytest.raises(QkvError, match="no format 'onnx'"):
        export_model(out, tmp_path / "hf", to="onnx")
    torch.save({"x": torch.zeros(2)}, tmp_path / "x.pt")
    with pytest.raises(QkvError, match="are not GPT's"):
        import_model(tmp_path / "x.pt", tmp_path / "other")
    with pytest.raises(QkvError, match=r"there is one already\. Give another folder\.$"):
        import_model(tmp_path / "x.pt", out)
    folder = tmp_path / "bert"
    folder.mkdir()
    with pytest.raises(QkvError, match=r"there is no config\.json in it\. Give a Hugging Face model's folder"):
        import_model(folder, tmp_path / "other")
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(QkvError, match="model_type is 'bert'"):
        import_model(folder, tmp_path / "other")
    llama = {"model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 8}
    llama |= {"intermediate_size": 8, "max_position_embeddings": 8, "vocab_size": 8}
    (folder / "config.json").write_text(json.dumps({**llama, "rope_scaling": {"rope_type": "llama3"}}))
    with pytest.raises(QkvError, match="rope of type llama3"):
        import_model(folder, tmp_path / "other")


LLAMA = {
    "model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 8,
    "max_position_embeddings": 8, "vocab_size": 8,
}  # fmt: skip
GPT2 = {"model_type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 8, "n_positions": 8, "vocab_size": 8}


@pytest.mark.parametrize("base", [LLAMA, GPT2])
@pytest.mark.parametrize("value", [10**6, 10**15, 10**30, "12", 1.5, True, None, [1], {"a": 1}, -3, 0])
def test_sizes_of_wrong_types_and_absurd_ones_are_refused_before_a_model_is_built(base, value, tmp_path):
    for name in base:
        if name == "model_type" or (name == "vocab_size" and value in (0, 10**6)):
            continue
        if name in ("max_position_embeddings", "n_positions", "intermediate_size") and value in (0, 10**6):
            continue  # allowed; the weights do not fit
        (tmp_path / "config.json").write_text(json.dumps({**base, name: value}))
        torch.save({"x": torch.zeros(2)}, tmp_path / "pytorch_model.bin")
        with pytest.raises(QkvError):
            import_model(tmp_path, tmp_path / "out")


@pytest.mark.parametrize(
    "text",
    ["[" * 10**5, "[]", "5", "{", '{"model_type": []}', json.dumps({**LLAMA, "rope_scaling": 5}),
     json.dumps({**LLAMA, "rope_theta": "x"}), json.dumps({**LLAMA, "rope_theta": 1e400}), "\x00"],
)  # fmt: skip
def test_configurations_that_are_none_are_refused(text, tmp_path):
    (tmp_path / "config.json").write_text(text)
    torch.save({"x": torch.zeros(2)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(QkvError):
        import_model(tmp_path, tmp_path / "out")


def test_a_configuration_larger_than_its_weights_is_refused_before_a_model_is_built(tmp_path, monkeypatch):
    from qkv.train.convert import importer

    def build(config):
        raise AssertionError("a model was built")

    monkeypatch.setattr(importer, "GPT", build)
    (tmp_path / "config.json").write_text(json.dumps({**GPT2, "n_layer": 900, "n_embd": 4096}))
    torch.save({"transformer.wte.weight": torch.zeros(8, 8)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(QkvError):
        import_model(tmp_path, tmp_path / "out")


def test_a_damaged_state_dict_gives_no_traceback(tmp_path, damaged_copies):
    weights = {"transformer.wte.weight": torch.zeros(8, 8), "transformer.wpe.weight": torch.zeros(8, 8)}
    path = tmp_path / "state.pt"
    torch.save(weights, path)
    for copy in damaged_copies(path.read_bytes()[:900], 400):
        path.write_bytes(copy)
        with pytest.raises(QkvError):
            import_model(path, tmp_path / "out", n_head=2)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("transformer.wte.weight", lambda t: t[0]), ("transformer.wpe.weight", lambda t: t[:, :-1]),
        ("transformer.h.0.mlp.c_fc.weight", lambda t: t[0]), ("transformer.h.0.attn.c_attn.weight", lambda t: t.sum()),
        ("transformer.h.one.mlp.c_fc.weight", lambda t: torch.zeros(3, 3)),
    ],
)  # fmt: skip
def test_a_state_dict_of_other_shapes_or_names_is_refused_in_a_sentence(name, change, tmp_path):
    state, _ = other_gpt("nanoGPT")
    state = {key: value.detach() for key, value in state.items()}
    state[name] = change(state.get(name)).clone()
    torch.save(state, tmp_path / "model.pt")
    with pytest.raises(QkvError):
        import_model(tmp_path / "model.pt", tmp_path / "run", n_head=2)


@pytest.mark.parametrize("n_head", [-1, 2.5, True])
def test_a_number_of_heads_that_is_none_is_refused_for_folders_too(n_head, tmp_path):
    with pytest.raises(QkvError, match="n_head"):
        import_model(tmp_path, tmp_path / "run", n_head=n_head)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors", "log.jsonl", ".qkv-lock"])
def test_an_import_replaces_no_file_that_was_there_not_even_one_that_it_reads(name, text, config, settings, tmp_path):
    runs.pretrain(text, tmp_path / "run", config, replace(settings, steps=1))
    export_model(tmp_path / "run", tmp_path / "hf")
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_bytes((tmp_path / "hf" / "tokenizer.json").read_bytes())
    before = (out / name).read_bytes()
    with pytest.raises(QkvError, match=f"{name} is there already"):
        import_model(tmp_path / "hf", out, tokenizer=out / name)
    assert [path.name for path in out.iterdir()] == [name] and (out / name).read_bytes() == before
