"""Two layers of attention that complete "a b … a" with b, for every text over a vocabulary, run in a stock GPT-2."""

from __future__ import annotations

import numpy as np
import torch

import qkv

WORDS = ["the", "cat", "saw", "a", "dog", "and", "then", "it", "ran", "to", "her", "house"]
TEXT = ["then", "the", "cat", "saw", "the", "dog", "and", "then"]


def main() -> None:
    vectors = np.random.default_rng(0).standard_normal((len(WORDS), 8))
    words = qkv.design.Vocabulary.side_by_side(vectors, length=16, labels=WORDS)
    circuit = qkv.design.wire_texts(words, qkv.design.induction(), tol=1e-3)
    assert circuit.certificate is not None
    say(f"{len(WORDS)} words with random vectors, {words.length} positions. The rule: {circuit.rule}.\n")
    say("Certified: " + circuit.certificate.statement + ".")
    say(f"Verified again from the raw numbers, by no solver: {bool(circuit.certificate.verify())}.\n")

    ids = [WORDS.index(word) for word in TEXT]
    say(f"The text: {' '.join(TEXT)}")
    try:
        model = qkv.design.to_gpt2(circuit)
    except qkv.QkvError as why:
        say(f"(Not run in GPT-2: {why})")
        weights = circuit.weights(ids)[-1]
    else:
        with torch.no_grad():
            weights = model(torch.tensor([ids]), output_attentions=True).attentions[-1][0, 0]
        say("Run in transformers' GPT-2, whose own attentions say:")
    for i, read in circuit.rule.targets(ids).items():
        best = int(weights[i].argmax())
        say(f"   {TEXT[i]} at {i} reads {TEXT[best]} at {best} with weight {float(weights[i, best]):.4f}")
        assert best in read
    worst = max(circuit.distances(ids, weights).values())
    say(f"Largest distance from the wanted weights: {worst:.1e}, certified to be at most {circuit.distance:.2e}.")


def say(line: str) -> None:
    """Print one line."""
    print(line)


if __name__ == "__main__":
    main()
