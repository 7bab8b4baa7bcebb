"""Scores, weights and outputs as formulas, against a NumPy softmax on explicit vectors."""

import numpy as np
import pytest
import sympy as sp
from claim_builders import context_of, expression

from qkv.claims.symbolic import attention_terms
from qkv.claims.symbolic.errors import Unsupported
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.matrix_polynomials import ZERO, scalar
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


def test_masked_items_have_weight_zero_and_no_exponential():
    algebra = Evaluator(context_of("k_1..k_n orthonormal, b masked, n >= 4, t > 0", "q = t*(k_a + k_b)", "alpha_b = 0"))
    terms = attention_terms.softmax_terms(algebra, "")
    t, n = algebra.symbol("t"), algebra.symbol("n")
    assert terms.powers == {"a": sp.exp(t), "b": 0} and sp.expand(terms.rest - (n - 2)) == 0
    assert set(terms.scores) == {"a", "*"} and attention_terms.weight(algebra, "", "b") == 0
    assert sp.simplify(attention_terms.weight(algebra, "", "a") - sp.exp(t) / (sp.exp(t) + n - 2)) == 0


def test_a_causal_mask_hides_later_tokens_though_their_queries_are_equal():
    given = "u_1, u_2 orthonormal, causal mask"
    algebra = Evaluator(context_of(given, "x_1 = u_1, x_2 = u_2, Q = 0*I", "alpha_{1,2} = 0"))
    assert attention_terms.weight(algebra, "1", "2") == 0 and attention_terms.weight(algebra, "1", "1") == 1
    assert attention_terms.weight(algebra, "2", "1") == sp.Rational(1, 2) == attention_terms.weight(algebra, "2", "2")


def test_a_query_of_zero_weighs_all_items_alike():
    algebra = Evaluator(context_of("k_1..k_n orthonormal, n >= 2", "q = 0", "alpha_a = 1/n"))
    assert attention_terms.score(algebra, "", "a") == 0
    assert sp.simplify(attention_terms.weight(algebra, "", "a") - 1 / algebra.symbol("n")) == 0


def test_with_as_many_items_as_names_nothing_is_left():
    named = Evaluator(context_of("k_a, k_b orthonormal, t > 0", "q = t*k_a", "alpha_a = 1"))
    terms = attention_terms.softmax_terms(named, "")
    assert terms.rest == 0 == terms.each and not terms.uneven and terms.total == sp.exp(named.symbol("t")) + 1
    two = Evaluator(context_of("k_1..k_n orthonormal, n = 2, t > 0", "q = t*k_a", "alpha_a = alpha_b"))
    assert attention_terms.softmax_terms(two, "").rest == 0
    with pytest.raises(Unsupported):
        attention_terms.weight(named, "", "z")


def score_conditions(given, then="alpha_a = alpha_b"):
    algebra = Evaluator(context_of(f"k_1..k_n free, q free, n >= 4, m > 0, {given}", "", then))
    return algebra, attention_terms._score_substitutions(algebra)


@pytest.mark.parametrize(
    ("given", "solved", "strict", "way"),
    [
        ("k_a'q - k_b'q >= m", "k_b'q", False, 1),
        ("k_a'q - k_b'q > m", "k_b'q", True, 1),
        ("k_b'q <= k_a'q - m", "k_b'q", False, 1),
        ("k_b'q < k_a'q - m", "k_b'q", True, 1),
        ("k_b'q - k_a'q <= -m", "k_b'q", False, 1),
    ],
)
def test_a_condition_on_scores_is_solved_for_the_smaller_one(given, solved, strict, way):
    algebra, found = score_conditions(given)
    a, b, m = (algebra.number(expression(text)) for text in ("k_a'q", "k_b'q", "m"))
    ((target, value),) = found
    assert target == b
    (gap,) = [s for s in value.free_symbols if isinstance(s, Gap)]
    assert sp.expand(value - (a - m - gap)) == 0 and gap.strict is strict and gap.of == b


@pytest.mark.parametrize("given", ["k_a'q = k_b'q + m", "k_b'q + m = k_a'q", "k_a'q - k_b'q = m", "k_b'q = k_a'q - m"])
def test_an_equality_of_scores_leaves_no_gap(given):
    algebra, found = score_conditions(given)
    a, b, m = (algebra.number(expression(text)) for text in ("k_a'q", "k_b'q", "m"))
    difference = (a - b - m).subs(found)
    assert sp.expand(difference) == 0


def test_an_equality_with_a_number_is_solved_for_the_score():
    algebra, found = score_conditions("k_a'q = 2*m")
    assert found == [(algebra.number(expression("k_a'q")), 2 * algebra.symbol("m"))]


def test_a_condition_on_every_item_is_one_on_each():
    algebra, found = score_conditions("k_a'q - k_i'q >= m for i != a")
    a, m = algebra.number(expression("k_a'q")), algebra.symbol("m")
    assert len(found) == 2  # of b, and of any other
    assert all(
        sp.expand(value.subs({s: 0 for s in value.free_symbols if isinstance(s, Gap)}) - a + m) == 0
        for _, value in found
    )
    assert [s.of_unnamed_item for s, _ in found] == [False, True]
    all_of, every = score_conditions("k_i'q = m for all i")
    assert [value for _, value in every] == [all_of.symbol("m")] * 3


@pytest.mark.parametrize(
    "given",
    [
        "k_a'q != m",
        "k_a'q >= m",
        "k_a'q - 2*k_b'q >= m",
        "(k_a'q)^2 = m",
        "k_a'q - k_b'q >= m, k_b'q - k_a'q >= m",
        "(k_b'q)^2 - k_b'q >= m",
        "k_a'q - k_b'q - (k_b'q)^2 >= m",
    ],
)
def test_conditions_on_scores_of_other_forms_are_not_supported(given):
    with pytest.raises(Unsupported):
        score_conditions(given, "alpha_a = alpha_d")


@pytest.mark.parametrize("given", ["k_a'q + k_i'q <= m for i != a", "k_z'q + k_i'q <= m for i != z"])
def test_a_condition_on_unnamed_items_is_solved_for_their_score(given):
    named = given[2]
    _, ((target, _),) = score_conditions(given, f"alpha_{named} <= 1")
    assert target.of_unnamed_item


def test_conditions_are_put_into_values_only_where_there_are_some():
    algebra, found = score_conditions("k_a'q - k_b'q >= m")
    a, b = (algebra.value(expression(text)) for text in ("k_a'q", "k_b'q"))
    put = attention_terms.with_score_conditions(algebra, b).number()
    assert put == found[0][1] and attention_terms.with_score_conditions(algebra, a).number() == a.number()
    assert attention_terms.with_score_conditions(algebra, ZERO) is ZERO
    plain = Evaluator(context_of("t > 0", "", "t = t"))
    value = scalar(plain.symbol("t"))
    assert attention_terms.with_score_conditions(plain, value) is value
    equal, _ = score_conditions("k_a'q = k_b'q")
    gone = equal.value(expression("k_a'q - k_b'q"))
    assert gone.terms and attention_terms.with_score_conditions(equal, gone).terms == {}


def rest(given, let=""):
    algebra = Evaluator(context_of(given, let, "alpha_j > 0"))
    return algebra, attention_terms.softmax_terms(algebra, "")


def test_the_rest_of_bounded_scores_is_theta_times_their_number_times_the_largest():
    """Numbers that meet the condition make a theta in (0, 1], whatever the scale in front."""
    for given, let, scale in (
        ("k_1..k_n free, w free, n >= 3, m > 0, k_j'w - k_i'w >= m for i != j", "q = w", 1),
        ("k_1..k_n free, w free, n >= 3, m > 0, k_j'w - k_i'w >= m for i != j", "q = 2*w", 2),
        ("k_1..k_n free, w free, n >= 3, m > 0, t > 0, k_j'w - k_i'w >= m for i != j", "q = t*w", 3),
    ):
        algebra, terms = rest(given, let)
        (theta,) = algebra.thetas
        (gap,) = [s for s in terms.rest.free_symbols if isinstance(s, Gap)]
        numbers = {algebra.symbol("n"): 4, algebra.symbol("m"): 0.5, theta: 1, gap: 0}
        if "t" in algebra.symbols:
            numbers[algebra.symbol("t")] = 3
        largest = terms.rest.subs(numbers)
        top = largest.subs(dict.fromkeys(largest.free_symbols, 0.7))  # k_j'w = 0.7
        assert float(top) == pytest.approx(3 * np.exp(scale * (0.7 - 0.5)))
        assert sp.diff(terms.rest, theta, 2) == 0 and terms.rest.subs(theta, 0) == 0


def test_a_scale_of_unknown_sign_does_not_bound_the_rest():
    given = "k_1..k_n free, w free, n >= 3, m > 0, t real, k_j'w - k_i'w >= m for i != j"
    for let in ("q = t*w", "q = -w"):
        with pytest.raises(Unsupported, match="sign"):
            rest(given, let)


def test_equal_scores_of_all_others_make_an_even_rest():
    algebra, terms = rest("k_1..k_n free, q free, n >= 3, m > 0, k_i'q = m for i != j")
    n, m = algebra.symbol("n"), algebra.symbol("m")
    assert sp.expand(terms.rest - (n - 1) * sp.exp(m)) == 0


def test_the_derivation_of_noisy_and_free_keys():
    algebra = Evaluator(context_of("k_1..k_n free, q free, gamma ~ N(1, 2), n >= 2", "", "alpha_a = gamma"))
    algebra.number(expression("alpha_a*gamma"))
    texts = [s.text for s in attention_terms.softmax_steps(algebra)]
    assert texts[0] == "gamma is normal with mean 1 and variance 2"
    assert texts[1] == "the exponentials of the other items sum to a number that is not negative, called rest"
    assert texts[2].startswith("sum of exponentials: Z = ") and len(texts) == 3
    bounded, _ = rest(f"{FREE}, k_j'q - k_i'q >= 2 for i != j")
    texts = [s.text for s in attention_terms.softmax_steps(bounded)]
    assert "0 < theta <= 1" in texts[0] and len(texts) == 2
    heads = Evaluator(context_of("k_1..k_n orthonormal, n >= 2", "q_1 = k_a, q_2 = k_b", "alpha_{1,a} = alpha_{2,b}"))
    heads.number(expression("alpha_{1,a} + alpha_{2,b}"))
    steps = attention_terms.softmax_steps(heads)
    assert steps[0].text == "scores: k_a'q_1 = 1, k_b'q_1 = 0, k_i'q_1 = 0 for the other n - 2 items"
    assert steps[0].latex.startswith(r"k_{a}^\top q_{1} = 1") and steps[1].text.startswith(
        "sum of exponentials of q_1: Z"
    )


def test_short_sums_are_simplified_for_printing_and_long_ones_are_not(monkeypatch):
    x = sp.Symbol("x_of_the_test")
    expr = sp.exp(x) * sp.exp(-x, evaluate=False) + x**2 + 2 * x * (x + 1) - 2 * x
    size = int(expr.count_ops())
    for limit, wanted in ((size + 1, sp.simplify(expr)), (size, expr)):
        attention_terms._simplified.cache_clear()
        monkeypatch.setattr(attention_terms, "SIMPLIFIED_BELOW", limit)
        assert attention_terms._simplified(expr) == wanted
    attention_terms._simplified.cache_clear()
