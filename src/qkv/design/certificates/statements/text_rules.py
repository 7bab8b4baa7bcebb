"""The rules of texts, previous, duplicate and induction: which positions each position of a text reads."""

from __future__ import annotations

from collections.abc import Sequence

RULES = ("previous", "duplicate", "induction")
SENTENCES = {
    "previous": "each token but the first reads the one before it",
    "duplicate": "each token with earlier equal ones reads those, in equal parts",
    "induction": "each token with earlier equal ones reads the tokens after those, in equal parts",
}
LISTED = "listed"
"""The rule of given texts whose reads are listed one by one."""
LISTED_SENTENCE = "each listed position reads the positions listed for it, in equal parts"
SINK_SENTENCE = "each other token reads the first"


def targets(rule: str, ids: Sequence[int], sink: bool = False) -> dict[int, tuple[int, ...]]:
    """The positions that each position of a text reads, in equal parts.

    Args:
        rule: "previous", "duplicate" or "induction".
        ids: The numbers of the tokens of the text.
        sink: Whether the first token is a sink, which positions without anything else to read read. It then stands for
            no text itself: nothing is equal to it.

    Returns:
        For each position with a rule, the positions that it reads, in order. Every one is at or before it.
    """
    out: dict[int, tuple[int, ...]] = {}
    seen: dict[int, list[int]] = {}
    for i, token in enumerate(ids):
        earlier = seen.get(token, [])
        read: tuple[int, ...]
        if rule == "previous":
            read = (i - 1,) if i else ()
        elif rule == "duplicate":
            read = tuple(earlier)
        elif rule == "induction":
            read = tuple(j + 1 for j in earlier)
        else:
            raise ValueError(f"there is no rule {rule!r}; there are {', '.join(RULES)}")
        if read or sink:
            out[i] = read or (0,)
        if i or not sink:
            seen.setdefault(token, []).append(i)
    return out
