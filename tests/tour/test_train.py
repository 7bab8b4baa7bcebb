"""The chapter on training: two runs are compared by their weights."""

import shutil

import torch

from qkv.model.config import ModelConfig
from qkv.tour.train import _same_weights
from qkv.train import checkpoint
from qkv.train.runs import pretrain


def test_weights_are_compared_and_not_files(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    pretrain(["Ada lives in Rome."], one, ModelConfig(n_layer=1, n_head=2, d_model=8), steps=1, batch_size=2)
    shutil.copytree(one, other)
    assert _same_weights(one, other)
    weights, _ = checkpoint.read(one / "model.safetensors")
    checkpoint.write(other / "model.safetensors", weights, {"step": "7"})
    assert (one / "model.safetensors").read_bytes() != (other / "model.safetensors").read_bytes()
    assert _same_weights(one, other)
    weights["embedding.weight"][0, 0] = torch.nextafter(weights["embedding.weight"][0, 0], torch.tensor(9.0))
    checkpoint.write(other / "model.safetensors", weights, {"step": "1"})
    assert not _same_weights(one, other)
    del weights["embedding.weight"]
    checkpoint.write(other / "model.safetensors", weights, {"step": "1"})
    assert not _same_weights(one, other)
