"""The tour: every package demonstrated on embedded data, as one HTML report with figures.

Reading order, that of the chapters: design, noise, heads, claims, sheets, train, knowledge.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from qkv.errors import EXTRAS, QkvError
from qkv.tour import claims, design, heads, knowledge, noise, sheets, train
from qkv.viz.html_report import Chapter, write

CHAPTERS: tuple[tuple[str, Callable[[], Chapter]], ...] = (
    ("copy and blend", design.lookup),
    ("what cannot be copied", design.limits),
    ("reading one subspace out of a sum", design.subspaces),
    ("wiring tokens", design.wiring),
    ("one head for every text", design.texts),
    ("what no token can reach", design.reaching),
    ("one head is enough", noise.one_head),
    ("keys of few bits", noise.quantised),
    ("what the heads of a model look up", heads.looking_up),
    ("claims become verdicts", claims.claims),
    ("an answer sheet as it was written", sheets.sheets),
    ("training that does not lose work", train.learning),
    ("remembered or made up", knowledge.remembering),
)

LEAD = (
    "Attention is a lookup memory: a query is compared with keys, a softmax turns the scores into weights, the "
    "output is the weighted average of the values. Say what a head should look up, and get the query or the matrices "
    "that do it with a certificate that anyone can recheck, or a proof that none exists."
)


def explorer_commands() -> str:
    """The commands that start the explorer on this installation, with what it lacks for that."""
    folder = Path(sys.executable).parent
    with suppress(ValueError):
        folder = folder.relative_to(Path.cwd())
    on_path = shutil.which("qkv")
    same = on_path is not None and Path(on_path).absolute() == (Path(sys.executable).parent / "qkv")
    start = "qkv serve" if same else f"{folder / 'qkv'} serve"
    if all(find_spec(name) for name in ("fastapi", "uvicorn")):
        return start
    packages = " ".join(f'"{package}"' for package in EXTRAS["web"])
    return f"{folder / Path(sys.executable).name} -m pip install {packages} && {start}"


def run(out: Path) -> Path:
    """Compute every chapter and write them as report.html, with a progress bar in the terminal.

    Args:
        out: Folder for the report; created if it does not exist.

    Returns:
        The path of the report.

    Raises:
        QkvError: The folder cannot be created.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as why:
        raise QkvError(
            f"writing the tour to {out}", str(why), "Give a folder that can be written, with --out"
        ) from None
    start = time.monotonic()
    chapters = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=len(CHAPTERS))
        for name, chapter in CHAPTERS:
            bar.update(task, description=name)
            chapters.append(chapter())
            console.print(f"  ✓ {name}", highlight=False)
            bar.advance(task)
    path = out / "report.html"
    write(path, "What attention looks up", LEAD, chapters)
    seconds = time.monotonic() - start
    console.print(f"\n{len(chapters)} chapters in {seconds:.0f} s. Open {path}", highlight=False)
    console.print(
        f"To try it interactively, start the explorer: {explorer_commands()}", highlight=False, soft_wrap=True
    )
    return path
