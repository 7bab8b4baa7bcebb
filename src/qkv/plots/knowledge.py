"""The pictures of the knowledge floor: heads at the name, how far to believe a badge, a curve, the studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from qkv.knowledge.badge import MADE_UP, REMEMBERED, UNSURE
from qkv.knowledge.intervals import wilson
from qkv.look import figure, tokens

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from qkv.knowledge.asking import Answer
    from qkv.knowledge.studies.engine import Row, Study
    from qkv.knowledge.trusting import Trust

COLOURS = {REMEMBERED: "proved", UNSURE: "conditional", MADE_UP: "refuted"}
INSIDE: dict[str, Any] = {"textcoords": "offset points", "xytext": (6, 0), "va": "center"}


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
    said = f"“remembered” is right {100 * trust.precision:.1f} % of the time"
    right.set_title(said if trust.any else "No answer could be called “remembered”")
    return drawn


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


def studied(study: Study) -> Figure:
    """The picture of a study."""
    if study.name == "capacity":
        return _capacity(study)
    if study.name == "singletons":
        return _singletons(study)
    return _bars(study)


def _bars(study: Study) -> Figure:
    """A bar for each row, with its interval and its value."""
    t = tokens()
    rows = [row for row in study.rows if row.get("accuracy") is not None][::-1]
    drawn, (axes,) = figure(1, height=1.0 + 0.34 * len(rows))
    for at, row in enumerate(rows):
        axes.barh(at, row["accuracy"], color=t["item-b"], height=0.6, alpha=0.85)
        low, high = _interval(row)
        axes.plot([low, high], [at, at], color=t["ink"], linewidth=1)
        axes.annotate(f"{100 * row['accuracy']:.1f} %", (max(high, row["accuracy"]), at), **INSIDE)
    axes.set_yticks(range(len(rows)), [str(row["what"]) for row in rows])
    axes.set_xlim(0, 1.12)
    axes.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    axes.set_xlabel("right answers, with 95 % intervals")
    axes.set_title(study.title)
    return drawn


def _interval(row: Row) -> tuple[float, float]:
    low, high = row.get("interval") or (row["accuracy"], row["accuracy"])
    return max(0.0, float(low)), min(1.0, float(high))


def _capacity(study: Study) -> Figure:
    """Bits per parameter against exposures, a line for each size, beside the published figures."""
    t = tokens()
    drawn, (axes,) = figure(1, height=3.2)
    palette = (t["item-b"], t["several-heads"], t["hardened"], t["item-a"])
    for colour, size in zip(palette, sorted({row["parameters"] for row in study.rows}), strict=False):
        mine = sorted((r for r in study.rows if r["parameters"] == size), key=lambda r: r["exposures"])
        x, y = [r["exposures"] for r in mine], [r["bits_per_parameter"] for r in mine]
        axes.plot(x, y, "o-", color=colour, markersize=4)
        _end(axes, x[-1], y[-1], f"{size:,} parameters", colour)
    axes.plot([100, 1000], [1, 2], "s", color=t["quiet"], markersize=4)
    axes.annotate("published, large models", (100, 1), xytext=(6, -12), textcoords="offset points", color=t["quiet"])
    axes.set_xscale("log")
    axes.set_xlim(min((r["exposures"] for r in study.rows), default=10) * 0.8, 2600)
    axes.set_ylim(0, None)
    axes.set_xlabel("exposures of each person")
    axes.set_ylabel("bits learned per parameter")
    axes.set_title(study.title)
    return drawn


def _singletons(study: Study) -> Figure:
    """The rate of made-up answers against the share of facts that were seen once."""
    t = tokens()
    drawn, (axes,) = figure(1, height=3.2)
    rows = sorted(study.rows, key=lambda r: r["seen_once"])
    x = np.array([r["seen_once"] for r in rows])
    axes.plot([0, 1], [0, 1], color=t["faint"], linewidth=1.2)
    axes.annotate(
        "as many as were seen once", (0.5, 0.5), xytext=(6, -10), textcoords="offset points", color=t["quiet"]
    )
    for name, colour in (("made_up", "refuted"), ("said_remembered", "proved")):
        if rows and all(name in r for r in rows):
            y = [r[name] for r in rows]
            axes.plot(x, y, "o-", color=t[colour], markersize=4)
            _end(axes, x[-1], y[-1], name.replace("_", " "), t[colour])
    axes.set_xlim(-0.02, 1.3)
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("share of facts that the text says only once")
    axes.set_ylabel("share of answers")
    axes.set_title(study.title)
    return drawn


def _end(axes: Axes, x: float, y: float, label: str, colour: str) -> None:
    axes.annotate(label, (x, y), color=colour, **INSIDE)
