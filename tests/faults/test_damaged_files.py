"""A short part of the damaged files; and a reader that believes what it reads is caught."""

import json

import pytest

from faults.damage import damaged_copies
from faults.damaged_files import FileKind, kinds, run_kind
from qkv.errors import QkvError


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_a_damaged_file_is_read_unchanged_refused_or_another_input(kind, fault_samples):
    found = run_kind(kind, 40 if "run" not in kind.name else 10, seed=1)
    assert found.harmless, found.examples
    assert found.refused + found.unchanged + found.other_input == found.tried > 0
    if kind.written_by == "own":
        assert found.refused > 0.4 * found.tried


def careless(folder):
    path = folder / "x.json"
    path.write_text(json.dumps({"value": 12345, "other": [1, 2, 3]}))

    def read():
        try:
            return json.loads(path.read_text("utf-8", "replace"))["value"]
        except ValueError:
            raise QkvError("reading", "it is damaged", "Restore it") from None

    return path, read


def test_a_reader_without_a_checksum_is_caught_believing_and_one_that_forgets_an_error_too():
    found = run_kind(FileKind("careless", careless), 200, seed=0)
    assert found.believed > 10 and not found.harmless and "became" in found.examples[0]
    assert found.tracebacks > 0  # a damaged name is a KeyError


def test_damaged_copies_differ_from_the_original_and_are_the_same_for_the_same_seed():
    data = b'{"a": 1234567890}' * 9
    copies = list(damaged_copies(data, 300, seed=3))
    assert data not in copies and len(set(copies)) > 200 and copies == list(damaged_copies(data, 300, seed=3))
    assert min(map(len, copies)) < 60 < len(data) == max(len(c) for c in [copies[0], data])
