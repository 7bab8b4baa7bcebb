"""qkv serve: open the explorer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qkv.cli.common import say
from qkv.errors import MissingExtra, QkvError

Named = Annotated[list[str] | None, typer.Option("--model", help="A model that can be asked, as NAME=FOLDER.")]


def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on; beyond this machine it takes a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8000,
    model: Named = None,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """Open the explorer: a page to look, move and ask, and its JSON API."""
    if not 0 <= port <= 65535:
        raise QkvError(f"--port {port}", "there is no such port", "Give one from 0 to 65535")
    models = _models(model or [])
    try:
        from qkv.web.server import run
    except ImportError as why:
        if (why.name or "").split(".")[0] in ("fastapi", "uvicorn", "starlette"):
            raise MissingExtra("qkv serve", "web") from None
        raise
    run(host, port, models, open_page, lambda text: say(f"{text}\n"))


def _models(named: list[str]) -> dict[str, Path]:
    out: dict[str, Path] = {}
    for one in named:
        name, equals, folder = one.partition("=")
        if not (equals and name and folder):
            raise QkvError(f"--model {one}", "that is not of the form NAME=FOLDER", "Write it like names=runs/tuned")
        if name in out:
            raise QkvError(f"--model {one}", "this name is taken", "Give each model a name of its own")
        out[name] = Path(folder)
    return out
