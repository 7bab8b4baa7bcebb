"""The command line: one function per command, heavy imports inside it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from qkv.cli import claims, design, heads, knowledge, noise, serve, texts, train
from qkv.cli.common import JSON, MemoryFile, Orthonormal, Seed, memory_from, show
from qkv.cli.plain_text import degrade_output
from qkv.errors import QkvError

EXIT_INTERRUPTED = 130
"""Exit code of a program that was ended by Ctrl-C, by convention of the shell."""

app = typer.Typer(
    help="qkv tells what attention looks up, and when to trust it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
design.app.command("wire-texts")(texts.wire_texts)
app.add_typer(design.app, name="design")
app.command()(claims.check)
app.command()(serve.serve)
app.add_typer(noise.app, name="noise")
app.command()(heads.heads)
app.add_typer(heads.models, name="models")
train.register(app)
knowledge.register(app)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version of qkv.")] = False,
) -> None:
    if version:
        from qkv import __version__

        typer.echo(f"qkv {__version__}")
        raise typer.Exit


@app.command()
def read(
    memory: MemoryFile = None,
    query: Annotated[Path | None, typer.Option(help="File with the query, or queries as rows.")] = None,
    scale: Annotated[float, typer.Option(help="Factor in front of the scores.")] = 1.0,
    orthonormal: Orthonormal = None,
    seed: Seed = 0,
    as_json: JSON = False,
) -> None:
    """Read a memory with a query: weights and output."""
    from qkv.core.files import pick, read_arrays

    if query is None:
        raise QkvError("reading a memory", "there is no query", "Give --query FILE")
    found = memory_from(memory, orthonormal, seed)
    show(found.read(pick(read_arrays(query), "query", query), scale=scale), as_json)


@app.command()
def tour(
    out: Annotated[Path, typer.Option(help="Folder for report.html.")] = Path("tour"),
) -> None:
    """Run through everything that qkv can do, offline, and write one page with pictures."""
    from qkv.tour import run

    run(out)


def main() -> None:
    """Run a command; a refusal is one message on stderr and exit code 2, never a traceback."""
    degrade_output()
    try:
        code = app(standalone_mode=False)
    except QkvError as refusal:
        code = _refuse(str(refusal))
    except (KeyboardInterrupt, typer.Abort):
        code = EXIT_INTERRUPTED
    except (OSError, MemoryError, OverflowError) as why:
        code = _refuse(f"the system refused: {why or type(why).__name__}. Check paths, permissions, space and sizes.")
    except Exception as usage:
        if not hasattr(usage, "format_message"):
            raise
        usage.show()  # type: ignore[attr-defined]
        code = getattr(usage, "exit_code", 2)
    if code == EXIT_INTERRUPTED:
        sys.stderr.write("qkv: stopped; no partial file was left\n")
    sys.exit(code if isinstance(code, int) else 0)


def _refuse(message: str) -> int:
    sys.stderr.write(f"qkv: {message}\n")
    return 2
