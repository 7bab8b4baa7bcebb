"""Attention itself: tensors in, weights and outputs out.

Reading order: memory (keys and values), attention (softmax, attend, Reading), multihead; masks, rotary and variants
(what the model's layers choose from); kernels (fast causal attention for training). types, validation, files,
json_files, documents (files that qkv wrote), display, geometry, rounding_bounds, hugging_face (open a model and its
tokenizer), interrupts, panics and cpu_features serve all other packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkv._lazy import lazily

if TYPE_CHECKING:  # what editors and mypy see; at run time the same names are imported when they are first used
    from qkv.core.attention import Reading as Reading
    from qkv.core.attention import attend as attend
    from qkv.core.attention import attend_heads as attend_heads
    from qkv.core.attention import self_attention as self_attention
    from qkv.core.attention import softmax as softmax
    from qkv.core.memory import Memory as Memory
    from qkv.core.multihead import MultiHead as MultiHead
else:
    _HOME = {
        "Memory": "memory",
        "Reading": "attention",
        "attend": "attention",
        "attend_heads": "attention",
        "self_attention": "attention",
        "softmax": "attention",
        "MultiHead": "multihead",
    }
    __getattr__, __dir__, __all__ = lazily(__name__, _HOME)
