"""ReadRule: what each position of a text reads; previous, duplicate and induction."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from qkv.core.validation import whole
from qkv.design.certificates.statements.text_rules import (
    LISTED_SENTENCE,
    SENTENCES,
    SINK_SENTENCE,
    targets,
)
from qkv.errors import QkvError


@dataclasses.dataclass(frozen=True)
class ReadRule:
    """A rule for the positions of every text, under a causal mask.

    Attributes:
        name: "previous", "duplicate" or "induction".
        sink: The token at the start of every text that positions without anything to read read instead; or None,
            where those positions have no rule.
    """

    name: Literal["previous", "duplicate", "induction"]
    sink: int | None = None

    def targets(self, ids: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """The positions that each position of a text reads, in equal parts; positions without a rule are left out.

        Args:
            ids: The numbers of the tokens of the text.

        Returns:
            Positions to read, by the position that reads them.

        Raises:
            QkvError: If the rule has a sink, and the text does not begin with it or holds it again.
        """
        if self.sink is not None and (not ids or ids[0] != self.sink or self.sink in ids[1:]):
            problem = f"the sink is token {self.sink}, and the text is {list(ids[:6])}…"
            raise QkvError(f"the rule {self.name}", problem, "Begin each text with the sink, and hold it nowhere else")
        return targets(self.name, ids, self.sink is not None)

    def __str__(self) -> str:
        return SENTENCES[self.name] + ("" if self.sink is None else f", and {SINK_SENTENCE}")


@dataclasses.dataclass(frozen=True)
class ListedReads:
    """Reads that are listed for each of given texts, position by position.

    Attributes:
        texts: Each text, with the positions that its positions read, in equal parts.
        name: "listed".
        sink: None: positions that are not listed have no rule.
    """

    texts: tuple[tuple[tuple[int, ...], dict[int, tuple[int, ...]]], ...] = dataclasses.field(repr=False)
    name: Literal["listed"] = "listed"
    sink: None = None

    @classmethod
    def of(cls, ids: Sequence[Sequence[int]], reads: Sequence[Mapping[int, int | Sequence[int]]]) -> ListedReads:
        """Check reads, one mapping per text from a position to the one, or the ones, that it reads."""
        request = f"reads listed for {len(ids)} texts"
        if len(reads) != len(ids):
            raise QkvError(request, f"there are {len(reads)} lists", "Give one mapping per text, {} for no rule")
        out: dict[tuple[int, ...], dict[int, tuple[int, ...]]] = {}
        listed = [(tuple(text), _listed(request, t, text, reads[t])) for t, text in enumerate(ids)]
        for t, (text, read) in enumerate(listed):
            if out.setdefault(text, read) != read:
                hint = "Put all reads of a text into one mapping"
                raise QkvError(request, f"text {t} was given before, with other reads", hint)
        return cls(tuple(listed))

    def targets(self, ids: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """The positions that each listed position of a given text reads, in equal parts.

        Args:
            ids: The numbers of the tokens of the text.

        Returns:
            Positions to read, by the position that reads them.

        Raises:
            QkvError: If the text is not one of those that reads are listed for.
        """
        for text, reads in self.texts:
            if text == tuple(ids):
                return reads
        hint = "Ask about one of the given texts"
        raise QkvError("reads listed for given texts", f"{list(ids[:6])}… is none of them", hint)

    def __str__(self) -> str:
        return LISTED_SENTENCE


def _listed(request: str, number: int, text: Sequence[int], reads: Any) -> dict[int, tuple[int, ...]]:
    """The reads of one text, in order; a rule that the causal mask or the text forbids is refused by name."""
    if not isinstance(reads, Mapping):
        raise QkvError(request, f"those of text {number} are {reads!r}", "Give a mapping {position: position}")
    out = {}
    for i, read in sorted(reads.items()):
        position = whole(request, f"a position of text {number}", i, 0)
        listed = [read] if not isinstance(read, Sequence) else read
        found = sorted(whole(request, f"what position {i} of text {number} reads", j, 0) for j in listed)
        if position >= len(text):
            problem = f"position {i} is listed for text {number}, which has {len(text)} tokens"
            raise QkvError(request, problem, f"List positions from 0 to {len(text) - 1}")
        if not found or len(set(found)) != len(found):
            raise QkvError(request, f"position {i} of text {number} reads {read!r}", "Name each position once")
        if found[-1] > position:
            problem = f"position {i} of text {number} reads {found[-1]}, which the causal mask hides"
            raise QkvError(request, problem, "Let positions read themselves or earlier ones")
        out[position] = tuple(found)
    return out


def previous() -> ReadRule:
    """Each token reads the one before it; the first has no rule.

    Returns:
        The rule.

    Example:
        >>> import qkv
        >>> qkv.design.previous().targets([7, 7, 8])
        {1: (0,), 2: (1,)}
    """
    return ReadRule("previous")


def duplicate(sink: int | None = None) -> ReadRule:
    """Each token reads all earlier tokens equal to it, in equal parts.

    Args:
        sink: The token at the start of every text that tokens without an earlier equal one read; None leaves those
            without a rule.

    Returns:
        The rule.

    Raises:
        QkvError: If `sink` is no whole number.

    Example:
        >>> import qkv
        >>> qkv.design.duplicate().targets([7, 8, 7, 7])
        {2: (0,), 3: (0, 2)}
    """
    return ReadRule("duplicate", _sink(sink))


def induction(sink: int | None = None) -> ReadRule:
    """Each token reads the tokens after all earlier tokens equal to it, in equal parts.

    After "a b … a" the last token reads b: two layers are needed, since no token alone shows what stood before it.

    Args:
        sink: As for `duplicate`.

    Returns:
        The rule.

    Raises:
        QkvError: If `sink` is no whole number.

    Example:
        >>> import qkv
        >>> qkv.design.induction().targets([7, 8, 7, 7])
        {2: (1,), 3: (1, 3)}
    """
    return ReadRule("induction", _sink(sink))


def _sink(sink: Any) -> int | None:
    return None if sink is None else whole("a rule with a sink", "sink", sink, 0)
