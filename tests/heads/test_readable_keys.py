"""Which keys a query of bounded length could read: against the copy design, closed forms and random search."""

import itertools
import math

import numpy as np
import pytest
import torch
from families import text, tiny, tokenizer

import qkv
from qkv.heads.attention_model import from_transformers
from qkv.heads.readable_keys import KeyShareParts, readable_keys

LOG9 = math.log(9)


def asked(keys, length, visible=None, **options):
    """Answers for every key of one head."""
    keys = torch.as_tensor(np.asarray(keys), dtype=torch.float64)
    n = len(keys)
    seen = torch.ones(n, n, dtype=torch.bool) if visible is None else visible
    found = readable_keys(keys[None], torch.arange(n), seen, torch.tensor([length], dtype=torch.float64), **options)
    return found.possible[0], found.impossible[0], found.queries[0]


@pytest.mark.parametrize("seed", range(12))
def test_the_copy_design_agrees(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 10)), int(rng.integers(2, 6))
    keys, length = rng.normal(size=(n, d)) * rng.choice([0.5, 1, 3]), float(rng.choice([1, 2, 4, 8, 16]))
    possible, impossible, queries = asked(keys, length)
    for item in range(n):
        design = qkv.design.copy(keys, item, tol=0.1)
        assert design.status != "best found"
        can = design.status in ("exact", "within") and float(design.query.norm()) <= length
        assert (bool(possible[item]), bool(impossible[item])) == (can, not can)
        if can:
            assert float(queries[item].norm()) <= length
            assert float((torch.as_tensor(keys) @ queries[item]).softmax(0)[item]) >= 0.9


@pytest.mark.parametrize("share", [1 - 1e-9, 1 + 1e-9])
def test_the_least_length_is_known_to_nine_digits(share):
    """Two keys at distance 2: a score of log 9 needs a length of log(9) / 2. Of n orthonormal keys, one read at 90 % by
    a query (a, −b, …, −b) of least length: a + b = log 9 + log(n − 1) with a = (n − 1) b."""
    possible, impossible, _ = asked([[1.0, 5.0], [-1.0, 5.0]], share * LOG9 / 2)
    assert possible.all() == (share > 1) and impossible.all() == (share < 1)
    n = 7
    gap = LOG9 + math.log(n - 1)
    least = gap * math.sqrt((n - 1) / n)
    possible, impossible, _ = asked(np.eye(n), share * least)
    assert possible.all() == (share > 1) and impossible.all() == (share < 1)


def test_a_key_inside_the_hull_of_others_is_never_readable():
    keys = [[0.0, 0], [4, 0], [0, 4], [1, 1]]
    possible, impossible, _ = asked(keys, 1e6)
    assert possible.tolist() == [True, True, True, False] and impossible.tolist() == [False, False, False, True]


def test_twins_are_never_readable_and_a_key_alone_always_is():
    assert asked([[1.0, 2.0], [1.0, 2.0], [5.0, 0.0]], 1e3)[1].tolist() == [True, True, False]
    visible = torch.ones(4, 4, dtype=torch.bool).tril()
    possible, impossible, _ = asked(np.zeros((4, 3)), 1.0, visible)
    assert possible.tolist() == [True, False, False, False] and impossible.tolist() == [False, True, True, True]


def test_only_visible_keys_compete():
    keys = np.array([[1.0, 0], [0, 1], [1.0, 1e-3]])
    visible = torch.tensor([[1, 1, 0], [1, 1, 0], [1, 1, 1]], dtype=torch.bool)
    assert asked(keys, 4, visible)[0].tolist() == [True, True, False]
    assert asked(keys, 4)[0].tolist() == [False, True, False]


def test_a_sink_takes_weight():
    keys = np.eye(2) * 2
    for sink, can in ((-50.0, True), (1.0, False)):
        possible, impossible, _ = asked(keys, 0.9, sinks=torch.tensor([sink]))
        assert possible.all() == can and impossible.all() == (not can)
    # The best query (a, -b) of length 0.9 by search, on the edge of the circle
    angle = np.linspace(0, 2 * math.pi, 100_001)
    a, b = 1.8 * np.cos(angle), 1.8 * np.sin(angle)
    weight = (1 / (1 + np.exp(b - a) + np.exp(0.3 - a))).max()
    for wanted, can in ((weight - 1e-6, True), (weight + 1e-6, False)):
        possible, impossible, _ = asked(keys, 0.9, weight=wanted, sinks=torch.tensor([0.3], dtype=torch.float64))
        assert bool(possible[0]) == can and bool(impossible[0]) == (not can)


def test_random_search_finds_no_counterexample():
    for seed in range(20):
        rng = np.random.default_rng([3, seed])
        keys = rng.normal(size=(12, 4)) * 10.0 ** rng.uniform(-1, 1, (12, 1))
        length = float(10.0 ** rng.uniform(-0.5, 1.5))
        possible, impossible, queries = asked(keys, length)
        assert bool((possible ^ impossible).all())
        tried = rng.normal(size=(4000, 4))
        tried *= length / np.linalg.norm(tried, axis=1, keepdims=True)
        best = torch.softmax(torch.as_tensor(tried @ keys.T), 1).amax(0)
        assert not bool((impossible & (best >= 0.9)).any())
        reached = torch.softmax(queries @ torch.as_tensor(keys).T, 1).diagonal()
        assert bool((reached[possible] >= 0.9).all()) and bool((queries.norm(dim=1) <= length).all())


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "gpt_oss", "bert"])
def test_what_is_read_could_be_read(family):
    model = from_transformers(tiny(family), tokenizer())
    rows = model.table([text(40), text(30, 1)], effect_tokens=8)
    assert rows.keys_asked == 40 - 4 + 30 - 4
    for row in rows:
        assert 0 <= row.keys_read <= row.keys_readable_at_most <= 1 and row.keys_readable <= row.keys_readable_at_most
        if family != "mistral":  # whose window slides, so that a key may lose rivals later
            assert row.keys_read <= row.keys_readable


def test_soft_caps_are_left_open_and_long_texts_are_sampled_evenly():
    rows = from_transformers(tiny("gemma2"), tokenizer()).table(text(30), effect_tokens=8)
    assert all(row.keys_readable is None and row.keys_read is None for row in rows)
    assert "–" in str(rows.card().rows[0])
    parts = KeyShareParts(1, 1, [500, 500, 3], sampled=100)
    chosen = [500 * w + int(i) for w, of in sorted(parts.items.items()) for i in of]
    assert parts.total == len(chosen) == 100
    assert {b - a for a, b in itertools.pairwise(chosen)} <= {9, 10, 14}
