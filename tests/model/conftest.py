"""Lets the tests of this folder import dense_reference."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
