import pytest
import torch
import transformers
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


@pytest.mark.parametrize("content", ["[" * 100_000, '{"model_type":' * 100_000, '["model_type"]', "7", "{"])
def test_a_configuration_that_is_none_is_refused_in_a_sentence(content, tmp_path):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(QkvError, match=r"config\.json is damaged or not a run's"):
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


def _from_config(config, maker=transformers.AutoModel):
    torch.manual_seed(0)
    return maker.from_config(config, attn_implementation="eager").eval()


SMALL = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def test_layers_that_share_a_module_and_encoders_with_a_decoder_are_refused():
    albert = transformers.AlbertConfig(**SMALL, embedding_size=16)
    with pytest.raises(QkvError, match="its 2 layers share 1 attention modules"):
        from_transformers(_from_config(albert), tokenizer())
    t5 = transformers.T5Config(vocab_size=97, d_model=32, num_layers=2, num_heads=4, d_kv=8, d_ff=48)
    with pytest.raises(QkvError, match=r"does not run on the tokens of one text|attention"):
        from_transformers(_from_config(t5), tokenizer())


@pytest.mark.parametrize("padding", [0, 1, 5])
def test_positions_behind_the_padding_are_no_context(padding):
    config = transformers.RobertaConfig(**SMALL, max_position_embeddings=66, pad_token_id=padding)
    model = from_transformers(_from_config(config), tokenizer())
    assert model.context == 65 - padding
    assert model.capture(text(model.context)).calls[0].weights.shape[-1] == model.context


@pytest.mark.parametrize(("vocabulary", "positions"), [(97, 6), (97, 3), (97, 2), (5, 64), (3, 3)])
def test_tables_of_models_with_few_tokens_or_positions(vocabulary, positions):
    config = transformers.GPT2Config(vocab_size=vocabulary, n_embd=32, n_layer=2, n_head=4, n_positions=positions)
    model = from_transformers(_from_config(config, transformers.AutoModelForCausalLM), tokenizer())
    words = " ".join(["w3", "w4"][: max(1, vocabulary - 3)] * 6) if vocabulary > 3 else "x x x x x"
    assert len(model.table(words).rows) == 8


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(bad):
    model = tiny("llama")
    with torch.no_grad():
        model.model.layers[1].mlp.down_proj.weight[0, 0] = bad
    with pytest.raises(QkvError, match=r"down_proj\.weight have entries that are not finite"):
        from_transformers(model, tokenizer())
