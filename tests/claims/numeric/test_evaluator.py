"""The numerical evaluator, against NumPy written out by hand."""

import numpy as np
import pytest
from claim_builders import context_of, expression
from scipy.stats import norm

from qkv.claims.numeric.evaluator import CannotEvaluate, Instance, evaluate, key_law
from qkv.claims.numeric.instances import instances


def number(value):
    return np.full((1, 1, 1), float(value))


@pytest.fixture
def inst():
    """Five free keys and values in four dimensions, two of them named."""
    context = context_of("k_1..k_n free, v_1..v_n free, q free, t > 0", "w = t*alpha_a, M = q*q'", "alpha_a = alpha_b")
    rng = np.random.default_rng(3)
    one = Instance(context, 5, 4, {"t": number(0.7), "n": number(5)}, {}, {}, {})
    one.vectors["q"] = rng.standard_normal((1, 4, 1))
    for base in "kv":
        one.families[base] = {item: rng.standard_normal((1, 4, 1)) for item in one.items}
    return one


def arrays(inst):
    keys = np.stack([inst.families["k"][i][0, :, 0] for i in inst.items])
    values = np.stack([inst.families["v"][i][0, :, 0] for i in inst.items])
    return keys, values, inst.vectors["q"][0, :, 0]


def test_items_are_the_named_ones_and_numbers_for_the_rest(inst):
    assert inst.items == ["a", "b", "#1", "#2", "#3"]


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("alpha_a", lambda k, v, q: softmax(k @ q)[0]),
        ("c", lambda k, v, q: softmax(k @ q) @ v),
        ("k_b'q", lambda k, v, q: k[1] @ q),
        ("sum_i exp(k_i'q)", lambda k, v, q: np.exp(k @ q).sum()),
        ("sum_{i != a} k_i", lambda k, v, q: k[1:].sum(axis=0)),
        ("norm(k_a - 2*k_b)", lambda k, v, q: np.linalg.norm(k[0] - 2 * k[1])),
        ("M*k_a", lambda k, v, q: np.outer(q, q) @ k[0]),
        ("(k_a'q)^2/t", lambda k, v, q: (k[0] @ q) ** 2 / 0.7),
        ("w", lambda k, v, q: 0.7 * softmax(k @ q)[0]),
        ("log(exp(t)) - sqrt(t^2)", lambda k, v, q: 0.0),
        ("Phi(t)", lambda k, v, q: norm.cdf(0.7)),
        ("k_a*k_b'", lambda k, v, q: np.outer(k[0], k[1])),
        ("I*k_a", lambda k, v, q: k[0]),
        ("-t + n", lambda k, v, q: 4.3),
    ],
)
def test_values_are_those_of_numpy(inst, text, reference):
    found = evaluate(inst, expression(text))[0]
    expected = np.asarray(reference(*arrays(inst)), dtype=float)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-12, atol=1e-12)


def softmax(scores):
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def test_a_softmax_of_large_scores_does_not_overflow(inst):
    inst.vectors["q"] = 1e4 * inst.vectors["q"]
    keys, _, q = arrays(inst)
    best = int(np.argmax(keys @ q))
    weights = [
        float(evaluate(inst, expression("alpha_a"))[0, 0, 0]),
        float(evaluate(inst, expression("alpha_b"))[0, 0, 0]),
    ]
    assert weights == [float(best == 0), float(best == 1)]


def test_rotations_keep_lengths_and_add_angles(inst):
    one = evaluate(inst, expression("R(2)*R(3)*q"))
    two = evaluate(inst, expression("R(5)*q"))
    np.testing.assert_allclose(one, two, atol=1e-12)
    assert np.linalg.norm(one) == pytest.approx(np.linalg.norm(inst.vectors["q"]))


def test_cancellation_is_noticed(inst):
    expr = expression("(t + 1) - t - 1")
    evaluate(inst, expr)
    assert expr in inst.cancelled


def test_setting_a_number_forgets_old_values(inst):
    first = float(evaluate(inst, expression("w"))[0, 0, 0])
    inst.put("t", 1.4)
    assert float(evaluate(inst, expression("w"))[0, 0, 0]) == pytest.approx(2 * first)


@pytest.mark.parametrize("text", ["k_a + 1 - k_a", "k_a*k_b", "k_a - t"])
def test_shapes_that_do_not_fit_cannot_be_evaluated(inst, text):
    with pytest.raises(CannotEvaluate):
        evaluate(inst, expression(text))


def test_draws_of_keys_have_the_given_law():
    context = context_of(
        "mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), k_a ~ N(mu_a, eps*I + 1/2*mu_a*mu_a'), n = 3, eps = 1/4",
        "q = mu_a", "alpha_a > 0",
    )  # fmt: skip
    inst = next(iter(instances(context, 1)))
    mean, covariance = key_law(inst, "a")
    direction = inst.families["mu"]["a"][0, :, 0]
    np.testing.assert_allclose(mean[0, :, 0], direction)
    np.testing.assert_allclose(covariance, 0.25 * np.eye(inst.d) + 0.5 * np.outer(direction, direction))
    keys = evaluate(inst, expression("k_a"))[:, :, 0]
    np.testing.assert_allclose(keys.mean(axis=0), direction, atol=1e-9)
    np.testing.assert_allclose(np.cov(keys.T, bias=True), covariance, atol=1e-9)
    assert float(evaluate(inst, expression("Var[k_a'q]"))[0, 0, 0]) == pytest.approx(0.75, abs=1e-9)
    assert float(evaluate(inst, expression("P[k_a'q > 1]"))[0, 0, 0]) == pytest.approx(0.5, abs=0.03)
