"""Loss curve of a run: training and validation loss against steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qkv.train.metrics_log import History
from qkv.viz.theme import figure, rc_context, tokens

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@rc_context()
def losses(history: History, title: str = "") -> Figure:
    """Draw the training loss with its moving average, and the validation loss as points, with their last values.

    Args:
        history: Losses of a run, as `History.of(folder)` reads them.
        title: Title; by default one that names the last loss.
    """
    t = tokens()
    drawn, (axes,) = figure(1)
    steps, raw = np.array(history.steps), np.array(history.losses)
    last = raw[-1] if len(raw) else float("nan")
    axes.plot(steps, raw, color=t["item-b"], alpha=0.3, linewidth=1)
    width = max(1, len(raw) // 20)
    smooth = np.convolve(raw, np.ones(width) / width, mode="valid") if len(raw) else raw
    axes.plot(steps[width - 1 :], smooth, color=t["item-b"])
    ends = [("training", steps[-1:], raw[-1:], t["item-b"])]
    if history.validated:
        axes.plot(history.validated, history.val_losses, "o-", color=t["item-a"], markersize=4, linewidth=1)
        ends.append(("validation", np.array(history.validated[-1:]), np.array(history.val_losses[-1:]), t["item-a"]))
    high = sorted(ends, key=lambda end: -float(end[2][0]) if len(end[2]) else 0.0)
    for (name, x, y, colour), shift in zip(high, (5, -9), strict=False):
        if len(x):
            axes.annotate(
                f"{name} {y[0]:.3g}", (x[0], y[0]), xytext=(6, shift if len(ends) > 1 else 0),
                textcoords="offset points", color=colour, annotation_clip=False,
            )  # fmt: skip
    axes.set_xlabel("step")
    axes.set_ylabel("loss, nats per token")
    axes.set_ylim(0, None)
    axes.margins(x=0.02)
    axes.set_title(title or f"The loss falls to {last:.3g} nats per token")
    return drawn
