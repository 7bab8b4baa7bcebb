"""Data, models and training of the studies: people of Pantheon, small models, questions mixed in or afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from qkv.knowledge.datasets.facts import Facts
from qkv.knowledge.datasets.pantheon import pantheon
from qkv.knowledge.datasets.templates import questions
from qkv.knowledge.training.mixed_run import train_mixed
from qkv.model.config import ModelConfig
from qkv.train.runs import Run, finetune, load, pretrain
from qkv.train.settings import CLOZE, TrainSettings
from qkv.train.tokenizers import BytePairs

RELATIONS = ("occupation", "year", "city")
CLOZE_CONTEXT = 64  # tokens; cloze examples are cropped to it
NEXT_TOKEN_BATCH = 32


@dataclass(frozen=True)
class StudySetup:
    """Size of a study, its model and its training; fields are named as in ModelConfig and TrainSettings."""

    people: int = 300
    exposures: int = 100
    """Training examples (cloze examples, or texts) for each person."""
    d_model: int = 128
    n_layer: int = 2
    n_head: int = 4
    vocab_size: int = 2000
    batch_size: int = 64
    lr: float = 3e-3
    question_fraction: float = 0.06
    predict_title_fraction: float = 0.0
    min_warmup_steps: int = 0

    def config(self, attention: str, context_length: int = CLOZE_CONTEXT) -> ModelConfig:
        """The configuration of the model."""
        return ModelConfig(attention, self.n_layer, self.n_head, d_model=self.d_model, context_length=context_length)

    def settings(self, seed: int, examples: int, objective: str = CLOZE, batch_size: int = 0) -> TrainSettings:
        """Training settings for this number of examples; `batch_size` 0 is that of the setup."""
        batch_size = batch_size or self.batch_size
        return TrainSettings(
            steps=max(10, examples // batch_size),
            batch_size=batch_size,
            lr=self.lr,
            objective=objective,
            question_fraction=self.question_fraction,
            predict_title_fraction=self.predict_title_fraction,
            min_warmup_steps=self.min_warmup_steps,
            seed=seed,
            val_fraction=0.0,
            checkpoint_every=400,
            log_every=50,
        )


FINETUNING = TrainSettings(steps=100, batch_size=64, lr=1e-3, val_fraction=0.0, checkpoint_every=1000)
"""Finetuning on questions after pretraining: long enough to answer all training questions."""


def sample_people(count: int, seed: int, min_per_city: int = 1) -> tuple[Facts, Facts]:
    """`count` people of Pantheon for the text, and as many others; from cities with at least so many people."""
    everybody = pantheon()
    per_city = Counter(person.city for person in everybody)
    eligible = replace(everybody, people=tuple(p for p in everybody if per_city[p.city] >= min_per_city))
    sample = eligible.sample(2 * count, seed).only(*RELATIONS)
    return replace(sample, people=sample.people[:count]), replace(sample, people=sample.people[count:])


def training_and_held_out_questions(facts: Facts, seed: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Questions for the birthplaces of one half of the people, to train on, and of the other half, to score on."""
    training, held_out = facts.split(0.5, seed)
    return list(questions(training)), list(questions(held_out))


def pretrain_cloze(
    folder: Path,
    texts: Sequence[str],
    asked: Sequence[tuple[str, str]],
    setup: StudySetup,
    seed: int,
    *,
    attention: str = "rope",
    examples: int = 0,
) -> Run:
    """Pretrain on cloze examples of texts, with questions mixed in; continue a run that was stopped."""
    settings = setup.settings(seed, examples or setup.people * setup.exposures)
    pretrain(
        list(texts), folder, setup.config(attention), settings, questions=list(asked) or None, tokenizer="bytepairs",
        vocab_size=setup.vocab_size, resume=True,
    )  # fmt: skip
    return load(folder)


def train_next_token(
    folder: Path, texts: Sequence[str], asked: Sequence[tuple[str, str]], setup: StudySetup, seed: int, *, mixed: bool
) -> Run:
    """Train on texts by next-token prediction, with the questions `mixed` in or by finetuning afterwards."""
    tokenizer = BytePairs.train([*texts, *(question for question, _ in asked)], setup.vocab_size)
    context_length = max(len(tokenizer.encode(text)) for text in texts) + 2
    base = train_mixed(
        folder / "base", texts, asked if mixed else (), setup.question_fraction if mixed else 0.0,
        config=setup.config("rope", context_length), tokenizer=tokenizer,
        settings=setup.settings(seed, setup.people * setup.exposures, "next", NEXT_TOKEN_BATCH),
    )  # fmt: skip
    return base if mixed else finetune_on_questions(folder, base, asked, seed)


def finetune_on_questions(folder: Path, base: Run, asked: Sequence[tuple[str, str]], seed: int) -> Run:
    """Finetune a run on questions only; continue one that was stopped."""
    out = folder / "tuned"
    finetune(base, list(asked), out, replace(FINETUNING, seed=seed), resume=True)
    return load(out)
