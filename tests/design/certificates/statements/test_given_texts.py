"""Statements about given texts: distances against mpmath, bounds on norms against the smallest matrices."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import qkv
from qkv.design.certificates import Certificate
from qkv.design.certificates.statements import given_texts
from qkv.design.certificates.statements.base import InvalidCertificate
from qkv.design.certificates.statements.score_tables import Rows, table_error
from qkv.design.certificates.statements.text_rules import targets

RULES = ("previous", "duplicate", "induction")


def texts_of(data):
    ends = np.cumsum(np.asarray(data["lengths"], dtype=int))
    ids = np.asarray(data["ids"], dtype=int)
    return [part.tolist() for part in np.split(ids, ends[:-1])]


def rules_of(data, number, ids):
    if data["rule"] != "listed":
        return targets(data["rule"], ids, "sink" in data).items()
    rows = np.asarray(data["reads"], dtype=int)
    mine = rows[rows[:, 0] == number]
    return [(i, mine[mine[:, 1] == i, 2].tolist()) for i in sorted(set(mine[:, 1].tolist()))]


def true_distance(data):
    """The largest distance, with 60 digits."""
    e, p, q, k = (np.asarray(data[name], dtype=float) for name in ("tokens", "positions", "Q", "K"))
    worst = mpmath.mpf(0)
    with mpmath.workdps(60):
        high = np.vectorize(mpmath.mpf, otypes=[object])
        e, p, q, k = high(e), high(p), high(q), high(k)
        for number, ids in enumerate(texts_of(data)):
            x = p[: len(ids)].copy()
            x[:, : e.shape[1]] += e[ids]
            queries, keys = x.dot(q.T), x.dot(k.T)
            for i, read in rules_of(data, number, ids):
                scores = [queries[i].dot(keys[j]) for j in range(i + 1)]
                top = max(scores)
                raw = [mpmath.exp(s - top) for s in scores]
                total = sum(raw)
                part = mpmath.mpf(1) / len(read)
                gap = sum(abs(r / total - (part if j in read else 0)) for j, r in enumerate(raw))
                worst = max(worst, gap / 2)
    return worst


def random_case(seed):
    rng = np.random.default_rng(seed)
    n, length, t = int(rng.integers(2, 5)), int(rng.integers(3, 6)), int(rng.integers(1, 4))
    d = t + int(rng.integers(0, 3))
    h = int(rng.integers(1, 4))
    scale = float(rng.choice([0.1, 1.0, 3.0]))
    lengths = rng.integers(2, length + 1, size=int(rng.integers(1, 4)))
    data = {
        "tokens": rng.normal(size=(n, t)), "positions": rng.normal(size=(length, d)), "lengths": lengths,
        "rule": RULES[seed % 3], "Q": scale * rng.normal(size=(h, d)), "K": scale * rng.normal(size=(h, d)),
    }  # fmt: skip
    ids = [rng.integers(0, n, size=size) for size in lengths]
    if data["rule"] != "previous" and rng.random() < 0.4 and n > 2:
        data["sink"] = 0
        ids = [np.concatenate([[0], rng.integers(1, n, size=size - 1)]) for size in lengths]
    elif data["rule"] != "previous":
        ids = [np.concatenate([[1, 1], part[2:]]) for part in ids]  # so that there is a rule
    return data | {"ids": np.concatenate(ids)}


def listed_case(seed):
    """A random case whose reads are listed."""
    rng = np.random.default_rng(seed)
    data = {name: value for name, value in random_case(seed).items() if name != "sink"}
    rows = set()
    for t, n in enumerate(data["lengths"].tolist()):
        for i in rng.choice(n, size=2, replace=False).tolist():
            rows |= {(t, i, int(j)) for j in rng.choice(i + 1, size=int(rng.integers(1, min(i + 1, 3) + 1)))}
    return data | {"rule": "listed", "reads": np.array(sorted(rows))}


@pytest.mark.parametrize("seed", range(20))
def test_the_distance_of_listed_reads_is_the_true_one_rounded_up(seed):
    data = listed_case(seed)
    certificate = Certificate.issue("given texts", data, "distance")
    assert true_distance(data) <= certificate.claims["distance"] <= true_distance(data) + 1e-11
    assert certificate.verify()


@pytest.mark.parametrize(
    "reads", [[[0, 0, 1]], [[9, 0, 0]], [[0, 9, 0]], [[0, 1, 0], [0, 1, 0]], [[0, 1, 1], [0, 1, 0]], [[0, 1]]]
)
def test_reads_that_cannot_be_are_refused(reads):
    data = listed_case(0)
    assert Certificate("given texts", data, {"distance": 1.0}).verify()
    assert not Certificate("given texts", data | {"reads": np.array(reads)}, {"distance": 1.0}).verify()
    for missing in ({"rule": "previous"}, {"sink": 0}):
        assert not Certificate("given texts", data | missing, {"distance": 1.0}).verify()


@pytest.mark.parametrize("seed", range(60))
def test_the_distance_is_the_true_one_rounded_up(seed):
    data = random_case(seed)
    certificate = Certificate.issue("given texts", data, "distance")
    true, claimed = true_distance(data), certificate.claims["distance"]
    assert true <= claimed <= true + 1e-11
    assert certificate.verify()
    assert not Certificate("given texts", certificate.data, {"distance": float(true) * (1 - 1e-9)}).verify()


def smallest(seed):
    """Texts, a rule and the circuit with the smallest matrix."""
    rng = np.random.default_rng(seed)
    rule = (qkv.design.previous(), qkv.design.duplicate(), qkv.design.induction())[seed % 3]
    words = qkv.design.Vocabulary.side_by_side(rng.normal(size=(4, 3)), length=6)
    texts = [[1, 1, *rng.integers(0, 4, size=4).tolist()] for _ in range(2)]
    return qkv.design.wire_texts(qkv.design.Sequences(words, texts), rule, tol=1e-2)


@pytest.mark.parametrize("seed", range(12))
def test_no_multipliers_prove_more_than_the_smallest_norm(seed):
    circuit = smallest(seed)
    assert circuit.possible
    rng = np.random.default_rng(seed)
    data = dict(circuit.certificate.data)
    assert circuit.least_norm <= circuit.norm * (1 + 1e-9)
    assert circuit.least_norm >= circuit.norm * (1 - 1e-4)
    leaks = first_of_each_rule(data)
    for _ in range(20):
        wrong = np.array(data["multipliers"]) * rng.uniform(0, 2, size=len(data["multipliers"]))
        wrong += rng.normal(size=len(wrong)) * rng.choice([0, 0.1, 10])
        wrong[leaks] = np.abs(wrong[leaks])
        other = data | {"multipliers": wrong, "Q": data["Q"] * rng.uniform(0, 2)}
        bound = Certificate.issue("given texts", other, "norm_at_least").claims["norm_at_least"]
        assert bound <= circuit.norm * (1 + 1e-6)


def first_of_each_rule(data):
    sizes = [len(read) for ids in texts_of(data) for read in targets(data["rule"], ids, "sink" in data).values()]
    return np.cumsum([0, *sizes])[:-1]


@pytest.fixture(scope="module")
def genuine():
    return smallest(0).certificate


def test_a_larger_bound_than_the_multipliers_show_is_refused(genuine):
    assert genuine.verify()
    for name, factor in (("distance", 0.99), ("norm_at_least", 1.001)):
        claims = {**genuine.claims, name: genuine.claims[name] * factor}
        assert not Certificate("given texts", genuine.data, claims).verify()


MALFORMED = {
    "a rule that there is not": {"rule": "next"},
    "another rule": {"rule": "duplicate"},
    "a token that there is not": {"ids": np.full(12, 9.0)},
    "texts longer than the positions": {"lengths": np.array([12.0])},
    "lengths that do not add up": {"lengths": np.array([6.0, 5.0])},
    "an empty text": {"lengths": np.array([6.0, 6.0, 0.0])},
    "a negative multiplier of a leak": {"multipliers": np.full(10, -1.0)},
    "too few multipliers": {"multipliers": np.ones(3)},
    "a tolerance of 1": {"tol": 1.0},
    "a larger tolerance": {"tol": 0.5},
    "a sink of previous": {"sink": 1},
    "fractions of tokens": {"ids": np.full(12, 0.5)},
}


@pytest.mark.parametrize("changes", MALFORMED.values(), ids=MALFORMED)
def test_malformed_or_false_data_is_refused(genuine, changes):
    assert not Certificate("given texts", {**genuine.data, **changes}, genuine.claims).verify()


def test_a_bound_needs_multipliers(genuine):
    data = {name: v for name, v in genuine.data.items() if name not in ("multipliers", "tol")}
    assert not Certificate("given texts", data, genuine.claims).verify()
    assert Certificate("given texts", data, {"distance": genuine.claims["distance"]}).verify()


def test_what_overflows_proves_nothing(genuine):
    for factor in (1e200, 1e308):
        data = {**genuine.data, "Q": np.asarray(genuine.data["Q"]) * factor}
        assert not Certificate("given texts", data, {"distance": 0.5}).verify()


def test_contradictory_rules_are_proved_out_of_reach():
    words = qkv.design.Vocabulary(np.eye(3), np.zeros((6, 3)))
    circuit = qkv.design.wire_texts(qkv.design.Sequences(words, [[0, 1, 0, 1, 2, 1]]), qkv.design.previous())
    assert circuit.status == "out of reach" and not circuit.possible
    assert circuit.certificate.kind == "no head for given texts" and circuit.certificate.verify()
    assert circuit.least_norm > 1e9
    false = {"norm_at_least": 1e6 * circuit.least_norm}
    assert not Certificate(circuit.certificate.kind, circuit.certificate.data, false).verify()


# Each function by itself, on numbers that can be worked out by hand.

U = 2.0**-53


def roundings(k):
    """Bound on the relative error of k roundings, counted once more for the bound itself, in fractions."""
    n = Fraction(k + 1, 2**53)
    return float(n / (1 - n))


def near(value, rel=1e-9):
    return pytest.approx(value, rel=rel, abs=0)


def small(**changes):
    """Two texts of three and two tokens over a vocabulary of three; every token reads the one before it."""
    data = {
        "tokens": [[1.0], [2.0], [3.0]], "positions": np.eye(3, 2), "Q": np.eye(2), "K": np.eye(2), "rule": "previous",
        "ids": [0, 2, 0, 1, 1], "lengths": [3, 2], "multipliers": [1.0, 0.0, 2.0], "tol": 0.25,
    }  # fmt: skip
    return {name: value for name, value in {**data, **changes}.items() if value is not None}


def listed(*reads, **changes):
    return small(rule="listed", reads=list(map(list, reads)), multipliers=None, tol=None, **changes)


def test_texts_and_rules_are_parsed():
    parsed = given_texts._parse(small())
    assert parsed["texts"] == [[0, 2, 0], [1, 1]]
    assert parsed["rules"] == [[(1, (0,)), (2, (1,))], [(1, (0,))]]
    assert [part.tolist() for part in parsed["multipliers"]] == [[1.0, 0.0], [2.0]] and parsed["tol"] == 0.25
    duplicate = given_texts._parse(small(rule="duplicate", multipliers=None, tol=None))
    assert duplicate["rules"] == [[(2, (0,))], [(1, (0,))]] and "tol" not in duplicate
    with_sink = given_texts._parse(small(rule="duplicate", sink=0, ids=[0, 2, 2, 0, 1], multipliers=None, tol=None))
    assert with_sink["rules"] == [[(0, (0,)), (1, (0,)), (2, (1,))], [(0, (0,)), (1, (0,))]]
    rows = given_texts._parse(listed((0, 0, 0), (0, 2, 1), (0, 2, 2), (1, 1, 0)))
    assert rows["rules"] == [[(0, (0,)), (2, (1, 2))], [(1, (0,))]]
    assert given_texts._parse(small(tokens=[[1.0, 0], [2, 0], [3, 0]]))["tokens"].shape == (3, 2)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (small(tokens=np.ones((3, 3))), "wider"),
        (small(Q=np.eye(3)), "the positions, Q and K do not fit"),
        (small(K=np.eye(3)), "the positions, Q and K do not fit"),
        (small(Q=np.ones((3, 2))), "the rows of Q and K do not fit"),
        (small(rule="next"), "there is no rule"),
        (small(ids=[0, 2, 0, 1, 3]), "ids must be whole numbers from 0 to 2"),
        (small(lengths=[4, 1]), "lengths must be whole numbers from 0 to 3"),
        (small(lengths=[3, 2, 0]), "a text is empty"),
        (small(lengths=[3, 1]), "ids and the sum of lengths do not fit"),
        (small(sink=0), "has no sink"),
        (listed((0, 1, 0), sink=0), "has no sink"),
        (small(rule="duplicate", sink=1, ids=[1, 2, 0, 0, 1]), "does not begin with the sink"),
        (small(rule="duplicate", sink=1, ids=[1, 2, 1, 1, 0]), "holds it again"),
        (small(rule="duplicate", sink=3), "sink must be"),
        (small(rule="duplicate", sink=[0]), "not that of one number"),
        (small(reads=[[0, 1, 0]]), "if and only if"),
        (small(rule="listed"), "if and only if"),
        (small(rule="duplicate", ids=[0, 1, 2, 0, 1], multipliers=None, tol=None), "hold no rule"),
        (small(multipliers=None), "tol belongs to multipliers"),
        (small(tol=1.0), "not between 0 and 1"),
        (small(multipliers=[1.0, 0.0]), "the targets and the multipliers do not fit"),
        (small(multipliers=[1.0, -1e-300, 0.0]), "the multiplier of a leak is negative"),
        (small(multipliers=[1.0, 0.0, -1.0]), "the multiplier of a leak is negative"),
        (small(multipliers=[1.0, math.nan, 1.0]), "a multiplier is no number"),
        (small(multipliers=[[1.0], [0.0], [1.0]]), "a multiplier is no number"),
        (listed((0, 1)), "the columns of reads and 3 do not fit"),
        (listed((0, 1, 0, 0)), "the columns of reads and 3 do not fit"),
        (listed((0, 1, 0), (0, 1, 0)), "not in order"),
        (listed((0, 1, 1), (0, 1, 0)), "not in order"),
        (listed((1, 1, 0), (0, 1, 0)), "not in order"),
        (listed((0, 1, 2)), "position 1 of text 0 cannot read position 2"),
        (listed((0, 3, 0)), "position 3 of text 0 cannot read position 0"),
        (listed((1, 2, 0)), "position 2 of text 1 cannot read position 0"),
        (listed((2, 0, 0)), "position 0 of text 2 cannot read position 0"),
        (listed((0, 1, 0.5)), "reads must be whole numbers"),
    ],
)
def test_each_defect_is_refused_by_itself(data, why):
    with pytest.raises(InvalidCertificate, match=why):
        given_texts._parse(data)


def test_multipliers_of_ratios_may_be_negative_and_those_of_leaks_not():
    rules = [[(1, (0,)), (2, (0, 1))], [(2, (0, 1, 2))]]
    split = given_texts._multipliers({"multipliers": [0.0, 1, -2, 3, -4, -5]}, rules)
    assert [part.tolist() for part in split] == [[0, 1, -2], [3, -4, -5]]
    for leak in (0, 1, 3):
        wrong = [0.0, 1, -2, 3, -4, -5]
        wrong[leak] = -1.0
        with pytest.raises(InvalidCertificate, match="leak is negative"):
            given_texts._multipliers({"multipliers": wrong}, rules)


def test_scores_are_those_of_the_sums_of_tokens_and_positions():
    parsed = given_texts._parse(small(Q=[[1.0, 2.0], [0.5, 1.0]], K=[[3.0, -1.0], [1.0, 0.0]]))
    found = list(given_texts._scores(parsed))
    assert [x.tolist() for x, *_ in found] == [[[2, 0], [3, 1], [1, 0]], [[3, 0], [2, 1]]]
    for x, scores, error, rules in found:
        assert (
            scores[np.tril_indices(len(x))].tolist()
            == ((x @ parsed["Q"].T) @ (x @ parsed["K"].T).T)[np.tril_indices(len(x))].tolist()
        )
        assert (scores[np.triu_indices(len(x), 1)] == -np.inf).all()
        longest = float(np.linalg.norm(x, axis=1).max())
        rows = Rows(x, 2 * U * longest, longest)
        assert error == near(table_error(rows.times(parsed["Q"]), rows.times(parsed["K"])), 1e-12)
        assert rules in parsed["rules"]


def test_a_distance_and_its_error_worked_out_by_hand():
    """Weights 1/4, 3/4 of scores 0, log 3, in a row of three of which the mask hides one."""
    scores = np.array([[0.0, -np.inf, -np.inf], [0.0, math.log(3), -np.inf], [0.0, -60.0, -80.0]])
    found = given_texts._distance(scores, 0.0, [(1, (0,))])
    kappa = 2.1 * (math.expm1(U * math.log(3)) + 16 * U) + 2 * roundings(3 + 2)
    assert found - 0.75 == pytest.approx(0.75 * 2 * roundings(3 + 8) + kappa + 8 * U, abs=2 * U)
    assert given_texts._distance(scores, 0.0, [(1, (0, 1))]) == near(0.25, 1e-13)
    # Nearly all is read as wanted: what is left are the errors.
    each = 2.0**-50 + 80 * U
    kappa = 2.1 * (math.expm1(each) + 16 * U) + 2 * roundings(3 + 2)
    assert given_texts._distance(scores, 2.0**-50, [(2, (0,))]) == near(kappa + 8 * U)
    assert given_texts._distance(scores, 2.0**-50, [(2, (0,)), (1, (0,))]) == near(0.75, 1e-13)
    assert given_texts._distance(scores, 0.0, [(0, (0,))]) == near(2.1 * 16 * U + 2 * roundings(5) + 8 * U)


@pytest.mark.parametrize(("error", "known"), [(2.0**-6, False), (math.nextafter(2.0**-6, 0), True), (math.nan, False)])
def test_scores_must_be_known_to_a_sixty_fourth(error, known):
    assert math.isfinite(given_texts._distance(np.zeros((2, 2)), error, [(1, (0,))])) == known
    with np.errstate(invalid="ignore"):
        assert given_texts._distance(np.full((2, 2), np.nan), 0.0, [(1, (0,))]) == math.inf


def test_issued_bounds_have_four_times_the_room_of_verified_ones():
    """Scores of 0 that are differences of large numbers: 1/3 and 1/2 are read, and the error is visible."""
    large = {"positions": np.ones((3, 2)), "Q": [[1e5, -1e5]], "K": [[1e5, 0.0]]}
    parsed = given_texts._parse(small(tokens=np.zeros((3, 1)), **large))
    issued, verified = (
        float(given_texts._measure(parsed, True, {"distance": claim})["distance"]) for claim in ([], [0.5])
    )
    worst = max(error for _, _, error, _ in given_texts._scores(parsed))
    assert verified - 2 / 3 == near(2.1 * math.expm1(worst), 1e-6)
    assert issued - 2 / 3 == near(2.1 * math.expm1(4 * worst), 1e-6)
    both = given_texts._measure(parsed, True, {"distance": [], "norm_at_least": [1.0]})
    assert float(both["distance"]) == verified and "norm_at_least" in both
    assert set(given_texts._measure(parsed, True, {"distance": []})) == {"distance"}
    wild = given_texts._parse(small(Q=1e17 * np.eye(2)))
    assert given_texts._measure(wild, True, {"distance": []})["distance"] == 1
    assert given_texts.ISSUE_SLACK == 4 and set(given_texts._measure(wild, True, {"norm_at_least": []}))


def test_texts_without_a_rule_add_nothing():
    data = small(rule="duplicate", ids=[0, 1, 2, 1, 1], multipliers=[1.0])
    measured = given_texts._measure(given_texts._parse(data), True, {"distance": [], "norm_at_least": []})
    alone = small(rule="duplicate", ids=[1, 1], lengths=[2], multipliers=[1.0])
    expected = given_texts._measure(given_texts._parse(alone), True, {"distance": [], "norm_at_least": []})
    assert float(measured["distance"]) == near(float(expected["distance"]), 1e-12)
    assert float(measured["norm_at_least"]) == near(float(expected["norm_at_least"]), 1e-9)


def test_the_multiplier_of_a_leak_is_spread_by_the_softmax_of_what_is_not_read():
    scores = np.log([5.0, 1.0, 3.0, 7.0])
    assert given_texts._mix(scores, (0, 3), 2.0).tolist() == pytest.approx([0, 0.5, 1.5, 0])
    assert given_texts._mix(scores, (0,), 0.0).tolist() == [0, 0, 0, 0]
    assert given_texts._mix(scores, (0,), -1.0).tolist() == [0, 0, 0, 0]
    assert given_texts._mix(scores[:2], (0, 1), 2.0).tolist() == [0, 0]
    assert given_texts._mix(np.array([0.0, math.nan]), (0,), 2.0).tolist() == [0, 0]


def by_hand(slack, leaks=(4.0, 2.0, 3.0), tol=0.25):
    """A norm bound of three rules with equal scores, and what it should be from fractions and logarithms.

    Rule (2 reads 0 and 1) has f = 4, ν = 3 and one rival; rule (1 reads 0) f = 2 and one rival; rule (2 reads 1) f = 3
    and two rivals, so an entropy of log 2.
    """
    texts = [[[1.0, 0], [0, 1], [2, 1]], [[1.0, 1], [0, 2]], [[1.0, 0], [0, -1], [1, 1]]]
    words = np.array([v for text in texts for v in text])
    p = {
        "tokens": words, "positions": np.zeros((3, 2)), "Q": np.zeros((1, 2)), "K": np.zeros((1, 2)), "tol": tol,
        "texts": [[0, 1, 2], [3, 4], [5, 6, 7]], "rules": [[(2, (0, 1))], [(1, (0,))], [(2, (1,)), (0, (0,))]],
        "multipliers": [np.array([leaks[0], 3.0]), np.array([leaks[1]]), np.array([leaks[2], 0.0])],
    }  # fmt: skip
    z = [
        np.array([[leaks[0] - 3, 3, -leaks[0]]]), np.array([[leaks[1], -leaks[1]]]),
        np.array([[-leaks[2] / 2, leaks[2], -leaks[2] / 2]]),
    ]  # fmt: skip
    sizes = [np.abs(row) for row in z]
    for row, add in zip(sizes, (leaks[0] + 3, leaks[1], leaks[2]), strict=True):
        row[0, 1 if add == leaks[2] else 0] += add
    G, size = np.zeros((2, 2)), np.zeros((2, 2))
    for text, row, lengths, reader in zip(map(np.array, texts), z, sizes, (2, 1, 2), strict=True):
        G += np.outer(text[reader], row[0] @ text)
        size += np.outer(np.abs(text[reader]), lengths[0] @ np.abs(text))
    edge = math.log(tol / (1 - tol))
    b = -leaks[0] * (math.log(2) + edge) - leaks[1] * edge + leaks[2] * (math.log(2) - edge)
    b_size = leaks[0] * (2 + math.log(2) + abs(edge)) + leaks[0] + leaks[1] * (2 + abs(edge)) + leaks[1]
    b_size += leaks[2] * (2 + abs(edge)) + leaks[2] * (1 + math.log(2))
    b -= slack * 2 * roundings(3 * (3 + 2) ** 2 + 200) * b_size
    norm = np.linalg.norm(G) + slack * 2 * roundings(4 * 3 + 3 + 40) * np.linalg.norm(size)
    return given_texts._least_norm(p, slack), b / norm


@pytest.mark.parametrize("slack", [1.0, 2.0**37, 2.0**39, 2.0**40])
def test_a_norm_bound_and_its_errors_worked_out_by_hand(slack):
    """With a large slack the errors are a visible part of the bound."""
    found, expected = by_hand(slack)
    assert found == near(expected, 1e-11)
    assert found < expected


def test_a_norm_bound_has_room_for_the_roundings_of_the_norm_and_of_the_quotient():
    found, expected = by_hand(0.0)
    assert 1 - found / expected == pytest.approx(2 * roundings(4 + 8) + 8 * U, abs=6 * U)


def test_a_right_side_that_its_error_may_turn_bounds_nothing():
    assert by_hand(1.0, tol=0.75)[0] == -1.0  # then log(tol/(1-tol)) is above what the entropies give
    assert by_hand(2.0**50)[0] == -1.0
    assert by_hand(1.0, leaks=(0.0, 0.0, 0.0))[0] == -1.0


def test_statements_say_which_texts_and_rules():
    claims = {"distance": 0.25, "norm_at_least": 1.5}
    end = "every W = QᵀK that does so in these texts, in equal parts exactly and with a leak of at most 0.25, "
    end += "has a norm of at least 1.5"
    assert given_texts._describe(small(), claims) == (
        "in the 2 given texts, each token but the first reads the one before it, to within 0.25 in total variation, "
        "by one head of causal attention; " + end
    )
    assert given_texts._describe(listed((0, 1, 0), lengths=[5]), {"distance": 0.1234567}) == (
        "in the one given text, each listed position reads the positions listed for it, in equal parts, to within "
        "0.123457 in total variation, by one head of causal attention"
    )
    assert given_texts._describe_none(small(rule="duplicate", sink=0), {"norm_at_least": 0.1234567}) == (
        "in the 2 given texts, by the rule that each token with earlier equal ones reads those, in equal parts, and "
        "each other token reads the first: " + end.replace("1.5", "0.123456")
    )
    assert "a leak of at most 0.123456," in given_texts._describe(small(tol=0.1234567), claims)


def test_bounds_are_tried_in_float64_first_and_must_be_above_0():
    assert given_texts.GIVEN_TEXTS.float64_first({}) is True is given_texts.NO_HEAD_FOR_TEXTS.float64_first({})
    assert given_texts.GIVEN_TEXTS.positive == ("norm_at_least",) == given_texts.NO_HEAD_FOR_TEXTS.positive
