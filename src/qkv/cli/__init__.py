"""The command line: one function per command, heavy imports inside it.

Reading order: common (options, parsing and output of all commands); given_options (which options were given); design
and texts, noise with noise_options, heads and head_evidence, claims, sheets, train with recipe_help, facts, knowledge
and language_models, serve (the commands); exit_codes, help_format, streams and plain_text (how the program ends,
explains itself and prints); json_documents and json_schemas (--json), with the fields in json_fields, json_heads,
json_knowledge and json_sheets.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from qkv.cli import claims, design, facts, head_evidence, heads, knowledge, noise, serve, sheets, texts, train
from qkv.cli.common import JSON, MemoryFile, Orthonormal, Seed, heads_of, is_first_rank, memory_from, say, show
from qkv.cli.exit_codes import BAD_INPUT, BROKEN_PIPE, INTERRUPTED, STOPPED, running_verb
from qkv.cli.help_format import HELP_NAMES, CommandGroup, Commands
from qkv.cli.json_documents import asks_for_json, document_text, error_text, wants_json
from qkv.cli.plain_text import degrade_output
from qkv.cli.streams import PipeAwareText, ReaderClosed, prepare_streams
from qkv.errors import QkvError, with_full_stop

app = Commands(
    cls=CommandGroup,
    help="qkv tells what attention looks up, and when to trust it.",
    epilog="Exit codes: 0 fine, 1 the answer is no, 2 bad input. Every command has -h.",
    no_args_is_help=True,
    context_settings=HELP_NAMES,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
design.app.command("wire-texts")(texts.wire_texts)
app.add_typer(design.app, name="design")
app.command()(claims.check)
app.command()(sheets.grade)
app.command()(serve.serve)
app.add_typer(noise.app, name="noise")
app.command()(heads.heads)
app.command()(head_evidence.certify)
app.command("name-heads")(head_evidence.name_heads)
app.add_typer(heads.models, name="models")
facts.register(app)
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
    query: Annotated[
        Path | None,
        typer.Option(help="File with the query, or queries as rows; or the result of another command, with its heads."),
    ] = None,
    scale: Annotated[float, typer.Option(help="Factor in front of the scores.")] = 1.0,
    orthonormal: Orthonormal = None,
    seed: Seed = 0,
    as_json: JSON = False,
) -> None:
    """Read a memory with a query: weights and output."""
    if query is None:
        raise QkvError("reading a memory", "there is no query", "Give --query FILE")
    found = memory_from(memory, orthonormal, seed)
    queries, mix = heads_of(query)
    show(found.read(queries, scale=scale) if mix is None else found.read_heads(queries, mix, scale=scale), as_json)


@app.command()
def tour(
    out: Annotated[Path, typer.Option(help="Folder for report.html.")] = Path("tour"),
    as_json: JSON = False,
) -> None:
    """Run through everything that qkv can do, offline, and write one page with pictures."""
    from contextlib import redirect_stdout

    from qkv.tour import CHAPTERS, run

    if not as_json:
        run(out)
        return
    with redirect_stdout(sys.stderr):  # its progress; standard output holds one document
        report = run(out)
    say(document_text({"report": str(report), "chapters": [name for name, _ in CHAPTERS]}))


def run(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; a refusal is one message on stderr, never a traceback.

    With --json, a refusal is a document on standard output as well.

    Args:
        arguments: The words after `qkv`; those of this process if None.
    """
    words = sys.argv[1:] if arguments is None else arguments
    wants_json.set(asks_for_json(words))  # the command itself sets it again, as it knows its options
    running_verb.set("")
    try:
        _check_working_directory()
        code = app(words, standalone_mode=False)
        sys.stdout.flush()
    except QkvError as refusal:
        code = _refuse(refusal)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except ReaderClosed:
        return BROKEN_PIPE
    except (OSError, MemoryError, OverflowError) as why:
        problem = with_full_stop(f"the system refused: {str(why) or type(why).__name__}")
        code = _refuse(f"{problem} Check paths, permissions, space and sizes.")
    except Exception as usage:
        if not hasattr(usage, "format_message"):
            raise
        if is_first_rank():
            usage.show()  # type: ignore[attr-defined]
        _say_refusal(usage.format_message())
        code = BAD_INPUT
    if code == INTERRUPTED and is_first_rank():
        sys.stderr.write(f"qkv: {STOPPED}\n")
    return code if isinstance(code, int) else 0


def main() -> None:
    """Run the command of this process, and exit with its code."""
    prepare_streams()
    degrade_output()
    try:
        code = run()
        if isinstance(sys.stdout, PipeAwareText):
            sys.stdout.finish()
    except ReaderClosed:  # of standard error
        code = BROKEN_PIPE
    sys.exit(code)


def _check_working_directory() -> None:
    """Refuse to run in a folder that was removed: libraries that start there may abort the process."""
    try:
        Path.cwd()
    except OSError as why:
        problem = f"the current folder cannot be found ({why.strerror or why})"
        raise QkvError("running qkv", problem, "Change to a folder that is there") from None


def _refuse(refusal: QkvError | str) -> int:
    """Tell a refusal; of processes that torchrun started, the first one does, unless it is another one's alone."""
    if not is_first_rank() and not _is_own(refusal):
        return BAD_INPUT
    sys.stderr.write(f"qkv: {refusal}\n")
    _say_refusal(refusal)
    return BAD_INPUT


def _say_refusal(refusal: QkvError | str) -> None:
    """With --json, print the document of a refusal, unless it was standard output that could not be written."""
    if wants_json.get() and is_first_rank():
        with suppress(OSError):
            say(error_text(refusal))


def _is_own(refusal: QkvError | str) -> bool:
    """Whether a refusal arose in this process of a group alone: where all have it, `process_group` marks it as told."""
    return getattr(refusal, "told", None) is False
