"""load_pretrained: what a checkpoint lacks, or holds besides numbers, is refused."""

import pytest

transformers = pytest.importorskip("transformers")

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

from qkv.core.hugging_face import load_pretrained  # noqa: E402
from qkv.errors import QkvError  # noqa: E402


def written(folder, tied=True, change=lambda tensors: None, dtype=None):
    """A tiny model in a folder, after a change of its tensors."""
    from tokenizers import Tokenizer, models

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=16, hidden_size=8, intermediate_size=8, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=16, tie_word_embeddings=tied, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    (model if dtype is None else model.to(dtype)).save_pretrained(folder)
    words = {f"w{i}": i for i in range(16)}
    made = Tokenizer(models.WordLevel(words, unk_token="w0"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="w1").save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def opened(folder):
    return load_pretrained(folder, choose=lambda config: transformers.AutoModelForCausalLM)


@pytest.mark.parametrize("tied", [True, False])
def test_a_whole_checkpoint_opens_with_its_own_weights(tmp_path, tied):
    folder = written(tmp_path, tied)
    model, _ = opened(folder)
    stored = load_file(folder / "model.safetensors")
    assert ("lm_head.weight" in stored) != tied
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in stored.items())


NAMES = (
    "model.layers.1.self_attn.q_proj.weight",
    "model.embed_tokens.weight",
    "model.norm.weight",
    "lm_head.weight",
    "model.layers.0.mlp.up_proj.weight",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_without_one_of_its_tensors_is_refused(tmp_path, name, capfd):
    folder = written(tmp_path, tied=False, change=lambda tensors: tensors.pop(name))
    with pytest.raises(QkvError, match="1 of its tensors") as refused:
        opened(folder)
    assert name in str(refused.value)
    assert name not in capfd.readouterr().err  # said once, in the refusal


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_weights_that_are_not_finite_are_refused(tmp_path, value, dtype):
    def spoil(tensors):
        tensors[NAMES[0]].view(-1)[5] = value

    folder = written(tmp_path, change=spoil, dtype=dtype)
    with pytest.raises(QkvError, match=r"not finite.*q_proj|q_proj.*not finite"):
        opened(folder)


def test_a_tensor_of_another_shape_is_refused(tmp_path):
    def cut(tensors):
        tensors[NAMES[0]] = tensors[NAMES[0]][:4].clone()

    with pytest.raises(QkvError, match="opening the model"):
        opened(written(tmp_path, change=cut))


def test_a_refusal_of_the_chooser_is_not_wrapped_again(tmp_path):
    def choose(config):
        raise QkvError("choosing", "it is of another kind", "Name another model")

    with pytest.raises(QkvError) as refused:
        load_pretrained(written(tmp_path), choose=choose)
    assert str(refused.value) == "choosing: it is of another kind. Name another model."


@pytest.mark.parametrize(
    ("named", "offline", "local"),
    [("folder", False, True), ("folder", True, True), ("hub", False, False), ("hub", True, True)],
)
def test_a_folder_is_never_looked_for_elsewhere_and_a_name_only_where_that_is_allowed(
    tmp_path, monkeypatch, named, offline, local
):
    seen = {}

    def stop(name, **settings):
        seen.update(settings)
        raise OSError("stop here")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", stop)
    for file in ("config.json", "model.safetensors"):
        (tmp_path / file).write_text("{}")
    with pytest.raises(QkvError):
        load_pretrained(
            tmp_path if named == "folder" else "nobody/such-a-model", choose=lambda config: None, offline=offline
        )
    assert seen == {"trust_remote_code": False, "local_files_only": local}
