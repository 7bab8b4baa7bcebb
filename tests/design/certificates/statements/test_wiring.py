"""Statements about wirings, from arrays or as written by hand, and "no W follows the rules"."""

import json

import numpy as np
import oracle
import pytest

import qkv
from qkv.design.certificates import Certificate


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
