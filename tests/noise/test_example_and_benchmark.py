"""The example and the quick benchmark run and print the expected figures."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.slow
def test_the_example_of_one_head_prints_the_published_figures():
    text = run("examples/one_head_is_enough.py")
    assert "0.238731016" in text
    assert "Phi(-√2) = 0.0786" in text
    limit, reached = map(float, re.search(r"= ([0-9.]+) \(.*: ([0-9.]+)\)", text).groups())
    assert abs(limit - reached) <= 2e-5
    less, least = map(int, re.search(r": (\d+) times less than one plain head,\s+(\d+)", text).groups())
    assert less >= 200
    assert least >= 20
    assert float(re.search(r"hardened +([0-9.]+)", text).group(1)) > 0.99


@pytest.mark.slow
def test_the_quick_benchmark_ends_with_its_figures_as_json():
    figures = json.loads(run("benchmarks/noise.py", "--quick").splitlines()[-1])
    table = figures["table"]
    assert table["exact"]["error"] < table["exact"]["bound"] < 1e-4 * table["scores"]["error"]
    assert table["ratios"]["float64"]["exact"] > 10
    assert figures["hardening"]["over_plain"] > 200
