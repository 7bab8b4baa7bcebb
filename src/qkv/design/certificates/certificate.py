"""Certificate: a statement with its raw inputs, issued and verified rigorously without a solver."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from flint import ctx

from qkv.core.display import Card, Displayable, lower_bound, plain, upper_bound
from qkv.design.certificates import files, statements
from qkv.design.certificates.ball_arithmetic import above, below
from qkv.design.certificates.results import differences, kept
from qkv.errors import QkvError

PRECISIONS = (128, 512, 2048)
"""Bits tried in turn: a claim that 2048 bits cannot decide is refused."""

_SIGNS = {"<=": "≤", ">=": "≥"}


@dataclasses.dataclass(frozen=True)
class Finding:
    """One claim of a certificate, and what was recomputed.

    Attributes:
        claim: The claim in words.
        holds: Whether it was confirmed.
        why: The recomputed bound, or the reason why it was refused.
    """

    claim: str
    holds: bool
    why: str


@dataclasses.dataclass(frozen=True)
class Verification(Displayable):
    """The result of verifying a certificate; true if and only if every claim holds.

    Attributes:
        statement: What the certificate states, in words.
        findings: One `Finding` per claim.
    """

    statement: str
    findings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return bool(self.findings) and all(f.holds for f in self.findings)

    @property
    def why(self) -> str:
        """The claims that do not hold, with the reasons."""
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
    """A statement of one kind about raw data, with the bounds that it claims.

    `verify()` recomputes every bound from the data alone. A certificate can be made by hand, or come from a file;
    only what `verify()` confirms counts.

    Attributes:
        kind: Kind of statement, such as "weights"; docs/certificates.md lists them.
        data: Raw inputs by name, as arrays, numbers or (for rules) mappings.
        claims: Claimed bounds by name, each a number or a list of numbers.

    Example:
        >>> from qkv.design import Certificate
        >>> data = {"keys": [[1.0], [0.0]], "item": 0, "query": [2.0]}
        >>> bool(Certificate("selects", data, {"margin": 1.0}).verify())
        True
        >>> bool(Certificate("selects", data, {"margin": 1.1}).verify())
        False
    """

    kind: str
    data: Mapping[str, Any]
    claims: Mapping[str, Any]

    @classmethod
    def issue(cls, kind: str, data: Mapping[str, Any], *names: str) -> Certificate:
        """Compute the named quantities of `data` and claim them, rounded outwards.

        Args:
            kind: Kind of statement.
            data: Raw inputs by name.
            *names: Claims to make; all of that kind if none is named.

        Returns:
            A certificate that verifies.

        Raises:
            QkvError: If the data does not state anything, for example because a number is not finite.
        """
        data = {name: _read_only(value) for name, value in data.items()}
        spec = statements.KINDS[kind]
        try:
            with ctx.workprec(PRECISIONS[0]):
                measured = spec.measure(
                    spec.parse(data), spec.float64_first(data), {name: [] for name in names or spec.senses}
                )
        except statements.InvalidCertificate as why:
            raise QkvError(f"certifying '{kind}'", str(why), "Scale the inputs to numbers near 1") from None
        claims = {}
        for name, balls in measured.items():
            if not names or name in names:
                safe = above if spec.senses[name] == "<=" else below
                claims[name] = [safe(b) for b in balls] if isinstance(balls, list) else safe(balls)
        return cls(kind, data, claims)

    @property
    def excludes_all(self) -> bool:
        """Whether a certificate of impossibility excludes every query or matrix, whatever its norm or margin."""
        return "exact" in self.claims or self.claims.get("norm_at_least") == math.inf

    @property
    def statement(self) -> str:
        """The statement in words."""
        return self.worded({})

    def worded(self, labels: Mapping[int, Any]) -> str:
        """The statement in words, with labels instead of the numbers of some keys or items."""
        known = isinstance(self.kind, str) and self.kind in statements.KINDS
        if not known:
            return str(self.kind)
        return statements.KINDS[self.kind].describe(self.data, self.claims, lambda i: str(labels.get(i, i)))

    def verify(self) -> Verification:
        """Recompute every claim from the raw data in interval arithmetic, without a solver.

        Returns:
            A `Verification`, true if and only if every claim is proved. Malformed data never raises: it is refused.
        """
        if not isinstance(self.kind, str) or self.kind not in statements.KINDS:
            known = ", ".join(sorted(statements.KINDS))
            return Verification(str(self.kind), (Finding(str(self.kind), False, f"no such kind; there are {known}"),))
        spec = statements.KINDS[self.kind]
        try:
            bounds = self._bounds(spec)
            parsed = spec.parse(self.data)
            return Verification(self.statement, tuple(_decide(spec, parsed, bounds, spec.float64_first(self.data))))
        except Exception as why:  # malformed data can raise anything, and proves nothing
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
        senses = statements.KINDS[self.kind].senses if self.kind in statements.KINDS else {}
        facts = tuple((name, _bound_text(value, senses.get(name))) for name, value in self.claims.items())
        return Card(f"Certificate: {self.kind}", (("says", self.statement), *facts))

    def to_json(self) -> dict[str, Any]:
        return self._record().to_json()

    def save(self, path: str | Path) -> None:
        """Write to a file: .json, which people can read, or .safetensors, which suits large keys.

        Args:
            path: The file; an existing one is replaced atomically.

        Raises:
            QkvError: If the suffix is another one, or the folder does not exist.
        """
        save([self], path)

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read the first certificate of a file.

        Args:
            path: A file that `save` wrote, or that a person wrote in the same form.

        Returns:
            The certificate, which is not verified yet.

        Raises:
            QkvError: If the file is missing, damaged or holds no certificate.
        """
        return load(path)[0]

    def _record(self) -> files.Record:
        return files.Record(self.kind, self.data, self.claims)


def save(certificates: Sequence[Certificate], path: str | Path, result: Mapping[str, Any] | None = None) -> None:
    """Write certificates, and the result they belong to, to one file, atomically.

    Args:
        certificates: The certificates.
        path: The file, .json or .safetensors; an existing one is replaced.
        result: What is stored beside them for a reader, such as `design.to_json()` and `labels`. Fields that no
            certificate shows, such as sentences, are left out. The others must be what the certificates show, for
            `qkv design verify` refuses the file else.

    Raises:
        QkvError: If the suffix is another one, the result has fields that no result has, or the file cannot be written.
    """
    records = [certificate._record() for certificate in certificates]
    try:
        fields = kept(result or {}, records)
    except ValueError as foreign:
        hint = "Save the result's own to_json(), with labels if the items have names"
        raise QkvError(f"saving a result to {path}", f"nothing checks {foreign}", hint) from None
    files.write(records, path, fields)


def load(path: str | Path) -> list[Certificate]:
    """Read all certificates of a file; they are not verified yet.

    Args:
        path: A .json or .safetensors file that `save` wrote, or one in the form of docs/certificates.md.

    Returns:
        The certificates, in the order of the file.

    Raises:
        QkvError: If the file cannot be read, or has another form.
    """
    return [Certificate(*record) for record in files.read(path)[0]]


def verify_file(path: str | Path) -> list[Verification]:
    """Verify every certificate of a file; and, where the result beside them is not theirs, what differs in it.

    Args:
        path: As for `load`.

    Returns:
        One `Verification` for each certificate, in the order of the file, and, where these all hold, one more that is
        false if the result has fields that are not what the certificates show.

    Raises:
        QkvError: If the file cannot be read, or has another form.
    """
    records, result = files.read(path)
    found = [Certificate(*record).verify() for record in records]
    if not all(found):  # then the file is refused, whatever its result says
        return found
    wrong = tuple(Finding(f"result.{field}", False, why) for field, why in differences(result, records))
    return [*found, Verification("the result in the file is that of its certificates", wrong)] if wrong else found


def _numbers(name: str, value: Any) -> list[float]:
    """The bounds of one claim; infinite ones may be strings, since JSON has no infinities."""
    value = value.tolist() if hasattr(value, "tolist") else value
    listed = value if isinstance(value, list | tuple) else [value]
    for v in listed:
        number_like = isinstance(v, int | float) and not isinstance(v, bool)
        if not (number_like or v in ("inf", "-inf")) or math.isnan(float(v)):
            raise statements.InvalidCertificate(f"the bound '{name}' is not a number")
        if isinstance(v, int) and int(float(v)) != v:
            raise statements.InvalidCertificate(f"float64 would round the bound '{name}'")
    return [float(v) for v in listed]


def _decide(
    spec: statements.Statement, parsed: Any, bounds: dict[str, list[float]], float64_first: bool
) -> Iterator[Finding]:
    """Compare claims with balls, at rising precision, until each claim is proved or refuted."""
    undecided = dict(bounds)
    last: dict[str, list[Any]] = {}
    for bits in (0, *PRECISIONS) if float64_first else PRECISIONS:  # 0 stands for float64 with rounding bounds
        with ctx.workprec(bits or PRECISIONS[0]):
            measured = spec.measure(parsed, bits == 0, bounds)
            for name in list(undecided):
                if name not in measured:
                    yield Finding(name, False, "the data does not hold what this claim needs")
                    del undecided[name]
                    continue
                balls = measured[name] if isinstance(measured[name], list) else [measured[name]]
                last[name] = balls
                verdict = _compare(spec.senses[name], balls, undecided[name])
                if verdict is not None:
                    yield _finding(spec, name, balls, undecided.pop(name), verdict)
        if not undecided:
            return
    for name, claimed in undecided.items():
        text = f"it cannot be told from {_bound_text(claimed)} in the precision that is tried"
        yield Finding(_claim_text(spec, name, claimed, False), False, text)


def _compare(sense: str, balls: list[Any], claimed: list[float]) -> bool | None:
    """True if every claim is proved, False if one is refuted, None where the balls are too wide to tell."""
    if len(claimed) == 1:
        claimed = claimed * len(balls)
    if len(balls) != len(claimed):
        return False
    pairs = list(zip(balls, claimed, strict=True))
    if sense == "<=":
        proved, refuted = all(b <= c for b, c in pairs), any(b > c for b, c in pairs)
    else:
        proved, refuted = all(b >= c for b, c in pairs), any(b < c for b, c in pairs)
    return True if proved else (False if refuted else None)


def _finding(spec: statements.Statement, name: str, balls: list[Any], claimed: list[float], holds: bool) -> Finding:
    if len(claimed) not in (1, len(balls)):
        return Finding(name, False, f"{len(claimed)} bounds for {len(balls)} measured numbers")
    sense = spec.senses[name]
    shows = sense if holds else {"<=": ">=", ">=": "<="}[sense]  # what refutes a bound from above is one from below
    outward = above if shows == "<=" else below
    shown = f"{_SIGNS[shows]} {_bound_text([outward(b) for b in balls], shows)}"
    return Finding(_claim_text(spec, name, claimed, holds), holds, shown)


def _claim_text(spec: statements.Statement, name: str, claimed: list[float], holds: bool) -> str:
    """The claim in words; a refused one with all its digits, since a rounded one might be true."""
    sense = spec.senses[name]
    return f"{spec.claim_names.get(name, name)} {_SIGNS[sense]} {_bound_text(claimed, sense if holds else None)}"


def _bound_text(value: Any, sense: str | None = None) -> str:
    """Bounds, rounded outwards to six digits; with all their digits where no sense is given."""
    numbers = [float(v) for v in np.atleast_1d(np.asarray(value, dtype=np.float64))]
    text = {"<=": upper_bound, ">=": lower_bound}.get(sense or "")
    shown = ", ".join(text(v, 6) if text else f"{v!r}" for v in numbers[:4])
    return shown + (f", … {len(numbers) - 4} more" if len(numbers) > 4 else "")


def _read_only(value: Any) -> Any:
    """Arrays as read-only float64 copies, so that what was certified cannot change; everything else as it is."""
    if isinstance(value, str | int | float | Mapping) or value is None:
        return value
    if np.ma.is_masked(value):
        return value  # refused by the statement
    out = np.asarray(value, dtype=np.float64).copy()
    out.flags.writeable = False
    return out
