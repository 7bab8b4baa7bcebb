"""Layout reports: moments, laws and probabilities in agreement with many draws."""

from __future__ import annotations

import pytest
import torch

import qkv
from qkv import Memory, QkvError
from qkv.noise import Gaussian, layout_reports, reading_moments, reference_layouts, sample, success_probability
from qkv.noise.method import METHODS

WANTED = {"a": 0.5, "b": 0.5}


def memory_of(n):
    return Memory(torch.eye(n, dtype=torch.float64), labels=["a", "b", *range(3, n + 1)])


@pytest.mark.parametrize(
    "case", [(6, 1e-2, 0.5, 5.0, 0.3), (10, 0.0, 0.5, 6.0, 0.1), (20, 1e-6, 2.0, 12.0, 0.2), (4, 0.05, 0.0, 4.0, 0.5)]
)
def test_chance_and_law_of_each_arm_are_those_of_many_draws(case):
    n, isotropic, along, scale, tol = case
    memory, noise = memory_of(n), Gaussian(isotropic=isotropic, along={"a": along})
    layouts = reference_layouts(memory, WANTED, noise, scale)
    for arm in layout_reports(memory, layouts, noise, WANTED, tol):
        heads = layouts[arm.name]
        truth = success_probability(memory, heads, noise, WANTED, tol, n_draws=100_000, seed=9)
        assert arm.low - 0.006 <= truth.probability <= arm.high + 0.006
        exact = reading_moments(memory, heads, noise)
        assert arm.mean == pytest.approx(float(exact.weights_mean[0]), abs=1e-13)
        assert arm.variance == pytest.approx(float(exact.weights_var[0]), rel=1e-9, abs=1e-13)
        seen = sample(memory, heads, noise, n_draws=100_000, seed=9, keep_items=["a"]).kept_weights["a"]
        assert_shares(arm, seen)


def assert_shares(arm, seen):
    """The law is exact, and no bar holds more or less of the draws than chance allows."""
    assert arm.law_method in ("exact", "quadrature") and float(arm.share.sum()) == pytest.approx(1)
    held = ((seen[:, None] > arm.edges[:-1]) & (seen[:, None] <= arm.edges[1:])).double().mean(0)
    allowed = 5 * (arm.share * (1 - arm.share) / len(seen)).clamp(min=0).sqrt() + 1e-4
    assert bool(((held - arm.share).abs() <= allowed).all())


@pytest.mark.parametrize("heads", [3, 5, 8])
def test_more_items_have_a_head_each(heads):
    memory = Memory(torch.eye(10, dtype=torch.float64), labels=list("abcdefghij"))
    wanted, noise = dict.fromkeys("abcdefgh"[:heads], 1 / heads), Gaussian(isotropic=0.01, along={"a": 0.5})
    layouts = reference_layouts(memory, wanted, noise, 4.0)
    words = {3: "three heads", 5: "five heads", 8: "eight heads"}
    assert list(layouts) == ["one head", words[heads], "min variance"]
    for arm in layout_reports(memory, layouts, noise, wanted, 0.2):
        assert arm.heads == len(layouts[arm.name])
        assert_shares(
            arm, sample(memory, layouts[arm.name], noise, n_draws=100_000, keep_items=["a"]).kept_weights["a"]
        )
        around = ((arm.edges[1:] + arm.edges[:-1]) / 2 - 1 / heads).abs().min()
        assert float(around) < 1e-12  # a bar stands around what is wanted


def test_any_item_can_be_watched():
    memory, noise = memory_of(5), Gaussian(isotropic=1e-4, along={"a": 0.5})
    layouts = reference_layouts(memory, WANTED, noise, 5.0)
    for arm in layout_reports(memory, layouts, noise, WANTED, 0.2, item="b"):
        seen = sample(memory, layouts[arm.name], noise, n_draws=100_000, keep_items=["b"]).kept_weights["b"]
        if arm.name == "min variance":
            assert_shares(arm, seen)
            continue
        # b itself hardly varies, but its competitor does: that law is integrated over draws of the rest.
        assert arm.law_method == "conditional_mc"
        below = (seen[:, None] <= arm.edges[1:]).double().mean(0)
        assert float((below - arm.share.cumsum(0)).abs().max()) < 0.01


def test_heads_with_correlated_scores_have_their_law_from_draws():
    memory, noise = memory_of(4), Gaussian(isotropic=0.1)
    both = torch.stack([3 * memory.keys[0], 3 * memory.keys[0] + memory.keys[1]])
    (arm,) = layout_reports(memory, {"two": both}, noise, WANTED, 0.2)
    exact = reading_moments(memory, both, noise)
    assert arm.law_method == arm.method == "monte_carlo" and arm.variance == pytest.approx(float(exact.weights_var[0]))
    assert float(arm.share.sum()) == pytest.approx(1)


def test_a_law_that_was_integrated_is_not_labelled_as_drawn():
    """Correlated heads have no convolved law; with one dominating variable theirs is integrated over draws."""
    memory, noise = memory_of(4), Gaussian(along={"a": 1.0, "b": 0.01})
    heads = (torch.stack([4 * memory.keys[0], memory.keys[1], memory.keys[1]]), [0.5, 0.25, 0.25])
    (report,) = layout_reports(memory, {"three heads": heads}, noise, WANTED, 0.5)
    assert (report.method, report.law_method) == ("conditional_mc", "conditional_mc")
    drawn = sample(memory, heads, noise, n_draws=100_000, seed=3, keep_items=["a"]).kept_weights["a"]
    counts = (drawn[:, None] <= report.edges[1:]).double().mean(0)
    assert float((counts - report.share.cumsum(0)).abs().max()) < 0.01
    assert "by conditional Monte Carlo" in report.card().facts[2][1]


def test_every_method_that_is_reported_is_one_of_the_four():
    memory, noise = memory_of(5), Gaussian(isotropic=1e-4, along={"a": 0.5})
    layouts = reference_layouts(memory, WANTED, noise, 5.0)
    for report in layout_reports(memory, layouts, noise, WANTED, 0.2, item="b"):
        assert report.method in METHODS and report.law_method in METHODS


def test_fewer_than_two_wanted_items_are_refused():
    with pytest.raises(QkvError, match="two items"):
        reference_layouts(memory_of(4), {"a": 1.0}, Gaussian(isotropic=0.1), 1.0)


def test_a_law_and_a_probability_have_the_label_of_their_own_method():
    """One head with three noisy scores: the law is integrated, the probability drawn; without other noise both are
    closed forms, also under two heads of which rounding alone moves one."""
    memory = Memory.orthonormal(6, 8, labels=list("abcdef"))
    many = Gaussian(isotropic=0.1)
    (report,) = layout_reports(memory, {"one head": 3 * (memory.keys[0] + memory.keys[1])}, many, WANTED, 0.3)
    assert (report.method, report.law_method) == ("monte_carlo", "quadrature")
    single = Gaussian(along={"a": 0.5})
    layouts = dict(list(reference_layouts(memory, WANTED, single, 5.0).items())[:2])
    for report in layout_reports(memory, layouts, single, WANTED, 0.3):
        assert report.method == "exact" and report.law_method in ("exact", "quadrature")
        assert report.high - report.low < 1e-9


def test_the_query_of_least_variance_is_not_called_hardened():
    memory, noise = memory_of(4), Gaussian(isotropic=0.01, along={"a": 0.5})
    layouts = reference_layouts(memory, WANTED, noise, 5.0)
    texts = [*layouts, *(str(r) for r in layout_reports(memory, layouts, noise, WANTED, 0.2))]
    assert "min variance" in layouts and not [text for text in texts if "harden" in text.lower()]


@pytest.mark.parametrize(
    "options",
    [
        {"radius": -1.0},
        {"radius": float("nan")},
        {"radius": "x"},
        {"n_draws": 0},
        {"seed": -1},
        {"n_samples": 2.5},
        {"layouts": {}},
        {"layouts": [1]},
    ],
)
def test_arguments_out_of_range_are_refused(options):
    memory = qkv.Memory.orthonormal(4, 4, labels=list("abcd"))
    given = {"layouts": {"x": 8 * memory.keys[0]}, "radius": 0.1} | options
    with pytest.raises(QkvError):
        qkv.noise.layout_reports(
            memory,
            given.pop("layouts"),
            qkv.noise.Gaussian(along={"a": 0.5}),
            {"a": 0.5, "b": 0.5},
            given.pop("radius"),
            **given,
        )
