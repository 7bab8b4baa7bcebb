"""JSON of bounded depth without duplicate names, and objects that carry a checksum of their content."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from qkv.errors import kind_of

MAX_DEPTH = 100
"""Deepest nesting of lists and objects; deeper ones could exhaust the stack wherever they are walked through."""
MAX_BYTES = 2**26
"""Longest JSON file of those that qkv writes; files of arrays may be longer."""
CHECKSUM = "checksum"
EDITED = "edited"
"""The value of `checksum` that says: this file was edited by hand, and is to be read without a check."""
EDIT_HINT = f'Restore it from a copy or, if you edited it by hand, set "{CHECKSUM}" in it to "{EDITED}"'
# Strings (an unclosed one to the end) and runs of anything but brackets. Possessive, so that the time is linear.
_NO_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[^][{}"]++', re.DOTALL)


def parse_json(text: str, **numbers: Any) -> Any:
    """The value of a JSON text; `parse_int` and the like, by which `json.loads` reads numbers, may be given.

    Raises:
        ValueError: The text is not JSON, is nested deeper than MAX_DEPTH, or an object in it has a name twice.
    """
    depth = _depth(text)
    if depth > MAX_DEPTH:
        raise ValueError(f"its values are nested {depth} deep, and {MAX_DEPTH} is the limit")
    return json.loads(text, object_pairs_hook=_unique_names, **numbers)


def read_json(path: Path, max_bytes: int = MAX_BYTES) -> Any:
    """The value in a JSON file; a file of more than `max_bytes` is not read.

    Raises:
        ValueError: The file is too long, or `parse_json` refuses its text.
        OSError: The file cannot be read.
    """
    if (size := path.stat().st_size) > max_bytes:
        raise ValueError(f"it has {size:,} bytes, and {max_bytes:,} is the limit")
    return parse_json(path.read_text(encoding="utf-8"))


def content_checksum(content: bytes) -> str:
    """The checksum of bytes: the first 16 digits of their SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


def with_checksum(data: Mapping[str, Any]) -> dict[str, Any]:
    """JSON data with the checksum of its content as a last field.

    The checksum is that of the values, not of the text: it stays the same if the file is indented or its fields are
    reordered.
    """
    content = {name: value for name, value in data.items() if name != CHECKSUM}
    return {**content, CHECKSUM: _checksum(json.loads(json.dumps(content)))}


def verified(data: Any, *, required: bool = True, by_hand: bool = True) -> dict[str, Any]:
    """A JSON object without its checksum, which must fit.

    Args:
        data: What `parse_json` returned.
        required: Whether the checksum may not be missing; files of formats that had none lack it.
        by_hand: Whether a person may have edited the file and said so, with EDITED as its checksum.

    Raises:
        ValueError: It is not an object, or the checksum is missing or does not fit.
    """
    if not isinstance(data, dict):
        raise ValueError(f"it holds {kind_of(data)}, not an object")
    content = {name: value for name, value in data.items() if name != CHECKSUM}
    if CHECKSUM not in data:
        if required:
            raise ValueError("its checksum is missing")
    elif not (by_hand and data[CHECKSUM] == EDITED) and data[CHECKSUM] != _checksum(content):
        raise ValueError("its checksum does not fit its content")
    return content


def _checksum(content: dict[str, Any]) -> str:
    return content_checksum(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


def _depth(text: str) -> int:
    """How deep lists and objects are nested in a JSON text; 0 if there are too few of them to matter."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return 0
    brackets = _NO_BRACKETS.sub("", text)
    return max(accumulate(1 if bracket in "[{" else -1 for bracket in brackets), default=0)


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object in it has a name twice")
    return found
