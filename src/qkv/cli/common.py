"""Options, parsing and output that the commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qkv.errors import QkvError

if TYPE_CHECKING:
    from collections.abc import Callable

    from qkv.core.display import Displayable
    from qkv.core.memory import Memory

MemoryFile = Annotated[
    Path | None,
    typer.Argument(help=".npz, .npy, .csv, .json or .safetensors with keys, and perhaps values and labels."),
]
Orthonormal = Annotated[
    str | None, typer.Option(help="Generate a memory instead: NxD orthonormal keys, such as 10x16.")
]
Seed = Annotated[int, typer.Option(help="Seed of the generated memory.")]
JSON = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table.")]
Save = Annotated[Path | None, typer.Option(help="Save result and certificate as .json or .safetensors.")]
Plot = Annotated[Path | None, typer.Option(help="Draw it as .svg, .pdf, .png or .html.")]
PAGE_SUFFIXES = (".html", ".htm")
Tol = Annotated[float, typer.Option(help="Largest total-variation distance between the weights and the wanted ones.")]


def memory_from(path: Path | None, orthonormal: str | None, seed: int) -> Memory:
    """The memory in a file, or a generated one; exactly one of both must be given."""
    from qkv.core.memory import Memory

    if (path is None) == (orthonormal is None):
        problem = "both a file and --orthonormal were given" if path else "neither a file nor --orthonormal was given"
        raise QkvError("reading a memory", problem, "Give one of them, such as --orthonormal 10x16")
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


def weights_of(memory: Memory, text: str) -> dict[Any, float]:
    """Parse weights such as "0=0.5,1=0.5" or "a=1/3,b=2/3"."""
    out: dict[Any, float] = {}
    for part in text.split(","):
        name, equals, value = part.rpartition("=")
        if not equals:
            raise QkvError(f"--weights {text}", f"'{part}' is not of the form item=weight", "Write it like 0=0.5,1=0.5")
        label = memory.labels[item_of(memory, name.strip())]
        if label in out:
            raise QkvError(f"--weights {text}", f"item {label} is named twice", "Name each item once")
        out[label] = number_of(f"--weights {text}", value)
    return out


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
    from qkv.core.files import pick, read_arrays

    if source in arrays:
        return arrays[source]
    if not Path(source).suffix:
        held = ", ".join(sorted(k for k in arrays if k)) or "one array without a name"
        raise QkvError(
            f"reading {name}",
            f"'{source}' is neither a file nor in the given file, which holds {held}",
            "Give a file",
        )
    return pick(read_arrays(source), name, source)


def deliver(
    result: Any,
    as_json: bool,
    save: Path | None,
    plot: Path | None = None,
    draw: Callable[[], Any] | None = None,
) -> None:
    """Print a result; save its certificates and draw it where paths are given."""
    if save is not None:
        from qkv.design.certificates import save as save_certificates

        save_certificates(result.certificates, save, result.to_json())
    if plot is not None and draw is not None:
        from qkv.viz.theme import save as save_figure

        save_figure(draw(), plot)
    show(result, as_json)
    if not as_json:
        for path, what in ((save, "saved; recheck with: qkv design verify"), (plot, "drawn:")):
            if path is not None:
                say(f"{what} {path}\n")


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


def show(result: Displayable, as_json: bool) -> None:
    """Print a result as a table, or as JSON."""
    if as_json:
        import json

        say(json.dumps(result.to_json(), allow_nan=False) + "\n")
        return
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    with console.capture() as table:
        console.print(result)
    say(table.get())


def say(text: str) -> None:
    """Write to standard output; if its reader has closed the pipe, exit with code 0."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout again at exit, which would raise again: redirect it to the null device.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


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
