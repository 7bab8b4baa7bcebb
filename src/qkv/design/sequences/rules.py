"""ReadRule: what each position of a text reads; previous, duplicate and induction."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

from qkv.core.validation import whole
from qkv.design.certificates.statements.text_rules import SENTENCES, SINK_SENTENCE, targets
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


def previous() -> ReadRule:
    """Each token reads the one before it; the first has no rule.

    Returns:
        The rule.

    Raises:
        Nothing.

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
