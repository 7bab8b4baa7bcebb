"""Documents with accidents end in verdicts: no traceback, no hang, no flood of memory."""

import resource
import time

import pytest
from mutate import documents_with_accidents

import qkv
from qkv.claims.verdict import KINDS


def survives(count, seed):
    slowest = 0.0
    for text in documents_with_accidents(count, seed):
        start = time.monotonic()
        verdicts = qkv.check(text)
        slowest = max(slowest, (time.monotonic() - start) / max(1, len(verdicts)))
        for verdict in verdicts:
            assert verdict.verdict in KINDS
            assert "bug" not in verdict.because, (text, verdict.because)
    assert slowest < 12
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1e6 * 2  # in kB; the tests themselves hold torch


def test_two_thousand_mutated_documents():
    survives(2000, seed=5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 149))
def test_a_hundred_thousand_mutated_documents(seed):
    survives(2000, seed)


@pytest.mark.parametrize(
    "statement",
    [
        "(t + n + 1)^12^12^12 = 1",
        "t^999999999 = 1",
        "exp(exp(exp(exp(t)))) -> 1 as t -> oo",
        "((t+1)^12*(t+2)^12*(t+3)^12*(t+4)^12)^12 > 0",
        " + ".join(["exp(t)"] * 80) + " = 0",
        "(" * 60 + "t" + ")" * 60 + " = t",
        "(t + n)^(t + n)^(t + n) = 2",
        "sqrt(sqrt(sqrt(sqrt(t)))) -> oo as t -> oo",
        "log(log(log(t))) -> oo as t -> oo",
        "1/(t - t) = 1",
        "0^(-1) = 1",
        "exp(999999999*t)/exp(999999998*t) -> oo as t -> oo",
    ],
)
def test_monsters_end_in_a_verdict_soon(statement):
    start = time.monotonic()
    (verdict,) = qkv.check(f"```claim monster\ngiven k_1..k_n orthonormal, t > 0\nlet q = t*k_a\nthen {statement}\n```")
    assert verdict.verdict in KINDS and "bug" not in verdict.because
    assert time.monotonic() - start < 12
