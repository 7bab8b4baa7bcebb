"""Weights and readings against torch's kernel, exact arithmetic, and the laws that every softmax obeys."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch.nn.functional import scaled_dot_product_attention

from qkv.core.attention import (
    Reading,
    attend,
    attend_heads,
    read,
    read_heads,
    read_self,
    self_attention,
    softmax,
    weights,
)
from qkv.errors import QkvError

SIZES = st.integers(1, 6)
ENTRIES = st.floats(-20, 20, allow_subnormal=False)


@st.composite
def memories(draw):
    """A query, keys and values of fitting random sizes."""
    n, d, dv = draw(SIZES), draw(SIZES), draw(SIZES)
    return tuple(draw(arrays(np.float64, shape, elements=ENTRIES)) for shape in ((d,), (n, d), (n, dv)))


def normal(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def exact_weights(scores, mask=None):
    """Softmax in fifty digits, with exponents that no score can exhaust."""
    allowed = [True] * len(scores) if mask is None else mask
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 50, 10**9, -(10**9)
        powers = [Decimal(s).exp() if ok else Decimal(0) for s, ok in zip(scores, allowed, strict=True)]
        return [float(p / sum(powers)) for p in powers]


@pytest.mark.parametrize(
    "scores",
    [
        [1e4, 1e4 - 1, -1e4],
        [-1e4, -1e4 - 0.5, -1e4 - 30],
        [1e5, 1e5, 0.0],
        [-1e6, -1e6 + 3],
        [0.1, 0.2, 0.3],
        [700.0],
    ],
)
def test_weights_of_large_scores_agree_with_fifty_digit_arithmetic(scores):
    np.testing.assert_allclose(weights(scores), exact_weights(scores), rtol=1e-14, atol=0)


def test_weights_survive_the_largest_scores_that_float64_has():
    assert weights([1.7e308, -1.7e308, 1.7e308]).tolist() == [0.5, 0.0, 0.5]


def test_a_masked_item_gets_exactly_zero_even_if_its_score_is_the_largest():
    mask = [True, False, True]
    got = weights([1.0, 1e4, 2.5], mask)
    assert got[1] == 0
    assert weights([-1e12, 0.0], [True, False]).tolist() == [1.0, 0.0]
    np.testing.assert_allclose(got, exact_weights([1.0, 1e4, 2.5], mask), rtol=1e-14)


def test_a_masked_item_does_not_leak_into_the_output():
    huge = [[1.0], [1e300]]
    assert attend([1.0], [[1.0], [1.0]], huge, mask=[True, False]).output.tolist() == [1.0]


@settings(deadline=None)
@given(arrays(np.float64, st.tuples(SIZES, SIZES), elements=st.floats(-1e4, 1e4)))
def test_weights_are_nonnegative_and_each_row_sums_to_one(scores):
    got = weights(scores)
    assert (got >= 0).all()
    assert all(abs(math.fsum(row) - 1) < 1e-14 for row in got.tolist())


@settings(deadline=None)
@given(arrays(np.int64, SIZES, elements=st.integers(-50, 50)), st.integers(-(10**6), 10**6))
def test_adding_a_constant_to_the_scores_changes_nothing(scores, constant):
    # Whole numbers, so that the addition itself is exact and the weights can be compared bit by bit.
    assert torch.equal(weights(scores), weights(scores + constant))


@settings(deadline=None)
@given(memories(), st.randoms(use_true_random=False))
def test_shuffling_the_items_shuffles_the_weights_and_keeps_the_output(memory, random):
    query, keys, values = memory
    order = list(range(len(keys)))
    random.shuffle(order)
    before, after = attend(query, keys, values), attend(query, keys[order], values[order])
    # Scores reach 2400, so a different order of summation may move them, and the weights, by 2e-12.
    torch.testing.assert_close(after.weights, before.weights[order], rtol=0, atol=1e-11)
    torch.testing.assert_close(after.output, before.output, rtol=0, atol=1e-11 * (1 + np.abs(values).max()))


@settings(deadline=None)
@given(memories(), st.floats(-5, 5))
def test_the_output_lies_in_the_bounding_box_of_the_values(memory, scale):
    query, keys, values = memory
    output = attend(query, keys, values, scale=scale).output.numpy()
    slack = 1e-13 * (1 + np.abs(values).max())
    assert (output >= values.min(0) - slack).all()
    assert (output <= values.max(0) + slack).all()


@settings(deadline=None)
@given(memories())
def test_lists_arrays_and_tensors_give_the_same_reading(memory):
    readings = [
        attend(*(array.tolist() for array in memory)),
        attend(*memory),
        attend(*(torch.from_numpy(array) for array in memory)),
    ]
    assert all(r.weights.dtype == r.output.dtype == torch.float64 for r in readings)
    assert all(torch.equal(r.weights, readings[0].weights) for r in readings)
    assert all(torch.equal(r.output, readings[0].output) for r in readings)


@settings(deadline=None, max_examples=30)
@given(memories(), st.floats(-2, 2))
def test_a_reading_agrees_with_a_loop_over_items(memory, scale):
    query, keys, values = memory
    # Fractions make the scores exact; what is left is the softmax, done in fifty digits.
    scores = [
        float(Fraction(scale) * sum(Fraction(q) * Fraction(k) for q, k in zip(query, key, strict=True))) for key in keys
    ]
    alpha = exact_weights(scores)
    output = [math.fsum(a * v for a, v in zip(alpha, column, strict=True)) for column in values.T]
    got = attend(query, keys, values, scale=scale)
    np.testing.assert_allclose(got.weights, alpha, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(got.output, output, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("masked", [False, True])
def test_many_queries_agree_with_torchs_kernel(masked):
    q, k, v = normal(5, 4), normal(7, 4, seed=1), normal(7, 3, seed=2)
    mask = normal(5, 7, seed=3) < 0.8 if masked else None
    want = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.7)
    torch.testing.assert_close(attend(q, k, v, scale=0.7, mask=mask).output, want, rtol=0, atol=1e-12)


def test_a_row_of_many_queries_is_the_reading_of_that_query_alone():
    q, k, v = normal(3, 4), normal(6, 4, seed=1), normal(6, 2, seed=2)
    many = attend(q, k, v, scale=2)
    for i in range(3):
        one = attend(q[i], k, v, scale=2)
        assert one.weights.shape == (6,) and one.output.shape == (2,)
        torch.testing.assert_close(many.weights[i], one.weights, rtol=0, atol=1e-15)
        torch.testing.assert_close(many.output[i], one.output, rtol=0, atol=1e-14)


def test_one_mask_serves_many_queries():
    q, k, v = normal(3, 4), normal(6, 4, seed=1), normal(6, 2, seed=2)
    got = attend(q, k, v, mask=[True, False, True, True, False, True])
    assert (got.weights[:, [1, 4]] == 0).all()


def test_heads_are_averaged_unless_told_otherwise():
    q, k, v = normal(3, 4), normal(6, 4, seed=1), normal(6, 2, seed=2)
    alone = attend(q, k, v, scale=1.5)
    got = attend_heads(q, k, v, scale=1.5)
    torch.testing.assert_close(got.weights, alone.weights.mean(0), rtol=0, atol=1e-15)
    torch.testing.assert_close(got.output, alone.output.mean(0), rtol=0, atol=1e-14)
    assert torch.equal(got.heads, alone.weights)


def test_heads_are_mixed_by_any_real_numbers():
    q, k, v = normal(2, 4), normal(6, 4, seed=1), normal(6, 2, seed=2)
    alone = attend(q, k, v)
    got = attend_heads(q, k, v, mix=[2, -0.5])
    torch.testing.assert_close(got.output, 2 * alone.output[0] - 0.5 * alone.output[1], rtol=0, atol=1e-14)
    torch.testing.assert_close(got.weights @ v, got.output, rtol=0, atol=1e-14)


def test_heads_may_each_have_their_mask():
    mask = torch.tensor([[True, False], [False, True]])
    got = attend_heads(normal(2, 3), normal(2, 3), [[1.0], [3.0]], mask=mask)
    assert torch.equal(got.heads, torch.eye(2, dtype=torch.float64))
    assert got.output.tolist() == [2.0]


@pytest.mark.parametrize("masked", [False, True])
def test_self_attention_agrees_with_torchs_kernel(masked):
    X, Q, K, V = normal(6, 4), normal(3, 4, seed=1), normal(3, 4, seed=2), normal(5, 4, seed=3)
    mask = torch.ones(6, 6, dtype=torch.bool).tril() if masked else None
    want = scaled_dot_product_attention(X @ Q.T, X @ K.T, X @ V.T, attn_mask=mask, scale=0.3)
    got = self_attention(X, Q, K, V, scale=0.3, mask=mask)
    torch.testing.assert_close(got.output, want, rtol=0, atol=1e-12)


def test_self_attention_scores_are_bilinear_in_the_tokens():
    X, Q, K = [[1.0, 0.0], [0.0, 2.0]], [[1.0, 2.0], [0.0, 1.0]], [[3.0, 0.0], [1.0, 1.0]]
    # By hand: Qx = (1,0), (4,2); Kx = (3,1), (0,2); scores [[3, 0], [14, 4]].
    got = self_attention(X, Q, K, [[1.0, 1.0]])
    np.testing.assert_allclose(got.weights[:, 1], [1 / (1 + math.exp(3)), 1 / (1 + math.exp(10))], rtol=1e-14)
    np.testing.assert_allclose(got.output[:, 0], 1 + got.weights[:, 1], rtol=1e-14)


def test_gradients_pass_through_the_functions_on_tensors():
    def leaf(*shape, seed):
        return normal(*shape, seed=seed).requires_grad_()

    mask = torch.tensor([True, True, False, True])
    q, k, v, mix = leaf(2, 3, seed=0), leaf(4, 3, seed=1), leaf(4, 2, seed=2), leaf(2, seed=3)
    Q, K, V, scale = leaf(2, 3, seed=4), leaf(2, 3, seed=5), leaf(3, 3, seed=6), leaf(seed=7)
    assert torch.autograd.gradcheck(lambda s: softmax(s, mask), (leaf(2, 4, seed=8),))
    assert torch.autograd.gradcheck(lambda *a: read(*a, mask[None]), (q, k, v, scale))
    assert torch.autograd.gradcheck(lambda *a: read_heads(*a, mask=mask[None]), (q, k, v, mix, scale))
    assert torch.autograd.gradcheck(lambda *a: read_self(*a, mask=mask[None]), (k, Q, K, V, scale))


def test_a_card_lists_the_heaviest_items_first_by_their_labels():
    card = Reading(torch.tensor([0.2, 0.7, 0.1]), torch.tensor([1.5]), ("ant", "bee", "cow")).card()
    assert card.rows == (("bee", "0.7"), ("ant", "0.2"), ("cow", "0.1"))
    assert card.facts == (("output", "(1.5)"),)
    assert card.note == ""


def test_a_card_of_many_items_shows_ten_and_sums_up_the_rest():
    card = weights_card(torch.arange(1, 13) / 78)
    assert [row[0] for row in card.rows] == [str(i) for i in range(11, 1, -1)]
    assert card.note == "… 2 more items, with 0.03846 in all"


def test_a_card_of_several_heads_has_a_column_for_each_and_counts_a_negative_weight_by_its_size():
    card = attend_heads([[1.0], [2.0]], [[0.0], [9.0]], [[1.0], [2.0]], mix=[1, -3]).card()
    assert card.columns == ("item", "weight", "head 0", "head 1")
    assert card.rows[0][:2] == ("1", "-2")
    assert card.title == "Reading of 2 items by 2 heads"


def test_a_card_of_many_queries_says_what_each_attends_most():
    card = Reading(torch.eye(12), torch.zeros(12, 3)).card()
    assert card.rows[4] == ("4", "4", "1")
    assert (len(card.rows), card.note) == (10, "… 2 more queries")
    batched = Reading(torch.eye(3).expand(2, 3, 3), torch.zeros(2, 3, 1)).card()
    assert [row[0] for row in batched.rows] == ["0, 0", "0, 1", "0, 2", "1, 0", "1, 1", "1, 2"]


def test_a_reading_renders_to_html_and_json():
    reading = Reading(torch.tensor([0.25, 0.75]), torch.tensor([1.0]), ("<a>", "b"))
    assert "&lt;a&gt;" in reading._repr_html_()
    assert reading.to_json() == {
        "weights": [0.25, 0.75],
        "output": [1.0],
        "labels": ["<a>", "b"],
        "heads": None,
    }


EYE, ONE = np.eye(2), [[1.0], [1.0]]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: weights(torch.tensor(3.0)), "single number"),
        (lambda: weights([1.0, math.nan]), "NaN or infinite"),
        (lambda: weights([1.0, -math.inf]), "NaN or infinite"),
        (lambda: weights([1.0, 2.0], [False, False]), "allows no item"),
        (lambda: weights([[1.0, 2.0]] * 2, [[True, True], [False, False]]), "row 1 of the mask"),
        (lambda: weights([1.0, 2.0], [1, 0]), "Give booleans"),
        (lambda: weights([1.0, 2.0], [True] * 3), "shape (3,) but the scores have (2,)"),
        (lambda: attend(torch.tensor(1.0), EYE, EYE), "query has shape ()"),
        (lambda: attend(np.zeros((1, 1, 2)), EYE, EYE), "query has shape (1, 1, 2)"),
        (lambda: attend([1.0, 2.0, 3.0], EYE, EYE), "query of dimension 3, keys of dimension 2"),
        (lambda: attend([1.0, 2.0], EYE, np.eye(3)), "2 keys and 3 values"),
        (lambda: attend([1.0, 2.0], [1.0, 2.0], EYE), "keys with shape (n, d)"),
        (lambda: attend([1.0, 2.0], EYE, EYE, scale=math.inf), "scale is inf"),
        (lambda: attend([1e200, 0.0], EYE * 1e200, EYE), "exceed the range"),
        (lambda: attend([1.0, 2.0], EYE, EYE, mask=[False, False]), "allows no item"),
        (lambda: attend_heads([1.0, 2.0], EYE, EYE), "queries with shape (h, d)"),
        (lambda: attend_heads(EYE, EYE, EYE, mix=[1.0]), "2 queries and 1 mix"),
        (lambda: attend_heads(EYE, EYE, EYE, mix=[1.0, math.nan]), "reading mix"),
        (lambda: attend_heads(EYE, EYE, EYE, scale=math.nan), "scale is nan"),
        (lambda: attend_heads(EYE, EYE, EYE, mask=[[True, True], [False, False]]), "row 1 of the mask"),
        (lambda: attend_heads(EYE, EYE, EYE * 1e308, mix=[9.0, 9.0]), "exceed the range"),
        (lambda: self_attention(EYE, np.eye(3), EYE, EYE), "Q of dimension 3"),
        (lambda: self_attention(EYE, EYE, ONE, EYE), "K of dimension 1"),
        (lambda: self_attention(EYE, EYE[:1], EYE, EYE), "1 rows of Q and 2 rows of K"),
        (lambda: self_attention(EYE, EYE, EYE, EYE, scale=math.nan), "scale is nan"),
        (lambda: self_attention(EYE, EYE, EYE, EYE, mask=[[True, False], [False, False]]), "row 1"),
        (lambda: self_attention(EYE * 1e200, EYE, EYE, EYE), "exceed the range"),
    ],
)
def test_a_bad_request_is_refused_with_its_reason(call, says):
    with pytest.raises(QkvError) as refusal:
        call()
    assert says in str(refusal.value)


def weights_card(row):
    return Reading(row, torch.zeros(1)).card()


@pytest.mark.parametrize("count", [9, 10, 11])
def test_a_card_says_how_many_rows_are_left_out_only_where_some_are(count):
    random = np.random.default_rng(count)
    many = attend(random.normal(size=(count, 3)), random.normal(size=(4, 3)), random.normal(size=(4, 2))).card()
    one = attend(random.normal(size=3), random.normal(size=(count, 3)), random.normal(size=(count, 2))).card()
    assert len(many.rows) == len(one.rows) == min(count, 10)
    assert many.note == ("… 1 more query" if count == 11 else "")
    assert one.note.startswith("… 1 more item, with ") if count == 11 else one.note == ""
