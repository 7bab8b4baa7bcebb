"""Documents with accidents end in verdicts: no traceback, no hang, no flood of memory."""

import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mutate import documents_with_accidents

import qkv
from qkv.claims.verdict import KINDS


def survives(count, seed):
    before = resident()
    for text in documents_with_accidents(count, seed):
        start = time.process_time()  # the machine may be busy with something else
        verdicts = qkv.check(text)
        assert time.process_time() - start < 12 * max(1, len(verdicts)), text
        for verdict in verdicts:
            assert verdict.verdict in KINDS
            assert "bug" not in verdict.because, (text, verdict.because)
        assert resident() - before < 0.5e9, text


def resident():
    """Bytes in memory now. (ru_maxrss would be the most that this process ever held, in any test.)"""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.slow
def test_the_most_that_a_process_holds_is_below_a_gigabyte():
    """Measured in a process of its own, on documents that once took fifteen gigabytes among others."""
    script = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from mutate import blocks
import qkv
for block in blocks()[::18]:
    for size in ("n = 10 10 10", "n = 999999999", "n >= 300", "n = 150"):
        qkv.check(block.replace("n >= 3", size), seconds=3)
# Not ru_maxrss, which begins with what the process that started this one held.
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""
    done = subprocess.run([sys.executable, "-c", script, str(Path(__file__).parent)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1e6  # kB


def test_mutated_documents():
    survives(200, seed=6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, *range(100, 149)])
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
    text = f"```claim monster\ngiven k_1..k_n orthonormal, t > 0\nlet q = t*k_a\nthen {statement}\n```"
    (verdict,) = qkv.check(text, seconds=3)
    assert verdict.verdict in KINDS and "bug" not in verdict.because
    assert time.monotonic() - start < 5
