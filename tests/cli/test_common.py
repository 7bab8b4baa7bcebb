"""Options, parsing and output that the commands share."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.cli import common
from qkv.core.memory import Memory
from qkv.design import copy
from qkv.errors import QkvError

MEMORY = Memory(np.eye(3), labels=["a", "b", "c"])


@given(st.integers(-99, 99), st.integers(1, 99))
def test_fractions_and_decimals_are_the_same_numbers(p, q):
    assert common.number_of("--tol", f"{p}/{q}") == float(Fraction(p, q))
    assert common.number_of("--tol", repr(p / q)) == p / q


@pytest.mark.parametrize("text", ["", "x", "1/0", "1/", "/2", "1/2/3"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(QkvError, match=r"--tol: .* is not a number"):
        common.number_of("--tol", text)


def test_weights_are_read_by_label_or_index():
    assert common.weights_of(MEMORY, "a=1/4, 2=0.75") == {"a": 0.25, "c": 0.75}
    numbered = Memory(np.eye(3), labels=[7, 8, 9])
    assert common.weights_of(numbered, "8=1") == {8: 1.0}
    signed = Memory(np.eye(2), labels=["a=b", "c"])
    assert common.weights_of(signed, "a=b=1") == {"a=b": 1.0}


@pytest.mark.parametrize(
    ("text", "says"),
    [("a", "item=weight"), ("a=1,0=1", "named twice"), ("z=1", "no item has this label"), ("", "was not given")],
)
def test_malformed_weights_are_refused(text, says):
    with pytest.raises(QkvError, match=says):
        common.weights_of(MEMORY, text)


@pytest.mark.parametrize("names", [("0", "left"), ("left", "00"), ("right", "0", "1")])
def test_an_item_of_a_file_has_one_weight(names, tmp_path):
    memory = Memory(np.eye(2), labels=["left", "right"])
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"wanted": {name: 1 / len(names) for name in names}}))
    with pytest.raises(QkvError, match=r"reading weights from .*: item (left|right) is named twice"):
        common.weights_of(memory, str(path))


def test_rules_are_read_with_tokens_and_blends():
    assert common.rules_of("0:2,1:0") == {0: {2: 1.0}, 1: {0: 1.0}}
    assert common.rules_of("0:1=1/2+2=0.5") == {0: {1: 0.5, 2: 0.5}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0", "token:token"),
        ("0:x", "token:token"),
        ("0:1,0:2", "two rules"),
        ("0:1=x", "not a number"),
        ("0:1=1/2+1=1/2", "twice"),
    ],
)
def test_malformed_rules_are_refused(text, says):
    with pytest.raises(QkvError, match=says):
        common.rules_of(text)


def test_a_memory_is_read_or_generated_but_not_both(tmp_path):
    np.save(tmp_path / "k.npy", np.eye(2))
    assert common.memory_from(tmp_path / "k.npy", None, 0).n == 2
    assert common.memory_from(None, "3X5", 1).keys.shape == (3, 5)
    for path, generated in ((tmp_path / "k.npy", "3x5"), (None, None)):
        with pytest.raises(QkvError, match="orthonormal"):
            common.memory_from(path, generated, 0)
    for text in ("3", "3x", "3x5x7", "axb"):
        with pytest.raises(QkvError, match="NxD"):
            common.memory_from(None, text, 0)


def test_an_array_comes_from_the_first_file_or_from_its_own(tmp_path):
    np.save(tmp_path / "b.npy", np.ones(2))
    assert common.array_from("B", "B", {"B": 1}) == 1
    assert common.array_from(str(tmp_path / "b.npy"), "B", {"B": 1}).tolist() == [1.0, 1.0]
    with pytest.raises(QkvError, match="which holds A, C"):
        common.array_from("B", "B", {"A": 1, "C": 2})


def test_results_are_printed_saved_and_drawn(tmp_path, capsys):
    result = copy(MEMORY, "a")
    common.deliver(result, True, tmp_path / "c.json")
    assert json.loads(capsys.readouterr().out)["status"] == "exact"
    common.deliver(result, False, tmp_path / "c.json")
    printed = capsys.readouterr().out
    assert "Copy a" in printed and f"qkv design verify {tmp_path / 'c.json'}" in printed
    assert json.loads((tmp_path / "c.json").read_text())["certificates"][0]["kind"] == "weights"


def test_without_a_terminal_neither_spinner_nor_bar_is_shown(capsys):
    with common.working("finding"), common.progress("keys") as step:
        step(1, 2)
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == ""


def test_paths_of_pages_and_certificates_are_checked_before_the_work(tmp_path):
    for path in (tmp_path / "page.html", tmp_path / "page.HTM", None):
        common.check_page_path(path)
    for name, says in (("page.pdf", "'.pdf' is not the ending"), ("page", "ending"), ("none/p.html", "does not exist")):
        with pytest.raises(QkvError, match=says):
            common.check_page_path(tmp_path / name)
    common.check_outputs(tmp_path / "c.json", tmp_path / "p.pdf")
    (tmp_path / "folder.json").mkdir()
    for name, says in (("none/c.json", "does not exist"), ("folder.json", "is a folder"), ("c.txt", "not a format")):
        with pytest.raises(QkvError, match=says):
            common.check_outputs(tmp_path / name)


def test_a_result_that_is_saved_twice_is_the_same_file(tmp_path, capsys):
    for suffix in (".json", ".safetensors"):
        written = set()
        for _ in range(6):
            common.deliver(copy(MEMORY, "a"), True, tmp_path / f"c{suffix}")
            written.add((tmp_path / f"c{suffix}").read_bytes())
        assert len(written) == 1


def test_weights_with_colons_and_queries_of_numbers_are_told_from_files():
    memory = Memory.orthonormal(4, 8, 0)
    with pytest.raises(QkvError, match=r"'0:0\.5' is not of the form item=weight"):
        common.weights_of(memory, "0:0.5,1:0.5")
    with pytest.raises(QkvError, match=r"a list of numbers, not a file\. Give a file, such as q.json with \[1,-2.5\]"):
        common.heads_of(Path("1,-2.5"))
    with pytest.raises(QkvError, match="there is no such file"):
        common.weights_of(memory, "none.json")
