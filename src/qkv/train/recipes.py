"""Recipes: presets of model, tokenizer, settings and time for pretraining and finetuning, and which one a call follows.

`qkv.train.pretrain` and `qkv pretrain` (and `finetune` likewise) resolve their arguments here, so that the same
arguments mean the same in Python and in the shell. No torch is imported: the command line shows these defaults.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from qkv.errors import QkvError
from qkv.model.config import ModelConfig, preset
from qkv.train.settings import CLOZE, TrainSettings

if TYPE_CHECKING:
    from qkv.train.tokenizers import Tokenizer

RecipeName = Literal["cloze", "course", "custom"]
DEFAULT, CUSTOM = "cloze", "custom"
PREDICT_TITLE_FRACTION = 0.2
"""Of the cloze recipe's examples: the model can then tell later whose names it has read."""


@dataclass(frozen=True)
class Stage:
    """Pretraining or finetuning by a recipe.

    Attributes:
        settings: How the model is trained.
        epochs: Passes over the data, instead of `settings.steps`.
        minutes: Time budget, instead of `settings.steps`.
    """

    settings: TrainSettings
    epochs: int | None = None
    minutes: float | None = None


@dataclass(frozen=True)
class Recipe:
    """A named preset of everything that pretraining and finetuning need besides the data.

    Attributes:
        name: Name for `pretrain(recipe=...)` and `--recipe`.
        config: Shape of the model.
        tokenizer: `characters` or `bytepairs`, trained on the texts.
        pretraining: Settings and length of the first stage.
        finetuning: Settings and length of the second stage.

    Example:
        >>> from qkv.train.recipes import RECIPES
        >>> RECIPES["cloze"].tokenizer, RECIPES["cloze"].pretraining.minutes, RECIPES["course"].pretraining.epochs
        ('bytepairs', 8.0, 650)
    """

    name: str
    config: ModelConfig
    tokenizer: str
    pretraining: Stage
    finetuning: Stage


_CLOZE = TrainSettings(
    objective=CLOZE,
    optimizer="muon",
    lr=3e-3,
    predict_title_fraction=PREDICT_TITLE_FRACTION,
    val_fraction=0.0,
    checkpoint_every=1000,
    log_every=50,
)
RECIPES = {
    recipe.name: recipe
    for recipe in (
        # Texts about one entity each: predict salient spans from the title and a little context; questions mixed in.
        Recipe(
            "cloze",
            ModelConfig(attention="rope", n_layer=2, n_head=4, d_model=192, context_length=64),
            "bytepairs",
            Stage(dataclasses.replace(_CLOZE, min_warmup_steps=300, min_lr_ratio=0.5), minutes=8.0),
            Stage(dataclasses.replace(_CLOZE, min_warmup_steps=200, min_lr_ratio=0.02), minutes=8.0),
        ),
        # A public course's: characters, span corruption of whole documents, then questions only.
        Recipe(
            "course",
            preset("course"),
            "characters",
            Stage(
                TrainSettings(objective="span", lr=6e-3, batch_size=128, warmup_ratio=0.01, val_fraction=0.0),
                epochs=650,
            ),
            Stage(TrainSettings(lr=6e-4, batch_size=256, warmup_ratio=0.01, val_fraction=0.0), epochs=10),
        ),
        # Nothing but the defaults of ModelConfig and TrainSettings: for callers that choose themselves.
        Recipe(CUSTOM, ModelConfig(), "characters", Stage(TrainSettings()), Stage(TrainSettings())),
    )
}


def choose_recipe(recipe: str | None, given: Collection[str], objective: str | None, parent: str | None) -> Recipe:
    """The recipe that a call of pretrain or finetune follows. This is the only place that decides it.

    1. A recipe that is named is followed; whatever else is given changes it.
    2. Finetuning follows `custom` if `settings` is given, and otherwise the recipe that its parent was trained by.
    3. Pretraining follows `custom` if `config` (or a preset), `settings`, `tokenizer`, `steps` or another objective
       than the default recipe's is given, since its caller chooses; and otherwise the default recipe, `cloze`.

    Args:
        recipe: Name of a recipe, or None.
        given: Names of the arguments and settings that the caller gave.
        objective: The objective that the caller gave, or None.
        parent: When finetuning, the recipe of the run that is finetuned; None when pretraining.

    Raises:
        QkvError: If there is no recipe of this name.
    """
    if recipe is None:
        if parent is not None:
            recipe = CUSTOM if "settings" in given else parent
        else:
            chosen = {"config", "settings", "tokenizer", "steps"} & set(given) or objective not in (None, CLOZE)
            recipe = CUSTOM if chosen else DEFAULT
    if recipe not in RECIPES:
        raise QkvError("choosing a recipe", f"there is none called {recipe!r}", f"Choose from {', '.join(RECIPES)}")
    return RECIPES[recipe]


@dataclass(frozen=True)
class Plan:
    """A call of pretrain or finetune with every default filled in.

    Attributes:
        recipe: Name of the recipe that is followed.
        config: Shape of the model (finetuning takes its parent's instead).
        tokenizer: Name of a tokenizer to train, or a tokenizer.
        settings: How to train; `steps` counts if `epochs` and `minutes` are None.
        epochs: Passes over the data.
        minutes: Time budget.
    """

    recipe: str
    config: ModelConfig
    tokenizer: str | Tokenizer
    settings: TrainSettings
    epochs: int | None
    minutes: float | None

    def settings_for(self, examples: int) -> TrainSettings:
        """The settings, with epochs over so many examples converted to steps."""
        if self.epochs is None:
            return self.settings
        steps = max(1, -(-self.epochs * examples // self.settings.batch_size))
        return dataclasses.replace(self.settings, steps=steps)


def plan_pretraining(
    recipe: str | None,
    config: ModelConfig | str | None,
    settings: TrainSettings | None,
    tokenizer: str | Tokenizer | None,
    minutes: float | None,
    changes: Mapping[str, Any],
) -> Plan:
    """Fill in the defaults of a call of pretrain; `changes` are fields of ModelConfig and TrainSettings."""
    check_fields(changes, ModelConfig, TrainSettings)
    arguments = {"config": config, "settings": settings, "tokenizer": tokenizer}
    given = {*changes, *(name for name, value in arguments.items() if value is not None)}
    chosen = choose_recipe(recipe, given, changes.get("objective"), None)
    shape = preset(config) if isinstance(config, str) else config or chosen.config
    return _plan(chosen, chosen.pretraining, replaced(shape, changes), tokenizer, settings, minutes, changes)


def plan_finetuning(
    recipe: str | None,
    parent: str,
    settings: TrainSettings | None,
    minutes: float | None,
    from_scratch: bool,
    changes: Mapping[str, Any],
) -> Plan:
    """Fill in the defaults of a call of finetune; `changes` are fields of TrainSettings.

    A model from scratch has read no text, so that it is trained on questions only unless an objective is given.
    """
    check_fields(changes, TrainSettings)
    chosen = choose_recipe(recipe, () if settings is None else ("settings",), None, parent)
    if from_scratch and settings is None:
        changes = {"objective": "span", **changes}
    return _plan(chosen, chosen.finetuning, chosen.config, None, settings, minutes, changes)


def _plan(
    recipe: Recipe,
    stage: Stage,
    config: ModelConfig,
    tokenizer: str | Tokenizer | None,
    settings: TrainSettings | None,
    minutes: float | None,
    changes: Mapping[str, Any],
) -> Plan:
    if minutes is not None and "steps" in changes:
        raise QkvError("setting up training", "both steps and minutes were given", "Give one of them")
    if minutes is not None and not 0 < minutes < 10**6:
        raise QkvError("setting up training", f"minutes is {minutes}", "Give a positive number of minutes")
    by_recipe = minutes is None and settings is None and "steps" not in changes
    return Plan(
        recipe.name,
        config,
        tokenizer or recipe.tokenizer,
        replaced(settings or stage.settings, changes),
        stage.epochs if by_recipe else None,
        stage.minutes if by_recipe else minutes,
    )


def replaced(value: Any, changes: Mapping[str, Any]) -> Any:
    """A ModelConfig or TrainSettings with those of the changes that are its fields; wrong types are refused."""
    own = {name: new for name, new in changes.items() if name in field_names(type(value))}
    return type(value).from_json({**value.to_json(), **own}) if own else value


def check_fields(changes: Mapping[str, Any], *classes: type) -> None:
    """Refuse names that are fields of none of the classes."""
    known = {name for cls in classes for name in field_names(cls)}
    unknown = [name for name in changes if name not in known]
    if unknown:
        fields = " or ".join(cls.__name__ for cls in classes)
        raise QkvError(
            "changing a recipe",
            f"{', '.join(unknown)} is no field of {fields}",
            "See qkv pretrain --help for the names",
        )


def field_names(cls: type) -> tuple[str, ...]:
    """Names of the fields of a dataclass."""
    return tuple(f.name for f in dataclasses.fields(cls))
