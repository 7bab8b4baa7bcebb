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


def test_a_rule_that_breaks_the_mask_is_refused_by_name():
    options = {"labels": ["a", "b", "c"], "mask": "causal"}
    with pytest.raises(QkvError, match="token a should read token b, which is hidden from it by the causal mask"):
        wire(np.eye(3), {"a": "b"}, {"a": [1.0]}, **options)
    with pytest.raises(QkvError, match="which is hidden from it by the mask, and 1 more"):
        wire(np.eye(3), {0: 1, 1: 2}, {0: [1.0], 1: [1.0]}, mask=np.eye(3, dtype=bool))
    for mask, says in (("casual", "casual"), (np.ones((2, 2), dtype=bool), "shape"), (np.ones((3, 3)), "float64")):
        with pytest.raises(QkvError, match=says):
            wire(np.eye(3), {0: 0}, {0: [1.0]}, mask=mask)


@pytest.mark.parametrize("prefer", ["norm", "rank"])
def test_a_masked_token_is_not_read_and_does_not_count(prefer):
    X = np.random.default_rng(2).standard_normal((5, 4))
    found = wire(
        X, {i: max(0, i - 1) for i in range(5)}, {i: X[i] for i in range(5)}, 1e-2, prefer=prefer, mask="causal"
    )
    scores = np.where(np.tril(np.ones((5, 5), dtype=bool)), X @ found.W.numpy() @ X.T, -np.inf)
    weights = softmax(scores, axis=1)
    assert all(weights[i, max(0, i - 1)] >= 0.99 for i in range(5)) and found.certificate.verify()
    assert found.certificate.statement.startswith("under a causal mask, each rule's token")


def test_equal_readers_may_differ_where_they_see_different_tokens():
    X = np.random.default_rng(3).standard_normal((4, 3))[[0, 1, 0, 2]]
    assert wire(X, {0: 0, 2: 1}, {0: [1.0], 2: [0.0]}, 1e-2, mask="causal").possible
    plain = wire(X, {0: 0, 2: 1}, {0: [1.0], 2: [0.0]}, 1e-2)
    assert plain.status == "out of reach" and "same vector" in plain.reasons[0]


def test_the_norm_is_bounded_from_below_and_no_smaller_matrix_follows_the_rules():
    X = np.random.default_rng(5).standard_normal((6, 5))
    single = wire(X, {0: 1, 3: 2}, {0: [1.0], 3: [2.0]}, 1e-2)
    assert "read as wanted to within 0.01 in total variation has a norm of at least" in single.certificate.statement
    assert 1 - 1e-6 < single.least_norm / float(single.W.norm()) <= 1
    assert "norm of every such W" in str(single.card().facts) and single.to_json()["least_norm"] == single.least_norm
    blend = wire(X, {0: {1: 0.5, 2: 0.5}}, {0: [1.0]}, 1e-2)
    assert "read in the exact ratios with leaks of at most 0.01" in blend.certificate.statement


def test_more_than_64_tokens_are_wired_and_the_nuclear_norm_refuses_them():
    X = np.random.default_rng(6).standard_normal((70, 40))
    reads, writes = {i: (i + 3) % 70 for i in range(70)}, {i: [1.0] for i in range(70)}
    seen = []
    found = wire(X, reads, writes, 1e-2, progress=lambda done, total: seen.append((done, total)))
    assert found.status == "exact" and found.certificate.verify() and seen[-1] == (100, 100)
    assert len(found.card().rows) == 64 and found.card().rows[-1][0] == "… 7 more"
    with pytest.raises(QkvError, match="at most 64 tokens fit the conic program for the nuclear norm"):
        wire(X, reads, writes, 1e-2, prefer="rank")
    with pytest.raises(
        QkvError, match=r"rank 40, and cut to 2 .* Give a head size of 40, or follow fewer rules with one head"
    ):
        wire(X, reads, writes, 1e-2, head_size=2)
    with pytest.raises(QkvError, match="of the 70 tokens with"):
        wire(X, reads, writes, 1e-2, memory_limit=4e5)


def test_many_contradictory_rules_are_proved_contradictory_and_named():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((80, 12))
    X[40] = 0.5 * (X[41] + X[42])  # token 5 cannot read 40, which lies between two others
    reads = {i: (i + 1) % 12 for i in range(5)} | {5: 40}
    found = wire(X, reads, {i: [1.0] for i in reads}, 1e-2, labels=[f"t{i}" for i in range(80)])
    assert found.status == "out of reach" and found.certificate.verify()
    assert "the rule of token t5 cannot be followed" in found.reasons[0]


def planted(seed):
    """Rules that a random W follows, with total variations just below tol: items are dropped, and weight is moved."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    X, W = rng.standard_normal((n, d)), rng.standard_normal((d, d)) * 10 ** rng.uniform(-0.5, 1.2)
    tol, reads = 10 ** rng.uniform(-3, -0.3), {}
    for i in rng.permutation(n)[: int(rng.integers(1, min(n, 3) + 1))]:
        alpha = softmax(X[i] @ W @ X.T)
        w, dropped = alpha.copy(), 0.0
        for j in np.argsort(alpha)[:-1]:
            if dropped + w[j] > tol * rng.uniform(0.3, 1):
                break
            dropped, w[j] = dropped + w[j], 0.0
        kept = np.flatnonzero(w)
        w[rng.choice(kept)] += dropped
        if len(kept) > 1:
            a, b = rng.permutation(kept)[:2]
            moved = min(0.98 * (tol - dropped), 0.9 * w[a])
            w[a], w[b] = w[a] - moved, w[b] + moved
        w = np.where(w < 1e-9, 0.0, w) / w[w >= 1e-9].sum()
        if 0.5 * np.abs(w - alpha).sum() > 0.9999 * tol:
            return None
        reads[int(i)] = {int(j): float(w[j]) for j in np.flatnonzero(w)}
    return X, W, reads, tol


def planted_errors(seeds):
    """Rules that were not followed although a W follows them, and bounds on norms that this W refutes."""
    wrong = []
    for seed in seeds:
        if (case := planted(seed)) is None:
            continue
        X, W, reads, tol = case
        found = wire(X, reads, {i: [1.0] for i in reads}, tol)
        single = all(len(blend) == 1 for blend in reads.values())
        refuted = single and found.least_norm is not None and found.least_norm > np.linalg.norm(W) * (1 + 1e-9)
        if not found.possible or not found.certificate.verify() or refuted:
            wrong.append((seed, found.status, found.least_norm))
    return wrong


def test_rules_near_the_border_that_some_matrix_follows_are_wired():
    assert planted_errors(range(16)) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_rules_near_the_border_are_wired(part):
    assert planted_errors(range(100 * part, 100 * part + 100)) == []


@pytest.mark.parametrize("tokens", [np.ones((2, 2)), np.eye(2)], ids=["contradicting", "possible"])
def test_progress_rises_to_at_most_one_hundred_whatever_the_outcome(tokens):
    seen = []
    wire(tokens, {0: 1, 1: 0}, dict(enumerate(np.eye(2))), progress=lambda done, total: seen.append((done, total)))
    shares = [done for done, _ in seen]
    assert shares == sorted(shares) and all(0 <= done <= total == 100 for done, total in seen)


@pytest.mark.parametrize(
    ("tokens", "reads"),
    [
        ([[1, 1], [2, 1], [-1, -1], [-1, 1], [-1, 0]], {0: 3, 1: 1, 3: 2, 4: 3}),
        ([[-2, -1], [-1, 2], [1, -1], [1, 2], [2, 1]], {0: 0, 1: 3, 3: 0, 4: 2}),
    ],
)
def test_where_each_rule_reads_one_token_a_proof_for_exact_ratios_is_one_for_tol(tokens, reads):
    found = wire(tokens, reads, {i: [1.0] for i in reads})
    assert found.status == "out of reach" and "contradict each other" in found.reasons[0]
    assert found.certificate.verify() and "exact ratios only" not in found.card().title


@pytest.mark.parametrize("seed", range(12))
def test_a_long_token_that_no_rule_needs_makes_no_bound_look_large(seed):
    """W = s x_0 fᵀ with f·x_1 = 1 and 0 for the others follows the rule with a small norm, however long those are."""
    random = np.random.default_rng(seed)
    lengths = 10.0 ** random.choice([0, 0, 0, 9, 10, 11], (4, 1))
    x = np.diag([1.0, 1.0, 1.0, 1e10]) if seed == 0 else random.standard_normal((4, 5)) * lengths
    f = np.linalg.lstsq(x, np.eye(4)[1], rcond=None)[0]
    scores = 20 * f @ x.T
    if not np.allclose(scores, 20 * np.eye(4)[1], atol=1e-3):
        return
    try:
        found = qkv.design.wire(x, {0: 1}, {0: [1.0]}, tol=1e-2)
    except qkv.QkvError as refusal:
        assert "no proof" in str(refusal)
    else:
        assert found.possible or found.certificate.claims["norm_at_least"] <= 20 * np.linalg.norm(f) / np.linalg.norm(
            x[0]
        )
        assert found.status != "out of reach"
