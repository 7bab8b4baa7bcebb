"""Vendored libraries match the checksums in VERSIONS and have licences; our files refer to no other host."""

import hashlib
import re
from pathlib import Path

import pytest

STATIC = Path(__file__).resolve().parents[3] / "src" / "qkv" / "web" / "static"
VENDOR = STATIC / "vendor"
OWN = sorted(
    path for path in STATIC.rglob("*") if path.suffix in (".js", ".css", ".html") and VENDOR not in path.parents
)


def rows(text):
    return [re.split(r" {2,}", line) for line in text.splitlines() if line and not line.startswith("#")]


def wrong(folder, text):
    """Files whose content is not what the text says, or that it does not name."""
    named = {file: digest for digest, file, *_ in rows(text)}
    found = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file() and p.name != "VERSIONS"}
    found = {name: path for name, path in found.items() if not name.startswith("licences/")}
    bad = {n for n, p in found.items() if named.get(n) != hashlib.sha256(p.read_bytes()).hexdigest()}
    return sorted(bad | (named.keys() - found.keys()))


def test_every_vendored_file_is_the_one_that_was_taken():
    assert wrong(VENDOR, (VENDOR / "VERSIONS").read_text(encoding="utf-8")) == []


def test_a_changed_file_would_be_noticed():
    text = (VENDOR / "VERSIONS").read_text(encoding="utf-8")
    assert wrong(VENDOR, text.replace(rows(text)[0][0], "0" * 64)) == [rows(text)[0][1]]


def test_every_package_has_its_licence():
    packages = {row[2].split()[0].split("/")[-1] for row in rows((VENDOR / "VERSIONS").read_text(encoding="utf-8"))}
    licences = {path.stem for path in (VENDOR / "licences").glob("*.txt")}
    assert packages | {"preact"} == licences


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.name)
def test_no_file_of_ours_is_long_names_another_host_or_writes_inline_code(path):
    text = path.read_text(encoding="utf-8")
    assert path.suffix == ".css" or len(text.splitlines()) <= 250
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    if path.suffix == ".html":
        assert not re.findall(r"<style|\bstyle=|\bon\w+=|<script(?![^>]*\bsrc=)", text)
    if path.suffix == ".js":
        assert not re.findall(r"\beval\(|new Function|innerHTML|insertAdjacentHTML|document\.write", text)
        assert re.match(r"// .+\.", text), "the first line describes the file"
