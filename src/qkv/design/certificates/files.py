"""JSON and safetensors formats of certificates.

There is one form of each; whatever else a file holds is refused, since a reader might take it for checked. The fields
of "result" are compared with the certificates where a file is verified: see results.

- JSON: {"format", "result", "certificates": [certificate, …]}, or one certificate alone. A certificate is {"kind",
  "data", "claims"}, perhaps with "format"; `data` and `claims` are objects without duplicate names. Numbers are
  float64: integers that it would round, NaN and infinities are refused (only labels in the result may be such
  integers); infinite bounds are the strings "inf" and "-inf".
- safetensors: the same list of certificates as JSON in the metadata, and float64 tensors named "0.data.keys": the
  number of the certificate in decimal digits, "data" or "claims", and a name that the metadata does not hold.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qkv.core.display import plain
from qkv.core.files import replacing, write_tensors, write_text
from qkv.core.interrupts import interrupts_delayed
from qkv.core.json_files import parse_json
from qkv.errors import QkvError, kind_of

FORMAT = "qkv-certificate/1"
SUFFIXES = (".json", ".safetensors")
LONG_INTEGER = re.compile(r"(?<![\d.])\d{16}")
"""Digits that may be those of an integer beyond 2^53."""
MAX_FIELD = 2**23
"""Fields of a result whose JSON is longer are left out of .safetensors files, whose header has at most 100 MB; the
tensors of the certificates hold what is in them."""
MAX_JSON_BYTES = 2**31
"""Larger JSON files are refused: parsing them would take many times as much memory."""


class Record(NamedTuple):
    """A certificate as a file holds it."""

    kind: str
    data: Mapping[str, Any]
    claims: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "kind": self.kind,
            "data": plain(self.data, words=True),
            "claims": plain(self.claims, words=True),
        }


def _path(request: str, path: Any) -> Path:
    if not isinstance(path, str | Path):
        raise QkvError(request, f"the path is {path!r:.60}", "Give the name of a file")
    return Path(path)


def check_path(path: str | Path | None) -> None:
    """Refuse a path that certificates cannot be saved to, before any work is done."""
    if path is not None and Path(path).suffix not in SUFFIXES:
        problem = f"'{Path(path).suffix}' is not a format for it"
        raise QkvError(f"saving a certificate to {path}", problem, f"Use {' or '.join(SUFFIXES)}")


def write(records: Sequence[Record], path: str | Path, result: Mapping[str, Any] | None = None) -> None:
    """Write certificates, and the result they belong to, to one file, atomically."""
    path = _path("saving a certificate", path)
    check_path(path)
    if path.suffix == ".json":
        _write_json(records, path, result or {})
    else:
        _write_safetensors(records, path, result or {})


def read(path: str | Path) -> tuple[list[Record], Mapping[str, Any]]:
    """The certificates and the result in a file that `write` wrote, or that a person wrote in the same form."""
    path = _path("reading certificates", path)
    request = f"reading certificates from {path}"
    if not path.is_file():
        problem = "it is a folder" if path.is_dir() else "there is no such file"
        raise QkvError(request, problem, "Give a file of --save" if path.is_dir() else "Check the path")
    try:
        entries, result = _read_safetensors(path) if path.suffix == ".safetensors" else _read_json(path)
        found = [_record(entry) for entry in entries]
        if not isinstance(result, dict):
            raise ValueError(f"its result is {kind_of(result)}, not an object")
    except QkvError:
        raise
    except Exception as why:  # whatever a truncated or foreign file raises means that it is not a certificate
        words = (str(why) or type(why).__name__).splitlines()[0]
        detail = f"{words} is missing" if isinstance(why, KeyError) else words
        hint = "Save it again with --save, or see docs/certificates.md for the form"
        raise QkvError(request, f"it is damaged or no certificate ({detail})", hint) from None
    if not found:
        raise QkvError(request, "it holds no certificate", "Save one with --save")
    return found, result


def _write_json(records: Sequence[Record], path: Path, result: Mapping[str, Any]) -> None:
    document = {"format": FORMAT, "result": dict(result), "certificates": [record.to_json() for record in records]}
    write_text(path, json.dumps(document, allow_nan=False) + "\n")


def _write_safetensors(records: Sequence[Record], path: Path, result: Mapping[str, Any]) -> None:
    """Arrays as tensors named "index.part.name", everything else as JSON in the metadata."""
    from safetensors.numpy import (
        save as tensor_file,
    )  # imported here: most certificates are saved as JSON or not at all

    arrays, entries = {}, []
    for i, record in enumerate(records):
        entry: dict[str, Any] = {"kind": record.kind, "data": {}, "claims": {}}
        for part, values in (("data", record.data), ("claims", record.claims)):
            for name, value in values.items():
                if isinstance(value, np.ndarray | list) and np.asarray(value).dtype.kind in "biuf":
                    arrays[f"{i}.{part}.{name}"] = np.ascontiguousarray(value, dtype=np.float64)
                else:
                    entry[part][name] = plain(value, words=True)
        entries.append(entry)
    fields = {name: value for name, value in result.items() if len(json.dumps(value)) <= MAX_FIELD}
    metadata = {"format": FORMAT, "certificates": json.dumps(entries), "result": json.dumps(fields)}
    with replacing(path) as temporary:
        write_tensors(temporary, tensor_file(arrays, metadata=metadata))


def _read_safetensors(path: Path) -> tuple[list[Any], Any]:
    from safetensors import safe_open

    with interrupts_delayed(), safe_open(path, framework="np") as handle:
        metadata = handle.metadata() or {}
        _check_names("the metadata", metadata, required=("certificates",), allowed=("format", "result"))
        _check_format(metadata)
        entries = _parse_json(metadata["certificates"])
        if LONG_INTEGER.search(metadata["certificates"]):
            _refuse_rounded(entries)
        if not isinstance(entries, list):
            raise ValueError("its certificates are not a list")
        for key in handle.keys():  # noqa: SIM118 - a safetensors handle is not a mapping
            part, name = _place(key, entries)
            tensor = handle.get_tensor(key)
            if tensor.dtype != np.float64:
                raise ValueError(f"the tensor {key} holds {tensor.dtype}, not float64")
            if name in part:
                raise ValueError(f"{key} stands in the metadata and is a tensor too")
            part[name] = tensor
    return entries, _parse_json(metadata.get("result", "{}"))


def _place(key: str, entries: list[Any]) -> tuple[dict[str, Any], str]:
    """The part of a certificate that a tensor belongs to, and its name there."""
    number, _, rest = key.partition(".")
    part, _, name = rest.partition(".")
    canonical = number.isascii() and number.isdigit() and str(int(number)) == number
    if not canonical or int(number) >= len(entries) or part not in ("data", "claims") or not name:
        raise ValueError(f"the tensor {key!r} belongs to no certificate")
    entry = entries[int(number)]
    if not isinstance(entry, dict) or not isinstance(entry.get(part), dict):
        raise ValueError(f"certificate {number} has no {part}")
    return entry[part], name


def _read_json(path: Path) -> tuple[list[Any], Any]:
    size = path.stat().st_size
    if size > MAX_JSON_BYTES:
        request = f"reading certificates from {path}"
        raise QkvError(request, f"{size:,} bytes are too many for JSON", "Save it as .safetensors")
    text = path.read_text(encoding="utf-8")
    document = _parse_json(text)
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    if LONG_INTEGER.search(text):
        _refuse_rounded({name: each for name, each in document.items() if name != "result"})
    if "certificates" not in document:
        return [document], {}
    _check_names("the document", document, required=("certificates",), allowed=("format", "result"))
    _check_format(document)
    if not isinstance(document["certificates"], list):
        raise ValueError("its certificates are not a list")
    return document["certificates"], document.get("result", {})


def _record(entry: Any) -> Record:
    """A certificate from its JSON object, in the one form that is accepted."""
    if not isinstance(entry, dict):
        raise ValueError(f"a certificate is {kind_of(entry)}, not an object")
    _check_names("a certificate", entry, required=("kind", "data", "claims"), allowed=("format",))
    _check_format(entry)
    if not isinstance(entry["kind"], str):
        raise ValueError("the kind of a certificate is not a word")
    for part in ("data", "claims"):
        if not isinstance(entry[part], dict):
            raise ValueError(f"the {part} of a certificate are {kind_of(entry[part])}, not an object")
    return Record(entry["kind"], _with_arrays(entry["data"]), dict(entry["claims"]))


def _check_names(what: str, found: Mapping[str, Any], required: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    """Refuse names that are missing, and names that nothing would check."""
    missing = [name for name in required if name not in found]
    if missing:
        raise KeyError(missing[0])
    foreign = sorted(set(found) - {*required, *allowed})
    if foreign:
        raise ValueError(f"{what} holds {', '.join(map(repr, foreign))}, which nothing checks")


def _check_format(document: Mapping[str, Any]) -> None:
    """A file written by hand may leave its format out, but it must not name another one."""
    if document.get("format", FORMAT) != FORMAT:
        raise ValueError(f"its format is {document['format']!r}, not {FORMAT!r}")


def _parse_json(text: str) -> Any:
    """JSON in which an object has no name twice: of two bounds, a reader would not know which was checked."""
    return parse_json(text, parse_float=_decimal, parse_constant=_refuse_constant)


def _refuse_rounded(value: Any) -> None:
    """Refuse integers that float64 would round; labels in a result may be such, numbers of a certificate may not."""
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > 2**53 and (abs(value) >= 2**1024 or int(float(value)) != value):
            raise ValueError(f"float64 would round the integer {str(value)[:30]}")
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            _refuse_rounded(each)


def _decimal(text: str) -> float:
    """A decimal number as the nearest float64, which must be finite."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:30]} exceeds the range of float64")
    return value


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number; an infinite bound is the string 'inf'")


def _with_arrays(data: Mapping[str, Any]) -> dict[str, Any]:
    """Lists of numbers as arrays; other lists are left as they are, for verification to refuse."""
    out = dict(data)
    for name, value in data.items():
        if isinstance(value, list) and (found := np.asarray(value)).dtype.kind in "biuf":
            if found.dtype.kind != "b" and _holds_truth_value(value):
                raise ValueError(f"{name} mixes numbers with true or false")
            out[name] = found.astype(np.float64)
    return out


def _holds_truth_value(value: Any) -> bool:
    return any(map(_holds_truth_value, value)) if isinstance(value, list) else isinstance(value, bool)
