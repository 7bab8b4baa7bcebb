"""Metrics of a run: one JSON object per line in log.jsonl, optionally TensorBoard, and their history."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qkv.core.display import Card, Displayable, number
from qkv.core.files import write_text
from qkv.errors import MissingExtra, QkvError

LOG_FILE = "log.jsonl"


class MetricsLog:
    """The log of a run that continues at a step: lines that a killed process wrote after its checkpoint are dropped."""

    def __init__(self, folder: Path, step: int, tensorboard: bool = False) -> None:
        self._path = folder / LOG_FILE
        kept = [line for line in read_log(folder) if line["step"] <= step]
        write_text(self._path, "".join(json.dumps(line) + "\n" for line in kept))
        self._board = _summary_writer(folder, step) if tensorboard else None

    def write(self, **metrics: Any) -> None:
        """Append a line; `step` is one of the metrics."""
        try:
            with self._path.open("a", encoding="utf-8") as handle:
                handle.write(json.dumps(metrics) + "\n")
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
    """The lines of a run's log; a truncated last line is left out."""
    path = Path(folder) / LOG_FILE
    if not path.is_file():
        return []
    out = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            out.append(json.loads(line))
        except ValueError:
            break
    return out


@dataclass(frozen=True)
class History(Displayable):
    """Losses of a run against its steps.

    Attributes:
        steps: Steps at which the training loss was logged.
        losses: Mean training loss per token of each of them, in nats.
        validated: Steps at which the validation loss was computed.
        validation: Validation loss of each of them.

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
    validation: tuple[float, ...]

    @classmethod
    def of(cls, folder: str | Path) -> History:
        """The history in a run's folder.

        Args:
            folder: Folder of a run; one without a log has an empty history.
        """
        found = read_log(folder)
        train = [(line["step"], line["loss"]) for line in found if "loss" in line]
        held_out = [(line["step"], line["validation"]) for line in found if "validation" in line]
        (steps, losses), (validated, validation) = (
            tuple(zip(*each, strict=True)) or ((), ()) for each in (train, held_out)
        )
        return cls(steps, losses, validated, validation)

    def card(self) -> Card:
        every = max(1, len(self.steps) // 10)
        rows = [(str(s), number(x)) for s, x in list(zip(self.steps, self.losses, strict=True))[::every]]
        return Card("Losses of a run", columns=("step", "loss"), rows=tuple(rows))


def _summary_writer(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtra("writing logs for TensorBoard", "hf") from None
    return SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)
