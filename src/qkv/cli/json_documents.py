"""The documents that --json prints: a schema, a version, and the fields of the result, always the same ones."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from qkv.cli.exit_codes import BAD_INPUT, running_verb
from qkv.core.documents import SCHEMA, SCHEMA_PREFIX, VERSION

if TYPE_CHECKING:
    from qkv.errors import QkvError

CURRENT_VERSION = 1
"""It rises when a field is removed or changes its meaning; new fields may come without."""
ERROR = "error"
wants_json: ContextVar[bool] = ContextVar("wants_json", default=False)
"""Whether the running call asks for a document."""


def asks_for_json(words: Sequence[str], takes_value: Collection[str] = ()) -> bool:
    """Whether --json is among the words of a call, before the -- that ends its options.

    Args:
        words: The words.
        takes_value: Options with a value: a -- behind one is that value.
    """
    is_value = False
    for word in words:
        if word == "--json" or (word == "--" and not is_value):
            return word == "--json"
        is_value = not is_value and word in takes_value
    return False


def schema_name(verb: str) -> str:
    """The name of the schema of a command's document: "qkv/design-blend" for "design blend"."""
    return SCHEMA_PREFIX + (verb.replace(" ", "-") or "result")


def document(fields: Mapping[str, Any], verb: str | None = None) -> dict[str, Any]:
    """The document of a command, by default of the running one."""
    name = schema_name(running_verb.get() if verb is None else verb)
    return {SCHEMA: name, VERSION: CURRENT_VERSION, **fields}


def document_text(fields: Mapping[str, Any], verb: str | None = None) -> str:
    """The document as one line of JSON."""
    found = document(fields, verb)
    try:
        return json.dumps(found, allow_nan=False) + "\n"
    except ValueError:  # a number that JSON lacks, which becomes null; looking for it first would cost as much again
        from qkv.core.display import plain  # it imports numpy, which `qkv --help` does not need

        return json.dumps(plain(found), allow_nan=False) + "\n"


def error_text(error: QkvError | str) -> str:
    """The document of a refusal, as one line of JSON."""
    told = {name: getattr(error, name, None) for name in ("request", "problem", "hint")}
    fields = {"message": str(error), **told, "exit_code": BAD_INPUT, "command": running_verb.get() or None}
    return document_text(fields, ERROR)
