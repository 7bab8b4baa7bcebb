"""wire_texts: heads for the rules of texts, for every text over a vocabulary or for given texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qkv.core.validation import finite, tolerance
from qkv.design.sequences.circuit import Circuit
from qkv.design.sequences.every_text import Progress, circuit_for_every_text
from qkv.design.sequences.given_texts import head_for_given_texts
from qkv.design.sequences.rules import ListedReads, ReadRule
from qkv.design.sequences.texts import Sequences, Vocabulary
from qkv.errors import QkvError, kind_of


def wire_texts(
    texts: Vocabulary | Sequences,
    reads: ReadRule | Sequence[Mapping[int, int | Sequence[int]]],
    tol: float = 1e-3,
    least_gap: float = 1e-3,
    memory_limit: float = 8e9,
    callback: Progress | None = None,
) -> Circuit:
    """Find the attention with which the tokens of texts read by a rule, under a causal mask.

    Given a vocabulary, the circuit is in closed form, and its certificate covers every text over that vocabulary up to
    its number of positions. Given sequences, it is the head with the smallest W = QᵀK for them, and its certificate
    covers those texts and no others.

    Args:
        texts: A vocabulary, for every text over it; or sequences, for those texts alone.
        reads: The rule: `previous()`, `duplicate()` or `induction()`. For given texts also a list with one mapping per
            text, from a position to the position, or the positions in equal parts, that it reads.
        tol: Largest total-variation distance of each rule's weights from the wanted ones.
        least_gap: For every text: tokens whose score with themselves is not above that with every other token by this
            share of the largest are excluded, and named. A small gap needs a large W.
        memory_limit: For given texts: bytes that the design may use, approximately; larger requests are refused with
            what would fit.
        callback: Called with the work done and all of it: tokens compared, or percent for given texts.

    Returns:
        A `Circuit` with its layers and its certificate, or with the reasons why there are none.

    Raises:
        QkvError: If an argument is malformed, if tokens and positions cannot be read apart, or if the memory is too
            small.

    Example:
        >>> import qkv
        >>> words = qkv.design.Vocabulary.side_by_side([[1, 0], [0, 1], [1, 1]], length=6)
        >>> circuit = qkv.design.wire_texts(words, qkv.design.induction())
        >>> circuit.weights([0, 1, 2, 0])[-1][3].round(decimals=2).tolist()
        [0.0, 1.0, 0.0, 0.0]
        >>> bool(circuit.certificate.verify())
        True
    """
    request = "wiring texts"
    tol = tolerance(request, tol)
    gap = finite(request, "least_gap", least_gap)
    memory = finite(request, "memory_limit", memory_limit)
    if not 0 <= gap < 1:
        raise QkvError(request, f"least_gap is {least_gap!r}", "Give a number from 0 to below 1, such as 1e-3")
    if isinstance(texts, Sequences) and isinstance(reads, list | tuple):
        return head_for_given_texts(texts, ListedReads.of(texts.ids, reads), tol, memory, callback)
    if not isinstance(reads, ReadRule):
        hint = "Give previous(), duplicate() or induction(); for Sequences also a list with one mapping per text"
        raise QkvError(request, f"reads is {kind_of(reads)}", hint)
    if isinstance(texts, Vocabulary):
        return circuit_for_every_text(texts, reads, tol, gap, callback)
    if isinstance(texts, Sequences):
        return head_for_given_texts(texts, reads, tol, memory, callback)
    raise QkvError(request, f"texts is {kind_of(texts)}", "Give a Vocabulary or Sequences")
