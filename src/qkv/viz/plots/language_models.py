"""Figure of what a language model knows: right answers by fame, by occupation and by century."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkv.viz.theme import figure, rc_context, tokens

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from qkv.knowledge.language_models.known_facts import KnownFacts

TITLES = {"page views": "by page views", "occupation": "by occupation", "century": "by century of birth"}


@rc_context()
def known_facts(found: KnownFacts) -> Figure:
    """Bars of right answers with their 95 % intervals, one panel for each kind of group; the line is the mean."""
    t = tokens()
    kinds = [kind for kind in TITLES if any(group.kind == kind for group in found.groups)]
    most = max((sum(group.kind == kind for group in found.groups) for kind in kinds), default=1)
    drawn, axes = figure(max(1, len(kinds)), height=1.3 + 0.26 * most, width=3.6 * max(1, len(kinds)))
    top = max((group.high for group in found.groups), default=1.0)
    for panel, kind in zip(axes, kinds, strict=False):
        rows = [group for group in found.groups if group.kind == kind][::-1]
        for y, group in enumerate(rows):
            share = group.right / group.n
            panel.barh(y, share, color=t["item-b"], height=0.6, alpha=0.55)
            panel.plot([group.low, group.high], [y, y], color=t["ink"], linewidth=1)
            panel.annotate(
                f"{group.right} of {group.n}", (group.high, y), xytext=(5, 0), textcoords="offset points", va="center",
                fontsize=7.5, color=t["quiet"],
            )  # fmt: skip
        panel.axvline(found.accuracy, color=t["quiet"], linewidth=1, linestyle=(0, (3, 3)), zorder=3)
        panel.set_yticks(range(len(rows)), [group.group for group in rows])
        panel.set_ylim(len(rows) - most - 0.6, len(rows) - 0.4)  # bars of one thickness in all panels
        panel.set_xlim(0, 1.3 * top)
        panel.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %" if share <= 1 else "")
        panel.set_xlabel(f"right answers, {TITLES[kind]}")
    what = f"The {found.relation} of {found.n} people" if found.relation else f"{found.n} questions"
    if not kinds:
        axes[0].set_axis_off()
    title = f"{what}: {100 * found.accuracy:.1f} % of the answers are right (dashed)"
    axes[0].set_title(title if kinds else title.removesuffix(" (dashed)"), loc="left")
    return drawn
