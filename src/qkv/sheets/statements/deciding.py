"""Claims of a sheet and their verdicts: built from givens, definitions and a statement, decided once each."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace

from qkv.claims.pipeline import decided
from qkv.claims.verdict import Verdict

SECONDS_PER_CLAIM = 8.0
SECONDS_PER_SHEET = 40.0  # of the processor; a sheet takes about 5
MAX_SECONDS = 150.0  # of the clock, on a machine that does much else
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


_SCALE = re.compile(r"(?:^given |, )([a-z]+) > 0(?=,|$)", re.M)
_FIXED = ("gamma", "m", "eps", "n")  # letters of the problem, not of an author
_CANONICAL = ("t", "tau", "rho", "kappa", "omega", "zeta")


def canonical(text: str) -> tuple[str, dict[str, str]]:
    """A claim with its positive letters renamed in their order, and how to name them back.

    Claims that differ only in an author's letters become the same text.
    """
    letters = [name for name in dict.fromkeys(_SCALE.findall(text)) if name not in _FIXED]
    names = dict(zip(letters, _CANONICAL, strict=False))
    used = set(re.findall(r"[A-Za-z]+", text)) - set(letters)
    if len(letters) > len(_CANONICAL) or used & set(names.values()):
        return text, {}
    return _renamed(text, names), {new: old for old, new in names.items() if new != old}


def _renamed(text: str, names: dict[str, str]) -> str:
    if not names:
        return text
    pattern = "|".join(re.escape(name) for name in names)
    return re.sub(rf"(?<![A-Za-z_\\])(?:{pattern})(?![A-Za-z_])", lambda found: names[found[0]], text)


def _in_latex(latex: str, names: dict[str, str]) -> str:
    commands = {_command(old): _command(new) for old, new in names.items()}
    pattern = "|".join(re.escape(name) for name in commands)
    return re.sub(rf"(?<![A-Za-z\\])(?:{pattern})(?![A-Za-z])", lambda found: commands[found[0]] + " ", latex)


def _command(name: str) -> str:
    return name if len(name) == 1 else f"\\{name}"


def _told(found: Verdict, back: dict[str, str]) -> Verdict:
    """A verdict with the author's letters."""
    if not back:
        return found
    steps = tuple(replace(s, text=_renamed(s.text, back), latex=_in_latex(s.latex, back)) for s in found.derivation)
    example = _renamed(found.counterexample, back) if found.counterexample else found.counterexample
    says, because = _renamed(found.says, back), _renamed(found.because, back)
    return replace(found, says=says, because=because, derivation=steps, counterexample=example)


def remembered(text: str, seconds: float) -> Verdict | None:
    """The verdict on the one claim of a block, from memory if a claim that differs in letters at most was decided.

    At most MAX_KEPT verdicts are kept in a process, the oldest go first.
    """
    text, back = canonical(text)
    known = _KEPT.pop(text, None)
    if known is None:
        known = next(iter(decided(text, seconds)), None)
        if known is None or known.because.startswith("timed out"):
            return None if known is None else _told(known, back)
        while len(_KEPT) >= MAX_KEPT:
            del _KEPT[next(iter(_KEPT))]
    _KEPT[text] = known
    return _told(known, back)


def is_remembered(text: str) -> bool:
    """Whether a claim that differs in letters at most was decided."""
    return canonical(text)[0] in _KEPT


def decide(claim: ClaimText, budget: Budget) -> Verdict | None:
    """The verdict on a claim, from memory if it was decided before; None if the sheet's time is over."""
    text = claim.text
    if is_remembered(text):
        return remembered(text, 0.0)
    if budget.left <= 0:
        return None
    seconds = max(0.2, min(SECONDS_PER_CLAIM, budget.left))
    return remembered(text, seconds)
