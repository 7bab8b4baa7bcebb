"""Noise models: score covariances are those of the covariances they stand for, and nonsense is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import qkv
from qkv.errors import QkvError
from qkv.noise import Gaussian, Quantised

RNG = np.random.default_rng(5)
MEMORY = qkv.Memory(RNG.normal(size=(4, 3)), labels=["a", "b", "c", "d"])
S = RNG.normal(size=(3, 3))
S = S @ S.T


def test_along_is_the_variance_of_the_key_along_its_own_mean():
    mu = MEMORY.keys[0]
    keys = Gaussian(isotropic=1e-6, along={"a": 0.5}).on(MEMORY)
    assert torch.allclose(keys.covariance(0), 1e-6 * torch.eye(3).double() + 0.5 * torch.outer(mu, mu))
    assert torch.allclose(keys.covariance(1), 1e-6 * torch.eye(3).double())


@pytest.mark.parametrize(
    "noise",
    [
        Gaussian(isotropic=0.3),
        Gaussian(isotropic={"b": 0.2}, along=0.1),
        Gaussian(diagonal=[0.1, 0.0, 2.0]),
        Gaussian(diagonal={"c": [0.1, 0.2, 0.3], "a": [1, 0, 0]}),
        Gaussian(factors=RNG.normal(size=(3, 2))),
        Gaussian(factors={"a": RNG.normal(size=(3, 2)), "d": RNG.normal(size=(3, 1))}),
        Gaussian(full=S),
        Gaussian(isotropic=0.1, full={"a": S, "b": 2 * S}, along={"a": 0.5}),
        Quantised(3),
    ],
)
def test_score_covariances_are_those_of_the_written_out_matrices(noise):
    keys = noise.on(MEMORY)
    q = torch.from_numpy(RNG.normal(size=(2, 3)))
    for j in range(4):
        assert torch.allclose(keys.score_covariance(q)[j], q @ keys.covariance(j) @ q.mT, atol=1e-12)
    variances = keys.score_covariance(q).diagonal(dim1=1, dim2=2).mT
    assert torch.allclose(keys.score_variances(q), variances, atol=1e-12)


def test_the_sum_of_the_parts_is_what_was_given():
    keys = Gaussian(isotropic=0.1, full={"a": S}, diagonal=[1, 2, 3], factors={"a": np.eye(3)[:, :1]}).on(MEMORY)
    want = 0.1 * np.eye(3) + S + np.diag([1, 2, 3]) + np.diag([1, 0, 0])
    assert np.allclose(keys.covariance(0), want)


def test_a_rounding_error_has_a_twelfth_of_a_squared_step_as_variance():
    keys = Quantised(4).on(MEMORY)
    span = MEMORY.keys.max(0).values - MEMORY.keys.min(0).values
    assert torch.allclose(keys.covariance(2).diagonal(), (span / 15) ** 2 / 12)
    size = MEMORY.keys.abs().max(0).values
    assert torch.allclose(Quantised(4, symmetric=True).steps(MEMORY), 2 * size / 15)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Gaussian(full=np.diag([1.0, -0.25, 1.0])), "eigenvalue -0.25"),
        (lambda: Gaussian(full={"a": [[0.0, 1.0], [1.0, 0.0]]}), "of 'a' has the eigenvalue -1"),
        (lambda: Gaussian(full=[[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (lambda: Gaussian(full=np.ones((2, 3))), "(2, 3)"),
        (lambda: Gaussian(isotropic=-1e-3), "eigenvalue -0.001"),
        (lambda: Gaussian(isotropic=float("nan")), "nan"),
        (lambda: Gaussian(along={"a": -0.5}), "eigenvalue -0.5"),
        (lambda: Gaussian(diagonal=[0.1, -2.0]), "eigenvalue -2"),
        (lambda: Gaussian(diagonal=[0.1, np.nan]), "NaN"),
        (lambda: Gaussian(along={"e": 0.5}).on(MEMORY), "'e'"),
        (lambda: Gaussian(full=np.eye(2)).on(MEMORY), "2 dimensions"),
        (lambda: Gaussian(diagonal=np.ones(4)).on(MEMORY), "4 dimensions"),
        (lambda: Gaussian(factors={"a": np.ones((5, 1))}).on(MEMORY), "5 dimensions"),
        (lambda: Quantised(0), "bits"),
        (lambda: Quantised(64), "bits is 64"),
    ],
)
def test_what_is_no_noise_is_refused_by_name(make, says):
    with pytest.raises(QkvError, match=says.replace("(", r"\(").replace(")", r"\)")):
        make()


def test_a_covariance_that_is_singular_but_for_rounding_is_taken():
    F = RNG.normal(size=(3, 1))
    keys = Gaussian(full=F @ F.T).on(MEMORY)
    assert np.allclose(keys.covariance(0), F @ F.T, atol=1e-14)
