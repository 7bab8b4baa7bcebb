"""Metadata of the project: classifiers, licences of what is shipped, extras, and the citation file."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import qkv

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VENDOR = ROOT / "src" / "qkv" / "web" / "static" / "vendor"
SHIPPED = {  # the licence of each part that others wrote, and words that its file must hold
    VENDOR / "licences" / "preact.txt": ("MIT", "The MIT License"),
    VENDOR / "licences" / "katex.txt": ("MIT", "The MIT License"),
    VENDOR / "licences" / "htm.txt": ("Apache-2.0", "Apache License"),
    VENDOR / "licences" / "d3.txt": ("ISC", "Permission to use, copy, modify, and/or distribute"),
    VENDOR / "licences" / "plot.txt": ("ISC", "Permission to use, copy, modify, and/or distribute"),
    ROOT / "src" / "qkv" / "knowledge" / "datasets" / "data" / "PANTHEON.md": ("CC0-1.0", "CC0"),
    ROOT / "LICENSE": ("MIT", "MIT License"),
}


def test_the_licence_expression_names_the_licence_of_every_part_that_is_shipped():
    assert set(PROJECT["license"].split(" AND ")) == {licence for licence, _ in SHIPPED.values()}
    for path, (_, words) in SHIPPED.items():
        assert words in path.read_text(encoding="utf-8"), path
    assert {p for p in SHIPPED if p.is_relative_to(VENDOR)} == set((VENDOR / "licences").iterdir())
    files = {path for pattern in PROJECT["license-files"] for path in ROOT.glob(pattern)}
    assert set(SHIPPED) <= files
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(name in readme for name in ("MIT", "Apache-2.0", "ISC", "CC0"))


def test_classifiers_exist_and_say_what_is_true():
    known = pytest.importorskip("trove_classifiers").classifiers
    assert set(PROJECT["classifiers"]) <= known
    lowest = re.search(r">=(\d\.\d+)", PROJECT["requires-python"])[1]
    assert f"Programming Language :: Python :: {lowest}" in PROJECT["classifiers"]
    assert (ROOT / "src" / "qkv" / "py.typed").is_file() and "Typing :: Typed" in PROJECT["classifiers"]
    assert not [c for c in PROJECT["classifiers"] if c.startswith("License ::")]  # the expression replaces them


def test_the_extra_docs_is_part_of_dev_and_admits_what_is_installed():
    requirements = pytest.importorskip("packaging.requirements")
    extras = PROJECT["optional-dependencies"]
    assert set(extras["docs"]) <= set(extras["dev"])
    for line in extras["docs"]:
        requirement = requirements.Requirement(line)
        assert requirement.specifier.contains(metadata.version(requirement.name)), line


def test_the_citation_file_has_the_fields_of_its_format_and_this_version():
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert found["cff-version"] == "1.2.0" and found["type"] == "software"
    assert found["version"] == qkv.__version__ == PROJECT["version"]
    assert all(found[name] for name in ("message", "title", "abstract"))
    assert found["authors"] == PROJECT["authors"] == [{"name": "the qkv authors"}]
    assert "the qkv authors" in (ROOT / "LICENSE").read_text()
    assert found["license"] == "MIT" and found["keywords"] == PROJECT["keywords"]
