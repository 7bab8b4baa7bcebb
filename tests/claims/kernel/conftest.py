"""The tests with Coq are skipped where it is not installed, unless QKV_COQ=required."""

import os
import shutil

import pytest


@pytest.fixture(scope="session")
def needs_coq():
    if shutil.which("coqc") is None and os.environ.get("QKV_COQ") != "required":
        pytest.skip("there is no coqc")
