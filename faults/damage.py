"""Damaged copies of bytes: flipped bits, other bytes and digits, inserted, removed, exchanged, zeroed bytes, cuts."""

from __future__ import annotations

import random
from collections.abc import Iterator

KINDS = ("bit",) * 6 + ("byte",) * 4 + ("digit",) * 3 + ("insert", "remove", "swap", "block") + ("cut",) * 3
"""How a copy is damaged; what is listed more often is drawn more often."""


def damaged_copies(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Copies with one damage each, all different from the original."""
    draw = random.Random(seed)
    made = 0
    while made < count:
        copy = _damaged(data, draw)
        if copy != data:
            made += 1
            yield copy


def _damaged(data: bytes, draw: random.Random) -> bytes:
    copy, at = bytearray(data), draw.randrange(len(data))
    kind = draw.choice(KINDS)
    if kind == "bit":
        copy[at] ^= 1 << draw.randrange(8)
    elif kind == "byte":
        copy[at] = draw.randrange(256)
    elif kind == "digit":  # the most plausible other text
        digits = [i for i in range(at, min(at + 200, len(data))) if 48 <= data[i] <= 57]
        if digits:
            copy[draw.choice(digits)] = draw.randrange(48, 58)
    elif kind == "insert":
        copy.insert(at, draw.choice(b'0123456789 "{}[],\n\x00'))
    elif kind == "remove":
        del copy[at]
    elif kind == "swap":
        other = draw.randrange(len(data))
        copy[at], copy[other] = copy[other], copy[at]
    elif kind == "block":
        copy[at : at + draw.randrange(1, 64)] = bytes(draw.randrange(64))
    else:
        del copy[at:]
    return bytes(copy)


def first_difference(good: bytes, copy: bytes) -> str:
    """Where two texts of bytes first differ, with their surroundings."""
    at = next((i for i, (a, b) in enumerate(zip(good, copy, strict=False)) if a != b), min(len(good), len(copy)))
    return f"at {at} of {len(good)}: {good[max(0, at - 20) : at + 20]!r} became {copy[max(0, at - 20) : at + 20]!r}"
