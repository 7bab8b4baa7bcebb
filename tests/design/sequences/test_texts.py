"""Vocabularies and sequences: layout, checks, refusals."""

import numpy as np
import pytest
import torch

from qkv.design import Sequences, Vocabulary
from qkv.errors import QkvError


def test_a_token_at_a_position_is_the_sum_of_both_vectors():
    words = Vocabulary([[1.0, 2], [3, 4]], [[10.0, 0, 5], [0, 10, 6]])
    assert words.vectors([1, 0]).tolist() == [[13, 4, 5], [1, 12, 6]]
    assert (words.width, words.length, words.labels) == (3, 2, (0, 1))
    assert words.widened(2).vectors([1]).tolist() == [[13, 4, 5, 0, 0]]


def test_side_by_side_normalises_and_keeps_tokens_and_positions_apart():
    words = Vocabulary.side_by_side([[3.0, 4], [1e-200, 0]], length=3, labels=["a", "b"])
    assert torch.allclose(words.tokens, torch.tensor([[0.6, 0.8], [1, 0]], dtype=torch.float64))
    assert words.positions.tolist() == np.eye(3, 5, 2).tolist()
    kept = Vocabulary.side_by_side([[3.0, 4]], positions=[[2.0], [3.0]], normalise=False)
    assert kept.tokens.tolist() == [[3, 4]] and kept.positions.tolist() == [[0, 0, 2], [0, 0, 3]]


BAD_VOCABULARIES = {
    "wide tokens": (lambda: Vocabulary([[1.0, 2, 3]], [[1.0]]), "its tokens have 3 numbers and its positions 1"),
    "labels": (lambda: Vocabulary([[1.0]], [[1.0]], ("a", "b")), "1 tokens and 2 labels"),
    "huge": (lambda: Vocabulary([[1e200]], [[1.0]]), "an entry is above"),
    "zero": (lambda: Vocabulary.side_by_side([[1.0], [0.0]], length=2), "token 1 is zero"),
    "both": (lambda: Vocabulary.side_by_side([[1.0]], 2, positions=[[1.0]]), "either length or positions"),
    "neither": (lambda: Vocabulary.side_by_side([[1.0]]), "either length or positions"),
    "NaN": (lambda: Vocabulary([[np.nan]], [[1.0]]), "NaN"),
}


@pytest.mark.parametrize(("make", "message"), BAD_VOCABULARIES.values(), ids=BAD_VOCABULARIES)
def test_malformed_vocabularies_are_refused(make, message):
    with pytest.raises(QkvError, match=message):
        make()


BAD_TEXTS = {
    "no text": ([], "no text"),
    "an empty text": ([[]], "text 0 is"),
    "words": (["ab"], "text 0 is 'ab'"),
    "an unknown token": ([[0], [0, 2]], "text 1 holds token 2, and there are 2"),
    "a negative token": ([[-1]], "token 0 of text 0 is -1"),
    "a fraction": ([[0.5]], "token 0 of text 0 is 0.5"),
    "too long": ([[0, 1, 0, 1]], "4 tokens, and there are 3 positions"),
}


@pytest.mark.parametrize(("ids", "message"), BAD_TEXTS.values(), ids=BAD_TEXTS)
def test_malformed_texts_are_refused(ids, message):
    words = Vocabulary.side_by_side([[1.0, 0], [0, 1]], length=3)
    with pytest.raises(QkvError, match=message):
        Sequences(words, ids)


def test_texts_may_be_lists_arrays_or_tensors():
    words = Vocabulary.side_by_side([[1.0, 0], [0, 1]], length=3)
    same = Sequences(words, [[0, 1], np.array([0, 1]), torch.tensor([0, 1])])
    assert same.ids == ((0, 1),) * 3
    assert "3" in str(same.card().facts)
