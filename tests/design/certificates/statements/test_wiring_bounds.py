"""Wirings verified in float64: against ball arithmetic, with masks and sequences, and corrupted ones refused."""

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx

import qkv
from qkv.design.certificates import Certificate
from qkv.design.certificates.statements import no_wiring, wiring
from qkv.design.certificates.statements import wiring_bounds as bounds
from qkv.design.certificates.statements.rules import Rules, parse_rules
from qkv.design.solvers.kernel_machine import SequenceRules, smallest_matrix

CAUSAL = "causal"


def rules_of(rng, n, causal):
    reads = {}
    for i in range(1, n):
        seen = np.arange(i + 1) if causal else np.arange(n)
        m = int(rng.integers(1, 4))
        w = rng.dirichlet(np.ones(m))
        chosen = rng.permutation(seen)[:m].tolist()
        reads[i] = chosen[0] if m == 1 or len(chosen) < m else dict(zip(chosen, (w / w.sum()).tolist(), strict=True))
    return reads


@pytest.mark.parametrize("seed", range(8))
def test_float64_bounds_contain_what_balls_compute(seed):
    rng = np.random.default_rng(seed)
    n, d, causal = 7, 4, bool(seed % 2)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 3) + 5 * (seed % 3)
    reads = rules_of(rng, n, causal)
    writes = {i: rng.standard_normal(3) for i in reads}
    Q, K, V = rng.standard_normal((2, d)), rng.standard_normal((2, d)), rng.standard_normal((3, d))
    scale = np.abs((X @ Q.T) @ (X @ K.T).T).max()
    stated = qkv.design.check_wiring(X, Q / scale * 9, K, V, reads, writes, 0.9, mask=CAUSAL if causal else None)
    entries = int((np.asarray(stated.data["wanted"]) > 0).sum())
    multipliers = rng.standard_normal(entries)
    multipliers[np.unique(np.nonzero(stated.data["wanted"])[0], return_index=True)[1]] = rng.random(len(reads))
    data = {**stated.data, "multipliers": multipliers, "tol": 1e-9}
    parsed = wiring.WIRING.parse(data)
    claims = {name: [] for name in wiring.WIRING.senses}
    with ctx.workprec(128):
        balls, floats = (wiring.WIRING.measure(parsed, in_float64, claims) for in_float64 in (False, True))
    _compare(balls, floats)


def _compare(balls, floats):
    for name in ("distance", "output", "residual"):
        for ball, wide in zip(balls[name], floats[name], strict=True):
            assert wide.contains(ball) and float(wide.rad()) < 1e-9 * max(1.0, float(wide.mid()))
    if float(balls["norm_at_least"].mid()) > 0:
        assert floats["norm_at_least"] <= balls["norm_at_least"]
        assert float(floats["norm_at_least"].mid()) > float(balls["norm_at_least"].mid()) * (1 - 1e-9)


@pytest.mark.parametrize("causal", [False, True])
def test_a_large_wiring_is_verified_and_refused_when_it_is_changed(causal):
    rng = np.random.default_rng(0)
    n, d = 96, 48
    X = rng.standard_normal((n, d))
    reads = {i: (i - 1 if causal else (i + 1) % n) for i in range(1, n)}
    start = time.perf_counter()
    made = qkv.design.wire(X, reads, {i: X[i, :3] for i in reads}, tol=1e-2, mask=CAUSAL if causal else None)
    design = time.perf_counter() - start
    certificate = made.certificate
    start = time.perf_counter()
    assert made.status == "exact" and certificate.verify()
    assert time.perf_counter() - start < design
    assert made.least_norm == pytest.approx(float(made.W.norm()), rel=1e-6)
    data, claims = dict(certificate.data), dict(certificate.claims)
    for name, factor in (("Q", 0.99), ("K", 0.9), ("V", 1.01), ("X", 0.99)):
        assert not Certificate("wiring", data | {name: data[name] * factor}, claims).verify(), name
    for name, factor in (("norm_at_least", 1 + 1e-5), ("distance", 1 - 1e-6), ("output", 1 - 1e-6)):
        assert not Certificate("wiring", data, claims | {name: np.asarray(claims[name]) * factor}).verify(), name
    if causal:
        without = Certificate("wiring", {k: v for k, v in data.items() if k != "mask"}, claims)
        assert not without.verify()


def test_sequences_are_verified_each_by_itself():
    rng = np.random.default_rng(1)
    vocabulary, positions = rng.standard_normal((9, 16)), rng.standard_normal((6, 16))
    texts = [rng.integers(0, 9, 6) for _ in range(5)]
    parts = [vocabulary[t] + positions for t in texts]
    mask = np.tril(np.ones((6, 6), dtype=bool))
    found = smallest_matrix([SequenceRules.of(x, None, [None, *range(5)], mask) for x in parts], 0.04)
    u, s, vt = np.linalg.svd(found.W)
    rules = [6 * b + i for b in range(5) for i in range(1, 6)]
    data = {
        "X": np.vstack(parts), "Q": u.T * np.sqrt(s)[:, None], "K": vt * np.sqrt(s)[:, None], "rules": rules,
        "items": [r - 1 for r in rules], "offsets": list(range(26)), "weights": np.ones(25), "mask": CAUSAL,
        "lengths": [6] * 5, "multipliers": np.concatenate(found.multipliers), "tol": 0.041,
    }  # fmt: skip
    made = Certificate.issue("wiring", data)
    assert made.verify() and max(made.claims["distance"]) <= 0.04 * (1 + 1e-7)
    assert made.statement.startswith("in the 5 given sequences, under a causal mask, each rule's token reads")
    assert 0.99 * found.norm < made.claims["norm_at_least"] <= found.norm
    joined = {k: v for k, v in data.items() if k != "lengths"}
    assert not Certificate("wiring", joined, made.claims).verify()
    across = data | {"items": [0] * 25}
    assert "does not see" in Certificate("wiring", across, made.claims).verify().why


@pytest.mark.parametrize("seed", range(6))
def test_exclusions_in_float64_are_below_those_in_balls(seed):
    rng = np.random.default_rng(seed)
    n, d = 6, 3
    X = rng.standard_normal((n, d))
    wanted = np.zeros((2, n))
    wanted[0, 3] = 1.0
    wanted[1, [1, 4]] = 0.3, 0.7
    data = {"X": X, "rules": [0, 2], "wanted": wanted, "tol": 0.05, "multipliers": wanted * rng.random((2, 1)),
            "mix": rng.dirichlet(np.ones(n), 2)}  # fmt: skip
    parsed = no_wiring.NO_WIRING_WITHIN.parse(data)
    claims = {"norm_at_least": []}
    with ctx.workprec(128):
        exact = no_wiring.NO_WIRING_WITHIN.measure(parsed, False, claims)["norm_at_least"]
    low = no_wiring.NO_WIRING_WITHIN.measure(parsed, True, claims)["norm_at_least"]
    if exact > 0:
        assert low <= exact and float(low.mid()) > float(exact.mid()) * (1 - 1e-9)
    else:
        assert not low > 0


# Each function by itself, on numbers that can be worked out by hand. Error bounds are compared with the model of
# arithmetic that the module states: so many roundings of u = 2^-53 each, counted once more for the bound itself.


def roundings(k):
    """Bound on the relative error of k roundings, in fractions."""
    n = Fraction(k + 1, 2**53)
    return float(n / (1 - n))


UNDERFLOW = 2.0**-940
TWO_TEXTS = {
    "rules": [4, 0, 2, 1], "items": [3, 4, 1, 0, 1, 2], "offsets": [0, 2, 3, 5, 6],
    "weights": [0.25, 0.75, 1, 0.5, 0.5, 1], "lengths": [3, 2],
}  # fmt: skip


def tile_of(wanted, seen=None, start=0, rows=None, readers=None):
    """A tile with these wanted weights, all tokens seen unless said otherwise."""
    wanted = np.array(wanted, dtype=float)
    seen = np.ones(wanted.shape, dtype=bool) if seen is None else np.array(seen, dtype=bool)
    rows = np.arange(len(wanted)) if rows is None else np.array(rows)
    readers = np.arange(len(wanted)) if readers is None else np.array(readers)
    return bounds.Tile(rows, readers, start, start + wanted.shape[1], wanted, seen & (wanted == 0), seen)


def test_limits_are_what_they_are_said_to_be():
    assert bounds.TILE_NUMBERS * 8 == 16 * 2**20
    assert bounds.UNDERFLOW == UNDERFLOW >= 2.0**20 * 2.0**-1022
    assert np.exp(-bounds.MAX_EXPONENT) == 0 and bounds.MAX_EXPONENT < 1000


@pytest.mark.parametrize(("numbers", "pieces"), [(2**21, [3, 1]), (6, [2, 1, 1]), (1, [1, 1, 1, 1]), (5, [1, 1, 1, 1])])
def test_tiles_hold_every_rule_once_with_its_weights(monkeypatch, numbers, pieces):
    monkeypatch.setattr(bounds, "TILE_NUMBERS", numbers)
    rules = parse_rules({name: np.array(value) for name, value in TWO_TEXTS.items()}, 5)
    found = list(bounds.tiles(rules))
    assert [len(tile.rows) for tile in found] == pieces
    table = np.array([[0, 0, 0, 0.25, 0.75], [0, 1, 0, 0, 0], [0.5, 0.5, 0, 0, 0], [0, 0, 1, 0, 0]])
    order = []
    for tile in found:
        order += tile.rows.tolist()
        assert tile.readers.tolist() == [[4, 0, 2, 1][row] for row in tile.rows]
        start, stop = (3, 5) if tile.rows[0] == 0 else (0, 3)
        assert (tile.start, tile.stop) == (start, stop)
        assert tile.wanted.tolist() == table[tile.rows, start:stop].tolist()
        assert tile.seen.all() and tile.rest.tolist() == (tile.wanted == 0).tolist()
    assert order == [1, 2, 3, 0]


def test_what_the_mask_hides_is_not_among_the_rest():
    data = {"rules": [1], "wanted": [[1.0, 0, 0]], "mask": CAUSAL}
    (tile,) = bounds.tiles(parse_rules(data, 3))
    assert tile.seen.tolist() == [[True, True, False]] and tile.rest.tolist() == [[False, True, False]]


@pytest.mark.parametrize(
    ("given", "units", "exponent"),
    [([3.0, -5.0], [0.75, -1.25], 2), ([1.0], [1.0], 0), ([0.25, -0.1], [1.0, -0.4], -2), ([0.0], [0.0], -1)],
)
def test_arrays_are_scaled_to_entries_below_2(given, units, exponent):
    found, power = bounds.scaled(np.array(given))
    assert found.tolist() == units and power == exponent


def test_norms_are_bounded_with_room_for_their_roundings():
    assert bounds.norms(np.array([[3.0, 4.0], [0.0, -1.0]])).tolist() == [5.0, 1.0]
    room = 2 * roundings(2 + 4)
    assert bounds._largest_norm(np.array([[0.0, 1.0], [3.0, 4.0]])) - 5 == pytest.approx(5 * room, abs=2.0**-50)
    rows, lengths = bounds.centred(np.array([[1.0, 0.0], [3.0, 0.0]]))
    assert rows.tolist() == [[-1.0, 0.0], [1.0, 0.0]]
    assert (lengths - 1).tolist() == pytest.approx([room, room], abs=2.0**-53)
    assert bounds.centred(np.zeros((2, 3)))[1].tolist() == [UNDERFLOW, UNDERFLOW]


def test_scores_are_those_of_the_matrices_and_their_errors_count_every_rounding():
    """Width 2, three rows of Q and K, and exponents of 1, 2 and -1 of X, Q and K."""
    X = np.array([[2.0, 0.0], [0.0, 3.0], [-2.0, 1.0]])
    Q = np.array([[4.0, 1.0], [0.0, -2.0], [1.0, 5.0]]) / 16
    K = np.array([[0.5, 0.25], [-0.5, 0.75], [0.0, 0.5]]) / 16
    readings = bounds.Readings(X, Q, K)
    assert (readings.exponent, readings.score_exponent) == (1, 2 - 2 - 5)
    tile = tile_of([[0, 1.0, 0], [1.0, 0, 0]], [[1, 1, 1], [1, 1, 0]], readers=[2, 1])
    raw, relative = readings.raw(tile)
    x, y = X / 2, (X - X.mean(axis=0)) / 2
    q, k = Q * 4, K * 32
    scores = np.array([[(Q @ X[i]) @ (K @ (X[j] - X.mean(axis=0))) for j in range(3)] for i in (2, 1)])
    scores[1, 2] = -np.inf
    lowest = [max(scores[0]) - min(scores[0]), max(scores[1, :2]) - min(scores[1, :2])]
    assert raw == pytest.approx(np.exp(scores - scores.max(axis=1, keepdims=True)), rel=1e-14, abs=0)
    assert raw[1, 2] == 0
    key = max(np.linalg.norm(k @ v) for v in y)
    key_spread = max(np.linalg.norm(np.abs(k) @ np.abs(v)) for v in y)
    for row, i in enumerate((2, 1)):
        size, spread = np.linalg.norm(q @ x[i]), np.linalg.norm(np.abs(q) @ np.abs(x[i]))
        error = roundings(3 + 2) * size * key
        error += roundings(2 + 4) * (spread * (key + key_spread) + key_spread * size)
        expected = 2 * error * 2.0**-5 + lowest[row] * 2.0**-53 + 16 * 2.0**-53
        assert relative[row] == pytest.approx(expected, rel=1e-9, abs=0)


def test_tokens_are_centred_in_each_sequence():
    X = np.array([[1.0], [2.0], [4.0], [6.0], [7.0]])
    readings = bounds.Readings(X, np.eye(1), np.eye(1))
    first, second = tile_of([[1.0, 0]]), tile_of([[1.0, 0, 0]], start=2)
    assert (4 * readings.tokens(first)).ravel().tolist() == [-0.5, 0.5]
    assert (4 * readings.tokens(second)).ravel().tolist() == pytest.approx([4 - 17 / 3, 6 - 17 / 3, 7 - 17 / 3])
    assert (4 * readings.tokens(first)).ravel().tolist() == [-0.5, 0.5]
    assert 4 * readings.lengths == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(("factor", "known"), [(2.0**7, True), (2.0**8, False)])
def test_scores_that_are_not_known_well_enough_bound_nothing(factor, known):
    """Scores of 2^34 times the factor have an error of 50 roundings of them, which must stay below 2^-6."""
    size = 2.0**17
    X, Q = np.array([[size, 0.0], [-size, 0.0]]), np.array([[1.0, 0.0]]) * factor
    _, relative = bounds.Readings(X, Q, np.array([[1.0, 0.0]])).raw(tile_of([[1.0, 0.0]]))
    assert np.isfinite(relative).all() == known
    exact = 2 * (roundings(3) + 3 * roundings(6)) * size * size * factor + 750 * 2.0**-53
    assert (exact < 2.0**-6) == known
    if known:
        assert relative[0] == pytest.approx(np.expm1(exact) + 16 * 2.0**-53, rel=1e-9, abs=0)


U = 2.0**-53


def test_distances_and_their_errors_of_weights_worked_out_by_hand():
    """Weights 1/4, 1/4, 1/2 of wanted 1/2, 0, 1/2: a quarter leaks. Then 1/8, 7/8 of 1, 0, and 3/4, 1/4 of 1/4, 3/4."""
    relative = np.array([2.0**-50])
    kappa = 2.1 * 2.0**-50 + 2 * roundings(3 + 4)
    alpha, known, value, error = bounds.distances(tile_of([[0.5, 0, 0.5]]), np.array([[1.0, 1.0, 2.0]]), relative)
    assert alpha.tolist() == [[0.25, 0.25, 0.5]] and value.tolist() == [0.25]
    assert known.tolist() == pytest.approx([kappa], rel=1e-12, abs=0)
    # The item that has too little is not counted, nor is its error; that of the other is 2 kappa/2.
    expected = 2 * kappa * 0.25 + 2 * kappa * 0.5 + 2 * roundings(2 + 4) + 4 * roundings(3 + 8) * 0.25
    assert error.tolist() == pytest.approx([expected], rel=1e-12, abs=0)

    kappa = 2.1 * 2.0**-50 + 2 * roundings(2 + 4)
    *_, value, error = bounds.distances(tile_of([[1.0, 0]]), np.array([[1.0, 7.0]]), relative)
    assert value.tolist() == [0.875]
    assert error.tolist() == pytest.approx([2 * kappa * 0.875 + 4 * roundings(2 + 8) * 0.875], rel=1e-12, abs=0)

    *_, value, error = bounds.distances(tile_of([[0.25, 0.75]]), np.array([[3.0, 1.0]]), relative)
    assert value.tolist() == [0.5]
    expected = 2 * (kappa * 0.75 + 2 * U * 0.5) + 2 * roundings(2 + 4) + 4 * roundings(2 + 8) * 0.5
    assert error.tolist() == pytest.approx([expected], rel=1e-12, abs=0)


def test_wanted_weights_that_sum_to_a_little_more_count_half_of_it():
    more = 2.0**-31
    *_, value, _ = bounds.distances(tile_of([[0.5 + more, 0.5]]), np.array([[1.0, 1.0]]), np.array([0.0]))
    assert value.tolist() == [more / 2]  # the distance of 1/2, 1/2 from them
    *_, value, _ = bounds.distances(tile_of([[0.0, 1.0]]), np.array([[0.0, 1.0]]), np.array([0.0]))
    assert value.tolist() == [0.0]


def test_outputs_and_their_errors_worked_out_by_hand():
    """Tokens 1, 0 and 0, 1 and 1, 1, of which V makes 3, 4 and 0, 8 and their sum, in units of 2^(1 + 3)."""
    x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    V = np.array([[3.0, 0.0], [4.0, 8.0]])
    outputs = bounds.Outputs(x, 1, V, np.array([[0.0, 0.0], [16.0, 32.0], [0.0, 16.0]]))
    assert outputs.exponent == 4
    tile = tile_of([[0, 0, 1.0], [1.0, 0, 0]], start=1, rows=[2, 0], readers=[1, 2])
    relative = np.array([2.0**-50, 2.0**-49])
    weights = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    value, error = outputs.distance(tile, weights, relative)
    units = V / 8
    values = np.array([[0.375, 0.5], [0.0, 1.0], [0.375, 1.5]])
    off = np.array([values[:2].mean(axis=0) - [0, 1], values[2]])
    assert value == pytest.approx(np.linalg.norm(off, axis=1), rel=1e-15, abs=0)
    sizes = np.linalg.norm(values, axis=1)
    own = 2 * roundings(2 + 4) * np.linalg.norm(x[1:] @ np.abs(units).T, axis=1)
    for row in range(2):
        expected = (relative[row] + 2 * roundings(3 + 4)) * (weights[row] @ sizes) + weights[row] @ own
        assert error[row] == pytest.approx(2 * expected + 4 * roundings(2 + 8) * value[row], rel=1e-12, abs=0)
    silent = bounds.Outputs(np.zeros((1, 1)), 0, np.zeros((1, 1)), np.zeros((1, 1)))
    assert silent.distance(tile_of([[1.0]]), np.zeros((1, 1)), 0.0)[1].tolist() == [UNDERFLOW]
    assert silent.errors.tolist() == [UNDERFLOW]


def added(coefficients, doubt=(0.0,), b=(3.0,), b_error=(0.0,), exponent=0, rules=5):
    """The bound of rules of the first of two tokens (3, 4) and (-1, 0)."""
    x = np.array([[3.0, 4.0], [-1.0, 0.0]])
    bound = bounds.MatrixBound(x, exponent, rules)
    arrays = [np.array(v, dtype=float) for v in (coefficients, doubt, b, b_error)]
    tile = tile_of(np.zeros((len(arrays[0]), 2)), readers=[0] * len(arrays[0]))
    bound.add(tile, x, np.array([5.0, 1.0]), *arrays)
    return bound


def test_a_bound_on_matrices_is_the_quotient_of_the_sums():
    """x gᵀ for x = (3, 4) and g = (3, 4) - (-1, 0) = (4, 4) has norm 5·√32."""
    bound = added([[1.0, -1.0]])
    assert bound.total.tolist() == [[12.0, 12.0], [16.0, 16.0]] and bound.b == 3.0 == bound.b_size
    assert bound.at_least() == pytest.approx(3 / (5 * 32**0.5), rel=1e-12, abs=0)
    assert bound.at_least() < 3 / (5 * 32**0.5)
    assert added([[1.0, -1.0]], exponent=3).at_least() == pytest.approx(3 / (5 * 32**0.5) / 2**6, rel=1e-12, abs=0)
    twice = added([[1.0, -1.0], [0.0, -2.0]], [0.0, 0.0], [3.0, -1.0], [0.0, 0.0])
    assert twice.total.tolist() == [[18.0, 12.0], [24.0, 16.0]] and (twice.b, twice.b_size) == (2.0, 4.0)
    one = [np.array(v, dtype=float) for v in ([[1, 0]], [0], [1], [0])]
    twice.add(tile_of([[0, 0.0]], readers=[1]), np.eye(2), np.ones(2), *one)
    assert twice.total.tolist() == [[17.0, 12.0], [24.0, 16.0]] and (twice.b, twice.b_size) == (3.0, 5.0)


def test_the_errors_of_a_bound_on_matrices_count_every_rounding():
    """|c|·lengths is 6 and |g| is √32; the reader has norm 5."""
    terms = 2 * roundings(2 * 2 + 40) * 6 + 2 * roundings(2 * 5 + 40) * 32**0.5
    assert added([[1.0, -1.0]]).error == pytest.approx(2 * 5 * terms, rel=1e-12, abs=0)
    assert added([[1.0, -1.0]], [2.0**-45]).error == pytest.approx(2 * 5 * (terms + 2 * 2.0**-45), rel=1e-12, abs=0)
    assert added([[0.0, 0.0]]).error == pytest.approx(10 * UNDERFLOW, rel=1e-9, abs=0)
    assert added([[1.0, -1.0]], b_error=[0.5]).b_error == 1.0
    both = added([[1.0, -1.0]])
    both.add(tile_of([[0, 0.0]]), np.zeros((2, 2)), np.zeros(2), np.zeros((1, 2)), np.ones(1), np.zeros(1), np.ones(1))
    assert both.error == pytest.approx(2 * 5 * (terms + 2), rel=1e-12, abs=0) and both.b_error == 2.0


def test_a_bound_on_matrices_takes_off_every_error():
    bound = added([[1.0, -1.0]])
    bound.error, bound.b_error = 0.5, 0.25
    assert bound.at_least() == pytest.approx((3 - 0.5) / (5 * 32**0.5 + 1), rel=1e-12, abs=0)
    bound.error, bound.b_error, bound.b_size = 0.0, 0.0, 2.0**45
    assert bound.at_least() == pytest.approx((3 - 4 * roundings(50) * 2.0**45) / (5 * 32**0.5), rel=1e-12, abs=0)
    exact = added([[1.0, 0.0]])  # x gᵀ has norm 25
    exact.error = exact.b_size = 0.0
    low = (1 - 16 * U) / (1 + 2 * roundings(4 + 8))
    assert 1 - exact.at_least() * 25 / 3 == pytest.approx(1 - low, abs=4 * U)
    none = bounds.MatrixBound(np.zeros((1, 1)), 0, 0)
    none.b = 2.0**-930
    assert none.at_least() == pytest.approx(2.0**10 - 1, rel=1e-9, abs=0)
    none.b = 2.0**-941
    assert math.isnan(none.at_least())  # underflow may have made all of it


@pytest.mark.parametrize("b", [0.0, -1.0, math.nan, math.inf])
def test_a_right_side_that_is_not_above_0_bounds_nothing(b):
    assert math.isnan(added([[1.0, -1.0]], b=[b]).at_least())


def test_what_overflows_bounds_nothing():
    assert math.isnan(added([[1.0, -1.0]], exponent=-600).at_least())
    assert math.isnan(added([[math.inf, -1.0]]).at_least())
    assert added([[1.0, -1.0]], exponent=-500).at_least() > 1e300


def ratios_of(weights, multipliers, raw, tol=0.25, seen=None):
    """`exact_ratios` of one rule that reads the first tokens with these weights."""
    m = len(raw)
    wanted = np.zeros((1, m))
    wanted[0, : len(weights)] = weights
    tile = tile_of(wanted, None if seen is None else [seen])
    items = np.arange(len(weights))
    offsets, starts = np.array([0, len(weights)]), np.array([0, m])
    rules = Rules(np.array([0]), offsets, items, np.array(weights), starts, None)
    return bounds.exact_ratios(tile, rules, np.array([raw], dtype=float), np.array(multipliers), tol)


def test_the_inequality_of_exact_ratios_worked_out_by_hand():
    """Ratios 3 : 1 with ν = 2, a leak of at most 1/4 with factor 4, and p = 1/4, 3/4 on the others."""
    coefficients, doubt, b, b_error = ratios_of([0.75, 0.25], [4.0, 2.0], [9.0, 7.0, 1.0, 3.0])
    assert coefficients.tolist() == [[4.0 - 2.0, 2.0, -1.0, -3.0]]
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    edge = math.log(0.25 / 0.75)
    assert b.tolist() == pytest.approx(
        [4 * (math.log(0.75) + entropy - edge) + 2 * math.log(0.25 / 0.75)], rel=1e-14, abs=0
    )
    size = 4 * (-math.log(0.75) + entropy - edge + 1) + 2 * (-math.log(0.25) - math.log(0.75))
    assert b_error.tolist() == pytest.approx([2 * roundings(4 + 2 + 80) * size], rel=1e-12, abs=0)
    assert doubt.tolist() == pytest.approx([roundings(2 + 4) * (4 + 2)], rel=1e-12, abs=0)


def test_the_inequality_of_one_wanted_token_has_no_ratios():
    coefficients, doubt, b, b_error = ratios_of([1.0], [4.0], [9.0, 1.0, 1.0])
    assert coefficients.tolist() == [[4.0, -2.0, -2.0]] and doubt.tolist() == [0.0]
    assert b.tolist() == pytest.approx([4 * (math.log(2) + math.log(3))], rel=1e-14, abs=0)
    assert b_error.tolist() == pytest.approx([2 * roundings(3 + 1 + 80) * 4 * (math.log(6) + 1)], rel=1e-12, abs=0)
    hidden = ratios_of([1.0], [4.0], [9.0, 1.0, 1.0], seen=[True, True, False])
    assert hidden[0].tolist() == [[4.0, -4.0, 0.0]] and hidden[2] == pytest.approx([4 * math.log(3)], rel=1e-14, abs=0)


def test_a_rule_that_wants_all_that_it_sees_has_no_leak():
    coefficients, doubt, b, _ = ratios_of([0.75, 0.25], [4.0, -2.0], [9.0, 7.0])
    assert coefficients.tolist() == [[2.0, -2.0]] and doubt == pytest.approx([roundings(6) * 2], rel=1e-12, abs=0)
    assert b.tolist() == pytest.approx([2 * math.log(3)], rel=1e-14, abs=0)


def test_other_tokens_without_any_weight_bound_nothing():
    assert np.isnan(ratios_of([1.0], [4.0], [9.0, 0.0, 0.0])[2]).all()
    assert not np.isnan(ratios_of([1.0], [4.0], [9.0, 0.0, 1.0])[2]).any()


def test_wanted_weights_that_do_not_sum_to_1_are_divided_by_their_sum():
    more = 1 + 2.0**-31
    b = ratios_of([0.5 * more, 0.5 * more], [1.0, 0.0], [1.0, 1.0, 1.0])[2]
    assert b.tolist() == pytest.approx([math.log(0.5) + math.log(3)], abs=4e-16)


def within(wanted, mix, multipliers, tol=0.125):
    tables = [np.array([rows], dtype=float) for rows in (wanted, mix, multipliers)]
    return bounds.within_tol(tile_of(tables[0]), tables[1], tables[2], tol)


def test_the_inequality_within_tol_worked_out_by_hand():
    """λ = 3, 1 on weights 3/4, 1/4, and the mix 1 : 3 on the first and the last token."""
    coefficients, doubt, b, b_error = within([0.75, 0.25, 0.0], [0.5, 0.0, 1.5], [3.0, 1.0, 0.0])
    assert coefficients.tolist() == [[3.0 - 1.0, 1.0, -3.0]]
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    gain = 3 * math.log(0.75) + math.log(0.25)
    corners = [3 * math.log(1 - 0.125 / 0.75), math.log(1 - 0.125 / 0.25)]
    assert corners[1] < corners[0]
    assert b.tolist() == pytest.approx([4 * entropy + gain + corners[1]], rel=1e-13, abs=0)
    assert doubt.tolist() == pytest.approx([roundings(3 + 12) * 2 * 4], rel=1e-12, abs=0)
    size = 4 * (entropy + 1) - gain - corners[1]
    assert b_error.tolist() == pytest.approx([2 * roundings(3 + 80) * size], rel=1e-9, abs=0)


def test_the_worst_corner_counts_the_errors_of_what_is_allowed():
    """With tol just below the wanted weight, log(1 - tol/w) changes much by a rounding."""
    z = 1 - 2.0**-40
    *_, b, _ = within([1.0, 0.0], [0.0, 1.0], [3.0, 0.0], tol=z)
    z_error = 2 * (roundings(2 + 8) + 4 * U * z)
    room = 1 - z - 2 * z_error
    corner = 3 * math.log(2.0**-40)
    error = 2 * 3 * z_error / room + 2 * roundings(40) * abs(corner)
    assert corner - b[0] == pytest.approx(error, rel=1e-9, abs=0)
    half = within([0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [3.0, 0.0, 0.0], tol=0.5 * z)[2]
    z_error = 2 * (roundings(3 + 8) / 0.5 + 4 * U * z)
    error = 2 * 3 * z_error / (1 - z - 2 * z_error) + 2 * roundings(40) * abs(corner)
    assert 3 * math.log(0.5) + corner - half[0] == pytest.approx(error, rel=1e-6, abs=0)


@pytest.mark.parametrize("tol", [0.5, 0.75, 0.5 * (1 - 2.0**-49)])
def test_a_multiplier_on_a_weight_that_may_be_lost_bounds_nothing(tol):
    *_, b, _ = within([0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], tol)
    assert not b[0] > -math.inf
    assert within([0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0], tol)[2].tolist() == [0.0]


def test_what_may_be_lost_grows_by_half_of_what_the_weights_exceed_1():
    more = 2.0**-10
    *_, b, _ = within([1 + more, 0.0], [0.0, 1.0], [1.0, 0.0], tol=0.25)
    assert b.tolist() == pytest.approx([math.log(1 + more - (0.25 + more / 2))], abs=1e-14)


def test_a_rule_without_multipliers_adds_nothing():
    found = within([1.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    assert [np.asarray(part).tolist() for part in found] == [[[0.0, 0.0]], [0.0], [0.0], [0.0]]


def test_balls_stand_around_their_numbers():
    found = bounds.balls(np.array([1.5, math.inf, 2.0]), np.array([0.25, 1.0, math.nan]), 3)
    assert float(found[0].mid()) == 12.0 and 2.0 <= float(found[0].rad()) < 2.0 + 1e-6
    assert found[1].is_nan() and found[2].is_nan()
    assert bounds.balls(np.array([1.5]), np.array([0.0]))[0] == 1.5


@pytest.mark.parametrize(
    ("low", "claims", "proves"),
    [
        (2.0, [], True), (2.0, [2.0], True), (2.0, [1.0, 2.0], True), (2.0, [1.0, math.nextafter(2.0, 3.0)], False),
        (0.0, [], False), (5e-324, [], True), (-1.0, [-2.0], False), (math.inf, [1.0], False), (math.nan, [], False),
    ],
)  # fmt: skip
def test_a_lower_bound_is_used_only_where_it_proves_the_claim(low, claims, proves):
    found = bounds.lower_bound_ball(low, claims)
    assert found == low if proves else found.is_nan()
