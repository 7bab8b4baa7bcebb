"""Random keys in, the spread of the weights and of the output out."""

from __future__ import annotations

from qkv.lazy import lazily

_HOME = {
    "Gaussian": "models",
    "Quantised": "models",
    "spread": "exact",
    "Spread": "exact",
    "sample": "sampling",
    "Sample": "sampling",
    "within": "chance",
    "Chance": "chance",
    "distribution": "laws",
    "Distribution": "laws",
    "compare": "heads",
    "Comparison": "heads",
    "harden": "hardening",
    "Hardened": "hardening",
    "steady": "steadying",
    "Steady": "steadying",
    "arms": "beside",
    "at_scale": "beside",
    "Arm": "beside",
}

__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
