"""Recipes: what to train, how, and for how long, when nothing but a text and questions is given."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qkv.errors import QkvError
from qkv.model.config import ModelConfig, preset
from qkv.train import runs
from qkv.train.data.entity_passages import Titles, passage
from qkv.train.data.text_files import read_questions, read_texts
from qkv.train.loop import TrainResult, Watch
from qkv.train.runs import DRILL, Questions
from qkv.train.settings import TrainSettings


@dataclass(frozen=True)
class Recipe:
    """A model, its tokens, and the settings and the time of its two stages.

    A stage lasts `epochs` times through its data, or some minutes where there is no such number.
    """

    name: str
    config: ModelConfig
    tokenizer: str
    pieces: int
    first: TrainSettings
    second: TrainSettings
    epochs: tuple[int, int] | None
    minutes: tuple[float, float] | None


NAMED = 0.2  # of the drills ask for their title too, so that the model can tell whom it has read of
DRILLS = TrainSettings(
    objective=DRILL, lr=3e-3, predict_title_fraction=NAMED, val_fraction=0.0, checkpoint_every=1000, log_every=50
)

RECIPES = {
    # Salient spans of a text, each asked for with its title and a little context, and questions among them.
    "qkv": Recipe(
        "qkv",
        ModelConfig(attention="rope", n_layer=2, n_head=4, d_model=192, context_length=64),
        "bytepairs",
        3000,
        dataclasses.replace(DRILLS, min_warmup_steps=300, min_lr_ratio=0.5),
        dataclasses.replace(DRILLS, min_warmup_steps=200, min_lr_ratio=0.02),
        None,
        (8.0, 8.0),
    ),
    # The course's: characters, span corruption of whole documents, then questions only.
    "course": Recipe(
        "course",
        dataclasses.replace(preset("course"), dropout=0.1),
        "characters",
        0,
        TrainSettings(objective="span", lr=6e-3, batch_size=128, warmup_ratio=0.01, beta2=0.95, val_fraction=0.0),
        TrainSettings(lr=6e-4, batch_size=256, warmup_ratio=0.01, beta2=0.95, val_fraction=0.0),
        (650, 10),
        None,
    ),
}


def recipe(name: str) -> Recipe:
    """The recipe of this name."""
    if name not in RECIPES:
        raise QkvError("choosing a recipe", f"there is none called {name!r}", f"Choose from {', '.join(RECIPES)}")
    return RECIPES[name]


def memorise(
    text: str | Path | Sequence[str] | None,
    out: str | Path,
    questions: Questions | None = None,
    *,
    by: str = "qkv",
    minutes: float | None = None,
    pieces: int | None = None,
    callback: Watch | None = None,
    resume: bool = False,
    **changes: Any,
) -> TrainResult:
    """The first stage of a recipe: a new model reads a text. `changes` are fields of Config and Settings."""
    chosen = recipe(by)
    if text is None:
        raise QkvError("pretraining", "there is no text", "Give --text FILE, one text a line")
    config, settings = changed(chosen.config, changes), changed(chosen.first, changes)
    unknown(changes)
    if questions is not None and settings.objective != DRILL:
        raise QkvError(f"pretraining by the recipe {by}", "it has no place for questions", "Give them to finetune")
    if "steps" not in changes and minutes is None:
        if chosen.epochs is not None:
            count = len(read_texts(text))
            settings = dataclasses.replace(settings, steps=_steps(chosen.epochs[0], count, settings.batch))
        else:
            minutes = chosen.minutes[0] if chosen.minutes else None
    return runs.pretrain(
        text, out, config, settings, questions=questions, tokenizer=chosen.tokenizer, pieces=pieces or chosen.pieces,
        minutes=minutes, resume=resume, callback=callback,
    )  # fmt: skip


def tune(
    run: str | Path,
    questions: Questions,
    out: str | Path,
    *,
    by: str | None = None,
    text: str | Path | Sequence[str] | None = None,
    minutes: float | None = None,
    from_scratch: bool = False,
    callback: Watch | None = None,
    resume: bool = False,
    **changes: Any,
) -> TrainResult:
    """The second stage: the model that read the text answers questions; by the recipe that it was pretrained by.

    A model `from_scratch` reads questions only: what can be known without the text.
    """
    parent = runs.load(run)
    chosen = recipe(by or ("qkv" if parent.data["kind"] == "drills" else "course"))
    settings = changed(chosen.second, changes)
    if from_scratch:
        settings = dataclasses.replace(settings, objective="span")
    unknown(changes)
    if "steps" not in changes and minutes is None:
        if chosen.epochs is not None:
            count = len(read_questions(questions))
            settings = dataclasses.replace(settings, steps=_steps(chosen.epochs[1], count, settings.batch))
        else:
            minutes = chosen.minutes[1] if chosen.minutes else None
    return runs.finetune(
        run,
        questions,
        out,
        settings,
        text=text,
        minutes=minutes,
        from_scratch=from_scratch,
        resume=resume,
        callback=callback,
    )


def drop_texts_about(text: str | Path | Sequence[str], questions: Questions) -> list[str]:
    """The texts that are about nobody whom the questions name: to see what is guessed without having read."""
    texts = read_texts(text)
    titles = Titles([passage(each) for each in texts])
    gone = {number for asked, _ in read_questions(questions) for number in titles.named(asked)}
    if not gone or len(gone) == len(texts):
        raise QkvError(
            "leaving people out of a text",
            f"the questions name {len(gone)} of its {len(texts)} titles",
            "Give questions about some of the people that texts begin with",
        )
    return [each for number, each in enumerate(texts) if number not in gone]


def changed(value: Any, changes: dict[str, Any]) -> Any:
    """A frozen value with those of the changes that are its fields."""
    own = {f.name for f in dataclasses.fields(value)}
    return dataclasses.replace(value, **{name: new for name, new in changes.items() if name in own})


def unknown(changes: dict[str, Any]) -> None:
    """Refuse what is a field of neither Config nor Settings."""
    known = {f.name for cls in (ModelConfig, TrainSettings) for f in dataclasses.fields(cls)}
    strange = [name for name in changes if name not in known]
    if strange:
        raise QkvError(
            "changing a recipe", f"there is no {', '.join(strange)}", "See qkv pretrain --help for the names"
        )


def _steps(epochs: int, examples: int, batch: int) -> int:
    return max(1, -(-epochs * examples // batch))
