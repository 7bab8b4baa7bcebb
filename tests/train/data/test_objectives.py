"""Objectives: the course's distribution of span corruption, whole salient spans, next tokens and questions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.errors import QkvError
from qkv.train.data.objectives import (
    Document,
    Example,
    documents,
    next_token,
    objective,
    question_example,
    salient_span_corruption,
    span_corruption,
    split_at_random_span,
)
from qkv.train.data.salient_spans import find_salient_spans
from qkv.train.tokenizers import END_ID, MASK_ID, BytePairs, Characters

LONG = Document(list(range(10, 400)))


def parts(example):
    """An example of span corruption, taken apart again at its signs."""
    at = [i for i, token in enumerate(example.ids) if token == MASK_ID]
    assert len(at) == 3 and at[2] == len(example.ids) - 1
    return example.ids[: at[0]], example.ids[at[0] + 1 : at[1]], example.ids[at[1] + 1 : at[2]]


@pytest.mark.parametrize("block", [16, 64, 128])
def test_span_corruption_has_the_distribution_of_the_course(block):
    random = np.random.default_rng(0)
    lengths, shares = [], []
    for _ in range(4000):
        prefix, suffix, masked = parts(span_corruption(LONG, block, random))
        n = len(prefix) + len(suffix) + len(masked)
        assert [*prefix, *masked, *suffix] == LONG.ids[:n]
        assert len(masked) >= 1
        lengths.append(n)
        shares.append(len(masked) / n)
    assert (min(lengths), max(lengths)) == (4, 7 * block // 8)
    assert np.mean(lengths) == pytest.approx((4 + 7 * block // 8) / 2, rel=0.03)
    assert np.mean(shares) == pytest.approx(0.25, abs=0.01)
    assert len(set(lengths)) == 7 * block // 8 - 3  # every length occurs


@given(st.integers(1, 60), st.integers(16, 80), st.integers(0, 2**32))
def test_corruption_only_rearranges(n, block, seed):
    ids = list(range(10, 10 + n))
    prefix, masked, suffix = split_at_random_span(ids, block, np.random.default_rng(seed))
    assert [*prefix, *masked, *suffix] == ids[: len(prefix) + len(masked) + len(suffix)]
    assert masked and len(prefix) + len(masked) + len(suffix) <= 7 * block // 8


@pytest.mark.parametrize("make", [span_corruption, next_token, salient_span_corruption])
@given(n=st.integers(1, 200), block=st.integers(16, 70), seed=st.integers(0, 2**32))
def test_examples_fit_the_block(make, n, block, seed):
    random = np.random.default_rng(seed)
    first = int(random.integers(n))
    document = Document(list(range(10, 10 + n)), ((first, min(n, first + int(random.integers(1, 30)))),))
    example = make(document, block, random)
    assert 2 <= len(example.ids) <= block + 1 and 1 <= example.start < len(example.ids)


def test_next_token_prediction_reads_whole_texts_or_stretches_of_them():
    random = np.random.default_rng(0)
    assert next_token(Document([7, 8]), 16, random).ids == [END_ID, 7, 8, END_ID]
    ids = next_token(LONG, 16, random).ids
    assert len(ids) == 17 and ids == list(range(ids[0], ids[0] + 17))


def test_salient_corruption_masks_one_salient_span_and_asks_for_it_alone():
    document = Document(list(range(10, 40)), ((3, 5), (20, 24)))
    random = np.random.default_rng(0)
    seen = set()
    for _ in range(200):
        example = salient_span_corruption(document, 32, random)
        prefix, suffix, masked = parts(example)
        assert example.ids[example.start :] == [*masked, MASK_ID]
        whole = [*prefix, *masked, *suffix]
        assert whole == list(range(whole[0], whole[0] + len(whole)))
        seen.add(tuple(masked))
    assert seen == {(13, 14), (30, 31, 32, 33)}


def test_questions_ask_for_the_answer():
    assert question_example([5, 6], [7], 16) == Example([5, 6, MASK_ID, 7, MASK_ID], start=3)
    with pytest.raises(QkvError, match="15 and 3 tokens"):
        question_example([5] * 15, [6] * 3, 16)


@pytest.mark.parametrize("tokenizer", [Characters.train, lambda texts: BytePairs.train(texts, 300)])
def test_salient_spans_are_whole_tokens(tokenizer):
    texts = ["Ada Lovelace was born in London in 1815.", "no names", "Where is Ω? In Łódź."]
    made = tokenizer(texts)
    for text, document in zip(texts, documents(texts, made, spans=True), strict=True):
        assert made.decode(document.ids) == text
        assert [made.decode(document.ids[a:b]).strip() for a, b in document.spans] == [
            text[a:b] for a, b in find_salient_spans(text)
        ]


def test_unknown_objectives_and_short_blocks_are_refused():
    with pytest.raises(QkvError, match="none called 'masked'"):
        objective("masked")
    with pytest.raises(QkvError, match="context_length is 8"):
        span_corruption(LONG, 8, np.random.default_rng(0))
