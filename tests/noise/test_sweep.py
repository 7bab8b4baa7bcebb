"""Sweeps over many heads: the same figures here, in processes and on a Dask cluster."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import qkv
from qkv.cli import app
from qkv.errors import QkvError
from qkv.noise import Gaussian, harden, harden_sweep, moments_sweep, reading_moments, sample

NOISE = Gaussian(isotropic=0.02, along={0: 0.3})


def layer(heads=5, n=12, d=8):
    random = np.random.default_rng(0)
    memories = [qkv.Memory(random.standard_normal((n, d)), random.standard_normal((n, 3))) for _ in range(heads)]
    return memories, random.standard_normal((heads, d))


def test_each_head_of_a_sweep_has_the_moments_that_it_has_alone():
    memories, queries = layer()
    seen = []
    found = moments_sweep(
        memories, queries, NOISE, processes=1, callback=lambda done, total: seen.append((done, total))
    )
    assert seen == [(i, 5) for i in range(1, 6)] and len(found) == 5
    for i in range(5):
        alone = reading_moments(memories[i], queries[i], NOISE)
        assert torch.equal(found[i].weights_mean, alone.weights_mean)
        assert torch.equal(found[i].output_cov, alone.output_cov)
    shared = moments_sweep(memories[0], queries, NOISE, processes=1)
    assert torch.equal(shared[3].weights_var, reading_moments(memories[0], queries[3], NOISE).weights_var)
    assert len(found.card().rows) == 5


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_digits_and_its_errors_reach_the_caller():
    distributed = pytest.importorskip("distributed")
    memories, queries = layer()
    here = moments_sweep(memories, queries, NOISE, processes=1)
    hard = harden_sweep(memories[:2], {0: 0.5, 1: 0.5}, NOISE, tol=0.1, processes=1)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        there = moments_sweep(memories, queries, NOISE, cluster=address)
        for one, two in zip(here.heads, there.heads, strict=True):
            assert torch.allclose(one.weights_mean, two.weights_mean, rtol=0, atol=1e-14)
            assert torch.allclose(one.output_cov, two.output_cov, rtol=0, atol=1e-14)
        there = harden_sweep(memories[:2], {0: 0.5, 1: 0.5}, NOISE, tol=0.1, cluster=address)
        assert [h.squared_error for h in there.heads] == pytest.approx([h.squared_error for h in hard.heads], rel=1e-6)
        with pytest.raises(QkvError, match="standard deviation"):
            moments_sweep(memories, 1e9 * queries, NOISE, cluster=address)


@pytest.mark.slow
def test_a_sweep_of_robust_queries_is_harden_for_each():
    memories, _ = layer(2)
    wanted = [{0: 0.5, 1: 0.5}, {2: 1.0}]
    found = harden_sweep(memories, wanted, NOISE, tol=0.1, processes=1)
    for i in range(2):
        assert found[i].squared_error == harden(memories[i], wanted[i], NOISE, tol=0.1).squared_error
    assert "help" in str(found.card().rows)


def test_heads_that_do_not_fit_are_refused_before_any_work():
    memories, queries = layer(3)
    for wrong in (
        lambda: moments_sweep(memories, queries[:2], NOISE),
        lambda: moments_sweep(memories, queries[:, :5], NOISE),
        lambda: moments_sweep(memories, queries, "noise"),
        lambda: harden_sweep(memories, [{0: 1.0}], NOISE),
        lambda: moments_sweep(memories, queries, NOISE, processes=1, cluster="tcp://127.0.0.1:1"),
    ):
        with pytest.raises(QkvError):
            wrong()


def test_long_computations_report_their_progress():
    memories, queries = layer(2)
    for run in (
        lambda step: harden(memories[0], {0: 0.5, 1: 0.5}, NOISE, tol=0.1, callback=step),
        lambda step: sample(memories[0], queries[0], NOISE, n_draws=1000, callback=step),
        lambda step: reading_moments(memories[0], queries, NOISE, callback=step),
    ):
        seen = []
        run(lambda done, total, seen=seen: seen.append((done, total)))
        assert len(seen) > 3 and len({total for _, total in seen}) == 1
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
        assert seen[-1][0] == seen[-1][1]


def test_the_command_reads_stacked_heads_and_prints_a_row_for_each(tmp_path):
    memories, queries = layer(3)
    file = tmp_path / "heads.npz"
    keys, values = (np.stack([getattr(m, name).numpy() for m in memories]) for name in ("keys", "values"))
    np.savez(file, keys=keys, values=values, queries=queries)
    done = CliRunner().invoke(app, ["noise", "sweep", str(file), "--isotropic", "0.02", "--processes", "1", "--json"])
    assert done.exit_code == 0, done.output
    heads = json.loads(done.stdout)["heads"]
    alone = reading_moments(memories[2], queries[2], Gaussian(isotropic=0.02))
    assert heads[2]["weights_mean"] == pytest.approx(alone.weights_mean.tolist(), abs=1e-14)
    wanted = ["--weights", "0=1/2,1=1/2", "--tol", "0.1", "--processes", "1"]
    done = CliRunner().invoke(app, ["noise", "sweep", str(file), "--isotropic", "0.02", *wanted])
    assert done.exit_code == 0 and "Robust queries for 3 heads" in done.output
    np.savez(file, keys=keys[0])
    done = CliRunner().invoke(app, ["noise", "sweep", str(file), "--isotropic", "0.02"])
    assert isinstance(done.exception, QkvError) or done.exit_code == 2
