"""The verdict on a claim, and the verdicts on a document, as values that show themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from qkv.core.display import Card, Displayable

KINDS = ("proved", "holds", "conditional", "refuted", "malformed", "undecided")
SIGNS = {"proved": "✓", "holds": "≈", "conditional": "±", "refuted": "✗", "malformed": "?", "undecided": "…"}


@dataclass(frozen=True)
class Step:
    """One line of a derivation."""

    text: str
    latex: str


@dataclass(frozen=True)
class Verdict(Displayable):
    """What checking one claim gave.

    `says` is the statement, `because` what the verdict rests on, `derivation` the steps of a symbolic argument, and
    `counterexample` assignments that Python accepts.
    """

    id: str
    verdict: str
    says: str
    because: str
    derivation: tuple[Step, ...] = ()
    counterexample: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "verdict": self.verdict,
            "says": self.says,
            "because": self.because,
            "derivation": [{"text": s.text, "latex": s.latex} for s in self.derivation],
            "counterexample": self.counterexample,
        }

    def card(self) -> Card:
        facts = [("claim", self.says), ("because", self.because)]
        facts += [(f"step {i}", s.text) for i, s in enumerate(self.derivation, 1)]
        if self.counterexample:
            facts += [("numbers" if i == 0 else "", line) for i, line in enumerate(self.counterexample.split("\n"))]
        return Card(f"{SIGNS[self.verdict]} {self.verdict}: {self.id}", tuple(facts))


@dataclass(frozen=True)
class Verdicts(Displayable):
    """The verdicts on a document, in its order."""

    verdicts: tuple[Verdict, ...]

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    def __getitem__(self, which: int | str) -> Verdict:
        if isinstance(which, int):
            return self.verdicts[which]
        for one in self.verdicts:
            if one.id == which:
                return one
        raise KeyError(which)

    def counts(self) -> dict[str, int]:
        found = Counter(v.verdict for v in self.verdicts)
        return {kind: found[kind] for kind in KINDS if found[kind]}

    def to_json(self) -> dict[str, Any]:
        return {"verdicts": [v.to_json() for v in self.verdicts]}

    def card(self) -> Card:
        many = len(self.verdicts)
        return Card(
            f"{many} claim{'s' * (many != 1)}",
            tuple((kind, str(count)) for kind, count in self.counts().items()),
            ("claim", "verdict", "says", "because"),
            tuple((v.id, f"{SIGNS[v.verdict]} {v.verdict}", v.says, v.because) for v in self.verdicts),
            "" if many else "There is no ```claim block in this text.",
        )
