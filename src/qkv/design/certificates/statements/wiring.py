"""Statement "Q, K, V follow the rules", and what norm every W that does so has at least."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import arb

from qkv.core.display import lower_bound, upper_bound
from qkv.core.types import BoolArray
from qkv.design.certificates.ball_arithmetic import Ball, combine, exponentials, flat, matrix, norm, weight_gaps
from qkv.design.certificates.statements import rules as rule_parsing
from qkv.design.certificates.statements.base import (
    Bounds,
    Data,
    InvalidCertificate,
    Measured,
    Name,
    Statement,
    array,
    matching,
    tolerance,
)
from qkv.design.certificates.statements.dual_bounds import exact_ratios_inequality, matrix_norm_bound
from qkv.design.certificates.statements.rules import Rules, by_token, parse_rules, scope
from qkv.design.certificates.statements.wiring_bounds import (
    MatrixBound,
    Outputs,
    Readings,
    balls,
    distances,
    exact_ratios,
    lower_bound_ball,
    scaled,
    tiles,
)

FLOAT64_FIRST_SIZE = 500
"""Above this many scores, float64 with rounding bounds is tried before balls."""
MAX_BALL_WORK = 2e7
"""Above this many products of balls, they decide only what float64 leaves open, and only so many rules."""
MAX_OPEN_RULES = 16


def _parse(data: Data) -> dict[str, Any]:
    x, q, k = (array(data, name, 2) for name in ("X", "Q", "K"))
    matching("the tokens, Q and K", x.shape[1], q.shape[1], k.shape[1])
    matching("the rows of Q and K", q.shape[0], k.shape[0])
    rules = parse_rules(data, x.shape[0])
    parsed: dict[str, Any] = {"X": x, "Q": q, "K": k, "rules": rules}
    if "V" in data or "writes" in data:
        parsed["V"] = array(data, "V", 2)
        matching("the tokens and V", x.shape[1], parsed["V"].shape[1])
    writes = data.get("writes")
    if isinstance(writes, Mapping):
        named = by_token("writes", writes)
        if sorted(named) != sorted(rules.readers.tolist()):
            raise InvalidCertificate("the tokens that write are not those that read")
        data = {**data, "writes": np.array([array({"writes": named[i]}, "writes", 1) for i in rules.readers.tolist()])}
    if writes is not None:
        parsed["writes"] = array(data, "writes", 2)
        matching("rules and writes", rules.count, parsed["writes"].shape[0])
        matching("V and writes", parsed["V"].shape[0], parsed["writes"].shape[1])
    if "multipliers" in data or "tol" in data:
        parsed |= {"multipliers": array(data, "multipliers", 1), "tol": tolerance(data)}
        matching("read tokens and multipliers", len(rules.items), len(parsed["multipliers"]))
        if (parsed["multipliers"][rules.offsets[:-1]] < 0).any():
            raise InvalidCertificate("the multiplier of a rule's first token, which is that of its leak, is negative")
    return parsed


def _measure(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    rules: Rules = p["rules"]
    work = rules.count * float(len(p["X"])) * (p["X"].shape[1] + len(p["Q"]))
    if not in_float64 and work <= MAX_BALL_WORK:
        return _in_balls(p, range(rules.count), "norm_at_least" in claims)
    with np.errstate(all="ignore"):
        out = _in_float64(p, claims)
    if in_float64:
        return out
    undecided = np.flatnonzero(_open(out, claims, rules.count))[:MAX_OPEN_RULES]
    for place, row in enumerate(undecided):
        exact = _in_balls(p, [int(row)], False)
        for name, found in exact.items():
            out[name][int(undecided[place])] = found[0]
    return out


def _open(out: Measured, claims: Bounds, rules: int) -> BoolArray:
    """The rules of which a claim is neither proved nor refuted."""
    found = np.zeros(rules, dtype=bool)
    for name in ("distance", "output", "residual"):
        if claims.get(name) and name in out:
            claimed = claims[name] * rules if len(claims[name]) == 1 else claims[name]
            if len(claimed) == rules:
                found |= [not (b <= c or b > c) for b, c in zip(out[name], claimed, strict=True)]
    return found


def _in_float64(p: dict[str, Any], claims: Bounds) -> Measured:
    rules: Rules = p["rules"]
    readings = Readings(p["X"], p["Q"], p["K"])
    outputs = Outputs(readings.x, readings.exponent, p["V"], p["writes"]) if "writes" in p else None
    names = ("distance", "output", "residual") if outputs else ("distance",)
    value = {name: np.zeros(rules.count) for name in names}
    error = {name: np.zeros(rules.count) for name in names}
    bound = MatrixBound(readings.x, readings.exponent, rules.count)
    bounded = "multipliers" in p and "norm_at_least" in claims
    multipliers = scaled(p["multipliers"])[0] if bounded else None
    for tile in tiles(rules):
        raw, relative = readings.raw(tile)
        alpha, kappa, value["distance"][tile.rows], error["distance"][tile.rows] = distances(tile, raw, relative)
        if outputs:
            for name, weights, known in (("output", alpha, kappa), ("residual", tile.wanted, 0.0)):
                value[name][tile.rows], error[name][tile.rows] = outputs.distance(tile, weights, known)
        if multipliers is not None:
            tokens = readings.tokens(tile)
            coefficients, doubt, b, b_error = exact_ratios(tile, rules, raw, multipliers, p["tol"])
            doubt = doubt * readings.lengths.max()
            bound.add(tile, tokens, readings.lengths, coefficients, doubt, b, b_error)
    unit = {"distance": 0} | (dict.fromkeys(("output", "residual"), outputs.exponent) if outputs else {})
    out: Measured = {name: balls(value[name], error[name], unit[name]) for name in names}
    if bounded:
        out["norm_at_least"] = lower_bound_ball(bound.at_least(), claims["norm_at_least"])
    return out


def _in_balls(p: dict[str, Any], rows: range | list[int], bounded: bool) -> Measured:
    rules: Rules = p["rules"]
    few = len(rows) < rules.count  # then products with single vectors are cheaper than those of matrices
    out: Measured = {"distance": []} | ({"output": [], "residual": []} if "writes" in p else {})
    q, k = matrix(p["Q"]), matrix(p["K"])
    x = matrix(p["X"]).transpose()
    keys = None if few else (k * x)
    values = matrix(p["V"]) if "writes" in p else None
    columns = None if few or values is None else (values * x).transpose().table()
    inequalities = []
    for row in rows:
        seen, entries = rules.seen(row), rules.entries(row)
        query = q * matrix(p["X"][rules.readers[row]])
        if keys is None:
            scores = flat(matrix(p["X"][seen]) * (k.transpose() * query))
        else:
            every = flat(query.transpose() * keys)
            scores = [every[j] for j in seen]
        raw, total = exponentials(scores)
        want = dict(zip(rules.items[entries].tolist(), rules.weights[entries].tolist(), strict=True))
        places = {j: place for place, j in enumerate(seen)}
        gap = weight_gaps(raw, {places[j]: w for j, w in want.items()})
        out["distance"].append(sum((abs(g) for g in gap), arb(0)) / (2 * total))
        if values is not None:
            written = [arb(float(y)) for y in p["writes"][row]]
            off = _read(p["X"], values, columns, raw, seen)
            out["output"].append(norm([o - y * total for o, y in zip(off, written, strict=True)]) / total)
            ideal = _read(p["X"], values, columns, [arb(w) for w in want.values()], list(want))
            out["residual"].append(norm([o - y for o, y in zip(ideal, written, strict=True)]))
        if bounded and "multipliers" in p:
            inequalities.append(_inequality(p, row, seen, scores, list(want)))
    if bounded and "multipliers" in p:
        out["norm_at_least"] = matrix_norm_bound(p["X"], inequalities)
    return out


def _read(x: Any, v: Any, columns: Any, weights: list[Ball], tokens: list[int]) -> list[Ball]:
    """The sum of the values V x_j with weights."""
    if columns is None:
        mean = combine(weights, x[tokens])
        return flat(v * type(v)(len(mean), 1, mean))
    wide = range(len(columns[0]))
    return [sum((w * columns[j][m] for j, w in zip(tokens, weights, strict=True)), arb(0)) for m in wide]


def _inequality(
    p: dict[str, Any], row: int, seen: list[int], scores: list[Ball], items: list[int]
) -> tuple[int, list[Ball], Ball]:
    """The inequality of one rule; its mix is the softmax of the scores of the other tokens."""
    rules: Rules = p["rules"]
    entries = rules.entries(row)
    leak, *ratios = (arb(float(v)) for v in p["multipliers"][entries])
    inside = set(items)
    rest = [place for place, j in enumerate(seen) if j not in inside] if not leak.is_zero() else []
    mix: list[Ball] = []
    if rest:
        raw, total = exponentials([scores[place] for place in rest])
        mix = [leak * e / total for e in raw]
    others = [seen[place] for place in rest]
    return int(rules.readers[row]), *exact_ratios_inequality(
        p["X"], items, rules.weights[entries], [arb(0), *ratios], others, mix, p["tol"]
    )


def _describe(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    worst = float(np.max(np.asarray(claims["distance"], dtype=float)))
    text = f"{scope(data)}each rule's token reads as wanted to within {upper_bound(worst, 6)} in total variation"
    if "output" in claims:
        off = float(np.max(np.asarray(claims["output"], dtype=float)))
        text += f", and its output is within {upper_bound(off, 6)} of what it should write"
    if "norm_at_least" in claims:
        tol = lower_bound(float(data["tol"]), 6)
        within = f"as wanted to within {tol} in total variation"
        how = within if _reads_single_tokens(data) else f"in the exact ratios with leaks of at most {tol}"
        text += (
            f"; every W = QᵀK with which they read {how} has a norm of at least "
            f"{lower_bound(float(claims['norm_at_least']), 6)}"
        )
    return text


def _reads_single_tokens(data: Data) -> bool:
    """Whether each rule wants a weight of exactly 1: total variation and leak are then the same."""
    if "reads" in data:
        reads = data["reads"].values()
        return all(not isinstance(r, Mapping) or [w for w in r.values() if w != 0] == [1.0] for r in reads)
    weights = np.asarray(data["wanted"] if "wanted" in data else data["weights"], dtype=float)
    return bool(np.isin(weights, (0.0, 1.0)).all())


def _float64_first(data: Data) -> bool:
    rules = len(data["reads"]) if "reads" in data else int(np.size(data["rules"]))
    return rules * len(data["X"]) > FLOAT64_FIRST_SIZE


WIRING = Statement(
    fields=("X", "Q", "K", "V", *rule_parsing.FIELDS, "writes", "multipliers", "tol"),
    parse=_parse,
    measure=_measure,
    describe=_describe,
    senses={"distance": "<=", "output": "<=", "residual": "<=", "norm_at_least": ">="},
    required=("distance",),
    claim_names={
        "distance": "distance of each rule's weights",
        "output": "distance of each rule's output",
        "residual": "what V leaves of each rule's output",
        "norm_at_least": "norm of every W that follows the rules",
    },
    float64_first=_float64_first,
    positive=("norm_at_least",),
)
