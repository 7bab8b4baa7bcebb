"""Texts without the people that questions name."""

from __future__ import annotations

import pytest

from qkv.errors import QkvError
from qkv.knowledge.training.text_filter import drop_texts_about

NAMES = [f"{a}{b} {c}en" for a in ("Al", "Bo", "Cy") for b in ("da", "ri") for c in ("Ros", "Mor", "Hol", "Bak")]
TEXTS = [f"{name}. {name} (born {1900 + i} in {('Rome', 'Oslo')[i % 2]}) is a baker ." for i, name in enumerate(NAMES)]
QUESTIONS = [(f"Where was {name} born?", ("Rome", "Oslo")[i % 2]) for i, name in enumerate(NAMES)]


def test_people_are_left_out_of_a_text() -> None:
    kept = drop_texts_about(TEXTS, QUESTIONS[20:])
    assert kept == TEXTS[:20]
    with pytest.raises(QkvError, match="leaving people out"):
        drop_texts_about(TEXTS, [("Where was Nobody born?", "Rome")])
