"""Logistic regression against SciPy's optimizer and brute-force cross-validation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special

from qkv.errors import QkvError
from qkv.knowledge.confidence.logistic import (
    N_FOLD_ASSIGNMENTS,
    N_FOLDS,
    RIDGES,
    LogisticModel,
    _stratified_folds,
    expit,
    fit,
    fit_cross_validated,
    mean_model,
)
from qkv.knowledge.confidence.metrics import auroc


def test_the_fit_is_the_minimum_that_scipy_finds():
    random = np.random.default_rng(2)
    x = random.normal(size=(80, 3)) * [1, 5, 0.1] + [0, 3, 0]
    y = (x[:, 0] + random.logistic(size=80) > 0).astype(float)
    z = (x - x.mean(0)) / x.std(0)

    def loss(w):
        score = z @ w[:3] + w[3]
        return np.logaddexp(0, np.where(y > 0, -score, score)).sum() + 0.7 * (w[:3] ** 2).sum() / 2

    best = optimize.minimize(loss, np.zeros(4), tol=1e-12)
    found = fit(x, y, ridge=0.7)
    assert np.allclose([*found.weights, found.bias], best.x, atol=1e-4)
    assert np.allclose(found.probability(x), 1 / (1 + np.exp(-found.score(x))))


def test_out_of_fold_scores_do_not_overfit():
    random = np.random.default_rng(3)
    x, y = random.normal(size=(60, 200)), random.random(60) < 0.5  # nothing to learn, and more columns than rows
    model, scores = fit_cross_validated(x, y)
    assert abs(auroc(scores, y) - 0.5) < 0.25 < auroc(model.score(x), y) - 0.5
    separable = fit(np.arange(10.0)[:, None], np.arange(10) > 4, ridge=1e-6)
    assert (
        np.isfinite(separable.weights).all()
        and auroc(separable.score(np.arange(10.0)[:, None]), np.arange(10) > 4) == 1
    )


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=20))
def test_expit_is_scipys(scores):
    assert expit(np.array(scores)) == pytest.approx(special.expit(scores), rel=1e-12, abs=1e-300)


def test_extreme_scores_do_not_overflow():
    assert expit(np.array([-1e4, 0, 1e4])).tolist() == [0, 0.5, 1]


def test_folds_have_equal_shares_of_both_labels_and_differ_between_assignments():
    y = np.arange(53) < 20
    folds = [_stratified_folds(y.astype(float), 3, assignment) for assignment in (0, 0, 1)]
    assert (folds[0] == folds[1]).all() and (folds[0] != folds[2]).any()
    for label in (True, False):
        counts = np.bincount(folds[0][y == label], minlength=N_FOLDS)
        assert counts.max() - counts.min() <= 1


def test_cross_validation_takes_the_ridge_of_least_out_of_fold_loss():
    random = np.random.default_rng(4)
    x = random.normal(size=(60, 8))
    y = (x[:, 0] + random.logistic(size=60) > 0).astype(float)
    each = {}
    for ridge in RIDGES:
        scores = np.zeros((N_FOLD_ASSIGNMENTS, 60))
        for assignment in range(N_FOLD_ASSIGNMENTS):
            folds = _stratified_folds(y, 0, assignment)
            for i in range(60):  # one row at a time
                rest = folds != folds[i]
                scores[assignment, i] = fit(x[rest], y[rest], ridge).score(x[i : i + 1])[0]
        each[ridge] = scores
    losses = {ridge: -np.log(special.expit(np.where(y > 0, s[0], -s[0]))).mean() for ridge, s in each.items()}
    best = min(losses, key=losses.get)
    model, scores = fit_cross_validated(x, y)
    assert model == fit(x, y, best) and np.allclose(scores, each[best].mean(0))


def test_labels_of_one_kind_wrong_shapes_and_damaged_models_are_refused():
    with pytest.raises(QkvError, match="all labels"):
        fit(np.ones((3, 1)), [1, 1, 1])
    for x, y in ((np.ones(3), [0, 1, 1]), (np.ones((3, 1)), [0, 1]), (np.full((2, 1), np.nan), [0, 1])):
        with pytest.raises(QkvError, match="fitting"):
            fit(x, y)
    with pytest.raises(ValueError):
        LogisticModel.from_json({"mean": [0], "scale": [1], "weights": [1, 2], "bias": 0})
    with pytest.raises(ValueError):
        LogisticModel.from_json({"mean": [0], "scale": [1], "weights": [1], "bias": float("inf")})
    with pytest.raises(QkvError, match="scoring"):
        LogisticModel((0.0,), (1.0,), (1.0,), 0.0).score(np.ones((2, 2)))


def test_the_mean_of_models_scores_the_mean_of_their_scores():
    random = np.random.default_rng(5)
    x = random.normal(size=(90, 3)) * [1, 50, 0.01] + [0, 30, 0]
    y = random.random(90) < 0.5
    models = [fit(x[i : i + 60], y[i : i + 60], ridge) for i, ridge in ((0, 0.1), (15, 1.0), (30, 10.0))]
    expected = np.mean([model.score(x) for model in models], axis=0)
    assert mean_model(models).score(x) == pytest.approx(expected, rel=1e-9, abs=1e-9)
