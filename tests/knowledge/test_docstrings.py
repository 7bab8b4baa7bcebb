"""The examples in the docstrings of the package run."""

import doctest
import importlib

import pytest

MODULES = ("datasets.facts", "datasets.pantheon", "datasets.templates", "studies.experiment")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    found = doctest.testmod(importlib.import_module(f"qkv.knowledge.{name}"))
    assert found.attempted and not found.failed
