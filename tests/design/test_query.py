"""copy and blend: closed forms, the convex program, ratios, scales, and what cannot be done."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import spread
from scipy.special import logsumexp, softmax

import qkv
from qkv.design.solvers import conic


def total_variation(keys, query, wanted):
    weights = softmax(np.asarray(keys) @ np.asarray(query))
    target = np.zeros(len(keys))
    target[list(wanted)] = list(wanted.values())
    return 0.5 * np.abs(weights - target).sum()


@pytest.mark.parametrize("n", [2, 3, 10, 40])
@pytest.mark.parametrize("tol", [0.1, 1e-3, 1e-9])
def test_copying_from_orthonormal_keys_takes_the_scale_of_the_closed_form(n, tol):
    memory = qkv.Memory.orthonormal(n=n, d=40, seed=1)
    d = qkv.design.copy(memory, item=1, tol=tol)
    assert d.status == "exact"
    assert d.scale == pytest.approx(math.log((n - 1) * (1 - tol) / tol), rel=1e-9)
    assert total_variation(memory.keys, d.query, {1: 1.0}) == pytest.approx(tol, rel=1e-6)


@pytest.mark.parametrize("n", [3, 10, 16])
def test_the_textbook_blend_of_two_is_t_times_the_sum_of_their_keys_with_the_smallest_t(n):
    memory, tol = qkv.Memory.orthonormal(n=n, d=16, seed=2), 1e-3
    d = qkv.design.blend(memory, {0: 0.5, 1: 0.5}, tol=tol, form="textbook")
    t = math.log((n - 2) * (1 - tol) / (2 * tol))
    assert d.scale == pytest.approx(t, rel=1e-9)
    assert torch.allclose(d.query, t * (memory.keys[0] + memory.keys[1]), rtol=1e-9)
    assert total_variation(memory.keys, 0.9999 * d.query.numpy(), {0: 0.5, 1: 0.5}) > tol


@pytest.mark.parametrize("n", [3, 10, 16])
def test_the_smallest_blend_of_two_pushes_the_other_keys_away(n):
    memory, tol = qkv.Memory.orthonormal(n=n, d=16, seed=3), 1e-3
    d = qkv.design.blend(memory, {0: 0.5, 1: 0.5}, tol=tol)
    t = math.log((n - 2) * (1 - tol) / (2 * tol))
    expected = t * ((n - 2) / n * (memory.keys[0] + memory.keys[1]) - 2 / n * memory.keys[2:].sum(dim=0))
    assert torch.allclose(d.query, expected, atol=1e-9)
    book = qkv.design.blend(memory, {0: 0.5, 1: 0.5}, tol=tol, form="textbook")
    assert d.query.norm() < book.query.norm()


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(4, 30))
def test_what_a_design_says_about_its_reading_is_true_and_its_norm_is_certified_smallest(seed, m, n):
    random = np.random.default_rng(seed)
    memory = qkv.Memory(random.standard_normal((n, 32)), random.standard_normal((n, 3)))
    chosen = random.choice(n, m, replace=False)
    parts = random.dirichlet(np.ones(m) * 2) * 0.9 + 0.1 / m
    wanted = {int(i): float(w) for i, w in zip(chosen, parts / parts.sum(), strict=True)}
    d = qkv.design.blend(memory, wanted, tol=1e-2)
    reading = memory.read(d.query)
    ideal = sum(w * memory.values[i] for i, w in wanted.items())
    assert d.status == "exact"
    # The bound is so tight that this float64 evaluation needs room for its own rounding.
    assert total_variation(memory.keys, d.query, wanted) <= d.distance * (1 + 1e-9) + 1e-14 and d.distance <= 1e-2
    assert float((reading.output - ideal).norm()) <= d.output_distance * (1 + 1e-9) + 1e-14
    for i in wanted:
        assert float(reading.weights[i] / reading.weights[next(iter(wanted))]) == pytest.approx(
            wanted[i] / next(iter(wanted.values())), rel=1e-6
        )
    assert (d.least_norm or 0.0) == pytest.approx(float(d.query.norm()), rel=1e-5, abs=1e-9)
    assert d.certificate.verify()


def test_the_certified_bound_is_tight_on_orthonormal_designs():
    for n, tol in [(3, 0.2), (10, 1e-3), (16, 1e-6)]:
        memory = qkv.Memory.orthonormal(n=n, d=16, seed=n)
        for wanted in ({0: 1.0}, {0: 0.5, 1: 0.5}, {0: 0.3, 2: 0.7}):
            d = qkv.design.blend(memory, wanted, tol=tol)
            assert d.distance <= 1.01 * total_variation(memory.keys, d.query, wanted)
            ideal = sum(w * memory.values[i] for i, w in wanted.items())
            true = float((memory.read(d.query).output - ideal).norm())
            assert d.output_distance <= 1.01 * true


def test_a_key_inside_the_hull_is_refused_with_an_exact_proof_and_the_nearest_blend():
    keys = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [1.0, 1.5]])
    d = qkv.design.copy(qkv.Memory(keys), item=3)
    assert not d.possible and d.status == "out of reach"
    assert d.obstacle is not None and d.obstacle.kind == "inside"
    assert d.obstacle.claims["exact"] == 0
    assert all(c.verify() for c in d.certificates)
    # Nearest in Kullback-Leibler divergence means that the mean key is matched.
    mean = softmax(keys @ d.query.numpy()) @ keys
    assert np.allclose(mean, keys[3], atol=1e-6)


def test_equal_keys_cannot_be_read_in_unequal_parts_and_no_query_at_all_could():
    keys = np.array([[1.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    d = qkv.design.blend(qkv.Memory(keys), {0: 0.3, 1: 0.7}, tol=0.01)
    assert d.status in ("out of reach", "best found")
    assert d.distance == pytest.approx(0.2, abs=0.01)
    assert math.isinf(float(d.obstacle.claims["norm_at_least"]))
    assert d.obstacle.verify()


def test_dependent_keys_whose_nearest_blend_is_good_enough_are_reported_as_within():
    keys = np.array([[1.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    d = qkv.design.blend(qkv.Memory(keys), {0: 0.49, 1: 0.51}, tol=0.05)
    assert d.status == "within" and d.possible
    assert d.distance <= 0.05


def test_noise_along_a_key_turns_the_query_away_from_it():
    memory = qkv.Memory.orthonormal(n=10, d=16, seed=0)
    mu = memory.keys[0]
    noise = 1e-6 * torch.eye(16, dtype=torch.float64).repeat(10, 1, 1)
    noise[0] += 0.5 * torch.outer(mu, mu)
    plain = qkv.design.blend(memory, {0: 0.5, 1: 0.5}, tol=1e-2)
    robust = qkv.design.blend(memory, {0: 0.5, 1: 0.5}, tol=1e-2, noise=noise)
    assert robust.status == "exact" and robust.distance <= 1e-2
    assert abs(float(mu @ robust.query)) < 1e-2 * abs(float(mu @ plain.query))


def test_items_are_found_by_label_and_results_are_tensors_that_numpy_reads():
    memory = qkv.Memory(np.eye(3).tolist(), labels=["red", "green", "blue"])
    d = qkv.design.blend(memory, {"red": 0.25, "blue": 0.75})
    assert isinstance(d.query, torch.Tensor) and np.asarray(d.query).dtype == np.float64
    reading = memory.read(d.query)
    assert float(reading.weights[2]) == pytest.approx(0.75, abs=1e-3)


def test_scores_of_every_other_key_count_in_a_large_memory():
    """More rivals than the conic program holds: Newton's method has to find the rest."""
    random = np.random.default_rng(0)
    keys = random.standard_normal((conic.CONIC_LIMIT + 2000, 12))
    keys[0] *= 3
    d = qkv.design.copy(qkv.Memory(keys), item=0, tol=1e-2)
    scores = keys @ d.query.numpy()
    leak = math.exp(logsumexp(scores[1:]) - logsumexp(scores))
    assert d.status == "exact" and leak == pytest.approx(1e-2, rel=1e-5)
    assert float(d.certificate.claims["norm_at_least"]) == pytest.approx(float(d.query.norm()), rel=1e-5)


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_scaled_and_shifted_keys_have_the_scaled_query(size, shift):
    random = np.random.default_rng(7)
    keys = random.standard_normal((30, 16))
    plain = qkv.design.blend(qkv.Memory(keys), {0: 0.6, 1: 0.4}, tol=0.1)
    moved = qkv.design.blend(qkv.Memory(size * (keys + shift)), {0: 0.6, 1: 0.4}, tol=0.1)
    assert (plain.status, moved.status) == ("exact", "exact")
    assert np.allclose(moved.query * size, plain.query, rtol=1e-5, atol=1e-6)
    assert moved.certificate.verify()


def test_one_far_key_makes_nothing_impossible():
    keys = np.vstack([np.eye(3), -1e6 * np.ones((1, 3))])
    d = qkv.design.blend(keys, {0: 0.5, 1: 0.5})
    assert d.status == "exact" and float(d.query.norm()) == pytest.approx(5.0734, abs=1e-3)
    random = np.random.default_rng(0)
    crowd = np.vstack([random.standard_normal((50, 16)), 1e6 * np.ones((1, 16))])
    for wanted in ({0: 1.0}, {0: 0.5, 1: 0.5}, {50: 1.0}):
        d = qkv.design.blend(crowd, wanted)
        assert d.status == "exact" and d.obstacle is None
        assert d.least_norm == pytest.approx(float(d.query.norm()), rel=1e-5)


@pytest.mark.parametrize("gap", [1e-4, 1e-6, 1e-8, 1e-10])
def test_a_key_that_stands_out_by_little_is_copied_with_a_long_query(gap):
    keys = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, gap]])
    d = qkv.design.copy(keys, 2)
    assert d.status == "exact" and d.obstacle is None
    assert total_variation(keys, d.query, {2: 1.0}) <= 1e-3
    assert bool(qkv.design.copyable(keys)[2].possible)


def test_a_tolerance_beyond_float64_keeps_the_best_query_there_is():
    d = qkv.design.blend(np.eye(4), {0: 0.3, 1: 0.7}, tol=1e-15)
    assert d.status in ("exact", "best found") and d.distance < 1e-14


def test_where_the_ratios_alone_decide_the_norm_their_bound_is_certified():
    keys = [[-1, 0, 0], [1, 0, 0], [0, 0.01, 0], [0, -1, 1], [0, -1, -1]]
    d = qkv.design.blend(keys, {0: 0.25, 1: 0.25, 2: 0.5})
    assert d.status == "exact"
    assert d.least_norm == pytest.approx(float(d.query.norm()), rel=1e-6)
    assert d.ratio_bound is not None and len(d.certificates) == 3 and all(c.verify() for c in d.certificates)


@pytest.mark.parametrize(("n", "d"), spread([(300, 3), (5000, 3)], 2))
def test_what_cannot_be_blended_comes_with_a_proof(n, d):
    keys = np.random.default_rng(1).standard_normal((n, d))
    for i in range(4):
        found = qkv.design.blend(keys, {i: 0.5, i + 10: 0.5})
        assert not found.possible
        assert found.obstacle is not None and found.obstacle.verify()


def test_a_changed_query_or_memory_changes_no_certificate():
    memory = qkv.Memory(np.eye(4))
    d = qkv.design.copy(memory, 1)
    d.query.mul_(0)
    memory.keys.zero_()
    assert d.certificate.verify()


@pytest.mark.parametrize("form", ["smallest", "textbook"])
def test_a_loose_tolerance_is_met_by_the_ratios_alone(form):
    memory = qkv.Memory.orthonormal(4, 6)
    d = qkv.design.copy(memory, 0, tol=0.8, form=form)
    assert float(d.query.norm()) == 0 and d.distance == pytest.approx(0.75)
    d = qkv.design.blend(memory, {0: 0.2, 1: 0.8}, tol=0.9, form=form)
    assert d.distance <= 0.9 and d.certificate.verify()
    found = conic.smallest_query(memory.keys.numpy(), [0, 1], np.array([0.2, 0.8]), 0.9)
    assert np.allclose(found.x, d.query, atol=1e-9)


REFUSALS = [
    (lambda m: qkv.design.blend(m, {0: 0.5, 1: 0.6}), "sum to 1.1"),
    (lambda m: qkv.design.blend(m, {0: 1.5, 1: -0.5}), "-0.5"),
    (lambda m: qkv.design.blend(m, {}), "no weights"),
    (lambda m: qkv.design.blend(m, {0: float("nan"), 1: 1.0}), "nan"),
    (lambda m: qkv.design.blend(m, {0: "half", 1: 0.5}), "half"),
    (lambda m: qkv.design.copy(m, item=99), "99"),
    (lambda m: qkv.design.copy(m, item="nobody"), "nobody"),
    (lambda m: qkv.design.copy(m, item=0, tol=0), "tol is 0"),
    (lambda m: qkv.design.copy(m, item=0, tol=-1e-3), "tol is -0.001"),
    (lambda m: qkv.design.copy(m, item=0, tol=float("nan")), "tol is nan"),
    (lambda m: qkv.design.copy(m, item=0, tol=1.0), "tol is 1.0"),
    (lambda m: qkv.design.copy(m, item=[1]), "list"),
    (lambda m: qkv.design.copy(1e-150 * np.eye(3), item=0), "Scale the keys"),
    (lambda m: qkv.design.blend(m, [0.5, 0.5]), "list"),
    (lambda m: qkv.design.blend(m, {0: 10**400}), "weight of 0"),
    (lambda m: qkv.design.blend(m, {0: 1e-300, 1: 1 - 1e-300}), "1e-300"),
    (lambda m: qkv.design.copy(m, item=0, tol=5e-324), "5e-324"),
    (lambda m: qkv.design.copy(m, item=0, form="best"), "best"),
    (lambda m: qkv.design.copy(qkv.Memory(np.ones((3, 2))), item=0, form="textbook"), "not orthogonal"),
    (lambda m: qkv.design.copy(m, item=0, noise=np.ones((3, 3))), "(3, 3)"),
    (lambda m: qkv.design.copy(m, item=0, noise=-np.ones(4)), "eigenvalue -1"),
]


@pytest.mark.parametrize(("call", "mentions"), REFUSALS)
def test_a_refused_design_says_what_came_in_and_what_to_try(call, mentions):
    with pytest.raises(qkv.QkvError) as refusal:
        call(qkv.Memory.orthonormal(n=4, d=6))
    assert mentions in str(refusal.value)
    assert refusal.value.request and refusal.value.hint


@pytest.mark.parametrize("form", [np.array(["smallest", "textbook"]), ["smallest"], None, 3])
def test_a_form_that_is_no_word_is_refused(form):
    with pytest.raises(qkv.QkvError, match="there is no such form"):
        qkv.design.blend(np.eye(2), {0: 1.0}, form=form)
