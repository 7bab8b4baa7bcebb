"""Figures of qkv.knowledge: attention on the name, reliability of a badge, accuracy against training time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from qkv.knowledge.confidence.badge import MADE_UP, REMEMBERED, UNSURE
from qkv.knowledge.intervals import wilson_interval
from qkv.viz.theme import figure, rc_context, tokens

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from qkv.knowledge.answer import Answer
    from qkv.knowledge.confidence.calibration import Trust

BADGE_COLOURS = {REMEMBERED: "proved", UNSURE: "conditional", MADE_UP: "refuted"}
LABEL_RIGHT: dict[str, Any] = {"textcoords": "offset points", "xytext": (6, 0), "va": "center"}


@rc_context()
def heads(answer: Answer) -> Figure:
    """Bars of each head's attention from the last token of the question to the name."""
    t = tokens()
    drawn, (axes,) = figure(1, height=0.9 + 0.26 * max(2, len(answer.heads)))
    rows = answer.heads[::-1]
    axes.barh(range(len(rows)), [h.weight for h in rows], color=t["item-b"], height=0.6)
    for y, head in enumerate(rows):
        axes.annotate(f"{head.weight:.2f}", (head.weight, y), **LABEL_RIGHT)
    axes.set_yticks(range(len(rows)), [f"layer {h.layer}, head {h.head}" for h in rows])
    axes.set_xlim(0, 1.08)
    axes.set_xlabel(f"share of attention on “{answer.name}”" if answer.name else "")
    best = answer.heads[0] if answer.heads else None
    if not answer.name:
        title = "No name was found in the question"
    elif best is None or best.weight <= 0:
        title = "No head attends to the name"
    else:
        title = f"Layer {best.layer}, head {best.head} has most attention on the name"
    axes.set_title(title)
    return drawn


@rc_context()
def reliability(trust: Trust) -> Figure:
    """Stated probabilities of being right against the share that is right; and the answers of each badge by kind."""
    t = tokens()
    drawn, (left, right) = figure(2, height=3.6, width=8.4, width_ratios=(3, 4))
    r = trust.reliability
    left.plot([0, 1], [0, 1], color=t["faint"], linewidth=1.2)
    for count, stated, observed in zip(r.counts, r.stated, r.observed, strict=True):
        if count:
            low, high = wilson_interval(round(observed * count), count)
            left.plot([stated, stated], [low, high], color=t["item-b"], linewidth=1)
            left.plot(stated, observed, "o", color=t["item-b"], markersize=3 + 9 * (count / sum(r.counts)) ** 0.5)
    left.annotate("as stated", (0.62, 0.62), xytext=(6, -8), textcoords="offset points", color=t["quiet"])
    for axis in (left.set_xlim, left.set_ylim):
        axis(-0.03, 1.03)
    left.set_xlabel("stated probability of being right")
    left.set_ylabel("share of right answers")
    left.set_title(f"Expected calibration error: {100 * trust.ece:.1f} points")
    badges = [badge for badge in (REMEMBERED, UNSURE, MADE_UP) if badge in trust.counts][::-1]
    for y, badge in enumerate(badges):
        counts = trust.counts[badge]
        start = 0
        for kind, strength in (("right", 1.0), ("wrong", 0.5), ("unknown", 0.25)):
            right.barh(y, counts[kind], left=start, color=t[BADGE_COLOURS[badge]], alpha=strength, height=0.46)
            start += counts[kind]
        text = f"{counts['right']} right, {counts['wrong']} wrong, {counts['unknown']} about people not in the text"
        text += f"\n{counts['invented']} about invented names, not in the bar" if counts.get("invented") else ""
        right.annotate(
            text, (0, y + 0.23), xytext=(2, 3), textcoords="offset points", va="bottom", fontsize=8, color=t["quiet"]
        )
    right.set_yticks(range(len(badges)), badges)
    right.set_ylim(-0.4, len(badges) - 0.25)
    right.set_xlabel("answers, each judged by a fit without its person")
    title = f"{trust.n_right} of {trust.n_remembered} “remembered” answers are right"
    right.set_title(title if trust.any_remembered else "No answer can be called “remembered”")
    return drawn


@rc_context()
def accuracy_curve(points: Sequence[Mapping[str, Any]], published: Mapping[str, float]) -> Figure:
    """Accuracy with intervals against minutes of training, beside published accuracies."""
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
        f"{100 * best['accuracy']:.0f} % right on people without training questions, after {best['minutes']:g} minutes"
    )
    return drawn
