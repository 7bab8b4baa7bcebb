"""Pictures of noise show moments and probabilities that a simulation of the keys gives again."""

import numpy as np
import pytest

N, SCALE, DRAWS = 4, 4.0, 200_000


@pytest.fixture(scope="module")
def weights():
    """Weights of a plain head t(k_a + k_b) at scale 4, from keys drawn with variance 0.5 along the first."""
    rng = np.random.default_rng(0)
    scores = np.zeros((DRAWS, N))
    scores[:, 0] = SCALE * (1 + 0.5**0.5 * rng.standard_normal(DRAWS))
    scores[:, 1] = SCALE
    e = np.exp(scores - scores.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def test_variance_is_that_of_simulated_outputs(figures, weights):
    (axes,) = figures["noise.variance"]().axes
    at = axes.lines[0].get_xydata()
    assert at[1, 0] == SCALE and at[1, 1] == pytest.approx(weights.var(0).sum(), rel=0.02)


def test_success_is_the_share_of_simulated_outputs_within_the_radius(figures, weights):
    (axes,) = figures["noise.success"]().axes
    near = np.linalg.norm(weights - [0.5, 0.5, 0, 0], axis=1) <= 0.2
    assert axes.lines[0].get_xydata()[1, 1] == pytest.approx(near.mean(), abs=0.02)


def test_weights_has_a_histogram_for_each_layout(figures):
    boxes = figures["noise.weights"]().axes
    assert len(boxes) == 3
    for box in boxes:
        assert sum(bar.get_height() for bar in box.patches) == pytest.approx(1)
