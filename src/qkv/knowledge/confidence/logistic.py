"""Linear probes: logistic regression with a ridge, on standardised features, by Newton's method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qkv.errors import QkvError

ROUNDS = 100
RIDGES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
FOLDS, DEALS = 5, 5


@dataclass(frozen=True)
class LogisticModel:
    """A chance that is the logistic function of a linear score; `mean` and `scale` standardise what comes in."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float

    def score(self, x: np.ndarray) -> np.ndarray:
        """The score (n,) of features (n, d): the logarithm of the odds."""
        x = np.asarray(x, dtype=float)
        if x.ndim != 2 or x.shape[1] != len(self.weights):
            raise QkvError(
                "scoring with a linear probe",
                f"features have shape {x.shape}",
                f"Give rows of {len(self.weights)} numbers",
            )
        return (x - np.array(self.mean)) / np.array(self.scale) @ np.array(self.weights) + self.bias

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The chance (n,)."""
        return logistic(self.score(x))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> LogisticModel:
        """From its fields; lists of other lengths than each other are refused."""
        mean, scale, weights = (tuple(float(v) for v in data[name]) for name in ("mean", "scale", "weights"))
        bias = float(data["bias"])
        if not len(mean) == len(scale) == len(weights) or not all(map(np.isfinite, (*mean, *scale, *weights, bias))):
            raise ValueError("a linear model's vectors do not fit together")
        return cls(mean, scale, weights, bias)


def logistic(score: np.ndarray) -> np.ndarray:
    """1/(1 + e^-score), without overflow."""
    return np.exp(-np.logaddexp(0.0, -np.asarray(score, dtype=float)))


def fit(x: np.ndarray, y: np.ndarray, ridge: float = 1.0) -> LogisticModel:
    """The linear model of least logistic loss plus ridge·|weights|²/2, on standardised features; the bias is free."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 2 or len(x) != len(y) or not np.isfinite(x).all() or len(set(y.tolist()) | {0.0, 1.0}) != 2:
        raise QkvError(
            "fitting a linear probe", f"features have shape {x.shape}, and there are {len(y)} labels",
            "Give rows of finite numbers, and a label 0 or 1 for each",
        )  # fmt: skip
    if len(set(y.tolist())) < 2:
        raise QkvError("fitting a linear probe", f"all labels are {y[:1]}", "Give examples of both kinds")
    mean, scale = x.mean(0), x.std(0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    z = np.column_stack(((x - mean) / scale, np.ones(len(x))))
    penalty = np.full(z.shape[1], ridge)
    penalty[-1] = 1e-9
    w = np.zeros(z.shape[1])
    value = _loss(z, y, w, penalty)
    for _ in range(ROUNDS):
        p = logistic(z @ w)
        slope = z.T @ (p - y) + penalty * w
        step = np.linalg.solve(z.T @ (z * (p * (1 - p))[:, None]) + np.diag(penalty), slope)
        size = 1.0
        while size > 1e-8 and (lower := _loss(z, y, w - size * step, penalty)) > value - 1e-4 * size * (slope @ step):
            size /= 2
        if size <= 1e-8:
            break
        w, value = w - size * step, lower
        if slope @ step < 1e-12:
            break
    return LogisticModel(tuple(mean.tolist()), tuple(scale.tolist()), tuple(w[:-1].tolist()), float(w[-1]))


def chosen(x: np.ndarray, y: np.ndarray, seed: int = 0) -> tuple[LogisticModel, np.ndarray]:
    """The fit whose ridge predicts best across folds, and the scores that each row gets from fits without it.

    Those scores are means over several ways to deal out the folds: which rows share a fold is luck, and a row must not
    rank above another by luck.
    """
    y = np.asarray(y, dtype=float)
    first = _dealt(y, seed, 0)
    scores = {ridge: _left_out(x, y, first, ridge) for ridge in RIDGES}
    best = min(RIDGES, key=lambda ridge: float(np.logaddexp(0, np.where(y > 0, -scores[ridge], scores[ridge])).mean()))
    more = [_left_out(x, y, _dealt(y, seed, deal), best) for deal in range(1, DEALS)]
    return fit(x, y, best), np.mean([scores[best], *more], axis=0)


def _dealt(y: np.ndarray, seed: int, deal: int) -> np.ndarray:
    """The fold of each row; each fold has its share of both kinds."""
    folds = np.empty(len(y), dtype=int)
    for kind in (0.0, 1.0):
        rows = np.flatnonzero(y == kind)
        folds[np.random.default_rng((seed, 15, deal)).permutation(rows)] = np.arange(len(rows)) % FOLDS
    return folds


def _left_out(x: np.ndarray, y: np.ndarray, folds: np.ndarray, ridge: float) -> np.ndarray:
    """The score of each row by a fit to the other folds."""
    out = np.empty(len(y))
    for fold in range(FOLDS):
        rest = folds != fold
        out[~rest] = fit(x[rest], y[rest], ridge).score(x[~rest])
    return out


def _loss(z: np.ndarray, y: np.ndarray, w: np.ndarray, penalty: np.ndarray) -> float:
    score = z @ w
    return float(np.logaddexp(0, np.where(y > 0, -score, score)).sum() + (penalty * w * w).sum() / 2)
