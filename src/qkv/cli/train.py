"""qkv pretrain, finetune, generate, export, import."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from qkv.cli.common import JSON, Plot, is_first_rank, run_folder, say, say_unfinished, show
from qkv.cli.exit_codes import INTERRUPTED, STOPPED
from qkv.cli.given_options import refuse_overwriting
from qkv.cli.help_format import one_of
from qkv.cli.json_documents import document_text
from qkv.cli.recipe_help import HelpOf, recipe_command
from qkv.errors import QkvError
from qkv.model.config import ACTIVATIONS, ATTENTIONS, PRESETS, ModelConfig, preset, shortened
from qkv.train.recipes import CUSTOM, DEFAULT, RECIPES, Recipe, Stage, field_names
from qkv.train.settings import OPTIMIZERS, PARALLEL, PRECISIONS, TrainSettings

Out = Annotated[Path, typer.Option(help="Folder to write.")]
RunFolder = Annotated[
    Path, typer.Argument(metavar="RUN", help="Folder of a run, or the JSON document that training or import printed.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in --out, if there is one.")]
Seeds = Annotated[int, typer.Option(min=1, help="Train this many, with seeds 0, 1, …, in OUT-0, OUT-1, …")]
TEXT_OPTIONS = ("text", "questions", "without", "out", "recipe", "preset", "tokenizer")
"""Options that are no fields of ModelConfig or TrainSettings, and texts in a file of options."""
MAX_OPTIONS_BYTES = 2**20
TOKENIZERS = ("characters", "bytepairs")
VALUES = {
    "attention": ATTENTIONS,
    "activation": ACTIVATIONS,
    "objective": ("span", "next", "salient", "cloze"),
    "optimizer": OPTIMIZERS,
    "precision": PRECISIONS,
    "parallel": PARALLEL,
}
"""The values of fields that have only a few, for the completion of options."""
STEPS = {"minutes": "as many as fit into {} minutes", "epochs": "{} epochs"}


def default_text(value: object) -> str:
    """The default of an option as help text."""
    return f"[default: {value}]"


def stage_length(stage: Stage) -> str:
    """How long a stage of a recipe lasts, as help text."""
    found = [words.format(f"{getattr(stage, name):g}") for name, words in STEPS.items() if getattr(stage, name)]
    return found[0] if found else str(stage.settings.steps)


Minutes = Annotated[float | None, typer.Option(help="Train for about this long, instead of --steps.")]


def _minutes_help(stage_of: Callable[[Recipe], Stage], recipe: Recipe) -> str:
    """The help of --minutes."""
    minutes = stage_of(recipe).minutes
    return "Train for about this long, instead of --steps." + (f" {default_text(f'{minutes:g}')}" if minutes else "")


def options(
    verb: str, stage_of: Callable[[Recipe], Stage], *classes: type
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn the fields of dataclasses into options; those that were given reach the command as `given`.

    Their help says which default the recipe that will run has in a stage.
    """
    fields = [f for cls in classes for f in dataclasses.fields(cls)]

    def described(f: dataclasses.Field[Any], recipe: Recipe) -> str:
        shown = default_text(_default(f.name, stage_of, recipe))
        return f"{f.metadata['help']} {shown}{_exceptions(f.name, classes)}"

    help_of: dict[str, HelpOf] = {f.name: partial(described, f) for f in fields}
    help_of["minutes"] = partial(_minutes_help, stage_of)
    if ModelConfig in classes:
        help_of["tokenizer"] = lambda recipe: f"characters or bytepairs. {default_text(recipe.tokenizer)}"

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = [p for p in signature.parameters.values() if p.name != "given"]
        extra = []
        for f in fields:
            flag = f.name.replace("_", "-")
            names = f"--{flag}/--no-{flag}" if isinstance(f.default, bool) else f"--{flag}"
            values = one_of(VALUES[f.name]) if f.name in VALUES else None
            text = help_of[f.name](RECIPES[DEFAULT])
            kind: Any = Annotated[
                type(f.default) | None, typer.Option(names, help=text, show_default=False, autocompletion=values)
            ]
            extra.append(inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind))

        @wraps(command)
        def called(**arguments: Any) -> None:
            given = {f.name: arguments.pop(f.name) for f in fields}
            try:
                command(**arguments, given={name: value for name, value in given.items() if value is not None})
            except KeyboardInterrupt as stop:  # its message says how to resume, which typer would not show
                sys.stderr.write(f"qkv: {str(stop) or STOPPED}\n")
                sys.exit(INTERRUPTED)

        as_keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
        called.__signature__ = inspect.Signature([*as_keywords, *extra])  # type: ignore[attr-defined]
        called.__annotations__ = {p.name: p.annotation for p in (*as_keywords, *extra)}
        called.command_class = recipe_command(verb, help_of)  # type: ignore[attr-defined]
        return called

    return decorate


def _default(name: str, stage_of: Callable[[Recipe], Stage], recipe: Recipe) -> Any:
    """A recipe's default of a field of ModelConfig or TrainSettings."""
    stage = stage_of(recipe)
    if name == "steps":
        return stage_length(stage)
    return getattr(recipe.config if name in field_names(ModelConfig) else stage.settings, name)


def _exceptions(name: str, classes: tuple[type, ...]) -> str:
    """Where another default than the recipe's is used: with a preset, or for finetuning from scratch."""
    if ModelConfig not in classes:
        return " [default with --from-scratch: span]" if name == "objective" else ""
    sizes: dict[str, list[str]] = {}
    for preset_name in PRESETS if any(name in fields for fields in PRESETS.values()) else ():
        sizes.setdefault(str(getattr(preset(preset_name), name)), []).append(preset_name)
    shown = "; ".join(f"{value} ({', '.join(names)})" for value, names in sizes.items())
    return f" [default with --preset: {shown}]" if shown else ""


@options("pretrain", lambda recipe: recipe.pretraining, ModelConfig, TrainSettings)
def pretrain(
    context: typer.Context,
    config: Annotated[Path | None, typer.Argument(help="A .toml or .json file with the options by name.")] = None,
    text: Annotated[Path | None, typer.Option(help="Texts to train on, one per line.")] = None,
    questions: Annotated[
        Path | None,
        typer.Option(help="Questions with answers, to mix in: lines question<TAB>answer, or a table of a spreadsheet."),
    ] = None,
    without: Annotated[Path | None, typer.Option(help="Leave out the texts that these questions are about.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write. [default: runs/base]")] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(RECIPES)}. [default: {CUSTOM} with --preset, --tokenizer, --steps or another "
            f"--objective; else {DEFAULT}]",
            autocompletion=one_of(RECIPES),
        ),
    ] = None,
    minutes: Minutes = None,
    size: Annotated[
        str | None,
        typer.Option(
            "--preset",
            help=f"Shape of the model, all of it, instead of the recipe's: {', '.join(PRESETS)}.",
            autocompletion=one_of(PRESETS),
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="characters or bytepairs.", autocompletion=one_of(TOKENIZERS)),
    ] = None,
    seeds: Seeds = 1,
    resume: Resume = False,
    plot: Plot = None,
    as_json: JSON = False,
    *,
    given: dict[str, Any],
) -> None:
    """Train a new model on texts: by the recipe cloze, or by your own choice of sizes and settings."""
    from qkv.train.runs import pretrain as train

    own: dict[str, Any] = {"text": text, "questions": questions, "without": without, "out": out, "recipe": recipe}
    own |= {"minutes": minutes, "preset": size, "tokenizer": tokenizer}
    from_file = _file(config, (*own, *field_names(ModelConfig), *field_names(TrainSettings))) if config else {}
    chosen = {**{n: v for n, v in from_file.items() if n in own}, **{n: v for n, v in own.items() if v is not None}}
    given = {**{name: value for name, value in from_file.items() if name not in own}, **given}
    names = ("text", "questions", "without")
    source, asked, left_out = (Path(chosen[name]) if chosen.get(name) else None for name in names)

    def one(folder: Path, given: dict[str, Any]) -> Any:
        texts = source if left_out is None else _without(source, left_out)
        with _progress() as callback:
            return train(
                texts, folder, chosen.get("preset"), questions=asked, recipe=chosen.get("recipe"),
                tokenizer=chosen.get("tokenizer"), minutes=chosen.get("minutes"), resume=resume, callback=callback,
                **given,
            )  # fmt: skip

    folder = Path(chosen.get("out", "runs/base"))
    _refuse_overwriting(context, folder, plot, seeds, given, text=source, questions=asked, without=left_out)
    _each_seed(one, folder, given, seeds, plot, as_json)


@options("finetune", lambda recipe: recipe.finetuning, TrainSettings)
def finetune(
    context: typer.Context,
    run: RunFolder,
    questions: Annotated[
        Path, typer.Option(help="Questions with answers: lines question<TAB>answer, or a table of a spreadsheet.")
    ],
    text: Annotated[Path | None, typer.Option(help="The text that the run was trained on, if it has moved.")] = None,
    out: Out = Path("runs/tuned"),
    recipe: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(RECIPES)}. [default: the one that RUN was trained by]", autocompletion=one_of(RECIPES)
        ),
    ] = None,
    minutes: Minutes = None,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Start from new weights: a baseline of the same shape.")
    ] = False,
    seeds: Seeds = 1,
    resume: Resume = False,
    plot: Plot = None,
    as_json: JSON = False,
    *,
    given: dict[str, Any],
) -> None:
    """Train a run's model to answer questions."""
    from qkv.train.runs import finetune as train

    base = run_folder(run)
    parents = [base] if seeds == 1 else [seeded(base, seed) for seed in range(seeds)]
    if not from_scratch:
        say_unfinished(*([base] if seeds == 1 else []))

    def one(folder: Path, given: dict[str, Any]) -> Any:
        parent = base if seeds == 1 else parents[given["seed"]]
        with _progress() as callback:
            return train(
                parent, questions, folder, recipe=cast(Any, recipe), text=text, minutes=minutes,
                from_scratch=from_scratch,
                resume=resume, callback=callback, **given,
            )  # fmt: skip

    _refuse_overwriting(context, out, plot, seeds, given, run=parents)
    _each_seed(one, out, given, seeds, plot, as_json)


def generate(
    run: RunFolder,
    prompts: Annotated[list[str] | None, typer.Argument(help="Texts to continue.")] = None,
    file: Annotated[Path | None, typer.Option(help="A file with one prompt per line.")] = None,
    max_new_tokens: Annotated[int, typer.Option(help="Most tokens to generate.")] = 32,
    ask: Annotated[bool, typer.Option("--ask", help="Prompts are questions: write the answers.")] = False,
    temperature: Annotated[
        float, typer.Option(help="0 takes the most probable token; 1 samples from the model's distribution.")
    ] = 0.0,
    top_k: Annotated[int, typer.Option(help="Sample from this many most probable tokens; 0 for all.")] = 0,
    top_p: Annotated[
        float, typer.Option(help="Sample from the most probable tokens that have this probability together.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sampling.")] = 0,
    log_probabilities: Annotated[
        bool, typer.Option("--log-probabilities", help="Show the log-probability of each.")
    ] = False,
    as_json: JSON = False,
) -> None:
    """Continue texts, or answer questions, with a run's model."""
    from qkv.train.data.text_files import read_texts
    from qkv.train.generation import generate as write

    texts = [*(prompts or ()), *(read_texts(file) if file else ())]
    if not texts:
        raise QkvError("generating", "there are no prompts", "Give some, or --file FILE")
    how = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    folder = run_folder(run)
    say_unfinished(folder)
    show(write(folder, texts, max_new_tokens, ask=ask, log_probabilities=log_probabilities, **how), as_json)  # type: ignore[arg-type]


def export(
    context: typer.Context,
    run: RunFolder,
    out: Out,
    to: Annotated[
        str, typer.Option(help="hf: a folder for Hugging Face's transformers.", autocompletion=one_of(("hf",)))
    ] = "hf",
    as_json: JSON = False,
) -> None:
    """Write a run's model for another library."""
    from qkv.train.convert.hf_export import export_model as write

    folder = run_folder(run)
    refuse_overwriting(context, run=folder)
    say_unfinished(folder)
    show(write(folder, out, to), as_json)


def import_(
    source: Annotated[Path, typer.Argument(help="A GPT-2 or Llama folder, or a minGPT or nanoGPT state dict.")],
    out: Out,
    n_head: Annotated[int, typer.Option(help="Heads of attention, where the file does not say.")] = 0,
    tokenizer: Annotated[Path | None, typer.Option(help="A tokenizer.json to go with it.")] = None,
    as_json: JSON = False,
) -> None:
    """Import another library's model as a run; weights only, never code."""
    from qkv.train.convert.importer import import_model as read

    found = read(source, out, n_head=n_head, tokenizer=tokenizer)
    if as_json:
        say(document_text({"folder": str(found.folder), "config": found.config.to_json()}))
        return
    show(found, False)


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (pretrain, finetune, generate, export):
        app.command(cls=getattr(command, "command_class", None))(command)
    app.command(name="import")(import_)


def seeded(folder: Path, seed: int) -> Path:
    """The folder of one of several seeds."""
    if not folder.name:
        raise QkvError(f"--seeds with the folder {folder}", "its name is not given", "Name it, such as runs/base")
    return folder.with_name(f"{folder.name}-{seed}")


def _refuse_overwriting(
    context: typer.Context, out: Path, plot: Path | None, seeds: int, given: dict[str, Any], **read: object
) -> None:
    """Refuse runs and pictures, those of each seed, that would replace what is read, before any is trained."""
    if seeds > 1 and "seed" in given:
        raise QkvError("training", "both --seed and --seeds were given", "Give one of them")
    outputs = list(_outputs(out, plot, seeds))
    for folder, picture in outputs:
        refuse_overwriting(context, [each for each, _ in outputs], out=folder, plot=picture, **read)


def _outputs(out: Path, plot: Path | None, seeds: int) -> Iterator[tuple[Path, Path | None]]:
    """The folder and the picture of each run: those that were given, or one of each per seed."""
    from qkv.viz.theme import check_plot_path

    check_plot_path(plot)
    if seeds == 1:
        yield out, plot
        return
    for seed in range(seeds):
        yield seeded(out, seed), plot and plot.with_stem(f"{plot.stem}-{seed}")


def _each_seed(
    one: Callable[[Path, dict[str, Any]], Any],
    out: Path,
    given: dict[str, Any],
    seeds: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Train one run in its folder, or one per seed, each in a folder of its own."""
    done = []
    for seed, (own_folder, own_plot) in enumerate(_outputs(out, plot, seeds)):
        result = one(own_folder, given if seeds == 1 else {**given, "seed": seed})
        if is_first_rank():
            _draw(result, own_plot)
            if not as_json:
                show(result, False)
        done.append(result)
    if as_json and is_first_rank():  # one document, however many seeds
        say(document_text({"runs": [result.to_json() for result in done]}))


def _without(text: Path | None, questions: Path) -> Any:
    """The text without some people, which is made and kept beside the run once the lock of its folder is held."""
    from qkv.knowledge.training.text_filter import drop_texts_about
    from qkv.train.run_data import DerivedText

    def make() -> list[str]:
        if text is None:
            raise QkvError("pretraining", "there is no text", "Give --text FILE, one text per line")
        return drop_texts_about(text, questions)

    return DerivedText(make)


def _draw(done: Any, plot: Path | None) -> None:
    """Draw the losses of a run, if a path is given."""
    if plot is not None:
        from qkv.train.metrics_log import History
        from qkv.viz.plots.training import losses
        from qkv.viz.theme import save

        save(losses(History.of(done.folder)), plot)


def _file(path: Path, known: tuple[str, ...]) -> dict[str, Any]:
    """Options by name from a file; dashes and underscores are the same."""
    import tomllib

    from qkv.core.json_files import parse_json

    request = f"reading options from {path}"
    if not path.exists():
        raise QkvError(request, "there is no such file", "Texts to train on go to --text; this is a file of options")
    if not path.is_file():  # opening a pipe would wait for ever
        raise QkvError(request, "it is no regular file", "Give a .toml or .json file of options")
    try:
        if (size := path.stat().st_size) > MAX_OPTIONS_BYTES:
            raise ValueError(f"it has {size:,} bytes, and {MAX_OPTIONS_BYTES:,} is the limit")
        text = path.read_text(encoding="utf-8")
        found = tomllib.loads(text) if path.suffix == ".toml" else parse_json(text)
    except (OSError, ValueError, RecursionError) as why:
        raise QkvError(request, str(why), "Give a .toml or .json file of options") from None
    if not isinstance(found, dict):
        raise QkvError(request, "it holds no options", "Write options as name = value")
    options = {str(name).replace("-", "_"): value for name, value in found.items()}
    unknown = [name for name in options if name not in known]
    if unknown:
        raise QkvError(request, f"there is no option {', '.join(unknown)}", f"Use {', '.join(known)}")
    if len(options) != len(found):
        raise QkvError(request, "an option is given twice, with dashes and with underscores", "Give each option once")
    for name, value in options.items():
        _check_option(request, name, value)
    return options


def _check_option(request: str, name: str, value: Any) -> None:
    """Refuse an option from a file whose value has the wrong type; `replaced` checks fields of the configuration."""
    if name in TEXT_OPTIONS and not (isinstance(value, str) and value):
        raise QkvError(request, f"{name} is {shortened(value)}, not a text", f'Write it in quotes: {name} = "…"')
    if name == "minutes" and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise QkvError(request, f"minutes is {shortened(value)}, not a number", "Write it like minutes = 8")


@contextmanager
def _progress() -> Iterator[Callable[[int, int, float, float], None]]:
    """A progress bar on stderr, on a terminal only: loss, tokens per second, time left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        TextColumn("step {task.completed} of {task.total}  loss {task.fields[loss]:.4f}"),
        TextColumn("{task.fields[speed]:,.0f} tokens/s"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None, loss=float("nan"), speed=0.0)

        def callback(step: int, steps: int, loss: float, speed: float) -> None:
            bar.update(task, completed=step, total=steps, loss=loss, speed=speed)

        yield callback
