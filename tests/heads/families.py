"""Tiny random models of every family, for tests."""

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

VOCABULARY = 97
_PLAIN = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_SHARED = {**_PLAIN, "num_key_value_heads": 2}
_GPT2 = {
    "vocab_size": VOCABULARY,
    "n_embd": 32,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
}

CONFIGS = {
    "gpt2": lambda: transformers.GPT2Config(**_GPT2),
    "gpt2 scaled by layer": lambda: transformers.GPT2Config(**_GPT2, scale_attn_by_inverse_layer_idx=True),
    "llama": lambda: transformers.LlamaConfig(**_SHARED),
    "qwen2": lambda: transformers.Qwen2Config(
        **_SHARED, use_sliding_window=True, sliding_window=8, max_window_layers=1
    ),
    "qwen3": lambda: transformers.Qwen3Config(**_SHARED, head_dim=16),
    "mistral": lambda: transformers.MistralConfig(**_SHARED, sliding_window=8),
    "neox": lambda: transformers.GPTNeoXConfig(**_PLAIN),
    "opt": lambda: transformers.OPTConfig(**{**_PLAIN, "ffn_dim": 48, "word_embed_proj_dim": 32}),
    "phi": lambda: transformers.PhiConfig(**_PLAIN),
    "gemma2": lambda: transformers.Gemma2Config(
        **_SHARED, head_dim=8, sliding_window=8, attn_logit_softcapping=2.0, query_pre_attn_scalar=8
    ),
    "gpt_oss": lambda: transformers.GptOssConfig(
        **_SHARED, head_dim=8, sliding_window=8, num_local_experts=4, num_experts_per_tok=2
    ),
    "bert": lambda: transformers.BertConfig(**_PLAIN),
}
ENCODERS = {"bert"}
UNWATCHED = {
    "gptj": lambda: transformers.GPTJConfig(**{**_GPT2, "rotary_dim": 4}),
    "gpt neo": lambda: transformers.GPTNeoConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global"], 2]]
    ),
    "bloom": lambda: transformers.BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4),
}


def tiny(family: str, seed: int = 0):
    """A model whose attention is far from uniform."""
    torch.manual_seed(seed)
    config = (CONFIGS | UNWATCHED)[family]()
    maker = transformers.AutoModel if family in ENCODERS else transformers.AutoModelForCausalLM
    model = maker.from_config(config, attn_implementation="eager").eval()
    for name, weights in model.named_parameters():
        if weights.dim() > 1:
            torch.nn.init.normal_(weights, std=0.3)
        elif "sinks" in name:
            torch.nn.init.normal_(weights)
    return model


def tokenizer():
    """One token for each word w3, w4, …; the first three tokens are special."""
    words = {"[pad]": 0, "[first]": 1, "[end]": 2} | {f"w{i}": i for i in range(3, VOCABULARY)}
    found = Tokenizer(models.WordLevel(words, unk_token="[pad]"))
    found.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=found, unk_token="[pad]", bos_token="[first]", eos_token="[end]", pad_token="[pad]"
    )


def text(n: int, seed: int = 0) -> str:
    """A text of n words, some of them repeated."""
    generator = torch.Generator().manual_seed(seed)
    return " ".join(f"w{i}" for i in torch.randint(3, VOCABULARY, (n,), generator=generator).tolist())
