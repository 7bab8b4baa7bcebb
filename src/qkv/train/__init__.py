"""Tokens, objectives, one step loop, checkpoints: training that does not lose work."""

from __future__ import annotations

from qkv.lazy import lazily

_HOME = {
    "Settings": "settings",
    "pretrain": "runs",
    "finetune": "runs",
    "resume_run": "runs",
    "load": "runs",
    "Run": "runs",
    "Trained": "loop",
    "Job": "loop",
    "train": "loop",
    "History": "log",
    "Characters": "tokens",
    "BytePairs": "tokens",
    "generate": "generation",
    "Generated": "generation",
    "export": "outgoing",
    "bring": "incoming",
}

__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
