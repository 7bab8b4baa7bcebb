"""Simulated features of answers."""

import numpy as np
import pytest

from qkv.knowledge.confidence.features import FEATURES


@pytest.fixture(scope="session")
def simulate():
    """A function that draws (feature values, right, groups) for n answers.

    Half of the people are known, and most of the answers about them are right and of high probability.
    """

    def draw(n, seed):
        random = np.random.default_rng(seed)
        known = np.arange(n) % 2 == 0
        right = known & (random.random(n) < 0.8)
        log_p = np.where(right, -0.2, -3.0) + random.normal(size=n) * 0.9
        name = np.where(known, -1.0, -4.0)
        columns = dict.fromkeys(FEATURES, log_p) | {
            "margin": 5 + log_p,
            "entropy": -log_p,
            "agreement": np.exp(np.minimum(log_p, 0)),
            "name_mean_log_probability": name,
            "name_mean_excess_surprise": -name,
        }
        values = np.column_stack([columns[name] for name in FEATURES])
        groups = np.where(known, "known", np.where(np.arange(n) % 4 == 1, "outsider", "invented"))
        return values + random.normal(size=values.shape) * 0.3, right, groups

    return draw
