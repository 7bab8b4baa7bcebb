"""PackedLayout against positions and sequences written out token by token."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv.core.kernels import PackedSequences
from qkv.model.packed_sequences import PackedLayout

SHAPES = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), min_size=1, max_size=5)


@given(shapes=SHAPES, past=st.integers(0, 7))
def test_positions_and_sequences_of_every_token(shapes, past):
    layout = PackedLayout(shapes, past_length=past)
    tokens = [
        (sequence, past + p) for sequence, t in enumerate(t for b, t in shapes for _ in range(b)) for p in range(t)
    ]
    assert list(zip(layout.sequences.tolist(), layout.positions.tolist(), strict=True)) == tokens
    assert layout.max_length == 1 + max(p for _, p in tokens)
    assert not layout.is_step and layout.past_length == past
    assert isinstance(layout, PackedSequences)


@given(shapes=SHAPES)
def test_splitting_and_joining_gives_the_tokens_back(shapes):
    layout = PackedLayout(shapes)
    n = len(layout.positions)
    x = torch.arange(n * 6.0).view(n, 2, 3)
    parts = layout.split(x)
    assert [tuple(p.shape) for p in parts] == [(b, 2, t, 3) for b, t in shapes]
    assert torch.equal(layout.join(parts), x.flatten(1))
    first = 0
    for part, (b, t) in zip(parts, shapes, strict=True):
        for i in range(b):
            assert torch.equal(part[i], x[first + i * t : first + (i + 1) * t].transpose(0, 1))
        first += b * t


def test_a_decoding_step_has_one_token_for_each_sequence():
    step = PackedLayout.decoding_step(torch.tensor([4, 0, 2]))
    assert step.is_step and step.covers_cache and step.shapes == ((3, 1),)
    assert step.positions.tolist() == [4, 0, 2] and step.sequences.tolist() == [0, 1, 2] and step.max_length == 5
    seen = step.attended(6)
    assert seen.shape == (3, 1, 1, 6)
    assert [row.flatten().tolist() for row in seen] == [[p <= last for p in range(6)] for last in (4, 0, 2)]
    assert step.attended(6) is seen and step.attended(4).shape[-1] == 4
    some = PackedLayout.decoding_step(torch.tensor([4, 1]), torch.tensor([2, 0]))
    assert not some.covers_cache and some.sequences.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("keep", "positions", "sequences", "covers"),
    [
        ([2, 5, 9], [7, 7, 8], [0, 1, 2], True),
        ([0, 2, 9], [5, 7, 8], [0, 0, 2], False),
        ([5], [7], [1], False),
    ],
)
def test_kept_tokens_become_steps_of_their_sequences(keep, positions, sequences, covers):
    step = PackedLayout([(2, 3), (1, 4)], past_length=5).as_steps(torch.tensor(keep))
    assert step.is_step and step.covers_cache == covers
    assert step.positions.tolist() == positions and step.sequences.tolist() == sequences


def test_steps_of_some_sequences_never_pass_for_steps_of_all():
    some = PackedLayout.decoding_step(torch.tensor([4, 1, 3]), torch.tensor([0, 1, 5]))
    kept = some.as_steps(torch.tensor([0, 1]))
    assert not kept.covers_cache and kept.sequences.tolist() == [0, 1]


def test_the_plan_of_all_tokens_is_made_once():
    layout = PackedLayout([(2, 3), (1, 4)])
    assert layout.plan() is layout.plan() and not layout.plan().selects_queries
    assert layout.plan(torch.tensor([3])).selects_queries
