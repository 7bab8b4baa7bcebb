"""Which options a command line gave, and the refusal of those without effect and of outputs that replace inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import typer

from qkv.errors import QkvError

OUTPUTS = ("save", "plot", "html", "csv", "claims", "answers", "out", "report")
"""Parameters that name a file or folder to write."""


def is_given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_idle(context: typer.Context, request: str, names: Sequence[str], belong_to: str) -> None:
    """Refuse options that have no effect on what was asked for, rather than pass over them in silence.

    Args:
        context: Of the command.
        request: What was asked for.
        names: The parameters without effect.
        belong_to: What they are for, such as "language models".
    """
    for name in names:
        if is_given(context, name):
            option = _written(context, name)
            raise QkvError(request, f"{option} has no effect here: it is for {belong_to}", f"Leave out {option}")


def refuse_overwriting(context: typer.Context) -> None:
    """Refuse an output that is an input of the same call, or another output: writing it would destroy the other."""
    seen: dict[Path, str] = {}
    named = [(name, path) for name, value in context.params.items() for path in _paths(value)]
    for name, path in sorted(named, key=lambda each: each[0] in OUTPUTS):  # inputs first
        if name in OUTPUTS and path in seen:
            other = _written(context, seen[path])
            what = f"it would replace the file of {other}, which is read"
            problem = f"{other} is written to the same file" if seen[path] in OUTPUTS else what
            raise QkvError(f"{_written(context, name)} {path.name}", problem, "Give another path")
        seen[path] = name


def _paths(value: object) -> Iterator[Path]:
    """The files among the values of a parameter, those that do not exist yet too; of texts, only existing ones."""
    for each in value if isinstance(value, list | tuple) else (value,):
        with suppress(OSError, ValueError):  # a text that is no path
            if isinstance(each, Path) and not each.is_dir():
                yield each.resolve()
            elif isinstance(each, str) and Path(each).is_file():
                yield Path(each).resolve()


def _written(context: typer.Context, name: str) -> str:
    """The option as it is written; of a switch, the side that was chosen."""
    parameter = next(each for each in context.command.params if each.name == name)
    on, off = parameter.opts, parameter.secondary_opts
    written = max(off if off and context.params[name] is False else on, key=len)
    return written if written.startswith("-") else written.upper()
