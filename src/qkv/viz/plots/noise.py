"""Plots of head layouts under noise: histograms of a weight, variance and success against scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from qkv.core.memory import Memory
from qkv.noise.head_mix import HeadMix
from qkv.noise.key_noise import Noise
from qkv.noise.moments.mixture import reading_moments
from qkv.noise.monte_carlo import sample
from qkv.noise.probability.output_within import success_probability
from qkv.viz.theme import figure, rc_context, tokens

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_DRAWS = 200_000
"""Readings drawn for a histogram."""
N_BARS = 40
"""Bars of a histogram, plus one, so that a bar is centred at ½."""
SUCCESS_DRAWS = 20_000
"""Readings drawn for each point of a curve of success, where it is not integrated."""
SCALE_RANGE = (0.5, 50)
"""Ends of the scales of a curve."""


@rc_context()
def weights(memory: Memory, layouts: Mapping[str, Any], noise: Noise, item: Any, draws: int = N_DRAWS) -> Figure:
    """Histograms of one item's weight under noise, one for each layout."""
    t = tokens()
    drawn, boxes = figure(len(layouts), height=2.6, width=8.4, sharey=True)
    for axes, (name, layout), colour in zip(boxes, layouts.items(), _colours(layouts), strict=True):
        drawn_weights = sample(memory, layout, noise, draws, keep_items=[item])
        counts, edges = (np.asarray(a) for a in drawn_weights.histogram(item, bins=400))
        exact = float(reading_moments(memory, layout, noise).weights_var[memory.index(item)])
        middle = (edges[:-1] + edges[1:]) / 2
        ends = (-0.5 / N_BARS, 1 + 0.5 / N_BARS)
        share, bars = np.histogram(middle, bins=N_BARS + 1, range=ends, weights=counts / counts.sum())
        axes.bar((bars[:-1] + bars[1:]) / 2, share, width=bars[1] - bars[0], color=t[colour], linewidth=0)
        axes.set_title(f"{name}: {_verb(exact)}")
        axes.annotate(f"variance {exact:.2g}", (0.03, 0.9), xycoords="axes fraction", color=t["quiet"])
        axes.set_xlim(*ends)
        axes.set_xticks([0, 0.5, 1], ["0", "½", "1"])
        axes.set_xlabel(f"weight of item {item}")
    boxes[0].set_ylim(0, 1)
    boxes[0].set_yticks([0, 0.5, 1], ["0", "½", "all"])
    boxes[0].set_ylabel("share of draws")
    return drawn


@rc_context()
def variance(memory: Memory, layouts: Mapping[str, Any], noise: Noise, scales: Any = None) -> Figure:
    """Total variance of the output against the scale of each layout's queries."""
    t = tokens()
    drawn, (axes,) = figure(1, height=3.0)
    grid = np.geomspace(*SCALE_RANGE, 40) if scales is None else np.asarray(scales, dtype=float)
    ends, curves = [], {}
    for (name, layout), colour in zip(layouts.items(), _colours(layouts), strict=True):
        unit = _unit_scale(memory, layout)
        values = [float(reading_moments(memory, s * unit.queries, noise, unit.mix).total_variance) for s in grid]
        axes.loglog(grid, values, color=t[colour])
        curves[name] = np.array(values)
        ends.append((values[-1], name, t[colour]))
    _finish(axes, grid, ends)
    axes.set_ylabel("total variance of the output")
    last = np.array(list(curves.values()))
    least = [name for name, row in curves.items() if (row <= last.min(axis=0)).all()]
    axes.set_title(f"At every scale, {least[0]} varies least" if least else "Variance of the output, by scale")
    return drawn


@rc_context()
def success(
    memory: Memory, layouts: Mapping[str, Any], noise: Noise, target: Any, radius: float, scales: Any = None
) -> Figure:
    """Probability that the output is within the radius of the target, against scale."""
    t = tokens()
    drawn, (axes,) = figure(1, height=3.0)
    grid = np.geomspace(*SCALE_RANGE, 50) if scales is None else np.asarray(scales, dtype=float)
    ends = []
    for (name, layout), colour in zip(layouts.items(), _colours(layouts), strict=True):
        unit = _unit_scale(memory, layout)
        found = [
            success_probability(memory, (s * unit.queries, unit.mix), noise, target, radius, n_draws=SUCCESS_DRAWS)
            for s in grid
        ]
        probabilities = [f.probability for f in found]
        axes.semilogx(grid, probabilities, color=t[colour])
        low, high = [f.low for f in found], [f.high for f in found]
        axes.fill_between(grid, low, high, color=t[colour], alpha=0.2, linewidth=0)
        ends.append((probabilities[-1], name, t[colour]))
    _finish(axes, grid, ends)
    axes.set_ylim(-0.02, 1.05)
    axes.set_ylabel(f"probability of an output within {radius:g}")
    axes.set_title("Probability that the output is near the wanted one")
    return drawn


def _colours(layouts: Mapping[str, Any]) -> list[str]:
    """Colour tokens: one head vermilion, several sky blue, hardened green, min variance purple; others grey."""
    out: list[str] = []
    for name in layouts:
        if "hard" in name:
            kind = "hardened"
        elif "min variance" in name:
            kind = "min-variance"
        else:
            kind = "one-head" if name.startswith(("one", "1", "plain")) else "several-heads"
        out.append(kind if kind not in out else "item-other")
    return out


def _verb(variance: float) -> str:
    """A variance of a weight in words; a fair coin between 0 and 1 has 0.25."""
    return "swings" if variance > 0.05 else "mostly holds" if variance > 0.002 else "holds"


def _unit_scale(memory: Memory, layout: Any) -> HeadMix:
    """The layout with a mean score gap of 1 between the items that a head reads and the strongest other."""
    heads = HeadMix.of(memory, layout, request="plotting a layout")
    scores = heads.queries @ memory.keys.T
    read = torch.softmax(scores, -1)
    gaps = []
    for row, weight in zip(scores, read, strict=True):
        chosen = weight > 0.5 * weight.max()
        rest = row[~chosen]
        gaps.append(float(row[chosen].min() - rest.max()) if len(rest) else float(row.abs().max()))
    gap = max(1e-9, float(np.mean(gaps)))
    return HeadMix(heads.queries / gap, heads.mix)


def _finish(axes: Any, grid: Any, ends: list[tuple[float, str, str]]) -> None:
    for y, name, colour in ends:
        axes.annotate(name, (grid[-1], y), xytext=(6, -3), textcoords="offset points", color=colour)
    axes.set_xlim(grid[0], grid[-1] * 1.9)
    axes.set_xticks([x for x in (0.5, 1, 2, 5, 10, 20, 50) if grid[0] <= x <= grid[-1]])
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("scale: gap in score between the wanted items and the others")
