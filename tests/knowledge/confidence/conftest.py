"""Simulated features of answers."""

import numpy as np
import pytest

from qkv.knowledge.confidence.features import FEATURES


@pytest.fixture(scope="session")
def simulate():
    """A function that draws (feature values, hidden states, seen, right) for n answers.

    Half of the people are known, and most of the answers about them are right and of high probability.
    """

    def draw(n, seed):
        random = np.random.default_rng(seed)
        seen = np.arange(n) % 2 == 0
        right = seen & (random.random(n) < 0.8)
        log_p = np.where(right, -0.2, -3.0) + random.normal(size=n) * 0.9
        values = np.column_stack(
            (log_p, 5 + log_p, -log_p, np.exp(np.minimum(log_p, 0)), np.where(seen, -1.0, -4.0), log_p, log_p, log_p)
        )
        assert values.shape[1] == len(FEATURES)
        hidden = random.normal(size=(n, 8)) + np.where(seen, 1.0, -1.0)[:, None] * [1, *[0] * 7]
        return values + random.normal(size=values.shape) * 0.3, hidden, seen, right

    return draw
