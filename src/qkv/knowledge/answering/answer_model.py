"""Whoever is asked: a run's tokenizer, and its model in NumPy; from its folder, that takes no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qkv.model.config import ModelConfig
from qkv.model.numpy_gpt import NumpyGPT
from qkv.train import run_files, tokenizers
from qkv.train.tokenizers import Tokenizer

if TYPE_CHECKING:
    from qkv.train.runs import Run


@dataclass(frozen=True, eq=False)
class AnswerModel:
    """What it takes to ask a run."""

    folder: Path
    config: ModelConfig
    tokenizer: Tokenizer
    model: NumpyGPT


def answerer(run: Run | AnswerModel | str | Path) -> AnswerModel:
    """A run that is open already, or one in a folder, as somebody to ask."""
    if isinstance(run, AnswerModel):
        return run
    if not isinstance(run, str | Path):
        return AnswerModel(run.folder, run.config, run.tokenizer, NumpyGPT.of(run.model))
    folder = Path(run)
    found = run_files.read_description(folder)
    model = NumpyGPT(found.config, run_files.read_weights(folder))
    tokenizer = tokenizers.load(folder, foreign=found.data.get("kind") == "imported")
    return AnswerModel(folder, found.config, tokenizer, model)
