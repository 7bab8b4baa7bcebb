"""Exit codes of every command, and the command that is running."""

from __future__ import annotations

from contextvars import ContextVar

import typer

FINE = 0
"""The command did what was asked, and no verdict is negative."""
NEGATIVE = 1
"""The answer is no: a claim is refuted, a certificate is refused, or what was asked for cannot be done."""
BAD_INPUT = 2
"""Nothing was computed, since the input cannot be used; or, of `qkv check`, a claim is malformed or there is none."""
INTERRUPTED = 130
"""Ctrl-C, by convention of the shell: 128 plus the number of SIGINT."""
STOPPED = "stopped; no partial file was left"
"""What Ctrl-C says. `qkv.__main__` writes the same where this module may not be imported yet; a test compares them."""
BROKEN_PIPE = 141
"""The reader of the output closed the pipe, by convention of the shell: 128 plus the number of SIGPIPE."""

running_verb: ContextVar[str] = ContextVar("running_verb", default="")
"""The command that is running, such as "design blend"; groups set it when they look up a subcommand."""


def exit_if_negative(possible: bool | None) -> None:
    """Exit with NEGATIVE if the answer is no; None, which is undecided, is no verdict."""
    if possible is False:
        raise typer.Exit(NEGATIVE)
