"""Decoding and scoring against plain forward passes of the same model, and refusals of folders that cannot be asked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from qkv.errors import QkvError
from qkv.knowledge.language_models.causal_model import CausalModel, from_transformers, open_causal_model

from .conftest import tiny_model, tiny_tokenizer


def plain_logs(model: Any, ids: list[int]) -> torch.Tensor:
    """Log-probabilities after each token, by the library alone."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)
    model.set_attn_implementation(before)
    return out


def prompts(model: CausalModel) -> list[list[int]]:
    start = "In which city was "
    return [model.encode(start + name + " born?") for name in ("Ada Lovelace", "Plato", "Immanuel Kant", "Ada Byron")]


@pytest.mark.parametrize(("family", "shares"), [("llama", True), ("gpt2", True), ("gemma2", False)])
def test_scores_are_those_of_a_plain_forward_pass(family: str, shares: bool) -> None:
    model = from_transformers(tiny_model(family), tiny_tokenizer())
    assert model.shares_prefix == shares
    rows = prompts(model)
    more = [[5, 9, 300], [7], [], [400, 12]]
    for prompt, own, found in zip(rows, more, model.score(rows, more, layers=[1]), strict=True):
        logs = plain_logs(model.model, [*prompt, *own])[len(prompt) - 1 :]
        assert np.allclose(found.logs, [float(logs[i, token]) for i, token in enumerate(own)], atol=1e-4)
        assert found.end_log == pytest.approx(float(logs[-1][model.ends].logsumexp(-1)), abs=1e-4)
        assert found.entropy == pytest.approx(float(-(logs.exp() * logs).sum()), abs=1e-3)
        assert found.hidden.shape == (1, 32)


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2"])
def test_greedy_decoding_is_that_of_plain_forward_passes(family: str) -> None:
    model = from_transformers(tiny_model(family, seed=3), tiny_tokenizer())
    rows = prompts(model)
    for prompt, found in zip(rows, model.generate(rows, 6), strict=True):
        ids, logs = list(prompt), []
        ended = False
        for _ in range(6):
            now = plain_logs(model.model, ids)[-1]
            best = int(now.argmax())
            ended = bool(model.ends[best]) or float(now[model.ends].logsumexp(-1)) > float(now[best])
            if ended:
                break
            ids.append(best)
            logs.append(float(now[best]))
        assert list(found.tokens) == ids[len(prompt) :] and np.allclose(found.logs, logs, atol=1e-4)
        assert found.ended == ended or len(found.tokens) == 6


def test_the_greedy_answer_scored_again_has_the_same_probability_and_is_called_greedy(model: CausalModel) -> None:
    rows = prompts(model)
    found = model.generate(rows, 30)
    scored = model.score(rows, [one.tokens for one in found])
    for one, again in zip(found, scored, strict=True):
        assert again.log_probability == pytest.approx(one.log_probability, abs=1e-3)
        assert again.greedy == one.ended


def test_batches_of_many_rows_give_what_single_rows_give(model: CausalModel) -> None:
    names = [f"{a} {b}" for a in ("Ada", "Immanuel", "Ludwig van", "Plato of") for b in ("Kant", "Lovelace", "Bo", "X")]
    rows = [model.encode(f"Where was {name} born?") for name in names] * 9  # over two batches
    together = model.generate(rows, 5)
    for i in (0, 5, 11, 140):
        (alone,) = model.generate([rows[i]], 5)
        assert alone.tokens == together[i].tokens
        assert alone.log_probability == pytest.approx(together[i].log_probability, abs=1e-3)


def test_samples_are_drawn_by_their_probabilities(model: CausalModel) -> None:
    prompt = model.encode("Where was Plato born?")
    first = plain_logs(model.model, prompt)[-1].exp()
    drawn = model.generate([prompt], 1, sample=np.random.default_rng(0), repeats=2000)
    assert len(drawn) == 2000
    counts = np.bincount([one.tokens[0] for one in drawn if one.tokens], minlength=len(first)) / 2000
    kept = first.numpy() * ~model.ends.numpy()
    assert np.abs(counts - kept).max() < 4 * np.sqrt(0.25 / 2000)
    assert sum(not one.tokens for one in drawn) / 2000 == pytest.approx(float(first[model.ends].sum()), abs=0.05)


def test_attention_to_a_span_sums_to_one_over_the_whole_prompt(model: CausalModel) -> None:
    prompt = model.encode("Where was Plato born?")
    weights = model.attention_to(prompt, (0, len(prompt)))
    assert len(weights) == 8 and all(weight == pytest.approx(1, abs=1e-5) for weight in weights.values())
    assert model.score([prompt], [[5]])[0].logs[0] == pytest.approx(
        float(plain_logs(model.model, prompt)[-1, 5]), abs=1e-4
    )


def test_too_long_and_empty_prompts_are_refused(model: CausalModel) -> None:
    with pytest.raises(QkvError, match="takes 512 tokens"):
        model.generate([[5] * 510], 10)
    with pytest.raises(QkvError, match="empty one"):
        model.score([[]], [[5]])


def test_a_folder_that_is_no_causal_model_is_refused_in_a_sentence(model_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(model_folder, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertForMaskedLM"]}))
    with pytest.raises(QkvError, match="no causal language model \\(BertForMaskedLM\\)"):
        open_causal_model(folder)


def test_a_folder_without_a_tokenizer_is_refused_in_a_sentence(model_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bare"
    shutil.copytree(model_folder, folder)
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(QkvError, match="no tokenizer that can be read"):
        open_causal_model(folder)


@pytest.mark.parametrize("kept", [0, 5, 1000, -8])
def test_safetensors_that_were_cut_off_are_refused_in_a_sentence(model_folder: Path, tmp_path: Path, kept: int) -> None:
    folder = tmp_path / "cut"
    shutil.copytree(model_folder, folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    with pytest.raises(QkvError, match="safetensors are damaged or cut off") as caught:
        open_causal_model(folder)
    assert "\n" not in str(caught.value)


def test_a_tokenizer_of_another_model_is_refused() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([f"<extra{i}>" for i in range(200)])
    with pytest.raises(QkvError, match="tokenizer has 800 tokens, and the model 640"):
        from_transformers(tiny_model(), tokenizer)


def test_a_tokenizer_without_an_end_or_without_unknown_words_is_refused_in_a_sentence() -> None:
    tokenizers, transformers = (pytest.importorskip(name) for name in ("tokenizers", "transformers"))
    words = {
        word: i
        for i, word in enumerate(
            ["In", "which", "city", "was", "Immanuel", "Kant", "born", "?", "was", "born", "in", "Rome"]
        )
    }
    found = tokenizers.Tokenizer(tokenizers.models.WordLevel(words))
    found.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    own, model = transformers.PreTrainedTokenizerFast(tokenizer_object=found), tiny_model()
    model.generation_config.eos_token_id = None
    with pytest.raises(QkvError, match="no token that ends an answer"):
        from_transformers(model, own)
    own.add_special_tokens({"eos_token": "<end>"})
    with pytest.raises(QkvError, match="its tokenizer cannot read 'Ada Lovelace'"):
        from_transformers(model, own).encode("Ada Lovelace")


def test_a_folder_without_the_tokenizers_files_is_refused_in_a_sentence() -> None:
    from tokenizers import Tokenizer, models

    fast = pytest.importorskip("transformers").PreTrainedTokenizerFast
    empty = fast(tokenizer_object=Tokenizer(models.BPE()), eos_token="<|im_end|>")
    with pytest.raises(QkvError, match="its tokenizer makes no tokens of a text"):
        from_transformers(tiny_model(), empty)
