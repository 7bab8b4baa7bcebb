"""Resumable experiments: cells whose results are files, and the table that they make."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qkv.core.display import Card, Displayable, number
from qkv.core.files import creating, refuse_existing, write_text
from qkv.core.json_files import read_json, verified, with_checksum
from qkv.errors import QkvError
from qkv.knowledge.studies import cell_runs
from qkv.train.run_lock import run_lock

CELL_FORMAT = "qkv-cell-3"
RUNS = ("run", "base", "tuned")
"""Folders of the runs that a cell trains in its own folder."""
Row = dict[str, Any]
CellCallback = Callable[[str, int, int], None]
"""Called before each cell with its name, its index and the number of cells."""


@dataclass(frozen=True)
class Cell:
    """One measurement.

    Attributes:
        name: Its name, which no other cell of the study has.
        settings: The settings that determine its result.
        measure: Makes it in a folder.
        runs: The folders of the runs that it trains there.
    """

    name: str
    settings: Row
    measure: Callable[[Path], Row] = field(repr=False, compare=False)
    runs: tuple[str, ...] = RUNS

    def identity(self, study: str) -> Row:
        """What names the cell of a study in its files."""
        return {"study": study, "cell": self.name, "settings": json.loads(json.dumps(self.settings))}


@dataclass(frozen=True)
class Study(Displayable):
    """The result of a study.

    Attributes:
        name: Name of the study.
        title: What it shows, in a few words.
        rows: The rows of its table.
        remarks: What the table says, in sentences.
        done: Number of cells that are measured.
        cells: Number of all cells.

    Example:
        >>> from qkv.knowledge import Study
        >>> found = Study("rare_facts", "Rare facts", ({"seen_once": 0.5, "made_up": 0.15},), (), done=1, cells=5)
        >>> found.complete
        False
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    remarks: tuple[str, ...]
    done: int
    cells: int

    @property
    def complete(self) -> bool:
        """Whether every cell is measured."""
        return self.done == self.cells

    def card(self) -> Card:
        columns = tuple(dict.fromkeys(name for row in self.rows for name in row))
        left = (
            ()
            if self.complete
            else (f"{self.cells - self.done} of {self.cells} cells are left: run the study again to continue.",)
        )
        return Card(
            self.title,
            columns=tuple(name.replace("_", " ") for name in columns),
            rows=tuple(tuple(_format(row.get(name)) for name in columns) for row in self.rows),
            note=" ".join((*self.remarks, *left)),
        )


def run_cells(
    folder: str | Path,
    study: str,
    cells: Sequence[Cell],
    minutes: float = math.inf,
    callback: CellCallback | None = None,
) -> dict[str, Row]:
    """The results of the cells of a study by name: read from the folder if they are there, measured otherwise.

    No cell is started after `minutes`, and no other process writes to the folder meanwhile. The training runs of a cell
    are in a folder of its own until its result is written, and continue after an interruption; runs and models there
    that the study did not make are refused before any cell is started. A stored result of another study, of another
    cell or with other settings is refused, and a file that appears under its name meanwhile is kept.
    """
    folder = Path(folder)
    try:
        (folder / "cells").mkdir(parents=True, exist_ok=True)
    except OSError as why:
        raise QkvError(f"running a study in {folder}", str(why), "Give a folder that can be written") from None
    with run_lock(folder):
        results = _measured(folder, study, cells, minutes, callback)
    if not results:
        raise QkvError(f"running a study in {folder}", "there was no time for a single cell", "Give more --minutes")
    return results


def _measured(
    folder: Path, study: str, cells: Sequence[Cell], minutes: float, callback: CellCallback | None
) -> dict[str, Row]:
    began, results = time.monotonic(), dict[str, Row]()
    for cell in cells:
        if not (folder / "cells" / f"{cell.name}.json").is_file():
            cell_runs.check_folder(folder / "runs" / cell.name, cell.identity(study), cell.runs)
    for index, cell in enumerate(cells):
        path = folder / "cells" / f"{cell.name}.json"
        if path.is_file():
            results[cell.name] = _stored_result(path, cell.identity(study))
            continue
        refuse_existing(path)
        if time.monotonic() - began > 60 * minutes:
            continue
        if callback is not None:
            callback(cell.name, index, len(cells))
        run_folder, identity = folder / "runs" / cell.name, cell.identity(study)
        cell_runs.begin(run_folder, identity, cell.runs)
        start = time.monotonic()
        result = cell.measure(run_folder)
        result["seconds"] = round(time.monotonic() - start, 1)
        stored = with_checksum({"format": CELL_FORMAT, **identity, "result": result})
        write_text(path, json.dumps(stored, indent=1) + "\n", creating)
        cell_runs.remove(run_folder, identity, cell.runs)
        results[cell.name] = json.loads(json.dumps(result))
    return results


def _stored_result(path: Path, identity: Row) -> Row:
    try:
        data = read_json(path)
        if isinstance(data, dict) and data.get("format") != CELL_FORMAT:
            raise ValueError(f"its format is not {CELL_FORMAT}")
        data = verified(data)
        stored, result = {name: data[name] for name in identity}, dict(data["result"])
    except (OSError, ValueError, KeyError, TypeError) as why:
        raise QkvError(
            f"reading {path}",
            f"it is damaged or of another version ({why})",
            "Remove it, and run the study again",
        ) from None
    for name, what in (("study", "study"), ("cell", "cell")):
        if stored[name] != identity[name]:
            problem = f"it belongs to the {what} {stored[name]!r}, not to {identity[name]!r}"
            raise QkvError(f"continuing with {path}", problem, "Put back the file of this cell, or give another --out")
    if stored != identity:
        raise QkvError(
            f"continuing with {path}",
            "it was measured with other settings",
            "Give the same seeds and people, or another --out",
        )
    return result


def _format(value: Any) -> str:
    if isinstance(value, float):
        return number(value, 3)
    if isinstance(value, list | tuple):
        return " to ".join(_format(v) for v in value)
    return "–" if value is None else str(value)
