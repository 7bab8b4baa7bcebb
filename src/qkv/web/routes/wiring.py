"""Wiring: tokens as sums of named vectors, rules, and the Q, K, V that follow them."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

import numpy as np
import torch
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from qkv.core.attention import self_attention
from qkv.design.wiring import Wiring, wire
from qkv.errors import QkvError
from qkv.web import code_snippets, limits
from qkv.web.schemas import REFUSALS, Entry, Label, Python, Row, Shape, Tolerance, reply
from qkv.web.wiring_derivation import Line, derivation

router = APIRouter(prefix="/api", tags=["wiring"], responses=REFUSALS)

Sum = Annotated[
    dict[Label, Annotated[Entry, Field(ge=-100, le=100)]], Field(min_length=1, max_length=limits.MOST_NAMES)
]


class TokenShape(Shape):
    """A token: a sum of named orthonormal vectors."""

    name: Label
    made_of: Sum = Field(alias="is", description="Coefficients by vector, as {'u_d': 1, 'u_b': 1}.")


class RuleShape(Shape):
    """What one token reads and writes."""

    token: Label
    reads: Label | dict[Label, Annotated[Entry, Field(ge=0, le=1)]] = Field(
        description="A token's name, or weights by name."
    )
    writes: Sum = Field(description="The output, as coefficients by vector.")


class WiringRequest(Shape):
    """Tokens, rules, and the length β of the named vectors."""

    tokens: list[TokenShape] = Field(min_length=1, max_length=limits.MOST_TOKENS)
    rules: list[RuleShape] = Field(min_length=1, max_length=limits.MOST_TOKENS)
    beta: float = Field(default=1.0, ge=0, le=100, description="Length of the named vectors.")
    tol: Tolerance = Field(default=0.05, description="How near the weights come to the rules at β = 1.")


class LineReply(BaseModel):
    """One line of the derivation, in words and for paper."""

    text: str
    latex: str


class WiringReply(BaseModel):
    """Matrices for vectors of length 1, and what they do at length β."""

    possible: bool
    says: str = Field(description="What the certificate says of β = 1.")
    names: list[str] = Field(description="The tokens: rows and columns of weights, rows of outputs.")
    vectors: list[str] = Field(description="The named vectors: columns of Q, K, V and outputs.")
    Q: list[Row] | None
    K: list[Row] | None
    V: list[Row] | None
    weights: list[Row] | None
    outputs: list[Row] | None = Field(description="In units of the named vectors, which have length β.")
    derivation: list[LineReply]
    python: Python


@router.post("/wiring", response_model=WiringReply)
async def wiring(asked: WiringRequest, request: Request) -> Response:
    """Q, K, V for the rules, the weights and outputs at β, and the derivation."""
    return reply(await request.app.state.work.run("wiring tokens", _wiring, asked))


def _wiring(asked: WiringRequest) -> dict[str, Any]:
    names = [token.name for token in asked.tokens]
    _different("tokens", names)
    vectors = list(dict.fromkeys(v for part in (*_sums(asked),) for v in part))
    if len(vectors) > limits.MOST_NAMES:
        raise QkvError("wiring tokens", f"{len(vectors)} vectors are named", f"Name at most {limits.MOST_NAMES}")
    X = [_row(token.made_of, vectors) for token in asked.tokens]
    readers = [_place(names, rule.token) for rule in asked.rules]
    _different("rules for tokens", [rule.token for rule in asked.rules])
    reads = [
        ((_place(names, rule.reads), 1.0),)
        if isinstance(rule.reads, str)
        else tuple((_place(names, name), w) for name, w in rule.reads.items())
        for rule in asked.rules
    ]
    writes = [_row(rule.writes, vectors) for rule in asked.rules]
    found = wired(tuple(map(tuple, X)), tuple(zip(readers, reads, strict=True)), tuple(map(tuple, writes)), asked.tol)
    weights = outputs = None
    if found.possible:
        assert found.Q is not None and found.K is not None and found.V is not None
        reading = self_attention(asked.beta * np.array(X), found.Q, found.K, found.V)
        # A vector of length β is one unit here: V βx is already a sum of the named vectors, in units of 1.
        weights, outputs = reading.weights, reading.output / asked.beta if asked.beta else reading.output
    lines: list[Line] = derivation(names, vectors, X, found, asked.beta, weights, outputs)
    return {
        "possible": found.possible,
        "says": found.certificate.statement,
        "names": names,
        "vectors": vectors,
        "Q": found.Q,
        "K": found.K,
        "V": found.V,
        "weights": weights,
        "outputs": outputs,
        "derivation": lines,
        "python": code_snippets.wiring(
            X,
            {i: dict(parts) for i, parts in zip(readers, reads, strict=True)},
            dict(zip(readers, writes, strict=True)),
            asked.tol,
            asked.beta,
            found.possible,
        ),
    }


@lru_cache(maxsize=64)
def wired(X: Any, reads: Any, writes: Any, tol: float) -> Wiring:
    """The matrices, kept while β moves: they do not depend on it."""
    rules = {i: dict(parts) for i, parts in reads}
    targets = {i: list(row) for (i, _), row in zip(reads, writes, strict=True)}
    return wire(torch.tensor(X, dtype=torch.float64), rules, targets, tol)


def _sums(asked: WiringRequest) -> list[dict[str, float]]:
    return [*(token.made_of for token in asked.tokens), *(rule.writes for rule in asked.rules)]


def _row(made_of: dict[str, float], vectors: list[str]) -> list[float]:
    return [float(made_of.get(v, 0.0)) for v in vectors]


def _place(names: list[str], name: str) -> int:
    if name not in names:
        raise QkvError(f"a rule for {name!r}", "there is no such token", f"Name one of {', '.join(names)}")
    return names.index(name)


def _different(what: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise QkvError("wiring tokens", f"there are two {what} {', '.join(twice)}", "Name each once")
