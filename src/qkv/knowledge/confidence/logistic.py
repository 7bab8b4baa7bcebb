"""Logistic regression with a ridge penalty on standardised inputs, by Newton's method; ridge by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkv.errors import QkvError

MAX_NEWTON_STEPS = 100
RIDGES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
N_FOLDS = 5
N_FOLD_ASSIGNMENTS = 5


@dataclass(frozen=True)
class LogisticModel:
    """P(label 1) = expit(score), with a score that is linear in the standardised inputs (x − mean)/scale."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float

    def score(self, x: np.ndarray) -> np.ndarray:
        """Log-odds (n,) of inputs (n, d)."""
        x = np.asarray(x, dtype=float)
        if x.ndim != 2 or x.shape[1] != len(self.weights):
            raise QkvError(
                "scoring with a logistic model",
                f"the inputs have shape {x.shape}",
                f"Give rows of {len(self.weights)} numbers",
            )
        return (x - np.array(self.mean)) / np.array(self.scale) @ np.array(self.weights) + self.bias

    def probability(self, x: np.ndarray) -> np.ndarray:
        """P(label 1), (n,), of inputs (n, d)."""
        return expit(self.score(x))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> LogisticModel:
        """A model from its fields; vectors of different lengths, infinite numbers and scales below 0 are refused."""
        try:
            mean, scale, weights = (tuple(float(v) for v in data[name]) for name in ("mean", "scale", "weights"))
            bias = float(data["bias"])
        except OverflowError:
            raise ValueError("a logistic model has a number that is too large") from None
        if not len(mean) == len(scale) == len(weights) or not all(map(np.isfinite, (*mean, *scale, *weights, bias))):
            raise ValueError("the vectors of a logistic model differ in length or are not finite")
        if not all(spread > 0 for spread in scale):
            raise ValueError("a logistic model has a scale that is not above 0")
        return cls(mean, scale, weights, bias)


def expit(score: np.ndarray) -> np.ndarray:
    """1/(1 + e^-score) without overflow.

    As scipy.special.expit, whose import would take longer than the answer that `qkv ask` needs it for.
    """
    return np.exp(-np.logaddexp(0.0, -np.asarray(score, dtype=float)))


def fit(x: np.ndarray, y: np.ndarray, ridge: float = 1.0) -> LogisticModel:
    """Minimise the logistic loss plus ridge·|weights|²/2 on standardised inputs; the bias is not penalised."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 2 or len(x) != len(y) or not np.isfinite(x).all() or len(set(y.tolist()) | {0.0, 1.0}) != 2:
        raise QkvError(
            "fitting a logistic model",
            f"the inputs have shape {x.shape}, and there are {len(y)} labels",
            "Give rows of finite numbers, and a label 0 or 1 for each",
        )
    if len(set(y.tolist())) < 2:
        raise QkvError("fitting a logistic model", f"all labels are {y[:1]}", "Give examples of both labels")
    mean, scale = x.mean(0), x.std(0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    z = np.column_stack(((x - mean) / scale, np.ones(len(x))))
    penalty = np.full(z.shape[1], ridge)
    penalty[-1] = 1e-9  # keeps the Hessian invertible
    w = np.zeros(z.shape[1])
    loss = _loss(z, y, w, penalty)
    for _ in range(MAX_NEWTON_STEPS):
        p = expit(z @ w)
        gradient = z.T @ (p - y) + penalty * w
        step = np.linalg.solve(z.T @ (z * (p * (1 - p))[:, None]) + np.diag(penalty), gradient)
        size = 1.0  # backtracking line search, Armijo's condition
        while size > 1e-8 and (lower := _loss(z, y, w - size * step, penalty)) > loss - 1e-4 * size * (gradient @ step):
            size /= 2
        if size <= 1e-8:
            break
        w, loss = w - size * step, lower
        if gradient @ step < 1e-12:
            break
    return LogisticModel(tuple(mean.tolist()), tuple(scale.tolist()), tuple(w[:-1].tolist()), float(w[-1]))


def mean_model(models: Sequence[LogisticModel]) -> LogisticModel:
    """The model whose score is the mean of the scores of these."""
    scale = np.array([model.scale for model in models])
    weights = np.array([model.weights for model in models]) / scale
    shifts = [model.bias - float(w @ np.array(model.mean)) for model, w in zip(models, weights, strict=True)]
    mean, spread = np.array([model.mean for model in models]).mean(0), scale.mean(0)
    slope = weights.mean(0)
    bias = float(np.mean(shifts) + slope @ mean)
    return LogisticModel(tuple(mean.tolist()), tuple(spread.tolist()), tuple((slope * spread).tolist()), bias)


def fit_cross_validated(x: np.ndarray, y: np.ndarray, seed: int = 0) -> tuple[LogisticModel, np.ndarray]:
    """The fit with the ridge of least cross-validated loss, and the out-of-fold score (log-odds) of each row.

    The scores are averaged over several random assignments of rows to folds, so that the order of two rows depends
    less on which rows happened to share a fold.
    """
    y = np.asarray(y, dtype=float)
    folds = _stratified_folds(y, seed, 0)
    scores = {ridge: _out_of_fold_scores(x, y, folds, ridge) for ridge in RIDGES}
    best = min(RIDGES, key=lambda ridge: float(np.logaddexp(0, np.where(y > 0, -scores[ridge], scores[ridge])).mean()))
    more = [
        _out_of_fold_scores(x, y, _stratified_folds(y, seed, assignment), best)
        for assignment in range(1, N_FOLD_ASSIGNMENTS)
    ]
    return fit(x, y, best), np.mean([scores[best], *more], axis=0)


def _stratified_folds(y: np.ndarray, seed: int, assignment: int) -> np.ndarray:
    """A random fold for each row; every fold has the same share of both labels."""
    folds = np.empty(len(y), dtype=int)
    for label in (0.0, 1.0):
        rows = np.flatnonzero(y == label)
        folds[np.random.default_rng((seed, 15, assignment)).permutation(rows)] = np.arange(len(rows)) % N_FOLDS
    return folds


def _out_of_fold_scores(x: np.ndarray, y: np.ndarray, folds: np.ndarray, ridge: float) -> np.ndarray:
    """The score of each row by the model that is fitted to the other folds."""
    out = np.empty(len(y))
    for fold in range(N_FOLDS):
        rest = folds != fold
        out[~rest] = fit(x[rest], y[rest], ridge).score(x[~rest])
    return out


def _loss(z: np.ndarray, y: np.ndarray, w: np.ndarray, penalty: np.ndarray) -> float:
    score = z @ w
    return float(np.logaddexp(0, np.where(y > 0, -score, score)).sum() + (penalty * w * w).sum() / 2)
