"""What all studies share: cells whose results are files, so that a killed study goes on, and a table at the end."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qkv.core.display import Card, Displayable, number
from qkv.core.files import write_text
from qkv.errors import QkvError

Row = dict[str, Any]
Watch = Callable[[str, int, int], None]
"""Called with the name of the cell that comes next, its number and the number of cells."""


@dataclass(frozen=True)
class Cell:
    """One measurement: its name, what decides its result, and how it is made in a folder of its own."""

    name: str
    facts: Row
    measure: Callable[[Path], Row] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Study(Displayable):
    """The table of a study, what it says in words, and how many of its cells are done."""

    name: str
    title: str
    rows: tuple[Row, ...]
    remarks: tuple[str, ...]
    done: int
    cells: int

    @property
    def complete(self) -> bool:
        """Whether every cell has been measured."""
        return self.done == self.cells

    def card(self) -> Card:
        columns = tuple(dict.fromkeys(name for row in self.rows for name in row))
        left = (
            ()
            if self.complete
            else (f"{self.cells - self.done} of {self.cells} cells are left: run it again to go on.",)
        )
        return Card(
            self.title,
            columns=tuple(name.replace("_", " ") for name in columns),
            rows=tuple(tuple(_cell(row.get(name)) for name in columns) for row in self.rows),
            note=" ".join((*self.remarks, *left)),
        )


def work(
    folder: str | Path, cells: Sequence[Cell], minutes: float = math.inf, watch: Watch | None = None
) -> dict[str, Row]:
    """The results of cells by name: from the folder where they are there already, measured where not.

    No cell is begun after so many minutes. A cell's own folder holds its runs, which go on after a kill, until its
    result is written; a result that belongs to other facts is refused.
    """
    folder = Path(folder)
    try:
        (folder / "cells").mkdir(parents=True, exist_ok=True)
    except OSError as why:
        raise QkvError(f"working in {folder}", str(why), "Give a folder that can be written") from None
    began, results = time.monotonic(), dict[str, Row]()
    for at, cell in enumerate(cells):
        path = folder / "cells" / f"{cell.name}.json"
        if path.is_file():
            results[cell.name] = _read(path, cell)
            continue
        if time.monotonic() - began > 60 * minutes:
            continue
        if watch is not None:
            watch(cell.name, at, len(cells))
        here = folder / "runs" / cell.name
        here.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        result = cell.measure(here)
        result["seconds"] = round(time.monotonic() - start, 1)
        write_text(path, json.dumps({"facts": cell.facts, "result": result}, indent=1) + "\n")
        shutil.rmtree(here)
        results[cell.name] = json.loads(json.dumps(result))
    if not results:
        raise QkvError(f"working in {folder}", "there was no time for a single cell", "Give more --minutes")
    return results


def finish(folder: str | Path, study: Study) -> Study:
    """Write the study's table beside its cells."""
    write_text(Path(folder) / "study.json", json.dumps(study.to_json(), indent=1) + "\n")
    return study


def _read(path: Path, cell: Cell) -> Row:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        facts, result = data["facts"], dict(data["result"])
    except (OSError, ValueError, KeyError, TypeError) as why:
        raise QkvError(f"reading {path}", f"it is damaged ({why})", "Remove it, and run the study again") from None
    if facts != json.loads(json.dumps(cell.facts)):
        raise QkvError(
            f"going on with {path}", "it was measured with other sizes", "Give the same sizes, or another --out"
        )
    return result


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return number(value, 3)
    if isinstance(value, list | tuple):
        return " to ".join(_cell(v) for v in value)
    return "–" if value is None else str(value)
