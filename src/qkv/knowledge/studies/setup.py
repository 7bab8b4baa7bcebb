"""How the studies teach: small models that read texts, or are drilled on them, with questions mixed in or after."""

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
from qkv.train.run_files import is_run
from qkv.train.runs import Run, finetune, load, pretrain
from qkv.train.settings import CLOZE, TrainSettings
from qkv.train.tokenizers import BytePairs

RELATIONS = ("occupation", "year", "city")


@dataclass(frozen=True)
class StudySetup:
    """A model and how long it is taught: drills, or texts to read, for each person."""

    people: int = 300
    exposures: int = 100
    width: int = 128
    layers: int = 2
    heads: int = 4
    vocab: int = 2000
    batch: int = 64
    lr: float = 3e-3
    mixed: float = 0.06
    named: float = 0.0
    rise: int = 0

    def config(self, attention: str, block: int = 64) -> ModelConfig:
        """The model."""
        return ModelConfig(attention, self.layers, self.heads, d_model=self.width, context_length=block)

    def settings(self, seed: int, examples: int, objective: str = CLOZE, batch: int = 0) -> TrainSettings:
        """The schedule for so many examples."""
        batch = batch or self.batch
        return TrainSettings(
            steps=max(10, examples // batch),
            batch_size=batch,
            lr=self.lr,
            objective=objective,
            question_fraction=self.mixed,
            predict_title_fraction=self.named,
            min_warmup_steps=self.rise,
            seed=seed,
            val_fraction=0.0,
            checkpoint_every=400,
            log_every=50,
        )


def people(count: int, seed: int, least: int = 1) -> tuple[Facts, Facts]:
    """People of Pantheon to be read of, and as many who are not; only from cities where at least so many were born."""
    everybody = pantheon()
    born = Counter(person.city for person in everybody)
    chosen = replace(everybody, people=tuple(p for p in everybody if born[p.city] >= least))
    drawn = chosen.sample(2 * count, seed).only(*RELATIONS)
    return replace(drawn, people=drawn.people[:count]), replace(drawn, people=drawn.people[count:])


def drilled(
    folder: Path,
    texts: Sequence[str],
    asked: Sequence[tuple[str, str]],
    school: StudySetup,
    seed: int,
    *,
    attention: str = "rope",
    examples: int = 0,
) -> Run:
    """A run that is drilled on texts, questions among the drills; one that was stopped goes on."""
    settings = school.settings(seed, examples or school.people * school.exposures)
    pretrain(
        list(texts), folder, school.config(attention), settings, questions=list(asked) or None, tokenizer="bytepairs",
        vocab_size=school.vocab, resume=True,
    )  # fmt: skip
    return load(folder)


def reading(
    folder: Path, texts: Sequence[str], asked: Sequence[tuple[str, str]], school: StudySetup, seed: int, *, mixed: bool
) -> Run:
    """A run that reads texts word by word, with questions mixed in, or finetuned on them afterwards."""
    tokenizer = BytePairs.train([*texts, *(question for question, _ in asked)], school.vocab)
    block = max(len(tokenizer.encode(text)) for text in texts) + 2
    base = train_mixed(
        folder / "base", texts, asked if mixed else (), school.mixed if mixed else 0.0,
        config=school.config("rope", block), tokenizer=tokenizer,
        settings=school.settings(seed, school.people * school.exposures, "next", batch=32),
    )  # fmt: skip
    return base if mixed else tuned(folder, base, asked, seed)


def tuned(folder: Path, base: Run, asked: Sequence[tuple[str, str]], seed: int) -> Run:
    """A run, finetuned on questions and nothing else."""
    if not is_run(folder / "tuned") or load(folder / "tuned").step < TUNED.steps:
        finetune(base.folder, list(asked), folder / "tuned", replace(TUNED, seed=seed), resume=True)
    return load(folder / "tuned")


TUNED = TrainSettings(steps=100, batch_size=64, lr=1e-3, val_fraction=0.0, checkpoint_every=1000)
"""How a model that has read is tuned on questions: until it knows the answers to those."""


def halves(facts: Facts, seed: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Questions for where half of the people were born, to be trained on, and for the other half."""
    trained, held = facts.split(0.5, seed)
    return list(questions(trained)), list(questions(held))
