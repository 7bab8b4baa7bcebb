"""Whoever is asked: a run's tokenizer, and its model in NumPy; from its folder, that takes no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qkv.model.config import Config
from qkv.model.plain import Plain
from qkv.train import opening, tokens
from qkv.train.tokens import Tokenizer

if TYPE_CHECKING:
    from qkv.train.runs import Run


@dataclass(frozen=True, eq=False)
class Answerer:
    """What it takes to ask a run."""

    folder: Path
    config: Config
    tokenizer: Tokenizer
    model: Plain


def answerer(run: Run | Answerer | str | Path) -> Answerer:
    """A run that is open already, or one in a folder, as somebody to ask."""
    if isinstance(run, Answerer):
        return run
    if not isinstance(run, str | Path):
        return Answerer(run.folder, run.config, run.tokenizer, Plain.of(run.model))
    folder = Path(run)
    config, _, origin = opening.described(folder)
    model = Plain(config, opening.arrays(folder))
    return Answerer(folder, config, tokens.load(folder, foreign=origin.get("kind") == "imported"), model)
