"""The pictures of the knowledge floor: heads at the name, how far to believe a badge, right answers by minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from qkv.knowledge.confidence.badge import MADE_UP, REMEMBERED, UNSURE
from qkv.knowledge.intervals import wilson
from qkv.viz.theme import figure, rc_context, tokens

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from qkv.knowledge.answering.answer import Answer
    from qkv.knowledge.confidence.calibration import Trust

COLOURS = {REMEMBERED: "proved", UNSURE: "conditional", MADE_UP: "refuted"}
INSIDE: dict[str, Any] = {"textcoords": "offset points", "xytext": (6, 0), "va": "center"}


@rc_context()
def heads(answer: Answer) -> Figure:
    """Each head's weight on the name, from the place where the answer begins."""
    t = tokens()
    drawn, (axes,) = figure(1, height=0.9 + 0.26 * max(2, len(answer.heads)))
    looks = answer.heads[::-1]
    axes.barh(range(len(looks)), [h.weight for h in looks], color=t["item-b"], height=0.6)
    for at, look in enumerate(looks):
        axes.annotate(f"{look.weight:.2f}", (look.weight, at), **INSIDE)
    axes.set_yticks(range(len(looks)), [f"layer {h.layer}, head {h.head}" for h in looks])
    axes.set_xlim(0, 1.08)
    axes.set_xlabel(f"share of attention on “{answer.name}”")
    best = answer.heads[0] if answer.heads else None
    axes.set_title(f"Layer {best.layer}, head {best.head} looks at the name most" if best else "No head reads the name")
    return drawn


@rc_context()
def reliability(trust: Trust) -> Figure:
    """Stated chances against what was right; and what share of the answers each badge got, right or wrong."""
    t = tokens()
    drawn, (left, right) = figure(2, height=3.2, width=8.4)
    r = trust.reliability
    left.plot([0, 1], [0, 1], color=t["faint"], linewidth=1.2)
    for count, stated, observed in zip(r.counts, r.stated, r.observed, strict=True):
        if count:
            low, high = wilson(round(observed * count), count)
            left.plot([stated, stated], [low, high], color=t["item-b"], linewidth=1)
            left.plot(stated, observed, "o", color=t["item-b"], markersize=3 + 9 * (count / sum(r.counts)) ** 0.5)
    left.annotate("as stated", (0.62, 0.62), xytext=(6, -8), textcoords="offset points", color=t["quiet"])
    for axis in (left.set_xlim, left.set_ylim):
        axis(-0.03, 1.03)
    left.set_xlabel("stated chance of being right")
    left.set_ylabel("share that was right")
    left.set_title(f"Stated chances are off by {100 * trust.ece:.1f} points on average")
    words = [w for w in (REMEMBERED, UNSURE, MADE_UP) if w in trust.counts][::-1]
    for at, word in enumerate(words):
        counts = trust.counts[word]
        start = 0
        for kind, strength in (("right", 1.0), ("wrong", 0.5), ("unknown", 0.25)):
            right.barh(at, counts[kind], left=start, color=t[COLOURS[word]], alpha=strength, height=0.6)
            start += counts[kind]
        told = f"{counts['right']} right, {counts['wrong']} wrong, {counts['unknown']} never read of"
        right.annotate(told, (0, at), xytext=(2, 17), textcoords="offset points", fontsize=8, color=t["quiet"])
    right.set_yticks(range(len(words)), words)
    right.set_ylim(-0.5, len(words) - 0.2)
    right.set_xlabel("held-out answers")
    said = f"“remembered”: {100 * trust.precision:.1f} % right"
    right.set_title(said if trust.any else "No answer could be called “remembered”")
    return drawn


@rc_context()
def curve(points: Sequence[Mapping[str, Any]], published: Mapping[str, float]) -> Figure:
    """Right answers against minutes of training, with intervals, beside what others have published."""
    t = tokens()
    drawn, (axes,) = figure(1, height=3.2)
    x, y = [p["minutes"] for p in points], [p["accuracy"] for p in points]
    for what, share in published.items():
        axes.axhline(share, color=t["faint"], linewidth=1.2)
        axes.annotate(
            f"published, {what}: {100 * share:.0f} %", (max(x), share), xytext=(0, 4), textcoords="offset points",
            ha="right", color=t["quiet"],
        )  # fmt: skip
    for p in points:
        axes.plot([p["minutes"]] * 2, [p["low"], p["high"]], color=t["item-b"], linewidth=1)
        axes.annotate(
            f"{100 * p['accuracy']:.1f} %", (p["minutes"], p["low"]), xytext=(3, -12), textcoords="offset points"
        )  # fmt: skip
    axes.plot(x, y, "o-", color=t["item-b"], markersize=4)
    axes.set_xscale("log")
    axes.set_xticks(x, [f"{minutes:g}" for minutes in x])
    axes.minorticks_off()
    axes.set_xlim(min(x) * 0.85, max(x) * 1.4)
    axes.set_ylim(0, 1.02)
    axes.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    axes.set_xlabel("minutes of training on one core")
    axes.set_ylabel("right, with 95 % intervals")
    best = max(points, key=lambda p: p["accuracy"])
    axes.set_title(
        f"{100 * best['accuracy']:.0f} % right on people never asked about, after {best['minutes']:g} minutes"
    )
    return drawn
