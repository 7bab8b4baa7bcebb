"""The benchmarks run, and their last line is JSON with ratios."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["train", "generate"])
def test_the_benchmark_runs(name):
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(FOLDER / f"{name}.py"), "--quick"]
    run = subprocess.run(command, capture_output=True, text=True, env=env)
    assert run.returncode == 0, run.stderr
    ratios = json.loads(run.stdout.splitlines()[-1])["ratios"]
    assert len(ratios) >= 2 and all(ratio > 0 for ratio in ratios.values())
