"""Arrays from files of every format, and files that are written atomically."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from qkv.core.files import pick, read_arrays, replacing, write_text
from qkv.core.validation import tensor
from qkv.errors import QkvError


def test_a_half_precision_safetensors_file_is_read(tmp_path):
    save_file({"keys": torch.eye(2, dtype=torch.bfloat16)}, tmp_path / "k.safetensors")
    assert torch.equal(
        tensor("keys", read_arrays(tmp_path / "k.safetensors")["keys"]), torch.eye(2, dtype=torch.float64)
    )


def test_a_file_with_several_arrays_is_asked_for_by_name(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones(2), y=np.zeros(2))
    arrays = read_arrays(tmp_path / "a.npz")
    assert pick(arrays, "x", "a.npz")[0] == 1
    with pytest.raises(QkvError, match="holds x, y"):
        pick(arrays, "keys", "a.npz")


def test_a_csv_may_have_a_header_and_a_column_of_names(tmp_path):
    path = tmp_path / "k.csv"
    path.write_text("x,y\n1,2\n3,4\n")
    assert read_arrays(path)[""].tolist() == [[1, 2], [3, 4]]
    path.write_text("1,2\n3\n")
    with pytest.raises(QkvError, match="line 2 has 1 cells, line 1 has 2"):
        read_arrays(path)
    path.write_text("a,1,\nb,2,3\n")
    with pytest.raises(QkvError, match="line 1 has '' where a number should be"):
        read_arrays(path)
    path.write_text("name,x,y\n1,0.5,2\n2,3,4\n")
    assert read_arrays(path)["labels"] == ["1", "2"] and read_arrays(path)["keys"].tolist() == [[0.5, 2], [3, 4]]


def test_writing_into_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(QkvError, match="does not exist"):
        write_text(tmp_path / "no" / "file.txt", "x")


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv", ".json", ".safetensors"])
def test_the_same_numbers_come_back_from_every_format(suffix, tmp_path):
    path, keys = tmp_path / f"k{suffix}", np.array([[0.5, -2.0], [1e-3, 4.0]])
    if suffix == ".npz":
        np.savez(path, keys=keys)
    elif suffix == ".npy":
        np.save(path, keys)
    elif suffix == ".csv":
        path.write_text("\n".join(",".join(map(repr, row)) for row in keys.tolist()))
    elif suffix == ".json":
        path.write_text(json.dumps({"keys": keys.tolist()}))
    else:
        save_file({"keys": torch.from_numpy(keys)}, path)
    assert np.array_equal(np.asarray(pick(read_arrays(path), "keys", path)), keys)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("k.txt", b"1,2", "not a format"),
        ("k.npz", b"not a zip", "damaged"),
        ("k.json", b"{", "damaged"),
        ("k.safetensors", b"\xff" * 20, "damaged"),
        ("k.csv", b"x,y\n", "no rows of numbers"),
        ("k.csv", b"1,2\n3\n", "cells"),
        ("absent.npy", None, "no such file"),
    ],
)
def test_unreadable_files_are_refused_with_one_sentence(name, content, says, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(QkvError, match=says):
        read_arrays(tmp_path / name)


def test_pickled_arrays_are_never_loaded(tmp_path):
    np.save(tmp_path / "k.npy", np.array([{"a": 1}], dtype=object))
    with pytest.raises(QkvError, match="damaged"):
        read_arrays(tmp_path / "k.npy")


def test_a_write_that_fails_leaves_the_old_file_and_no_temporary_one(tmp_path):
    path = tmp_path / "file.txt"
    write_text(path, "old")
    with pytest.raises(ZeroDivisionError), replacing(path) as temporary:
        temporary.write_text("new")
        raise ZeroDivisionError
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    write_text(path, "new")
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]
