"""Help of pretrain and finetune: the defaults of the recipe that the words before --help would run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from qkv.cli.help_format import Command
from qkv.errors import QkvError
from qkv.train.recipes import DEFAULT, RECIPES, Recipe, choose_recipe

HelpOf = Callable[[Recipe], str]
CHOOSING_OPTIONS = ("preset", "tokenizer", "steps")


def recipe_of_words(verb: str, words: Sequence[str]) -> Recipe:
    """The recipe that a call with these words would follow; the default one if they do not say.

    finetune follows the recipe of its run, if the first word is the folder of one.
    """
    given: dict[str, str] = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--"):
            given[name] = value if equals else following
    arguments = {"config" if name == "preset" else name for name in CHOOSING_OPTIONS if name in given}
    parent = None
    try:
        if verb == "finetune":
            parent = _recipe_of_run(words) or DEFAULT
            arguments = set()
        return choose_recipe(given.get("recipe"), arguments, given.get("objective"), parent)
    except QkvError:  # the command itself refuses it, with its reason
        return RECIPES[DEFAULT]


def _recipe_of_run(words: Sequence[str]) -> str | None:
    from qkv.train.run_files import is_run, read_description

    folders = [Path(word) for word in words[:1] if not word.startswith("-")]
    return read_description(folders[0]).recipe if folders and is_run(folders[0]) else None


def recipe_command(verb: str, help_of: dict[str, HelpOf]) -> type[Command]:
    """A command whose help shows, for each option named in `help_of`, what the recipe that would run makes of it."""

    class RecipeCommand(Command):
        """The command of this verb."""

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            """Keep the words for the help page."""
            ctx.meta["words"] = list(args)
            return super().parse_args(ctx, args)

        def format_help(self, ctx: Any, formatter: Any) -> None:
            """Write the help page with the defaults of the recipe."""
            recipe = recipe_of_words(verb, ctx.meta.get("words", ()))
            options = [param for param in self.params if param.name in help_of]
            before = [getattr(param, "help", None) for param in options]
            text = self.help
            try:
                for param in options:
                    param.help = help_of[str(param.name)](recipe)  # type: ignore[attr-defined]
                self.help = (
                    f"{text}\n\nDefaults are those of the recipe {recipe.name}. Give --recipe, or options that choose "
                    "another one, before --help to see its own."
                )
                super().format_help(ctx, formatter)
            finally:
                self.help = text
                for param, old in zip(options, before, strict=True):
                    param.help = old  # type: ignore[attr-defined]

    return RecipeCommand
