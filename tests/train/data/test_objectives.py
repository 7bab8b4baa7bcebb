"""What a model is asked for: the course's distribution, whole salient spans, and batches that waste nothing."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv.errors import QkvError
from qkv.model.config import ModelConfig
from qkv.model.gpt import GPT
from qkv.train.data.objectives import (
    Document,
    Example,
    corrupt,
    documents,
    following,
    objective,
    question,
    salient_span,
    span,
)
from qkv.train.data.packing import asked, drawn, pack, shard
from qkv.train.data.salient_spans import salient
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import END_ID, MASK_ID, PAD_ID, BytePairs, Characters

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
        prefix, suffix, masked = parts(span(LONG, block, random))
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
    prefix, masked, suffix = corrupt(ids, block, np.random.default_rng(seed))
    assert [*prefix, *masked, *suffix] == ids[: len(prefix) + len(masked) + len(suffix)]
    assert masked and len(prefix) + len(masked) + len(suffix) <= 7 * block // 8


@pytest.mark.parametrize("make", [span, following, salient_span])
@given(n=st.integers(1, 200), block=st.integers(16, 70), seed=st.integers(0, 2**32))
def test_examples_fit_the_block(make, n, block, seed):
    random = np.random.default_rng(seed)
    first = int(random.integers(n))
    document = Document(list(range(10, 10 + n)), ((first, min(n, first + int(random.integers(1, 30)))),))
    example = make(document, block, random)
    assert 2 <= len(example.ids) <= block + 1 and 1 <= example.start < len(example.ids)


def test_next_token_prediction_reads_whole_texts_or_stretches_of_them():
    random = np.random.default_rng(0)
    assert following(Document([7, 8]), 16, random).ids == [END_ID, 7, 8, END_ID]
    ids = following(LONG, 16, random).ids
    assert len(ids) == 17 and ids == list(range(ids[0], ids[0] + 17))


def test_salient_corruption_masks_one_salient_span_and_asks_for_it_alone():
    document = Document(list(range(10, 40)), ((3, 5), (20, 24)))
    random = np.random.default_rng(0)
    seen = set()
    for _ in range(200):
        example = salient_span(document, 32, random)
        prefix, suffix, masked = parts(example)
        assert example.ids[example.start :] == [*masked, MASK_ID]
        whole = [*prefix, *masked, *suffix]
        assert whole == list(range(whole[0], whole[0] + len(whole)))
        seen.add(tuple(masked))
    assert seen == {(13, 14), (30, 31, 32, 33)}


def test_questions_ask_for_the_answer():
    assert question([5, 6], [7], 16) == Example([5, 6, MASK_ID, 7, MASK_ID], start=3)
    with pytest.raises(QkvError, match="15 and 3 tokens"):
        question([5] * 15, [6] * 3, 16)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Jacob Henry Studer (26 February 1840 Columbus, Ohio - 2 August 1904 New York City) was a printer.",
            ["Jacob Henry Studer", "26 February 1840", "Columbus", "Ohio", "2 August 1904", "New York City"],
        ),
        ("He was born in Rio de Janeiro on July 4, 1776.", ["Rio de Janeiro", "July 4, 1776"]),
        ("The Isle of Man has 84,000 people.", ["Isle of Man", "84,000"]),
        ("Ludwig van Beethoven wrote in the 1820s.", ["Ludwig van Beethoven", "1820s"]),
        ("Émile Zola lived near Łódź .", ["Émile Zola", "Łódź"]),
        ("nothing here is salient.", []),
        ("He was born in St. Louis. The Hague came later.", ["St. Louis", "Hague"]),
        ("She left The Hague for Washington, D.C. in 1901", ["The Hague", "Washington, D.C.", "1901"]),
        ("Vila do Conde or Freiburg im Breisgau, not the U.S.", ["Vila do Conde", "Freiburg im Breisgau", "U.S."]),
    ],
)
def test_names_dates_numbers_and_places_are_salient(text, found):
    assert [text[a:b] for a, b in salient(text)] == found


@pytest.mark.parametrize("tokenizer", [Characters.train, lambda texts: BytePairs.train(texts, 300)])
def test_salient_spans_are_whole_tokens(tokenizer):
    texts = ["Ada Lovelace was born in London in 1815.", "no names", "Where is Ω? In Łódź."]
    made = tokenizer(texts)
    for text, document in zip(texts, documents(texts, made, spans=True), strict=True):
        assert made.decode(document.ids) == text
        assert [made.decode(document.ids[a:b]).strip() for a, b in document.spans] == [
            text[a:b] for a, b in salient(text)
        ]


def test_unknown_objectives_and_short_blocks_are_refused():
    with pytest.raises(QkvError, match="none called 'masked'"):
        objective("masked")
    with pytest.raises(QkvError, match="block is 8"):
        span(LONG, 8, np.random.default_rng(0))


EXAMPLES = [Example(list(range(5, 5 + n)), start) for n, start in ((9, 1), (4, 3), (4, 1), (17, 10), (2, 1))]
EXAMPLES.append(Example(list(range(5, 18)), start=8, head=4))


def test_a_packed_batch_shifts_targets_by_one_and_holds_little_padding():
    batch = pack(EXAMPLES)
    assert batch.layout.shapes == ((1, 1), (2, 3), (1, 8), (1, 12), (1, 16))
    assert len(batch.tokens) == sum(len(e.ids) - 1 for e in EXAMPLES)
    wanted = sorted(token for e in EXAMPLES for token in e.ids[1 : e.head] + e.ids[e.start :])
    assert sorted(batch.targets.tolist()) == wanted and len(wanted) == asked(EXAMPLES)
    assert (batch.tokens[batch.keep] + 1 == batch.targets).all()  # ids count upwards here


def test_padding_changes_no_loss_and_no_gradient():
    torch.manual_seed(0)
    model = GPT(ModelConfig(d_model=16, n_head=2, context_length=24, vocab_size=24)).double()
    results = []
    for padded in (0, 24):
        batch = pack(EXAMPLES, padded)
        loss = model(batch.tokens, batch.layout, batch.keep, batch.targets)
        results.append((loss, *torch.autograd.grad(loss, list(model.parameters()))))
        assert len(batch.tokens) == (43 if not padded else 24 * len(EXAMPLES))
    for packed, padded in zip(*results, strict=True):
        torch.testing.assert_close(packed, padded, rtol=0, atol=1e-12)


def test_where_nearly_all_is_asked_for_padding_is_a_target_of_nothing():
    batch = pack([Example(list(range(5, 5 + n))) for n in (40, 41, 39)])
    assert batch.keep is None and int((batch.targets == -1).sum()) == int((batch.tokens == PAD_ID).sum())


def test_parts_of_a_batch_are_the_batch():
    got = [shard(EXAMPLES, part, 3) for part in range(3)]
    assert sorted(e.ids for each in got for e in each) == sorted(e.ids for e in EXAMPLES)
    assert all(len(each) == 2 for each in got)


def test_a_batch_is_a_function_of_its_step_and_every_document_comes_once_an_epoch():
    made = [Document([100 + i] * 5) for i in range(10)]
    source = drawn(made, following, 16, batch=5, seed=3)
    first = [source(step) for step in range(4)]
    again = drawn(made, following, 16, batch=5, seed=3)
    assert [again(step) for step in (3, 1, 0, 2)] == [first[step] for step in (3, 1, 0, 2)]
    for epoch in (first[:2], first[2:]):
        assert sorted(e.ids[1] for batch in epoch for e in batch) == list(range(100, 110))
    assert first[:2] != first[2:]


def test_the_rate_rises_for_so_many_steps_at_the_least():
    rates = [
        TrainSettings(steps=900, warmup_ratio=0.01, min_warmup_steps=200, lr=1.0).rate(step) for step in range(900)
    ]
    assert rates[0] == 1 / 200 and rates[199] == 1.0 == max(rates) and rates[300] < 1
    short = TrainSettings(steps=30, warmup_ratio=0.01, min_warmup_steps=200, lr=1.0)
    assert [short.rate(step) for step in (0, 9)] == [0.1, 1.0]  # a third of a short run
