"""Options, parsing and output that the commands share."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qkv.cli.exit_codes import exit_if_negative
from qkv.cli.json_documents import document_text
from qkv.errors import QkvError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from qkv.core.display import Displayable
    from qkv.core.memory import Memory

MemoryFile = Annotated[
    Path | None,
    typer.Argument(
        help=".npz, .npy, .csv, .json or .safetensors with keys, and perhaps values and labels; a file of --save too; "
        "- for JSON on standard input."
    ),
]
Orthonormal = Annotated[
    str | None, typer.Option(help="Generate a memory instead: NxD orthonormal keys, such as 10x16.")
]
Seed = Annotated[int, typer.Option(help="Seed of the generated memory.")]
JSON = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table.")]
Save = Annotated[Path | None, typer.Option(help="Save result and certificate as .json or .safetensors.")]
Plot = Annotated[Path | None, typer.Option(help="Draw it as .svg, .pdf, .png or .html.")]
PAGE_SUFFIXES = (".html", ".htm")
STDIN = "-"
"""The path that stands for JSON on standard input."""
Tol = Annotated[float, typer.Option(help="Largest total-variation distance between the weights and the wanted ones.")]


def memory_from(path: Path | None, orthonormal: str | None, seed: int) -> Memory:
    """The memory in a file, or a generated one; exactly one of both must be given."""
    from qkv.core.files import pick
    from qkv.core.memory import Memory

    if (path is None) == (orthonormal is None):
        problem = "both a file and --orthonormal were given" if path else "neither a file nor --orthonormal was given"
        raise QkvError("reading a memory", problem, "Give one of them, such as --orthonormal 10x16")
    if path is not None and str(path) == STDIN:
        arrays = arrays_of(path)
        return Memory(pick(arrays, "keys", path), arrays.get("values"), arrays.get("labels"))
    if path is not None:
        return Memory.load(path)
    try:
        n, d = (int(part) for part in str(orthonormal).lower().split("x"))
    except ValueError:
        raise QkvError(f"--orthonormal {orthonormal}", "that is not of the form NxD", "Write it like 10x16") from None
    return Memory.orthonormal(n, d, seed)


def item_of(memory: Memory, text: str) -> int:
    """Index of an item, by its label or by its index."""
    if text in memory.labels:
        return memory.index(text)
    try:
        number = int(text)
    except ValueError:
        return memory.index(text)
    return memory.index(number)


def arrays_of(path: Path | str) -> dict[str, Any]:
    """The arrays of a file by name, of the result of another command, or of JSON on standard input (-)."""
    from qkv.core.documents import named_arrays
    from qkv.core.files import read_arrays
    from qkv.core.json_files import parse_json

    if str(path) != STDIN:
        return read_arrays(path)
    request = "reading JSON from standard input"
    try:
        found = parse_json(sys.stdin.read())
    except (ValueError, RecursionError) as why:
        raise QkvError(request, str(why), "Pipe the output of a command with --json into it") from None
    return named_arrays(request, found) if isinstance(found, dict) else {"": found}


def heads_of(path: Path) -> tuple[Any, Any]:
    """The query (d,) or queries (h, d) in a file, and the mix of these heads, or None where the file has none."""
    from qkv.core.files import pick
    from qkv.core.validation import tensor

    if str(path) != STDIN and not path.exists() and re.fullmatch(r"[\s\d.,eE+-]+", str(path)):
        hint = f"Give a file, such as q.json with [{path}]"
        raise QkvError(f"reading the query from {path}", "it is a list of numbers, not a file", hint)
    arrays = arrays_of(path)
    found = tensor("the query", pick(arrays, "query", path))
    mix = tensor("the mix of the heads", arrays["mix"], "h") if "mix" in arrays else None
    if mix is not None and found.dim() == 2 and len(mix) != len(found):
        raise QkvError(
            f"reading a query from {path}",
            f"there are {len(found)} queries and {len(mix)} factors in mix",
            "Give one factor for each query",
        )
    if found.dim() == 2 and len(found) == 1 and (mix is None or float(mix[0]) == 1):
        return found[0], None
    return found, mix if found.dim() == 2 else None


def is_first_rank() -> bool:
    """Whether this process prints: of those that torchrun started, the first one alone."""
    return os.environ.get("RANK", "0") == "0"


def run_folder(path: Path) -> Path:
    """The folder of a run: itself, or the one that a document of `qkv pretrain --json` and the like names."""
    if str(path) != STDIN and not (path.suffix == ".json" and path.is_file()):
        return path
    request = f"reading the folder of a run from {path}"
    arrays = arrays_of(path)
    runs = arrays.get("runs", [arrays])
    folders = [run.get("folder") for run in runs if isinstance(run, dict)] if isinstance(runs, list) else []
    if len(folders) != 1 or not isinstance(folders[0], str):
        problem = f"it names {len(folders)} runs" if len(folders) > 1 else "it names no run"
        raise QkvError(request, problem, "Give the folder of one run")
    return Path(folders[0])


def say_unfinished(*folders: Path) -> None:
    """Report runs whose training was stopped before its end on stderr: what they answer is that of an early model."""
    from qkv.train.run_files import steps_taken

    for folder in folders:
        found = steps_taken(folder)
        if found is not None:
            text = f"qkv: the training of {folder} stopped at step {found[0]:,} of {found[1]:,}; --resume continues it"
            typer.echo(text, err=True)


def refuse_missing_folder(request: str, folder: Path) -> None:
    """Refuse the path of a run or a model where there is none, before options are judged by what it holds."""
    if not folder.is_dir():
        problem = f"{folder} is a file" if folder.exists() else f"there is no folder {folder}"
        hint = "Give the folder of a run, or of a language model (qkv models get)"
        raise QkvError(request, problem, hint)


def weights_of(memory: Memory, text: str) -> dict[Any, float]:
    """Parse weights such as "0=0.5,1=0.5" or "a=1/3,b=2/3", or read them from the result of another command."""
    if not text:
        raise QkvError(
            "reading the wanted weights", "--weights was not given", "Add, for example, --weights 0=0.5,1=0.5"
        )
    from qkv.core.files import READABLE_SUFFIXES

    is_path = Path(text).suffix in READABLE_SUFFIXES or Path(text).is_file()
    if text == STDIN or ("=" not in text and is_path):
        return _weights_in(memory, text)
    return numbers_by_item(memory, "--weights", "weight", text)


def numbers_by_item(memory: Memory, option: str, what: str, text: str) -> dict[Any, float]:
    """Parse a list of numbers for items, such as "0=0.5,1=1/4": each by the label of its item, which is named once."""
    request, named = f"{option} {text}", []
    for part in text.split(",") if text else ():
        name, equals, value = part.rpartition("=")
        if not equals:
            raise QkvError(request, f"'{part}' is not of the form item={what}", "Write it like 0=0.5,1=0.5")
        named.append((name.strip(), number_of(request, value)))
    return by_label(request, memory, named)


def by_label(request: str, memory: Memory, named: Iterable[tuple[str, float]]) -> dict[Any, float]:
    """Numbers by the labels of items that were named by label or by index; an item that is named twice is refused."""
    out: dict[Any, float] = {}
    for name, number in named:
        label = memory.labels[item_of(memory, name)]
        if label in out:
            raise QkvError(request, f"item {label} is named twice", "Name each item once")
        out[label] = number
    return out


def _weights_in(memory: Memory, path: str) -> dict[Any, float]:
    """Weights by label from a file: `wanted` of a design, `weights` of a reading, or one weight for each item."""
    from qkv.core.files import pick
    from qkv.core.validation import finite, tensor

    request = f"reading weights from {path}"
    arrays = arrays_of(path)
    found = arrays["wanted"] if isinstance(arrays.get("wanted"), dict) else pick(arrays, "weights", path)
    if not isinstance(found, dict):
        weights, labels = tensor("weights", found, "n").tolist(), arrays.get("labels")
        if len(weights) != memory.n or (
            labels is not None and [str(x) for x in labels] != [str(x) for x in memory.labels]
        ):
            problem = "its weights are for other items than those of the memory"
            raise QkvError(request, problem, "Give one weight for each item, in the order of the memory")
        return {label: weight for label, weight in zip(memory.labels, weights, strict=True) if weight}
    return by_label(request, memory, [(name, finite(request, name, value)) for name, value in found.items()])


def rules_of(text: str) -> dict[int, dict[int, float]]:
    """Parse rules such as "0:2,1:0", or with blends "0:1=1/2+2=1/2"."""
    out: dict[int, dict[int, float]] = {}
    request = f"--reads {text}"
    for part in text.split(","):
        token, colon, blend = part.partition(":")
        try:
            reader = int(token)
            wanted: dict[int, float] = {}
            for one in blend.split("+"):
                read, equals, weight = one.partition("=")
                if int(read) in wanted:
                    raise QkvError(request, f"'{part}' names token {int(read)} twice", "Name each token once")
                wanted[int(read)] = number_of(request, weight) if equals else 1.0
        except QkvError:  # a ValueError too, but it already says what is wrong
            raise
        except ValueError:
            colon = ""
        if not colon:
            raise QkvError(
                request, f"'{part}' is not of the form token:token", "Write it like 0:2,1:0 or 0:1=0.5+2=0.5"
            )
        if reader in out:
            raise QkvError(request, f"token {reader} has two rules", "Give each token one rule")
        out[reader] = wanted
    return out


def number_of(request: str, text: str) -> float:
    """Parse a number or a fraction such as 1/3."""
    above, slash, under = text.strip().partition("/")
    try:
        return float(above) / float(under) if slash else float(above)
    except (ValueError, ZeroDivisionError):
        raise QkvError(request, f"'{text}' is not a number", "Write numbers like 0.5 or 1/3") from None


def array_from(source: str, name: str, arrays: dict[str, Any]) -> Any:
    """An array, by its name among the arrays of the first file or from a file of its own."""
    from qkv.core.files import pick

    if source in arrays:
        return arrays[source]
    if source != STDIN and not Path(source).suffix:
        held = ", ".join(sorted(k for k in arrays if k)) or "one array without a name"
        raise QkvError(
            f"reading {name}",
            f"'{source}' is neither a file nor in the given file, which holds {held}",
            "Give a file",
        )
    return pick(arrays_of(source), name, source)


def deliver(
    result: Any,
    as_json: bool,
    save: Path | None,
    plot: Path | None = None,
    draw: Callable[[], Any] | None = None,
    memory: Memory | None = None,
    **more: Any,
) -> None:
    """Print a result; save its certificates and draw it where paths are given. `more` are fields of its JSON document.

    With `memory`, its labels are saved too, so that the next command that reads the file knows the items by name.

    Exits with code 1 if the result says that what was asked for is not possible.
    """
    if save is not None and not result.certificates:
        typer.echo("nothing to save: nothing is certified", err=True)
        save = None
    if save is not None:
        from qkv.design.certificates import save as save_certificates

        labels = {} if memory is None else {"labels": list(memory.labels)}
        save_certificates(result.certificates, save, labels | result.to_json())
    if plot is not None and draw is not None:
        from qkv.viz.theme import save as save_figure

        save_figure(draw(), plot)
    show(result, as_json, **more)
    if not as_json:
        for path, what in ((save, "saved; recheck with: qkv design verify"), (plot, "drawn:")):
            if path is not None:
                say(f"{what} {path}\n")
    exit_if_negative(result.possible if isinstance(getattr(result, "possible", None), bool) else None)


def check_outputs(save: Path | None, plot: Path | None = None) -> None:
    """Refuse unusable output paths, before any work is done."""
    from qkv.core.files import check_output_path
    from qkv.design.certificates.files import check_path
    from qkv.viz.theme import check_plot_path

    check_path(save)
    if save is not None:
        check_output_path(save)
    check_plot_path(plot)


def check_page_path(path: Path | None) -> None:
    """Refuse a path that an HTML page cannot be written to, before any work is done."""
    from qkv.core.files import check_output_path

    if path is None:
        return
    if path.suffix.lower() not in PAGE_SUFFIXES:
        raise QkvError(
            f"writing a page to {path}", f"'{path.suffix}' is not the ending of one", f"Use {PAGE_SUFFIXES[0]}"
        )
    check_output_path(path)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner on stderr while the block runs, if it is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


def show(result: Displayable, as_json: bool, **more: Any) -> None:
    """Print a result as a table, or as the JSON document of the running command, with `more` fields."""
    if as_json:
        from qkv.core.display import plain

        say(document_text({**result.to_json(), **plain(more)}))
        return
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    with console.capture() as table:
        console.print(result)
    say(table.get())


def say(text: str) -> None:
    """Write to standard output, at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr if it is a terminal; yields a function of (done, total)."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=None)

        def step(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield step
