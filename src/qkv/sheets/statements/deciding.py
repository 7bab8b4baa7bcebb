"""Claims of a sheet and their verdicts: built from givens, definitions and a statement, decided once each."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from qkv.claims.pipeline import decided
from qkv.claims.verdict import Verdict

SECONDS_PER_CLAIM = 8.0
SECONDS_PER_SHEET = 15.0  # of the processor
MAX_SECONDS = 90.0  # of the clock, on a machine that does much else
MAX_KEPT = 20_000

_KEPT: dict[str, Verdict] = {}


@dataclass(frozen=True)
class ClaimText:
    """A claim: its givens, definitions and statement."""

    given: tuple[str, ...]
    let: tuple[str, ...]
    then: str

    @property
    def body(self) -> str:
        """The lines of the block."""
        lines = [f"given {', '.join(self.given)}"] if self.given else []
        lines += [f"let   {', '.join(self.let)}"] if self.let else []
        return "\n".join([*lines, f"then  {self.then}"])

    @property
    def text(self) -> str:
        """The block as docs/claims.md describes it."""
        return f"```claim statement\n{self.body}\n```"


@dataclass
class Budget:
    """The time that one sheet may take."""

    seconds: float = SECONDS_PER_SHEET
    started: float = field(default_factory=time.process_time)
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """The seconds that are left."""
        if time.monotonic() - self.began > MAX_SECONDS:
            return 0.0
        return self.seconds - (time.process_time() - self.started)


def decide(claim: ClaimText, budget: Budget) -> Verdict | None:
    """The verdict on a claim, from memory if it was decided before; None if the sheet's time is over."""
    text = claim.text
    known = _KEPT.get(text)
    if known is not None:
        return known
    if budget.left <= 0:
        return None
    seconds = max(0.2, min(SECONDS_PER_CLAIM, budget.left))
    found = next(iter(decided(text, seconds)), None)
    if found is None:
        return None
    if len(_KEPT) < MAX_KEPT and not found.because.startswith("timed out"):
        _KEPT[text] = found
    return found
