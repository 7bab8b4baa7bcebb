"""The file of answers: every line has a checksum, so that a changed digit is refused and not believed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from qkv.core.json_files import with_checksum
from qkv.errors import QkvError
from qkv.knowledge.language_models import answer_file
from qkv.knowledge.language_models.answer_file import FORMAT
from qkv.knowledge.language_models.prompts import about
from qkv.knowledge.language_models.signals import SIGNALS, Signals

HEADER = {"format": FORMAT, "model": "m", "relation": "city", "prompts": "p", "signals": list(SIGNALS)}


@pytest.fixture
def path(tmp_path):
    rng, n = np.random.default_rng(0), 4
    found = Signals(
        tuple(about(f"Person {i}", "city") for i in range(n)), ("Rome", "Łódź", "a\u2028b", "c\x85d"), ((5, 6),) * n,
        (True,) * n, (((5, -1.0),),) * n, rng.normal(size=(n, len(SIGNALS))), np.ones((n, 8), np.float32),
    )  # fmt: skip
    answer_file._append(tmp_path / "answers.jsonl", HEADER, answer_file._rows(found))
    return tmp_path / "answers.jsonl"


def test_answers_are_read_as_they_were_with_any_character_in_them(path):
    rows = answer_file._stored(path, HEADER)
    assert [row["answer"] for row in rows.values()] == ["Rome", "Łódź", "a\u2028b", "c\x85d"]
    assert all("checksum" not in row for row in rows.values())


def test_a_damaged_line_is_refused_or_means_the_same(path, damaged_copies):
    good, wanted, refused = path.read_bytes(), answer_file._stored(path, HEADER), 0
    for copy in damaged_copies(good, 500):
        path.write_bytes(copy)
        try:
            found = answer_file._stored(path, HEADER)
        except QkvError:
            refused += 1
        else:  # cut, and what is left is whole lines; or the same numbers in another form
            assert list(found.items()) == list(wanted.items())[: len(found)]
            assert len(found) == 4 or good.startswith(path.read_bytes())
    assert refused > 350


def test_a_file_of_the_version_without_checksums_is_refused(path):
    path.write_text(path.read_text("utf-8").replace(FORMAT, "qkv-answers-1"), "utf-8")
    with pytest.raises(QkvError, match="another version than"):
        answer_file._stored(path, HEADER)


@pytest.mark.parametrize(
    "change",
    [
        {"hidden": None}, {"tokens": None}, {"hidden": ""}, {"hidden": "A"}, {"answer": 5}, {"first": [1]},
        {"answer": "Paris"},
    ],
    ids=str,
)  # fmt: skip
def test_a_line_that_was_edited_or_lacks_something_is_refused_in_a_sentence(path, change):
    header, first, *rest = path.read_text("utf-8").split("\n")
    row = {name: value for name, value in (json.loads(first) | change).items() if value is not None}
    changed = [json.dumps(row | {"checksum": "edited"}), json.dumps(row)]
    if change != {"answer": "Paris"}:  # with a checksum of its own, another answer is another answer
        changed.append(json.dumps(with_checksum(row)))
    for line in changed:
        path.write_text("\n".join([header, line, *rest]), "utf-8")
        with pytest.raises(QkvError, match=r"edited by hand|checksum does not fit|a line of it"):
            answer_file._stored(path, HEADER)


def test_a_file_that_was_cut_off_in_its_first_line_begins_anew(path):
    content = path.read_bytes()
    for size in (30, content.index(b"\n")):
        path.write_bytes(content[:size])
        assert answer_file._stored(path, HEADER) == {} and path.read_bytes() == b""
