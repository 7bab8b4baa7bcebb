"""Metrics of a run: one JSON object per line in log.jsonl, optionally TensorBoard, and their history."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from qkv.core.display import Card, Displayable, number
from qkv.core.files import creating, replacing, write_text
from qkv.core.json_files import CHECKSUM, parse_json, verified, with_checksum
from qkv.errors import MissingExtra, QkvError, QkvWarning
from qkv.train.old_runs import OLD_METRICS, UNCHECKED_METRICS

LOG_FILE = "log.jsonl"
TENSORBOARD_FOLDER = "tensorboard"
DAMAGED_SUFFIX = ".damaged"


class MetricsLog:
    """The log of a run that continues at a step: lines that a killed process wrote after its checkpoint are dropped.

    If there are damaged lines, a warning says how many, and the log as it was is kept as log.jsonl.damaged.
    """

    def __init__(self, folder: Path, step: int, tensorboard: bool = False) -> None:
        self._path = folder / LOG_FILE
        found = _parse_log(self._path)
        if found.damaged:
            copy = _unused(self._path.with_name(LOG_FILE + DAMAGED_SUFFIX))
            with creating(copy) as temporary:
                temporary.write_bytes(self._path.read_bytes())
            _warn(self._path, found, f"the log as it was is kept as {copy.name}")
        kept = "".join(text + "\n" for text, line in found.lines if line["step"] <= step)
        write_text(self._path, kept, replacing if self._path.is_file() else creating)
        self._board = _summary_writer(folder, step) if tensorboard else None

    def write(self, **metrics: Any) -> None:
        """Append a line; `step` is one of the metrics."""
        try:
            with self._path.open("a", encoding="utf-8") as handle:
                handle.write(json.dumps(with_checksum(metrics)) + "\n")
        except OSError as why:
            raise QkvError(f"writing {self._path}", str(why), "Free some space, and continue with --resume") from None
        if self._board is not None:
            for name, value in metrics.items():
                if name != "step":
                    self._board.add_scalar(name, value, metrics["step"])

    def close(self) -> None:
        """Flush and close TensorBoard's file."""
        if self._board is not None:
            self._board.close()


def read_log(folder: str | Path) -> list[dict[str, Any]]:
    """The lines of a run's log; damaged, doubled and moved ones are left out, and a warning says how many."""
    path = Path(folder) / LOG_FILE
    found = _parse_log(path)
    if found.damaged:
        _warn(path, found, "they are left out")
    return [line for _, line in found.lines]


def is_own_log(folder: Path) -> bool:
    """Whether there is a log in a folder that holds nothing but lines of a run, the last one perhaps cut short."""
    path = folder / LOG_FILE
    if path.is_symlink() or not path.is_file():
        return False
    text = path.read_text(encoding="utf-8", errors="replace")
    cut = text.rpartition("\n")[2]
    damaged = _parse_log(path).damaged
    return not damaged or (damaged == [text.count("\n") + 1] and cut.startswith('{"step": '))


class _ParsedLog(NamedTuple):
    """The intact lines of a log, as (text, metrics), and the numbers of the damaged ones."""

    lines: list[tuple[str, dict[str, Any]]]
    damaged: list[int]


def _parse_log(path: Path) -> _ParsedLog:
    found = _ParsedLog([], [])
    if not path.is_file():
        return found
    last, seen = 0, set()
    for i, text in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
        if text:
            try:
                line = _parse_line(text)
            except ValueError:
                found.damaged.append(i)
                continue
            if line["step"] < last or text in seen:  # steps rise, and no line comes twice
                found.damaged.append(i)
                continue
            found.lines.append((text, line))
            last = line["step"]
            seen.add(text)
    return found


def _parse_line(text: str) -> dict[str, Any]:
    """The metrics of a line, which must fit its checksum; only earlier versions wrote lines without one."""
    stored = parse_json(text)
    line = verified(stored, required=False)
    if CHECKSUM not in stored and not set(line) <= UNCHECKED_METRICS:
        raise ValueError("a line with new names has no checksum")
    if not isinstance(line.get("step"), int) or not all(type(value) in (int, float) for value in line.values()):
        raise ValueError("a metric is not a number")
    return {OLD_METRICS.get(name, name): value for name, value in line.items()}


def _warn(path: Path, found: _ParsedLog, outcome: str) -> None:
    count = len(found.damaged)
    lines = ", ".join(map(str, found.damaged[:5])) + (", …" if count > 5 else "")
    which = f"{count} of {count + len(found.lines)} lines are damaged, doubled or out of order (line {lines})"
    text = f"{path}: {which}; {outcome}"
    warnings.warn(text, QkvWarning, stacklevel=3)


def _unused(path: Path) -> Path:
    """The path, or the first of path-2, path-3, … where there is no file."""
    n, unused = 1, path
    while os.path.lexists(unused):
        n += 1
        unused = path.with_name(f"{path.name}-{n}")
    return unused


class HasFolder(Protocol):
    """A run."""

    @property
    def folder(self) -> Path: ...


@dataclass(frozen=True)
class History(Displayable):
    """Losses of a run against its steps.

    Attributes:
        steps: Steps at which the training loss was logged.
        losses: Mean training loss per token of each of them, in nats.
        validated: Steps at which the validation loss was computed.
        val_losses: Validation loss of each of them.

    Example:
        >>> import tempfile, qkv
        >>> from pathlib import Path
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "log.jsonl").write_text('{"step": 10, "loss": 2.5}\\n{"step": 20, "loss": 1.5}\\n')
        >>> qkv.train.History.of(folder).losses
        (2.5, 1.5)
    """

    steps: tuple[int, ...]
    losses: tuple[float, ...]
    validated: tuple[int, ...]
    val_losses: tuple[float, ...]

    @classmethod
    def of(cls, run: HasFolder | str | Path) -> History:
        """The history of a run.

        Args:
            run: A run, or its folder; one without a log has an empty history.
        """
        found = read_log(run if isinstance(run, str | Path) else run.folder)
        train = [(line["step"], line["loss"]) for line in found if "loss" in line]
        held_out = [(line["step"], line["val_loss"]) for line in found if "val_loss" in line]
        (steps, losses), (validated, val_losses) = (
            tuple(zip(*each, strict=True)) or ((), ()) for each in (train, held_out)
        )
        return cls(steps, losses, validated, val_losses)

    def card(self) -> Card:
        every = max(1, len(self.steps) // 10)
        rows = [(str(s), number(x)) for s, x in list(zip(self.steps, self.losses, strict=True))[::every]]
        return Card("Losses of a run", columns=("step", "loss"), rows=tuple(rows))


def _summary_writer(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtra("writing logs for TensorBoard", "hf") from None
    return SummaryWriter(str(folder / TENSORBOARD_FOLDER), purge_step=step + 1)
