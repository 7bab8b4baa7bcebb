"""The smallest W for rules of sequences: the conic program, its own bound, masks, batches, contradictions."""

import numpy as np
import pytest
from scipy.special import softmax

import qkv
from qkv.design.solvers import conic
from qkv.design.solvers.kernel_machine import SequenceRules, memory_needed, smallest_matrix


def conic_norm(X, reads, tol, mask=None):
    """The norm of the smallest W by the conic program over all entries of W."""
    n, d = X.shape
    rules = []
    for i, read in enumerate(reads):
        if read is None:
            continue
        blend = read if isinstance(read, dict) else {read: 1.0}
        rows = np.einsum("a,jb->jab", X[i], X).reshape(n, d * d)
        rest = [j for j in range(n) if j not in blend and (mask is None or mask[i, j])]
        rules.append(conic.Rule.of(rows, np.array(list(blend.values())), list(blend), rest, tol))
    found = conic.solve(rules, d * d)
    assert found.status == "solved"
    return np.linalg.norm(found.x)


def distances(X, W, reads, mask=None):
    """Total variation of every rule."""
    scores = X @ W @ X.T
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf), axis=1)
    out = []
    for i, read in enumerate(reads):
        if read is not None:
            wanted = np.zeros(len(X))
            blend = read if isinstance(read, dict) else {read: 1.0}
            wanted[list(blend)] = list(blend.values())
            out.append(0.5 * np.abs(weights[i] - wanted).sum())
    return np.array(out)


READS = [
    [1, 2, 3, 4, 0],
    [{1: 0.25, 2: 0.75}, None, 2, {0: 0.2, 1: 0.3, 4: 0.5}, 4],
    [0, 0, {0: 0.5, 1: 0.5}, 3, {1: 0.1, 2: 0.9}],
]


@pytest.mark.parametrize("reads", READS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_norm_is_that_of_the_conic_program_and_of_its_own_bound(reads, causal, seed):
    X = np.random.default_rng(seed).standard_normal((5, 6)) + 1
    mask = np.tril(np.ones((5, 5), dtype=bool)) if causal else None
    if causal:
        reads = [
            r if r is not None and max(r if isinstance(r, dict) else [r]) <= i else None for i, r in enumerate(reads)
        ]
        if not any(r is not None for r in reads[1:]):
            reads[4] = 1
    found = smallest_matrix([SequenceRules.of(X, None, reads, mask)], 0.01)
    assert found.status == "solved" and found.norm == pytest.approx(np.linalg.norm(found.W), rel=1e-12)
    assert found.norm == pytest.approx(conic_norm(X, reads, 0.01, mask), rel=1e-6)
    assert found.norm_at_least == pytest.approx(found.norm, rel=1e-8)
    assert distances(X, found.W, reads, mask).max() <= 0.01 * (1 + 1e-7)


def test_conjugate_gradients_and_the_dense_matrix_give_the_same(monkeypatch):
    X = np.random.default_rng(1).standard_normal((12, 9))
    rules = [SequenceRules.of(X, None, [(5 * i + 1) % 12 for i in range(12)])]
    dense = smallest_matrix(rules, 0.02)
    monkeypatch.setattr("qkv.design.solvers.augmented_lagrangian.MAX_DENSE_WORK", 0)
    sparse = smallest_matrix(rules, 0.02)
    monkeypatch.setattr("qkv.design.solvers.augmented_lagrangian.MAX_FACTOR", 0)
    plain = smallest_matrix(rules, 0.02)
    assert dense.status == sparse.status == plain.status == "solved"
    assert np.allclose(dense.W, sparse.W, atol=1e-7 * dense.norm) and np.allclose(
        dense.W, plain.W, atol=1e-7 * dense.norm
    )


def test_one_matrix_serves_many_sequences():
    """The optimality conditions over all sequences: W is a multiple of the sum of x_i g_iᵀ."""
    rng = np.random.default_rng(3)
    vocabulary, positions = rng.standard_normal((7, 12)), rng.standard_normal((6, 12))
    sequences, tol = [], 0.05
    for _ in range(4):
        X = vocabulary[rng.integers(0, 7, 6)] + positions
        mask = np.tril(np.ones((6, 6), dtype=bool))
        sequences.append(SequenceRules.of(X, None, [None, *range(5)], mask))
    found = smallest_matrix(sequences, tol)
    assert found.status == "solved"
    G = np.zeros((12, 12))
    for s, multipliers in zip(sequences, found.multipliers, strict=True):
        assert distances(s.queries, found.W, [None, *range(5)], s.mask).max() <= tol * (1 + 1e-7)
        assert (multipliers >= 0).all()
        for i, a, v in zip(s.readers, s.items, multipliers, strict=True):
            rest = [j for j in range(i + 1) if j != a]
            p = softmax((s.queries[i] @ found.W) @ s.keys[rest].T)
            G += v * np.outer(s.queries[i], s.keys[a] - p @ s.keys[rest])
    assert np.allclose(G / np.linalg.norm(G) * found.norm, found.W, atol=1e-7 * found.norm)


def test_multipliers_of_blends_give_the_matrix_and_its_norm():
    rng = np.random.default_rng(5)
    X, reads, tol = rng.standard_normal((6, 7)), [{1: 0.3, 4: 0.7}, None, {0: 0.2, 3: 0.5, 5: 0.3}, 1, 4, 5], 0.03
    found = smallest_matrix([SequenceRules.of(X, None, reads)], tol)
    G, b, at = np.zeros((7, 7)), 0.0, 0
    for i, read in enumerate(reads):
        if read is None:
            continue
        items = list(read) if isinstance(read, dict) else [read]
        w = list(read.values()) if isinstance(read, dict) else [1.0]
        leak, *ratios = found.multipliers[0][at : at + len(items)]
        at += len(items)
        rest = [j for j in range(6) if j not in items]
        p = softmax((X[i] @ found.W) @ X[rest].T)
        G += np.outer(X[i], leak * (X[items[0]] - p @ X[rest]) + ratios @ (X[items[1:]] - X[items[0]]))
        b += leak * (np.log(w[0]) - p @ np.log(p) - np.log(tol / (1 - tol))) + ratios @ np.log(np.array(w[1:]) / w[0])
    assert b / np.linalg.norm(G) == pytest.approx(found.norm, rel=1e-8)


def test_queries_and_keys_may_be_vectors_of_different_spaces():
    rng = np.random.default_rng(4)
    Q, K = rng.standard_normal((4, 3)), rng.standard_normal((6, 5))
    found = smallest_matrix([SequenceRules.of(Q, K, [5, 0, None, {1: 0.5, 2: 0.5}])], 0.1)
    weights = softmax(Q @ found.W @ K.T, axis=1)
    assert found.status == "solved" and found.W.shape == (3, 5)
    assert weights[0, 5] >= 0.9 - 1e-7 and weights[1, 0] >= 0.9 - 1e-7 and weights[3, 1:3].sum() >= 0.9 - 1e-7
    assert weights[3, 1] == pytest.approx(weights[3, 2], rel=1e-7)


def test_rules_that_contradict_each_other_have_multipliers_that_say_so():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    found = smallest_matrix([SequenceRules.of(X, None, [2, None, None])], 1e-3)
    assert found.status == "infeasible" and found.norm_at_least > 1e9


def test_a_limit_on_memory_says_what_would_fit():
    rules = [SequenceRules.of(np.eye(8), None, [0] * 8)] * 6
    assert memory_needed(rules[:3]) <= 55_000 < memory_needed(rules[:4])
    with pytest.raises(qkv.QkvError, match="the first 3 of the 6 sequences, which would fit"):
        smallest_matrix(rules, 0.1, memory_limit=55_000)
    big = np.random.default_rng(0).standard_normal((40, 4))
    with pytest.raises(qkv.QkvError, match=r"wire \d+ of the 40 tokens with \d+ rules, which would fit") as refusal:
        smallest_matrix([SequenceRules.of(big, None, [0] * 40)], 0.1, memory_limit=60_000)
    fits = int(str(refusal.value).split("or wire ")[1].split()[0])
    assert memory_needed([SequenceRules.of(big[:fits], None, [0] * fits)]) <= 60_000
    assert memory_needed([SequenceRules.of(big[: fits + 1], None, [0] * (fits + 1))]) > 60_000
    with pytest.raises(qkv.QkvError, match=r"Allow more memory\."):
        smallest_matrix(rules, 0.1, memory_limit=1000)


def test_progress_rises_to_the_end():
    seen = []
    X = np.random.default_rng(0).standard_normal((6, 6))
    smallest_matrix([SequenceRules.of(X, None, [1, 2, 3, 4, 5, 0])], 0.1, progress=lambda *a: seen.append(a))
    assert seen == sorted(seen) and seen[-1] == (100, 100)


@pytest.mark.parametrize(
    ("reads", "mask", "says"),
    [
        ([0], None, "1 entries"),
        ([5, None], None, "from 0 to 1"),
        ([{0: 0.5}, None], None, "sum to 1"),
        ([1, None], np.tril(np.ones((2, 2), dtype=bool)), "position 0 reads 1, which the mask hides"),
        ([1, None], np.ones((3, 2), dtype=bool), "shape"),
    ],
)
def test_rules_that_make_no_sense_are_refused(reads, mask, says):
    with pytest.raises(qkv.QkvError, match=says):
        SequenceRules.of(np.eye(2), None, reads, mask)


def test_sequences_without_rules_or_of_different_sizes_are_refused():
    none, other = SequenceRules.of(np.eye(2), None, [None, None]), SequenceRules.of(np.eye(3), None, [0, 1, 2])
    with pytest.raises(qkv.QkvError, match="no rule"):
        smallest_matrix([none], 0.1)
    with pytest.raises(qkv.QkvError, match="sizes"):
        smallest_matrix([none, other], 0.1)
