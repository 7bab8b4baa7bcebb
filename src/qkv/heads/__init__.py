"""Heads of real models: open a Hugging Face model, watch its attention, and measure every head.

Reading order: packaged_models (real weights without a hub); adapter (what every attention layer computed);
attention_model (open a model, run it); capture and head (one text, one head as a Memory); patterns, ablation, firmness,
readable_keys, output_circuit (measures); certified_head (what is certified of one head); key_grid, rounding and
divergence (keys of few bits, and what they change); table (all of them for all heads);
sensitivity, forecast and allocation (which channels need bits, and what they cost); fingerprint and packed_cache (a key
cache of few bits, for one model); name_lookup (heads that look up a name); text_survey (all heads on one text);
token_view (one head, seen from one token); example_model (heads that qkv designed).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkv._lazy import lazily

if TYPE_CHECKING:  # what editors and mypy see; at run time the same names are imported when they are first used
    from qkv.heads.ablation import head_effects as head_effects
    from qkv.heads.ablation import token_losses as token_losses
    from qkv.heads.adapter import AttentionCall as AttentionCall
    from qkv.heads.allocation import Allocation as Allocation
    from qkv.heads.allocation import allocate as allocate
    from qkv.heads.attention_model import AttentionModel as AttentionModel
    from qkv.heads.attention_model import from_transformers as from_transformers
    from qkv.heads.attention_model import open as open
    from qkv.heads.capture import Capture as Capture
    from qkv.heads.example_model import example as example
    from qkv.heads.head import HeadMemory as HeadMemory
    from qkv.heads.name_lookup import NamedQuestion as NamedQuestion
    from qkv.heads.name_lookup import name_heads as name_heads
    from qkv.heads.packaged_models import get as get
    from qkv.heads.packed_cache import quantised_cache as quantised_cache
    from qkv.heads.rounding import HeadRounding as HeadRounding
    from qkv.heads.rounding import Rounding as Rounding
    from qkv.heads.table import HeadTable as HeadTable
    from qkv.heads.text_survey import Survey as Survey
    from qkv.heads.text_survey import survey as survey
    from qkv.heads.token_view import HeadView as HeadView
    from qkv.heads.token_view import head_view as head_view
else:
    _HOME = {
        "open": "attention_model",
        "from_transformers": "attention_model",
        "AttentionModel": "attention_model",
        "AttentionCall": "adapter",
        "Capture": "capture",
        "HeadMemory": "head",
        "HeadTable": "table",
        "HeadView": "token_view",
        "Survey": "text_survey",
        "example": "example_model",
        "head_view": "token_view",
        "survey": "text_survey",
        "HeadRounding": "rounding",
        "Allocation": "allocation",
        "allocate": "allocation",
        "quantised_cache": "packed_cache",
        "Rounding": "rounding",
        "NamedQuestion": "name_lookup",
        "name_heads": "name_lookup",
        "head_effects": "ablation",
        "token_losses": "ablation",
        "get": "packaged_models",
    }
    __getattr__, __dir__, __all__ = lazily(__name__, _HOME)
