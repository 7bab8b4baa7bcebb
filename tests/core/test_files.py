"""Arrays from files of every format, and files that are written atomically."""

import io
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from qkv.core import files
from qkv.core.files import (
    ClaimedFolder,
    creating,
    pick,
    read_arrays,
    replacing,
    sort_metadata,
    write_tensors,
    write_text,
)
from qkv.core.memory import Memory
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


def peak_memory(path):
    """(peak of traced memory in bytes, what reading a file raised) of `read_arrays`."""
    tracemalloc.start()
    try:
        read_arrays(path)
        raised = None
    except QkvError as why:
        raised = why
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak, raised


def npy_header(shape, descr="<f8"):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"shape": shape, "fortran_order": False, "descr": descr})
    return out.getvalue()


def test_a_zip_bomb_is_refused_by_its_table_before_anything_is_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "k.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("keys.npy", "w") as entry:
        entry.write(npy_header((2**25,)))
        for _ in range(2**8):
            entry.write(bytes(2**20))
    monkeypatch.setattr(files, "MAX_UNPACKED_BYTES", 2**27)
    peak, refusal = peak_memory(path)
    assert path.stat().st_size < 2**20 and peak < 2**22
    assert "unpacks to 268,435,584 bytes, more than the limit of 134,217,728" in str(refusal)


def test_many_small_entries_count_together(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "k.npz", **{f"a{i}": np.zeros(2**14) for i in range(20)})
    monkeypatch.setattr(files, "MAX_UNPACKED_BYTES", 2**21)
    assert "unpacks to" in str(peak_memory(tmp_path / "k.npz")[1])
    monkeypatch.setattr(files, "MAX_UNPACKED_BYTES", 2**22)
    assert len(read_arrays(tmp_path / "k.npz")) == 20


def test_an_uncompressed_archive_may_be_as_large_as_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_UNPACKED_BYTES", 10)
    np.savez(tmp_path / "k.npz", keys=np.eye(40))
    assert read_arrays(tmp_path / "k.npz")["keys"].shape == (40, 40)


@pytest.mark.parametrize("shape", [(2**40,), (2**20, 2**20), (3, 2**33), (2**62, 8)])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_header_that_promises_more_than_its_file_has_is_refused(suffix, shape, tmp_path):
    path, data = tmp_path / f"k{suffix}", npy_header(shape) + bytes(64)
    if suffix == ".npy":
        path.write_bytes(data)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("keys.npy", data)
    peak, refusal = peak_memory(path)
    assert peak < 2**22 and "promises" in str(refusal)


def test_deep_json_is_refused(tmp_path):
    (tmp_path / "k.json").write_text("[" * 10**6)
    with pytest.raises(QkvError, match="nested 1000000 deep"):
        read_arrays(tmp_path / "k.json")


@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_text_that_is_too_long_is_refused_before_it_is_read(suffix, tmp_path):
    path = tmp_path / f"k{suffix}"
    with path.open("wb") as handle:
        handle.truncate(2**28 + 1)
    peak, refusal = peak_memory(path)
    assert peak < 2**20 and "too many for" in str(refusal)


@pytest.mark.parametrize("umask", [0o077, 0o022, 0o027, 0o000])
def test_a_new_file_has_the_permissions_that_the_umask_leaves(umask, tmp_path):
    before = os.umask(umask)
    try:
        write_text(tmp_path / "file.txt", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file.txt").stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o640, 0o444])
def test_a_file_that_is_replaced_keeps_its_permissions(mode, tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    path.chmod(mode)
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600  # nobody else can read what is not finished
    assert stat.S_IMODE(path.stat().st_mode) == mode and path.read_text() == "new"


def killed_save(folder):
    """Start a save in another process, and kill it in the middle; the path of what it left."""
    code = "import sys, time; from qkv.core.files import replacing\nwith replacing(sys.argv[1]) as t:\n"
    code += "    t.write_text('half'); print(t, flush=True); time.sleep(60)"
    command = [sys.executable, "-c", code, str(folder / "file.txt")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        name = process.stdout.readline().strip()
        process.kill()
    return Path(name)


def test_the_temporary_file_of_a_killed_save_is_removed_by_the_next_one_and_others_stay(tmp_path):
    left = killed_save(tmp_path)
    assert left.read_text() == "half"
    (tmp_path / ".file.old.txt").write_text("mine")
    with replacing(tmp_path / "a.txt") as writing:
        assert not left.exists()
        write_text(tmp_path / "b.txt", "b")  # a temporary file whose writer lives is left alone
        writing.write_text("a")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".file.old.txt", "a.txt", "b.txt"]


def test_tensors_are_written_into_the_locked_temporary_file_itself(tmp_path):
    """safetensors' save_file renames another file over it, which has no lock: the next save would remove it."""
    from safetensors.numpy import load_file, save

    path, arrays = tmp_path / "x.safetensors", {"x": np.arange(3.0)}
    path.write_bytes(b"old")
    path.chmod(0o640)
    with replacing(path) as temporary:
        before = temporary.stat().st_ino
        write_tensors(temporary, save(arrays, metadata={"b": "2", "a": "1"}))
        write_text(tmp_path / "another.txt", "x")  # removes temporary files whose lock is free
        assert temporary.stat().st_ino == before
    assert np.array_equal(load_file(path)["x"], arrays["x"]) and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert b'{"a":"1","b":"2"}' in path.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["another.txt", "x.safetensors"]


def test_a_temporary_file_that_is_removed_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    real, calls = files.fcntl.flock, []

    def flock(handle, how):
        if not calls:
            calls.extend(tmp_path.glob(".qkv-tmp-*"))
            calls[0].unlink()
        real(handle, how)

    monkeypatch.setattr(files.fcntl, "flock", flock)
    write_text(tmp_path / "file.txt", "x")
    assert calls and [p.name for p in tmp_path.iterdir()] == ["file.txt"]


def test_many_threads_write_into_one_folder(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: write_text(tmp_path / f"{i % 5}.txt", "x" * 1000), range(400)))
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{i}.txt" for i in range(5)]
    assert {p.read_text() for p in tmp_path.iterdir()} == {"x" * 1000}


def test_paths_that_cannot_be_written_are_refused(tmp_path):
    with pytest.raises(QkvError, match="is a folder"):
        write_text(tmp_path, "x")
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(QkvError, match="not a file"):
        write_text(tmp_path / "pipe.txt", "x")


def test_equal_tensors_and_metadata_are_equal_bytes(tmp_path):
    metadata = {f"name {i} ⁇": 'a "quoted"\n\x01\x7f/é' + "x" * i for i in range(12)}
    tensors = {"b": torch.ones(3), "a": torch.zeros(2, 2), "c": torch.tensor(True)}
    found = set()
    for i in range(6):
        path = tmp_path / f"{i}.safetensors"
        save_file(tensors, path, metadata=dict(sorted(metadata.items(), reverse=bool(i % 2))))
        sort_metadata(path)
        found.add(path.read_bytes())
        with safe_open(path, "pt") as file:
            assert file.metadata() == metadata and torch.equal(file.get_tensor("b"), torch.ones(3))
    assert len(found) == 1
    save_file(tensors, tmp_path / "none.safetensors")
    before = (tmp_path / "none.safetensors").read_bytes()
    sort_metadata(tmp_path / "none.safetensors")
    assert (tmp_path / "none.safetensors").read_bytes() == before


def test_the_folder_of_a_killed_process_is_removed_by_the_next_claim_and_others_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "import time; from qkv.core.files import ClaimedFolder; f = ClaimedFolder('claim-')\n"
    code += "(f.path / 'file').write_text('x'); print(f.path, flush=True); time.sleep(60)"
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    alive, dead = (
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=env) for _ in range(2)
    )
    theirs = [Path(process.stdout.readline().strip()) for process in (alive, dead)]
    others = ["other-1", "claim-", "claim-notes", "claim-20260101", "claim-ABCDEFGH", "claim-abcdefghi"]
    for name in others:
        (tmp_path / name).mkdir()
    dead.kill()
    dead.wait()
    mine = ClaimedFolder("claim-")
    left = sorted(p.name for p in tmp_path.iterdir())
    assert left == sorted([*others, theirs[0].name, mine.path.name])
    mine.remove()
    mine.remove()
    assert not mine.path.exists()
    alive.kill()
    alive.communicate()
    dead.communicate()


def test_a_file_with_values_alone_has_no_keys(tmp_path):
    path = tmp_path / "memory.json"
    path.write_text('{"values": [[1, 2], [3, 4]]}')
    with pytest.raises(QkvError, match="the file holds values"):
        Memory.load(path)
    path.write_text('{"embeddings": [[1, 2], [3, 4]]}')
    assert len(Memory.load(path)) == 2


def test_a_folder_is_no_file_of_arrays(tmp_path):
    with pytest.raises(QkvError, match="it is a folder"):
        read_arrays(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX only")
def test_only_a_folder_itself_is_locked_and_no_link_to_one(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "file").write_text("")
    assert files._lock_folder(tmp_path / "link", wait=False) is None
    assert files._lock_folder(tmp_path / "file", wait=False) is None
    assert files._lock_folder(tmp_path / "none", wait=False) is None
    handle = files._lock_folder(folder, wait=False)
    assert handle is not None and files._lock_folder(folder, wait=False) is None  # locked already
    os.close(handle)
    again = files._lock_folder(folder, wait=True)
    assert again is not None
    os.close(again)


def test_a_temporary_file_that_is_gone_already_does_not_keep_the_others(tmp_path):
    with files.replacing(tmp_path / "a.txt") as first, files.replacing(tmp_path / "b.txt") as second:
        first.unlink()
        files.remove_unfinished()
        assert not second.exists()
        first.write_text("")
        second.write_text("")


def test_a_folder_that_another_process_removed_before_it_was_locked_is_made_again(monkeypatch):
    lock, first = files._lock_folder, []

    def too_late(folder, wait):
        handle = lock(folder, wait)
        if not first:
            first.append(handle)
            folder.rmdir()
        return handle

    monkeypatch.setattr(files, "_lock_folder", too_late)
    claimed = ClaimedFolder("qkv-test-too-late-")
    try:
        assert claimed.path.is_dir() and first[0] is not None
        assert claimed._handle == first[0] or not _is_open(first[0])  # released; its number may be in use again
    finally:
        claimed.remove()


def _is_open(handle):
    try:
        os.fstat(handle)
    except OSError:
        return False
    return True


def own_name(suffix=".txt"):
    return f"{files.TEMPORARY_PREFIX}{'0123456789ab'}{suffix}"


@pytest.mark.parametrize(
    "name",
    ["notes.txt", "half.safetensors", "0123456789a", "0123456789AB.txt", "0123456789ab.old.txt", "0123456789abc"],
)
def test_a_users_file_that_only_begins_like_a_temporary_one_stays(name, tmp_path):
    path = tmp_path / (files.TEMPORARY_PREFIX + name)
    path.write_text("mine")
    write_text(tmp_path / "a.txt", "a")
    assert path.read_text() == "mine"


def test_a_temporary_name_of_a_link_a_folder_or_a_file_with_another_name_elsewhere_stays(tmp_path):
    mine, folder, path = tmp_path / "mine.txt", tmp_path / "folder", tmp_path / "folder" / own_name()
    mine.write_text("mine")
    folder.mkdir()
    for make in (lambda: path.symlink_to(mine), lambda: path.hardlink_to(mine), lambda: os.mkfifo(path), path.mkdir):
        make()
        write_text(folder / "a.txt", "a")
        assert os.path.lexists(path) and mine.read_text() == "mine"
        path.rmdir() if path.is_dir() else path.unlink()


def test_a_file_of_another_user_with_a_temporary_name_stays(tmp_path, monkeypatch):
    path = tmp_path / own_name()
    path.write_text("theirs")
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    write_text(tmp_path / "a.txt", "a")
    assert path.exists()


def test_the_second_name_that_a_kill_between_two_operations_leaves_is_removed(tmp_path):
    (tmp_path / "file.txt").write_text("whole")
    (tmp_path / own_name()).hardlink_to(tmp_path / "file.txt")
    write_text(tmp_path / "a.txt", "a")
    assert not (tmp_path / own_name()).exists() and (tmp_path / "file.txt").read_text() == "whole"


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("kind", ["file", "folder", "link to nothing"])
def test_what_appears_while_a_new_file_is_written_is_kept(kind, links, tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(QkvError, match=r"a\.txt: it is there already"), files.creating(path) as temporary:
        temporary.write_text("ours")
        if kind == "file":
            path.write_text("mine")
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to(tmp_path / "nothing")
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
    assert path.is_dir() if kind == "folder" else path.is_symlink() or path.read_text() == "mine"
    with pytest.raises(QkvError, match="it is there already"), files.creating(path):
        raise AssertionError("nothing is written where the name is taken")


def no_links(*names):
    raise PermissionError(1, "Operation not permitted")


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_is_written_with_links_and_without(links, tmp_path, monkeypatch):
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    write_text(tmp_path / "a.txt", "text", files.creating)
    assert (tmp_path / "a.txt").read_text() == "text" and [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~umask
    if not links:
        monkeypatch.setattr(Path, "replace", no_links)
        with pytest.raises(PermissionError):
            write_text(tmp_path / "b.txt", "text", files.creating)
        assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]  # the reserved name is given back


@pytest.mark.parametrize("writing", [replacing, creating])
def test_an_interrupt_while_a_temporary_file_is_made_leaves_none(writing, tmp_path, monkeypatch):
    whole = os.open

    def interrupted(path, flags, *mode):
        handle = whole(path, flags, *mode)
        if flags & os.O_CREAT:
            os.kill(os.getpid(), signal.SIGINT)
        return handle

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", interrupted)
        with pytest.raises(KeyboardInterrupt), writing(tmp_path / "file"):
            pytest.fail("the block was entered")
    assert not list(tmp_path.iterdir())


def test_what_never_ends_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "MAX_TEXT_BYTES", 1000)
    with pytest.raises(QkvError, match="more than 1,000 bytes"):
        files.read_bounded(Path("/dev/zero"))
    (tmp_path / "t").write_bytes("é\r\nb\rc".encode())
    assert files.read_bounded(tmp_path / "t") == "é\nb\nc" == (tmp_path / "t").read_text("utf-8")


def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    save_file({"a": torch.zeros(2)}, tmp_path / "m.safetensors")
    monkeypatch.setattr(files.os, "access", lambda path, mode: False)
    with pytest.raises(QkvError, match="it may not be read"):
        files.read_arrays(tmp_path / "m.safetensors")
