"""Figures of the studies in qkv.knowledge.studies, one for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qkv.viz.theme import figure, rc_context, tokens

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from qkv.knowledge.studies.experiment import Row, Study

LABEL: dict[str, Any] = {"textcoords": "offset points", "va": "center"}
PERCENT_TICKS = ([0, 0.5, 1], ["0", "50 %", "100 %"])


@rc_context()
def study_figure(study: Study) -> Figure:
    """The figure of a study."""
    draw = {"capacity": _capacity, "rare_facts": _rare_facts, "ablation": _ablation, "considerations": _considerations}
    return draw.get(study.name, _accuracies)(study)


def _accuracies(study: Study) -> Figure:
    """Bars of accuracy with intervals, one for each row."""
    drawn, (axes,) = figure(1, height=1.0 + 0.34 * len(study.rows))
    _bars(axes, study.rows)
    axes.set_title(study.title)
    return drawn


def _bars(axes: Axes, given: tuple[Row, ...]) -> None:
    t = tokens()
    rows = [row for row in given if row.get("accuracy") is not None][::-1]
    for at, row in enumerate(rows):
        axes.barh(at, row["accuracy"], color=t["item-b"], height=0.6, alpha=0.85)
        low, high = row.get("interval") or (row["accuracy"], row["accuracy"])
        high = min(1.0, max(high, row["accuracy"]))
        axes.plot([max(0.0, low), high], [at, at], color=t["ink"], linewidth=1)
        axes.annotate(f"{100 * row['accuracy']:.1f} %", (high, at), xytext=(6, 0), **LABEL)
    axes.set_yticks(range(len(rows)), [str(row["what"]) for row in rows])
    axes.set_xlim(0, 1.25)
    axes.set_xticks(*PERCENT_TICKS)
    axes.set_xlabel("right answers, with 95 % intervals")


def _considerations(study: Study) -> Figure:
    """Bars of the people whose right answer comes first, comes later, or is not considered."""
    t = tokens()
    rows = study.rows[::-1]
    drawn, (axes,) = figure(1, height=1.0 + 0.4 * len(rows))
    for at, row in enumerate(rows):
        low, high = row["interval"]
        axes.barh(at, row["share"], color=t["item-b"], height=0.6, alpha=0.85)
        axes.plot([low, high], [at, at], color=t["ink"], linewidth=1)
        axes.annotate(f"{100 * row['share']:.1f} %", (high, at), xytext=(6, 0), **LABEL)
    axes.set_yticks(range(len(rows)), [str(row["what"]) for row in rows])
    axes.set_xlim(0, 1.25)
    axes.set_xticks(*PERCENT_TICKS)
    axes.set_xlabel("people, with 95 % intervals")
    axes.set_title(study.title)
    return drawn


def _ablation(study: Study) -> Figure:
    """Accuracy with and without a person's text; and what a user sees of the answers."""
    t = tokens()
    drawn, (left, right) = figure(2, height=2.6, width=9.6)
    _bars(left, study.rows)
    left.set_title(study.title)
    shown = [row for row in study.rows if "probability" in row]
    labels = {"is_a_place": "is a place", "probability": "mean probability", "surely": "probability of 0.9 or more"}
    for at, name in enumerate(list(labels)[::-1]):
        for row, shift, colour in zip(shown, (0.2, -0.2), ("proved", "refuted"), strict=False):
            right.barh(at + shift, row[name], color=t[colour], height=0.34, alpha=0.85)
            kind = f", {str(row['what']).split(':')[0]}" if at == len(labels) - 1 else ""
            right.annotate(f"{100 * row[name]:.0f} %{kind}", (row[name], at + shift), xytext=(6, 0), **LABEL)
    right.set_yticks(range(len(labels)), list(labels.values())[::-1])
    right.set_xlim(0, 1.9)
    right.set_xticks(*PERCENT_TICKS)
    right.set_xlabel("of the answers")
    right.set_title("What a user sees")
    return drawn


def _capacity(study: Study) -> Figure:
    """Bits per parameter against exposures, one line for each model size, beside published values."""
    t = tokens()
    drawn, (axes,) = figure(1, height=3.4)
    palette = (t["item-b"], t["item-a"], t["min-variance"], t["quiet"])
    ends = []
    for colour, size in zip(palette, sorted({row["parameters"] for row in study.rows}), strict=False):
        own = sorted((r for r in study.rows if r["parameters"] == size), key=lambda r: r["exposures"])
        x, y = [r["exposures"] for r in own], [r["bits_per_parameter"] for r in own]
        axes.plot(x, y, "o-", color=colour, markersize=4)
        for row in own:
            if "interval" in row:
                axes.plot([row["exposures"]] * 2, row["interval"], color=colour, linewidth=1)
        ends.append((y[-1], x[-1], f"{size:,} parameters", colour))
    highest = max((y for y, *_ in ends), default=1.0)
    _label_ends(axes, ends, 0.085 * max(2.2, highest))
    axes.plot([100, 1000], [1, 2], "s", color=t["quiet"], markersize=4)
    for at, where in (((100, 1), (8, -8)), ((1000, 2), (8, 0))):
        axes.annotate("published", at, xytext=where, color=t["quiet"], **LABEL)
    axes.set_xscale("log")
    ticks = sorted({*(r["exposures"] for r in study.rows), 100, 1000})
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(ticks[0] * 0.85, 2000)
    axes.set_ylim(0, max(2.2, 1.12 * highest))
    axes.set_yticks([0, 0.5, 1, 1.5, 2, 2.5])
    axes.set_xlabel("exposures of each person")
    axes.set_ylabel("bits learned per parameter")
    axes.set_title(study.remarks[0].rstrip(".") if study.remarks else study.title)
    return drawn


def _rare_facts(study: Study) -> Figure:
    """Share of made-up answers against the share of facts stated once: of all answers, and by kind of fact."""
    t = tokens()
    drawn, (axes,) = figure(1, height=3.4)
    rows = sorted(study.rows, key=lambda r: r["seen_once"])
    axes.plot([0, 1], [0, 1], color=t["faint"], linewidth=1.2)
    axes.annotate("equal to the share stated once", (0.9, 0.9), xytext=(-8, 4), ha="right", color=t["quiet"], **LABEL)
    kinds = (
        ("made_up", "of all answers", "ink", 2.0),
        ("made_up_of_once", "of facts stated once", "refuted", 1.2),
        ("made_up_of_often", "of facts stated often", "proved", 1.2),
    )
    ends = []
    for name, label, colour, width in kinds:
        own = [r for r in rows if r.get(name) is not None]
        if own:
            axes.plot([r["seen_once"] for r in own], [r[name] for r in own], "o-", color=t[colour], markersize=4,
                      linewidth=width)  # fmt: skip
            ends.append((own[-1][name], 1.0, label, t[colour]))
    for row in rows:
        axes.plot([row["seen_once"]] * 2, row["interval"], color=t["ink"], linewidth=1)
    _label_ends(axes, ends, 0.08)
    axes.set_xlim(-0.02, 1.35)
    axes.set_ylim(0, 1.05)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.set_yticks(*PERCENT_TICKS)
    axes.set_xlabel("share of people whose facts the text states only once")
    axes.set_ylabel("made up")
    axes.set_title(study.title)
    return drawn


def _label_ends(axes: Axes, ends: list[tuple[float, float, str, str]], min_gap: float) -> None:
    """Labels (y, x, text, colour) at the ends of lines, moved up where they would overlap."""
    below = -min_gap
    for y, x, label, colour in sorted(ends):
        below = max(y, below + min_gap)
        axes.annotate(label, (x, below), xytext=(8, 0), color=colour, **LABEL)
