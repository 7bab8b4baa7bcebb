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

    Of a file of --save, these are the raw inputs of its first certificate, among them keys, values and query: what is
    verified is what is used. Of the result, which is there to be read by people, only the labels are taken.

    Raises:
        QkvError: It is the document of a refusal.
    """
    if is_result(data):
        if data[SCHEMA] == f"{SCHEMA_PREFIX}error":
            problem = f"it holds the refusal of another command ({data.get('message')})"
            raise QkvError(request, problem, "Mend that command first")
        return _with_aliases({name: value for name, value in data.items() if name not in (SCHEMA, VERSION)})
    if is_saved(data):
        return _with_aliases(_certified(data))
    return dict(data)


def _certified(data: Mapping[str, Any]) -> dict[str, Any]:
    """The raw inputs of the first certificate, with the labels of the items; wanted weights by label."""
    certificates, result = data.get("certificates") or [data], data.get("result")
    first = certificates[0] if isinstance(certificates, list) else None
    inputs = first.get("data") if isinstance(first, Mapping) else None
    found = dict(inputs) if isinstance(inputs, Mapping) else {}
    labels = result.get("labels") if isinstance(result, Mapping) else None
    if labels is not None:
        found["labels"] = labels
    items, weights = (_listed(found.get(name)) for name in ("items", "wanted"))
    if items and len(items) == len(weights):
        names = labels if isinstance(labels, list) else []
        labelled = (names[int(i)] if 0 <= i < len(names) else int(i) for i in items)
        found["wanted"] = {str(label): weight for label, weight in zip(labelled, weights, strict=True)}
    return found


def _listed(value: Any) -> list[float]:
    """The numbers of a list or of a vector; none if it is something else."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return value if isinstance(value, list) and all(isinstance(each, int | float) for each in value) else []


def _with_aliases(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are not null, also under the names by which commands ask for them."""
    found = {name: value for name, value in fields.items() if value is not None}
    for name, others in ALIASES.items():
        held = [found[other] for other in others if other in found]
        if held:
            found.setdefault(name, held[0])
    return found
