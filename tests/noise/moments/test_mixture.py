"""Exact moments: published figures, direct integrals over the scores, brute force, limits."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import norm

import qkv
from qkv.core.display import upper_bound
from qkv.errors import QkvError
from qkv.noise import Gaussian, reading_moments, sample
from qkv.noise.moments import mixture
from qkv.noise.moments.single_head import head_moments


def ring(n=10, d=16):
    """n orthonormal keys, the first two called a and b."""
    return qkv.Memory.orthonormal(n, d, labels=["a", "b", *map(str, range(n - 2))])


def one_noisy_key(t: float, n: int) -> tuple[float, float]:
    """Mean and variance of α_a for s_a ~ N(t, t²/2), s_b = t and n − 2 zeros, by adaptive quadrature."""

    def integrand(s: float, power: int) -> float:
        rest = np.logaddexp(t, math.log(n - 2))
        return norm.pdf(s, t, t / math.sqrt(2)) / (1 + math.exp(min(700.0, rest - s))) ** power

    span = 9 * t / math.sqrt(2)
    points = np.linspace(t - span, t + span, 400)
    first, second = (
        sum(
            integrate.quad(integrand, a, b, (power,), epsabs=1e-15, epsrel=1e-13)[0]
            for a, b in itertools.pairwise(points)
        )
        for power in (1, 2)
    )
    return first, second - first**2


@pytest.mark.parametrize(("t", "mean", "variance"), [(50, 0.5, 0.238731016), (5, 0.494699342, 0.149014832)])
def test_one_head_on_one_key_that_varies_has_the_published_moments(t, mean, variance):
    memory = ring()
    s = reading_moments(memory, t * (memory.keys[0] + memory.keys[1]), Gaussian(along={"a": 0.5}))
    assert abs(float(s.weights_mean[0]) - mean) < 1e-9
    assert abs(float(s.weights_var[0]) - variance) < 1e-9
    assert s.error_bound < 1e-10
    exact = one_noisy_key(t, 10)
    assert abs(float(s.weights_mean[0]) - exact[0]) < s.error_bound + 1e-12
    assert abs(float(s.weights_var[0]) - exact[1]) < s.error_bound + 1e-12


def test_the_pilot_figures_of_one_head_two_heads_and_a_head_that_repels():
    memory = ring()
    mu, t, noise = memory.keys, 20, Gaussian(isotropic=1e-6, along={"a": 0.5})
    found = [
        float(reading_moments(memory, q, noise).weights_var[0])
        for q in (t * (mu[0] + mu[1]), [t * mu[0], t * mu[1]], -t * mu[2:].sum(0))
    ]
    assert found == [pytest.approx(want, rel=0.01) for want in (0.222, 0.0205, 0.0004)]


def test_two_heads_fail_as_often_as_the_key_turns_around():
    """As t grows, head one reads a unless k_a points backwards; extrapolated in 1/t to p(1 − p)/4."""
    memory = ring()
    mu, noise = memory.keys, Gaussian(along={"a": 0.5})
    a, b = (float(reading_moments(memory, [t * mu[0], t * mu[1]], noise).weights_var[0]) for t in (400.0, 800.0))
    p = norm.cdf(-math.sqrt(2))
    assert abs(p - 0.0786) < 1e-4
    assert abs(2 * b - a - p * (1 - p) / 4) < 2e-5


def test_one_head_tends_to_a_fair_coin():
    memory = ring()
    q = memory.keys[0] + memory.keys[1]
    found = [float(reading_moments(memory, t * q, Gaussian(along={"a": 0.5})).weights_var[0]) for t in (400.0, 800.0)]
    assert abs(2 * found[1] - found[0] - 0.25) < 1e-5


def test_gradients_through_the_moments_are_those_of_finite_differences():
    rng = torch.Generator().manual_seed(0)
    memory = qkv.Memory(torch.randn(5, 3, generator=rng), torch.randn(5, 2, generator=rng))
    noise = Gaussian(isotropic=0.05, along={0: 0.5}, diagonal={3: [0.1, 0.0, 0.4]})
    still = Gaussian(along={0: 0.5})

    def figures(q: torch.Tensor, law: Gaussian) -> tuple[torch.Tensor, ...]:
        s = reading_moments(memory, q, law)
        return s.weights_mean, s.weights_var, s.output_mean, s.output_cov

    for law in (noise, still):
        q = torch.randn(3, generator=rng, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda x, law=law: figures(x, law), (q,), eps=1e-5, atol=1e-7)
    heads = torch.randn(2, 3, generator=rng, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: figures(x, noise)[1:], (heads,), eps=1e-5, atol=1e-7)


@pytest.mark.parametrize("noise", [Gaussian(isotropic=0.1), Gaussian(along={0: 0.5}), Gaussian(along=0.5)])
def test_heads_that_are_independent_now_have_the_gradients_of_becoming_dependent(noise):
    """Queries along different keys share no noise; turning one towards the other changes that at once."""
    memory = qkv.Memory(np.eye(3), [[1.0, 0.0], [0.0, 1.0], [0.5, -1.0]])
    heads = torch.tensor([[1.5, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    assert float(reading_moments(memory, heads.detach(), noise).heads_output_cov[0, 1].abs().max()) == 0

    def shared(x: torch.Tensor) -> torch.Tensor:
        return reading_moments(memory, x, noise).heads_output_cov[0, 1]

    assert torch.autograd.gradcheck(shared, (heads,), eps=1e-4, atol=1e-6)
    (slope,) = torch.autograd.grad(shared(heads).abs().sum(), heads)
    assert float(slope.abs().max()) > 1e-3


@st.composite
def cases(draw):
    """A memory, a query or two, and noise of every kind, with scores that vary up to a few units."""
    seed = draw(st.integers(0, 2**32 - 1))
    n, d, heads = draw(st.integers(1, 7)), draw(st.integers(1, 4)), draw(st.integers(1, 2))
    size = draw(st.sampled_from([1e-3, 0.1, 0.5]))
    rng = np.random.default_rng(seed)
    memory = qkv.Memory(rng.normal(size=(n, d)), rng.normal(size=(n, 2)))
    F = {i: math.sqrt(size) * rng.normal(size=(d, rng.integers(1, d + 1))) for i in range(0, n, 2)}
    noise = Gaussian(
        isotropic=size * rng.random() * draw(st.booleans()),
        along={0: size},
        full={i: f @ f.T for i, f in F.items()},
    )
    return memory, rng.normal(size=(heads, d)) * draw(st.sampled_from([0.3, 1.0, 2.0])), noise


@given(cases())
@settings(max_examples=settings.default.max_examples * 3 // 5, deadline=None, derandomize=True)
def test_exact_and_sampled_moments_agree_within_five_standard_errors(case):
    memory, q, noise = case
    draws = 20_000
    s, r = reading_moments(memory, q, noise, covariance=True), sample(memory, q, noise, n_draws=draws)
    rare = 25 / (3 * draws)  # Bernstein's term: what a weight's rare jumps may add to five standard errors
    off = (s.weights_mean - r.weights_mean).abs()
    assert bool((off <= 5 * (s.weights_var.clamp(min=0) / draws).sqrt() + rare * s.weights_var.sqrt() + 1e-9).all())
    assert bool(((s.weights_var - r.weights_var).abs() <= 5 * r.weights_var_se + rare + s.error_bound).all())
    spread_out = memory.values.norm(dim=1).max() ** 2
    assert bool(((s.output_cov - r.output_cov).abs() <= 5 * r.output_cov_se + rare * spread_out).all())


@given(cases())
@settings(max_examples=settings.default.max_examples * 3 // 5, deadline=None, derandomize=True)
def test_means_sum_to_one_and_covariances_are_positive_within_the_error(case):
    memory, q, noise = case
    s = reading_moments(memory, q, noise, covariance=True)
    assert abs(float(s.weights_mean.sum()) - 1) <= memory.n * s.error_bound
    assert float(torch.linalg.eigvalsh(s.weights_cov)[0]) >= -memory.n * s.error_bound
    assert float(torch.linalg.eigvalsh(s.output_cov)[0]) >= -memory.dv * s.output_error_bound
    assert float(s.weights_cov.sum(0).abs().max()) <= memory.n * s.error_bound
    again = memory.values.mT @ s.weights_cov @ memory.values
    most = float(memory.values.norm(dim=1).max())
    assert float((again - s.output_cov).abs().max()) <= s.output_error_bound + (memory.n * most) ** 2 * s.error_bound
    assert torch.allclose(s.weights_cov.diagonal(), s.weights_var, atol=s.error_bound)


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_without_noise_the_spread_is_the_plain_reading(seed, n):
    rng = np.random.default_rng(seed)
    memory = qkv.Memory(rng.normal(size=(n, 3)), rng.normal(size=(n, 2)))
    q = 5 * rng.normal(size=3)
    s, plain = reading_moments(memory, q, Gaussian()), memory.read(q)
    assert float((s.weights_mean - plain.weights).abs().max()) <= s.error_bound < 1e-13
    assert float((s.output_mean - plain.output).abs().max()) <= s.output_error_bound < 1e-12
    assert float(s.weights_var.abs().max()) <= s.error_bound
    assert float(s.output_cov.abs().max()) <= s.output_error_bound


def test_brute_force_over_whole_keys_gives_the_same_spread():
    """Keys are drawn in all their dimensions and read; only the covariances are the library's."""
    rng = np.random.default_rng(8)
    memory = qkv.Memory(rng.normal(size=(6, 5)), rng.normal(size=(6, 3)))
    noise = Gaussian(isotropic=0.02, along={1: 0.4}, diagonal={2: [0.5, 0, 0, 0.1, 0]})
    queries, mix, draws = rng.normal(size=(2, 5)), np.array([0.3, 0.7]), 200_000
    roots = [np.linalg.cholesky(noise.on(memory).covariance(j).numpy() + 1e-15 * np.eye(5)) for j in range(6)]
    keys = memory.keys.numpy() + np.stack([rng.normal(size=(draws, 5)) @ root.T for root in roots], axis=1)
    e = np.exp(np.einsum("xjd,hd->xhj", keys, queries))
    alpha = mix @ (e / e.sum(-1, keepdims=True))
    output = alpha @ memory.values.numpy()
    s = reading_moments(memory, queries, noise, mix)
    se = alpha.std(0) / math.sqrt(draws)
    assert np.all(np.abs(s.weights_mean.numpy() - alpha.mean(0)) < 5 * se)
    square = (alpha - alpha.mean(0)) ** 2
    assert np.all(np.abs(s.weights_var.numpy() - square.mean(0)) < 5 * square.std(0) / math.sqrt(draws))
    centred = output - output.mean(0)
    pairs = centred[:, :, None] * centred[:, None, :]
    assert np.all(np.abs(s.output_cov.numpy() - pairs.mean(0)) < 5 * pairs.std(0) / math.sqrt(draws))


def test_shifting_all_values_far_away_costs_the_covariance_no_digits():
    rng = np.random.default_rng(0)
    keys, values = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    noise, q = Gaussian(isotropic=0.3), rng.normal(size=3)
    near = reading_moments(qkv.Memory(keys, values), q, noise)
    far = reading_moments(qkv.Memory(keys, values + 1e6), q, noise)
    assert torch.allclose(near.output_cov, far.output_cov, atol=1e-9)
    assert torch.allclose(near.output_mean + 1e6, far.output_mean, rtol=1e-14)


def test_a_spread_shows_itself_and_becomes_json():
    memory = ring()
    s = reading_moments(memory, 5 * memory.keys[0], Gaussian(isotropic=0.01))
    assert s.card().rows[0][0] == "a"
    assert json.loads(json.dumps(s.to_json()))["weights_mean"][0] == float(s.weights_mean[0])


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda m: reading_moments(m, [1.0, 2.0], Gaussian()), "different spaces"),
        (lambda m: reading_moments(m, [math.nan] * 16, Gaussian()), "NaN"),
        (lambda m: reading_moments(m, np.zeros((2, 2, 16)), Gaussian()), "shape"),
        (lambda m: reading_moments(m, m.keys[0], np.eye(16)), "ndarray"),
        (lambda m: reading_moments(m, m.keys[:2], Gaussian(), mix=[1.0]), "mix"),
        (lambda m: reading_moments(m, 1e9 * m.keys[0], Gaussian(isotropic=1.0)), "standard deviation"),
        (lambda m: reading_moments(m, 1e200 * m.keys[0], Gaussian(isotropic=1.0)), "float64"),
        (
            lambda m: reading_moments(qkv.Memory(np.zeros((2001, 1))), [0.0], Gaussian(isotropic=1.0), covariance=True),
            "2001",
        ),
    ],
)
def test_what_cannot_be_spread_is_refused(ask, says):
    with pytest.raises(QkvError, match=says):
        ask(ring())


def test_moments_of_rounded_keys_say_that_they_are_an_approximation():
    memory = qkv.Memory([[0.3, 1.0], [-0.5, 0.2]], [[1.0], [0.0]])
    found = qkv.noise.reading_moments(memory, [4.0, -3.9], qkv.noise.Quantised(3))
    drawn = qkv.noise.sample(memory, [4.0, -3.9], qkv.noise.Quantised(3), n_draws=1000)
    assert float(drawn.weights_var[0]) < 1e-12 < float(found.weights_var[0])  # two keys always round together
    assert found.is_rounding and "does not cover that" in found.card().note
    assert not qkv.noise.reading_moments(memory, [4.0, -3.9], qkv.noise.Gaussian(isotropic=0.1)).is_rounding


# Parts by themselves


def moments(**changes):
    """Moments of a reading of three items by one head."""
    given = {
        "weights_mean": [0.5, 0.3, 0.2], "weights_var": [0.04, 0.01, 1e-12], "output_mean": [1.0, -2.0],
        "output_cov": [[2.0, 0.5], [0.5, 3.0]], "heads_mean": [[0.5, 0.3, 0.2]], "heads_output_cov": [[[[1.0]]]],
    }  # fmt: skip
    tensors = {name: torch.tensor(value, dtype=torch.float64) for name, value in {**given, **changes}.items()
               if isinstance(value, list)}  # fmt: skip
    rest = {"error_bound": 1e-9, "output_error_bound": 1e-8, "labels": ("a", "b", "c")}
    return mixture.ReadingMoments(**tensors, **(rest | {k: v for k, v in changes.items() if not isinstance(v, list)}))


def test_the_squared_error_is_the_variance_and_the_square_of_the_bias():
    found = moments()
    assert float(found.total_variance) == 5.0
    assert float(found.squared_error(torch.tensor([4.0, -3.0], dtype=torch.float64))) == 5.0 + 9.0 + 1.0


def test_a_card_shows_the_largest_weights_first_and_what_is_known_of_each():
    card = moments(weights_mean=[0.2, 0.5, 0.3]).card()
    assert card.title == "Moments of a reading of 3 items" and [row[0] for row in card.rows] == ["b", "c", "a"]
    assert card.rows[2][2] == "0.2" and card.rows[1][2].startswith("≤ ") and card.note == ""
    assert moments(heads_mean=[[0.5, 0.3, 0.2]] * 2).card().title.endswith("items by 2 heads")
    one = moments(weights_mean=[1.0], weights_var=[0.0], heads_mean=[[1.0]], labels=("a",))
    assert one.card().title == "Moments of a reading of 1 item"
    assert moments(is_rounding=True).card().note == mixture.ROUNDING_NOTE and not moments().is_rounding
    shown = mixture.MAX_ROWS_SHOWN
    for n, note in ((shown, ""), (shown + 1, "… 1 more"), (shown + 3, "… 3 more")):
        many = moments(weights_mean=[1 / n] * n, weights_var=[0.0] * n, labels=tuple(range(n)))
        assert many.card().note == note and len(many.card().rows) == shown
    text = repr(moments())
    assert "heads_mean" not in text and "heads_output_cov" not in text and "weights_cov" not in text


def test_a_deviation_below_its_error_is_only_bounded():
    assert mixture._deviation(0.04, 1e-3) == "0.2" and mixture._deviation(0.0, 0.0) == "0"
    assert mixture._deviation(1e-3, 1e-3) == f"≤ {upper_bound(math.sqrt(2e-3), 2)}"
    assert mixture._deviation(0.0, 0.04) == "≤ 0.2"


@pytest.mark.parametrize(("factor", "refused"), [(1.0, False), (1 + 1e-9, True)])
def test_scores_that_vary_too_widely_are_refused_just_above_the_limit(factor, refused):
    """Forty deviations in steps of a quarter are 2^21 nodes at most."""
    widest = 2.0**21 * 0.25 / 40 * factor
    C = torch.zeros(2, 2, 2, dtype=torch.float64)
    C[1, 0, 0] = widest**2
    C[0, 0, 1] = 1e30
    if refused:
        with pytest.raises(QkvError, match="millions of nodes"):
            mixture._check_score_deviations(C)
    else:
        mixture._check_score_deviations(C * (1 - 1e-12))


def test_errors_are_those_of_the_moments_times_three_times_the_square_of_the_mix():
    memory = qkv.Memory(np.eye(3), np.diag([1.0, 2.0, 4.0]))
    queries, noise = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), Gaussian(isotropic=0.2)
    plain = reading_moments(memory, queries, noise, mix=[0.5, 0.5])
    heads = [reading_moments(memory, q, noise) for q in queries]
    assert torch.allclose(plain.weights_mean, (heads[0].weights_mean + heads[1].weights_mean) / 2, atol=1e-12)
    worst = max(h.error_bound for h in heads)
    assert plain.error_bound == pytest.approx(worst, rel=1e-9, abs=0) and worst < 1e-11
    double = reading_moments(memory, queries, noise, mix=[2.0, -1.0])
    assert double.error_bound == pytest.approx(9 * plain.error_bound, rel=1e-9, abs=0)
    expected = 2 * heads[0].output_mean - heads[1].output_mean
    assert torch.allclose(double.output_mean, expected, atol=1e-12)
    variance = 4 * heads[0].weights_var + heads[1].weights_var
    assert torch.allclose(double.weights_var, variance, atol=1e-11)
    nothing = reading_moments(memory, queries, noise, mix=[1.0, -1.0])
    assert torch.allclose(nothing.output_mean, heads[0].output_mean - heads[1].output_mean, atol=1e-12)
    full = reading_moments(memory, queries, noise, mix=[0.5, 0.5], covariance=True)
    assert full.weights_cov.shape == (3, 3) and plain.weights_cov is None
    assert torch.allclose(full.weights_cov.diagonal(), plain.weights_var, atol=1e-12)


def test_heads_and_pairs_are_counted_as_they_finish():
    memory, seen = qkv.Memory(np.eye(3), np.eye(3)), []
    reading_moments(memory, np.eye(3), Gaussian(isotropic=0.1), callback=lambda *a: seen.append(a))
    assert seen == [(i, 6) for i in range(7)]


def test_the_covariance_of_all_weights_is_given_for_so_many_items(monkeypatch):
    assert mixture.MAX_COVARIANCE_ITEMS == 2000 and mixture.SCORE_DEVIATIONS == 40
    memory = qkv.Memory(np.eye(3), np.eye(3))
    monkeypatch.setattr(mixture, "MAX_COVARIANCE_ITEMS", 3)
    assert reading_moments(memory, np.eye(3)[0], Gaussian(isotropic=0.1), covariance=True).weights_cov.shape == (3, 3)
    monkeypatch.setattr(mixture, "MAX_COVARIANCE_ITEMS", 2)
    with pytest.raises(QkvError, match="the covariance of 3 weights was asked for"):
        reading_moments(memory, np.eye(3)[0], Gaussian(isotropic=0.1), covariance=True)


@pytest.mark.parametrize("size", [0.1, 4.0])
def test_the_errors_of_one_head_are_three_times_those_of_its_moments(size):
    """Outputs are centred at the noise-free one, and off by up to the longest value left, or its square."""
    values = size * np.diag([1.0, 2.0, 4.0])
    found = reading_moments(qkv.Memory(np.eye(3), values), [1.0, 0.0, 0.0], Gaussian(isotropic=0.2))
    m = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    centre = torch.softmax(m, 0) @ torch.from_numpy(values)
    left = torch.from_numpy(values) - centre
    head = head_moments(m, torch.full((3,), 0.2, dtype=torch.float64), left)
    assert found.error_bound == pytest.approx(3 * head.error, rel=1e-9, abs=0)
    reach = float(left.norm(dim=1).max())
    expected = 3 * head.total_error * max(reach, reach**2) + 1e-15 * float(centre.abs().max())
    assert found.output_error_bound == pytest.approx(expected, rel=1e-9, abs=0)
    assert torch.allclose(found.output_mean, centre + left.mT @ head.mean, atol=1e-12)
    spread = head.output_square - head.output[:, None] * head.output
    assert torch.allclose(found.output_cov, spread, atol=1e-12)
    assert torch.allclose(found.weights_var, head.square - head.mean**2, atol=1e-13)
