"""Draws of random vectors that can contradict a proof: means, variances and covariances as balls of twelve errors."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
from flint import arb, arb_mat

from qkv.claims.arrays import exact_values as exact
from qkv.claims.arrays.context import ArrayContext
from qkv.claims.arrays.errors import NoValue
from qkv.claims.arrays.instances import ArrayInstance, drawn
from qkv.claims.syntax import nodes as L

N_DRAWS = 600
SEEDS = (1, 4)
LARGEST = Fraction(1, 2)  # exponentials of large numbers have means that few draws show
ERRORS = 12


def contradicted_by_draws(context: ArrayContext, core: L.Relation) -> bool:
    """Whether draws disagree with a comparison that holds means; samples never decide a claim, but show a bug."""
    if not context.random or not any(isinstance(n, L.Stat) for n in L.nodes((core, tuple(context.lets.values())))):
        return False
    for seed in SEEDS:
        with exact.precision():
            try:
                inst = _shrunk(drawn(context, seed))
                inst.estimate = partial(_estimated, inst, np.random.default_rng(seed))
                if exact.meets(inst) and exact.holds(inst, core) is False:
                    return True
            except NoValue:
                continue
    return False


def _shrunk(inst: ArrayInstance) -> ArrayInstance:
    """The instance with free arrays of small entries."""
    arrays = dict(inst.arrays)
    for name in arrays:
        if inst.context.arrays[name].kind == "":
            by = max(Fraction(1), max(abs(x) for row in arrays[name] for x in row) / LARGEST)
            arrays[name] = [[x / by for x in row] for row in arrays[name]]
    return replace(inst, arrays=arrays, cache={})


def _estimated(inst: ArrayInstance, rng: np.random.Generator, expr: L.Stat) -> exact.Matrix:
    """A statistic from draws, as a ball."""
    if expr.function not in ("E", "Var", "Cov"):
        raise NoValue("a statistic without an estimate")
    values = np.array([_values(inst, expr, rng) for _ in range(N_DRAWS)])
    one, two = values[:, 0], values[:, -1]
    terms = one if expr.function == "E" else (one - one.mean()) * (two - two.mean())
    middle = terms.mean()
    if not np.isfinite(middle):
        raise NoValue("a mean that is not finite")
    error = terms.std() / np.sqrt(N_DRAWS) + 0.1 / N_DRAWS * abs(middle)
    return arb_mat([[arb(float(middle), float(ERRORS * error) + 1e-12)]])


def _values(inst: ArrayInstance, expr: L.Stat, rng: np.random.Generator) -> list[float]:
    arrays = dict(inst.arrays)
    for name, variance in inst.context.random.items():
        spread = float(exact.number(inst, variance).mid())
        if spread < 0:
            raise NoValue("a negative variance")
        rows = inst.context.arrays[name].rows
        size = inst.sizes[rows] if rows in inst.sizes else int(rows)
        arrays[name] = [[Fraction(float(x))] for x in rng.normal(size=size) * np.sqrt(spread)]
    sample = replace(inst, arrays=arrays, cache={})
    return [float(exact.number(sample, inner).mid()) for inner in expr.inner]
