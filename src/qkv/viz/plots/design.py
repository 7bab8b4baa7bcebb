"""Plots of designs: readings, hulls, margins, subspaces, wirings, texts, reachability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from qkv.core.attention import self_attention
from qkv.core.memory import Memory
from qkv.design.query import Design
from qkv.viz.theme import figure, rc_context, tokens

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from qkv.design.hull.selectable import Copyable
    from qkv.design.reachability import Reachability

MAX_BARS = 12
MAX_LABELLED_POINTS = 30


@rc_context()
def reading(memory: Memory, design: Design) -> Figure:
    """Weights of the designed query, and its distance from the wanted weights against the scale."""
    drawn, (left, right) = figure(2)
    _weights(left, memory, design)
    _scales(right, memory, design)
    return drawn


def _weights(axes: Axes, memory: Memory, design: Design) -> None:
    wanted = [memory.index(item) for item in design.wanted]
    weights = memory.read(design.query).weights.numpy()
    strongest = set(np.argsort(-weights, kind="stable")[:MAX_BARS].tolist())
    order = [*wanted, *(i for i in sorted(strongest) if i not in wanted)][:MAX_BARS]
    axes.bar(range(len(order)), weights[order], color=[_colour(wanted, i) for i in order], width=0.7)
    slanted = len(order) > 10 or max(len(str(memory.labels[i])) for i in order) > 3
    axes.set_xticks(range(len(order)), [str(memory.labels[i]) for i in order], rotation=60 if slanted else 0)
    axes.set_ylim(0, 1.1)
    axes.set_yticks([0, 0.5, 1], ["0", "½", "1"])
    axes.set_xlabel("item")
    axes.set_ylabel("weight")
    share = 1 - design.distance
    axes.set_title(
        f"{100 * share:.4g} % of the weight is where it is wanted" if design.possible else "The nearest found"
    )
    if len(wanted) <= 3:
        for x, i in enumerate(wanted):
            label = f"{weights[i]:.2g}"
            axes.annotate(label, (x, weights[i]), ha="center", xytext=(0, 2), textcoords="offset points", fontsize=8)


def _scales(axes: Axes, memory: Memory, design: Design) -> None:
    t = tokens()
    if design.scale == 0:
        axes.set_axis_off()
        axes.set_title("No query is needed: any weights are near enough")
        return
    scales = np.linspace(0, 1.4 * design.scale, 160)
    ideal = np.zeros(memory.n)
    ideal[[memory.index(item) for item in design.wanted]] = list(design.wanted.values())
    read = memory.read(torch.from_numpy(np.outer(scales, design.direction.numpy()))).weights.numpy()
    axes.semilogy(scales, 0.5 * np.abs(read - ideal).sum(axis=1), color=t["ink"])
    axes.axhline(design.tol, color=t["quiet"], linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate("tol", (0, design.tol), xytext=(2, 3), textcoords="offset points", color=t["quiet"])
    colour = t["proved"] if design.possible else t["refuted"]
    axes.plot([design.scale], [design.distance], "o", color=colour)
    note = f"certified: {design.distance:.3g}"
    axes.annotate(
        note, (design.scale, design.distance), ha="right", xytext=(-8, -12), textcoords="offset points", color=colour
    )
    axes.set_xlabel("scale in front of the direction")
    axes.set_ylabel("distance from the wanted weights")
    axes.set_title(f"A scale of {design.scale:.4g} is enough" if design.possible else "No scale comes within tol")


@rc_context()
def hull(memory: Memory, answers: Copyable) -> Figure:
    """Keys in the plane: vertices of the hull can be selected, the others are averages of some of them."""
    t = tokens()
    points = memory.keys.numpy()
    drawn, (axes,) = figure(1, height=3.8)
    centre, reach = points.mean(axis=0), float(np.ptp(points, axis=0).max()) or 1.0
    for i, point in enumerate(points):
        answer = answers.at(i)
        outward = (point - centre) / (float(np.linalg.norm(point - centre)) or 1.0)
        if answer.query is not None:
            axes.plot(*point, "o", color=t["item-b"], markersize=6)
            q = np.asarray(answer.query)
            outward = q / np.linalg.norm(q)
            arrow = {"arrowstyle": "->", "color": t["item-b"], "lw": 1.2}
            axes.annotate("", point + 0.06 * reach * outward, point, arrowprops=arrow, annotation_clip=False)
        else:
            axes.plot(*point, "o", color=t["item-other"], markersize=5)
        if len(points) <= MAX_LABELLED_POINTS and memory.labels != tuple(range(memory.n)):
            place: dict[str, Any] = {"ha": "center", "va": "center", "textcoords": "offset points"}
            axes.annotate(str(memory.labels[i]), point, xytext=tuple(20 * outward), color=t["quiet"], **place)
    inner = [i for i in answers.interior.tolist() if len(answers.at(i).members) > 2]
    if inner:
        chosen = max(inner, key=lambda i: float(np.linalg.norm(points[i] - centre)))
        corners = points[list(answers.at(chosen).members)]
        axes.fill(*corners.T, color=t["item-a"], alpha=0.16, linewidth=0)
        axes.plot(*np.vstack([corners, corners[:1]]).T, color=t["item-a"], linewidth=1)
        axes.plot(*points[chosen], "o", color=t["item-a"], markersize=8)
        axes.annotate(
            "orange: an average of the corners\nof its triangle, so no query selects it", (0.0, 0.0),
            xycoords="axes fraction", color=t["quiet"], fontsize=8.5,
        )  # fmt: skip
    vertices = points[answers.vertices.numpy()]
    if len(vertices) > 2:
        vertices = vertices[np.argsort(np.arctan2(*(vertices - vertices.mean(axis=0)).T))]
        axes.fill(*vertices.T, facecolor="none", edgecolor=t["faint"], linewidth=1.2, zorder=0)
    axes.margins(0.16)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(
        f"The {len(vertices)} corners of the hull can be copied, the {len(points) - len(vertices)} other keys cannot"
    )
    return drawn


@rc_context()
def margins(answers: Copyable) -> Figure:
    """Histogram of the margins of the selecting unit queries."""
    t = tokens()
    drawn, (axes,) = figure(1, height=2.7)
    found = answers.margins.numpy()
    found = found[np.isfinite(found)]
    top = float(found.max()) if len(found) else 1.0
    axes.hist(found, bins=40, range=(0, 1.05 * top), color=t["item-b"])
    axes.set_xlabel("margin of a unit query over the strongest rival")
    axes.set_ylabel("keys")
    axes.set_xlim(0, None)
    axes.set_title(f"{len(answers.vertices)} of {len(answers)} keys can be selected")
    return drawn


@rc_context()
def subspaces() -> Figure:
    """Two lines that are not orthogonal: reading A out of a sum is an oblique projection."""
    from qkv.design.projection import project

    t = tokens()
    a, b = np.array([[1.0], [0.15]]), np.array([[0.55], [1.0]])
    va, vb = (a * 1.5).ravel(), (b * 0.9).ravel()
    s = va + vb
    found = project(a, b)
    assert found.matrix is not None
    read = found.matrix.numpy() @ s
    orthogonal = (a @ np.linalg.pinv(a) @ s).ravel()
    drawn, (axes,) = figure(1, height=3.2)
    for line, name, colour in ((a, "span A", "item-a"), (b, "span B", "item-b")):
        ends = np.outer([-0.25, 2.3 if name == "span A" else 1.35], line.ravel())
        axes.plot(*ends.T, color=t[colour], linewidth=1.2)
        axes.annotate(name, ends[1], color=t[colour], xytext=(4, 0), textcoords="offset points")
    for end, label, colour, shift in (
        (s, "s = v_a + v_b", "ink", (6, 2)), (read, "M s = v_a", "item-a", (-8, -17)),
        (orthogonal, "projecting at right angles: not v_a", "quiet", (2, -17)),
    ):  # fmt: skip
        axes.annotate("", tuple(end), (0, 0), arrowprops={"arrowstyle": "->", "color": t[colour], "lw": 2})
        axes.annotate(label, tuple(end), xytext=shift, textcoords="offset points", color=t[colour])
    axes.plot(*np.array([s, read]).T, linestyle=(0, (3, 3)), color=t["item-b"], linewidth=1)
    axes.plot(*np.array([s, orthogonal]).T, linestyle=(0, (3, 3)), color=t["quiet"], linewidth=1)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title("Reading A out of a sum follows B, not the right angle")
    return drawn


@rc_context()
def wiring(X: Any, Q: Any, K: Any, V: Any) -> Figure:
    """Attention weights between the tokens, and the matrices Q, K and V."""
    drawn, axes = figure(4, height=2.7, width=8.4)
    weights = self_attention(X, Q, K, V).weights.numpy()
    _heat(axes[0], weights, "Who reads whom", "token read", "reading token")
    for box, m, name in zip(axes[1:], (Q, K, V), "QKV", strict=True):
        _heat(box, np.asarray(m), name, "", "", signed=True)
    return drawn


@rc_context()
def text_weights(words: Sequence[str], weights: Any) -> Figure:
    """Attention weights between the words of a text: a row for each reading word."""
    drawn, (axes,) = figure(1, height=3.4, width=4.6)
    _heat(axes, np.asarray(weights), "Which word reads which", "word read", "reading word")
    axes.set_xticks(range(len(words)), words, rotation=45, ha="right")
    axes.set_yticks(range(len(words)), words)
    return drawn


@rc_context()
def reach(X: Any, token: int, cases: dict[str, tuple[Any, Reachability]], target: Any) -> Figure:
    """Distance of a token's output from a target, against the multiple of a direction that is added to it."""
    t = tokens()
    drawn, (axes,) = figure(1, height=2.8)
    x = torch.as_tensor(np.asarray(X), dtype=torch.float64)
    identity = torch.eye(x.shape[1], dtype=torch.float64)
    wide = max(3.0, *(1.5 * abs(found.multiple) for _, found in cases.values()))
    multiples = np.linspace(-wide, wide, 241)
    for (name, (along, found)), colour in zip(cases.items(), ("item-a", "item-b"), strict=False):
        distances = []
        for r in multiples:
            moved = x.clone()
            moved[token] += r * torch.as_tensor(np.asarray(along), dtype=torch.float64)
            output = self_attention(moved, identity, identity, identity).output[token]
            distances.append(float((output - torch.as_tensor(np.asarray(target))).norm()))
        axes.plot(multiples, distances, color=t[colour], linestyle="-" if colour == "item-a" else (0, (5, 4)))
        at, side = (len(multiples) // 6, "left") if colour == "item-a" else (-len(multiples) // 6, "right")
        axes.annotate(
            f"adding {name}", (multiples[at], distances[at]), ha=side,
            xytext=(8 if side == "left" else -8, 2), textcoords="offset points", color=t[colour],
        )  # fmt: skip
        if found.at_least > 0:
            axes.axhline(found.at_least, color=t["proved"], linewidth=1)
    bound = min(found.at_least for _, found in cases.values())
    if bound > 0:
        note = f"certified for every multiple: at least {bound:.4g}"
        place: dict[str, Any] = {"xytext": (0, -14), "ha": "center", "textcoords": "offset points"}
        axes.annotate(note, (0, bound), color=t["proved"], **place)
    axes.set_ylim(0, None)
    axes.set_xlabel("multiple r that is added to the token")
    axes.set_ylabel("distance from the target")
    every = {found.status for _, found in cases.values()}
    title = {"reached": "A multiple brings the output to the target", "undecided": "How near each multiple comes"}
    axes.set_title(
        title.get(every.pop(), "") if every != {"out of reach"} else "No multiple brings the output to the target"
    )
    return drawn


@rc_context()
def shares(dimensions: list[int], share: list[float], n: int) -> Figure:
    """Share of random keys that can be copied, against the dimension."""
    t = tokens()
    drawn, (axes,) = figure(1, height=2.7)
    axes.plot(dimensions, share, "o-", color=t["item-b"], markersize=5)
    for d, s in zip(dimensions, share, strict=True):
        axes.annotate(f"{100 * s:.0f} %", (d, s), xytext=(0, 7), ha="center", textcoords="offset points")
    axes.set_xscale("log", base=2)
    axes.set_xticks(dimensions, [str(d) for d in dimensions])
    axes.set_ylim(0, 1.15)
    axes.set_yticks([0, 0.5, 1], ["0", "½", "1"])
    axes.set_xlabel("dimensions of the keys")
    axes.set_ylabel("share that can be copied")
    axes.set_title(f"Of {n} random keys, how many can be copied")
    return drawn


def _colour(wanted: list[int], i: int) -> str:
    t = tokens()
    palette = (t["item-a"], t["item-b"], t["hardened"], t["several-heads"])
    return palette[wanted.index(i) % 4] if i in wanted else t["item-other"]


def _heat(axes: Axes, matrix: Any, title: str, below: str, left: str, signed: bool = False) -> None:
    top = float(np.abs(matrix).max()) or 1.0
    axes.imshow(matrix, cmap="RdBu" if signed else "Greys", vmin=-top if signed else 0, vmax=top if signed else 1)
    axes.set_xticks(range(matrix.shape[1]))
    axes.set_yticks(range(matrix.shape[0]))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(below)
    axes.set_ylabel(left)
    axes.set_title(title)
    if matrix.size <= 36:
        for (i, j), v in np.ndenumerate(matrix):
            shown = f"{v:.2f}".replace("-0.00", "0.00")
            axes.annotate(
                shown,
                (j, i),
                ha="center",
                va="center",
                fontsize=7,
                color="white" if abs(v) > 0.6 * top else "black",
            )
