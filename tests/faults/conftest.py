"""The package faults lies beside src: it is imported from the folder of the source. Samples are made once a session."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from faults.processes import environment  # noqa: E402
from faults.samples import SAMPLES_VARIABLE  # noqa: E402


@pytest.fixture(scope="session")
def fault_samples(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # all workers of a session share them
    folder = Path(os.environ.get(SAMPLES_VARIABLE) or base / "fault-samples")
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").is_file():
            command = [sys.executable, "-m", "faults.samples", str(folder)]
            subprocess.run(command, cwd=ROOT, env=environment(), check=True, capture_output=True)
    before = os.environ.get(SAMPLES_VARIABLE)
    os.environ[SAMPLES_VARIABLE] = str(folder)
    yield folder
    if before is None:
        del os.environ[SAMPLES_VARIABLE]
    else:
        os.environ[SAMPLES_VARIABLE] = before


@pytest.fixture(scope="session")
def in_a_process(fault_samples):
    """Runs kinds by their names with small counts in a process that has trained nothing, and gives their counts."""
    code = (
        "import json, sys; from faults.kinds import kinds; from faults.processes import preload; preload()\n"
        "asked = json.loads(sys.argv[1])\n"
        "found = {k.name: k.run(asked[k.name], 1, lambda d, t: None).to_json() for k in kinds() if k.name in asked}\n"
        "print(json.dumps(found))"
    )

    def run(asked):
        import json

        from faults.count import FaultCount

        command = [sys.executable, "-c", code, json.dumps(asked)]
        done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stderr[-2000:]
        return {name: FaultCount.from_json(data) for name, data in json.loads(done.stdout).items()}

    return run
