"""qkv evaluate, ask, trust, study."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qkv.cli.common import JSON, Plot, show
from qkv.cli.train import seeded
from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.core.display import Displayable

STUDIES = ("extraction", "capacity", "variants", "ablation", "rare_facts")
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run that has learned to answer.")]


def evaluate(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folder of a run, or of several seeds of it.")],
    questions: Annotated[Path, typer.Option(help="Lines question<TAB>answer to be scored on.")],
    training: Annotated[Path | None, typer.Option(help="The training questions, for the most frequent answer.")] = None,
    unpretrained: Annotated[Path | None, typer.Option(help="A run that was finetuned without pretraining.")] = None,
    lacking: Annotated[Path | None, typer.Option(help="A run whose text lacked the people asked about.")] = None,
    answers: Annotated[
        Path | None, typer.Option(help="Write every answer to this file, one JSON object a line.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Score RUN-0, RUN-1, … instead, and their mean.")] = 1,
    as_json: JSON = False,
) -> None:
    """Score answers by exact match, with an interval, beside the baselines."""
    from qkv.core.files import write_text
    from qkv.knowledge.datasets.facts import load_questions
    from qkv.knowledge.evaluation import evaluate as score

    asked = load_questions(questions)
    _complain(asked.problems)
    if seeds > 1:
        runs = [seeded(run, seed) for run in runs for seed in range(seeds)]
    found = score(list(runs), asked, training=training, unpretrained=unpretrained, lacking=lacking)
    if answers is not None:
        write_text(answers, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found.rows()))
    show(found, as_json)


def ask(
    run: RunFolder,
    question: Annotated[str, typer.Argument(help="Like: Where was Ada Lovelace born?")],
    samples: Annotated[int, typer.Option(help="Answers to sample, to see whether they agree.")] = 8,
    seed: Annotated[int, typer.Option(help="Seed of the sampling.")] = 0,
    plot: Plot = None,
    as_json: JSON = False,
) -> None:
    """Ask a run: its answer, alternatives, whether it is remembered or made up, and why."""
    from qkv.knowledge.answering.answer import ask as answer

    if samples < 0:
        raise QkvError(f"--samples {samples}", "that is no number of answers", "Give 0 or more")
    found = answer(run, question, samples=samples, seed=seed)
    _draw(plot, "heads", found)
    show(found, as_json)


def trust(
    run: RunFolder,
    known: Annotated[Path, typer.Option(help="Lines question<TAB>answer on people in the run's text.")],
    unknown: Annotated[Path, typer.Option(help="Questions on people that are not, one a line, perhaps with answers.")],
    level: Annotated[float, typer.Option(help="How often an answer called remembered has to be right.")] = 0.95,
    calibration: Annotated[float, typer.Option(help="Share of the people that the badge is fitted on.")] = 0.5,
    seed: Annotated[int, typer.Option(help="Seed of the split, and of sampled answers.")] = 0,
    save: Annotated[bool, typer.Option(help="Keep the badge in the run's folder, where ask finds it.")] = True,
    plot: Plot = None,
    as_json: JSON = False,
) -> None:
    """Fit the badge of a run on some people, and measure it on others."""
    from qkv.knowledge.confidence.calibration import trust as measure
    from qkv.knowledge.datasets.facts import load_questions

    asked, strangers = load_questions(known), load_questions(unknown, answered=False)
    _complain(asked.problems)
    _complain(strangers.problems)
    found = measure(run, asked, strangers, level=level, calibration=calibration, seed=seed, save=save)
    _draw(plot, "reliability", found)
    show(found, as_json)


def study(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(STUDIES)}.")],
    out: Annotated[Path, typer.Option(help="Folder of the study; a study that was stopped goes on in it.")],
    seeds: Annotated[int, typer.Option(help="Seeds of each cell; 0 for the study's own number.")] = 0,
    minutes: Annotated[float, typer.Option(help="Begin no cell after so many minutes.")] = float("inf"),
    people: Annotated[int, typer.Option(help="People to learn about; 0 for the study's own number.")] = 0,
    as_json: JSON = False,
) -> None:
    """Run an experiment on facts: resumable, one table and one picture."""
    from qkv.knowledge.studies import study as run
    from qkv.viz.plots.studies import studied
    from qkv.viz.theme import save

    with _progress() as watch:
        found = run(name, out, seeds=seeds, minutes=minutes, people=people, callback=watch)
    save(studied(found), out / f"{name}.svg")
    show(found, as_json)
    if not as_json:
        typer.echo(f"picture: {out / f'{name}.svg'}")


def register(app: typer.Typer) -> None:
    """Add these verbs to the command line."""
    for verb in (evaluate, ask, trust, study):
        app.command()(verb)


def _complain(problems: Any) -> None:
    """Bad rows on stderr: the result goes to stdout, and goes on."""
    from qkv.knowledge.datasets.facts import told

    if problems:
        typer.echo(f"qkv: {told(problems)}", err=True)


def _draw(path: Path | None, picture: str, found: Displayable) -> None:
    if path is None:
        return
    from qkv.viz.plots import knowledge
    from qkv.viz.theme import save

    save(getattr(knowledge, picture)(found), path)


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A line on stderr, on a terminal only: which cell is being measured."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("") as status:

        def watch(name: str, at: int, cells: int) -> None:
            status.update(f"cell {at + 1} of {cells}: {name}")

        yield watch
