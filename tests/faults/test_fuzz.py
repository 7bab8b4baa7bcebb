"""A few mutated inputs through each fuzzing target; and a target that raises is caught."""

import json
import random

import pytest

from faults import fuzz
from faults.damage import damaged_copies


@pytest.mark.parametrize("name", [name for name, _ in fuzz.kinds()])
def test_mutated_inputs_are_read_or_refused(name, fault_samples, tmp_path):
    check, draw, sound = (
        fuzz._Report(fuzz.TARGETS[name](), tmp_path / "report.json"),
        random.Random(1),
        fuzz.seeds_of(name),
    )
    for data in sound[:8]:
        check(data)
    for i in range(150):
        check(next(damaged_copies(draw.choice(sound), 1, i)))
    check.write()
    found = json.loads((tmp_path / "report.json").read_text())
    assert found["tracebacks"] == [] and found["hangs"] == [] and found["unchanged"] > 0 and found["refused"] > 0


def test_a_target_that_raises_is_caught(tmp_path):
    check = fuzz._Report(lambda data: data.decode() == "x", tmp_path / "report.json")
    check(b"fine")
    check(b"\xff")
    check.write()
    found = json.loads((tmp_path / "report.json").read_text())
    assert found["unchanged"] == 1 and "UnicodeDecodeError" in found["tracebacks"][0]
