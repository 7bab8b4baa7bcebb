"""A GPT with a choice of attention.

Reading order: config (ModelConfig and presets), gpt (token to logits), attention (one class a variant), mlp, layers and
linear (parts), packed_sequences (batches without padding), kv_cache and decoding (generation), numpy_gpt (the same
model without torch).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkv._lazy import lazily

if TYPE_CHECKING:  # what editors and mypy see; at run time the same names are imported when they are first used
    from qkv.model.config import ModelConfig as ModelConfig
    from qkv.model.config import preset as preset
    from qkv.model.decoding import Decoded as Decoded
    from qkv.model.decoding import Sampler as Sampler
    from qkv.model.decoding import decode as decode
    from qkv.model.gpt import GPT as GPT
    from qkv.model.packed_sequences import PackedLayout as PackedLayout
else:
    _HOME = {
        "ModelConfig": "config",
        "preset": "config",
        "GPT": "gpt",
        "PackedLayout": "packed_sequences",
        "Sampler": "decoding",
        "decode": "decoding",
        "Decoded": "decoding",
    }
    __getattr__, __dir__, __all__ = lazily(__name__, _HOME)
