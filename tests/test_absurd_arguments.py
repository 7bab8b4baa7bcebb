"""Every public function of core, design and claims with absurd arguments gives a result or a QkvError of one line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from marks import some

SCRIPT = Path(__file__).with_name("absurd_arguments.py")


@pytest.mark.parametrize("package", some(["core", "design", "claims"], ["claims"]))
def test_absurd_arguments_give_a_result_or_one_sentence(package):
    done = subprocess.run([sys.executable, str(SCRIPT), package], capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found and {name: raw for name, raw in found.items() if raw} == {}
