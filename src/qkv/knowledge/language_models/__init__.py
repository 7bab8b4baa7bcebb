"""Real language models: any causal Hugging Face model, asked for facts, with the same answers, badge and scores.

Reading order, which is the order of imports:

1. shared_prefix: attention over a prefix that all rows of a batch share.
2. causal_model: `open_causal_model`, batched decoding and scoring.
3. prompts: wordings, examples, the chat template.
4. signals: how well the model knows the answer that it gives.
5. answer_file: answers to many questions, in a file that a stopped run continues.
6. badge: the calibrated badge of one relation, stored in the model's folder.
7. asking, known_facts, calibration: `ask`, `evaluate` and `trust`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkv._lazy import lazily

if TYPE_CHECKING:
    from qkv.knowledge.language_models.asking import ask as ask
    from qkv.knowledge.language_models.calibration import trust as trust
    from qkv.knowledge.language_models.causal_model import CausalModel as CausalModel
    from qkv.knowledge.language_models.causal_model import open_causal_model as open_causal_model
    from qkv.knowledge.language_models.known_facts import KnownFacts as KnownFacts
    from qkv.knowledge.language_models.known_facts import evaluate as evaluate
else:
    _HOME = {
        "CausalModel": "causal_model",
        "open_causal_model": "causal_model",
        "ask": "asking",
        "evaluate": "known_facts",
        "KnownFacts": "known_facts",
        "trust": "calibration",
    }
    __getattr__, __dir__, __all__ = lazily(__name__, _HOME)
