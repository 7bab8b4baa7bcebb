"""All keys decided by tests of increasing cost: as Qhull and HiGHS decide them, with certified bounds."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from qkv.core import rounding_bounds
from qkv.design.hull import active_set, candidate_queries, cascade
from qkv.parallel import WorkerPool


def decide(keys, **options):
    with WorkerPool(**(options or {"processes": 1})) as pool:
        return cascade.decide_all(np.asarray(keys, dtype=float), pool)


def certified(keys, found):
    """Whether both kinds of claims are confirmed by the float64 bounds that certificates use."""
    yes, no = np.flatnonzero(found.possible), np.flatnonzero(~found.possible)
    margins = rounding_bounds.margin_lower_bounds(keys, yes, found.queries, claimed=found.margins)
    residuals = rounding_bounds.residual_upper_bounds(keys, no, found.offsets, found.indices, found.weights)
    return bool((margins >= found.margins).all() and (residuals <= found.margins_at_most).all())


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(5, 60), st.integers(2, 4))
def test_vertices_are_those_of_qhull_and_claims_are_confirmed(seed, n, d):
    keys = np.random.default_rng(seed).standard_normal((n + d, d))
    found = decide(keys)
    assert set(np.flatnonzero(found.possible).tolist()) == set(ConvexHull(keys).vertices.tolist())
    assert certified(keys, found)


def test_every_stage_decides_some_keys(monkeypatch):
    """Duplicates, keys inside the hull of known vertices, and keys that only the active set decides."""
    random = np.random.default_rng(1)
    keys = random.standard_normal((2000, 3))
    keys[5] = keys[6]
    calls = []
    for module, name in ((candidate_queries, "whitened"), (active_set, "duplicates"), (active_set, "decide")):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, f=original, n=name: calls.append(n) or f(*a))
    found = decide(keys)
    assert {"whitened", "duplicates", "decide"} <= set(calls)
    assert set(np.flatnonzero(found.possible).tolist()) == set(ConvexHull(keys).vertices.tolist())


def test_a_query_that_no_bound_confirms_goes_to_the_linear_program(monkeypatch):
    random = np.random.default_rng(2)
    keys = random.standard_normal((40, 3))
    expected = decide(keys)
    honest = active_set.decide

    def unconfirmed(keys, items, candidates):
        out = honest(keys, items, candidates)
        return out._replace(queries=-out.queries)

    monkeypatch.setattr(active_set, "decide", unconfirmed)
    found = decide(keys)
    assert np.array_equal(found.possible, expected.possible) and certified(keys, found)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_number_of_workers_changes_no_bit(size):
    keys = np.random.default_rng(4).standard_normal((800, 6))
    expected = decide(keys)
    with ThreadPoolExecutor(size) as threads:
        found = decide(keys, executor=threads)
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def test_samples_agree_with_highs():
    keys = np.random.default_rng(5).standard_normal((300, 7))
    found = decide(keys)
    for j in range(0, 300, 25):
        y = np.delete(keys, j, axis=0) - keys[j]
        assert found.possible[j] == (linprog(np.zeros(7), y, -np.ones(299), bounds=(None, None)).status == 0)


def test_one_key_needs_no_search():
    found = decide([[3.0, 4.0]])
    assert found.possible.tolist() == [True] and found.margins.tolist() == [np.inf]


def test_workers_start_without_torch():
    code = "import sys, qkv.design.hull.cascade; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
