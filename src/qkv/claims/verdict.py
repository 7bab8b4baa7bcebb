"""Verdict, Verdicts, Step: the results of checking claims, with terminal, HTML and JSON views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from qkv.core.display import Card, Displayable

KINDS = ("proved", "holds", "conditional", "refuted", "malformed", "undecided")
"""Every verdict there is, from the strongest to the weakest."""

SIGNS = {"proved": "✓", "holds": "≈", "conditional": "±", "refuted": "✗", "malformed": "?", "undecided": "…"}


@dataclass(frozen=True)
class Step:
    """One line of a derivation.

    Attributes:
        text: The line in the language of claims.
        latex: The same as LaTeX, without dollar signs.

    Example:
        >>> from qkv.claims import check
        >>> (verdict,) = check("```claim x\\ngiven t > 0\\nthen 2*t > t\\n```")
        >>> verdict.derivation[-1].text
        'left minus right is t, which is positive for all allowed values'
    """

    text: str
    latex: str


@dataclass(frozen=True)
class KernelCheck:
    """What a proof assistant says of a proved claim (docs/kernel.md).

    Attributes:
        checker: The proof assistant with its version, such as "Coq 8.16".
        accepted: Whether it accepted a proof of the theorem; if not, the claim is proved by qkv alone.
        form: What the theorem speaks of, such as "over vectors and n items"; empty without one.
        theorem: The theorem that was checked, to be read beside the claim; empty without one.
        because: Why there is no accepted theorem.

    Example:
        >>> from qkv.claims import KernelCheck
        >>> KernelCheck("Coq 8.16", True, "over vectors and n items", "Theorem claim : 1 = 1.").text
        'checked by Coq 8.16 over vectors and n items'
    """

    checker: str
    accepted: bool
    form: str = ""
    theorem: str = ""
    because: str = ""

    @property
    def text(self) -> str:
        """The check in one line."""
        return f"checked by {self.checker} {self.form}" if self.accepted else f"by qkv alone: {self.because}"

    def to_json(self) -> dict[str, Any]:
        """The check as one JSON object."""
        return asdict(self)


@dataclass(frozen=True)
class Verdict(Displayable):
    """The verdict on one claim.

    Attributes:
        id: The name of the claim, with `#2` for the second statement of a block.
        verdict: "proved", "holds", "conditional", "refuted", "malformed" or "undecided" (docs/claims.md).
        says: The statement as it was written.
        because: What the verdict rests on, in one sentence.
        derivation: The steps of the symbolic argument; empty without one.
        counterexample: An instance on which the claim is false, as assignments that Python accepts, or None.
        kernel: What a proof assistant says, of a proved claim when it was asked (docs/kernel.md); else None.

    Example:
        >>> from qkv.claims import check
        >>> (verdict,) = check("```claim sign\\ngiven t > 0\\nthen t < 0\\n```")
        >>> verdict.verdict, verdict.because
        ('refuted', 'left minus right is positive for all allowed values')
        >>> print(verdict.counterexample)
        n = 1
        t = 1.0
        left = 1.0
        right = 0.0
    """

    id: str
    verdict: str
    says: str
    because: str
    derivation: tuple[Step, ...] = ()
    counterexample: str | None = None
    kernel: KernelCheck | None = None

    @property
    def words(self) -> str:
        """The verdict in words, with what a proof assistant says: "proved, and checked by Coq 8.16"."""
        if self.kernel is None:
            return self.verdict
        return f"proved, and checked by {self.kernel.checker}" if self.kernel.accepted else "proved, by qkv alone"

    def to_json(self) -> dict[str, Any]:
        """The verdict as one JSON object."""
        return {
            "id": self.id,
            "verdict": self.verdict,
            "says": self.says,
            "because": self.because,
            "derivation": [{"text": s.text, "latex": s.latex} for s in self.derivation],
            "counterexample": self.counterexample,
            "kernel": None if self.kernel is None else self.kernel.to_json(),
        }

    def card(self) -> Card:
        """The view that the terminal, HTML and notebooks render."""
        facts = [("claim", self.says), ("because", self.because)]
        if self.kernel is not None:
            facts.append(("kernel", self.kernel.text))
            facts += [("theorem" if i == 0 else "", line) for i, line in enumerate(self.kernel.theorem.splitlines())]
        facts += [(f"step {i}", s.text) for i, s in enumerate(self.derivation, 1)]
        if self.counterexample:
            facts += [("numbers" if i == 0 else "", line) for i, line in enumerate(self.counterexample.split("\n"))]
        return Card(f"{SIGNS[self.verdict]} {self.words}: {self.id}", tuple(facts))


@dataclass(frozen=True)
class Verdicts(Displayable):
    """The verdicts on a document, in its order; `len`, iteration and indexing by position or by claim id work.

    Attributes:
        verdicts: One for each statement.

    Example:
        >>> from qkv.claims import check
        >>> found = check("```claim x\\ngiven t > 0\\nthen t > 0\\nthen t < 0\\n```")
        >>> len(found), found[0].verdict, found["x #2"].verdict
        (2, 'proved', 'refuted')
        >>> found.counts()
        {'proved': 1, 'refuted': 1}
    """

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
        """How many claims got each verdict, in the order of KINDS."""
        found = Counter(v.verdict for v in self.verdicts)
        return {kind: found[kind] for kind in KINDS if found[kind]}

    def to_json(self) -> dict[str, Any]:
        """The verdicts as one JSON object."""
        return {"verdicts": [v.to_json() for v in self.verdicts]}

    def card(self) -> Card:
        """The view that the terminal, HTML and notebooks render."""
        many = len(self.verdicts)
        return Card(
            f"{many} claim{'s' * (many != 1)}",
            tuple((kind, str(count)) for kind, count in self.counts().items()),
            ("claim", "verdict", "says", "because"),
            tuple((v.id, f"{SIGNS[v.verdict]} {v.words}", v.says, v.because) for v in self.verdicts),
            "" if many else "There is no ```claim block in this text.",
        )
