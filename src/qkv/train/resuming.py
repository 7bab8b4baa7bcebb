"""Refuse options that contradict a run that is resumed, rather than ignore them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from qkv.core.json_files import content_checksum
from qkv.errors import QkvError
from qkv.train import run_data
from qkv.train.run_data import DerivedText, KeptText, QuestionSource, TextSource
from qkv.train.run_files import FROM_SCRATCH, PARENT, PARENT_WEIGHTS, RunDescription, is_run, read_description
from qkv.train.tokenizers import Tokenizer, load_of_run

BUDGET = "budget_minutes"
"""Field of the data of a run that was given a time budget."""


def check_pretraining(
    folder: Path,
    text: TextSource | DerivedText | None,
    questions: QuestionSource | None,
    tokenizer: str | Tokenizer | None,
    recipe: str | None,
    minutes: float | None,
    fields: Mapping[str, Any],
    changes: Mapping[str, Any],
) -> None:
    """Refuse what a call of pretrain gave if the run in the folder did not begin with it."""
    found = read_description(folder)
    if found.data["kind"] == "imported":
        raise QkvError(f"resuming {folder}", "it was imported, not trained", "Export it, or generate from it")
    if PARENT in found.data:
        hint = "Continue it with finetune --resume, or give another --out"
        raise QkvError(f"resuming {folder}", "the run there was made by finetuning", hint)
    _refuse(
        folder,
        *_other_fields(found, recipe, minutes, fields, changes),
        *_other_tokenizer(folder, found, tokenizer),
        *_other_text(folder, found, text),
        *_other_questions(found, questions),
    )


def check_finetuning(
    folder: Path,
    parent: str | Path,
    weights_of_parent: Callable[[], str],
    text: TextSource | None,
    questions: QuestionSource,
    from_scratch: bool,
    recipe: str | None,
    minutes: float | None,
    fields: Mapping[str, Any],
    changes: Mapping[str, Any],
) -> None:
    """Refuse what a call of finetune gave if the run in the folder did not begin with it.

    The parent may have moved: then its weights must be those that the run began with.
    """
    found = read_description(folder)
    if PARENT not in found.data:
        raise QkvError(f"resuming {folder}", "the run there was not made by finetuning", "Give another folder")
    other = [*_other_fields(found, recipe, minutes, fields, changes), *_other_questions(found, questions)]
    if text is not None and found.data["kind"] == "questions":
        other.append("text was given, and it is trained on questions alone")
    else:
        other += _other_text(folder, found, text)
    if from_scratch and found.data.get(FROM_SCRATCH) is False:
        other.append("from_scratch was given, and it began with the weights of its parent")
    began, here = str(found.data[PARENT]), Path(parent)
    moved = Path(began).resolve() != here.resolve()
    known = PARENT_WEIGHTS in found.data  # not of runs of earlier versions
    if (moved or (known and is_run(here))) and weights_of_parent() != found.data.get(PARENT_WEIGHTS):
        other.append(
            f"parent is {began} there and {parent} here" if moved else f"the weights in {parent} are not those there"
        )
    _refuse(folder, *other)


def _refuse(folder: Path, *other: str) -> None:
    if other:
        raise QkvError(f"resuming {folder}", "; ".join(other), "Leave these options out, or give another --out")


def _other_fields(
    found: RunDescription,
    recipe: str | None,
    minutes: float | None,
    given: Mapping[str, Any],
    changes: Mapping[str, Any],
) -> Iterator[str]:
    """Settings and fields of the configuration that are not those of the run; `changes` were given one by one."""
    given = {**given, **changes}
    stored: dict[str, Any] = {**found.config.to_json(), **found.settings.to_json()}
    # A time budget decides steps and threads. A tokenizer may have found fewer tokens than it was asked for.
    budget = found.data.get(BUDGET)
    skipped = {"vocab_size"} | ({"threads"} if budget is not None else set())
    for name, value in given.items():
        if name == "steps" and budget is not None:
            if "steps" in changes:  # settings as a whole have steps too
                yield f"steps were given, and a time budget of {budget:g} minutes there"
        elif name not in skipped and stored[name] != value:
            yield f"{name} is {stored[name]} there and {value} here"
    if 0 < given.get("vocab_size", 0) < found.config.vocab_size:
        yield f"vocab_size is {found.config.vocab_size} there and {given['vocab_size']} here"
    if minutes not in (None, budget):
        yield f"{'no time budget' if budget is None else f'minutes is {budget:g}'} there and {minutes:g} minutes here"
    if recipe not in (None, found.recipe):
        yield f"recipe is {found.recipe} there and {recipe} here"


def _other_tokenizer(folder: Path, found: RunDescription, given: str | Tokenizer | None) -> Iterator[str]:
    if given is None:
        return
    own = load_of_run(folder, found)
    if isinstance(given, str):
        if given != own.name:
            yield f"tokenizer is {own.name} there and {given} here"
    elif content_checksum(given.to_json().encode()) != content_checksum(own.to_json().encode()):
        yield "tokenizer is not the one that it began with"


def _other_text(folder: Path, found: RunDescription, given: TextSource | DerivedText | None) -> Iterator[str]:
    if given is None:
        return
    if isinstance(given, DerivedText):
        made = KeptText.of(given, folder)
        if hashlib.sha256(made.content).hexdigest() != found.data.get("sha256"):
            yield "without gives another text than the one that it began with"
    elif run_data.origin(given)["sha256"] != found.data.get("sha256"):
        yield "text is not what it began with"


def _other_questions(found: RunDescription, given: QuestionSource | None) -> Iterator[str]:
    if given is None:
        return
    record = found.data if found.data["kind"] == "questions" else found.data.get("questions")
    if record is None:
        yield "questions were given, and it began without any"
    elif run_data.origin(given)["sha256"] != record.get("sha256"):
        yield "questions are not what it began with"
