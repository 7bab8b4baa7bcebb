"""Facts, texts made of them, questions, scores, and which answers to trust."""

from __future__ import annotations

from qkv.lazy import lazily

_HOME = {
    "Facts": "facts",
    "Person": "facts",
    "Questions": "facts",
    "Texts": "facts",
    "load_facts": "facts",
    "load_questions": "facts",
    "load_texts": "facts",
    "pantheon": "shipped",
    "biographies": "texts",
    "questions": "texts",
    "learn": "learning",
    "memorise": "recipes",
    "tune": "recipes",
    "lacking": "recipes",
    "Recipe": "recipes",
    "ask": "asking",
    "Answer": "asking",
    "Badge": "badge",
    "evaluate": "scoring",
    "Scores": "scoring",
    "trust": "trusting",
    "Trust": "trusting",
    "study": "studies",
    "Study": "studies.engine",
}

__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
