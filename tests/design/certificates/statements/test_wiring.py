"""Statements about wirings, from arrays or as written by hand, and "no W follows the rules"."""

import json

import mpmath
import numpy as np
import oracle
import pytest
from flint import arb, ctx

import qkv
from qkv.design.certificates import Certificate
from qkv.design.certificates.statements import wiring
from qkv.design.certificates.statements.base import InvalidCertificate


def textbook(beta=4.0):
    """x_1 = u_d + u_b, x_2 = u_a, x_3 = u_c + u_b, and the textbook's matrices for c_1 ≈ u_b − u_c, c_2 ≈ u_b."""
    a, b, c, d = beta * np.eye(4)
    data = {
        "X": [d + b, a, c + b],
        "Q": (np.outer(d, a) + np.outer(c, d)) / beta**2,
        "K": np.eye(4),
        "V": (np.outer(b, b) - np.outer(c, c)) / beta**2,
        "reads": {"0": 2, "1": {"0": 1.0}},
        "writes": {"1": b, "0": b - c},
    }
    return json.loads(json.dumps(data, default=lambda array: array.tolist()))


def test_a_person_can_write_a_wiring_by_hand(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"kind": "wiring", "data": textbook(), "claims": {"distance": 1e-6, "output": 1e-5}}))
    found = Certificate.load(path)
    assert found.verify(), found.verify().why
    path.write_text(json.dumps({"kind": "wiring", "data": textbook(1.0), "claims": {"distance": 1e-6}}))
    assert "distance of each rule's weights" in Certificate.load(path).verify().why


@pytest.mark.parametrize(
    ("part", "value", "why"),
    [
        ("reads", {"0": 2.5, "1": 0}, "no whole number"),
        ("reads", {"0": 2.0000001, "1": 0}, "no whole number"),
        ("reads", {"0": 7, "1": 0}, "reads token 7"),
        ("reads", {"0": -1, "1": 0}, "no whole number"),
        ("reads", {"0": True, "1": 0}, "no whole number"),
        ("reads", {"0": 2, "00": 2, "1": 0}, "no whole number"),
        ("reads", {"0": {"2": 0.5, "02": 0.5}, "1": 0}, "no whole number"),
        ("reads", {"0": {"2": 0.7}, "1": 0}, "sum to 1"),
        ("reads", {"0": {"2": "1"}, "1": 0}, "no real number"),
        ("reads", [[0, 2], [1, 0]], "either reads"),
        ("writes", {"0": [1.0] * 4}, "not those that read"),
        ("writes", {"0": [1.0] * 4, "1": [1.0] * 3}, ""),
        ("rules", [0.0, 1.0], "either reads"),
    ],
)
def test_rules_that_make_no_sense_are_refused_with_the_reason(part, value, why):
    found = Certificate("wiring", {**textbook(), part: value}, {"distance": 1e-6}).verify()
    assert not found and why in found.why


@pytest.mark.parametrize("seed", range(6))
def test_issued_bounds_are_confirmed_by_an_independent_judge(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3, 3))
    made = qkv.design.wire(X, {0: 2, 1: 0}, {0: X[1], 1: X[0]}, tol=0.05).certificate
    plain = {name: np.asarray(value).tolist() for name, value in made.data.items()}
    claims = {name: np.asarray(claim).tolist() for name, claim in made.claims.items()}
    assert made.verify() and oracle.truth(made.kind, plain, claims)
    for factor, holds in ((1 - 1e-6, True), (1 + 1e-6, False)):
        moved = claims | {"norm_at_least": claims["norm_at_least"] * factor}
        assert bool(Certificate(made.kind, made.data, moved).verify()) is oracle.truth(made.kind, plain, moved) is holds


def test_reading_the_mean_of_two_tokens_alone_is_impossible():
    X = [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    evidence = {"mix": [[0.5, 0.5, 0.0]], "multipliers": [[0.0, 0.0, 0.0]]}
    made = Certificate.issue("no wiring", {"X": X, "rules": [0], "wanted": [[0.0, 0, 1]], "tol": 1e-3} | evidence)
    assert made.verify() and made.claims["norm_at_least"] == np.inf
    weaker = Certificate("no wiring", made.data, {"norm_at_least": 1.0})
    assert weaker.verify() and weaker.statement.startswith("no W = QᵀK of norm below 1 ")
    moved = {**made.data, "X": np.array([[0.0, 1.0], [1.0, 0.0], [0.9, 0.9]])}  # now it is a vertex
    assert not Certificate("no wiring", moved, made.claims).verify()


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_arrays_of_writes_follow_the_order_of_the_reads(suffix, tmp_path):
    """Token 1 reads token 0 and token 0 reads token 2, in this order; so do the rows that they write."""
    X = 9 * np.eye(3)
    queries = np.eye(3)[[2, 0, 1]].T  # the query of token i is key 2, 0 or 1
    data = {"X": X, "Q": queries, "K": np.eye(3), "V": np.eye(3), "reads": {"1": 0, "0": 2}}
    claims = {"distance": 1e-3, "output": 1e-2}
    right, wrong = np.array([X[0], X[2]]), np.array([X[2], X[0]])
    for writes, holds in ((right, True), (wrong, False)):
        certificate = Certificate("wiring", data | {"writes": writes}, claims)
        assert bool(certificate.verify()) is holds, certificate.verify().why
        certificate.save(tmp_path / f"c{suffix}")
        assert bool(Certificate.load(tmp_path / f"c{suffix}").verify()) is holds
    by_token = Certificate("wiring", data | {"writes": {"0": X[2].tolist(), "1": X[0].tolist()}}, claims)
    assert by_token.verify()
    per_rule = Certificate.issue("wiring", {**data, "X": X * np.array([[1.0], [0.5], [1.0]]), "writes": right})
    assert per_rule.claims["distance"][0] > 2 * per_rule.claims["distance"][1]  # token 1 is the shorter one


# Each function by itself

SMALL = {
    "X": [[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [2.0, 1.0]], "Q": [[1.0, 0.5], [0.0, 1.0], [0.25, 0.0]],
    "K": [[0.5, 0.0], [1.0, -1.0], [0.0, 2.0]], "V": [[1.0, 0.0], [2.0, -1.0], [0.0, 3.0]],
    "rules": [2, 0], "items": [0, 3, 1], "offsets": [0, 2, 3], "weights": [0.25, 0.75, 1.0],
    "writes": [[1.0, 0.0, 0.0], [0.0, -1.0, 2.0]], "multipliers": [2.0, -3.0, 1.5], "tol": 0.25,
}  # fmt: skip


def small(**changes):
    return {name: value for name, value in {**SMALL, **changes}.items() if value is not None}


def by_hand(data, row):
    """Weights, output and what V leaves of it, of one rule, with 40 digits."""
    with mpmath.workdps(40):
        X, Q, K, V = (mpmath.matrix(np.asarray(data[name]).tolist()) for name in ("X", "Q", "K", "V"))
        reader = int(data["rules"][row])
        tokens = [X[j, :].T for j in range(X.rows)]
        seen = range(reader + 1) if data.get("mask") else range(X.rows)
        raw = {j: mpmath.exp(((Q * tokens[reader]).T * (K * tokens[j]))[0]) for j in seen}
        alpha = {j: r / sum(raw.values()) for j, r in raw.items()}
        a, b = data["offsets"][row : row + 2]
        want = dict(zip(data["items"][a:b], data["weights"][a:b], strict=True))
        distance = sum(abs(alpha.get(j, 0) - want.get(j, 0)) for j in range(X.rows)) / 2
        y = mpmath.matrix(list(data["writes"][row]))
        read = sum((V * tokens[j] * w for j, w in alpha.items()), mpmath.zeros(V.rows, 1))
        ideal = sum((V * tokens[j] * w for j, w in want.items()), mpmath.zeros(V.rows, 1))
        return [float(v) for v in (distance, mpmath.norm(read - y), mpmath.norm(ideal - y))]


@pytest.mark.parametrize("data", [small(), small(mask="causal", rules=[3, 1], items=[0, 3, 1])], ids=["all", "causal"])
@pytest.mark.parametrize("how", ["balls", "one by one", "float64"])
def test_every_way_of_measuring_finds_what_is_worked_out_with_forty_digits(data, how):
    parsed, claims = wiring._parse(data), {name: [] for name in wiring.WIRING.senses}
    if how == "one by one":
        rows = [wiring._in_balls(parsed, [row], False) for row in (0, 1)]
        assert all("norm_at_least" not in found for found in rows)
        measured = {name: [found[name][0] for found in rows] for name in rows[0]}
    else:
        measured = wiring._measure(parsed, how == "float64", claims)
        assert "norm_at_least" in measured
    for row in (0, 1):
        expected = by_hand(data, row)
        for name, value in zip(("distance", "output", "residual"), expected, strict=True):
            assert float(measured[name][row].mid()) == pytest.approx(value, rel=1e-12, abs=0), name
            assert float(measured[name][row].rad()) < 1e-11


def test_the_norm_bound_is_the_sum_of_the_inequalities_of_the_rules():
    """Of rule (2 reads 0 and 3 as 1 : 3) and rule (0 reads 1), with the softmax of the other tokens as the mix."""
    parsed = wiring._parse(small())
    with mpmath.workdps(40):
        X, Q, K = (np.array(SMALL[name]) for name in ("X", "Q", "K"))
        edge = mpmath.log(mpmath.mpf(1) / 3)
        G, b = mpmath.zeros(2, 2), mpmath.mpf(0)
        for reader, items, weights, leak, ratios in ((2, [0, 3], [0.25, 0.75], 2, [-3]), (0, [1], [1.0], 1.5, [])):
            rest = [j for j in range(4) if j not in items]
            raw = [mpmath.exp(mpmath.mpf(float((Q @ X[reader]) @ (K @ X[j])))) for j in rest]
            mix = [r / sum(raw) for r in raw]
            g = leak * mpmath.matrix(X[items[0]].tolist())
            for j, m in zip(rest, mix, strict=True):
                g -= leak * m * mpmath.matrix(X[j].tolist())
            for j, v in zip(items[1:], ratios, strict=True):
                g += v * (mpmath.matrix(X[j].tolist()) - mpmath.matrix(X[items[0]].tolist()))
            entropy = -sum(m * mpmath.log(m) for m in mix)
            b += leak * (mpmath.log(weights[0]) + entropy - edge)
            b += sum(v * mpmath.log(w / weights[0]) for v, w in zip(ratios, weights[1:], strict=True))
            G += mpmath.matrix(X[reader].tolist()) * g.T
        expected = float(b / mpmath.mnorm(G, "f"))
    claims = {"norm_at_least": []}
    assert float(wiring._measure(parsed, False, claims)["norm_at_least"].mid()) == pytest.approx(expected, rel=1e-12)
    if expected > 0:
        assert float(wiring._measure(parsed, True, claims)["norm_at_least"].mid()) == pytest.approx(expected, rel=1e-9)
    assert "norm_at_least" not in wiring._measure(parsed, False, {"distance": []})
    assert "norm_at_least" not in wiring._measure(parsed, True, {"distance": []})
    for in_float64 in (False, True):
        without = wiring._parse(small(multipliers=None, tol=None))
        assert "norm_at_least" not in wiring._measure(without, in_float64, claims)


def test_a_leak_without_a_multiplier_needs_no_mix():
    parsed = wiring._parse(small(multipliers=[0.0, 1.0, 0.0]))
    scores = [arb(0)] * 4
    token, g, b = wiring._inequality(parsed, 0, [0, 1, 2, 3], scores, [0, 3])
    assert token == 2 and [float(v) for v in g] == [1.0, 1.0] and float(b) == pytest.approx(np.log(3))
    token, g, b = wiring._inequality(wiring._parse(small()), 1, [0, 1, 2, 3], scores, [1])
    assert token == 0 and [float(v.mid()) for v in g] == pytest.approx([1.5 * (0 - 2 / 3), 1.5 * (2 - 2 / 3)])
    assert float(b.mid()) == pytest.approx(1.5 * (np.log(3) + np.log(3)))


def test_without_writes_only_distances_are_measured():
    for in_float64 in (False, True):
        parsed = wiring._parse(small(V=None, writes=None))
        assert set(wiring._measure(parsed, in_float64, {"distance": []})) == {"distance"}
    assert "V" in wiring._parse(small(writes=None)) and "writes" not in wiring._parse(small(writes=None))


def count_of(rules, monkeypatch, claims, **limits):
    """The rules that balls decide one by one, of a wiring whose work is said to be too much for them."""
    asked = []
    true = wiring._in_balls

    def recorded(p, rows, bounded):
        asked.append((list(rows), bounded))
        return true(p, rows, bounded)

    monkeypatch.setattr(wiring, "_in_balls", recorded)
    monkeypatch.setattr(wiring, "MAX_BALL_WORK", 0)
    for name, value in limits.items():
        monkeypatch.setattr(wiring, name, value)
    with ctx.workprec(128):
        return asked, wiring._measure(wiring._parse(rules), False, claims)


def test_balls_decide_what_float64_leaves_open_and_only_so_many_rules(monkeypatch):
    exact = [by_hand(SMALL, row)[0] for row in (0, 1)]
    asked, measured = count_of(small(), monkeypatch, {"distance": [exact[0], 0.999]})
    assert asked == [([0], False)]
    assert float(measured["distance"][0].rad()) < 1e-30 < 1e-17 < float(measured["distance"][1].rad())
    assert float(measured["output"][0].rad()) < 1e-30
    asked, measured = count_of(small(), monkeypatch, {"distance": [0.0, exact[1]]})
    assert asked == [([1], False)] and float(measured["distance"][1].rad()) < 1e-30
    asked, _ = count_of(small(), monkeypatch, {"distance": exact}, MAX_OPEN_RULES=1)
    assert asked == [([0], False)]
    assert wiring.MAX_OPEN_RULES == 1


def test_small_wirings_are_measured_in_balls_and_large_ones_in_float64_first(monkeypatch):
    assert wiring.MAX_OPEN_RULES == 16 and wiring.MAX_BALL_WORK == 2e7
    work = 2 * 4 * (2 + 3)
    seen = []
    monkeypatch.setattr(wiring, "_in_balls", lambda p, rows, bounded: seen.append((list(rows), bounded)) or {})
    for limit, balls in ((work, True), (work - 1, False)):
        seen.clear()
        monkeypatch.setattr(wiring, "MAX_BALL_WORK", limit)
        wiring._measure(wiring._parse(small()), False, {"distance": [2.0], "norm_at_least": []})
        assert seen == ([([0, 1], True)] if balls else [])
    wiring._measure(wiring._parse(small()), True, {"distance": [2.0]})
    assert not seen


def test_a_rule_is_open_where_a_claim_is_neither_proved_nor_refuted():
    wide = arb(1, 0.5)
    out = {"distance": [wide, arb(1), wide], "output": [arb(1), arb(1), wide]}
    assert wiring._open(out, {"distance": [1.2]}, 3).tolist() == [True, False, True]
    assert wiring._open(out, {"distance": [1.6, 1.0, 0.4]}, 3).tolist() == [False, False, False]
    assert wiring._open(out, {"distance": [1.6], "output": [1.2]}, 3).tolist() == [False, False, True]
    assert wiring._open(out, {"distance": [1.2, 1.2]}, 3).tolist() == [False] * 3  # two bounds for three rules
    assert wiring._open(out, {"distance": [], "residual": [1.0]}, 3).tolist() == [False] * 3


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"Q": np.ones((3, 3))}, "the tokens, Q and K do not fit"),
        ({"K": np.ones((3, 3))}, "the tokens, Q and K do not fit"),
        ({"K": np.ones((2, 2))}, "the rows of Q and K do not fit"),
        ({"V": np.ones((3, 3))}, "the tokens and V do not fit"),
        ({"V": np.ones((2, 2))}, "V and writes do not fit"),
        ({"writes": np.ones((3, 3))}, "rules and writes do not fit"),
        ({"writes": {0: [1.0] * 3}}, "not those that read"),
        ({"writes": {0: [1.0] * 3, 1: [1.0] * 3}}, "not those that read"),
        ({"tol": 0.0}, "not between 0 and 1"),
        ({"multipliers": [1.0, 2.0]}, "read tokens and multipliers do not fit"),
        ({"multipliers": [-1.0, 2.0, 0.0]}, "first token, which is that of its leak, is negative"),
        ({"multipliers": [1.0, 2.0, -1e-300]}, "first token, which is that of its leak, is negative"),
    ],
)
def test_each_defect_is_refused_by_itself(changes, why):
    with pytest.raises(InvalidCertificate, match=why):
        wiring._parse(small(**changes))


@pytest.mark.parametrize("missing", ["V", "multipliers", "tol"])
def test_what_belongs_together_is_missed(missing):
    with pytest.raises(KeyError, match=missing):
        wiring._parse(small(**{missing: None}))


def test_writes_by_token_come_in_the_order_of_the_rules():
    parsed = wiring._parse(small(writes={0: [0.0, -1.0, 2.0], "2": [1.0, 0.0, 0.0]}))
    assert parsed["writes"].tolist() == SMALL["writes"]


def test_statements_say_what_was_claimed():
    claims = {"distance": [0.25, 0.125], "output": [0.5, 0.75], "norm_at_least": 1.5}
    assert wiring._describe(small(), {"distance": 0.1234567}) == (
        "each rule's token reads as wanted to within 0.123457 in total variation"
    )
    start = (
        "each rule's token reads as wanted to within 0.25 in total variation, and its output is within 0.75 of what it "
    )
    assert wiring._describe(small(), claims) == (
        start + "should write; every W = QᵀK with which they read in the exact ratios with leaks of at most 0.25 has a "
        "norm of at least 1.5"
    )
    single = small(weights=[1.0, 1.0], items=[0, 1], offsets=[0, 1, 2], tol=0.1234567)
    assert wiring._describe(single, claims | {"output": 0.1234567, "norm_at_least": 0.1234567}) == (
        start.replace("0.75", "0.123457") + "should write; every W = QᵀK with which they read as wanted to "
        "within 0.123456 in total variation has a norm of at least 0.123456"
    )
    assert wiring._describe(small(mask="causal"), claims).startswith("under a causal mask, each rule's")


@pytest.mark.parametrize(
    ("data", "single"),
    [
        ({"reads": {0: 1, 1: {2: 1.0}}}, True),
        ({"reads": {0: 1, 1: {2: 1.0, 0: 0.0}}}, True),
        ({"reads": {0: 1, 1: {2: 0.5, 0: 0.5}}}, False),
        ({"reads": {0: {1: 1 + 1e-12}}}, False),
        ({"wanted": [[0.0, 1.0], [1.0, 0.0]]}, True),
        ({"wanted": [[0.0, 1.0], [0.5, 0.5]]}, False),
        ({"weights": [1.0, 1.0]}, True),
        ({"weights": [1.0, 1 - 1e-12]}, False),
    ],
)
def test_total_variation_and_leak_are_the_same_only_for_single_tokens(data, single):
    assert wiring._reads_single_tokens(data) is single


@pytest.mark.parametrize(
    ("rules", "tokens", "first"), [(5, 100, False), (5, 101, True), (1, 501, True), (1, 500, False)]
)
def test_float64_is_tried_first_above_500_scores(rules, tokens, first):
    x = np.zeros((tokens, 2))
    assert wiring.WIRING.float64_first({"X": x, "rules": np.arange(rules)}) is first
    assert wiring.WIRING.float64_first({"X": x, "reads": dict.fromkeys(range(rules), 0)}) is first
