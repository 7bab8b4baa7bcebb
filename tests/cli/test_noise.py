"""qkv noise from the shell: moments, probabilities, samples, comparisons with plots, refusals."""

import json
import re

import numpy as np
import pytest
from marks import some
from typer.testing import CliRunner

from qkv.cli import app
from qkv.errors import QkvError

STORY = ["--orthonormal", "10x16", "--weights", "0=1/2,1=1/2", "--isotropic", "1e-6", "--along", "0=0.5"]


def qkv(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if isinstance(result.exception, QkvError):
        return 2, str(result.exception)
    assert result.exit_code == 0, result.output
    return 0, result.stdout


@pytest.fixture
def files(tmp_path):
    np.savez(tmp_path / "m.npz", keys=np.eye(10, 16), values=np.eye(10))
    np.save(tmp_path / "one.npy", 50 * (np.eye(16)[0] + np.eye(16)[1]))
    np.save(tmp_path / "two.npy", 400 * np.eye(2, 16))
    return tmp_path


def test_one_head_has_the_published_variance(files):
    code, out = qkv("noise", "moments", files / "m.npz", "--query", files / "one.npy", "--along", "0=1/2", "--json")
    assert code == 0 and json.loads(out)["weights_var"][0] == pytest.approx(0.238731016, abs=1e-9)


def test_two_heads_fail_where_the_key_is_reversed(files):
    two = (
        "noise",
        "probability",
        files / "m.npz",
        "--query",
        files / "two.npy",
        "--weights",
        "0=1/2,1=1/2",
        "--along",
        "0=1/2",
    )
    _, out = qkv(*two, "--radius", "0.05", "--json")
    assert json.loads(out)["probability"] == pytest.approx(1 - 0.0786, abs=0.01)


def test_samples_agree_with_the_exact_moments(files):
    query = ("--query", files / "one.npy", "--along", "0=1/2", "--json")
    exact = json.loads(qkv("noise", "moments", files / "m.npz", *query)[1])
    drawn = json.loads(qkv("noise", "sample", files / "m.npz", *query, "--n-draws", "20000")[1])
    assert drawn["weights_mean"][0] == pytest.approx(exact["weights_mean"][0], abs=0.02)


@pytest.mark.parametrize("command", ["moments", "probability", "sample", "compare", "harden"])
def test_every_command_has_the_same_noise_options(command):
    _, out = qkv("noise", command, "--help")
    for option in ("--isotropic", "--along", "--bits", "--covariance"):
        assert len(re.findall(rf"^\W*{option} +\S", out, flags=re.M)) == 1
    assert len(re.findall(r"^ *--noise +<", out, flags=re.M)) == 1 and "--noise-file" not in out


@pytest.mark.parametrize("picture", some(["weights", "variance", "success"], ["variance"]))
def test_a_comparison_is_drawn(picture, tmp_path):
    path = tmp_path / f"{picture}.svg"
    code, out = qkv("noise", "compare", *STORY, "--plot", path, "--picture", picture)
    assert code == 0 and "hardened has the least squared error" in out
    text = path.read_text()
    assert all(colour in text for colour in ("#d55e00", "#56b4e9", "#009e73"))


def test_hardening_from_the_shell_gives_a_query_orthogonal_to_the_noise():
    _, out = qkv("noise", "harden", *STORY, "--json")
    found = json.loads(out)
    assert found["gain"] > 200 and found["gain_over_heads"] > 20


def test_quantised_keys_and_covariance_files_are_noise_too(files):
    np.save(files / "cov.npy", 0.01 * np.eye(16))
    for noise in (("--bits", "3"), ("--covariance", files / "cov.npy")):
        _, out = qkv("noise", "moments", files / "m.npz", "--query", files / "one.npy", *noise, "--json")
        assert max(json.loads(out)["weights_var"]) > 0


@pytest.mark.parametrize(
    ("arguments", "mentions"),
    [
        (["moments", "--orthonormal", "4x4", "--isotropic", "1"], "--query"),
        (["compare", "--orthonormal", "4x4", "--weights", "0=1"], "no noise"),
        (["compare", *STORY, "--picture", "cake"], "cake"),
        (["compare", *STORY, "--plot", "out.gif"], ".svg"),
        (["compare", *STORY, "--bits", "4"], "one kind"),
        (["harden", "--orthonormal", "4x4", "--weights", "0=1", "--along", "0"], "item=variance"),
        (["harden", "--orthonormal", "4x4", "--weights", "0=1", "--isotropic", "-1"], "-1"),
        (["harden", "--orthonormal", "4x4", "--weights", "0=1", "--bits", "0"], "bits"),
        (["harden", *STORY, "--heads", "1000"], "1000 heads were asked for, and 64 is the limit"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, mentions):
    code, message = qkv("noise", *arguments)
    assert code == 2 and mentions in message


@pytest.mark.parametrize("along", ["left=0.5,left=0.1", "left=0.5,0=0.1", "1=0.5,right=0.5", "0=1,1=1,00=2"])
def test_an_item_has_one_variance(along, tmp_path):
    (tmp_path / "m.csv").write_text("name,x,y\nleft,4,0\nright,0,4\n")
    asked = ("noise", "harden", tmp_path / "m.csv", "--weights", "left=1/2,right=1/2")
    code, said = qkv(*asked, f"--along={along}")
    assert code == 2 and "is named twice" in said and "--along" in said
    parts = dict(part.split("=") for part in reversed(along.split(",")))  # JSON has no name twice, but two for one item
    (tmp_path / "noise.json").write_text(json.dumps({"along": {name: float(value) for name, value in parts.items()}}))
    code, said = qkv(*asked, "--noise", tmp_path / "noise.json")
    assert code == (0 if len(parts) == 1 else 2) and ("is named twice" in said) is (code == 2)


def test_missing_weights_are_named(files):
    code, message = qkv("noise", "harden", files / "m.npz", "--isotropic", "0.1")
    assert code == 2 and "--weights was not given" in message
