"""Statements "Q, K, V follow the rules" and "no W = QᵀK does, up to some norm"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import arb

from qkv.core.display import lower_bound, upper_bound
from qkv.design.certificates.ball_arithmetic import combine, exponentials, flat, matrix, norm
from qkv.design.certificates.statements.base import (
    Bounds,
    Data,
    InvalidCertificate,
    Measured,
    Name,
    Statement,
    array,
    indices,
    matching,
    scalar,
    tolerance,
)


def read_rules(data: Data, tokens: int) -> dict[str, Any]:
    """Rules as arrays, or in the form for people: reads {token: token or {token: weight}}."""
    if "reads" in data:
        if not isinstance(data["reads"], Mapping) or "rules" in data or "wanted" in data:
            raise InvalidCertificate(
                "the rules are either reads {token: token or blend} or the arrays rules and wanted"
            )
        reads = _by_token("reads", data["reads"])
        rules = list(reads)  # in the order of the file, which arrays of writes and bounds follow
        wanted = np.zeros((len(rules), tokens))
        for row, i in enumerate(rules):
            blend = reads[i] if isinstance(reads[i], Mapping) else {reads[i]: 1.0}
            for j, w in _by_token(f"what token {i} reads", blend).items():
                if not 0 <= j < tokens:
                    raise InvalidCertificate(f"rule {i} reads token {j}, and there are {tokens}")
                wanted[row, j] = scalar({"weight": w}, "weight")
        data = {**data, "rules": np.array(rules, dtype=float), "wanted": wanted}
    out: dict[str, Any] = {"rules": indices(data, "rules", tokens), "wanted": array(data, "wanted", 2)}
    matching("rules and wanted weights", len(out["rules"]), out["wanted"].shape[0])
    matching("tokens and wanted weights", tokens, out["wanted"].shape[1])
    if (out["wanted"] < 0).any() or (np.abs(out["wanted"].sum(axis=1) - 1) > 1e-9).any():
        raise InvalidCertificate("the wanted weights of each rule must be non-negative and sum to 1")
    return out


def _by_token(what: str, named: Mapping[Any, Any]) -> dict[int, Any]:
    """A mapping by token number; JSON names are strings, so "2" stands for 2."""
    out: dict[int, Any] = {}
    for token, value in named.items():
        text = str(int(token)) if isinstance(token, float) and token.is_integer() else str(token)
        if not (text.isascii() and text.isdigit() and str(int(text)) == text):
            raise InvalidCertificate(f"{what} names the token {token!r}, which is no whole number")
        if int(text) in out:
            raise InvalidCertificate(f"{what} names token {int(text)} twice")
        out[int(text)] = value
    return out


def _parse(data: Data) -> dict[str, Any]:
    x, q, k, v = (array(data, name, 2) for name in ("X", "Q", "K", "V"))
    matching("the tokens, Q, K and V", x.shape[1], q.shape[1], k.shape[1], v.shape[1])
    matching("the rows of Q and K", q.shape[0], k.shape[0])
    parsed = {"X": x, "Q": q, "K": k, "V": v, **read_rules(data, x.shape[0])}
    writes = data.get("writes")
    if isinstance(writes, Mapping):
        named = _by_token("writes", writes)
        if sorted(named) != sorted(parsed["rules"]):
            raise InvalidCertificate("the tokens that write are not those that read")
        data = {**data, "writes": np.array([array({"writes": named[i]}, "writes", 1) for i in parsed["rules"]])}
    if writes is not None:
        parsed["writes"] = array(data, "writes", 2)
        matching("rules and writes", len(parsed["rules"]), parsed["writes"].shape[0])
        matching("V and writes", v.shape[0], parsed["writes"].shape[1])
    return parsed


def _measure(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    x = matrix(p["X"]).transpose()
    queries, keys, values = matrix(p["Q"]) * x, matrix(p["K"]) * x, matrix(p["V"]) * x
    scores = (queries.transpose() * keys).table()
    columns = values.transpose().table()
    distances, outputs, residuals = [], [], []
    for row, i in enumerate(p["rules"]):
        raw, total = exponentials(scores[i])
        gap = [e - arb(float(w)) * total for e, w in zip(raw, p["wanted"][row], strict=True)]
        distances.append(sum((abs(g) for g in gap), arb(0)) / (2 * total))
        if "writes" in p:
            wide = range(len(columns[0]))
            read = [sum((e * c[m] for e, c in zip(raw, columns, strict=True)), arb(0)) for m in wide]
            off = norm([r - arb(float(y)) * total for r, y in zip(read, p["writes"][row], strict=True)])
            outputs.append(off / total)
            ideal = [
                sum((arb(float(w)) * c[m] for w, c in zip(p["wanted"][row], columns, strict=True)), arb(0))
                for m in wide
            ]
            residuals.append(norm([r - arb(float(y)) for r, y in zip(ideal, p["writes"][row], strict=True)]))
    return (
        {"distance": distances, "output": outputs, "residual": residuals} if "writes" in p else {"distance": distances}
    )


def _describe(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    worst = float(np.max(np.asarray(claims["distance"], dtype=float)))
    text = f"each rule's token reads as wanted to within {upper_bound(worst, 6)} in total variation"
    if "output" in claims:
        off = float(np.max(np.asarray(claims["output"], dtype=float)))
        text += f", and its output is within {upper_bound(off, 6)} of what it should write"
    return text


def _parse_no_wiring(data: Data) -> dict[str, Any]:
    x = array(data, "X", 2)
    parsed = {"X": x, **read_rules(data, x.shape[0]), "tol": tolerance(data)}
    parsed |= {name: array(data, name, 2) for name in ("mix", "multipliers")}
    for name in ("mix", "multipliers"):
        if parsed[name].shape != parsed["wanted"].shape:
            raise InvalidCertificate(
                f"{name} has shape {parsed[name].shape}, the wanted weights {parsed['wanted'].shape}"
            )
    inside = parsed["wanted"] > 0
    if (parsed["mix"] < 0).any() or parsed["mix"][inside].any() or parsed["multipliers"][~inside].any():
        raise InvalidCertificate("mix belongs on the unwanted tokens and multipliers on the wanted ones")
    return parsed


def _measure_no_wiring(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    """A bound from below on the norm of W, as in `weights.least_norm`: here the unknown is W, the scores of rule
    r are x_i·W x_j, so each rule gives <x_i g_r^T, W> >= b_r and their sum gives |W| >= sum b_r / |sum x_i g_r^T|.
    A rule's mix need not sum to 1: its sum is the factor in front of that rule's leak inequality.
    """
    x = p["X"]
    tol = arb(p["tol"])
    edge = (tol / (1 - tol)).log()
    b = arb(0)
    total = matrix(np.zeros((x.shape[1], x.shape[1])))
    for row, i in enumerate(p["rules"]):
        inside = [int(j) for j in np.flatnonzero(p["wanted"][row] > 0)]
        first = inside[0]
        logs = {j: arb(float(p["wanted"][row, j])).log() for j in inside}
        nu = {j: arb(float(p["multipliers"][row, j])) for j in inside}
        rest = [int(j) for j in np.flatnonzero(p["mix"][row] > 0)]
        mix = [arb(float(p["mix"][row, j])) for j in rest]
        factor = sum(mix, arb(0))
        b = b + sum((nu[j] * (logs[j] - logs[first]) for j in inside), arb(0))
        coefficients = [*nu.values(), factor - sum(nu.values(), arb(0)), *(-m for m in mix)]
        g = combine(coefficients, x[[*inside, first, *rest]])
        if rest:
            entropy = -sum((m * (m / factor).log() for m in mix), arb(0))
            whole = sum((arb(float(p["wanted"][row, j])) for j in inside), arb(0))
            b = b + factor * (logs[first] - whole.log() - edge) + entropy
        total = total + matrix(x[i]) * type(total)(1, len(g), g)
    size = norm(flat(total))
    if size.is_zero():
        return {"norm_at_least": arb.pos_inf() if b > 0 else arb(0)}
    return {"norm_at_least": b / size}


def _describe_no_wiring(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    bound = float(claims["norm_at_least"])
    which = "no matrix W = QᵀK" if bound == np.inf else f"no W = QᵀK of norm below {lower_bound(bound)}"
    tol = lower_bound(float(data["tol"]), 6)
    return f"{which} makes these tokens read as wanted, in exact ratios with a leak of at most {tol}"


WIRING = Statement(
    fields=("X", "Q", "K", "V", "rules", "wanted", "reads", "writes"),
    parse=_parse,
    measure=_measure,
    describe=_describe,
    senses={"distance": "<=", "output": "<=", "residual": "<="},
    required=("distance",),
    claim_names={
        "distance": "distance of each rule's weights",
        "output": "distance of each rule's output",
        "residual": "what V leaves of each rule's output",
    },
)

NO_WIRING = Statement(
    fields=("X", "rules", "wanted", "reads", "mix", "multipliers", "tol"),
    parse=_parse_no_wiring,
    measure=_measure_no_wiring,
    describe=_describe_no_wiring,
    senses={"norm_at_least": ">="},
    required=("norm_at_least",),
    claim_names={"norm_at_least": "norm of every W with the exact ratios"},
    positive=("norm_at_least",),
)
