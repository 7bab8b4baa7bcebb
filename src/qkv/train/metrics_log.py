"""What a run writes down as it goes: a line of JSON now and then, and the same for TensorBoard."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qkv.core.display import Card, Displayable, number
from qkv.core.files import write_text
from qkv.errors import MissingExtra, QkvError

NAME = "log.jsonl"


class Log:
    """Lines for the steps of one run; what a killed process wrote after its last checkpoint is dropped."""

    def __init__(self, folder: Path, step: int, tensorboard: bool = False) -> None:
        self._path = folder / NAME
        kept = [line for line in lines(folder) if line["step"] <= step]
        write_text(self._path, "".join(json.dumps(line) + "\n" for line in kept))
        self._board = _board(folder, step) if tensorboard else None

    def write(self, **facts: Any) -> None:
        """Add a line, at once."""
        try:
            with self._path.open("a", encoding="utf-8") as handle:
                handle.write(json.dumps(facts) + "\n")
        except OSError as why:
            raise QkvError(f"writing {self._path}", str(why), "Free some space, and go on with --resume") from None
        if self._board is not None:
            for name, value in facts.items():
                if name != "step":
                    self._board.add_scalar(name, value, facts["step"])

    def close(self) -> None:
        """Leave nothing in memory."""
        if self._board is not None:
            self._board.close()


def lines(folder: str | Path) -> list[dict[str, Any]]:
    """The lines of a run's log; a last one that was cut off is left out."""
    path = Path(folder) / NAME
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
    """The losses of a run against its steps."""

    steps: tuple[int, ...]
    losses: tuple[float, ...]
    validated: tuple[int, ...]
    validation: tuple[float, ...]

    @classmethod
    def of(cls, folder: str | Path) -> History:
        """What a run's log says."""
        found = lines(folder)
        train = [(line["step"], line["loss"]) for line in found if "loss" in line]
        held = [(line["step"], line["validation"]) for line in found if "validation" in line]
        (steps, losses), (validated, validation) = (
            tuple(zip(*each, strict=True)) or ((), ()) for each in (train, held)
        )
        return cls(steps, losses, validated, validation)

    def card(self) -> Card:
        every = max(1, len(self.steps) // 10)
        rows = [(str(s), number(x)) for s, x in list(zip(self.steps, self.losses, strict=True))[::every]]
        return Card("Losses of a run", columns=("step", "loss"), rows=tuple(rows))


def _board(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtra("writing logs for TensorBoard", "hf") from None
    return SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)
