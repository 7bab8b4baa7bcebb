"""Generation: the tokens and log-probabilities of the model itself, from a run or its folder."""

from dataclasses import replace

import pytest
import torch

from qkv.errors import QkvError
from qkv.train import runs
from qkv.train.convert.hf_export import export_model
from qkv.train.convert.importer import import_model
from qkv.train.generation import generate
from qkv.train.tokenizers import END_ID, MASK_ID


@pytest.fixture(params=["next", "span"])
def run(request, text, config, settings, tmp_path):
    runs.pretrain(text, tmp_path / "run", config, replace(settings, objective=request.param, steps=20, lr=1e-2))
    return runs.load(tmp_path / "run")


def naive(run, ids, new, stop):
    """Greedy decoding that computes the whole sequence again for each token: (ids, log-probabilities)."""
    ids, out, logs = list(ids), [], []
    for _ in range(new):
        with torch.no_grad():
            scores = run.model(torch.tensor([ids]))[0, -1].log_softmax(-1)
        token = int(scores.argmax())
        logs.append(float(scores[token]))
        if token == stop:
            break
        ids.append(token)
        out.append(token)
    return out, logs


@pytest.mark.parametrize("ask", [False, True])
def test_greedy_texts_are_those_of_decoding_token_by_token(run, ask):
    prompts = ["Person 3", "Person 12 was", "P"]
    found = generate(run, prompts, max_new_tokens=12, ask=ask, log_probabilities=True)
    is_text = run.settings.objective == "next" and not ask
    for prompt, text, tokens, logs in zip(prompts, found.texts, found.tokens, found.log_probabilities, strict=True):
        ids = run.tokenizer.encode(prompt)
        ids = [*ids, MASK_ID] if ask else [END_ID, *ids] if is_text else ids
        wanted, chances = naive(run, ids, 12, END_ID if is_text else MASK_ID)
        assert text == run.tokenizer.decode(wanted)
        assert list(tokens[: len(wanted)]) == [run.tokenizer.decode([token]) for token in wanted]
        assert list(logs) == pytest.approx(chances[: len(logs)], abs=1e-4)


def test_a_run_and_its_folder_generate_the_same(run):
    options = {"max_new_tokens": 8, "temperature": 1.0, "seed": 3}
    assert generate(run, ["Person"], **options) == generate(run.folder, ["Person"], **options)
    assert generate(run, ["Person"], **options) == generate(str(run.folder), ["Person"], **options)


def test_unknown_characters_are_reported_and_wrong_prompts_refused(run, tmp_path):
    assert generate(run, ["Person Ω"], max_new_tokens=1).unknown == ("Ω",)
    with pytest.raises(QkvError, match="prompts is one string"):
        generate(run, "Person")
    torch.save({f"transformer.{n}": t for n, t in _nano_gpt().items()}, tmp_path / "nano.pt")
    foreign = import_model(tmp_path / "nano.pt", tmp_path / "foreign", n_head=2)
    with pytest.raises(QkvError, match="has no special token ⁇"):
        generate(foreign, ["3 1"], ask=True)
    assert len(generate(foreign, ["3 1"], max_new_tokens=4).texts[0].split()) == 4


def _nano_gpt(width=8, vocab=11, block=12):
    shapes = {
        "wte.weight": (vocab, width), "wpe.weight": (block, width), "ln_f.weight": (width,),
        "h.0.ln_1.weight": (width,), "h.0.ln_2.weight": (width,),
        "h.0.attn.c_attn.weight": (3 * width, width), "h.0.attn.c_proj.weight": (width, width),
        "h.0.mlp.c_fc.weight": (4 * width, width), "h.0.mlp.c_proj.weight": (width, 4 * width),
    }  # fmt: skip
    return {name: torch.randn(shape, generator=torch.Generator().manual_seed(0)) for name, shape in shapes.items()}


def test_a_run_in_memory_is_exported_as_its_folder_is(run, tmp_path):
    one, two = export_model(run, tmp_path / "a"), export_model(run.folder, tmp_path / "b")
    assert one.architecture == two.architecture
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
