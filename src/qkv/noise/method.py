"""The names of the methods by which a probability or a distribution is computed."""

from __future__ import annotations

from typing import Literal, get_args

Method = Literal["exact", "quadrature", "conditional_mc", "monte_carlo"]
"""How a figure was computed, from the most to the least certain:

- "exact": a closed form; only rounding is left.
- "quadrature": numerical integration of the whole distribution; the error comes from nodes and cut-off tails.
- "conditional_mc": the largest normal variable is integrated in closed form, the others are drawn.
- "monte_carlo": all noise is drawn, and draws are counted.
"""
METHODS: tuple[Method, ...] = get_args(Method)

IN_WORDS: dict[Method, str] = {
    "exact": "in closed form",
    "quadrature": "by quadrature",
    "conditional_mc": "by conditional Monte Carlo",
    "monte_carlo": "by Monte Carlo",
}
"""The methods as they are printed."""
