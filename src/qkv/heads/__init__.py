"""Heads of real models: open a Hugging Face model, watch its attention, and measure every head.

Reading order: packaged_models (real weights without a hub); adapter (what every attention layer computed);
attention_model (open a model, run it); capture and head (one text, one head as a Memory); patterns, ablation, firmness,
output_circuit (measures); table (all of them for all heads).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkv._lazy import lazily

if TYPE_CHECKING:  # what editors and mypy see; at run time the same names are imported when they are first used
    from qkv.heads.ablation import head_effects as head_effects
    from qkv.heads.ablation import token_losses as token_losses
    from qkv.heads.adapter import AttentionCall as AttentionCall
    from qkv.heads.attention_model import AttentionModel as AttentionModel
    from qkv.heads.attention_model import from_transformers as from_transformers
    from qkv.heads.attention_model import open as open
    from qkv.heads.capture import Capture as Capture
    from qkv.heads.head import HeadMemory as HeadMemory
    from qkv.heads.packaged_models import get as get
    from qkv.heads.table import HeadTable as HeadTable
else:
    _HOME = {
        "open": "attention_model",
        "from_transformers": "attention_model",
        "AttentionModel": "attention_model",
        "AttentionCall": "adapter",
        "Capture": "capture",
        "HeadMemory": "head",
        "HeadTable": "table",
        "head_effects": "ablation",
        "token_losses": "ablation",
        "get": "packaged_models",
    }
    __getattr__, __dir__, __all__ = lazily(__name__, _HOME)
