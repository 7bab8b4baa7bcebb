"""Adversarial blends and wirings: no false sentence, no exception but QkvError, no missed query within tol.

Tolerances from 1e-12 to 0.999; keys near-dependent, duplicate, huge, tiny, of mixed sizes, on a line, with outliers.
The judges in attack.py recompute with mpmath and look for counterexamples with scipy.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import spread

import qkv

sys.path.insert(0, str(Path(__file__).parent))
import attack

FAST_BLENDS, FAST_WIRINGS = 20, 10
ALL_BLENDS, ALL_WIRINGS = 20_000, 2_000


def blend_errors(seed):
    """False sentences about one blend, and by how much its distance was beaten."""
    keys, wanted, tol = attack.blend_case(seed)
    try:
        design = qkv.design.blend(keys, wanted, tol)
        assert design.card() and design.to_json() and repr(design)
    except qkv.QkvError:
        return []
    rng = np.random.default_rng(seed)
    wrong = attack.judge_blend(keys, wanted, tol, design, rng)
    if not design.possible and (gap := attack.beaten_by(keys, wanted, design, rng)) > 1e-6:
        wrong.append(f"beaten by {gap}")
    return wrong


def wiring_errors(seed):
    """False sentences about one wiring."""
    tokens, reads, writes, tol = attack.wiring_case(seed)
    try:
        wiring = qkv.design.wire(tokens, reads, writes, tol)
        assert wiring.card() and wiring.to_json() and repr(wiring)
    except qkv.QkvError:
        return []
    return attack.judge_wiring(tokens, reads, tol, wiring, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", spread(range(len(attack.KINDS)), 3), ids=attack.KINDS)
def test_blends_of_adversarial_keys(kind):
    wrong = {seed: blend_errors(seed) for seed in range(kind, FAST_BLENDS, len(attack.KINDS))}
    assert not any(wrong.values()), wrong


@pytest.mark.parametrize("kind", spread(range(len(attack.KINDS)), 3), ids=attack.KINDS)
def test_wirings_of_adversarial_tokens(kind):
    wrong = {seed: wiring_errors(seed) for seed in range(kind, FAST_WIRINGS, len(attack.KINDS))}
    assert not any(wrong.values()), wrong


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**9))
def test_blends_that_hypothesis_chooses(seed):
    assert blend_errors(seed) == []


@pytest.mark.parametrize("seed", spread([118, 202, 281, 1108, 12609, 14466, 20168, 22276], 3))
def test_blends_that_once_failed(seed):
    assert blend_errors(seed) == []


def test_a_far_key_raises_no_error():
    d = qkv.design.blend([[0, 0], [1, 0], [0, 1], [1e10, 1e10]], {0: 0.3, 1: 0.3, 2: 0.4}, tol=0.5)
    assert d.possible and d.certificate.verify()


def test_the_judges_reject_what_is_false():
    """Each judge is shown a result that is not true of its inputs."""
    keys, wanted = np.array([[1.0, 0], [0, 1], [-1, 0]]), {0: 1.0}
    design = qkv.design.blend(keys, wanted, 1e-3)
    rng = np.random.default_rng(0)
    assert attack.judge_blend(keys, wanted, 1e-3, design, rng) == []
    assert attack.judge_blend(keys[[1, 0, 2]], wanted, 1e-3, design, rng)
    wiring = qkv.design.wire(np.eye(3), {0: 2}, {0: [1.0]})
    assert attack.judge_wiring(np.eye(3), {0: {2: 1.0}}, 1e-3, wiring, rng) == []
    assert attack.judge_wiring(np.eye(3), {0: {1: 1.0}}, 1e-3, wiring, rng)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(100))
def test_twenty_thousand_blends(part):
    size = ALL_BLENDS // 100
    wrong = {seed: found for seed in range(part * size, (part + 1) * size) if (found := blend_errors(10_000 + seed))}
    assert not wrong, wrong


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_two_thousand_wirings(part):
    size = ALL_WIRINGS // 20
    wrong = {seed: found for seed in range(part * size, (part + 1) * size) if (found := wiring_errors(10_000 + seed))}
    assert not wrong, wrong
