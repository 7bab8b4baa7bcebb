"""Patterns of weights that were written by hand."""

import math

import pytest
import torch

from qkv.heads.patterns import PatternSums, kind, repeated_tokens

N, HALF = 12, 6
IDS = torch.arange(HALF).repeat(2)
SEEN = torch.ones(N, N, dtype=torch.bool).tril()


def measured(weights, ids=IDS):
    sums = PatternSums(1, 1)
    sums.add(0, weights[None], ids, SEEN, True)
    return sums.result()


def looking_at(place):
    weights = torch.zeros(N, N, dtype=torch.float64)
    for i in range(N):
        weights[i, place(i)] = 1
    return weights


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (lambda i: max(i - 1, 0), "previous token"),
        (lambda i: 0, "first token"),
        (lambda i: i, "self"),
        (lambda i: max(i - HALF, 0), "duplicate"),
        (lambda i: max(i - HALF + 1, 0), "induction"),
    ],
)
def test_a_pure_pattern_has_score_one_and_its_name(place, name):
    found = measured(looking_at(place))
    assert kind(found, found, 0, 0) == (name, pytest.approx(1.0))
    assert float(found.effective) == pytest.approx(1.0)


def test_uniform_weights_are_broad():
    found = measured(SEEN.double() / SEEN.sum(1, keepdim=True))
    assert kind(found, found, 0, 0) == ("broad", pytest.approx(1.0))
    rows = range(4, N)
    assert float(found.effective) == pytest.approx(sum(i + 1 for i in rows) / len(rows))
    assert float(found.previous) == pytest.approx(sum(1 / (i + 1) for i in rows) / len(rows))


def test_windows_are_averaged_query_by_query():
    sums = PatternSums(1, 1)
    sums.add(0, looking_at(lambda i: max(i - 1, 0))[None], IDS, SEEN, True)
    sums.add(0, looking_at(lambda i: 0)[None], IDS, SEEN, True)
    found = sums.result()
    assert float(found.previous) == pytest.approx(0.5) and float(found.first) == pytest.approx(0.5)


def test_a_pattern_that_cannot_show_is_unknown():
    found = measured(looking_at(lambda i: 0), torch.arange(N))
    assert math.isnan(found.duplicate) and math.isnan(found.induction) and found.repeats == 0
    assert kind(found, None, 0, 0)[0] == "first token"


def test_repeated_tokens_are_repeated():
    rows = repeated_tokens(50, 8, 3, 0, 1, {0, 1, 2})
    assert rows.shape == (3, 17) and torch.equal(rows[:, 1:9], rows[:, 9:])
    assert (rows[:, 0] == 1).all() and int(rows[:, 1:].min()) > 2
    assert torch.equal(rows, repeated_tokens(50, 8, 3, 0, 1, {0, 1, 2}))
