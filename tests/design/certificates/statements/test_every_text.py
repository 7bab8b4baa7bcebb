"""Statements about every text, against all texts one by one; false and malformed ones are refused."""

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from flint import arb
from scipy.special import softmax

from qkv.design.certificates import Certificate
from qkv.design.certificates.statements import every_text
from qkv.design.certificates.statements.base import InvalidCertificate
from qkv.design.certificates.statements.every_text import _matching_rows
from qkv.design.certificates.statements.score_tables import Rows
from qkv.design.certificates.statements.text_rules import targets


def weights(x, q, k):
    scores = (x @ q.T) @ (x @ k.T).T
    scores[~np.tri(len(x), dtype=bool)] = -np.inf
    return softmax(scores, axis=1)


def worst_of_all_texts(data):
    """The largest distance over every text that the statement covers, by running each of them."""
    e, p = np.asarray(data["tokens"]), np.asarray(data["positions"])
    sink = data.get("sink")
    silent = {*np.atleast_1d(data.get("excluded", [])).astype(int).tolist()}
    worst = 0.0
    for ids in itertools.product(range(len(e)), repeat=len(p)):
        if sink is not None and (ids[0] != sink or sink in ids[1:]):
            continue
        x = p.copy()
        x[:, : e.shape[1]] += e[list(ids)]
        if data["rule"] == "induction":
            x = x + weights(x, data["Q1"], data["K1"]) @ x @ data["V1"].T @ data["O1"].T
        alpha = weights(x, data["Q"], data["K"])
        for i, read in targets(data["rule"], ids, sink is not None).items():
            if ids[i] in silent:
                continue
            wanted = np.zeros(len(ids))
            wanted[list(read)] = 1 / len(read)
            worst = max(worst, 0.5 * np.abs(alpha[i] - wanted).sum())
    return worst


def random_case(seed):
    """A vocabulary of a few tokens and random matrices; some are near to what a design would choose."""
    rng = np.random.default_rng(seed)
    rule = ("previous", "duplicate", "induction")[seed % 3]
    n, length, t = int(rng.integers(2, 4)), int(rng.integers(2, 5)), int(rng.integers(2, 4))
    slot = t if rule == "induction" else 0
    d = t + length + slot
    e = rng.normal(size=(n, t))
    if rng.random() < 0.7:
        e /= np.linalg.norm(e, axis=1, keepdims=True)
    p = np.zeros((length, d))
    p[:, t : t + length] = np.eye(length)
    size = float(rng.choice([0.0, 0.01, 1.0]))
    scale = float(rng.choice([1.0, 10.0, 60.0]))

    def noisy(matrix, by=1.0):
        return matrix + by * size * rng.normal(size=matrix.shape)

    token, place = np.eye(t, d), np.eye(length, d, t)
    shift = np.zeros((length, length))
    shift[np.arange(1, length), np.arange(length - 1)] = 1
    data = {"tokens": e, "positions": noisy(p, 0.1), "rule": rule}
    if rule == "previous":
        data |= {"Q": noisy(scale * shift.T @ place), "K": noisy(place)}
    elif rule == "duplicate":
        data |= {
            "Q": noisy(np.vstack([scale * token, -scale * place])),
            "K": noisy(np.vstack([token, place])),
        }
    else:
        read = np.eye(t, d, t + length)
        data |= {"Q1": noisy(40 * shift.T @ place), "K1": noisy(place), "V1": noisy(token), "O1": noisy(read.T, 0.1)}
        data |= {
            "Q": noisy(np.vstack([scale * token, -scale * place.sum(axis=0, keepdims=True)])),
            "K": noisy(np.vstack([read, place[:1]])),
        }
    if rule != "previous":
        if rng.random() < 0.3:
            data["sink"] = int(rng.integers(n))
        elif rng.random() < 0.3 and n > 2:
            data["excluded"] = np.array([int(rng.integers(n))])
    return data


@pytest.mark.parametrize("seed", range(120))
def test_the_bound_is_never_below_the_worst_of_all_texts(seed):
    data = random_case(seed)
    certificate = Certificate.issue("every text", data)
    bound, worst = certificate.claims["distance"], worst_of_all_texts(data)
    assert worst <= bound
    assert certificate.verify()
    if bound < 1:
        assert not Certificate("every text", certificate.data, {"distance": 0.5 * worst}).verify()


def exact(rule="duplicate", **changes):
    """A head for three orthogonal tokens, whose bound is the worst of all texts."""
    t, length = 3, 4
    d = t + length
    token, place = np.eye(t, d), np.eye(length, d, t)
    data = {"tokens": np.eye(t), "positions": place, "rule": rule}
    if rule == "duplicate":
        data |= {"Q": np.vstack([9 * token, -9 * place]), "K": np.vstack([token, place])}
    else:
        data |= {"Q": 9 * np.eye(length, k=1) @ place, "K": place}
    return data | changes


@pytest.mark.parametrize("rule", ["previous", "duplicate"])
def test_where_no_term_depends_on_the_tokens_the_bound_is_nearly_the_worst_text(rule):
    data = exact(rule)
    bound = Certificate.issue("every text", data).claims["distance"]
    worst = worst_of_all_texts(data)
    assert worst <= bound <= 1.01 * worst + 1e-9


def test_the_statement_says_which_texts_it_covers():
    said = Certificate.issue("every text", exact(sink=1, excluded=[2])).worded({1: "[CLS]", 2: "an"})
    assert "in every text of at most 4 tokens over this vocabulary of 3" in said
    assert "begins with token [CLS] and holds it nowhere else" in said
    assert "what the tokens an read is not covered" in said


MALFORMED = {
    "a rule that there is not": {"rule": "next"},
    "tokens wider than positions": {"tokens": np.ones((3, 9))},
    "matrices of another width": {"Q": np.ones((7, 5))},
    "Q and K of different heights": {"Q": np.ones((2, 7))},
    "a sink that is no token": {"sink": 3},
    "a sink that is a list": {"sink": np.array([1.0])},
    "an excluded token that there is not": {"excluded": np.array([-1.0])},
    "a token excluded twice": {"excluded": np.array([1.0, 1.0])},
    "all tokens excluded": {"excluded": np.array([0.0, 1.0, 2.0])},
    "a first layer of a rule with one": {"Q1": np.ones((1, 7))},
    "NaN": {"K": np.full((7, 7), np.nan)},
    "data that nothing checks": {"note": 1.0},
}


@pytest.mark.parametrize("changes", MALFORMED.values(), ids=MALFORMED)
def test_malformed_data_is_refused(changes):
    certificate = Certificate.issue("every text", exact())
    assert certificate.verify()
    assert not Certificate("every text", {**certificate.data, **changes}, certificate.claims).verify()


@pytest.mark.parametrize("factor", [1e200, 1e160, 1e-200, 0.0])
def test_numbers_at_the_edge_of_float64_prove_nothing_false(factor):
    data = exact()
    data["Q"], data["K"] = data["Q"] * factor, data["K"] * factor
    verification = Certificate("every text", data, {"distance": 0.1}).verify()
    assert not verification


@pytest.mark.parametrize("seed", range(40))
def test_a_changed_certificate_is_accepted_only_if_it_is_true(seed):
    rng = np.random.default_rng(seed)
    certificate = Certificate.issue("every text", exact(("previous", "duplicate")[seed % 2]))
    data = {k: np.array(v) if isinstance(v, np.ndarray) else v for k, v in certificate.data.items()}
    name = str(rng.choice(["tokens", "positions", "Q", "K"]))
    data[name].flat[rng.integers(data[name].size)] += float(rng.choice([-20, -2, -0.5, 0.5, 2, 20]))
    if Certificate("every text", data, certificate.claims).verify():
        assert worst_of_all_texts(data) <= certificate.claims["distance"]


@pytest.mark.parametrize("own_key", [False, True])
def test_a_larger_score_of_a_place_never_lowers_the_bound_where_nothing_is_looked_for(own_key):
    """Without a target the sink must win over every key, whatever the score of the places adds to it."""
    none = np.zeros(3)

    def bounds(place_scores):
        tables = SimpleNamespace(
            place=(none, none), error=0.0, disturbance=0.0, C=np.array(place_scores), margin=5.0, key_spread=0.0,
            over_sink=5.0, over_first=5.0, sink_place=none, sink_over_rival=5.0, sink_over_own=5.0,
        )  # fmt: skip
        return [
            float(bound.upper() if hasattr(bound, "upper") else bound)
            for bound in _matching_rows(tables, own_key, True)
        ]

    level, raised = bounds(np.zeros((3, 3))), bounds([[0, 0, 0], [0, 1, 0], [0, 1, 1]])
    assert len(level) == len(raised) and raised[-1] > 1.5 * level[-1] > 0


# Each function by itself, on numbers that can be worked out by hand.

U = 2.0**-53


def near(value, rel=1e-9):
    return pytest.approx(value, rel=rel, abs=0)


def rows_of(values):
    return Rows.exact(np.array(values, dtype=float))


def total(margins):
    return sum(math.exp(-m) for m in margins)


def tables(**changes):
    """Tables of three positions, with numbers that are all different."""
    given = {
        "C": np.array([[0.5, 0, 0], [0.25, -3.0, 0], [0.75, 0.125, -4.0]]), "margin": 6.0, "key_spread": 0.03125,
        "place": (np.array([0, -0.5, -0.25]), np.array([0, 0.375, 0.625])), "over_first": 5.5, "over_sink": 7.0,
        "sink_over_rival": 8.0, "sink_over_own": 9.0, "sink_place": np.array([0, 1.25, 1.75]), "error": 0.0625,
        "disturbance": 0.015625,
    }  # fmt: skip
    return SimpleNamespace(**{**given, **changes})


LOST = 0.0625 + 0.015625


def found(own_key, sink, **changes):
    return [float(bound) for bound in every_text._matching_rows(tables(**changes), own_key, sink)]


def test_duplicates_are_read_from_all_keys_before():
    """Position 1 has key 0 as its target and itself as a rival; position 2 has keys 0 and 1."""
    one = total([0.25 - 0.03125 + 3.0 - LOST])
    spread = 0.03125 + (0.75 - 0.125) + LOST
    margins = [6.0 - (0.625 + 0.25) + 0.125 - 0.75 - LOST, 0.125 - 0.03125 + 4.0 - LOST]
    assert found(True, False) == near([one, total(margins) + math.expm1(spread) / 2])


def test_with_a_sink_duplicates_are_read_from_the_keys_after_it():
    """Position 1 has no key that could be its target; position 2 has key 1. Without one, each reads the sink."""
    first = total([9.0 + (1.25 - 0.375 - LOST) + 3.0])
    margins = [0.125 - 0.03125 + 4.0 - LOST, 7.0 - 0.25 + 0.125 - 1.75 - LOST]
    best = 1.75 - 0.625 - LOST
    assert found(True, True) == near([first, total(margins), total([8.0 + best - 0.125, 9.0 + best + 4.0])])


def test_induction_reads_keys_from_1_to_itself_and_not_the_first():
    C = np.array([[0.5, 0, 0], [0.25, -0.375, 0], [0.75, 0.125, -0.0625]])
    one = total([5.5 - (0.375 + 0.5) - 0.375 - 0.25 - LOST])
    spread = 0.03125 + (0.125 + 0.0625) + LOST
    margins = [6.0 - (0.625 + 0.25) - 0.0625 - 0.125 - LOST, 5.5 - (0.625 + 0.25) - 0.0625 - 0.75 - LOST]
    assert found(False, False, C=C) == near([one, total(margins) + math.expm1(spread) / 2])


def test_with_a_sink_induction_reads_it_where_there_is_nothing_else():
    C = np.array([[0.5, 0, 0], [0.25, -0.375, 0], [0.75, 0.125, -0.0625]])
    best = [1.25 - 0.375 - LOST, 1.75 - 0.625 - LOST]
    expected = [total([7.0 - 0.5 - 0.375 - 1.25 - LOST]), total([8.0 + best[0] + 0.375])]
    spread = 0.03125 + (0.125 + 0.0625) + LOST
    margins = [6.0 - (0.625 + 0.25) - 0.0625 - 0.125 - LOST, 7.0 - 0.25 - 0.0625 - 1.75 - LOST]
    expected += [total(margins) + math.expm1(spread) / 2, total([8.0 + best[1] - 0.125, 8.0 + best[1] + 0.0625])]
    assert found(False, True, C=C) == near(expected)


def test_bounds_are_at_most_1_and_1_where_nothing_is_known():
    given = [arb(0.25), arb(2), arb.nan(), arb.pos_inf(), arb(1) / 3]
    checked = every_text._checked(given)
    assert [float(b) for b in checked[:4]] == [0.25, 1.0, 1.0, 1.0]
    assert checked[4] >= given[4] and float(checked[4]) == pytest.approx(1 / 3)
    assert float(every_text._total(np.array([0.0, 1.0, -2.0]))) == near(1 + math.exp(-1) + math.exp(2))
    assert float(every_text._total(np.array([]))) == 0


def roundings(k):
    n = Fraction(k + 1, 2**53)
    return float(n / (1 - n))


def test_the_error_of_a_difference_of_scores_counts_all_four_tables():
    """Rows of lengths 5, 1 and 2, 13 of width 2: the largest error is that of 5 and 13."""
    a, b, c, d = rows_of([[3, 4]]), rows_of([[0, 1]]), rows_of([[2, 0]]), rows_of([[5, 12]])
    expected = roundings(2 + 4) * 5 * 13 + 64 * U * (5 + 1) * (2 + 13)
    assert every_text._error(a, b, c, d) == near(expected)
    assert every_text._error(*[rows_of([[0, 0]])] * 4) == 2.0**-999
    assert math.isnan(every_text._error(a, b, rows_of([[np.nan, 0]]), d))


def test_each_position_must_prefer_the_one_before_it_by_more_than_tokens_can_change():
    """Scores of 12 for the position before, and random ones for everything else."""
    rng = np.random.default_rng(0)
    e, p = 0.5 * rng.normal(size=(3, 2)), np.hstack([0.5 * rng.normal(size=(4, 2)), np.eye(4)])
    Q, K = 0.3 * rng.normal(size=(6, 6)), np.eye(6)
    Q[2:, 2:] += 12 * np.eye(4, k=1)
    bounds = every_text._previous(rows_of(e), rows_of(p), {"Q": Q, "K": K}, 1.0)
    e = np.hstack([e, np.zeros((3, 4))])
    T, A, B, C = ((x @ Q.T) @ (y @ K.T).T for x in (e, p) for y in (e, p))
    assert min(np.ptp(T, axis=1).max(), np.ptp(A, axis=1).max(), np.ptp(B, axis=1).min()) > 0.05
    expected = []
    for i in (1, 2, 3):
        lost = np.ptp(T, axis=1).max() + np.ptp(A, axis=1).max() + np.ptp(B[i])
        expected.append(total([C[i, i - 1] - C[i, j] - lost for j in range(i + 1) if j != i - 1]))
    assert max(expected) < 1 and [float(b) for b in bounds] == near(expected, 1e-4)


@pytest.mark.parametrize("slack", [1.0, 2.0**42])
def test_the_error_of_margins_is_ten_times_that_of_a_table(slack):
    """Tokens of 0: the margin is C[1, 0] - C[1, 1] = 9 less the error."""
    positions = rows_of([[3.0, 0.0], [0.0, 0.0]])
    shift = {"Q": np.array([[0.0, 0.0], [0.0, 0.0]]), "K": np.eye(2)}
    assert float(every_text._previous(rows_of([[0.0]]), positions, shift, slack)[0]) == 1.0
    positions = rows_of([[3.0, 0.0], [0.0, 3.0]])
    turn = {"Q": np.array([[0.0, 1.0], [1.0, 0.0]]), "K": np.eye(2)}
    (bound,) = every_text._previous(rows_of([[0.0]]), positions, turn, slack)
    product = roundings(2 + 2) * 3  # of the rows with Q or K
    table = 2 * product * 3 + roundings(2 + 4) * 9 + 64 * U * 9
    assert math.log(float(bound)) == near(-9 + slack * 10 * table, 1e-6)


def test_the_extremes_of_all_tables_are_those_of_a_loop():
    rng = np.random.default_rng(3)
    for case in range(12):
        n, length = 4, 3
        a, b, c, d = (rng.integers(-5, 6, size=(m, 2)).astype(float) for m in (n, length, n, length))
        sink = None if case % 2 else int(rng.integers(n))
        rule = ("duplicate", "induction")[case % 4 // 2]
        reading = np.ones(n, dtype=bool)
        reading[rng.integers(n)] = False
        if sink is not None:
            reading[sink] = False
        p = {"reading": reading, "sink": sink, "rule": rule}
        t = every_text._Tables.of(*map(rows_of, (a, b, c, d)), 0.5, 1.0, p)
        T, A, B = a @ c.T, a @ d.T, b @ c.T
        who = np.flatnonzero(reading).tolist()
        own = {u: T[u, u] for u in who}
        rival = {u: max(T[u, v] for v in range(n) if v != u) for u in who}
        keys = range(1, length) if rule == "induction" or sink is not None else range(length)
        low, high = ({u: f(A[u, j] for j in keys) for u in who} for f in (min, max))
        s = {u: 0.0 if sink is None else a[u] @ (c[sink] + d[0]) for u in who}
        assert t.C.tolist() == (b @ d.T).tolist()
        assert [x.tolist() for x in t.place] == [B.min(axis=1).tolist(), B.max(axis=1).tolist()]
        expected = {
            "margin": min(own[u] - rival[u] - high[u] + low[u] for u in who),
            "key_spread": max(high[u] - low[u] for u in who),
            "over_first": min(min(0, own[u] - rival[u]) + low[u] - A[u, 0] for u in who),
            "over_sink": min(own[u] + low[u] - s[u] for u in who),
            "sink_over_rival": min(s[u] - rival[u] - high[u] for u in who),
            "sink_over_own": min(s[u] - own[u] - high[u] for u in who),
        }
        for name, value in expected.items():
            assert getattr(t, name) == pytest.approx(value, abs=1e-3), name
        place = np.zeros(length) if sink is None else b @ (c[sink] + d[0])
        assert t.sink_place.tolist() == place.tolist() and t.disturbance == 1.0
        assert t.error == near(10 * (every_text._error(*map(rows_of, (a, b, c, d))) + 8 * U * 0.5))
        more = every_text._Tables.of(*map(rows_of, (a, b, c, d)), 2.0, 3.0, p)
        assert more.error == near(30 * (every_text._error(*map(rows_of, (a, b, c, d))) + 8 * U * 2.0))


def test_one_position_has_no_key_but_the_first():
    p = {"reading": np.array([True, True]), "sink": None, "rule": "induction"}
    t = every_text._Tables.of(*map(rows_of, ([[1.0], [2.0]], [[0.0]], [[1.0], [3.0]], [[5.0]])), 0.0, 1.0, p)
    assert t.key_spread == 0 and t.over_first == pytest.approx(-2.0, abs=1e-4)


@pytest.mark.parametrize("leak", [0.0, 0.125])
def test_what_else_is_in_a_score_of_the_second_layer_is_bounded_by_lengths(monkeypatch, leak):
    """Each vector has its own direction, so that every length is that of one number."""
    given = {}

    class Recorded:
        @staticmethod
        def of(*arguments):
            given["tables"] = arguments
            return "tables"

    monkeypatch.setattr(every_text, "_Tables", Recorded)
    monkeypatch.setattr(every_text, "_previous", lambda *arguments: [arb(leak / 2), arb(leak)])
    monkeypatch.setattr(every_text, "_matching_rows", lambda t, own_key, sink: [t, own_key, sink])
    one = {"V": np.array([[2.0, 1.0, 0.5]]), "O": np.array([[0.0], [0.0], [4.0]])}
    two = {"Q": np.diag([3.0, 5.0, 7.0]), "K": np.diag([1.5, 2.5, 3.5])}
    tokens, positions = rows_of([[1.0], [2.0]]), rows_of([[0.0, 3.0, 0.0], [0.0, 1.0, 0.0], [0.0, 2.0, 0.0]])
    p = {"layers": [one, two], "sink": None, "reading": None}
    assert every_text._induction_rows(p, tokens, positions, 1.0) == ["tables", False, False]
    q_own, b, k_read, d, disturbance, slack, _ = given["tables"]
    assert q_own.values.tolist() == [[3, 0, 0], [6, 0, 0]] and slack == 1.0
    # V of a token is 2 or 4, O puts four times that in the third place; positions before it give 3, 3 and 1.
    assert k_read.values.tolist() == [[0, 0, 28], [0, 0, 56]]
    assert b.values.tolist() == [[0, 15, 84], [0, 5, 84], [0, 10, 28]]
    assert d.values.tolist() == [[0, 7.5, 42], [0, 2.5, 42], [0, 5, 14]]
    own, read, place = (6.0, 3.0), (112.0, 56.0), (math.hypot(15, 84), math.hypot(7.5, 42))
    shift = [2 * leak * (read[0] + 84), 2 * leak * (read[1] + 42)]
    sizes = [own[side] + read[side] + place[side] for side in range(2)]
    expected = own[0] * own[1] + read[0] * sizes[1] + place[0] * own[1]
    expected += sizes[0] * shift[1] + shift[0] * sizes[1] + shift[0] * shift[1]
    assert disturbance == near(expected, 1e-12)
    assert every_text._induction_rows(p | {"sink": 1}, tokens, positions, 1.0)[2] is True


def test_the_slack_is_that_of_an_issued_bound_unless_a_bound_is_claimed(monkeypatch):
    seen = []
    monkeypatch.setattr(every_text, "_previous", lambda *arguments: seen.append(arguments[-1]) or [arb(0.25), arb(0.5)])
    parsed = every_text._parse(exact("previous"))
    for claims in ({"distance": [0.5]}, {"distance": []}, {}):
        assert every_text._measure(parsed, True, claims)["distance"] == 0.5
    assert seen == [1.0, 4.0, 4.0]
    monkeypatch.setattr(every_text, "_previous", lambda *arguments: [])
    assert every_text._measure(parsed, True, {})["distance"] == 0


@pytest.mark.parametrize("sink", [None, 1])
def test_duplicates_are_told_from_the_position_itself(monkeypatch, sink):
    seen = {}
    monkeypatch.setattr(every_text, "_matching_rows", lambda t, **how: seen.update(how, t=t) or [arb(0.25)])
    given = exact() if sink is None else exact(sink=sink)
    assert every_text._measure(every_text._parse(given), True, {"distance": [0.5]})["distance"] == 0.25
    assert seen["own_key"] is True and seen["sink"] is (sink is not None)
    assert seen["t"].disturbance == 0 and seen["t"].C[0, 0] == -9


TWO_LAYERS = exact("previous") | {
    "rule": "induction",
    "Q1": np.ones((2, 7)), "K1": np.ones((2, 7)), "V1": np.ones((5, 7)), "O1": np.ones((7, 5)),
}  # fmt: skip


def test_what_is_well_formed_is_parsed():
    parsed = every_text._parse(exact(sink=1, excluded=[2]))
    assert parsed["sink"] == 1 and parsed["reading"].tolist() == [True, False, False] and len(parsed["layers"]) == 1
    assert every_text._parse(exact())["reading"].all() and every_text._parse(exact())["sink"] is None
    assert every_text._parse(exact(excluded=[0]))["reading"].tolist() == [False, True, True]
    layers = every_text._parse(TWO_LAYERS)["layers"]
    assert [sorted(layer) for layer in layers] == [["K", "O", "Q", "V"], ["K", "Q"]] and layers[0]["Q"].shape == (2, 7)
    assert every_text._parse(exact(tokens=np.ones((3, 7))))["tokens"].shape == (3, 7)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (exact(tokens=np.ones((3, 8))), "wider"),
        (exact(rule="next"), "there is no rule"),
        (exact(Q=np.ones((7, 6))), "the positions, Q and K do not fit"),
        (exact(K=np.ones((7, 6))), "the positions, Q and K do not fit"),
        (exact(K=np.ones((6, 7))), "the rows of Q and K do not fit"),
        (exact(Q1=np.ones((2, 7))), "has one layer"),
        (exact(O1=np.ones((2, 7))), "has one layer"),
        (exact("previous", sink=1), "neither a sink nor excluded"),
        (exact("previous", excluded=[1]), "neither a sink nor excluded"),
        (exact(sink=3), "sink must be whole numbers from 0 to 2"),
        (exact(sink=[1]), "not that of one number"),
        (exact(sink=1, excluded=[0, 2]), "no token is left"),
        (exact(excluded=[3]), "excluded must be"),
        (TWO_LAYERS | {"V1": np.ones((5, 6))}, "the positions and V1 do not fit"),
        (TWO_LAYERS | {"O1": np.ones((6, 5))}, "the positions and V1 do not fit"),
        (TWO_LAYERS | {"O1": np.ones((7, 4))}, "V1 and O1 do not fit"),
        (TWO_LAYERS | {"Q1": np.ones((2, 6))}, "the positions, Q1 and K1 do not fit"),
        (TWO_LAYERS | {"Q1": np.ones((3, 7))}, "the rows of Q1 and K1 do not fit"),
    ],
)
def test_each_defect_is_refused_by_itself(data, why):
    with pytest.raises(InvalidCertificate, match=why):
        every_text._parse(data)


def test_statements_name_rule_texts_and_what_is_not_covered():
    start = "in every text of at most 4 tokens over this vocabulary of 3"
    assert every_text._describe(exact("previous", tokens=np.ones((3, 2))), {"distance": 0.1234567}) == (
        f"{start}, each token but the first reads the one before it, to within 0.123457 in total variation, by one "
        "head of causal attention"
    )
    said = every_text._describe(TWO_LAYERS, {"distance": 0.25})
    assert said.startswith(f"{start}, each token with") and said.endswith(", by two layers of causal attention")
    four, five = (every_text._describe(exact(excluded=list(range(n))), {"distance": 0.25}) for n in (4, 5))
    assert four.endswith("; what the tokens 0, 1, 2, 3 read is not covered")
    assert five.endswith("; what the tokens 0, 1, 2, 3 and 1 more read is not covered")
    assert every_text.EVERY_TEXT.float64_first({}) is True


@pytest.mark.parametrize("rule", ["previous", "duplicate", "induction"])
def test_a_text_of_one_token_reads_nothing(rule):
    data = {"previous": exact("previous"), "duplicate": exact(), "induction": TWO_LAYERS}[rule]
    parsed = every_text._parse(data | {"positions": data["positions"][:1]})
    assert every_text._measure(parsed, True, {"distance": [0.5]})["distance"] == 0


def test_a_target_is_over_the_first_key_by_no_more_than_any_token_there_may_be():
    """Key 0 may hold the very token that is looked for, so that a margin between tokens does not count."""
    p = {"reading": np.ones(2, dtype=bool), "sink": None, "rule": "induction"}
    a, c = rows_of([[5.0, 0.0], [0.0, 5.0]]), rows_of(np.eye(2))
    b, d = rows_of([[0.0, 0.0], [0.0, 0.0]]), rows_of([[0.1, 0.2], [0.3, 0.3]])
    t = every_text._Tables.of(a, b, c, d, 0.0, 1.0, p)
    assert t.over_first == pytest.approx(0.5) and t.margin == pytest.approx(5.0)


def test_tokens_that_all_score_0_with_others_of_any_size_are_decided():
    data = {"tokens": [[1e308], [1.0]], "positions": [[0.0], [1.0]], "rule": "previous", "Q": [[0.0]], "K": [[1.0]]}
    certificate = Certificate.issue("every text", data)
    assert certificate.verify() and 0.4 < certificate.claims["distance"] <= 1
