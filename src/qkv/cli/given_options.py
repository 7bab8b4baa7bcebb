"""Which options a command line gave, and the refusal of those that would have no effect."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from qkv.errors import QkvError


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


def _written(context: typer.Context, name: str) -> str:
    """The option as it is written; of a switch, the side that was chosen."""
    parameter = next(each for each in context.command.params if each.name == name)
    on, off = parameter.opts, parameter.secondary_opts
    return max(off if off and context.params[name] is False else on, key=len)
