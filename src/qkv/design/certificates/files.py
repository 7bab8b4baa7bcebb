"""JSON and safetensors formats of certificates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qkv.core.display import plain
from qkv.core.files import replacing, sort_metadata, write_text
from qkv.errors import QkvError

FORMAT = "qkv-certificate/1"
SUFFIXES = (".json", ".safetensors")
MAX_JSON_BYTES = 2**31
"""Larger JSON files are refused: parsing them would take many times as much memory."""


class Record(NamedTuple):
    """A certificate as a file holds it."""

    kind: str
    data: Mapping[str, Any]
    claims: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, "kind": self.kind, "data": plain(self.data), "claims": plain(self.claims)}


def check_path(path: str | Path | None) -> None:
    """Refuse a path that certificates cannot be saved to, before any work is done."""
    if path is not None and Path(path).suffix not in SUFFIXES:
        problem = f"'{Path(path).suffix}' is not a format for it"
        raise QkvError(f"saving a certificate to {path}", problem, f"Use {' or '.join(SUFFIXES)}")


def write(records: Sequence[Record], path: str | Path, result: Mapping[str, Any] | None = None) -> None:
    """Write certificates, and the result they belong to, to one file, atomically."""
    path = Path(path)
    check_path(path)
    if path.suffix == ".json":
        _write_json(records, path, result or {})
    else:
        _write_safetensors(records, path, result or {})


def read(path: str | Path) -> list[Record]:
    """The certificates in a file that `write` wrote, or that a person wrote in the same form."""
    path = Path(path)
    request = f"reading certificates from {path}"
    if not path.is_file():
        raise QkvError(request, "there is no such file", "Check the path")
    try:
        entries = _read_safetensors(path) if path.suffix == ".safetensors" else _read_json(path)
        found = [Record(str(e["kind"]), _with_arrays(e["data"]), dict(e.get("claims", {}))) for e in entries]
    except QkvError:
        raise
    except Exception as why:  # whatever a truncated or foreign file raises means that it is not a certificate
        words = (str(why) or type(why).__name__).splitlines()[0]
        detail = f"{words} is missing" if isinstance(why, KeyError) else words
        hint = "Save it again with --save, or see docs/certificates.md for the form"
        raise QkvError(request, f"it is damaged or no certificate ({detail})", hint) from None
    if not found:
        raise QkvError(request, "it holds no certificate", "Save one with --save")
    return found


def _write_json(records: Sequence[Record], path: Path, result: Mapping[str, Any]) -> None:
    document = {"format": FORMAT, "result": dict(result), "certificates": [record.to_json() for record in records]}
    write_text(path, json.dumps(document, allow_nan=False) + "\n")


def _write_safetensors(records: Sequence[Record], path: Path, result: Mapping[str, Any]) -> None:
    """Arrays as tensors named "index.part.name", everything else as JSON in the metadata."""
    from safetensors.numpy import save_file  # imported here: most certificates are saved as JSON or not at all

    arrays, entries = {}, []
    for i, record in enumerate(records):
        entry: dict[str, Any] = {"kind": record.kind, "data": {}, "claims": {}}
        for part, values in (("data", record.data), ("claims", record.claims)):
            for name, value in values.items():
                if isinstance(value, np.ndarray | list) and np.asarray(value).dtype.kind in "biuf":
                    arrays[f"{i}.{part}.{name}"] = np.ascontiguousarray(value, dtype=np.float64)
                else:
                    entry[part][name] = plain(value)
        entries.append(entry)
    metadata = {"format": FORMAT, "certificates": json.dumps(entries), "result": json.dumps(dict(result))}
    with replacing(path) as temporary:
        save_file(arrays, temporary, metadata=metadata)
        sort_metadata(temporary)


def _read_safetensors(path: Path) -> list[dict[str, Any]]:
    from safetensors import safe_open

    with safe_open(path, framework="np") as handle:
        metadata = handle.metadata() or {}
        _check_format(metadata)
        entries = _parse_json(metadata["certificates"])
        for key in handle.keys():  # noqa: SIM118 - a safetensors handle is not a mapping
            i, part, name = key.split(".", 2)
            entries[int(i)][part][name] = handle.get_tensor(key)
    return list(entries)


def _read_json(path: Path) -> list[dict[str, Any]]:
    size = path.stat().st_size
    if size > MAX_JSON_BYTES:
        request = f"reading certificates from {path}"
        raise QkvError(request, f"{size:,} bytes are too many for JSON", "Save it as .safetensors")
    document = _parse_json(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    _check_format(document)
    return list(document["certificates"]) if "certificates" in document else [document]


def _check_format(document: Mapping[str, Any]) -> None:
    """A file written by hand may leave its format out, but it must not name another one."""
    if document.get("format", FORMAT) != FORMAT:
        raise ValueError(f"its format is {document['format']!r}, not {FORMAT!r}")


def _parse_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique_names)


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without duplicate names: of two bounds with one name, a reader would not know which was checked."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object holds a name twice")
    return found


def _with_arrays(data: Mapping[str, Any]) -> dict[str, Any]:
    """Lists of numbers as arrays; other lists are left as they are, for verification to refuse."""
    out = dict(data)
    for name, value in data.items():
        if isinstance(value, list) and (found := np.asarray(value)).dtype.kind in "biuf":
            out[name] = found.astype(np.float64)
    return out
