"""qkv ask, evaluate, trust and study for the folder of a Hugging Face model; cli.knowledge hands over to these."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qkv.cli.common import progress, show, working
from qkv.errors import QkvError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qkv.knowledge.datasets.facts import Facts, Problem

PANTHEON = "pantheon"
FactsSource = Annotated[
    str | None,
    typer.Option("--facts", help="Of a language model: ask for these facts: pantheon, the shipped table, or a file."),
]
Relation = Annotated[str, typer.Option(help="With --facts: what to ask for: city, country, year or occupation.")]
People = Annotated[int, typer.Option(min=1, help="With --facts: how many people to ask about, drawn by --seed.")]


def is_language_model(folder: Path) -> bool:
    """Whether a folder holds a Hugging Face model."""
    from qkv.core.hugging_face import is_hugging_face_folder

    return is_hugging_face_folder(folder)


def ask_model(folder: Path, question: str, plot: Path | None, as_json: bool) -> None:
    """`qkv ask` of a language model."""
    from qkv.knowledge.language_models.asking import ask

    with working("asking"):
        found = ask(folder, question)
    if plot is not None:
        from dataclasses import replace

        from qkv.viz.plots.knowledge import heads
        from qkv.viz.theme import save

        save(heads(replace(found, heads=found.heads[:20])), plot)
    show(found, as_json)


def evaluate_model(
    folder: Path,
    questions: Path | None,
    facts: str | None,
    relation: str,
    people: int,
    seed: int,
    answers: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """`qkv evaluate` of a language model, on a file of questions or on facts."""
    from qkv.knowledge.datasets.facts import load_questions
    from qkv.knowledge.language_models.known_facts import evaluate

    if (questions is None) == (facts is None):
        problem = "both --questions and --facts were given" if facts else "neither --questions nor --facts was given"
        raise QkvError("evaluating a language model", problem, f"Give one of them, such as --facts {PANTHEON}")
    if questions is None:
        asked: Facts | Sequence[tuple[str, str]] | None = facts_of(facts)
    else:
        read = load_questions(questions)
        say_left_out(read.problems)
        asked = read.pairs
    with progress("asking") as step:
        found = evaluate(folder, asked, relation=relation, people=people, seed=seed, answers=answers, progress=step)
    if plot is not None:
        from qkv.viz.plots.language_models import known_facts
        from qkv.viz.theme import save

        save(known_facts(found), plot)
    show(found, as_json)


def trust_model(
    folder: Path,
    facts: str | None,
    relation: str,
    people: int,
    level: float,
    confidence: float,
    seed: int,
    save: bool,
    answers: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """`qkv trust` of a language model."""
    from qkv.knowledge.language_models.calibration import trust

    with progress("asking") as step:
        found = trust(
            folder, facts_of(facts), relation=relation, people=people, level=level, confidence=confidence, seed=seed,
            save=save, answers=answers, progress=step,
        )  # fmt: skip
    if plot is not None:
        from qkv.viz.plots.knowledge import reliability
        from qkv.viz.theme import save as save_figure

        save_figure(reliability(found), plot)
    show(found, as_json)


def facts_of(source: str | None) -> Facts | None:
    """The facts of a file; None for the shipped table."""
    from qkv.knowledge.datasets.fact_tables import load_facts

    if source is None or source == PANTHEON:
        return None
    found = load_facts(source)
    say_left_out(found.problems)
    return found


def say_left_out(problems: Sequence[Problem]) -> None:
    """Report rows that were left out on stderr; the result on stdout stays machine-readable."""
    from qkv.knowledge.datasets.facts import describe_problems

    if problems:
        typer.echo(f"qkv: {describe_problems(problems)}", err=True)
