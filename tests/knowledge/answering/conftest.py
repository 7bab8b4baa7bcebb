"""Untrained models with random weights."""

import pytest
import torch

from qkv.model.config import ModelConfig
from qkv.model.gpt import GPT


@pytest.fixture(scope="session")
def random_model():
    """A function that makes a small GPT with a kind of attention and random weights."""

    def make(attention, vocab_size=5, seed=0):
        torch.manual_seed(seed)
        config = ModelConfig(
            attention=attention, n_layer=2, n_head=2, d_model=16, context_length=12, latents=4, vocab_size=vocab_size
        )
        model = GPT(config).eval()
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.3 * torch.randn_like(p))
        return model

    return make
