"""copyable: every decision right, every query and combination exact, wherever the work is done."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from math import inf
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from qkv import parallel
from qkv.core.memory import Memory
from qkv.design.hull.selectable import Copyable, copyable
from qkv.errors import QkvError

ARRAYS = ("possible", "queries", "margins", "offsets", "indices", "weights", "margins_at_most")


def same(a, b):
    return all(torch.equal(getattr(a, name), getattr(b, name)) for name in ARRAYS)


def gaussian(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def exact(row):
    return [Fraction(float(x)) for x in row]


def holds_exactly(keys, answer, item):
    """Recompute one answer in rational arithmetic, from its definition."""
    own = exact(keys[item])
    if answer.possible:
        q = exact(answer.query)
        gap = min(
            sum((a - b) * c for a, b, c in zip(own, exact(row), q, strict=True))
            for i, row in enumerate(keys)
            if i != item
        )
        return (
            gap > 0 and Fraction(answer.margin) > 0 and Fraction(answer.margin) ** 2 * sum(c * c for c in q) <= gap**2
        )
    weights = {i: Fraction(w) for i, w in answer.combination.items()}
    total = sum(weights.values())
    rows = {i: exact(keys[i]) for i in weights}
    left = [sum(w * (rows[i][c] - own[c]) for i, w in weights.items()) / total for c in range(len(own))]
    fair = item not in weights and min(weights.values()) >= 0 and abs(total - 1) < Fraction(1, 10**12)
    return fair and sum(x * x for x in left) <= Fraction(answer.margin_at_most) ** 2


@pytest.mark.slow
def test_three_hundred_keys_in_eight_dimensions_as_qhull_has_them():
    keys = gaussian(300, 8)
    r = copyable(keys)
    assert isinstance(r, Copyable)
    assert set(r.vertices.tolist()) == set(ConvexHull(keys).vertices.tolist())
    assert 0 < len(r.interior) < 300
    assert len(r.vertices) + len(r.interior) == len(r) == 300
    assert len(r.undecided) == 0


def test_every_answer_holds_in_rational_arithmetic():
    keys = gaussian(120, 5, seed=1)
    for item, answer in enumerate(copyable(keys)):
        assert bool(answer) == answer.possible
        assert holds_exactly(keys, answer, item)
        # Independent members: no more than the dimension allows.
        assert answer.possible or len(answer.combination) <= 6


def test_a_false_answer_would_be_seen():
    keys = gaussian(60, 3, seed=2)
    r = copyable(keys)
    j, i = int(r.vertices[0]), int(r.interior[0])
    assert holds_exactly(keys, r[j], j)
    assert not holds_exactly(keys, replace(r[j], margin=1.03 * r[j].margin), j)
    assert not holds_exactly(keys, replace(r[j], query=-r[j].query), j)
    moved = r[i].combination
    moved[next(iter(moved))] += 1e-6
    assert not holds_exactly(keys, replace(r[i], combination=moved), i)


def test_certificates_are_rechecked_from_raw_inputs():
    keys = gaussian(150, 4, seed=10)
    r = copyable(keys)
    assert r.certificate.verify()
    assert not replace(r, margins=r.margins * 1.03).certificate.verify()
    assert not replace(r, margins_at_most=r.margins_at_most * 1e-3).certificate.verify()
    for j in (int(r.vertices[0]), int(r.interior[0])):
        assert r[j].certificate.verify()
    assert not replace(r[int(r.vertices[0])], margin=10.0).certificate.verify()


@pytest.mark.parametrize(("n", "d", "seed"), [(2000, 4, 3), (1500, 12, 4), (800, 30, 5)])
def test_answers_agree_with_highs_on_samples(n, d, seed):
    keys = gaussian(n, d, seed) + 2.0
    r = copyable(keys)
    for j in np.random.default_rng(seed).choice(n, 8, replace=False):
        y = np.delete(keys, j, axis=0) - keys[j]
        feasible = linprog(np.zeros(d), y, -np.ones(n - 1), bounds=(None, None)).status == 0
        assert r[int(j)].possible == feasible
    assert len(r.undecided) == 0


def test_grids_duplicates_and_midpoints():
    square = [[0, 0], [4, 0], [0, 4], [4, 4]]
    keys = np.array([*square, [2, 0], [1, 1], [2, 2], [1, 1], [4, 4]], dtype=float)
    r = copyable(keys)
    assert r.vertices.tolist() == [0, 1, 2]
    assert r[3].combination == {8: 1.0}
    assert r[8].combination == {3: 1.0}
    assert r[3].margin_at_most == 0.0
    assert r[4].combination == pytest.approx({0: 0.5, 1: 0.5})
    for j in range(len(keys)):
        assert holds_exactly(keys, r[j], j)


def test_one_key_is_selected_by_any_query():
    r = copyable([[3.0, 4.0]])
    assert r[0].possible
    assert r[0].margin == inf
    assert r[0].query.norm() == 1


def test_two_keys_and_equal_keys():
    assert copyable([[0.0], [1.0]]).possible.tolist() == [True, True]
    r = copyable(np.full((4, 3), 0.7))
    assert not r.possible.any()
    assert [a.combination for a in r] == [{1: 1.0}, {0: 1.0}, {0: 1.0}, {0: 1.0}]
    assert r.queries.shape == (0, 3)


def test_keys_on_a_line():
    r = copyable(np.arange(7.0)[:, None] * [1.0, 2.0, -1.0])
    assert r.vertices.tolist() == [0, 6]


@pytest.mark.parametrize("exponents", [[0, 0, 0], [300, -300, 0], [-1000, -1000, -1000], [1000, 1000, 1000]])
def test_the_scale_of_the_coordinates_does_not_matter(exponents):
    keys = np.round(gaussian(60, 3, seed=6) * 256)
    expected = set(ConvexHull(keys).vertices.tolist())
    assert set(copyable(np.ldexp(keys, exponents)).vertices.tolist()) == expected


def test_a_far_origin_does_not_matter():
    keys = np.round(gaussian(80, 4, seed=7) * 1024)
    assert torch.equal(copyable(keys + 2.0**40).possible, copyable(keys).possible)


def test_few_known_vertices_among_many_keys_change_no_answer():
    keys = gaussian(3000, 3, seed=8)  # a quarter is far from reached: the hull of known vertices is asked first
    assert set(copyable(keys).vertices.tolist()) == set(ConvexHull(keys).vertices.tolist())


def test_near_twins_are_decided_by_their_small_difference():
    random = np.random.default_rng(11)
    keys = random.standard_normal((300, 6))
    keys = np.vstack([keys, keys + 1e-12 * random.standard_normal(keys.shape)])
    r = copyable(keys)
    # Either a certified query, or a bound far below the difference itself.
    assert float(r.margins_at_most.max()) < 5e-14
    assert len(r.vertices) > 100
    for j in range(0, 600, 60):
        assert holds_exactly(keys, r[j], j)


def test_labels_and_memories():
    r = copyable([[0.0, 0], [2, 0], [0, 2], [0.5, 0.5]], labels=["a", "b", "c", "middle"])
    assert r["b"].possible
    assert r["middle"].item == "middle"
    assert not r["middle"]
    assert r[3].item == "middle"
    assert not copyable(Memory([[0.0], [1], [2]], labels=["x", "y", "z"]))["y"].possible
    with pytest.raises(QkvError):
        r["d"]


def test_results_show_themselves():
    twins = copyable([[0.0], [1.0], [1.0]])
    assert twins.card().rows == (("1", "equal to 2"), ("2", "equal to 1"))
    assert ("because", "it is equal to another key") in twins[1].card().facts
    r = copyable([[0.0, 0], [2, 0], [0, 2], [0.5, 0.5]])
    card = r.card()
    assert ("can be selected", "3 of 4") in card.facts
    assert card.rows == (("3", "an average of 3 other keys"),)
    assert "cannot" in r[3].card().title
    assert "can be selected" in r[0].card().title
    document = json.loads(json.dumps(r.to_json(), allow_nan=False))
    assert document["possible"] == 3
    assert set(document["answers"][3]["combination"]) == {"0", "1", "2"}
    assert len(document["answers"][0]["query"]) == 2
    assert np.asarray(r.possible).sum() == 3


@pytest.mark.parametrize("keys", [[[np.nan, 1.0]], [1.0, 2.0], np.zeros((0, 3)), "keys"])
def test_bad_keys_are_refused(keys):
    with pytest.raises(QkvError):
        copyable(keys)


@pytest.fixture(scope="module")
def hard():
    keys = gaussian(2500, 9, seed=9)
    keys[7] = keys[8]
    return keys, copyable(keys, processes=1)


def test_processes_give_the_same_answers(hard):
    keys, serial = hard
    told = []
    before = set(psutil.Process().children())  # other tests' servers may be among them
    shared = copyable(keys, processes=2, callback=lambda done, total: told.append((done, total)))
    assert same(serial, shared)
    assert told[-1][0] == told[-1][1] > 1
    assert not set(psutil.Process().children()) - before


def test_any_executor_gives_the_same_answers(hard):
    keys, serial = hard
    with ThreadPoolExecutor(2) as pool:
        assert same(serial, copyable(keys, executor=pool))


@pytest.mark.slow
def test_work_that_takes_long_calls_for_help(hard, monkeypatch):
    keys, serial = hard
    monkeypatch.setattr(parallel, "MIN_SECONDS_FOR_PROCESSES", 0.0)
    monkeypatch.setattr(parallel, "_available_cores", lambda: 2)
    assert same(serial, copyable(keys))


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_answers(hard):
    distributed = pytest.importorskip("distributed")
    keys, serial = hard
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        assert same(serial, copyable(keys, cluster=cluster.scheduler_address))


@pytest.mark.slow
def test_the_benchmark_runs():
    script = Path(__file__).parents[3] / "benchmarks" / "copyable.py"
    run = subprocess.run([sys.executable, script, "--quick"], capture_output=True, text=True, timeout=60, check=True)
    figures = json.loads(run.stdout.splitlines()[-1])
    assert set(figures["ratios"]) == {"64", "16", "8"}
    assert all(figures[f"d={d}"]["agree"] == "3/3" for d in (64, 16, 8))
    assert all(figures[f"d={d}"]["certificate"] == "holds" for d in (64, 16, 8))
