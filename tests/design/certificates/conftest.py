"""Certificates that several test files share."""

import sys
from pathlib import Path

import numpy as np
import pytest

import qkv

sys.path.insert(0, str(Path(__file__).parent))  # for `import oracle`, an independent judge of certificates


@pytest.fixture(scope="module")
def copied():
    return qkv.design.copy(qkv.Memory.orthonormal(n=5, d=6, seed=0), 2, tol=1e-3).certificate


@pytest.fixture(scope="module")
def wired():
    X = np.random.default_rng(0).normal(size=(3, 3))
    return qkv.design.wire(X, {0: 2, 1: {0: 0.5, 2: 0.5}}, {0: X[1], 1: X[0]}, tol=1e-2).certificate


@pytest.fixture(scope="module")
def counted():
    return qkv.design.copyable(np.random.default_rng(0).normal(size=(12, 2))).certificate
