"""Files that qkv itself wrote: the documents of --json and the files of --save, as arrays by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qkv.errors import QkvError

SCHEMA, VERSION = "schema", "version"
"""The two fields that every document of --json begins with."""
SCHEMA_PREFIX = "qkv/"
CERTIFICATE_PREFIX = "qkv-certificate/"
ALIASES = {
    "query": ("queries",),
    "target": ("output", "output_mean"),
    "along": ("query",),
    "A": ("matrix",),
    "B": ("matrix",),
}
"""By which name a command asks for an array, and under which names the results of other commands hold it."""


def is_result(data: Any) -> bool:
    """Whether a JSON value is a document of --json."""
    return isinstance(data, Mapping) and str(data.get(SCHEMA, "")).startswith(SCHEMA_PREFIX)


def is_saved(data: Any) -> bool:
    """Whether a JSON value is a file of --save, or a certificate."""
    return isinstance(data, Mapping) and str(data.get("format", "")).startswith(CERTIFICATE_PREFIX)


def named_arrays(request: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a result that may be used as input, by name; other objects are returned as they are.

    Of a file of --save, these are the fields of the result and the raw inputs of its first certificate, among them keys
    and values.

    Raises:
        QkvError: It is the document of a refusal.
    """
    if is_result(data):
        if data[SCHEMA] == f"{SCHEMA_PREFIX}error":
            problem = f"it holds the refusal of another command ({data.get('message')})"
            raise QkvError(request, problem, "Mend that command first")
        return _with_aliases({name: value for name, value in data.items() if name not in (SCHEMA, VERSION)})
    if is_saved(data):
        certificates = data.get("certificates") or [data]
        inputs = certificates[0].get("data", {}) if isinstance(certificates[0], Mapping) else {}
        return _with_aliases({**inputs, **(data.get("result") or {})})
    return dict(data)


def _with_aliases(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are not null, also under the names by which commands ask for them."""
    found = {name: value for name, value in fields.items() if value is not None}
    for name, others in ALIASES.items():
        held = [found[other] for other in others if other in found]
        if held:
            found.setdefault(name, held[0])
    return found
