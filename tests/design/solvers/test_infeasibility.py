"""Dual evidence becomes certificates that verify, and only as strong as the evidence."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

import qkv
from qkv.design.solvers import conic
from qkv.design.solvers.infeasibility import no_query_certificate
from qkv.design.specs import BlendSpec


def evidence(keys, spec):
    return conic.smallest_query(keys, list(spec.items), spec.wanted, spec.tol)


def test_ratios_against_a_dependence_of_the_keys_are_excluded_up_to_a_huge_norm():
    """The scores of keys 0, 1, 2 are in arithmetic progression; log 1/4, log 1/2, log 1/4 are not."""
    keys = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [5.0, 1.0]])
    spec = BlendSpec.of(qkv.Memory(keys), {0: 0.25, 1: 0.5, 2: 0.25}, 1e-2)
    proof = no_query_certificate(keys, spec, evidence(keys, spec))
    assert proof.verify() and float(proof.claims["norm_at_least"]) > 1e12


def test_unequal_parts_of_equal_keys_are_excluded_for_every_query():
    keys = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    spec = BlendSpec.of(qkv.Memory(keys), {0: 0.3, 1: 0.7}, 1e-2)
    proof = no_query_certificate(keys, spec, evidence(keys, spec))
    assert proof.verify() and math.isinf(float(proof.claims["norm_at_least"]))


@pytest.mark.parametrize("seed", range(5))
def test_a_blend_inside_the_hull_of_the_others_is_excluded_by_a_proof(seed):
    random = np.random.default_rng(seed)
    keys = random.standard_normal((60, 2))
    keys[:2] *= 0.1
    spec = BlendSpec.of(qkv.Memory(keys), {0: 0.5, 1: 0.5}, 1e-3)
    proof = no_query_certificate(keys, spec, evidence(keys, spec))
    assert proof is not None and proof.verify()
    bound = float(proof.claims["norm_at_least"])
    # Random queries with the exact ratios, shorter than the bound, all leak more than tol.
    difference = keys[1] - keys[0]
    free = np.array([-difference[1], difference[0]])
    for size in random.uniform(-30, 30, 200):
        scores = keys @ (size * free)
        assert math.exp(logsumexp(scores[2:]) - logsumexp(scores)) > 1e-3
        assert np.linalg.norm(size * free) < bound


def test_evidence_against_a_blend_that_exists_proves_nothing():
    keys = np.eye(4)
    spec = BlendSpec.of(qkv.Memory(keys), {0: 0.5, 1: 0.5}, 1e-2)
    made_up = conic.Solution("infeasible", np.zeros(4), (np.array([0.3]),), (np.array([0.0, 0.0, 1.0, 1.0]),))
    assert no_query_certificate(keys, spec, made_up) is None
