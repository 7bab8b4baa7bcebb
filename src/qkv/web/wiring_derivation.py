"""The derivation on the wiring page, in words and in LaTeX, from the numbers that the library computes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from qkv.core.display import number

if TYPE_CHECKING:
    from qkv.design.wiring import Wiring

TIE_TOLERANCE = 1e-6
"""Scores within this of the highest, relative to it where it exceeds 1, are taken as equal to it."""


@dataclass(frozen=True)
class Line:
    """One line of a derivation.

    Attributes:
        text: The line in words.
        latex: The line as a formula.
    """

    text: str
    latex: str


def derivation(
    names: list[str],
    vectors: list[str],
    X: list[list[float]],
    wiring: Wiring,
    beta: float,
    weights: Any,
    outputs: Any,
) -> list[Line]:
    """Tokens, then scores, weights, output and limit of each token that has a rule.

    Args:
        names: Names of the tokens.
        vectors: Names of the orthogonal vectors.
        X: Coefficients of the tokens, a row per token and a column per vector.
        wiring: The matrices, designed for vectors of length 1, or the proof that there are none.
        beta: Length of the vectors.
        weights: Attention weights at this length; not read where the wiring is impossible.
        outputs: Outputs at this length, as coefficients of the vectors; likewise.

    Returns:
        The lines in order.
    """
    lines = _setting(names, vectors, X, beta)
    if not wiring.possible:
        text = f"no W = QᵀK satisfies the rules: {wiring.certificate.statement}"
        return [*lines, Line(text, r"\nexists\, W = Q^\top K")]
    assert wiring.W is not None
    lines.append(
        Line(
            "token i scores token j by s_ij = x_iᵀ W x_j with W = QᵀK, so all scores grow as β²",
            r"s_{ij} = (Q x_i)^\top (K x_j) = x_i^\top W x_j = \beta^2\, \bar{x}_i^\top W \bar{x}_j",
        )
    )
    x = np.array(X, dtype=float)
    unit_scores = (x @ wiring.W.numpy() @ x.T).tolist()
    for i in wiring.rules:
        lines += _rule(i, names, vectors, unit_scores[i], beta, weights[i], outputs[i])
    return lines


def _setting(names: list[str], vectors: list[str], X: list[list[float]], beta: float) -> list[Line]:
    """What the tokens are, and the length of the vectors."""
    tokens = [
        Line(f"{name} = {_sum(row, vectors)}", f"{_tex_name(name)} = {_tex_sum(row, vectors)}")
        for name, row in zip(names, X, strict=True)
    ]
    first = _tex_name(vectors[0])
    length = Line(
        f"the named vectors are orthogonal, of length β = {number(beta)}",
        rf"{first}^\top {first} = \beta^2,\quad \beta = {_tex_number(number(beta))}",
    )
    return [*tokens, length]


def _rule(
    i: int,
    names: list[str],
    vectors: list[str],
    unit_scores: Sequence[float],
    beta: float,
    weights: Sequence[float],
    output: Sequence[float],
) -> list[Line]:
    """Scores, weights, output and limit of token i; `unit_scores` are the scores at β = 1."""
    name, row = names[i], rf"{{{i + 1},\cdot}}"
    scores = [number(beta * beta * score, 3) for score in unit_scores]
    by_name = ", ".join(f"{score} for {other}" for other, score in zip(names, scores, strict=True))
    shown_weights = [number(float(w), 3) for w in weights]
    coefficients = [round(float(c), 3) for c in output]
    rounded = any(float(c) != shown for c, shown in zip(output, coefficients, strict=True))
    equals = r"\approx" if rounded else "="
    return [
        Line(f"{name} gives the scores {by_name}", rf"s_{row} = ({_tex_row(scores)})"),
        Line(
            f"softmax gives {name} the weights {', '.join(shown_weights)}",
            rf"\alpha_{row} = \mathrm{{softmax}}(s_{row}) = ({_tex_row(shown_weights)})",
        ),
        Line(
            f"so {name} writes {_sum(coefficients, vectors)}" + (", to three decimals" if rounded else ""),
            rf"y_{{{i + 1}}} = \sum_j \alpha_{{{i + 1}j}} V x_j {equals} "
            rf"{_tex_sum(coefficients, vectors)}",
        ),
        _limit(i, names, unit_scores),
    ]


def _limit(i: int, names: list[str], unit_scores: Sequence[float]) -> Line:
    """What token i reads as β grows without bound: the tokens with the highest score, in equal parts.

    Nothing is said of the limit where the scores agree only up to rounding, as those of a designed blend do.
    """
    top = max(unit_scores)
    ties = [j for j, score in enumerate(unit_scores) if top - score <= TIE_TOLERANCE * max(1.0, abs(top))]
    read = " and ".join(names[j] for j in ties)
    if any(unit_scores[j] != top for j in ties):
        scores = r" \approx ".join(f"s_{{{i + 1},{j + 1}}}" for j in ties)
        return Line(f"the highest scores of {names[i]} agree up to rounding: it reads {read} in equal parts", scores)
    equally = ", equally" if len(ties) > 1 else ""
    weight = f"1/{len(ties)}" if len(ties) > 1 else "1"
    return Line(
        f"as β → ∞ the highest score takes all the weight: {names[i]} reads {read}{equally}",
        rf"\lim_{{\beta\to\infty}} \alpha_{{{i + 1},j}} = {weight}"
        rf"\quad\text{{for }} j \in \{{{', '.join(str(j + 1) for j in ties)}\}}",
    )


def _sum(coefficients: Sequence[float], vectors: list[str]) -> str:
    """As in "u_d + 2 u_b"."""
    return _join_terms([(c, v) for c, v in zip(coefficients, vectors, strict=True) if c], " ")


def _tex_sum(coefficients: Sequence[float], vectors: list[str]) -> str:
    return _join_terms([(c, _tex_name(v)) for c, v in zip(coefficients, vectors, strict=True) if c], r"\,", _tex_number)


def _join_terms(terms: list[tuple[float, str]], separator: str, write: Callable[[str], str] = str) -> str:
    out = ""
    for coefficient, vector in terms:
        size = "" if abs(coefficient) == 1 else f"{write(number(abs(coefficient), 3))}{separator}"
        out += (" - " if coefficient < 0 else " + ") if out else ("-" if coefficient < 0 else "")
        out += f"{size}{vector}"
    return out or "0"


def _tex_row(numbers: Sequence[str]) -> str:
    return r",\; ".join(map(_tex_number, numbers))


def _tex_number(text: str) -> str:
    r"""3.2e-40 as 3.2 \cdot 10^{-40}; LaTeX would set the e as a variable."""
    mantissa, e, exponent = text.partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if e else text


def _tex_name(name: str) -> str:
    r"""u_d as u_{d}; any other name as \text, without characters that LaTeX would interpret."""
    found = re.fullmatch(r"([A-Za-z])_?([A-Za-z0-9]{0,4})", name)
    if found:
        return f"{found[1]}_{{{found[2]}}}" if found[2] else found[1]
    safe = re.sub(r"[^A-Za-z0-9 .,+-]", " ", name)
    return rf"\text{{{safe}}}"
