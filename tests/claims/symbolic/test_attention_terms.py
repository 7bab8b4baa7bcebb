"""Scores, weights and outputs as formulas, against a NumPy softmax on explicit vectors."""

import numpy as np
import pytest
import sympy as sp
from claim_builders import context_of, expression

from qkv.claims.symbolic import attention_terms
from qkv.claims.symbolic.errors import Unsupported
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.unknowns import Gap, RestSum, RestWeight, Theta

ITEMS = "abcdefg"


def softmax(scores):
    powers = np.exp(scores - np.max(scores))
    return powers / powers.sum()


@pytest.mark.parametrize("norm", [1, 2, 3])
@pytest.mark.parametrize(("let", "query"), [
    ("q = t*(k_a + k_b)", [1, 1]), ("q = t*(2*k_a - k_b)", [2, -1]), ("q = -t*k_b", [0, -1]),
    ("q = t*sum_i k_i", [1] * 7), ("q = t*(k_a + sum_{i != a, b} k_i)", [1, 0, 1, 1, 1, 1, 1]),
])  # fmt: skip
def test_weights_of_orthogonal_keys_are_those_of_numpy(let, query, norm):
    context = context_of(f"k_1..k_n orthogonal of norm {norm}, n >= 3, t > 0", let, "alpha_a = alpha_b")
    algebra = Evaluator(context)
    n, t = 7, 0.37
    keys = norm * np.eye(n)
    weights = softmax(keys @ (t * np.array([*query, *[0] * (n - len(query))]) @ keys))
    for item, number in [("a", 0), ("b", 1), ("*", 2)]:
        formula = attention_terms.weight(algebra, "", item)
        value = float(formula.subs({algebra.symbol("n"): n, algebra.symbol("t"): t}))
        assert value == pytest.approx(weights[number], rel=1e-12)


def test_the_output_is_the_weighted_mean_of_the_values():
    context = context_of("k_1..k_n orthonormal, v_1..v_n orthonormal, n >= 2, t > 0", "q = t*k_a", "c = v_a")
    algebra = Evaluator(context)
    n, t = 5, 1.3
    weights = softmax(t * np.eye(n)[0])
    output = weights @ np.eye(n)
    values = {algebra.symbol("n"): n, algebra.symbol("t"): t}
    square = algebra.number(expression("c'c")).subs(values)
    assert float(square) == pytest.approx(output @ output, rel=1e-12)
    assert float(algebra.number(expression("v_a'c")).subs(values)) == pytest.approx(weights[0], rel=1e-12)


def test_several_heads_are_averaged():
    context = context_of(
        "k_1..k_n orthonormal, v_1..v_n orthonormal, n >= 2, t > 0", "q_1 = t*k_a, q_2 = t*k_b", "c = v_a"
    )
    algebra = Evaluator(context)
    n, t = 4, 0.9
    mean = (softmax(t * np.eye(n)[0]) + softmax(t * np.eye(n)[1])) / 2
    value = algebra.number(expression("v_a'c")).subs({algebra.symbol("n"): n, algebra.symbol("t"): t})
    assert float(value) == pytest.approx(mean[0], rel=1e-12)


def test_equal_queries_share_one_softmax():
    algebra = Evaluator(context_of("k_1..k_n orthonormal, n >= 2", "q_1 = k_a, q_2 = k_a", "alpha_{1,a} = alpha_{2,a}"))
    assert attention_terms.softmax_terms(algebra, "1") is attention_terms.softmax_terms(algebra, "2")


FREE = "k_1..k_n free, q free, n >= 3"


@pytest.mark.parametrize(("given", "kind"), [(FREE, RestSum), (f"{FREE}, k_j'q - k_i'q >= 2 for i != j", Theta)])
def test_unnamed_items_of_free_keys_are_one_unknown_sum(given, kind):
    algebra = Evaluator(context_of(given, "", "alpha_j = 1"))
    terms = attention_terms.softmax_terms(algebra, "")
    assert terms.uneven and any(isinstance(s, kind) for s in terms.rest.free_symbols)
    assert sp.simplify(sum(terms.powers.values()) + terms.rest - terms.total) == 0
    single = attention_terms.weight(algebra, "", "*")
    assert isinstance(single, RestWeight)
    assert algebra.rest_weights[single] == terms.rest / terms.total


def test_a_gap_bounds_the_other_exponentials():
    """k_j'q - k_i'q >= m puts every other exponential below e^(-m) times that of j."""
    algebra = Evaluator(context_of(f"{FREE}, m > 0, k_j'q - k_i'q >= m for i != j", "", "alpha_j > 0"))
    weight = attention_terms.weight(algebra, "", "j")
    (gap,) = [s for s in weight.free_symbols if isinstance(s, Gap)]
    (theta,) = algebra.thetas
    rng = np.random.default_rng(0)
    for _ in range(20):
        n, m = int(rng.integers(3, 9)), float(rng.uniform(0.1, 3))
        scores = np.concatenate([[0.0], -m - rng.exponential(1.0, n - 1)])
        bound = weight.subs({algebra.symbol("n"): n, algebra.symbol("m"): m, gap: 0, theta: 1})
        assert float(bound.subs(dict.fromkeys(bound.free_symbols, 0))) <= softmax(scores)[0] + 1e-12


def test_the_rest_is_positive_only_where_there_is_an_unnamed_item():
    for low, positive in ((1, None), (2, True)):
        algebra = Evaluator(context_of(f"k_1..k_n free, q free, n >= {low}", "", "alpha_j = 1"))
        assert attention_terms.softmax_terms(algebra, "").rest.is_positive is positive


def test_scores_that_are_no_numbers_are_not_supported():
    algebra = Evaluator(context_of("k_1..k_n orthonormal, A orthonormal basis, x in R^m", "q = A'*A*x", "alpha_a = 1"))
    with pytest.raises(Unsupported):
        attention_terms.weight(algebra, "", "a")


def test_the_derivation_names_scores_and_the_sum_of_exponentials():
    algebra = Evaluator(context_of("k_1..k_n orthonormal, n >= 3, t > 0", "q = t*k_a", "alpha_a = 1"))
    attention_terms.weight(algebra, "", "a")
    texts = [s.text for s in attention_terms.softmax_steps(algebra)]
    assert texts == [
        "scores: k_a'q = t, k_i'q = 0 for the other n - 1 items",
        "sum of exponentials: Z = n + exp(t) - 1",
    ]
