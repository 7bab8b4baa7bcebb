"""FaultCount: what became of the faults of one kind; and the tally that counts them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

Progress = Callable[[int, int], None]
"""Called with the faults done and in all."""
HARMLESS = ("refused", "unchanged", "other_input")
HARMFUL = ("lost", "believed", "tracebacks", "hangs")
MAX_EXAMPLES = 5


@dataclass(frozen=True)
class FaultCount:
    """What became of the faults of one kind. Each fault is counted once, by the worst that it did.

    Attributes:
        kind: What was done, in a few words.
        tried: How many faults there were.
        refused: Ended with a sentence, or with the exit code of a stopped command.
        unchanged: Had no effect on the result: the same bits, the same meaning or the same answer.
        other_input: Another valid input of the user's own, such as another digit in a table of numbers.
        lost: Something that had been complete was gone or could not be read, or half of a file was left.
        believed: Something false was accepted, or a foreign request was served.
        tracebacks: A traceback was shown, or another exception than QkvError left the library.
        hangs: There was no answer in time.
        seconds: How long all of it took.
        note: What a reader must know to understand the numbers.
        examples: The first few faults that did harm.
    """

    kind: str
    tried: int = 0
    refused: int = 0
    unchanged: int = 0
    other_input: int = 0
    lost: int = 0
    believed: int = 0
    tracebacks: int = 0
    hangs: int = 0
    seconds: float = 0.0
    note: str = ""
    examples: tuple[str, ...] = ()

    @property
    def harmless(self) -> bool:
        """Whether no fault did harm, and every one was counted."""
        counted = sum(getattr(self, name) for name in (*HARMLESS, *HARMFUL))
        return counted == self.tried and not any(getattr(self, name) for name in HARMFUL)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"examples": list(self.examples)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> FaultCount:
        return cls(**{**data, "examples": tuple(data.get("examples", ()))})


@dataclass
class Tally:
    """Counts faults of one kind as they happen."""

    kind: str
    total: int
    progress: Progress = lambda done, total: None
    counts: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def add(self, outcome: str, example: str = "") -> None:
        """Count one fault; `outcome` is a field of FaultCount."""
        if outcome not in (*HARMLESS, *HARMFUL):
            raise ValueError(f"no outcome {outcome!r}")
        self.counts[outcome] += 1
        if outcome in HARMFUL and len(self.examples) < MAX_EXAMPLES:
            self.examples.append(f"{outcome}: {example}"[:1500])
        self.progress(sum(self.counts.values()), self.total)

    def result(self, note: str = "") -> FaultCount:
        """The counts so far."""
        seconds = round(time.monotonic() - self.began, 2)
        tried = sum(self.counts.values())
        return FaultCount(self.kind, tried, **self.counts, seconds=seconds, note=note, examples=tuple(self.examples))


def nothing(done: int, total: int) -> None:
    """The progress of a caller who does not want any."""
