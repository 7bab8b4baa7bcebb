"""The memory that a run keeps: asked for once, taken only when it is written to."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import resource
import torch
from qkv.train.allocator import reuse_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

before = resident()
worked = reuse_memory(large_pages=True)
taken = resident() - before
for _ in range(3):
    x = torch.ones(16 << 20)  # 64 MB, above the size that is usually mapped anew
del x
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    x = torch.ones(16 << 20)
    del x
print(int(worked), taken, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is told, and only Linux has it")
def test_large_tensors_are_served_from_memory_that_is_there() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=True)
    worked, taken, faults = map(int, done.stdout.split())
    assert taken < 32 << 20  # reserving a gigabyte takes none of it
    if worked:
        assert faults < 2000  # 20 tensors of 16,384 small pages each would fault 327,680 times
