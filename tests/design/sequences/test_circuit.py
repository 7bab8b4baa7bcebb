"""Circuits as values: cards, JSON, weights, and the texts that their certificates cover."""

import json

import numpy as np

from qkv.design import Sequences, Vocabulary, duplicate, induction, previous, wire_texts

WORDS = Vocabulary.side_by_side(np.random.default_rng(0).normal(size=(6, 4)), length=5, labels=list("abcdef"))


def facts(circuit):
    return dict(circuit.card().facts)


def test_the_card_says_which_texts_are_covered():
    everywhere = wire_texts(WORDS, induction())
    assert facts(everywhere)["certified for"] == "every text of at most 5 tokens over 6"
    assert "norm of every W" not in facts(everywhere), "no bound on the norm was shown"
    given = wire_texts(Sequences(WORDS, [[0, 1, 0, 2]]), previous())
    assert facts(given)["certified for"] == "the given texts, which hold 3 rules"
    assert "certified" in facts(given)["norm of every W"]


def test_excluded_tokens_stand_on_the_card():
    e = np.asarray(WORDS.tokens).copy()
    e[5] = e[1]
    circuit = wire_texts(Vocabulary.side_by_side(e, length=5, labels=list("abcdef")), duplicate())
    assert facts(circuit)["not covered"] == "what b, f read"
    assert circuit.card().title == "Circuit for some tokens"


def test_json_holds_no_infinities_and_the_statement():
    for circuit in (wire_texts(WORDS, induction(sink=2)), wire_texts(Sequences(WORDS, [[0, 1, 0]]), duplicate())):
        said = json.loads(json.dumps(circuit.to_json(), allow_nan=False))
        assert said["says"] == circuit.certificate.worded(dict(enumerate("abcdef")))
        assert said["scope"] == circuit.scope and "\n" not in repr(circuit)


def test_weights_are_causal_and_sum_to_one():
    for alpha in wire_texts(WORDS, induction()).weights([3, 1, 3, 3]):
        assert np.allclose(alpha.sum(dim=1), 1) and not np.triu(alpha, 1).any()
