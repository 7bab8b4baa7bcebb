"""qkv pretrain, finetune, generate, export, import."""

from __future__ import annotations

import dataclasses
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from qkv.cli.common import JSON, Plot, show
from qkv.errors import QkvError
from qkv.model.config import PRESETS, ModelConfig, preset
from qkv.train.settings import TrainSettings

Out = Annotated[Path, typer.Option(help="Folder to write.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out, if there is one.")]
RecipeName = Annotated[str | None, typer.Option(help="qkv (drills of what the text says) or course.")]
Minutes = Annotated[float | None, typer.Option(help="Train for about this long; a recipe has a time of its own.")]
Seeds = Annotated[int, typer.Option(min=1, help="Train this many, with seeds 0, 1, …, in OUT-0, OUT-1, …")]


def options(*classes: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn the fields of dataclasses into options; those that were given reach the verb as `given`."""
    fields = [f for cls in classes for f in dataclasses.fields(cls)]

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(verb, eval_str=True)
        own = [p for p in signature.parameters.values() if p.name != "given"]
        extra = []
        for f in fields:
            flag = f.name.replace("_", "-")
            names = f"--{flag}/--no-{flag}" if isinstance(f.default, bool) else f"--{flag}"
            shown = f"{f.metadata['help']} [default: {f.default}]"
            kind: Any = Annotated[type(f.default) | None, typer.Option(names, help=shown, show_default=False)]
            extra.append(inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind))

        @wraps(verb)
        def called(**arguments: Any) -> None:
            given = {f.name: arguments.pop(f.name) for f in fields}
            try:
                verb(**arguments, given={name: value for name, value in given.items() if value is not None})
            except KeyboardInterrupt as stop:  # it says how to go on, which the command line's own words would not
                sys.stderr.write(f"qkv: {str(stop) or 'stopped; nothing half-written was left behind'}\n")
                sys.exit(130)

        as_keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
        called.__signature__ = inspect.Signature([*as_keywords, *extra])  # type: ignore[attr-defined]
        called.__annotations__ = {p.name: p.annotation for p in (*as_keywords, *extra)}
        return called

    return decorate


@options(ModelConfig, TrainSettings)
def pretrain(
    config: Annotated[Path | None, typer.Argument(help="A .toml or .json file with the options by name.")] = None,
    text: Annotated[Path | None, typer.Option(help="Texts to learn from, one a line.")] = None,
    questions: Annotated[Path | None, typer.Option(help="Lines question<TAB>answer, to mix in.")] = None,
    without: Annotated[Path | None, typer.Option(help="Leave out the texts that these questions are about.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write. [default: runs/base]")] = None,
    recipe: RecipeName = None,
    minutes: Minutes = None,
    size: Annotated[
        str | None, typer.Option("--preset", help=f"Sizes to start from: {', '.join(PRESETS)}. [default: tiny]")
    ] = None,
    tokenizer: Annotated[str | None, typer.Option(help="characters or bytepairs. [default: characters]")] = None,
    pieces: Annotated[int | None, typer.Option(help="Tokens of a bytepairs tokenizer. [default: 3000]")] = None,
    seeds: Seeds = 1,
    resume: Resume = False,
    plot: Plot = None,
    as_json: JSON = False,
    *,
    given: dict[str, Any],
) -> None:
    """Train a new model on text: by a recipe, or by hand with --steps, --preset, --tokenizer, --objective or CONFIG."""
    from qkv.knowledge.training import recipes
    from qkv.train import runs

    read = {"text": text, "questions": questions, "without": without, "out": out, "recipe": recipe, "minutes": minutes}
    read |= {"preset": size, "tokenizer": tokenizer, "pieces": pieces}
    from_file = _file(config, (*read, *_names(ModelConfig), *_names(TrainSettings))) if config else {}
    chosen = {**{n: v for n, v in from_file.items() if n in read}, **{n: v for n, v in read.items() if v is not None}}
    given = {**{name: value for name, value in from_file.items() if name not in read}, **given}
    by_hand = config or "steps" in given or given.get("objective", "salient") not in ("salient", "drill")
    by_hand = by_hand or any(name in chosen for name in ("preset", "tokenizer"))
    names = ("text", "questions", "without")
    source, asked, left_out = (Path(chosen[name]) if chosen.get(name) else None for name in names)

    def one(folder: Path, given: dict[str, Any]) -> Any:
        _contradictions(folder, given, resume)
        going_on = resume and (folder / runs.FILE).is_file()
        here = source if left_out is None or going_on else _left_out(source, left_out, folder)
        with _progress() as callback:
            if going_on or (by_hand and "recipe" not in chosen):
                model = preset(
                    chosen.get("preset", "tiny"), **{n: v for n, v in given.items() if n in _names(ModelConfig)}
                )
                settings = TrainSettings.from_json({n: v for n, v in given.items() if n in _names(TrainSettings)})
                return runs.pretrain(
                    None if left_out is not None and going_on else here, folder, model, settings, questions=asked,
                    tokenizer=chosen.get("tokenizer", "characters"), pieces=chosen.get("pieces", 3000),
                    minutes=chosen.get("minutes"), resume=resume, callback=callback,
                )  # fmt: skip
            changes = {n: v for n, v in given.items() if n != "objective"}
            return recipes.memorise(
                here, folder, asked, by=chosen.get("recipe", "qkv"), minutes=chosen.get("minutes"), callback=callback,
                pieces=chosen.get("pieces"), **changes,
            )  # fmt: skip

    _each_seed(one, Path(chosen.get("out", "runs/base")), given, seeds, plot, as_json)


@options(TrainSettings)
def finetune(
    run: RunFolder,
    questions: Annotated[Path, typer.Option(help="Lines question<TAB>answer.")],
    text: Annotated[Path | None, typer.Option(help="The text that the run read, if it has moved.")] = None,
    out: Out = Path("runs/tuned"),
    recipe: RecipeName = None,
    minutes: Minutes = None,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Forget the pretraining: a baseline of the same shape.")
    ] = False,
    seeds: Seeds = 1,
    resume: Resume = False,
    plot: Plot = None,
    as_json: JSON = False,
    *,
    given: dict[str, Any],
) -> None:
    """Train a run's model to answer questions: by the recipe it was pretrained by, or on questions only."""
    from qkv.knowledge.training import recipes
    from qkv.train import runs

    def one(folder: Path, given: dict[str, Any]) -> Any:
        parent = run if seeds == 1 else seeded(run, given["seed"])
        _contradictions(folder, given, resume)
        going_on = resume and (folder / runs.FILE).is_file()
        drilled = not going_on and runs.load(parent).data["kind"] == "drills"
        how: dict[str, Any] = {"text": text, "minutes": minutes, "from_scratch": from_scratch, "resume": resume}
        with _progress() as callback:
            if not going_on and (recipe or drilled):
                return recipes.tune(parent, questions, folder, by=recipe, callback=callback, **how, **given)
            return runs.finetune(parent, questions, folder, TrainSettings.from_json(given), callback=callback, **how)

    _each_seed(one, out, given, seeds, plot, as_json)


def generate(
    run: RunFolder,
    prompts: Annotated[list[str] | None, typer.Argument(help="Texts to continue.")] = None,
    file: Annotated[Path | None, typer.Option(help="A file with a prompt a line.")] = None,
    new: Annotated[int, typer.Option(help="Most tokens to write.")] = 32,
    ask: Annotated[bool, typer.Option("--ask", help="Prompts are questions: write the answers.")] = False,
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token; 1 samples as the model says.")] = 0.0,
    top_k: Annotated[int, typer.Option(help="Sample from this many likeliest tokens; 0 for all.")] = 0,
    top_p: Annotated[float, typer.Option(help="Sample from the likeliest tokens that have this much chance.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the sampling.")] = 0,
    log_probabilities: Annotated[bool, typer.Option("--log-probabilities", help="Say how likely they were.")] = False,
    as_json: JSON = False,
) -> None:
    """Continue texts, or answer questions, with a run's model."""
    from qkv.train.data.text_files import read_texts
    from qkv.train.generation import generate as write
    from qkv.train.runs import load

    texts = [*(prompts or ()), *(read_texts(file) if file else ())]
    if not texts:
        raise QkvError("generating", "there are no prompts", "Give some, or --file FILE")
    how = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    show(write(load(run), texts, new, ask=ask, log_probabilities=log_probabilities, **how), as_json)  # type: ignore[arg-type]


def export(
    run: RunFolder,
    out: Out,
    to: Annotated[str, typer.Option(help="hf: a folder for Hugging Face's transformers.")] = "hf",
    as_json: JSON = False,
) -> None:
    """Write a run's model for another library."""
    from qkv.train.convert.hf_export import export_model as write

    show(write(run, out, to), as_json)


def bring(
    source: Annotated[Path, typer.Argument(help="A GPT-2 or Llama folder, or a minGPT or nanoGPT state dict.")],
    out: Out,
    heads: Annotated[int, typer.Option(help="Heads of attention, where the file does not say.")] = 0,
    tokenizer: Annotated[Path | None, typer.Option(help="A tokenizer.json to go with it.")] = None,
    as_json: JSON = False,
) -> None:
    """Make a run of someone else's model; weights only, never code."""
    from qkv.train.convert.importer import import_model as read

    found = read(source, out, heads=heads, tokenizer=tokenizer)
    if as_json:
        import json

        typer.echo(json.dumps({"folder": str(found.folder), "config": found.config.to_json()}))
        return
    show(found, False)


def register(app: typer.Typer) -> None:
    """Add these verbs to the command line."""
    for verb in (pretrain, finetune, generate, export):
        app.command()(verb)
    app.command(name="import")(bring)


def seeded(folder: Path, seed: int) -> Path:
    """The folder of one of several seeds."""
    return folder.with_name(f"{folder.name}-{seed}")


def _each_seed(
    one: Callable[[Path, dict[str, Any]], Any],
    out: Path,
    given: dict[str, Any],
    seeds: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Train one run in its folder, or one a seed, each in a folder of its own."""
    if seeds == 1:
        _finish(one(out, given), plot, as_json)
        return
    if "seed" in given:
        raise QkvError("training", "both --seed and --seeds were given", "Give one of them")
    for seed in range(seeds):
        picture = plot and plot.with_stem(f"{plot.stem}-{seed}")
        _finish(one(seeded(out, seed), {**given, "seed": seed}), picture, as_json)


def _left_out(text: Path | None, questions: Path, folder: Path) -> Path:
    """The text without some people, kept with the run, for that is what the run has read."""
    from qkv.core.files import write_text
    from qkv.knowledge.training.recipes import drop_texts_about
    from qkv.train import runs

    if text is None:
        raise QkvError("pretraining", "there is no text", "Give --text FILE, one text a line")
    runs.fresh(folder)
    kept = "".join(line + "\n" for line in drop_texts_about(text, questions))
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "text.txt", kept)
    return folder / "text.txt"


def _contradictions(folder: Path, given: dict[str, Any], resume: bool) -> None:
    """Refuse an option that contradicts the run that is gone on with, rather than ignore it."""
    from qkv.train import runs

    if not (resume and (folder / runs.FILE).is_file()):
        return
    found = runs.load(folder)
    kept = {**found.config.to_json(), **found.settings.to_json()}
    other = [f"{n} is {kept[n]} there and {v} here" for n, v in given.items() if kept[n] != v]
    if other:
        raise QkvError(f"going on with {folder}", "; ".join(other), "Leave these options out, or give another --out")


def _finish(done: Any, plot: Path | None, as_json: bool) -> None:
    if os.environ.get("RANK", "0") != "0":
        return
    if plot is not None:
        from qkv.train.metrics_log import History
        from qkv.viz.plots.training import losses
        from qkv.viz.theme import save

        save(losses(History.of(done.folder)), plot)
    show(done, as_json)


def _file(path: Path, known: tuple[str, ...]) -> dict[str, Any]:
    """Options by name from a file; dashes and underscores are the same."""
    import json
    import tomllib

    asked = f"reading options from {path}"
    try:
        text = path.read_text(encoding="utf-8")
        found = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError) as why:
        raise QkvError(asked, str(why), "Give a .toml or .json file of options") from None
    if not isinstance(found, dict):
        raise QkvError(asked, "it holds no names", "Write options as name = value")
    options = {str(name).replace("-", "_"): value for name, value in found.items()}
    unknown = [name for name in options if name not in known]
    if unknown:
        raise QkvError(asked, f"there is no option {', '.join(unknown)}", f"Use {', '.join(known)}")
    return options


def _names(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls))


@contextmanager
def _progress() -> Iterator[Callable[[int, int, float, float], None]]:
    """A bar on stderr, on a terminal only: loss, tokens a second, time left."""
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
