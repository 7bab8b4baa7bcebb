"""Plots of layouts under noise: colours by kind of layout, and figures that match the moments."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import qkv
from qkv.noise import Gaussian, HeadMix, min_variance_query, reading_moments, reference_layouts, success_probability
from qkv.viz.plots import noise as plots
from qkv.viz.theme import tokens

MEMORY = qkv.Memory(np.eye(5), labels=list("abcde"))
NOISE = Gaussian(isotropic=1e-3, along={"a": 0.5})
WANTED = {"a": 0.5, "b": 0.5}


@pytest.fixture(scope="module")
def layouts():
    return reference_layouts(MEMORY, WANTED, NOISE, 5.0)


@pytest.mark.parametrize(
    ("robust", "token"),
    [("hardened", "hardened"), ("one hardened head", "hardened"), ("min variance", "min-variance")],
)
def test_plain_several_and_robust_layouts_have_colours_of_their_own(robust, token):
    assert plots._colours({"one head": 0, "two heads": 0, robust: 0}) == ["one-head", "several-heads", token]
    assert plots._colours({"one head": 0, "one more": 0}) == ["one-head", "item-other"]


def test_a_histogram_holds_all_draws_and_names_the_exact_variance(layouts):
    figure = plots.weights(MEMORY, layouts, NOISE, "a", draws=2000)
    assert len(figure.axes) == 3
    for axes, (name, heads) in zip(figure.axes, layouts.items(), strict=True):
        assert sum(bar.get_height() for bar in axes.patches) == pytest.approx(1)
        variance = float(reading_moments(MEMORY, heads, NOISE).weights_var[0])
        assert axes.texts[0].get_text() == f"variance {variance:.2g}"
        assert axes.get_title(loc="left").startswith(name) or axes.get_title().startswith(name)


def test_curves_are_the_moments_and_probabilities_at_each_scale(layouts):
    scales, unit = [1.0, 3.0], HeadMix.single(torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0], dtype=torch.float64))
    curve = plots.variance(MEMORY, layouts, NOISE, scales).axes[0].lines[0].get_ydata()
    exact = [float(reading_moments(MEMORY, s * unit.queries, NOISE).total_variance) for s in scales]
    assert curve == pytest.approx(exact)
    one_key = Gaussian(along={"a": 0.5})  # integrated, so that no draws differ
    curve = plots.success(MEMORY, layouts, one_key, WANTED, 0.3, scales).axes[0].lines[0].get_ydata()
    assert curve == pytest.approx(
        [success_probability(MEMORY, s * unit.queries, one_key, WANTED, 0.3).probability for s in scales]
    )


def test_a_layout_at_unit_scale_has_a_score_gap_of_one():
    query = min_variance_query(MEMORY, WANTED, NOISE, 7.0)
    scores = (plots._unit_scale(MEMORY, query).queries @ MEMORY.keys.mT)[0]
    assert float(scores[:2].min() - scores[2:].max()) == pytest.approx(1)
    assert tokens()["hardened"] == "#009e73"


@pytest.fixture(scope="module")
def simulated():
    """Weights of a plain head t(k_a + k_b) of four keys at scale 4, from keys with variance 0.5 along the first."""
    rng = np.random.default_rng(0)
    scores = np.zeros((200_000, 4))
    scores[:, 0] = 4 * (1 + 0.5**0.5 * rng.standard_normal(len(scores)))
    scores[:, 1] = 4
    e = np.exp(scores - scores.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def test_variance_is_that_of_simulated_outputs(figures, simulated):
    (axes,) = figures["noise.variance"]().axes
    at = axes.lines[0].get_xydata()
    assert at[1, 0] == 4 and at[1, 1] == pytest.approx(simulated.var(0).sum(), rel=0.02)


def test_success_is_the_share_of_simulated_outputs_within_the_radius(figures, simulated):
    (axes,) = figures["noise.success"]().axes
    near = np.linalg.norm(simulated - [0.5, 0.5, 0, 0], axis=1) <= 0.2
    assert axes.lines[0].get_xydata()[1, 1] == pytest.approx(near.mean(), abs=0.02)
