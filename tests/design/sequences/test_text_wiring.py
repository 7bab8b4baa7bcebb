"""wire_texts: arguments, and what it takes."""

import numpy as np
import pytest

from qkv.design import Sequences, Vocabulary, duplicate, previous, wire_texts
from qkv.errors import QkvError

WORDS = Vocabulary.side_by_side(np.eye(4), length=5)

BAD = {
    "tol": (lambda: wire_texts(WORDS, previous(), tol=0), "tol is 0"),
    "gap": (lambda: wire_texts(WORDS, duplicate(), least_gap=1), "least_gap is 1"),
    "memory": (lambda: wire_texts(Sequences(WORDS, [[0, 1, 2]]), previous(), memory_limit=1e3), "Allow more memory"),
    "a word": (lambda: wire_texts(WORDS, "previous"), "reads is a str"),
    "a list for every text": (lambda: wire_texts(WORDS, [{1: 0}]), "reads is a list"),
    "vectors": (lambda: wire_texts(np.eye(3), previous()), "texts is an ndarray"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_malformed_arguments_are_refused(call, message):
    with pytest.raises(QkvError, match=message):
        call()


@pytest.mark.parametrize("texts", [WORDS, Sequences(WORDS, [[0, 1, 0, 2, 1]])], ids=["every text", "given texts"])
def test_progress_is_reported(texts):
    seen = []
    wire_texts(texts, duplicate(), callback=lambda done, total: seen.append((done, total)))
    assert seen and all(0 <= done <= total for done, total in seen) and seen[-1][0] == seen[-1][1]
