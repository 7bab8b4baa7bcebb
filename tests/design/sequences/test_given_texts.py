"""The smallest head for given texts: met there, certified there, and not claimed elsewhere."""

import numpy as np
import pytest

import qkv
from qkv.design import Sequences, Vocabulary, duplicate, induction, previous, wire_texts
from qkv.errors import QkvError


@pytest.mark.parametrize("seed", range(9))
def test_the_given_texts_are_read_and_the_norm_is_the_smallest(seed):
    rng = np.random.default_rng(seed)
    rule = (previous(), duplicate(), duplicate(sink=0))[seed % 3]
    words = Vocabulary.side_by_side(rng.normal(size=(6, 4)), length=7)
    texts = [[0, *rng.integers(1, 6, size=6).tolist()] for _ in range(3)]
    circuit = wire_texts(Sequences(words, texts), rule, tol=1e-2)
    assert circuit.status == "found" and circuit.scope == "given texts"
    assert circuit.rules == sum(len(rule.targets(ids)) for ids in texts)
    assert max(max(circuit.distances(ids).values()) for ids in texts) <= circuit.distance <= 1e-2
    assert circuit.least_norm <= circuit.norm <= 1.0001 * circuit.least_norm
    assert circuit.certificate.verify()
    assert "in the 3 given texts" in circuit.to_json()["says"] and "every text" not in circuit.to_json()["says"]
    everywhere = wire_texts(words, rule, tol=1e-2)
    if len(everywhere.layers) == 1:
        assert circuit.norm <= everywhere.norm * (1 + 1e-6), "every text includes these"


def test_what_one_head_cannot_do_is_said_with_a_bound():
    """No key shows what stood before it: one head does induction for a few texts at best."""
    rng = np.random.default_rng(2)
    words = Vocabulary.side_by_side(rng.normal(size=(6, 4)), length=7)
    texts = [[0, *rng.integers(1, 6, size=6).tolist()] for _ in range(3)]
    circuit = wire_texts(Sequences(words, texts), induction(sink=0), tol=1e-2)
    assert circuit.status in ("not found", "out of reach") and not circuit.possible
    assert circuit.certificate.verify() and circuit.least_norm > 1e3
    assert "in text" in circuit.reasons[0]
    assert len(wire_texts(words, induction(sink=0), tol=1e-2).layers) == 2


def test_reads_may_be_listed_position_by_position():
    words = Vocabulary.side_by_side(np.random.default_rng(0).normal(size=(6, 4)), length=6)
    texts = Sequences(words, [[0, 1, 2, 3], [4, 5, 4]])
    circuit = wire_texts(texts, [{3: [1, 2], 2: 0}, {2: 1}], tol=1e-2)
    assert circuit.status == "found" and circuit.rules == 3 and circuit.certificate.verify()
    assert circuit.least_norm <= circuit.norm <= 1.0001 * circuit.least_norm
    assert circuit.weights([0, 1, 2, 3])[0][3].numpy() == pytest.approx([0, 0.5, 0.5, 0], abs=1e-2)
    assert set(circuit.distances([4, 5, 4])) == {2}
    with pytest.raises(QkvError, match="none of them"):
        circuit.distances([1, 1])


LISTS = {
    "a missing text": ([{1: 0}], "there are 1 lists"),
    "the future": ([{1: 2}, {}], "position 1 of text 0 reads 2, which the causal mask hides"),
    "a position beyond the text": ([{}, {3: 0}], "position 3 is listed for text 1, which has 3 tokens"),
    "nothing": ([{1: []}, {}], r"position 1 of text 0 reads \[\]"),
    "one twice": ([{1: [0, 0]}, {}], "Name each position once"),
    "no mapping": ([[1], {}], "those of text 0 are"),
    "fractions": ([{1: 0.5}, {}], "reads is 0.5"),
    "no rule": ([{}, {}], "they hold no rule"),
}


@pytest.mark.parametrize(("reads", "message"), LISTS.values(), ids=LISTS)
def test_malformed_lists_are_refused_by_name(reads, message):
    words = Vocabulary.side_by_side(np.eye(6), length=6)
    with pytest.raises(QkvError, match=message):
        wire_texts(Sequences(words, [[0, 1, 2, 3], [4, 5, 4]]), reads)


def test_a_text_given_twice_has_the_same_reads():
    words = Vocabulary.side_by_side(np.eye(3), length=3)
    with pytest.raises(QkvError, match="text 1 was given before, with other reads"):
        wire_texts(Sequences(words, [[0, 1, 2], [0, 1, 2]]), [{1: 0}, {2: 0}])


def test_the_certificate_does_not_hold_for_other_texts():
    words = Vocabulary.side_by_side(np.random.default_rng(0).normal(size=(6, 4)), length=6)
    circuit = wire_texts(Sequences(words, [[0, 1, 2, 3, 4, 5]]), previous(), tol=1e-3)
    data = {**circuit.certificate.data, "ids": [5, 4, 3, 2, 1, 0]}
    assert circuit.certificate.verify()
    assert not qkv.design.Certificate("given texts", data, circuit.certificate.claims).verify()


def test_texts_without_a_rule_are_refused():
    words = Vocabulary.side_by_side(np.eye(3), length=3)
    with pytest.raises(QkvError, match="they hold no rule"):
        wire_texts(Sequences(words, [[0, 1, 2]]), duplicate())


def test_a_rule_without_rivals_needs_no_bound():
    words = Vocabulary.side_by_side(np.eye(2), length=2)
    circuit = wire_texts(Sequences(words, [[0, 1]]), induction(sink=0))
    assert circuit.possible and circuit.certificate.verify()


def test_the_reason_why_no_head_reads_names_tokens_with_one_vector():
    words = Vocabulary(np.eye(3), np.zeros((6, 3)), labels=("a", "b", "c"))
    circuit = wire_texts(Sequences(words, [[0, 1, 0, 1, 2, 1]]), previous())
    assert circuit.reasons[0] == "in text 0, b at 3 should read a at 2, but a at 0 has the same vector"
    assert "No W = QᵀK of norm below" in circuit.card().title
    assert circuit.certificate.verify()
