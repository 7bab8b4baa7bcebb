"""Attention of one head as SVG: tokens that look on the left, tokens that are looked at on the right, arcs between."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

WIDTH, ROW, LEFT, RIGHT = 460, 18, 150, 310
"""Width of the picture, height of a row, and where the arcs begin and end."""
LEAST_WEIGHT = 0.02
"""Weights below this are not drawn."""
MOST_ARCS = 12
"""Arcs of one token that are drawn, the largest weights first."""
MAX_LETTERS = 16
LETTER = 7
"""Width that is kept for a letter of the widest token, behind which its weights stand."""
LEVELS = 8
"""Degrees of darkness of the arcs that are always shown."""

STYLE = (
    ".arcs text { font: 12px system-ui, sans-serif; fill: currentColor; } "
    ".arcs path { fill: none; stroke: var(--item-b); } .arcs path.own { stroke: var(--one-head); } "
    ".arcs .own { visibility: hidden; } .arcs .row:hover .own, .arcs .chosen .own { visibility: visible; } "
    ".arcs .row:hover text, .arcs .chosen text { font-weight: 700; }"
)
"""Rules of the picture: the arcs of a token come out under the pointer, and those of the chosen one always."""


def arcs_svg(tokens: Sequence[str], weights: Any, chosen: int | None = None, label: str = "Attention") -> str:
    """The weights of one head as an SVG element.

    Args:
        tokens: The text's tokens, as they are to be written.
        weights: (tokens, tokens): row i holds what token i looks at.
        chosen: The token whose arcs are drawn in front of all others; None for none.
        label: What the picture shows, for screen readers.

    Returns:
        An SVG element that takes the colours of the page.
    """
    rows = [_strongest(row) for row in weights.tolist()]
    end = min(WIDTH, RIGHT + 50 + LETTER * max(len(_cut(token)) for token in tokens))
    height = ROW * len(tokens) + 8
    levels: list[list[str]] = [[] for _ in range(LEVELS)]
    for i, row in enumerate(rows):
        for j, weight in row:
            levels[min(LEVELS - 1, int(LEVELS * weight))].append(_arc(i, j))
    parts = [
        f'<path d="{" ".join(arcs)}" stroke-opacity="{0.7 * (k + 1) / LEVELS:.2f}"/>'
        for k, arcs in enumerate(levels)
        if arcs
    ]
    parts += [f'<text x="{RIGHT + 6}" y="{_y(j) + 4}">{_word(token)}</text>' for j, token in enumerate(tokens)]
    for i, (token, row) in enumerate(zip(tokens, rows, strict=True)):
        own = "".join(
            f'<path class="own" d="{_arc(i, j)}" stroke-width="{0.5 + 3 * w:.2f}"/>'
            f'<text class="own" x="{end}" y="{_y(j) + 4}" text-anchor="end">{w:.2f}</text>'
            for j, w in row
        )
        kind = "row chosen" if i == chosen else "row"
        word = f'<text x="{LEFT - 6}" y="{_y(i) + 4}" text-anchor="end">{_word(token)}</text>'
        parts.append(f'<g class="{kind}">{word}{own}</g>')
    return (
        f'<svg class="arcs" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html.escape(label)}" '
        f'style="max-width: {WIDTH}px"><style>{STYLE}</style>{"".join(parts)}</svg>'
    )


def _strongest(row: Sequence[float]) -> list[tuple[int, float]]:
    order = sorted(range(len(row)), key=lambda j: -row[j])[:MOST_ARCS]
    return [(j, row[j]) for j in order if row[j] >= LEAST_WEIGHT]


def _y(i: int) -> int:
    return ROW * i + ROW // 2 + 4


def _arc(i: int, j: int) -> str:
    middle = (LEFT + RIGHT) // 2
    return f"M{LEFT} {_y(i)}C{middle} {_y(i)} {middle} {_y(j)} {RIGHT} {_y(j)}"


def _word(token: str) -> str:
    return html.escape(_cut(token))


def _cut(token: str) -> str:
    return token if len(token) <= MAX_LETTERS else token[: MAX_LETTERS - 1] + "…"
