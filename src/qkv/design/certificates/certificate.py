"""Certificates: a statement with its raw inputs, rechecked rigorously from nothing else."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from flint import ctx

from qkv.core.display import Card, Displayable, number, plain
from qkv.core.files import replacing, write_text
from qkv.design.certificates import statements
from qkv.design.certificates.ball_arithmetic import above, below
from qkv.errors import QkvError

FORMAT = "qkv-certificate/1"
MOST_JSON = 2**31
"""Bytes of JSON that are read; more would need many times that in memory."""
PRECISIONS = (128, 512, 2048)
"""Bits tried in turn: a claim so close to the truth that 2048 bits cannot tell is refused as undecided."""

_SIGNS = {"<=": "≤", ">=": "≥"}


@dataclasses.dataclass(frozen=True)
class Finding:
    """One claim of a certificate, beside what was recomputed."""

    claim: str
    holds: bool
    why: str


@dataclasses.dataclass(frozen=True)
class Verification(Displayable):
    """What rechecking gave: true where every claim holds; `why` says what does not."""

    statement: str
    findings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return bool(self.findings) and all(f.holds for f in self.findings)

    @property
    def why(self) -> str:
        failed = [f"{f.claim}: {f.why}" for f in self.findings if not f.holds]
        return "; ".join(failed) if failed else "every claim holds"

    def card(self) -> Card:
        rows = tuple((("✓" if f.holds else "✗"), f.claim, f.why) for f in self.findings)
        verdict = "holds" if self else "REFUSED"
        return Card(f"Certificate {verdict}", (("says", self.statement),), ("", "claim", "recomputed"), rows)

    def to_json(self) -> dict[str, Any]:
        return {
            "holds": bool(self),
            "statement": self.statement,
            "why": self.why,
            "findings": plain(self.findings),
        }


@dataclasses.dataclass(frozen=True, eq=False)
class Certificate(Displayable):
    """A statement of one `kind` about raw `data`, with the bounds it `claims`."""

    kind: str
    data: Mapping[str, Any]
    claims: Mapping[str, Any]

    @classmethod
    def issue(cls, kind: str, data: Mapping[str, Any], *names: str) -> Certificate:
        """Measure the named quantities of `data` (all of that kind, if none is named) and claim just those,
        rounded outwards."""
        data = {name: _stored(value) for name, value in data.items()}
        spec = statements.KINDS[kind]
        try:
            with ctx.workprec(PRECISIONS[0]):
                measured = spec.measure(spec.parse(data), spec.large(data), {name: [] for name in names or spec.senses})
        except statements.InvalidCertificate as why:
            raise QkvError(f"certifying '{kind}'", str(why), "Scale the inputs to numbers near 1") from None
        claims = {}
        for name, balls in measured.items():
            if not names or name in names:
                safe = above if spec.senses[name] == "<=" else below
                claims[name] = [safe(b) for b in balls] if isinstance(balls, list) else safe(balls)
        return cls(kind, data, claims)

    @property
    def statement(self) -> str:
        """The statement in words."""
        return self.worded({})

    def worded(self, names: Mapping[int, Any]) -> str:
        """The same with names for some keys or items, instead of their numbers."""
        known = isinstance(self.kind, str) and self.kind in statements.KINDS
        if not known:
            return str(self.kind)
        return statements.KINDS[self.kind].says(self.data, self.claims, lambda i: str(names.get(i, i)))

    def verify(self) -> Verification:
        """Recompute every claim from the raw data, with error bounds; no solver is involved."""
        if not isinstance(self.kind, str) or self.kind not in statements.KINDS:
            known = ", ".join(sorted(statements.KINDS))
            return Verification(str(self.kind), (Finding(str(self.kind), False, f"no such kind; there are {known}"),))
        spec = statements.KINDS[self.kind]
        try:
            bounds = self._bounds(spec)
            parsed = spec.parse(self.data)
            return Verification(self.statement, tuple(_decide(spec, parsed, bounds, spec.large(self.data))))
        except Exception as why:  # tampered data fails in many ways, and none of them shows anything
            detail = f"it lacks {why}" if isinstance(why, KeyError) else str(why) or type(why).__name__
            return Verification(self.kind, (Finding("the data is well formed", False, detail),))

    def _bounds(self, spec: statements.Statement) -> dict[str, list[float]]:
        unknown = sorted(set(self.claims) - set(spec.senses))
        missing = sorted(set(spec.required) - set(self.claims))
        if unknown or missing:
            raise statements.InvalidCertificate(f"claims unknown here: {unknown}, claims missing: {missing}")
        foreign = sorted(set(self.data) - set(spec.fields))
        if foreign:
            raise statements.InvalidCertificate(
                f"data that is not checked here: {foreign}; there may be {', '.join(spec.fields)}"
            )
        out = {name: _numbers(name, value) for name, value in self.claims.items()}
        for name, bounds in out.items():
            if name in spec.positive and any(v <= 0 for v in bounds):
                raise statements.InvalidCertificate(f"the bound '{name}' is not above 0, so it shows nothing")
            if name in spec.exact and bounds != [0.0]:
                raise statements.InvalidCertificate(f"the bound '{name}' can only be 0")
        return out

    def card(self) -> Card:
        facts = tuple((name, _bound_text(value)) for name, value in self.claims.items())
        return Card(f"Certificate: {self.kind}", (("says", self.statement), *facts))

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, "kind": self.kind, "data": plain(self.data), "claims": plain(self.claims)}

    def save(self, path: str | Path) -> None:
        """Write as .json, which people can read, or .safetensors, which suits large keys."""
        save([self], path)

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """The first certificate in a file."""
        return load(path)[0]


def _numbers(name: str, value: Any) -> list[float]:
    """The bounds of one claim; infinite ones may be words, since JSON has no other way to write them."""
    value = value.tolist() if hasattr(value, "tolist") else value
    listed = value if isinstance(value, list | tuple) else [value]
    for v in listed:
        number_like = isinstance(v, int | float) and not isinstance(v, bool)
        if not (number_like or v in ("inf", "-inf")) or math.isnan(float(v)):
            raise statements.InvalidCertificate(f"the bound '{name}' is not a number")
    return [float(v) for v in listed]


def _decide(spec: statements.Statement, parsed: Any, bounds: dict[str, list[float]], large: bool) -> Iterator[Finding]:
    """Claims against balls, at rising precision until each claim is surely true or surely false."""
    open_claims = dict(bounds)
    last: dict[str, list[Any]] = {}
    for bits in (0, *PRECISIONS) if large else PRECISIONS:
        with ctx.workprec(bits or PRECISIONS[0]):
            measured = spec.measure(parsed, bits == 0, bounds)
            for name in list(open_claims):
                if name not in measured:
                    yield Finding(name, False, "the data does not hold what this claim needs")
                    del open_claims[name]
                    continue
                balls = measured[name] if isinstance(measured[name], list) else [measured[name]]
                last[name] = balls
                verdict = _compare(spec.senses[name], balls, open_claims[name])
                if verdict is not None:
                    yield _finding(spec, name, balls, open_claims.pop(name), verdict)
        if not open_claims:
            return
    for name, claimed in open_claims.items():
        text = f"{PRECISIONS[-1]} bits cannot tell it from {_bound_text(claimed)}"
        yield Finding(_claim_text(spec, name, claimed), False, text)


def _compare(sense: str, balls: list[Any], claimed: list[float]) -> bool | None:
    """True or False where that is sure, None where the balls are too wide to tell."""
    if len(claimed) == 1:
        claimed = claimed * len(balls)
    if len(balls) != len(claimed):
        return False
    pairs = list(zip(balls, claimed, strict=True))
    if sense == "<=":
        sure, failed = all(b <= c for b, c in pairs), any(b > c for b, c in pairs)
    else:
        sure, failed = all(b >= c for b, c in pairs), any(b < c for b, c in pairs)
    return True if sure else (False if failed else None)


def _finding(spec: statements.Statement, name: str, balls: list[Any], claimed: list[float], holds: bool) -> Finding:
    if len(claimed) not in (1, len(balls)):
        return Finding(name, False, f"{len(claimed)} bounds for {len(balls)} measured numbers")
    outward = above if spec.senses[name] == "<=" else below
    found = [outward(b) for b in balls]
    return Finding(_claim_text(spec, name, claimed), holds, f"{_SIGNS[spec.senses[name]]} {_bound_text(found)}")


def _claim_text(spec: statements.Statement, name: str, claimed: list[float]) -> str:
    return f"{spec.names.get(name, name)} {_SIGNS[spec.senses[name]]} {_bound_text(claimed)}"


def _bound_text(value: Any) -> str:
    numbers = [float(v) for v in np.atleast_1d(np.asarray(value, dtype=np.float64))]
    shown = ", ".join(number(v, 6) for v in numbers[:4])
    return shown + (f", … {len(numbers) - 4} more" if len(numbers) > 4 else "")


def _stored(value: Any) -> Any:
    """Arrays as float64 numpy (exact), everything else as it is."""
    if isinstance(value, str | int | float | Mapping) or value is None:
        return value
    out = np.asarray(
        value, dtype=np.float64
    ).copy()  # a copy that nobody can write to: what was certified stays certified
    out.flags.writeable = False
    return out


def check_save(path: str | Path | None) -> None:
    """Refuse a path that certificates cannot be saved to, before any work is done."""
    if path is not None and Path(path).suffix not in (".json", ".safetensors"):
        came = f"'{Path(path).suffix}' is not a format for it"
        raise QkvError(f"saving a certificate to {path}", came, "Use .json or .safetensors")


def save(certificates: list[Certificate], path: str | Path, result: dict[str, Any] | None = None) -> None:
    """Write certificates, and the result they belong to, to one file, whole or not at all."""
    path = Path(path)
    check_save(path)
    if path.suffix == ".json":
        document = {
            "format": FORMAT,
            "result": result or {},
            "certificates": [c.to_json() for c in certificates],
        }
        write_text(path, json.dumps(document, allow_nan=False) + "\n")
    else:
        from safetensors.numpy import save_file

        arrays, meta = {}, []
        for i, c in enumerate(certificates):
            entry: dict[str, Any] = {"kind": c.kind, "data": {}, "claims": {}}
            for part, values in (("data", c.data), ("claims", c.claims)):
                for name, value in values.items():
                    if isinstance(value, np.ndarray | list) and np.asarray(value).dtype.kind in "biuf":
                        arrays[f"{i}.{part}.{name}"] = np.ascontiguousarray(value, dtype=np.float64)
                    else:
                        entry[part][name] = plain(value)
            meta.append(entry)
        metadata = {"format": FORMAT, "certificates": json.dumps(meta), "result": json.dumps(result or {})}
        with replacing(path) as temporary:
            save_file(arrays, temporary, metadata=metadata)


def load(path: str | Path) -> list[Certificate]:
    """The certificates in a file that `save` wrote, or that a person wrote in the same form."""
    path = Path(path)
    asked = f"reading certificates from {path}"
    if not path.is_file():
        raise QkvError(asked, "there is no such file", "Check the path")
    try:
        entries = _entries(path)
        found = [Certificate(str(e["kind"]), _arrays(e["data"]), dict(e.get("claims", {}))) for e in entries]
    except QkvError:
        raise
    except Exception as why:  # a truncated or foreign file fails in many ways, and all mean the same
        words = (str(why) or type(why).__name__).splitlines()[0]
        detail = f"{words} is missing" if isinstance(why, KeyError) else words
        remedy = "Save it again with --save, or see docs/certificates.md for the form"
        raise QkvError(asked, f"it is damaged or no certificate ({detail})", remedy) from None
    if not found:
        raise QkvError(asked, "it holds no certificate", "Save one with --save")
    return found


def _entries(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".safetensors":
        from safetensors import safe_open

        with safe_open(path, framework="np") as handle:
            meta = handle.metadata() or {}
            _check_format(meta)
            entries = _read_json(meta["certificates"])
            for key in handle.keys():  # noqa: SIM118 - a safetensors handle is not a mapping
                i, part, name = key.split(".", 2)
                entries[int(i)][part][name] = handle.get_tensor(key)
        return list(entries)
    if path.stat().st_size > MOST_JSON:
        asked, size = f"reading certificates from {path}", path.stat().st_size
        raise QkvError(asked, f"{size:,} bytes are too many for JSON", "Save it as .safetensors")
    document = _read_json(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    _check_format(document)
    return list(document["certificates"]) if "certificates" in document else [document]


def _check_format(document: Mapping[str, Any]) -> None:
    """A file may leave its format out, as people do, but it must not be of another one."""
    if document.get("format", FORMAT) != FORMAT:
        raise ValueError(f"its format is {document['format']!r}, not {FORMAT!r}")


def _read_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names differ: of two bounds with one name, a reader would not know which was checked."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _arrays(data: Mapping[str, Any]) -> dict[str, Any]:
    """Lists of numbers as arrays; other lists stay as they are, for `verify` to refuse."""
    out = dict(data)
    for name, value in data.items():
        if isinstance(value, list) and (found := np.asarray(value)).dtype.kind in "biuf":
            out[name] = found.astype(np.float64)
    return out
