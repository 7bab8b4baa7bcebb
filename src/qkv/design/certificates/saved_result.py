"""Check that the result in a file of certificates is theirs: its arrays and bounds, field by field."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from flint import arb, ctx

from qkv.design.certificates.ball_arithmetic import exponentials, flat, matrix, norm, products


class Stated(Protocol):
    """A certificate, or its record in a file."""

    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> Mapping[str, Any]: ...
    @property
    def claims(self) -> Mapping[str, Any]: ...


class Difference(NamedTuple):
    """A field of a result that is not what the certificates say."""

    field: str
    why: str


ARRAYS = {
    "matrix": ("data", "M"),
    "coordinates": ("data", "C"),
    "distances": ("claims", "distance"),
    "output_distances": ("claims", "output"),
}
"""Where a certificate holds an array of a result; others have the same name in the data."""
BOUNDS = {
    "distance": ("claims", "distance"),
    "output_distance": ("claims", "output"),
    "at_least": ("claims", "distance"),
    "residual": ("claims", "residual"),
    "least_norm": ("claims", "norm_at_least"),
    "least_norm_within_tol": ("claims", "norm_at_least"),
    "distance_at_least": ("data", "tol"),
    "distance_at_least_below_norm": ("claims", "norm_at_least"),
    "tol": ("data", "tol"),
}
"""Where certificates hold the number of a result; of several numbers, the largest."""
ANY_QUERY = "no query within tol"
"""The kind whose bound holds whatever the ratios; the shortest query of a design and its nearest one have one each."""
ONLY = {
    "at_least": ("unreachable",), "least_norm_within_tol": (ANY_QUERY,), "distance_at_least": (ANY_QUERY,),
    "distance_at_least_below_norm": (ANY_QUERY,),
}  # fmt: skip
"""The kinds of certificates that hold a number, for those that others hold under the same name with another sense."""
NEVER = {"least_norm": (ANY_QUERY,), "tol": (ANY_QUERY,), "distance": ("unreachable",)}
"""Kinds whose claim of that name is about something else; a search found the distance beside "unreachable"."""
NORMS = ("least_norm", "least_norm_within_tol")
"""Bounds that hold for the `tol` of their certificate, which must be that of the result."""
READS = ("weights", "wiring", "every text", "given texts")
"""Kinds that show how near a query or matrices come to what is wanted, in total variation."""
NONE = ("no wiring", "no wiring within tol", "no head for given texts")
"""Kinds that show that no matrices do it, or none of a norm below a bound."""
CLAIMS = {
    "norm_at_least", "margin", "margin_at_most", "output", "gap", "keeps", "removes", "radius", "exact",
}  # fmt: skip
"""Names of claims; a result that has one of them has the number, or the list, of a certificate."""
EVIDENCE = {"tol", "multipliers", "mix", "others", "indices", "weights", "normal", "range"}
"""Data that prove a statement. Other data say what it is about: where two certificates hold one, it is the same."""
OF_A_QUERY = {"weights", "no query", ANY_QUERY, "inside"}
"""Kinds that stand beside each other in one result. Of all others, a result has one certificate."""
ROUGH = 1e-3
"""A matrix that keeps or removes a span to within this part of its shortest vector does so, if roughly."""
LISTS = (
    "query", "wanted", "matrix", "coordinates", "shared", "Q", "K", "V", "distances", "output_distances", "answers",
    "excluded",
)  # fmt: skip
"""Arrays of results: another kind of value in their place is refused, but for null, which says nothing."""
COUNTS = ("possible", "impossible", "keys")
"""Whether it is possible, and of many keys how many are; `keys` may be an array, too."""
UNCOVERED = "no certificate covers it"
DIFFERENT = "it is not what the certificate holds"
BROKEN = (ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError)
"""What reading a certificate raises that is none."""
NEAR = 1e-8
"""Relative error of what a result has in float64: a vector in two spans, the output of a token."""
SMALL_GAP = 1.01e-9
"""Spans whose certified gap is not above this are told as sharing a vector (`design/projection.py`)."""
MANY_PRODUCTS = 10**7
"""Products of a matrix and bases that are not computed again, since it would take minutes."""
PRECISION = 512
"""Bits of what is computed again."""


def differences(result: Mapping[str, Any], certificates: Sequence[Stated]) -> Iterator[Difference]:
    """Fields of a result that differ from the certificates, and arrays in it that no certificate covers.

    Texts and single numbers that are no bounds, such as a scale, are not checked: no command reads them. How near a
    multiple brings a token is computed again.

    Args:
        result: The fields of the result, as JSON holds them.
        certificates: The certificates of the same file.

    Yields:
        One `Difference` for each such field.
    """
    checks = {"labels": _labels, "wanted": _wanted, "answers": _answers, "shared": _shared, "rules": _rules}
    try:
        apart = _apart(certificates) if result else ""
    except BROKEN:
        apart = "certificates"
    if apart:
        yield Difference(apart, "the certificates of the file are not about the same")
    for field, value in result.items():
        try:
            if value is not None and (field in COUNTS[:2] or (field in COUNTS and not isinstance(value, list | dict))):
                why = _decided(field, value, result, certificates)
            elif field in checks and (isinstance(value, list | dict) or (field == "labels" and value is not None)):
                why = checks[field](result, certificates)
            elif _holds_array(value) or (value is not None and (field in LISTS or _array_of(field, certificates))):
                why = _array(field, value, certificates)
            else:
                why = _bound(field, value, result, certificates)
        except BROKEN:
            why = DIFFERENT
        if why:
            yield Difference(field, why)


def _array_of(field: str, certificates: Sequence[Stated]) -> bool:
    """Whether a certificate holds an array of that name."""
    return any(np.ndim(each.data.get(field, 0)) > 0 for each in certificates)


def _array(field: str, value: Any, certificates: Sequence[Stated]) -> str:
    part, name = ARRAYS.get(field, ("data", field))
    held = next((getattr(each, part)[name] for each in certificates if name in getattr(each, part)), None)
    if held is None:
        return "" if value == [] else UNCOVERED
    if field == "coordinates" and "coordinates" not in certificates[0].claims:
        return UNCOVERED
    return "" if _same(value, np.atleast_1d(held) if field == "excluded" else held) else DIFFERENT


def _apart(certificates: Sequence[Stated]) -> str:
    """What certificates of one result disagree about: keys, wanted weights, a query; "" if they are about the same."""
    held: dict[str, Any] = {}
    if len(certificates) > 1 and not {each.kind for each in certificates} <= OF_A_QUERY:
        return "certificates"
    for each in certificates:
        for name, value in each.data.items():
            if name not in EVIDENCE and not _alike(held.setdefault(name, value), value):
                return name
    if "item" in held and "items" in held and _numbers(held["item"]) not in _numbers(held["items"]):
        return "item"
    return ""


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    return bool(np.array_equal(_numbers(one), _numbers(other)))


def _bound(field: str, value: Any, result: Mapping[str, Any], certificates: Sequence[Stated]) -> str:
    if field in CLAIMS and value is not None:
        return "" if any(_same(value, each.claims.get(field)) for each in certificates) else UNCOVERED
    if field not in BOUNDS or value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return DIFFERENT
    if field == "tol" and not 0 < value < 1:
        return "it is not between 0 and 1"
    if field == "distance" and certificates[0].kind == "unreachable":
        return "" if _comes_within(value, result, certificates[0]) else DIFFERENT
    part, name = BOUNDS[field]
    held = [each for each in certificates if name in getattr(each, part)
            and each.kind in ONLY.get(field, (each.kind,)) and each.kind not in NEVER.get(field, ())]  # fmt: skip
    if not held:
        return "" if field == "tol" or (field == "distance" and _trivial(value, certificates)) else UNCOVERED
    held = [each for each in held if _same(value, np.max(_numbers(getattr(each, part)[name])))]
    if field in NORMS:
        held = [each for each in held if _same(result["tol"], each.data["tol"])]
    if not held:
        return DIFFERENT
    if field == "distance_at_least":
        norms = [float(each.claims["norm_at_least"]) for each in held]
        if float(result.get("distance_at_least_below_norm") or math.inf) not in norms:
            return "its certificate leaves queries of larger norms"
    return ""


def _comes_within(distance: float, result: Mapping[str, Any], certificate: Stated, of_target: bool = False) -> bool:
    """Whether the multiple of a result brings a token's output so near to the target, or to within so much of its norm.

    It is computed again in balls; where they cannot tell, it does not.
    """
    arrays = (_numbers(certificate.data[name]) for name in ("X", "Q", "K", "V", "along", "target"))
    token = int(certificate.data["token"])
    with ctx.workprec(PRECISION):
        _, q, k, v, along, target = map(matrix, arrays)
        rows = [matrix(row) for row in _numbers(certificate.data["X"])]
        rows[token] = rows[token] + arb(float(result["multiple"])) * along
        own, keys, values = flat(q * rows[token]), [flat(k * row) for row in rows], [flat(v * row) for row in rows]
        raw, total = exponentials([_dot(own, key) for key in keys])
        output = [_dot(raw, column) / total for column in zip(*values, strict=True)]
        wanted = flat(target)
        size = norm(wanted)
        allowed = (size if of_target else arb(1)) * arb(distance) + arb(NEAR) * (norm(output) + size)
        return bool(norm([o - t for o, t in zip(output, wanted, strict=True)]) <= allowed)


def _dot(one: Sequence[Any], other: Sequence[Any]) -> Any:
    return sum((a * b for a, b in zip(one, other, strict=True)), arb(0))


def _trivial(distance: float, certificates: Sequence[Stated]) -> bool:
    """Whether a distance is 1, which bounds every total variation, where no layers were found."""
    return distance == 1 and {each.kind for each in certificates} == {"no head for given texts"}


def _decided(field: str, value: Any, result: Mapping[str, Any], certificates: Sequence[Stated]) -> str:
    """Whether it can be done, as far as the certificates say; of "copyable", how many keys can be copied."""
    counted = next((each for each in certificates if each.kind == "copyable"), None)
    if counted is not None:
        possible = _numbers(counted.data["possible"])
        counts = {"possible": np.sum(possible), "impossible": np.sum(possible == 0), "keys": len(possible)}
        return "" if _same(value, counts[field]) else DIFFERENT
    if field != "possible":
        return UNCOVERED
    if not isinstance(value, bool):
        return DIFFERENT
    kinds = {each.kind for each in certificates}
    if "unreachable" in kinds:
        tol, least = float(result["tol"]), float(np.max(_numbers(certificates[0].claims["distance"])))
        with ctx.workprec(PRECISION):
            outside = bool(arb(least) > arb(tol) * norm(flat(matrix(_numbers(certificates[0].data["target"])))))
        reached = _comes_within(tol, result, certificates[0], of_target=True) if value else outside
        return "" if reached else DIFFERENT
    distances = [np.max(_numbers(each.claims["distance"])) for each in certificates if each.kind in READS]
    if distances:
        return "" if bool(max(distances) <= float(result["tol"])) == value else DIFFERENT
    (first, *_) = certificates
    if first.kind == "projection" and value:
        return "" if _is_a_projection(first) else "its certificate does not show that the matrix does it"
    if first.kind == "intersection" and not value:
        return "" if _spans_share_it(first) else "its certificate does not show that the spans intersect"
    return "" if first.kind in NONE and not value else UNCOVERED if first.kind in OF_A_QUERY else DIFFERENT


def _is_a_projection(certificate: Stated) -> bool:
    """Whether a matrix keeps and removes every vector of both bases, if roughly: by the certified bounds if they show
    it, else vector by vector."""
    a, b, claims = _numbers(certificate.data["A"]), _numbers(certificate.data["B"]), certificate.claims
    bounds = ((np.max(_numbers(claims[name])), basis) for name, basis in (("keeps", a), ("removes", b)))
    if all(bound <= ROUGH * np.abs(basis).max(axis=0).min() for bound, basis in bounds):
        return True
    if len(a) ** 2 * (a.shape[1] + b.shape[1]) > MANY_PRODUCTS:
        return False
    with ctx.workprec(PRECISION):
        m, kept, removed = matrix(_numbers(certificate.data["M"])), matrix(a), matrix(b)
        pairs = [*zip(_columns(m * kept - kept), _columns(kept), strict=True)]
        pairs += zip(_columns(m * removed), _columns(removed), strict=True)
        return all(bool(norm(off) <= arb(ROUGH) * norm(vector)) for off, vector in pairs)


def _columns(m: Any) -> list[list[Any]]:
    return [[m[i, j] for i in range(m.nrows())] for j in range(m.ncols())]


def _spans_share_it(certificate: Stated) -> bool:
    """Whether A x is B y, to rounding: by the gap between them, which the certificate bounds."""
    return bool(np.max(_numbers(certificate.claims["gap"])) <= SMALL_GAP)


def _rules(result: Mapping[str, Any], certificates: Sequence[Stated]) -> str:
    """The reading tokens; where some of the rules cannot be followed, all of them cannot."""
    rules, first = result["rules"], certificates[0]
    if first.kind in NONE and "rules" in first.data and _plain_numbers(rules):
        tokens = set(range(len(first.data["X"])))
        whole = len(set(rules)) == len(rules) and set(rules) <= tokens
        return "" if whole and set(_numbers(first.data["rules"]).tolist()) <= set(rules) else DIFFERENT
    return _array("rules", rules, certificates)


def _labels(result: Mapping[str, Any], certificates: Sequence[Stated]) -> str:
    """Labels are names, which nothing certifies; but each item must have its own."""
    labels, held = result["labels"], _first(certificates, "keys", "X")
    plain = isinstance(labels, list) and all(isinstance(each, str | int | float) for each in labels)
    if not plain or len(set(labels)) != len(labels):
        return "it is no list of different names"
    return (
        "" if held is None or len(held) == len(labels) else f"it names {len(labels)} items, and there are {len(held)}"
    )


def _wanted(result: Mapping[str, Any], certificates: Sequence[Stated]) -> str:
    wanted, held = result["wanted"], _first(certificates, "wanted")
    if not isinstance(wanted, dict) or held is None:
        return _array("wanted", wanted, certificates)
    labels, items = result.get("labels"), _first(certificates, "items")
    if isinstance(labels, list) and items is not None:
        named = [str(labels[int(i)]) for i in _numbers(items) if 0 <= i < len(labels)]
        if named != list(wanted):
            return DIFFERENT
    return "" if _same(list(wanted.values()), held) else DIFFERENT


def _answers(result: Mapping[str, Any], certificates: Sequence[Stated]) -> str:
    """The decisions about all keys, against the rows of the one certificate that holds them."""
    answers, held = result["answers"], next((each for each in certificates if each.kind == "copyable"), None)
    if held is None:
        return UNCOVERED
    try:
        expected = list(_decisions(held))
    except (KeyError, IndexError, ValueError, TypeError):
        return DIFFERENT
    fields = {"item", *(expected[0] if expected else ())}
    if len(answers) != len(expected) or not all(isinstance(a, dict) and set(a) == fields for a in answers):
        return DIFFERENT
    labels = result.get("labels", [answer["item"] for answer in answers])
    for label, answer, row in zip(labels, answers, expected, strict=True):
        given = {**answer, "combination": answer["combination"] and list(answer["combination"].values())}
        if given["item"] != label or given["possible"] is not row["possible"]:
            return DIFFERENT
        if not all(_same(given[name], value) for name, value in row.items() if name != "possible"):
            return DIFFERENT
    return ""


def _decisions(certificate: Stated) -> Iterator[dict[str, Any]]:
    data, claims = certificate.data, certificate.claims
    queries, margins = iter(data["queries"]), iter(np.atleast_1d(_numbers(claims.get("margin", []))))
    offsets, weights = _numbers(data["offsets"]).astype(int), _numbers(data["weights"])
    at_most, row = np.atleast_1d(_numbers(claims.get("margin_at_most", []))), 0
    for possible in _numbers(data["possible"]):
        if possible:
            margin = float(next(margins))
            yield {
                "possible": True, "query": next(queries), "margin": margin if math.isfinite(margin) else None,
                "combination": None, "margin_at_most": None,
            }  # fmt: skip
        else:
            yield {
                "possible": False, "query": None, "margin": None,
                "combination": weights[offsets[row] : offsets[row + 1]], "margin_at_most": at_most[row],
            }  # fmt: skip
            row += 1


def _shared(result: Mapping[str, Any], certificates: Sequence[Stated]) -> str:
    """The vector in both spans is A x for the certified x."""
    a, x = _first(certificates, "A"), _first(certificates, "x")
    if a is None or x is None:
        return UNCOVERED
    try:
        with ctx.workprec(PRECISION):
            held = np.array([float(each.mid()) for each in products(_numbers(a), _numbers(x))])
        given = _numbers(result["shared"])
        near = _plain_numbers(result["shared"]) and given.shape == held.shape
        near = near and np.abs(given - held).max() <= NEAR * np.abs(held).max()
        near = near and any(_spans_share_it(each) for each in certificates if each.kind == "intersection")
    except (ValueError, TypeError):
        return DIFFERENT
    return "" if near else DIFFERENT


def _first(certificates: Sequence[Stated], *names: str) -> Any:
    """The first datum of one of these names."""
    return next((each.data[name] for each in certificates for name in names if name in each.data), None)


def _numbers(value: Any) -> np.ndarray:
    return np.asarray(value, dtype=np.float64)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same numbers in the same shape, or both null."""
    if one is None or other is None:
        return one is None and other is None
    if not _plain_numbers(one):
        return False
    try:
        return bool(np.array_equal(_numbers(one), _numbers(other)))
    except (ValueError, TypeError):
        return False


def _plain_numbers(value: Any) -> bool:
    """Whether JSON holds numbers alone, at any depth: no text that looks like one, and neither true nor false."""
    if isinstance(value, list):
        return all(map(_plain_numbers, value))
    return isinstance(value, np.ndarray | np.number | int | float) and not isinstance(value, bool)


def _holds_array(value: Any) -> bool:
    """Whether there is a list with a number in it, at any depth."""
    if isinstance(value, dict):
        return any(_holds_array(each) for each in value.values())
    if not isinstance(value, list):
        return False
    return any(isinstance(each, bool | int | float) or _holds_array(each) for each in value)
