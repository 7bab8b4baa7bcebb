"""Wheel and source distribution: built, installed outside the source tree, and used there."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LICENCES = ("LICENSE", "d3.txt", "htm.txt", "katex.txt", "plot.txt", "preact.txt", "PANTHEON.md")
USE = """
import qkv, sys
assert qkv.__file__.startswith(sys.argv[1]), qkv.__file__
memory = qkv.Memory.orthonormal(4, 6)
assert qkv.design.blend(memory, {0: 0.5, 1: 0.5}).certificate.verify()
text = "```claim\\ngiven k_1..k_n orthonormal, n >= 3\\nlet q = t*k_a\\nthen alpha_a -> 1 as t -> oo\\n```"
assert [v.verdict for v in qkv.check(text)] == ["proved"]
assert len(qkv.knowledge.pantheon().people) == 10768
from qkv.viz.theme import css
assert "{" in css()
from qkv.claims.catalogue import documents
assert len(list(documents())) == 6
from qkv.web.documents import document_files
assert {"", "readme", "noise"} <= document_files().keys() or "index.html" in document_files()
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, source


@pytest.mark.slow
def test_an_installed_wheel_works_outside_the_source_tree(built, tmp_path):
    site = tmp_path / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
        str(built[0]),
    ]
    subprocess.run(pip, check=True, capture_output=True)
    env = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", USE, str(site)], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = subprocess.run(
        [sys.executable, "-m", "qkv", "--version"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert said.stdout.strip().endswith("0.1.0")


def test_the_wheel_holds_types_data_and_licences(built):
    names = zipfile.ZipFile(built[0]).namelist()
    ours = {str(p.relative_to(ROOT / "src")) for p in (ROOT / "src" / "qkv").rglob("*") if p.is_file()}
    expected = {name for name in ours if "__pycache__" not in name}
    assert expected <= set(names), expected - set(names)
    assert "qkv/py.typed" in names
    for licence in LICENCES:
        assert any(name.endswith(licence) and "dist-info/licenses" in name for name in names), licence


def test_the_source_distribution_can_be_tested_from(built):
    with tarfile.open(built[1]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"pyproject.toml", "constraints.txt", "Makefile", "README.md", "tests/conftest.py", "docs/noise.md"} <= names
    assert not any("__pycache__" in name or name.startswith((".venv", "tour")) for name in names)
