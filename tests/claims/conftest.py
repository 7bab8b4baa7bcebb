"""Helpers that several tests of claims share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # generate.py and mutate.py stand beside the tests
