"""Train on texts and questions in one run: a fixed number of each in every batch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from qkv.errors import QkvError
from qkv.model.config import ModelConfig
from qkv.train.data.objectives import documents, objective, question_examples, unchanged
from qkv.train.data.packing import BatchSource, batches
from qkv.train.data.text_files import SizedIterable
from qkv.train.loop import Job, StepCallback, train
from qkv.train.run_files import is_run, read_description
from qkv.train.runs import Run, create_run, load, with_vocabulary
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import Tokenizer

Pairs = SizedIterable[tuple[str, str]]


def train_mixed(
    out: str | Path,
    texts: SizedIterable[str],
    questions: Pairs = (),
    question_fraction: float = 0.0,
    *,
    config: ModelConfig,
    settings: TrainSettings,
    tokenizer: Tokenizer,
    callback: StepCallback | None = None,
) -> Run:
    """Train a run on texts, with questions as a fixed share of each batch; a run that was stopped is resumed.

    Unlike `qkv.train.pretrain` with questions, it takes every objective but `cloze`.

    Args:
        out: Folder of the run; one that is there already must have been started with the same arguments.
        texts: Texts for the objective of the settings.
        questions: Pairs of a question and its answer; only answers are targets.
        question_fraction: Share of each batch that is questions, above 0 if and only if there are questions.
        config: Shape of the model; `vocab_size` 0 takes the tokenizer's.
        settings: How to train.
        tokenizer: The tokenizer.
        callback: Called after each step with its number, the number of all steps, the loss and tokens per second.

    Returns:
        The trained run.

    Raises:
        QkvError: If question_fraction does not fit the questions, or the folder holds another run.

    Example:
        >>> import tempfile, qkv
        >>> texts = ["Ada was born in London."]
        >>> run = qkv.knowledge.train_mixed(
        ...     tempfile.mkdtemp(), texts, [("Where was Ada born?", "London")], 0.5,
        ...     config=qkv.model.ModelConfig(n_layer=1, n_head=2, d_model=16),
        ...     settings=qkv.train.TrainSettings(steps=2, batch_size=2, objective="next"),
        ...     tokenizer=qkv.train.Characters.train(texts),
        ... )
        >>> run.step
        2
    """
    if not 0 <= question_fraction < 1 or (question_fraction > 0) != bool(len(questions)):
        raise QkvError(
            "training on texts and questions",
            f"question_fraction is {question_fraction}, and there are {len(questions)}",
            "Give one above 0 if, and only if, there are questions",
        )
    fingerprint = hashlib.sha256(json.dumps([list(texts), list(questions), question_fraction]).encode()).hexdigest()
    create_or_check(out, config, settings, fingerprint, tokenizer)
    return train_run(out, lambda run: mixed_batches(run, texts, questions, question_fraction), callback)


def create_or_check(
    out: str | Path, config: ModelConfig, settings: TrainSettings, fingerprint: str, tokenizer: Tokenizer
) -> None:
    """Create a run that has taken no step yet, or check that the one in the folder was started with the same."""
    folder = Path(out)
    config = with_vocabulary(config, tokenizer)
    if not is_run(folder):
        create_run(folder, config, settings, {"kind": "text", "sha256": fingerprint}, tokenizer)
        return
    found = read_description(folder)
    if found.data.get("sha256") != fingerprint or found.settings != settings or found.config != config:
        raise QkvError(f"resuming {folder}", "it was started with other data or settings", "Give another folder")


def train_run(out: str | Path, source: Callable[[Run], BatchSource], callback: StepCallback | None = None) -> Run:
    """Train a run to its last step on the batches that `source` makes for it."""
    run = load(out)
    train(Job(Path(out), run.model, source(run), run.settings, callback=callback))
    return load(out)


def mixed_batches(run: Run, texts: SizedIterable[str], questions: Pairs, question_fraction: float) -> BatchSource:
    """The examples of each step: documents by the run's objective, then questions."""
    s, length = run.settings, run.config.context_length
    n_questions = round(question_fraction * s.batch_size)
    documents_ = documents(list(texts), run.tokenizer, s.objective == "salient")
    texts_of = batches(documents_, objective(s.objective), length, s.batch_size - n_questions, s.seed)
    if not n_questions:
        return texts_of
    asked, as_they_are = unchanged(question_examples(list(questions), run.tokenizer, length))
    questions_of = batches(asked, as_they_are, length, n_questions, s.seed + 1)
    return lambda step: [*texts_of(step), *questions_of(step)]
