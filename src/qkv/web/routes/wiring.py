"""Wiring page: tokens as sums of named vectors, rules, and Q, K, V that satisfy them."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from qkv.core.display import number
from qkv.errors import QkvError
from qkv.web import code_snippets, limits
from qkv.web.compute_pool import ComputePool
from qkv.web.schemas import REFUSALS, Entry, Label, PythonCode, RequestModel, Row, Tolerance, json_reply
from qkv.web.wiring_derivation import Line, derivation
from qkv.web.wiring_rules import rule_reports

if TYPE_CHECKING:
    from qkv.design.wiring import Wiring

router = APIRouter(prefix="/api", tags=["wiring"], responses=REFUSALS)

Status = Literal["exact", "within", "out of reach", "not found"]
"""As `qkv.design.wiring.Status`, whose module imports torch."""
VectorSum = Annotated[
    dict[Label, Annotated[Entry, Field(ge=-100, le=100)]], Field(min_length=1, max_length=limits.MAX_WIRING_VECTORS)
]


class Token(RequestModel):
    """A token: a sum of named orthonormal vectors."""

    name: Label
    coefficients: VectorSum = Field(alias="is", description="Coefficients by vector, as {'u_d': 1, 'u_b': 1}.")


class Rule(RequestModel):
    """What one token reads and writes."""

    token: Label
    reads: Label | dict[Label, Annotated[Entry, Field(ge=-100, le=100)]] = Field(
        description="A token's name, or weights by name: not negative, with a sum of 1."
    )
    writes: VectorSum = Field(description="The output, as coefficients by vector.")


class WiringRequest(RequestModel):
    """Tokens, rules, and the length β of the named vectors."""

    tokens: list[Token] = Field(min_length=1, max_length=limits.MAX_WIRING_TOKENS)
    rules: list[Rule] = Field(min_length=1, max_length=limits.MAX_WIRING_TOKENS)
    beta: float = Field(default=1.0, ge=0, le=100, description="Length of the named vectors.")
    tol: Tolerance = Field(default=0.05, description="Largest distance of the weights from the rules at β = 1.")


class LineReply(BaseModel):
    """One line of the derivation, in words and in LaTeX."""

    text: str
    latex: str


class RuleReply(BaseModel):
    """Whether a rule is met at β."""

    token: str
    wanted: dict[str, float] = Field(description="Wanted weights by token.")
    met: bool = Field(description="Whether the weights at β are within tol of the rule, and V writes what it says.")
    distance: float | None = Field(description="Distance of the weights at β from the rule, in total variation.")
    residual: float | None = Field(description="Distance of what V writes from the rule if the weights were exact.")
    why: str = Field(description="Why the rule is not met, or cannot be; may be empty where all rules together cannot.")


class WiringReply(BaseModel):
    """Matrices for vectors of length 1, and their weights and outputs at length β."""

    possible: bool
    status: Status = Field(description="`not found`: what is proved holds for the exact ratios of the rules only.")
    says: str = Field(description="The statement of the certificate, for β = 1.")
    names: list[str] = Field(description="The tokens: rows and columns of weights, rows of outputs.")
    vectors: list[str] = Field(description="The named vectors: columns of Q, K, V and outputs.")
    Q: list[Row] | None
    K: list[Row] | None
    V: list[Row] | None
    weights: list[Row] | None
    outputs: list[Row] | None = Field(description="In units of the named vectors, which have length β.")
    rules: list[RuleReply]
    excludes_every_wiring: bool = Field(description="Whether it excludes all matrices, whatever their norm.")
    derivation: list[LineReply]
    python: PythonCode


@router.post("/wiring", response_model=WiringReply)
async def wiring(body: WiringRequest, request: Request) -> Response:
    """Q, K, V for the rules, the weights and outputs at β, and the derivation."""
    pool: ComputePool = request.app.state.compute_pool
    return json_reply(await pool.run("wiring tokens", _wiring, body))


def _wiring(body: WiringRequest) -> dict[str, Any]:
    from qkv.core.attention import self_attention  # with torch: imported by the first request

    names = [token.name for token in body.tokens]
    _check_distinct("tokens", names)
    vectors = _vector_names(body)
    if len(vectors) > limits.MAX_WIRING_VECTORS:
        raise QkvError(
            "wiring tokens", f"{len(vectors)} vectors are named", f"Name at most {limits.MAX_WIRING_VECTORS}"
        )
    X = [_row(token.coefficients, vectors) for token in body.tokens]
    readers = [_index(names, rule.token) for rule in body.rules]
    _check_distinct("rules for tokens", [rule.token for rule in body.rules])
    reads = [
        ((_index(names, rule.reads), 1.0),)
        if isinstance(rule.reads, str)
        else tuple((_index(names, name), w) for name, w in rule.reads.items())
        for rule in body.rules
    ]
    for rule in body.rules:
        _check_weights(rule)
    writes = [_row(rule.writes, vectors) for rule in body.rules]
    found = _wire(tuple(map(tuple, X)), tuple(zip(readers, reads, strict=True)), tuple(map(tuple, writes)), body.tol)
    weights = outputs = None
    if found.possible:
        assert found.Q is not None and found.K is not None and found.V is not None
        reading = self_attention(body.beta * np.array(X), found.Q, found.K, found.V)
        # Outputs are in units of the named vectors, whose length is β.
        weights, outputs = reading.weights, reading.output / body.beta if body.beta else reading.output
    lines: list[Line] = derivation(names, vectors, X, found, body.beta, weights, outputs)
    return {
        "possible": found.possible,
        "status": found.status,
        "says": found.certificate.worded(dict(enumerate(names))),
        "names": names,
        "vectors": vectors,
        "Q": found.Q,
        "K": found.K,
        "V": found.V,
        "weights": weights,
        "outputs": outputs,
        "rules": [asdict(report) for report in rule_reports(names, X, readers, reads, writes, found, weights)],
        "excludes_every_wiring": found.status == "out of reach" and found.certificate.excludes_all,
        "derivation": lines,
        "python": code_snippets.wiring(
            names,
            vectors,
            X,
            {i: dict(parts) for i, parts in zip(readers, reads, strict=True)},
            dict(zip(readers, writes, strict=True)),
            body.tol,
            body.beta,
            found.possible,
        ),
    }


@lru_cache(maxsize=64)
def _wire(X: Any, reads: Any, writes: Any, tol: float) -> Wiring:
    """The matrices; cached, since they do not depend on β, which is what the page changes most."""
    import torch

    from qkv.design.wiring import wire

    rules = {i: dict(parts) for i, parts in reads}
    targets = {i: list(row) for (i, _), row in zip(reads, writes, strict=True)}
    return wire(torch.tensor(X, dtype=torch.float64), rules, targets, tol)


def _vector_names(body: WiringRequest) -> list[str]:
    """The named vectors in the order in which they appear."""
    sums = [*(token.coefficients for token in body.tokens), *(rule.writes for rule in body.rules)]
    return list(dict.fromkeys(name for vector_sum in sums for name in vector_sum))


def _row(coefficients: dict[str, float], vectors: list[str]) -> list[float]:
    return [float(coefficients.get(v, 0.0)) for v in vectors]


def _check_weights(rule: Rule) -> None:
    """Refuse weights that are negative or do not sum to 1, in the words of the rule."""
    if isinstance(rule.reads, str):
        return
    request, total = f"the rule {rule.token} reads {sum_text(rule.reads)}", sum(rule.reads.values())
    negative = [name for name, weight in rule.reads.items() if weight < 0]
    if negative:
        hint = "Weights of attention are never negative: leave it out, or let the rule write the difference"
        raise QkvError(request, f"the weight of {', '.join(negative)} is negative", hint)
    if abs(total - 1) > 1e-9:
        shares = {name: weight / total for name, weight in rule.reads.items()} if total > 0 else rule.reads
        hint = f"Write {sum_text(shares)}" if total > 0 else "Name a token, or weights that sum to 1"
        raise QkvError(request, f"the weights sum to {number(total)}, not to 1", hint)


def sum_text(coefficients: dict[str, float]) -> str:
    """A sum of names as the page writes it: `x_2 + x_3`, `1/2 x_2 - 0.3 x_3`."""
    text = ""
    for name, coefficient in coefficients.items():
        size = abs(coefficient)
        share = Fraction(size).limit_denominator(12)
        factor = "" if size == 1 else f"{share} " if abs(share - size) < 1e-12 else f"{number(size)} "
        sign = ("- " if coefficient < 0 else "+ ") if text else ("-" if coefficient < 0 else "")
        text += f"{' ' if text else ''}{sign}{factor}{name}"
    return text


def _index(names: list[str], name: str) -> int:
    if name not in names:
        raise QkvError(f"a rule for {name!r}", "there is no such token", f"Name one of {', '.join(names)}")
    return names.index(name)


def _check_distinct(what: str, names: list[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise QkvError("wiring tokens", f"there are two {what} {', '.join(repeated)}", "Name each once")
