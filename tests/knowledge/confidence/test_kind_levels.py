"""Levels of single kinds of questions: true of each, also where one is rare and the score says little about it."""

from __future__ import annotations

import numpy as np
import pytest

from qkv.knowledge.confidence.cross_fitting import cross_fit
from qkv.knowledge.confidence.kind_levels import kind_levels

N_FRESH = 20_000


def draw(n: int, share: float, random: np.random.Generator, worth: float = 0.0) -> tuple[np.ndarray, ...]:
    """Feature rows, labels and kinds: of kind "a" the score tells what is right, of kind "b" by a part of its worth."""
    kinds = np.where(random.random(n) < share, "b", "a")
    x = random.normal(size=(n, 2))
    slope = np.where(kinds == "a", 4.0, 4.0 * worth)
    right = random.random(n) < 1 / (1 + np.exp(-slope * x[:, 0] - np.where(kinds == "a", 2.0, 0.3)))
    return x, right, kinds


def false_statements(n_draws: int, n: int, share: float, worth: float) -> tuple[int, int]:
    """How many stated levels of single kinds are false of fresh rows, and how many were stated."""
    false = stated = 0
    for seed in range(n_draws):
        random = np.random.default_rng((seed, 77))
        x, right, kinds = draw(n, share, random, worth)
        fit = cross_fit(x, right, level=0.95, seed=seed, n_assignments=2)
        if not fit.calibrator.remembered.accepted:
            continue
        fresh, truth, of = draw(N_FRESH, share, random, worth)
        called = fit.calibrator.scores(fresh) > fit.calibrator.remembered.threshold
        people = [str(i) for i in range(n)]
        for level in kind_levels(kinds.tolist(), fit.scores, right, people, fit.calibrator):
            rows = called & (of == level.kind)
            if level.remembered and rows.any():
                stated += 1
                false += truth[rows].mean() < level.remembered
    return false, stated


def test_a_rare_kind_of_which_the_score_says_little_has_no_level_of_all_kinds() -> None:
    x, right, kinds = draw(600, 0.08, np.random.default_rng(3))
    fit = cross_fit(x, right, level=0.9, n_assignments=2)
    every = fit.calibrator.remembered
    assert every.accepted and every.level == 0.9
    found = {each.kind: each for each in kind_levels(kinds.tolist(), fit.scores, right, numbered(600), fit.calibrator)}
    assert found["a"].remembered == 0.9 and found["b"].remembered < 0.7
    (alone,) = kind_levels(["a"] * 600, fit.scores, right, numbered(600), fit.calibrator)
    assert alone == ("a", every.level, fit.calibrator.made_up.level)
    one = kind_levels(kinds.tolist(), fit.scores, right, ["somebody"] * 600, fit.calibrator)  # one row of one person
    assert all(each.remembered == 0 for each in one)


def numbered(n: int) -> list[str]:
    return [str(i) for i in range(n)]


@pytest.mark.parametrize(
    ("n", "share", "worth", "n_draws"),
    [(300, 0.1, 0.0, 60), *(pytest.param(n, share, worth, 300, marks=pytest.mark.slow)
     for n in (200, 600) for share in (0.05, 0.2, 0.5) for worth in (0.0, 0.5))],
)  # fmt: skip
def test_stated_levels_of_kinds_are_true(n: int, share: float, worth: float, n_draws: int) -> None:
    false, stated = false_statements(n_draws, n, share, worth)
    assert stated > n_draws / 4
    assert false <= 0.05 * stated + 3 * np.sqrt(0.05 * 0.95 * stated)
