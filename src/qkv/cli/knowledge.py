"""qkv evaluate, ask, trust, study."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from qkv.cli.common import JSON, Plot, refuse_missing_folder, run_folder, say, say_unfinished, show
from qkv.cli.given_options import refuse_idle, refuse_overwriting
from qkv.cli.help_format import one_of
from qkv.cli.language_models import (
    FactsSource,
    People,
    Relation,
    ask_model,
    evaluate_model,
    facts_of,
    is_language_model,
    say_left_out,
    trust_model,
)
from qkv.cli.train import seeded
from qkv.errors import QkvError
from qkv.knowledge.studies import STUDIES

if TYPE_CHECKING:
    from qkv.core.display import Displayable

RunFolder = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="Folder of a run that was trained on questions, or the JSON document that training printed; "
        "or folder of a causal Hugging Face model.",
    ),
]


OF_RUNS, OF_MODELS = "runs that qkv trained", "language models"


def evaluate(
    context: typer.Context,
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Folder of a run, or of several seeds of it; or of a Hugging Face model."
        ),
    ],
    questions: Annotated[
        Path | None, typer.Option(help="Questions to score on: lines question<TAB>answer, or a table of a spreadsheet.")
    ] = None,
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
        Path | None,
        typer.Option(
            help="Write every answer to this file, one JSON object per line. Of a language model they are appended, "
            "and a stopped run continues."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Score RUN-0, RUN-1, … instead, and report their mean.")] = 1,
    facts: FactsSource = None,
    relation: Relation = "city",
    people: People = 1000,
    seed: Annotated[int, typer.Option(min=0, help="With --facts: seed of the people.")] = 0,
    plot: Plot = None,
    as_json: JSON = False,
) -> None:
    """Score answers by exact match, with a confidence interval, beside baselines."""
    # long: most of it are the options, one after another
    from qkv.core.files import check_output_path, write_text
    from qkv.knowledge.datasets.facts import load_questions
    from qkv.knowledge.evaluation import evaluate as score
    from qkv.viz.theme import check_plot_path

    if answers is not None:
        check_output_path(answers)
    check_plot_path(plot)
    runs = [run_folder(run) for run in runs]
    refuse_overwriting(
        context, runs=runs if seeds == 1 else [seeded(run, each) for run in runs for each in range(seeds)]
    )
    if seeds == 1:
        for folder in runs:
            refuse_missing_folder("evaluating", folder)
    if len(runs) == 1 and is_language_model(runs[0]):
        idle = ("training", "unpretrained", "ablated", "seeds")
        refuse_idle(context, "evaluating a language model", idle, OF_RUNS)
        evaluate_model(runs[0], questions, facts, relation, people, seed, answers, plot, as_json)
        return
    refuse_idle(context, "evaluating a run", ("facts", "relation", "people", "seed", "plot"), OF_MODELS)
    if answers is not None:
        _refuse_other_files(answers)
    if questions is None:
        hint = "Give --questions FILE, of lines question<TAB>answer"
        raise QkvError("evaluating a run", "--questions is missing", hint)
    asked = load_questions(questions)
    say_left_out(asked.problems)
    if seeds > 1:
        runs = [seeded(run, seed) for run in runs for seed in range(seeds)]
    say_unfinished(*runs)
    found = score(list(runs), asked, training=training, unpretrained=unpretrained, ablated=ablated)
    if answers is not None:
        write_text(answers, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found.rows()))
    show(found, as_json)


ANSWER_KEYS = {"run", "question", "wanted", "answer", "right"}
"""Names in each line of a file of answers; one with others, such as labels of one's own, is not replaced."""


def _refuse_other_files(answers: Path) -> None:
    """Refuse to write answers to a file that is there and holds something else."""
    from qkv.core.json_files import parse_json

    if not answers.is_file() or not answers.stat().st_size:
        return
    try:
        with answers.open(encoding="utf-8") as file:
            own = all(parse_json(line).keys() == ANSWER_KEYS for line in file)
    except (ValueError, AttributeError):
        own = False
    if not own:
        problem = "the file is there already, and holds something other than answers"
        raise QkvError(f"--answers {answers}", problem, "Give another path, or move the file away")


def ask(
    context: typer.Context,
    run: RunFolder,
    question: Annotated[str, typer.Argument(help="For example: Where was Ada Lovelace born?")],
    n_samples: Annotated[int, typer.Option(help="Number of answers to sample, for their agreement.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the samples.")] = 0,
    plot: Plot = None,
    as_json: JSON = False,
) -> None:
    """Ask a run: answer, alternatives, and a badge: remembered, made up or unsure, with the reason."""
    from qkv.knowledge.answer import ask as answer
    from qkv.viz.theme import check_plot_path

    check_plot_path(plot)
    folder = run_folder(run)
    refuse_overwriting(context, run=folder)
    if is_language_model(folder):
        refuse_idle(context, "asking a language model", ("n_samples", "seed"), OF_RUNS)
        ask_model(folder, question, plot, as_json)
        return
    say_unfinished(folder)
    found = answer(folder, question, n_samples=n_samples, seed=seed)
    _draw(plot, "heads", found)
    show(found, as_json)


def trust(
    context: typer.Context,
    run: RunFolder,
    known: Annotated[
        Path | None,
        typer.Option(help="Lines question<TAB>answer about people in the run's text, not trained on as questions."),
    ] = None,
    unknown: Annotated[
        Path | None, typer.Option(help="Questions about people not in it, one per line; answers are optional.")
    ] = None,
    level: Annotated[
        float, typer.Option(help="Share of “remembered” answers that shall be right; less is stated if need be.")
    ] = 0.95,
    confidence: Annotated[float, typer.Option(help="How surely the stated share is true.")] = 0.95,
    calibration: Annotated[
        float, typer.Option(help="Share of the people to fit the badge on; below 1, measure it on the rest.")
    ] = 1.0,
    text: Annotated[
        Path | None, typer.Option(help="The run's text, to check names against; if left out, the file it records.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the folds, of invented names and of sampled answers.")] = 0,
    save: Annotated[
        bool, typer.Option(help="Write the badge to the run's folder, where ask finds it, if it says anything.")
    ] = True,
    facts: FactsSource = None,
    relation: Relation = "city",
    people: People = 1000,
    answers: Annotated[
        Path | None, typer.Option(help="Of a language model: append the answers to this file; a stopped run continues.")
    ] = None,
    plot: Plot = None,
    as_json: JSON = False,
) -> None:
    """Calibrate the badge of a run, and state how often its “remembered” answers are right."""
    # long: most of it are the options, one after another
    from qkv.core.files import check_output_path
    from qkv.knowledge.confidence.badge import FILE
    from qkv.knowledge.confidence.calibration import trust as measure
    from qkv.knowledge.datasets.facts import load_questions
    from qkv.viz.theme import check_plot_path

    if answers is not None:
        check_output_path(answers)
    check_plot_path(plot)
    folder = run_folder(run)
    refuse_overwriting(context, run=folder)
    refuse_missing_folder("calibrating trust", folder)
    if is_language_model(folder):
        if known is not None or unknown is not None:
            problem = "--known and --unknown are for runs"
            raise QkvError("calibrating a language model", problem, "Give --facts pantheon")
        refuse_idle(context, "calibrating a language model", ("calibration", "text"), OF_RUNS)
        if save:
            from qkv.knowledge.language_models.badge import badge_path

            refuse_overwriting(context, run=folder, save=badge_path(folder, relation))
        trust_model(folder, facts, relation, people, level, confidence, seed, save, answers, plot, as_json)
        return
    refuse_idle(context, "calibrating trust", ("facts", "relation", "people", "answers"), OF_MODELS)
    if known is None or unknown is None:
        raise QkvError("calibrating trust", "--known or --unknown is missing", "Give a file of questions for each")
    if save:
        refuse_overwriting(context, run=folder, save=folder / FILE)
    say_unfinished(folder)
    asked, without_answers = load_questions(known), load_questions(unknown, answered=False)
    say_left_out(asked.problems)
    say_left_out(without_answers.problems)
    found = measure(
        folder, asked, without_answers, level=level, confidence=confidence, calibration=calibration,
        seed=seed, save=save, text=text,
    )  # fmt: skip
    _draw(plot, "reliability", found)
    show(found, as_json)


def study(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(STUDIES)}.", autocompletion=one_of(STUDIES))],
    model: Annotated[
        Path | None, typer.Argument(help="For considerations: folder of a causal Hugging Face model.")
    ] = None,
    *,
    out: Annotated[Path, typer.Option(help="Folder of the study; a stopped study continues.")],
    seeds: Annotated[int, typer.Option(help="Seeds of each cell; 0 for the default of the study.")] = 0,
    minutes: Annotated[float, typer.Option(help="Start no cell after this many minutes.")] = float("inf"),
    people: Annotated[
        int, typer.Option(help="People to train on, or to ask about; 0 for the default of the study.")
    ] = 0,
    facts: FactsSource = None,
    relation: Relation = "city",
    as_json: JSON = False,
) -> None:
    """Run a resumable experiment on facts; it gives one table and one figure."""
    from qkv.knowledge.studies import study as run
    from qkv.knowledge.studies.study_files import save_figure
    from qkv.viz.plots.studies import study_figure
    from qkv.viz.theme import save

    if name != "considerations":
        refuse_idle(context, f"the study {name}", ("facts", "relation"), "the study considerations")
    opened = None if model is None else run_folder(model)
    refuse_overwriting(context, model=opened)
    with _progress() as callback:
        found = run(
            name, out, seeds=seeds, minutes=minutes, people=people, callback=callback, model=opened,
            facts=facts_of(facts), relation=relation,
        )  # fmt: skip
    with TemporaryDirectory() as folder:
        save(study_figure(found), drawn := Path(folder) / "figure.svg")
        figure = save_figure(out, name, drawn.read_text("utf-8"))
    show(found, as_json)
    if not as_json:
        say(f"figure: {figure}\n")


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (evaluate, ask, trust, study):
        app.command()(command)


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
