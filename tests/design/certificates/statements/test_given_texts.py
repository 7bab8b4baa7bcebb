"""Statements about given texts: distances against mpmath, bounds on norms against the smallest matrices."""

import mpmath
import numpy as np
import pytest

import qkv
from qkv.design.certificates import Certificate
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
