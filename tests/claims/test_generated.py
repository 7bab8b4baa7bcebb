"""Claims of known truth: no false one is proved, no true one is refuted, and the core's true ones are proved."""

import pytest
from generate import claims

import qkv


def judged(count, seed):
    false_proved, true_refuted, core, core_proved = [], [], 0, 0
    for made in claims(count, seed):
        verdict = qkv.check(made.text, seconds=60)[0]  # however busy the machine is
        assert verdict.verdict != "malformed", (made.text, verdict.because)
        assert "bug" not in verdict.because, (made.text, verdict.because)
        if not made.true and verdict.verdict in ("proved", "holds"):
            false_proved.append((made.text, verdict.because))
        if made.true and verdict.verdict == "refuted":
            true_refuted.append((made.text, verdict.because))
        if made.true and made.core:
            core += 1
            core_proved += verdict.verdict == "proved"
    assert not false_proved
    assert not true_refuted
    assert core_proved >= 0.95 * core


@pytest.mark.parametrize("count", [16, pytest.param(40, marks=pytest.mark.slow)])
def test_some_generated_claims(count):
    judged(count, seed=12)


@pytest.mark.slow
def test_two_hundred_generated_claims():
    judged(200, seed=11)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [7, 77])
def test_two_thousand_generated_claims(seed):
    judged(2000, seed)
