"""wire: the three-token problem, blends, head sizes, and what no matrices can do."""

import numpy as np
import pytest
import torch
from scipy.special import softmax

import qkv
from qkv import QkvError
from qkv.design import wire


def three_tokens(beta, seed=None):
    frame = np.eye(4) if seed is None else np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 4)))[0].T
    a, b, c, d = beta * frame
    return np.array([d + b, a, c + b]), {"a": a, "b": b, "c": c, "d": d}


def attention(X, Q, K, V):
    """Self-attention written out in numpy."""
    X, Q, K, V = (np.asarray(m) for m in (X, Q, K, V))
    return softmax((X @ Q.T) @ (X @ K.T).T, axis=1) @ (X @ V.T)


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("prefer", ["norm", "rank"])
def test_the_three_tokens_are_wired_to_read_and_write_as_the_problem_asks(seed, prefer):
    X, u = three_tokens(4.0, seed)
    writes = {0: u["b"] - u["c"], 1: u["b"]}
    w = qkv.design.wire(X, reads={0: 2, 1: 0}, writes=writes, tol=1e-3, prefer=prefer)
    c = attention(X, w.Q, w.K, w.V)
    for row, (i, y) in enumerate(writes.items()):
        assert np.linalg.norm(c[i] - y) <= w.output_distances[row] * (1 + 1e-9) < 0.01
    assert max(w.distances) <= 1e-3
    assert w.residual < 1e-12
    assert w.certificate.verify()


def test_the_designed_matrix_is_smaller_than_the_textbooks():
    X, u = three_tokens(4.0)
    w = qkv.design.wire(X, {0: 2, 1: 0}, {0: u["b"] - u["c"], 1: u["b"]})
    textbook = (np.outer(u["d"], u["a"]) + np.outer(u["c"], u["d"])) / 16
    assert float(w.W.norm()) < np.linalg.norm(textbook)


@pytest.mark.parametrize(("beta", "holds"), [(4.0, True), (2.0, False)])
def test_the_textbook_answer_is_accepted_where_beta_is_large_enough(beta, holds):
    X, u = three_tokens(beta, seed=2)
    V = (np.outer(u["b"], u["b"]) - np.outer(u["c"], u["c"])) / beta**2
    Q = (np.outer(u["d"], u["a"]) + np.outer(u["c"], u["d"])) / beta**2
    certificate = qkv.design.check_wiring(X, Q, np.eye(6), V, {0: 2, 1: 0}, {0: u["b"] - u["c"], 1: u["b"]}, tol=1e-3)
    verdict = certificate.verify()
    assert bool(verdict) == holds
    leak = 2 / (np.exp(beta**2) + 2)  # 1/(e^{β²}+2) on each of the two other tokens
    assert f"{leak:.3g}"[:4] in verdict.findings[0].why


def test_a_token_can_read_a_blend_of_tokens():
    X = np.eye(4)
    w = qkv.design.wire(X, {0: {1: 0.25, 2: 0.75}, 3: 3}, {0: [1.0, 0], 3: [0, 1.0]}, tol=1e-2)
    weights = softmax(X @ np.asarray(w.W) @ X.T, axis=1)
    assert weights[0, 1] / weights[0, 2] == pytest.approx(1 / 3, rel=1e-4)
    assert weights[0, 1] + weights[0, 2] >= 0.99 and weights[3, 3] >= 0.99
    assert w.certificate.verify()


def test_the_smallest_w_for_one_rule_is_the_smallest_query_spread_over_its_token():
    """With one reading token x, W = x qᵀ/|x|² where q is the smallest query: an independent route to the norm."""
    random = np.random.default_rng(0)
    X = random.standard_normal((6, 8))
    w = qkv.design.wire(X, {0: 3}, {0: X[1]}, tol=1e-2)
    q = qkv.design.copy(qkv.Memory(X), 3, tol=1e-2).query
    assert float(w.W.norm()) == pytest.approx(float(q.norm()) / np.linalg.norm(X[0]), rel=1e-4)


def test_the_lowest_rank_wiring_has_the_smaller_nuclear_norm():
    random = np.random.default_rng(4)
    X = random.standard_normal((5, 6))
    rules, writes = {i: (i + 2) % 5 for i in range(5)}, {i: X[i] for i in range(5)}
    small = qkv.design.wire(X, rules, writes, tol=1e-2)
    low = qkv.design.wire(X, rules, writes, tol=1e-2, prefer="rank")
    nuclear = [float(torch.linalg.matrix_norm(w.W, "nuc")) for w in (small, low)]
    assert nuclear[1] < nuclear[0]
    assert small.W.norm() < low.W.norm()
    assert all(w.certificate.verify() for w in (small, low))


def test_a_head_of_the_requested_size_is_padded_and_one_too_small_is_refused():
    X, u = three_tokens(4.0)
    writes = {0: u["b"], 1: u["b"]}
    assert qkv.design.wire(X, {0: 2, 1: 0}, writes, head_size=4).Q.shape == (4, 4)
    with pytest.raises(qkv.QkvError, match="rank 2"):
        qkv.design.wire(X, {0: 2, 1: 0}, writes, head_size=1)


def test_what_one_linear_map_cannot_write_is_told_as_a_residual():
    X = np.array([[1.0, 0], [0, 1.0], [1.0, 1.0]])
    w = qkv.design.wire(np.hstack([X, np.eye(3)]), {0: 1, 1: 1}, {0: [1.0], 1: [-1.0]})
    assert w.residual == pytest.approx(1.0)
    assert "cannot write" in w.card().note


def test_reading_a_token_between_two_others_is_impossible_with_a_proof():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    w = qkv.design.wire(X, reads={0: 2}, writes={0: [1.0, 2.0]})
    assert not w.possible and w.Q is None
    assert w.certificate.kind == "no wiring within tol" and w.status == "out of reach"
    assert float(w.certificate.claims["norm_at_least"]) > 1e8
    assert w.certificate.verify()


REFUSALS = [
    ({}, {}, {}, "no rules"),
    ({0: 1}, {1: [1.0]}, {}, "write"),
    ({0: 9}, {0: [1.0]}, {}, "9"),
    ({0: {1: 0.5}}, {0: [1.0]}, {}, "sum to 0.5"),
    ({0: 1, 1: 0}, {0: [1.0], 1: [1.0, 2.0]}, {}, "lengths"),
    ({0: 1}, {0: [1.0]}, {"tol": 0}, "tol is 0"),
    ({0: 1}, {0: [1.0]}, {"prefer": "speed"}, "speed"),
    ({0: 1}, {0: [1.0]}, {"head_size": 0}, "head_size"),
    ({0: 1}, {0: [1.0]}, {"head_size": True}, "head_size"),
    ({0: 1}, None, {}, "write"),
    ({0: [1, 2]}, {0: [1.0]}, {}, "list"),
    ({0: 1}, {0: [float("inf")]}, {}, "infinite"),
]


@pytest.mark.parametrize(("reads", "writes", "options", "mentions"), REFUSALS)
def test_rules_that_make_no_sense_are_refused(reads, writes, options, mentions):
    with pytest.raises(qkv.QkvError, match=mentions):
        qkv.design.wire(np.eye(3), reads, writes, **options)


@pytest.mark.parametrize("gap", [1e-6, 1e-8])
def test_tokens_that_hardly_differ_are_wired_or_left_open_but_never_called_impossible(gap):
    X = np.array([[-1, 0, 0], [1, 0, 0], [0, gap, 0], [0, 0, 1.0]])
    try:
        w = qkv.design.wire(X, {3: 2}, {3: [1.0]})
    except qkv.QkvError as left_open:
        assert "no proof" in str(left_open)
    else:
        assert w.possible


def test_matrices_of_wrong_shape_are_refused_before_they_are_checked():
    with pytest.raises(qkv.QkvError, match="Q and K"):
        qkv.design.check_wiring(np.eye(2), np.ones((1, 2)), np.eye(2), np.eye(2), {0: 1}, {0: [1.0, 0]}, 1e-3)
    with pytest.raises(qkv.QkvError, match="V gives 1"):
        qkv.design.check_wiring(np.eye(2), np.eye(2), np.eye(2), np.ones((1, 2)), {0: 1}, {0: [1.0, 0]}, 1e-3)


@pytest.mark.parametrize(
    ("X", "reads", "tol", "options"),
    [
        (3 * np.eye(3), {0: {0: 0.7, 1: 0.3}, 1: {1: 0.7, 2: 0.3}, 2: {2: 0.6, 0: 0.4}}, 0.5, {"head_size": 1}),
        ([[1, 0, 1], [1 + 3e-10, 2e-10, 1 + 5e-10], [1 - 1e-9, 3e-10, 1]], {1: {0: 0.03, 1: 0.78, 2: 0.19}}, 0.1, {}),
    ],
)
def test_a_wiring_is_exact_only_if_it_reads_the_wanted_ratios(X, reads, tol, options):
    found = wire(X, reads, {i: [1.0] for i in reads}, tol, **options)
    assert found.possible and found.status == "within"
    assert wire(3 * np.eye(3), {0: 1}, {0: [1.0]}).status == "exact"


def test_tokens_beyond_the_range_of_products_are_refused():
    for size in (1e155, 1e-155):
        with pytest.raises(QkvError, match="largest entry"):
            wire(np.eye(3) * size, {0: 1}, {0: [1.0]})


def test_out_of_reach_is_not_said_of_what_a_matrix_that_is_large_for_the_shortest_reader_does():
    found = wire([[-4.780110693475956e-07], [-24671.580680645]], {0: {0: 1.0}}, {0: [1.0]}, 0.3)
    assert (
        found.possible
        and found.certificate.verify()
        and found.least_norm == pytest.approx(float(found.W.norm()), rel=1e-5)
    )


def test_zero_tokens_are_equal_tokens():
    found = wire([[0.0, 0], [0, 0]], {0: 1}, {0: [1.0]})
    assert found.status == "out of reach" and found.certificate.excludes_all and "same vector" in found.reasons[0]


def test_weights_in_reasons_are_not_rounded_to_what_could_be_done():
    found = wire([[1.0, 0], [1.0, 0], [0, 1.0]], {2: {0: 0.50004, 1: 0.49996}}, {2: [1.0]}, 1e-9)
    assert "0.50004 of 0 and 0.49996 of 1" in found.reasons[0]


def test_cards_name_tokens_by_their_labels():
    found = wire([[3.0, 0], [0, 3.0]], {"b": "a"}, {"b": [1.0]}, labels=["a", "b"])
    assert found.card().rows[0][0] == "b" and found.rules == (1,)
