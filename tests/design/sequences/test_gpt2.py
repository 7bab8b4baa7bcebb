"""Circuits in a stock GPT-2 of transformers: its own attentions are the circuit's."""

import numpy as np
import pytest
import torch

from qkv.design import Sequences, Vocabulary, duplicate, induction, previous, to_gpt2, wire_texts
from qkv.errors import QkvError

pytest.importorskip("transformers", reason="transformers is not installed: pip install 'qkv[hf]'")


@torch.no_grad()
def attentions(model, ids):
    return [a[0, 0].double() for a in model(torch.tensor([ids]), output_attentions=True).attentions]


@pytest.mark.parametrize("heads", [None, 1, 2])
@pytest.mark.parametrize(
    "rule", [previous(), duplicate(), induction(), induction(sink=3)], ids=lambda r: f"{r.name} {r.sink}"
)
def test_the_attentions_of_the_model_are_those_of_the_circuit(rule, heads):
    rng = np.random.default_rng(0)
    circuit = wire_texts(Vocabulary.side_by_side(rng.normal(size=(20, 6)), length=10), rule)
    model = to_gpt2(circuit, heads=heads)
    single = to_gpt2(circuit, heads=heads, dtype=torch.float32)
    assert type(model).__module__.startswith("transformers.") and not model.training
    for _ in range(5):
        ids = [3, *rng.choice([0, 1, 2, 4], size=9).tolist()]
        found, own = attentions(model, ids), circuit.weights(ids)
        # LayerNorm is the identity for vectors of the length that the circuit has; positions without a rule may have
        # read a mixture, which is shorter, but no layer of these circuits comes after them.
        assert max(float((a - b).abs().max()) for a, b in zip(found, own, strict=True)) < 1e-11
        assert max(circuit.distances(ids, found[-1]).values()) <= circuit.tol
        assert max(circuit.distances(ids, attentions(single, ids)[-1]).values()) <= circuit.tol * 1.01


def test_given_texts_and_other_coordinates_run_too():
    rng = np.random.default_rng(0)
    words = Vocabulary.side_by_side(rng.normal(size=(6, 4)), length=6)
    turn = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    turned = Vocabulary(np.asarray(words.tokens) @ turn[:4], np.asarray(words.positions) @ turn)
    ids = [0, 3, 3, 1, 0, 3]
    for circuit in (wire_texts(Sequences(words, [ids]), previous()), wire_texts(turned, induction())):
        found = attentions(to_gpt2(circuit), ids)
        assert max(circuit.distances(ids, found[-1]).values()) <= circuit.tol


def test_vectors_that_layernorm_would_change_are_refused():
    uneven = Vocabulary.side_by_side([[1.0, 0], [0, 2]], length=4, normalise=False)
    with pytest.raises(QkvError, match="lengths from 1 to 2"):
        to_gpt2(wire_texts(uneven, previous()))
    askew = Vocabulary(np.eye(2, 4), np.array([[0.5, 0, 1, 0], [0, 0.5, 0, 1]]))
    with pytest.raises(QkvError, match="right angles"):
        to_gpt2(wire_texts(askew, previous()))
    with pytest.raises(QkvError, match="heads is 0"):
        to_gpt2(wire_texts(Vocabulary.side_by_side(np.eye(2), length=4), previous()), heads=0)


def test_a_circuit_that_was_not_found_is_refused():
    words = Vocabulary(np.eye(3), np.zeros((4, 3)))
    nothing = wire_texts(Sequences(words, [[0, 1, 0, 2]]), previous())
    with pytest.raises(QkvError, match="no layers"):
        to_gpt2(nothing)
