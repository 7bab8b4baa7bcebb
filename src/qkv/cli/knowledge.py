"""qkv evaluate, ask, trust, study."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qkv.cli.common import JSON, Plot, run_folder, say, show
from qkv.cli.help_format import one_of
from qkv.cli.train import seeded
from qkv.errors import QkvError
from qkv.knowledge.studies import STUDIES

if TYPE_CHECKING:
    from qkv.core.display import Displayable
    from qkv.knowledge.datasets.facts import Problem

RunFolder = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="Folder of a run that was trained on questions, or the JSON document that training printed."
    ),
]


def evaluate(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folder of a run, or of several seeds of it.")],
    questions: Annotated[Path, typer.Option(help="File of lines question<TAB>answer to score on.")],
    training: Annotated[
        Path | None, typer.Option(help="Training questions, for the baseline of their most frequent answer.")
    ] = None,
    unpretrained: Annotated[
        Path | None, typer.Option(help="Baseline: a run that was finetuned without pretraining.")
    ] = None,
    ablated: Annotated[
        Path | None, typer.Option(help="Baseline: a run whose text leaves out the people asked about.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(help="Write every answer to this file, one JSON object per line.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Score RUN-0, RUN-1, … instead, and report their mean.")] = 1,
    as_json: JSON = False,
) -> None:
    """Score answers by exact match, with a confidence interval, beside baselines."""
    from qkv.core.files import check_output_path, write_text
    from qkv.knowledge.datasets.facts import load_questions
    from qkv.knowledge.evaluation import evaluate as score

    if answers is not None:
        check_output_path(answers)
    runs = [run_folder(run) for run in runs]
    asked = load_questions(questions)
    _warn(asked.problems)
    if seeds > 1:
        runs = [seeded(run, seed) for run in runs for seed in range(seeds)]
    found = score(list(runs), asked, training=training, unpretrained=unpretrained, ablated=ablated)
    if answers is not None:
        write_text(answers, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found.rows()))
    show(found, as_json)


def ask(
    run: RunFolder,
    question: Annotated[str, typer.Argument(help="For example: Where was Ada Lovelace born?")],
    n_samples: Annotated[int, typer.Option(help="Number of answers to sample, for their agreement.")] = 8,
    seed: Annotated[int, typer.Option(help="Seed of the samples.")] = 0,
    plot: Plot = None,
    as_json: JSON = False,
) -> None:
    """Ask a run: answer, alternatives, and a badge: remembered, made up or unsure, with the reason."""
    from qkv.knowledge.answer import ask as answer
    from qkv.viz.theme import check_plot_path

    check_plot_path(plot)
    if n_samples < 0:
        raise QkvError(f"--n-samples {n_samples}", "the number of answers is negative", "Give 0 or more")
    found = answer(run_folder(run), question, n_samples=n_samples, seed=seed)
    _draw(plot, "heads", found)
    show(found, as_json)


def trust(
    run: RunFolder,
    known: Annotated[Path, typer.Option(help="Lines question<TAB>answer about people in the run's text.")],
    unknown: Annotated[
        Path, typer.Option(help="Questions about people not in it, one per line; answers are optional.")
    ],
    level: Annotated[float, typer.Option(help="Share of “remembered” answers that shall be right.")] = 0.95,
    calibration: Annotated[float, typer.Option(help="Share of the people to fit the badge on.")] = 0.5,
    seed: Annotated[int, typer.Option(help="Seed of the split and of sampled answers.")] = 0,
    save: Annotated[bool, typer.Option(help="Write the badge to the run's folder, where ask finds it.")] = True,
    plot: Plot = None,
    as_json: JSON = False,
) -> None:
    """Calibrate the badge of a run on some people, and measure it on others."""
    from qkv.knowledge.confidence.calibration import trust as measure
    from qkv.knowledge.datasets.facts import load_questions
    from qkv.viz.theme import check_plot_path

    check_plot_path(plot)
    asked, without_answers = load_questions(known), load_questions(unknown, answered=False)
    _warn(asked.problems)
    _warn(without_answers.problems)
    found = measure(run_folder(run), asked, without_answers, level=level, calibration=calibration, seed=seed, save=save)
    _draw(plot, "reliability", found)
    show(found, as_json)


def study(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(STUDIES)}.", autocompletion=one_of(STUDIES))],
    out: Annotated[Path, typer.Option(help="Folder of the study; a stopped study continues.")],
    seeds: Annotated[int, typer.Option(help="Seeds of each cell; 0 for the default of the study.")] = 0,
    minutes: Annotated[float, typer.Option(help="Start no cell after this many minutes.")] = float("inf"),
    people: Annotated[int, typer.Option(help="People to train on; 0 for the default of the study.")] = 0,
    as_json: JSON = False,
) -> None:
    """Run a resumable experiment on facts; it gives one table and one figure."""
    from qkv.knowledge.studies import study as run
    from qkv.viz.plots.studies import study_figure
    from qkv.viz.theme import save

    with _progress() as callback:
        found = run(name, out, seeds=seeds, minutes=minutes, people=people, callback=callback)
    save(study_figure(found), out / f"{name}.svg")
    show(found, as_json)
    if not as_json:
        say(f"figure: {out / f'{name}.svg'}\n")


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (evaluate, ask, trust, study):
        app.command()(command)


def _warn(problems: tuple[Problem, ...]) -> None:
    """Report rows that were left out on stderr; the result on stdout stays machine-readable."""
    from qkv.knowledge.datasets.facts import describe_problems

    if problems:
        typer.echo(f"qkv: {describe_problems(problems)}", err=True)


def _draw(path: Path | None, figure: str, found: Displayable) -> None:
    """Save the figure of this name in qkv.viz.plots.knowledge, if a path is given."""
    if path is None:
        return
    from qkv.viz.plots import knowledge
    from qkv.viz.theme import save

    save(getattr(knowledge, figure)(found), path)


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A status line on stderr, on a terminal only, with the cell that is being measured."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("") as status:

        def callback(name: str, index: int, cells: int) -> None:
            status.update(f"cell {index + 1} of {cells}: {name}")

        yield callback
