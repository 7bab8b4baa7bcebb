"""Instances: every one meets every condition that is given, the first are the smallest, and seeds repeat them."""

import numpy as np
import pytest
from claim_builders import context_of, expression

from qkv.claims import check
from qkv.claims.numeric.evaluator import evaluate
from qkv.claims.numeric.instances import N_DRAWS, conditions_hold, holds, in_range, instances
from qkv.claims.semantics.ranges import Range


def gram(inst, base):
    rows = np.stack([v[0, :, 0] for v in inst.families[base].values()])
    return rows @ rows.T


@pytest.mark.parametrize(
    ("given", "let"),
    [
        ("k_1..k_n orthonormal, n >= 3, t > 0", "q = t*k_a"),
        ("k_1..k_n orthogonal of norm beta, n >= 2, 1/3 < beta < 1/2", "q = k_a"),
        ("u_a, u_b, u_d orthogonal of norm 2", "x_1 = u_a + u_b, x_2 = u_d"),
        ("k_1..k_n free, q free, k_j'q - k_i'q >= m for i != j, m > 2", ""),
        ("k_1..k_n free, q free, k_a'q = k_b'q, n >= 3", ""),
        ("s > t, t > 1", ""),
        ("s > 2*t, 0 < t < 1, s < 5", ""),
        ("A, B orthonormal bases at right angles, x in R^m", ""),
        ("mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), n >= 3", "q = mu_a"),
    ],
)
def test_every_instance_meets_what_is_given(given, let):
    context = context_of(given, let, "1 = 1")
    found = list(instances(context, 16))
    assert len(found) >= 8
    for inst in found:
        for name, where in context.numbers.items():
            assert where.holds(float(inst.numbers[name].min())), name
        for base, family in context.families.items():
            if family.kind == "orthonormal" and inst.families[base]:
                np.testing.assert_allclose(gram(inst, base), np.eye(len(inst.families[base])), atol=1e-9)
            if family.kind == "orthogonal":
                norm = float(evaluate(inst, family.norm)[0, 0, 0])
                np.testing.assert_allclose(gram(inst, base), norm**2 * np.eye(len(inst.families[base])), atol=1e-9)
        if "A" in inst.bases and context.right_angles:
            np.testing.assert_allclose(inst.bases["A"][0].T @ inst.bases["B"][0], 0, atol=1e-9)
        assert conditions_hold(inst) and in_range(inst)
        if "- k_i'q >= m" in given:
            q = inst.vectors["q"][0, :, 0]
            scores = {i: float(v[0, :, 0] @ q) for i, v in inst.families["k"].items()}
            m = float(inst.numbers["m"].reshape(-1)[0])
            assert all(scores["j"] - s >= m - 1e-6 for i, s in scores.items() if i != "j")


def test_the_first_instance_is_the_smallest():
    inst = next(iter(instances(context_of("k_1..k_n orthonormal, n >= 4, t > 0", "q = t*k_a", "alpha_a > 0"), 1)))
    assert inst.n == 4 and float(inst.numbers["t"].reshape(-1)[0]) == 1.0


def test_a_seed_gives_the_same_instances():
    context = context_of("k_1..k_n free, q free, t > 0", "", "alpha_a > 0")
    one, two, other = (list(instances(context, 14, seed)) for seed in (0, 0, 1))
    assert all(np.array_equal(a.vectors["q"], b.vectors["q"]) for a, b in zip(one, two, strict=True))
    assert any(not np.array_equal(a.vectors["q"], b.vectors["q"]) for a, b in zip(one, other, strict=True))


def test_free_vectors_are_tried_parallel_and_zero():
    found = [inst.families["k"] for inst in instances(context_of("k_1..k_n free, n >= 3", "", "k_a = k_b"), 16)]
    tables = [np.stack([v[0, :, 0] for v in table.values()]) for table in found]
    assert any(np.array_equal(t, np.tile(t[:1], (len(t), 1))) and t.any() for t in tables)
    assert any(not t.any() for t in tables)


@pytest.mark.parametrize("given", ["n >= 100000", "s > t, t > 5, s < 2"])
def test_conditions_that_are_never_met_give_no_instance(given):
    context = context_of(f"k_1..k_n orthonormal, {given}" if "n" in given else given, "", "1 = 1")
    assert list(instances(context, 4)) == []


def test_random_numbers_are_spread_over_their_quantiles():
    (inst,) = instances(context_of("gamma ~ N(1, 1/4)", "", "gamma > 0"), 1)
    values = inst.numbers["gamma"].reshape(-1)
    assert len(values) == N_DRAWS
    assert values.mean() == pytest.approx(1, abs=1e-9) and values.std() == pytest.approx(0.5, abs=2e-3)
    (narrowed,) = instances(context_of("gamma ~ N(1, 1/4)", "", "gamma > 0 when gamma > 1"), 1)
    assert narrowed.numbers["gamma"].min() > 1


@pytest.mark.parametrize(
    ("gap", "op", "slack", "true"),
    [(1e-9, "=", 1e-8, True), (1e-7, "=", 1e-8, False), (0.0, "<", 1e-9, True), (1.0, "<=", 0.1, False),
     (-1e-10, ">=", 1e-9, True), (0.0, "!=", 0.0, False), (-1.0, ">", 0.1, False)],
)  # fmt: skip
def test_comparisons_allow_a_slack(gap, op, slack, true):
    assert holds(np.array([gap]), op, slack) == true


def test_numbers_of_a_limit_may_leave_their_range():
    (inst,) = instances(context_of("0 < t < 1", "", "t > 0"), 1)
    inst.put("t", 5.0)
    assert not in_range(inst) and in_range(inst, frozenset({"t"}))
    assert inst.context.numbers["t"] == Range(0, 1, True, True)
    assert float(evaluate(inst, expression("t"))[0, 0, 0]) == 5.0


def test_sums_over_columns_do_not_capture_each_others_index():
    text = (
        "~~~claim nested\ngiven A, B orthonormal bases at right angles, x in R^m, y in R^p\nlet v_a = A*x\n"
        "then v_a = sum_{l=1}^m (sum_{r=1}^m ((a_r'*A*x)*(a_l'*a_r)*a_l))\n~~~"
    )
    (found,) = check(text)
    assert found.verdict in ("holds", "proved")
