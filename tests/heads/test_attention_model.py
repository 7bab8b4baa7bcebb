import pytest
import torch
from families import CONFIGS, ENCODERS, text, tiny, tokenizer

from qkv.errors import QkvError
from qkv.heads.attention_model import from_transformers
from qkv.heads.attention_model import open as open_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("model") / "llama"
    tiny("llama").save_pretrained(out)
    tokenizer().save_pretrained(out)
    return out


def test_a_folder_is_opened(folder):
    model = open_model(folder)
    assert (model.shape.layers, model.shape.heads, model.shape.key_heads, model.shape.size) == (3, 4, 2, 8)
    assert model.causal and model.predicts and model.context == 64
    assert "3 layers × 4 heads of size 8, 2 key heads" in str(model.card())


@pytest.mark.parametrize("family", CONFIGS)
def test_every_family_tells_its_shape(family):
    model = from_transformers(tiny(family), tokenizer())
    assert model.shape.layers == 3 and model.shape.heads == 4
    assert model.causal is (family not in ENCODERS) and model.predicts is (family not in ENCODERS)


def test_what_cannot_be_opened_says_why(tmp_path, folder):
    with pytest.raises(QkvError, match=r"no config\.json"):
        open_model(tmp_path)
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(QkvError, match="no weights in safetensors"):
        open_model(tmp_path)
    with pytest.raises(QkvError, match=r"nobody/nothing: there is no such folder, .*--online"):
        open_model("nobody/nothing")
    (tmp_path / "model.safetensors").write_bytes(b"\x00" * 16)
    with pytest.raises(QkvError, match="opening the model"):
        open_model(tmp_path)


def test_long_texts_are_cut_into_windows(folder):
    model = open_model(folder)
    assert [len(w) for w in model.windows(text(150))] == [64, 64, 22]
    assert [len(w) for w in model.windows([text(30), text(33)], 32)] == [30, 32]  # one token alone shows nothing
    for wrong in (1, 65):
        with pytest.raises(QkvError, match="takes 2 to 64 tokens"):
            model.windows(text(30), wrong)
    with pytest.raises(QkvError, match="less than two tokens"):
        model.windows("w5")
    with pytest.raises(QkvError, match="65 tokens, more than the 64"):
        model.capture(text(65))


@pytest.mark.parametrize("family", ["gpt2", "llama", "neox", "opt", "bert"])
def test_a_head_as_a_memory_reads_what_the_model_reads(family):
    model = from_transformers(tiny(family), tokenizer())
    captured = model.capture(text(20))
    found = model.head(1, 3).memory(text(20))
    for position in (0, 7, 19):
        memory, query = found.at(position)
        reading = memory.read(query)
        call = captured.calls[1]
        weights = call.weights[0, 3, position, found.visible[position]].double()
        assert (torch.as_tensor(reading.weights) - weights).abs().max() < 1e-6
        value = weights @ call.value[0, 3 // call.groups][found.visible[position]].double()
        assert (torch.as_tensor(reading.output) - value).abs().max() < 1e-5


def test_heads_that_are_no_plain_lookup_are_refused_as_memories():
    for family, why in (("gemma2", "a soft cap"), ("gpt_oss", "a sink")):
        with pytest.raises(QkvError, match=why):
            from_transformers(tiny(family), tokenizer()).head(0, 0).memory(text(9))
    model = from_transformers(tiny("llama"), tokenizer())
    with pytest.raises(QkvError, match=r"taking head 3\.0: .* layers 0 to 2"):
        model.head(3, 0)
    with pytest.raises(QkvError, match="the text has 9 tokens"):
        model.head(0, 0).memory(text(9)).at(9)
