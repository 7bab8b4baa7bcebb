"""Helpers that the tests of the prover's steps share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # build.py, expressions.py and reference.py stand beside the tests
