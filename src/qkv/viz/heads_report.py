"""Heads of a model as self-contained HTML: the table with a grid of all heads, and one head with its arcs."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from qkv.core.display import number
from qkv.heads.patterns import score_text
from qkv.heads.token_view import firmness_text, hardened_text, kind_text, shown_token, shown_weight
from qkv.viz.attention_arcs import LEAST_WEIGHT, MOST_ARCS, arcs_svg
from qkv.viz.html_report import Chapter, Picture, page

if TYPE_CHECKING:
    from qkv.heads.table import HeadTable
    from qkv.heads.token_view import HeadView

KIND_COLOURS = {
    "previous token": "#0072b2",
    "induction": "#d55e00",
    "duplicate": "#e69f00",
    "first token": "#9a9a9e",
    "self": "#56b4e9",
    "broad": "#cc79a7",
    "mixed": "#c9c9cd",
}
"""Okabe and Ito's colours, by kind of head."""
GRID_STYLE = ".grid text { font: 12px system-ui, sans-serif; fill: currentColor; }"
CELL, SIDE, TOP = 30, 56, 24


def table_page(table: HeadTable) -> str:
    """The table of heads as an HTML document: a grid by kind, then every row.

    Args:
        table: From `qkv.heads`: `model.table(text)`.
    """
    counts: dict[str, int] = {}
    for row in table:
        counts[row.kind] = counts.get(row.kind, 0) + 1
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items(), key=lambda c: -c[1]))
    most = max(table, key=lambda row: row.effect)
    lead = f"{len(table)} heads, measured on {table.tokens} tokens: {kinds}."
    grid = Picture(
        grid_svg(table),
        "Each square is a head, by layer and number; its colour is its kind, and the bar in it grows with what is lost "
        f"without it, up to {most.layer}.{most.head} ({most.effect:+.4f} {table.effect_unit}).",
        f"qkv heads {table.model} --text FILE --html heads.html",
    )
    return page(f"Heads of {table.model}", lead, [Chapter("All heads", (grid, table))])


def view_page(view: HeadView) -> str:
    """One head on one text as an HTML document, with arcs between tokens.

    Args:
        view: From `qkv.heads.head_view`.
    """
    chosen = view.named(view.token)
    arcs = Picture(
        arcs_svg([shown_token(t) for t in view.tokens], view.weights, view.token, f"Attention of head {view.head}"),
        f"Left: the token that looks; right: what it looks at. The arcs of “{chosen}” are in front; point at another "
        f"token to see its own. Drawn are the {MOST_ARCS} largest weights of each token from {LEAST_WEIGHT} on.",
        f"qkv heads {view.model} --head {view.head} --token {view.token} --text FILE --html head.html",
    )
    lead = (
        f"A text of {len(view.tokens)} tokens. What it looks up is {kind_text(view.kind, view.score, view.judged_on)}."
    )
    blocks: list[str | Picture] = [arcs]
    first = view.looked_up[0]
    said = f"“{chosen}” looks most at “{view.named(first.position)}”, with weight {shown_weight(first.weight)}"
    blocks.append(said + (f" ({firmness_text(view.margin, view.radius or 0.0)})." if view.margin is not None else "."))
    for one in view.spread:
        if one.bits == view.bits:
            kept = "the same token stays" if one.same_top else "another token comes"
            blocks.append(
                f"With keys of {one.bits} bits its output moves by {number(one.measured, 3)} of its length "
                f"(predicted: {number(one.predicted, 3)}), and {kept} on top."
            )
    if view.hardened is not None:
        blocks.append(f"A hardened query: {hardened_text(view.hardened)}.")
    return page(f"Head {view.head} of {view.model}", lead, [Chapter("What it looks at", (*blocks, view))])


def grid_svg(table: HeadTable) -> str:
    """All heads as squares: one row a layer, one column a head."""
    layers, heads = max(r.layer for r in table) + 1, max(r.head for r in table) + 1
    most = max((abs(r.effect) for r in table), default=0.0) or 1.0
    used = [kind for kind in KIND_COLOURS if any(r.kind == kind for r in table)]
    width, height = max(SIDE + CELL * heads, 420), TOP + CELL * layers + 20 * len(used) + 16
    parts = [f'<text x="{SIDE + CELL * h + CELL // 2}" y="16" text-anchor="middle">{h}</text>' for h in range(heads)]
    parts += [
        f'<text x="{SIDE - 8}" y="{TOP + CELL * k + 19}" text-anchor="end">layer {k}</text>' for k in range(layers)
    ]
    for row in table:
        x, y = SIDE + CELL * row.head + 1, TOP + CELL * row.layer + 1
        bar = (CELL - 2) * max(row.effect, 0.0) / most
        title = html.escape(
            f"{row.layer}.{row.head}: {row.kind} ({score_text(row.kind, row.score)}), effect {row.effect:+.4f}"
        )
        parts.append(
            f'<g><title>{title}</title><rect x="{x}" y="{y}" width="{CELL - 2}" height="{CELL - 2}" '
            f'fill="{KIND_COLOURS[row.kind]}" fill-opacity="0.35"/><rect x="{x}" y="{y + CELL - 2 - bar:.1f}" '
            f'width="{CELL - 2}" height="{bar:.1f}" fill="{KIND_COLOURS[row.kind]}"/></g>'
        )
    for k, kind in enumerate(used):
        y = TOP + CELL * layers + 14 + 20 * k
        parts.append(
            f'<rect x="{SIDE}" y="{y}" width="12" height="12" fill="{KIND_COLOURS[kind]}"/>'
            f'<text x="{SIDE + 20}" y="{y + 11}">{kind}</text>'
        )
    return (
        f'<svg class="grid" viewBox="0 0 {width} {height}" role="img" aria-label="Kinds of all heads" '
        f'style="max-width: {width}px"><style>{GRID_STYLE}</style>'
        f"{''.join(parts)}</svg>"
    )
