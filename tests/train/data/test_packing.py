"""Packed batches: targets, little padding, the loss of padded batches, and the batch of each step."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv.model.config import ModelConfig
from qkv.model.gpt import GPT
from qkv.train.data.objectives import Document, Example, next_token, unchanged
from qkv.train.data.packing import EpochOrder, batches, count_targets, pack, shard
from qkv.train.tokenizers import PAD_ID

EXAMPLES = [Example(list(range(5, 5 + n)), start) for n, start in ((9, 1), (4, 3), (4, 1), (17, 10), (2, 1))]
EXAMPLES.append(Example(list(range(5, 18)), start=8, head=4))


def test_a_packed_batch_shifts_targets_by_one_and_holds_little_padding():
    batch = pack(EXAMPLES)
    assert batch.layout.shapes == ((1, 1), (2, 3), (1, 8), (1, 12), (1, 16))
    assert len(batch.tokens) == sum(len(e.ids) - 1 for e in EXAMPLES)
    wanted = sorted(token for e in EXAMPLES for token in e.ids[1 : e.head] + e.ids[e.start :])
    assert sorted(batch.targets.tolist()) == wanted and len(wanted) == count_targets(EXAMPLES)
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
    source = batches(made, next_token, 16, batch_size=5, seed=3)
    first = [source(step) for step in range(4)]
    again = batches(made, next_token, 16, batch_size=5, seed=3)
    assert [again(step) for step in (3, 1, 0, 2)] == [first[step] for step in (3, 1, 0, 2)]
    for epoch in (first[:2], first[2:]):
        assert sorted(e.ids[1] for batch in epoch for e in batch) == list(range(100, 110))
    assert first[:2] != first[2:]


@given(count=st.integers(1, 12), first=st.integers(0, 40), more=st.integers(0, 40), seed=st.integers(0, 9))
def test_an_epoch_order_is_a_sequence_of_permutations_wherever_it_is_entered(count, first, more, seed):
    def numbers(start, length):
        return EpochOrder(count, lambda epoch: (seed, epoch)).numbers(start, length)

    whole = numbers(0, 8 * count)
    assert all(sorted(whole[i : i + count]) == list(range(count)) for i in range(0, 8 * count, count))
    assert numbers(first, more) == numbers(0, first + more)[first:]


def test_examples_that_are_not_corrupted_come_as_they_are():
    examples = [Example([5, 6 + i, 7], start=2) for i in range(6)]
    source = batches(*unchanged(examples), 16, batch_size=3, seed=1)
    assert sorted([*source(0), *source(1)]) == examples
