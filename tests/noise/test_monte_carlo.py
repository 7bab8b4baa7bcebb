"""Sampling in score space: seeds, quantiles, histograms, rounding, and what is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from scipy.stats import binom, norm

import qkv
from qkv.errors import QkvError
from qkv.noise import Gaussian, Quantised, reading_moments, sample
from qkv.noise.monte_carlo import binomial_interval

RNG = np.random.default_rng(11)
MEMORY = qkv.Memory(RNG.normal(size=(5, 4)), RNG.normal(size=(5, 2)), labels=list("abcde"))
Q = RNG.normal(size=4)


def test_the_same_seed_draws_the_same_readings_and_another_seed_others():
    noise = Gaussian(isotropic=0.2)
    one, same, other = (sample(MEMORY, Q, noise, n_draws=500, seed=s) for s in (3, 3, 4))
    assert torch.equal(one.weights_mean, same.weights_mean)
    assert not torch.equal(one.weights_mean, other.weights_mean)


@pytest.mark.slow
def test_standard_errors_are_as_large_as_the_scatter_between_seeds():
    noise = Gaussian(isotropic=0.3)
    runs = [sample(MEMORY, Q, noise, n_draws=2000, seed=s) for s in range(60)]
    for figure, error in (("weights_mean", "weights_mean_se"), ("weights_var", "weights_var_se")):
        scatter = torch.stack([getattr(r, figure) for r in runs]).std(0)
        claimed = torch.stack([getattr(r, error) for r in runs]).mean(0)
        assert bool((scatter / claimed).sub(1).abs().max() < 0.35)
    scatter = torch.stack([r.output_cov for r in runs]).std(0)
    claimed = torch.stack([r.output_cov_se for r in runs]).mean(0)
    assert bool((scatter / claimed).sub(1).abs().max() < 0.35)


def test_quantiles_of_one_noisy_key_are_those_of_its_score():
    """With one noisy key its weight grows with its score, so quantiles go through the softmax."""
    noise = Gaussian(along={"a": 0.5})
    s = sample(MEMORY, Q, noise, n_draws=40_000, keep_items=["a"])
    scores = MEMORY.keys.numpy() @ Q
    for p in (0.05, 0.5, 0.9):
        moved = scores.copy()
        moved[0] += norm.ppf(p) * math.sqrt(0.5) * abs(scores[0])
        true = np.exp(moved[0]) / np.exp(moved).sum()
        estimate, low, high = s.quantile("a", p, confidence=0.9999)
        assert low <= estimate <= high
        assert low <= true <= high
        assert high - low < 0.05


def test_a_histogram_counts_every_draw_of_a_watched_item():
    s = sample(MEMORY, Q, Gaussian(isotropic=0.2), n_draws=1000)
    heaviest = MEMORY.read(Q).card().rows[0][0]
    counts, edges = s.histogram(heaviest, bins=20)
    assert int(counts.sum()) == 1000
    assert len(edges) == 21
    drawn = s.kept_weights[heaviest].numpy()
    assert counts.tolist() == np.histogram(drawn, edges.numpy())[0].tolist()


def test_noise_on_few_keys_leaves_the_others_scores_alone():
    s = sample(MEMORY, Q, Gaussian(along={"a": 0.5}), n_draws=300, keep_items=list("abcde"))
    ratio = s.kept_weights["b"] / s.kept_weights["c"]
    assert float(ratio.max() - ratio.min()) < 1e-12 * float(ratio.max())


def test_rounding_moves_each_score_with_the_variance_of_its_gaussian():
    """Read with one rival that no channel moves, so that the log odds of a are its score's error."""
    keys = np.array([[0.37, -0.21, 0.9], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]])
    memory = qkv.Memory(keys)
    q, noise = np.array([0.8, -0.5, 0.3]), Quantised(5)
    shift = torch.rand(50_000, 1, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    step = noise.steps(memory)
    rounded = (torch.round(memory.keys / step + shift) - shift) * step
    error = (rounded - memory.keys) @ torch.from_numpy(q)
    assert float((rounded - memory.keys).abs().max()) <= float(step.max()) / 2 + 1e-12
    variance = noise.on(memory).score_covariance(torch.from_numpy(q)[None])[:, 0, 0]
    assert torch.allclose(error.var(0), variance, rtol=0.03)
    drawn = sample(memory, q, noise, n_draws=50_000)
    want = torch.softmax(rounded @ torch.from_numpy(q), -1)
    assert torch.allclose(drawn.weights_var, want.var(0), rtol=0.05)


def test_at_eight_bits_rounding_and_its_gaussian_nearly_agree_and_at_two_they_need_not():
    rng = np.random.default_rng(0)
    memory = qkv.Memory(rng.normal(size=(20, 16)), rng.normal(size=(20, 3)))
    q = rng.normal(size=16)
    s, r = reading_moments(memory, q, Quantised(8)), sample(memory, q, Quantised(8), n_draws=20_000)
    assert torch.allclose(s.weights_mean, r.weights_mean, atol=1e-4)
    top = int(s.weights_mean.argmax())
    assert float(r.weights_var[top]) == pytest.approx(float(s.weights_var[top]), rel=0.3)


@pytest.mark.parametrize(("hits", "draws"), [(0, 10), (3, 10), (10, 10), (50, 1000)])
def test_the_binomial_interval_is_where_either_tail_is_one_fortieth(hits, draws):
    low, high = binomial_interval(hits, draws, 0.95)
    assert low == 0 if hits == 0 else binom.sf(hits - 1, draws, low) == pytest.approx(0.025)
    assert high == 1 if hits == draws else binom.cdf(hits, draws, high) == pytest.approx(0.025)


def test_a_sample_shows_itself_and_becomes_json():
    s = sample(MEMORY, Q, Gaussian(isotropic=0.1), n_draws=100)
    assert "±" in s.card().rows[0][1]
    assert json.loads(json.dumps(s.to_json()))["n_draws"] == 100


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: sample(MEMORY, Q, Gaussian(), n_draws=0), "draws"),
        (lambda: sample(MEMORY, Q, Gaussian(), n_draws=-5), "draws"),
        (lambda: sample(MEMORY, Q, Gaussian(), n_draws=2.5), "draws"),
        (lambda: sample(MEMORY, Q, Gaussian(), n_draws=10, seed=-1), "seed"),
        (lambda: sample(MEMORY, Q, Gaussian(), n_draws=10, keep_items=["z"]), "'z'"),
        (lambda: sample(MEMORY, Q, Gaussian(), n_draws=10, keep_items=["a"]).quantile("b", 0.5), "kept"),
        (lambda: sample(MEMORY, Q, Gaussian(), n_draws=10, keep_items=["a"]).quantile("a", 1.5), "1.5"),
        (lambda: sample(MEMORY, Q, Gaussian(), n_draws=10, keep_items=["a"]).quantile("a", 0.5, 1.0), "confidence"),
    ],
)
def test_what_cannot_be_sampled_is_refused(ask, says):
    with pytest.raises(QkvError, match=says):
        ask()


def test_many_keys_are_drawn_in_float32_and_still_agree_with_the_exact_spread():
    random = np.random.default_rng(3)
    memory = qkv.Memory(random.standard_normal((400, 8)), random.standard_normal((400, 3)))
    query, noise = random.standard_normal(8), qkv.noise.Gaussian(isotropic=0.05)
    exact, drawn = (
        qkv.noise.reading_moments(memory, query, noise),
        qkv.noise.sample(memory, query, noise, n_draws=40_000),
    )
    off = (exact.weights_mean - drawn.weights_mean).abs()
    assert bool((off <= 6 * (exact.weights_var / 40_000).sqrt() + 1e-9).all())
    assert bool(((exact.output_cov - drawn.output_cov).abs() <= 6 * drawn.output_cov_se).all())


def test_draws_that_memory_cannot_hold_are_refused_before_the_first(monkeypatch):
    from qkv.noise import monte_carlo

    monkeypatch.setattr(monte_carlo, "free_bytes", lambda: 24 * 4 * 1000)
    assert sample(MEMORY, Q, Gaussian(isotropic=0.2), n_draws=1000).n_draws == 1000
    with pytest.raises(QkvError, match="1,001 drawn weights of 4 items") as refused:
        sample(MEMORY, Q, Gaussian(isotropic=0.2), n_draws=1001)
    assert refused.value.hint.startswith("Draw at most 1,000, or keep fewer items")
    assert sample(MEMORY, Q, Gaussian(isotropic=0.2), n_draws=4000, keep_items=["a"]).n_draws == 4000


def test_free_memory_is_told_in_bytes(tmp_path):
    import psutil

    from qkv.noise.monte_carlo import free_bytes

    assert 0.5 < free_bytes() / psutil.virtual_memory().available < 2


def test_ranks_of_a_quantile_enclose_it_as_often_as_they_say():
    from scipy.stats import binom

    from qkv.noise.monte_carlo import quantile_ranks

    for draws in (1, 5, 40, 1000):
        for p in (0.001, 0.3, 0.5, 0.97):
            low, high = quantile_ranks(p, draws, 0.9)
            missed = binom.cdf(low - 1, draws, p) + binom.sf(high - 1, draws, p)
            assert 0 <= low < high <= draws + 1 and missed <= 0.1 + 1e-12
    assert quantile_ranks(0, 9, 0.9) == (0, 1) and quantile_ranks(1, 9, 0.9) == (9, 10)


@pytest.mark.parametrize(("n_draws", "unknown"), [(1, {"mean", "var"}), (2, {"var"}), (3, set())])
def test_standard_errors_that_so_few_draws_cannot_give_are_unknown(n_draws, unknown):
    """One draw used to have standard errors of 0, and two a variance without one."""
    memory = qkv.Memory.orthonormal(4, 4)
    found = sample(memory, 3 * memory.keys[0], Gaussian(isotropic=0.3), n_draws=n_draws, seed=3)
    for name in ("mean", "var"):
        se = getattr(found, f"weights_{name}_se")
        assert bool(se.isnan().all()) if name in unknown else bool((se > 0).all())
    assert bool(found.output_mean_se.isnan().all()) == ("mean" in unknown)
    assert bool(found.output_cov_se.isnan().all()) == ("var" in unknown)
    note = found.card().note
    assert ("unknown" in note) == bool(unknown)
    shown = " ".join(" ".join(row) for row in found.card().rows)
    assert ("unknown" in shown) == bool(unknown) and "nan" not in shown


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.quantile("a", "a"),
        lambda s: s.quantile("a", None),
        lambda s: s.quantile("a", float("nan")),
        lambda s: s.quantile(["a"], 0.5),
        lambda s: s.histogram(["a"]),
        lambda s: s.histogram({}),
        lambda s: s.histogram("a", bins=10**10),
    ],
)
def test_statistics_of_kept_weights_refuse_what_they_cannot_read(call):
    memory = qkv.Memory.orthonormal(4, 4, labels=list("abcd"))
    found = sample(memory, 3 * memory.keys[0], Gaussian(isotropic=0.3), n_draws=50)
    with pytest.raises(QkvError):
        call(found)


def test_one_draw_has_no_variance():
    memory = qkv.Memory.orthonormal(3, 3)
    drawn = qkv.noise.sample(memory, memory.keys[0], qkv.noise.Gaussian(isotropic=0.1), n_draws=1)
    assert {row[2] for row in drawn.card().rows} == {"unknown"}
