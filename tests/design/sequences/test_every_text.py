"""Circuits for every text: random vocabularies, random texts, tokens that cannot be told apart."""

import numpy as np
import pytest

import qkv
from qkv.design import Vocabulary, duplicate, induction, previous, wire_texts
from qkv.errors import QkvError


def random_texts(rng, n, length, sink, count=20):
    """Texts with few different tokens, so that they repeat."""
    others = np.array([u for u in range(n) if u != sink])
    for _ in range(count):
        few = rng.choice(others, size=min(len(others), int(rng.integers(1, 6))), replace=False)
        ids = rng.choice(few, size=int(rng.integers(1, length + 1))).tolist()
        yield ids if sink is None else [sink, *ids[1:]]


def rotated(words, rng):
    """The same vocabulary in other coordinates, in which tokens and positions share all entries."""
    turn = np.linalg.qr(rng.normal(size=(words.width, words.width)))[0]
    e = np.asarray(words.tokens)
    return Vocabulary(e @ turn[: e.shape[1]], np.asarray(words.positions) @ turn)


@pytest.mark.parametrize("seed", range(24))
def test_texts_are_read_within_the_certified_distance(seed):
    rng = np.random.default_rng(seed)
    n, width, length = int(rng.integers(2, 30)), int(rng.integers(3, 12)), int(rng.integers(2, 12))
    tol = float(rng.choice([1e-1, 1e-3, 1e-6]))
    sink = int(rng.integers(n)) if seed % 2 else None
    rule = (previous(), duplicate(sink), induction(sink))[seed % 3]
    words = Vocabulary.side_by_side(rng.normal(size=(n, width)), length=length)
    if seed % 4 == 0:
        words = rotated(words, rng)
    circuit = wire_texts(words, rule, tol=tol)
    assert circuit.status == "found" and circuit.distance <= tol
    assert circuit.certificate.verify()
    for ids in random_texts(rng, n, length, rule.sink):
        found = circuit.distances(ids)
        assert set(found) == set(rule.targets(ids))
        assert max(found.values(), default=0) <= circuit.distance * (1 + 1e-9) + 1e-12


def test_layers_write_the_token_that_was_read():
    words = Vocabulary.side_by_side(np.random.default_rng(0).normal(size=(5, 3)), length=6)
    circuit = wire_texts(words, induction(), tol=1e-6)
    x = circuit.vocabulary.vectors([2, 4, 1, 2])
    for layer in circuit.layers:
        _, x = layer.weights(x)
    before, after = words.width, words.width + 3
    assert np.allclose(x[3, before:after], words.tokens[1], atol=1e-9), "layer 1 copies the token before"
    assert np.allclose(x[3, after:], words.tokens[4], atol=1e-5), "layer 2 copies the token after the earlier equal one"


def test_the_matrix_of_previous_is_the_smallest_on_positions_alone():
    from qkv.design.solvers.kernel_machine import smallest_matrix
    from qkv.design.solvers.sequence_rules import SequenceRules

    circuit = wire_texts(Vocabulary.side_by_side([[1.0]], length=7), previous(), tol=1e-3)
    rules = SequenceRules.of(np.eye(7), None, [None, *range(6)], np.tri(7, dtype=bool))
    assert circuit.norm == pytest.approx(smallest_matrix([rules], 1e-3).norm, rel=1e-3)


def test_tokens_with_one_vector_are_excluded_and_named():
    rng = np.random.default_rng(1)
    e = rng.normal(size=(8, 4))
    e[5] = e[2]
    words = Vocabulary.side_by_side(e, length=6, labels=[f"w{u}" for u in range(8)])
    for rule in (duplicate(), induction(sink=0)):
        circuit = wire_texts(words, rule)
        assert circuit.status == "found for some tokens" and circuit.excluded == (2, 5)
        assert "w2 looks for itself, but w5 has the same vector" in circuit.reasons
        assert "what the tokens w2, w5 read is not covered" in circuit.to_json()["says"]
        assert circuit.certificate.verify()
        assert 3 not in circuit.distances([0, 2, 5, 5]) and 3 in circuit.distances([0, 1, 2, 1])
        claimed = dict(circuit.certificate.data)
        del claimed["excluded"]
        assert not qkv.design.Certificate("every text", claimed, circuit.certificate.claims).verify()


def test_without_normalisation_short_tokens_are_named():
    words = Vocabulary.side_by_side([[1.0, 0], [3.0, 1], [0, 2]], length=5, normalise=False, labels=["a", "b", "c"])
    circuit = wire_texts(words, duplicate())
    assert circuit.excluded == (0,)
    assert circuit.reasons == (
        "a looks for itself, but b scores 3, and it scores itself 1: the difference is not above 0.01",
    )


REFUSED = {
    "every token alike": (Vocabulary.side_by_side([[1.0], [2.0]], length=3), duplicate(), "no token scores itself"),
    "positions that span all": (Vocabulary([[1.0, 0], [0, 1]], np.eye(2)), previous(), "span all dimensions"),
    "tokens that span all": (Vocabulary(np.eye(3), np.eye(3)[:2]), previous(), "the tokens span all"),
    "dependent positions": (
        Vocabulary.side_by_side([[1.0]], positions=[[1.0, 0], [0, 1], [1, 1]]), previous(), "3 position vectors span 2",
    ),
    "an unknown sink": (Vocabulary.side_by_side(np.eye(2), length=3), duplicate(2), "the sink is token 2"),
    "a sink of uneven tokens": (
        Vocabulary.side_by_side([[1.0, 0], [0, 3], [0.5, 2.9]], length=3, normalise=False), duplicate(2), "Normalise",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("words", "rule", "message"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_circuit_is_refused_with_the_reason(words, rule, message):
    with pytest.raises(QkvError, match=message):
        wire_texts(words, rule)
