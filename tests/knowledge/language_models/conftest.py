"""Tiny random causal models with tokenizers made here: nothing is downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

transformers = pytest.importorskip("transformers")

CHAT = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def tiny_tokenizer(chat: bool = False) -> Any:
    """Byte-level pairs trained on names of the shipped table."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    from qkv.knowledge import pantheon

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([f"{p.name} was born in {p.city}\n" for p in pantheon().people[:300]], trainer)
    found = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", bos_token=special[0])
    if chat:
        found.chat_template = CHAT
    return found


def tiny_model(family: str = "llama", seed: int = 0) -> Any:
    import torch

    torch.manual_seed(seed)
    if family == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=640, n_embd=32, n_layer=2, n_head=4, n_positions=512, bos_token_id=0, eos_token_id=2
        )
        return transformers.GPT2LMHeadModel(config).eval()
    if family == "gemma2":  # caps its scores and has sliding windows: the prefix cannot be shared
        config = transformers.Gemma2Config(
            vocab_size=640, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, head_dim=8, sliding_window=16, max_position_embeddings=512,
        )  # fmt: skip
        return transformers.Gemma2ForCausalLM(config).eval()
    config = transformers.LlamaConfig(
        vocab_size=640, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, initializer_range=0.2, bos_token_id=0, eos_token_id=2,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny") / "model"
    tiny_model().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def model(model_folder: Path) -> Any:
    from qkv.knowledge.language_models import open_causal_model

    return open_causal_model(model_folder)
