"""The shell: tables and JSON, files of every format, saved certificates, refusals."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from marks import some, spread
from safetensors.numpy import save_file
from typer.testing import CliRunner

from qkv.cli import app
from qkv.errors import QkvError

KEYS = np.eye(4, 6)
VALUES = np.arange(12.0).reshape(4, 3)


def qkv(*arguments):
    """Run one command in this process, as `main` does: (exit code, standard output, standard error)."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception and not isinstance(result.exception, SystemExit | QkvError):
        raise result.exception
    refusal = f"qkv: {result.exception}" if result.exception and not isinstance(result.exception, SystemExit) else ""
    return (2 if refusal else result.exit_code), result.stdout, refusal


def in_another_process(*arguments, cwd=None):
    command = [sys.executable, "-m", "qkv", *(str(a) for a in arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env={**os.environ, "OMP_NUM_THREADS": "1"})


@pytest.fixture(params=some([".npz", ".npy", ".csv", ".json", ".safetensors"], [".npz", ".csv"]))
def memory_file(request, tmp_path):
    path = tmp_path / f"memory{request.param}"
    if request.param == ".npz":
        np.savez(path, keys=KEYS, values=VALUES)
    elif request.param == ".npy":
        np.save(path, KEYS)
    elif request.param == ".csv":
        np.savetxt(path, KEYS, delimiter=",")
    elif request.param == ".json":
        path.write_text(json.dumps({"keys": KEYS.tolist(), "values": VALUES.tolist(), "labels": list("abcd")}))
    else:
        save_file({"keys": KEYS, "values": VALUES}, path)
    return path


def test_a_memory_of_every_format_is_read_designed_for_and_certified(memory_file, tmp_path):
    saved = tmp_path / "copy.json"
    code, out, _ = qkv("design", "copy", memory_file, "--item", "2", "--tol", "1e-3", "--json", "--save", saved)
    assert code == 0
    found = json.loads(out)
    assert found["status"] == "exact"
    assert found["scale"] == pytest.approx(np.log(3 * 0.999 / 0.001), rel=1e-9)
    again = in_another_process("design", "verify", saved)
    assert again.returncode == 0 and "holds" in again.stdout


def test_labels_in_a_csv_are_the_names_of_the_items(tmp_path):
    path = tmp_path / "memory.csv"
    path.write_text("name,x,y,z\nred,1,0,0\ngreen,0,1,0\nblue,0,0,1\n")
    code, out, _ = qkv("design", "blend", path, "--weights", "red=1/3,blue=2/3", "--json")
    assert code == 0
    assert json.loads(out)["wanted"] == {"red": pytest.approx(1 / 3), "blue": pytest.approx(2 / 3)}


def test_a_person_sees_a_table_and_a_generated_memory_needs_no_file():
    code, out, _ = qkv("design", "blend", "--orthonormal", "10x16", "--weights", "0=0.5,1=0.5")
    assert code == 0
    assert "8.29305" in out and "norm with these ratios" in out and "norm within tol" in out


def test_projecting_from_the_shell(tmp_path):
    np.savez(tmp_path / "bases.npz", A=np.eye(4)[:, :2], B=np.eye(4)[:, 2:])
    code, out, _ = qkv("design", "project", tmp_path / "bases.npz", "B", "--json", "--save", tmp_path / "p.safetensors")
    assert code == 0
    assert np.allclose(json.loads(out)["matrix"], np.diag([1.0, 1, 0, 0]))
    assert qkv("design", "verify", tmp_path / "p.safetensors")[0] == 0


@pytest.fixture
def tokens(tmp_path):
    a, b, c, d = 4 * np.eye(4)
    path = tmp_path / "tokens.npz"
    arrays = {"X": np.array([d + b, a, c + b]), "writes": np.array([b - c, b]), "u_d": d, "u_b": b}
    matrices = {
        "Q": (np.outer(d, a) + np.outer(c, d)) / 16, "K": np.eye(4), "V": (np.outer(b, b) - np.outer(c, c)) / 16,
    }  # fmt: skip
    np.savez(path, **arrays, **matrices)
    return path


def test_wiring_and_reaching_from_the_shell_with_pictures(tokens, tmp_path):
    saved, drawn = tmp_path / "w.json", tmp_path / "w.svg"
    code, out, _ = qkv(
        "design", "wire", tokens, "--reads", "0:2,1:0", "--writes", "writes", "--save", saved, "--plot", drawn
    )
    assert code == 0 and "head size" in out
    assert drawn.read_text().lstrip().startswith("<?xml")
    assert qkv("design", "verify", saved)[0] == 0
    code, out, _ = qkv("design", "reach", tokens, "--token", 1, "--along", "u_d", "--target", "u_b", "--json")
    assert code == 1 and json.loads(out)["possible"] is False


def test_anyones_matrices_are_checked_from_the_shell(tokens):
    arguments = ("design", "verify", tokens, "--reads", "0:2,1:0", "--writes", "writes")
    assert qkv(*arguments, "--tol", "1e-6")[0] == 0
    code, out, _ = qkv(*arguments, "--tol", "1e-8")
    assert code == 1 and "REFUSED" in out


@pytest.mark.parametrize(
    ("option", "says"),
    [("--tol=0", "tol is 0"), ("--tol=-1", "tol is -1"), ("--output-tol=-1", "output_tol is -1"), ("--tol=nan", "tol")],
)
def test_no_matrices_are_checked_to_a_tolerance_that_is_none(tokens, option, says):
    code, out, err = qkv("design", "verify", tokens, "--reads", "0:2,1:0", "--writes", "writes", option)
    assert code == 2 and out == "" and says in err


def test_copyable_from_the_shell(tmp_path):
    path = tmp_path / "keys.csv"
    path.write_text("0,0\n4,0\n0,4\n1,1\n")
    saved = tmp_path / "all.json"
    code, out, _ = qkv("design", "copyable", path, "--json", "--save", saved, "--plot", tmp_path / "hull.png")
    assert code == 1
    assert [a["possible"] for a in json.loads(out)["answers"]] == [True, True, True, False]
    assert (tmp_path / "hull.png").stat().st_size > 1000
    assert qkv("design", "verify", saved)[0] == 0


def test_a_tampered_certificate_is_refused_with_exit_code_1(tmp_path):
    saved = tmp_path / "c.json"
    qkv("design", "copy", "--orthonormal", "5x8", "--item", "1", "--save", saved)
    document = json.loads(saved.read_text())
    document["certificates"][0]["data"]["query"][0] += 1.0
    saved.write_text(json.dumps(document))
    again = in_another_process("design", "verify", saved)
    assert again.returncode == 1 and "REFUSED" in again.stdout and not again.stderr


BAD = [
    (["design", "copy"], "--orthonormal"),
    (["design", "copy", "--orthonormal", "3"], "NxD"),
    (["design", "copy", "--orthonormal", "9x3"], "Raise d"),
    (["design", "copy", "--orthonormal", f"{10**20}x{10**20}"], "268,435,456 numbers"),
    (["design", "copy", "--orthonormal", f"1x{10**20}"], "268,435,456 numbers"),
    (["design", "copy", "--orthonormal", "4x4", "--item", "7"], "7"),
    (["design", "copy", "--orthonormal", "4x4", "--tol", "0"], "tol"),
    (["design", "copy", "absent.npz"], "no such file"),
    (["design", "copy", "memory.txt"], ".txt"),
    (["design", "copy", "nan.csv"], "NaN"),
    (["design", "copy", "words.csv"], "damaged"),
    (["design", "copy", "cut.npz"], "damaged"),
    (["design", "copy", "cut.safetensors"], "damaged"),
    (["design", "copy", "cut.json"], "damaged"),
    (["design", "copy", "pickled.npy"], "damaged"),
    (["design", "copy", "--orthonormal", "4x4", "--save", "out.txt"], ".json or .safetensors"),
    (["design", "copy", "--orthonormal", "4x4", "--plot", "out.gif"], ".svg"),
    (["design", "copy", "--orthonormal", "4x4", "--save", "nowhere/out.json"], "does not exist"),
    (["design", "blend", "--orthonormal", "4x4", "--weights", "0=0.5,1=0.6"], "sum to 1.1"),
    (["design", "blend", "--orthonormal", "4x4", "--weights", "0"], "item=weight"),
    (["design", "blend", "--orthonormal", "4x4", "--weights", "0=one"], "not a number"),
    (["design", "project", "flat.csv", "flat.csv"], "span only 1"),
    (["design", "wire", "flat.csv", "--reads", "0", "--writes", "flat.csv"], "token:token"),
    (["design", "wire", "flat.csv", "--reads", "0:1", "--writes", "gone"], "neither a file"),
    (["design", "verify", "cut.json"], "damaged"),
    (["design", "verify", "cut.safetensors"], "damaged"),
    (["design", "verify", "flat.csv"], "damaged"),
    (["design", "verify", "absent.json"], "no such file"),
    (["design", "verify", "."], "it is a folder"),
    (["design", "verify", "deep.json"], "nested 100000 deep"),
    (["design", "copyable", "nan.csv"], "NaN"),
    (["read", "--orthonormal", "4x4"], "--query"),
]


@pytest.fixture
def bad_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nan.csv").write_text("1,2\nnan,4\n")
    (tmp_path / "words.csv").write_text("a,b\nc,d\ne,f\n")
    (tmp_path / "flat.csv").write_text("1,1\n1,1\n1,1\n")
    np.savez(tmp_path / "whole.npz", keys=np.random.default_rng(0).standard_normal((50, 50)))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:4000])
    save_file({"keys": KEYS}, tmp_path / "whole.safetensors")
    (tmp_path / "cut.safetensors").write_bytes((tmp_path / "whole.safetensors").read_bytes()[:100])
    (tmp_path / "cut.json").write_text('{"keys": [[1, 2], [3')
    (tmp_path / "deep.json").write_text("[" * 100_000)
    np.save(tmp_path / "pickled.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return tmp_path


@pytest.mark.parametrize(("arguments", "mentions"), spread(BAD, 2), ids=[" ".join(a) for a, _ in BAD])
def test_bad_input_is_one_message_with_exit_code_2_and_leaves_no_file(arguments, mentions, bad_files):
    before = sorted(bad_files.iterdir())
    code, out, err = qkv(*arguments)
    assert code == 2 and out == ""
    assert mentions in err
    assert sorted(bad_files.iterdir()) == before


@pytest.mark.slow
def test_a_refusal_in_a_real_process_is_one_line_on_stderr_without_a_traceback(bad_files):
    run = in_another_process("design", "copy", "nan.csv", "--save", "out.json", cwd=bad_files)
    assert run.returncode == 2 and run.stdout == ""
    assert run.stderr.startswith("qkv: ") and len(run.stderr.splitlines()) == 1
    assert not (bad_files / "out.json").exists()


def test_several_certificates_are_verified_into_one_json_object(tmp_path):
    path = tmp_path / "keys.csv"
    path.write_text("0,0\n4,0\n0,4\n1,1\n")
    saved = tmp_path / "none.safetensors"
    code, out, _ = qkv("design", "copy", path, "--item", "3", "--json", "--save", saved)
    assert code == 1 and json.loads(out)["possible"] is False
    code, out, _ = qkv("design", "verify", saved, "--json")
    assert code == 0
    report = json.loads(out)
    assert report["holds"] is True and len(report["certificates"]) == 3


def test_labels_that_are_other_items_indices_are_not_mixed_up(tmp_path):
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [[0, 0], [4, 0], [0, 4], [1, 1]], "labels": [3, 2, 1, 0]}))
    code, out, _ = qkv("design", "copyable", path, "--json", "--plot", tmp_path / "hull.svg")
    assert code == 1
    inside = json.loads(out)["answers"][3]
    assert inside["item"] == 0 and sorted(inside["combination"]) == ["1", "2", "3"]


def test_matrices_that_read_right_and_write_nothing_are_refused(tokens, tmp_path):
    with np.load(tokens) as arrays:
        np.savez(tmp_path / "v0.npz", **{**arrays, "V": np.zeros((4, 4))})
    rules = ("--reads", "0:2,1:0", "--writes", "writes")
    code, out, _ = qkv("design", "verify", tmp_path / "v0.npz", *rules)
    assert code == 1 and "REFUSED" in out
    assert qkv("design", "verify", tmp_path / "v0.npz", *rules, "--output-tol", "6")[0] == 0
    assert "without --reads" in qkv("design", "verify", tokens, "--tol", "1e-3")[2]


def test_a_write_that_fails_halfway_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    from qkv.core import files

    target = tmp_path / "kept.json"
    target.write_text("old")
    with pytest.raises(OSError), files.replacing(target) as temporary:
        temporary.write_text("half")
        raise OSError("disk full")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_causal_mask_is_kept_and_a_rule_that_breaks_it_is_refused(files, shell, monkeypatch):
    monkeypatch.chdir(files)
    line = ("design", "wire", "tokens.npz", "--writes", "writes", "--mask")
    assert shell(*line, "causal", "--reads", "1:0,2:1").code == 0
    broken = shell(*line, "causal", "--reads", "0:2,1:0")
    assert (broken.code == 2 and "causal" in broken.err) or "may not see" in broken.err or "mask" in broken.err
    assert shell(*line, "cake", "--reads", "1:0,2:1").code == 2


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_without_a_certificate_nothing_is_saved(shell, tmp_path, suffix):
    (tmp_path / "x.json").write_text('{"X": [[0, 3], [3, 0]], "u": [1, 0], "y": [3, 3]}')
    words = ("design", "reach", tmp_path / "x.json", "--token", "0", "--along", "u", "--target", "y")
    done = shell(*words, "--save", tmp_path / f"c{suffix}")
    assert done.code == 0 and done.err == "nothing to save: nothing is certified\n" and "saved" not in done.out
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
