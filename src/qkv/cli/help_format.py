"""Help pages whose list of commands is not cut off, completion of values, and the check before a command runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from qkv.cli.exit_codes import running_verb
from qkv.cli.given_options import refuse_overwriting
from qkv.cli.json_documents import asks_for_json, wants_json

HELP_NAMES = {"help_option_names": ["-h", "--help"]}
"""Context settings of the whole program: subcommands inherit them."""
Function = TypeVar("Function", bound=Callable[..., Any])
UNLIMITED = 10_000
"""Characters of the summary of a command; Click's own limit cuts it off at the width of the terminal."""


class CommandGroup(TyperGroup):
    """A group that lists its commands with their whole first sentence, and records which one runs."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, wrapped instead of cut off."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, command.get_short_help_str(UNLIMITED)))
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Look up the subcommand, and record its name for the JSON document that it will print."""
        found = super().resolve_command(ctx, args)
        name = found[0] or ""
        running_verb.set(name if ctx.parent is None else f"{ctx.info_name} {name}")
        return found


class Command(TyperCommand):
    """A command that does not run if one of its outputs would replace one of its inputs."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Record whether the words ask for a document, which a refusal of them is then too."""
        takes_value = {name for each in self.params if not getattr(each, "is_flag", False) for name in each.opts}
        wants_json.set(asks_for_json(args, takes_value))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, after that check."""
        refuse_overwriting(ctx)
        return super().invoke(ctx)


class Commands(typer.Typer):
    """A program, or a part of one, whose commands are of the class `Command`."""

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **options: Any
    ) -> Callable[[Function], Function]:
        """Register a function as a command, as Typer does."""
        return super().command(name, cls=cls or Command, **options)


def one_of(values: Iterable[str]) -> Callable[[str], list[str]]:
    """Completion of an option: those of its values that begin with what was typed."""
    known = tuple(values)

    def complete(incomplete: str) -> list[str]:
        return [value for value in known if value.startswith(incomplete)]

    return complete
