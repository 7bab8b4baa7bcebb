"""A wiring's derivation, in words and in LaTeX, from the numbers that the library gives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from qkv.core.display import number
from qkv.design.wiring import Wiring


@dataclass(frozen=True)
class Line:
    """One line, for the screen and for paper."""

    text: str
    latex: str


def derivation(
    names: list[str], vectors: list[str], X: list[list[float]], found: Wiring, beta: float, weights: Any, outputs: Any
) -> list[Line]:
    """Tokens, scores, weights and outputs of each rule, and what happens as β grows."""
    lines = [
        Line(f"{name} = {_sum(row, vectors)}", f"{_tex(name)} = {_tex_sum(row, vectors)}")
        for name, row in zip(names, X, strict=True)
    ]
    lines.append(
        Line(
            f"the named vectors are orthogonal, of length β = {number(beta)}",
            rf"{_tex(vectors[0])}^\top {_tex(vectors[0])} = \beta^2,\quad \beta = {number(beta)}",
        )
    )
    if not found.possible:
        says = found.certificate.statement
        return [*lines, Line(f"no W = QᵀK follows the rules: {says}", r"\nexists\, W = Q^\top K")]
    assert found.W is not None
    W = found.W.tolist()
    lines.append(
        Line(
            "token i scores token j by s_ij = x_iᵀ W x_j with W = QᵀK, so all scores grow as β²",
            r"s_{ij} = (Q x_i)^\top (K x_j) = x_i^\top W x_j = \beta^2\, \bar{x}_i^\top W \bar{x}_j",
        )
    )
    for i in found.rules:
        at_one = [
            sum(X[i][a] * W[a][b] * X[j][b] for a in range(len(vectors)) for b in range(len(vectors)))
            for j in range(len(X))
        ]
        scores = [beta * beta * s for s in at_one]
        seen = ", ".join(f"{name}: {number(s, 3)}" for name, s in zip(names, scores, strict=True))
        top = max(range(len(at_one)), key=at_one.__getitem__)
        lines.append(
            Line(
                f"scores of {names[i]}: {seen}",
                rf"s_{{{i + 1},\cdot}} = ({', '.join(number(s, 3) for s in scores)})",
            )
        )
        shown = ", ".join(number(float(x), 3) for x in weights[i])
        out = [float(x) for x in outputs[i]]
        lines.append(
            Line(
                f"softmax gives {names[i]} the weights {shown}",
                rf"\alpha_{{{i + 1},\cdot}} = \mathrm{{softmax}}(s_{{{i + 1},\cdot}}) = ({shown})",
            )
        )
        lines.append(
            Line(
                f"so {names[i]} writes {_sum([_near(x) for x in out], vectors)}",
                rf"y_{{{i + 1}}} = \sum_j \alpha_{{{i + 1}j}} V x_j = {_tex_sum([_near(x) for x in out], vectors)}",
            )
        )
        ties = [j for j in range(len(at_one)) if abs(at_one[j] - at_one[top]) <= 1e-6 * max(1.0, abs(at_one[top]))]
        target = " and ".join(names[j] for j in ties)
        lines.append(
            Line(
                f"as β → ∞ the highest score takes all: {names[i]} reads {target}"
                + (", equally" if len(ties) > 1 else ""),
                rf"\lim_{{\beta\to\infty}} \alpha_{{{i + 1},j}} = {f'1/{len(ties)}' if len(ties) > 1 else '1'}"
                rf"\quad\text{{for }} j \in \{{{', '.join(str(j + 1) for j in ties)}\}}",
            )
        )
    return lines


def _near(x: float) -> float:
    return round(x, 3)


def _sum(row: list[float], vectors: list[str]) -> str:
    parts = [(x, v) for x, v in zip(row, vectors, strict=True) if x]
    return _joined([(x, v) for x, v in parts]) or "0"


def _tex_sum(row: list[float], vectors: list[str]) -> str:
    return _joined([(x, _tex(v)) for x, v in zip(row, vectors, strict=True) if x], r"\,") or "0"


def _joined(parts: list[tuple[float, str]], between: str = " ") -> str:
    out = ""
    for x, v in parts:
        size = "" if abs(x) == 1 else f"{number(abs(x), 3)}{between}"
        out += (" - " if x < 0 else " + ") if out else ("-" if x < 0 else "")
        out += f"{size}{v}"
    return out


def _tex(name: str) -> str:
    """u_d as u_{d}; anything else as text, with what LaTeX would take for a command made harmless."""
    found = re.fullmatch(r"([A-Za-z])_?([A-Za-z0-9]{0,4})", name)
    if found:
        return f"{found[1]}_{{{found[2]}}}" if found[2] else found[1]
    safe = re.sub(r"[^A-Za-z0-9 .,+-]", " ", name)
    return rf"\text{{{safe}}}"
