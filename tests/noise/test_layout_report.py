"""steady, at_scale and arms: as good as harden at the same scale, and as right as drawing."""

import math

import pytest
import torch

from qkv import Memory, QkvError
from qkv.noise import (
    Gaussian,
    Quantised,
    harden,
    layout_reports,
    min_variance_query,
    reading_moments,
    reference_layouts,
    sample,
    success_probability,
)
from qkv.noise.probability.conditional_mc import led
from qkv.noise.robust.min_variance import total_variances

WANTED = {"a": 0.5, "b": 0.5}


def memory_of(n):
    return Memory(torch.eye(n, dtype=torch.float64), labels=["a", "b", *range(3, n + 1)])


@pytest.mark.parametrize(("isotropic", "along"), [(1e-3, 0.3), (1e-2, 0.5), (0.1, 1.0)])
def test_steady_is_as_good_as_the_search_over_all_queries(isotropic, along):
    memory, noise = memory_of(10), Gaussian(isotropic=isotropic, along={"a": along})
    hard = harden(memory, WANTED, noise, tol=1e-2)
    found = min_variance_query(memory, WANTED, noise, math.log(8 * 0.99 / (2 * 0.01)))
    target = torch.tensor([0.5, 0.5, *[0.0] * 8], dtype=torch.float64)
    assert float(reading_moments(memory, found.query, noise).squared_error(target)) <= 1.02 * hard.squared_error


def test_all_queries_of_the_line_read_the_same_and_steady_varies_least():
    memory, noise = memory_of(6), Gaussian(isotropic=1e-2, along={"a": 0.5})
    found = min_variance_query(memory, WANTED, noise, 4.0)
    tried = [found.query + c for c in (-2.0, -0.5, 0.0, 0.5, 2.0)]
    readings = torch.stack([memory.read(q).weights for q in tried])
    assert torch.allclose(readings, readings[:1].expand_as(readings))
    variances = [float(reading_moments(memory, q, noise).weights_var.sum()) for q in tried]
    assert min(variances) == variances[2] == pytest.approx(found.variance, rel=1e-4)
    assert torch.allclose(
        total_variances(noise.on(memory), torch.stack(tried)), torch.tensor(variances).double(), atol=1e-5
    )


def test_unequal_blends_and_longer_keys_keep_their_ratio():
    memory = Memory(3 * torch.eye(5, dtype=torch.float64), labels=["a", "b", *"cde"])
    found = min_variance_query(memory, {"a": 0.75, "b": 0.25}, Gaussian(isotropic=1e-4, along={"a": 0.2}), 6.0)
    alpha = memory.read(found.query).weights
    assert float(alpha[0] / alpha[1]) == pytest.approx(3) and float(alpha[2:].sum()) < 0.01


@pytest.mark.parametrize(
    "case", [(6, 1e-2, 0.5, 5.0, 0.3), (10, 0.0, 0.5, 6.0, 0.1), (20, 1e-6, 2.0, 12.0, 0.2), (4, 0.05, 0.0, 4.0, 0.5)]
)
def test_chance_and_law_of_each_arm_are_those_of_many_draws(case):
    n, isotropic, along, scale, tol = case
    memory, noise = memory_of(n), Gaussian(isotropic=isotropic, along={"a": along})
    layouts = reference_layouts(memory, WANTED, noise, scale)
    for arm in layout_reports(memory, layouts, noise, WANTED, tol):
        queries, mix = layouts[arm.name]
        truth = success_probability(memory, queries, noise, WANTED, tol, mix=mix, n_draws=100_000, seed=9)
        assert arm.low - 0.006 <= truth.probability <= arm.high + 0.006
        exact = reading_moments(memory, queries, noise, mix)
        assert arm.mean == pytest.approx(float(exact.weights_mean[0]), abs=1e-13)
        assert arm.variance == pytest.approx(float(exact.weights_var[0]), rel=1e-9, abs=1e-13)
        seen = sample(memory, queries, noise, n_draws=100_000, seed=9, mix=mix, keep_items=["a"]).watched["a"]
        assert_shares(arm, seen)


def assert_shares(arm, seen):
    """The law is exact, and no bar holds more or less of the draws than chance allows."""
    assert arm.law == "quadrature" and float(arm.share.sum()) == pytest.approx(1)
    held = ((seen[:, None] > arm.edges[:-1]) & (seen[:, None] <= arm.edges[1:])).double().mean(0)
    allowed = 5 * (arm.share * (1 - arm.share) / len(seen)).clamp(min=0).sqrt() + 1e-4
    assert bool(((held - arm.share).abs() <= allowed).all())


@pytest.mark.parametrize("heads", [3, 5, 8])
def test_more_items_have_a_head_each(heads):
    memory = Memory(torch.eye(10, dtype=torch.float64), labels=list("abcdefghij"))
    wanted, noise = dict.fromkeys("abcdefgh"[:heads], 1 / heads), Gaussian(isotropic=0.01, along={"a": 0.5})
    layouts = reference_layouts(memory, wanted, noise, 4.0)
    words = {3: "three heads", 5: "five heads", 8: "eight heads"}
    assert list(layouts) == ["one head", words[heads], "hardened"]
    for arm in layout_reports(memory, layouts, noise, wanted, 0.2):
        assert arm.heads == len(layouts[arm.name][1])
        queries, mix = layouts[arm.name]
        assert_shares(arm, sample(memory, queries, noise, n_draws=100_000, mix=mix, keep_items=["a"]).watched["a"])
        around = ((arm.edges[1:] + arm.edges[:-1]) / 2 - 1 / heads).abs().min()
        assert float(around) < 1e-12  # a bar stands around what is wanted


def test_any_item_can_be_watched():
    memory, noise = memory_of(5), Gaussian(isotropic=1e-4, along={"a": 0.5})
    layouts = reference_layouts(memory, WANTED, noise, 5.0)
    for arm in layout_reports(memory, layouts, noise, WANTED, 0.2, item="b"):
        queries, mix = layouts[arm.name]
        seen = sample(memory, queries, noise, n_draws=100_000, mix=mix, keep_items=["b"]).watched["b"]
        if arm.name == "hardened":
            assert_shares(arm, seen)
            continue
        # b itself hardly varies, but what it is weighed against does: that law is integrated over draws of the rest.
        assert arm.law == "sampling"
        below = (seen[:, None] <= arm.edges[1:]).double().mean(0)
        assert float((below - arm.share.cumsum(0)).abs().max()) < 0.01


def test_heads_that_hang_together_have_their_law_from_draws():
    memory, noise = memory_of(4), Gaussian(isotropic=0.1)
    both = torch.stack([3 * memory.keys[0], 3 * memory.keys[0] + memory.keys[1]])
    (arm,) = layout_reports(memory, {"two": both}, noise, WANTED, 0.2)
    exact = reading_moments(memory, both, noise)
    assert arm.law == "sampling" and arm.variance == pytest.approx(float(exact.weights_var[0]))
    assert float(arm.share.sum()) == pytest.approx(1)


def test_without_other_noise_nothing_is_left_to_chance():
    memory, noise = memory_of(7), Gaussian(along={"a": 0.5})
    for queries, mix in list(reference_layouts(memory, WANTED, noise, 5.0).values())[:2]:
        found = led(noise.on(memory), queries, mix, 500, 0)
        goal = torch.tensor([0.5, 0.5, *[0.0] * 5], dtype=torch.float64)
        p, error = found.chance(memory.values, goal, 0.2)
        exact = success_probability(memory, queries, noise, WANTED, 0.2, mix=mix)
        assert error == 0 and exact.method == "quadrature" and p == pytest.approx(exact.probability, abs=1e-9)


def test_where_no_noise_leads_plain_draws_are_taken():
    memory = memory_of(5)
    q = 3 * (memory.keys[0] + memory.keys[1])[None]
    one = torch.ones(1, dtype=torch.float64)
    assert led(Gaussian(isotropic=0.1).on(memory), q, one, 10, 0) is None
    assert led(Quantised(3).on(memory), q, one, 10, 0) is None
    both = torch.stack([3 * memory.keys[0], 3 * memory.keys[0] + memory.keys[1]])
    assert led(Gaussian(along={"a": 1.0}).on(memory), both, torch.tensor([0.5, 0.5]).double(), 10, 0) is None


def test_bad_input_is_refused():
    memory, noise = memory_of(4), Gaussian(isotropic=0.1)
    with pytest.raises(QkvError, match="harden"):
        min_variance_query(Memory([[1, 0], [1, 1]], labels=["a", "b"]), WANTED, noise, 1.0)
    with pytest.raises(QkvError):
        min_variance_query(memory, WANTED, noise, -1.0)
    with pytest.raises(QkvError, match="two items"):
        reference_layouts(memory, {"a": 1.0}, noise, 1.0)
