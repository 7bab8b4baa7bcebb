"""qkv serve: run the explorer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qkv.cli.common import say
from qkv.errors import MissingExtra, QkvError

ModelOption = Annotated[
    list[str] | None, typer.Option("--model", help="A model to ask or to look at, as FOLDER or NAME=FOLDER.")
]


def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on; beyond this machine, requests need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8000,
    model: ModelOption = None,
    runs: Annotated[
        Path, typer.Option(help="Folder for models that are trained on the page and kept; those in it can be asked.")
    ] = Path("runs/explorer"),
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """Run the explorer: an interactive page, and its JSON API."""
    if not 0 <= port <= 65535:
        raise QkvError(f"--port {port}", "it is not a port number", "Give a number from 0 to 65535")
    if runs.exists() and not runs.is_dir():
        raise QkvError(f"--runs {runs}", "it is a file", "Give a folder; it is made when a model is kept")
    models = _models(model or [])
    try:
        from qkv.web.server import run
    except ImportError as error:
        if (error.name or "").split(".")[0] in ("fastapi", "uvicorn", "starlette"):
            raise MissingExtra("qkv serve", "web") from None
        raise
    run(host, port, models, open_page, lambda text: say(f"{text}\n"), runs)


def _models(options: list[str]) -> dict[str, Path]:
    """Folders by name; a folder without a name has its own."""
    from qkv.web.limits import MAX_LABEL_LENGTH

    models: dict[str, Path] = {}
    for option in options:
        name, equals, folder = option.partition("=")
        if not equals:
            name, folder = Path(option).resolve().name, option
            if not Path(option).is_dir():
                raise QkvError(f"--model {option}", "there is no such folder", "Give FOLDER or NAME=FOLDER")
        if not (name and folder):
            raise QkvError(f"--model {option}", "it is not of the form NAME=FOLDER", "Write it like names=runs/tuned")
        if len(name) > MAX_LABEL_LENGTH:
            problem = f"the name {name!r} has more than {MAX_LABEL_LENGTH} letters"
            raise QkvError(f"--model {option}", problem, "Give a shorter one, as NAME=FOLDER")
        if name in models:
            raise QkvError(f"--model {option}", "this name was given before", "Give each model a name of its own")
        models[name] = Path(folder)
    return models
