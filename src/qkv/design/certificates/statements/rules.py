"""Rules "this token reads those": parsing, and which tokens a rule's token sees."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from qkv.core.types import BoolArray, FloatArray, IntArray
from qkv.design.certificates.statements.base import (
    Data,
    InvalidCertificate,
    array,
    indices,
    matching,
    numbers,
    scalar,
    whole,
)

FIELDS = ("rules", "wanted", "reads", "items", "offsets", "weights", "mask", "lengths")
"""Names of data that `parse_rules` reads."""


@dataclasses.dataclass(frozen=True, eq=False)
class Rules:
    """Rules over tokens, which may be several sequences one after the other.

    Attributes:
        readers: The token of each rule.
        offsets: Rule r reads items[offsets[r]:offsets[r + 1]].
        items: Tokens that are read, ascending for each rule where they come from a table of wanted weights.
        weights: Their weights, positive.
        starts: First token of each sequence, and the number of all tokens.
        mask: "causal", a table (tokens, tokens) that is True where a token may attend to another, or None.
    """

    readers: IntArray
    offsets: IntArray
    items: IntArray
    weights: FloatArray
    starts: IntArray
    mask: BoolArray | str | None

    @property
    def count(self) -> int:
        """Number of rules."""
        return len(self.readers)

    def entries(self, row: int) -> slice:
        """Where the items of a rule stand."""
        return slice(int(self.offsets[row]), int(self.offsets[row + 1]))

    def sequences(self) -> Iterator[tuple[IntArray, int, int]]:
        """For each sequence with rules: its rules, its first token, and the token after its last."""
        home = np.searchsorted(self.starts, self.readers, side="right") - 1
        order = np.argsort(home, kind="stable")
        bounds = np.flatnonzero(np.diff(home[order])) + 1
        for rows in np.split(order, bounds):
            start, stop = self.starts[home[rows[0]]], self.starts[home[rows[0]] + 1]
            yield rows, int(start), int(stop)

    def visible(self, rows: IntArray, start: int, stop: int) -> BoolArray:
        """Which tokens of a sequence the tokens of some of its rules may attend to, (rules, tokens)."""
        readers = self.readers[rows]
        if self.mask is None:
            return np.ones((len(rows), stop - start), dtype=bool)
        if isinstance(self.mask, str):
            return np.arange(start, stop) <= readers[:, None]
        return self.mask[readers, start:stop]

    def seen(self, row: int) -> list[int]:
        """The tokens that the token of one rule may attend to."""
        home = int(np.searchsorted(self.starts, self.readers[row], side="right")) - 1
        start, stop = int(self.starts[home]), int(self.starts[home + 1])
        return (start + np.flatnonzero(self.visible(np.array([row]), start, stop)[0])).tolist()

    def wanted(self, tokens: int) -> FloatArray:
        """The wanted weights as a table, (rules, tokens)."""
        out = np.zeros((self.count, tokens))
        out[np.repeat(np.arange(self.count), np.diff(self.offsets)), self.items] = self.weights
        return out


def parse_rules(data: Data, tokens: int) -> Rules:
    """The rules of a certificate, in one of three forms: people's `reads`, a table `wanted`, or lists of items."""
    forms = [name for name in ("reads", "wanted", "items") if name in data]
    if len(forms) != 1 or ("reads" in data and "rules" in data):
        raise InvalidCertificate(
            "the rules are either reads {token: token or blend}, the arrays rules and wanted, or the arrays rules, "
            "items, offsets and weights"
        )
    if "reads" in data:
        data = _from_reads(data, tokens)
    readers = np.array(indices(data, "rules", tokens), dtype=np.int64)
    if "wanted" in data:
        wanted = array(data, "wanted", 2)
        matching("rules and wanted weights", len(readers), wanted.shape[0])
        matching("tokens and wanted weights", tokens, wanted.shape[1])
        if (wanted < 0).any():
            raise InvalidCertificate("the wanted weights of each rule must be non-negative and sum to 1")
        rows, items = np.nonzero(wanted)
        offsets, weights = (
            np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(readers)))]),
            wanted[rows, items],
        )
    else:
        items = whole("items", numbers(data, "items"), tokens - 1)
        offsets = whole("offsets", numbers(data, "offsets"), len(items))
        weights = array(data, "weights", 1)
        matching("items and weights", len(items), len(weights))
        matching("rules and offsets", len(readers) + 1, len(offsets))
        if offsets[0] != 0 or offsets[-1] != len(items) or (np.diff(offsets) < 1).any() or (weights <= 0).any():
            raise InvalidCertificate("a rule reads nothing, or has a weight that is not positive")
        pairs = np.repeat(np.arange(len(readers)), np.diff(offsets)) * tokens + items
        if len(np.unique(pairs)) != len(pairs):
            raise InvalidCertificate("a rule names a token twice")
    sizes = np.diff(offsets)
    if (sizes < 1).any() or (np.abs(np.add.reduceat(weights, offsets[:-1]) - 1) > 1e-9).any():
        raise InvalidCertificate("the wanted weights of each rule must be non-negative and sum to 1")
    found = Rules(readers, offsets, items, weights, _starts(data, tokens), _mask(data, tokens))
    _check_visible(found)
    return found


def scope(data: Data) -> str:
    """In words, which tokens a rule's token sees, where that is not all of them."""
    parts = []
    if "lengths" in data:
        count = int(np.size(data["lengths"]))
        parts.append(f"in the {count} given sequences, " if count > 1 else "in the given sequence, ")
    if "mask" in data:
        parts.append("under a causal mask, " if isinstance(data["mask"], str) else "under the given mask, ")
    return "".join(parts)


def _starts(data: Data, tokens: int) -> IntArray:
    if "lengths" not in data:
        return np.array([0, tokens], dtype=np.int64)
    lengths = whole("lengths", np.atleast_1d(numbers(data, "lengths")), tokens)
    if (lengths < 1).any() or int(lengths.sum()) != tokens:
        raise InvalidCertificate(f"the lengths of the sequences must be positive and sum to the {tokens} tokens")
    return np.concatenate([[0], np.cumsum(lengths)])


def _mask(data: Data, tokens: int) -> BoolArray | str | None:
    if "mask" not in data:
        return None
    if isinstance(data["mask"], str):
        if data["mask"] != "causal":
            raise InvalidCertificate(f"the mask is {data['mask']!r}; there is 'causal', or a table of 0 and 1")
        return "causal"
    table = array(data, "mask", 2)
    if table.shape != (tokens, tokens) or not np.isin(table, (0.0, 1.0)).all():
        raise InvalidCertificate(f"the mask is no table of 0 and 1 with {tokens} rows and columns")
    return np.asarray(table == 1)


def _check_visible(rules: Rules) -> None:
    """Refuse rules that read a token of another sequence, or one that the mask hides."""
    if rules.mask is None and len(rules.starts) == 2:
        return
    for rows, start, stop in rules.sequences():
        entries = np.concatenate([np.arange(rules.offsets[r], rules.offsets[r + 1]) for r in rows])
        owner = np.repeat(np.arange(len(rows)), np.diff(rules.offsets)[rows])
        items = rules.items[entries]
        outside = (items < start) | (items >= stop)
        shown = rules.visible(rows, start, stop)
        outside[~outside] |= ~shown[owner[~outside], items[~outside] - start]
        if outside.any():
            first = int(np.flatnonzero(outside)[0])
            reader = int(rules.readers[rows[owner[first]]])
            raise InvalidCertificate(f"token {reader} should read token {int(items[first])}, which it does not see")


def _from_reads(data: Data, tokens: int) -> dict[str, Any]:
    if not isinstance(data["reads"], Mapping):
        raise InvalidCertificate("the rules are either reads {token: token or blend} or the arrays rules and wanted")
    reads = by_token("reads", data["reads"])
    rules = list(reads)  # in the order of the file, which arrays of writes and bounds follow
    wanted = np.zeros((len(rules), tokens))
    for row, i in enumerate(rules):
        blend = reads[i] if isinstance(reads[i], Mapping) else {reads[i]: 1.0}
        for j, w in by_token(f"what token {i} reads", blend).items():
            if not 0 <= j < tokens:
                raise InvalidCertificate(f"rule {i} reads token {j}, and there are {tokens}")
            wanted[row, j] = scalar({"weight": w}, "weight")
    return {**data, "rules": np.array(rules, dtype=float), "wanted": wanted}


def by_token(what: str, named: Mapping[Any, Any]) -> dict[int, Any]:
    """A mapping by token number; JSON names are strings, so "2" stands for 2."""
    out: dict[int, Any] = {}
    for token, value in named.items():
        text = str(int(token)) if isinstance(token, float) and token.is_integer() else str(token)
        if not (text.isascii() and text.isdigit() and str(int(text)) == text):
            raise InvalidCertificate(f"{what} names the token {token!r}, which is no whole number")
        if int(text) in out:
            raise InvalidCertificate(f"{what} names token {int(text)} twice")
        out[int(text)] = value
    return out
