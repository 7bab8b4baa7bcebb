"""The examples in the docstrings of core, design and errors run, and every public name is documented."""

import doctest
import importlib
import inspect

import pytest

import qkv

MODULES = [
    "qkv.errors", "qkv.core.attention", "qkv.core.memory", "qkv.core.multihead", "qkv.design.query",
    "qkv.design.leakage", "qkv.design.projection", "qkv.design.wiring", "qkv.design.reachability",
    "qkv.design.hull.selectable", "qkv.design.certificates.certificate",
]  # fmt: skip
PUBLIC = [getattr(package, name) for package in (qkv.core, qkv.design) for name in package.__all__] + [qkv.QkvError]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_the_output_they_show(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0


@pytest.mark.parametrize("thing", PUBLIC, ids=lambda t: t.__name__)
def test_every_parameter_of_a_public_function_and_every_field_of_a_result_is_documented(thing):
    text = inspect.getdoc(thing)
    if inspect.isfunction(thing):
        names = inspect.signature(thing).parameters
        sections = ("Args:", "Returns:", "Example:") if names else ("Returns:", "Example:")
    else:
        sections, names = ("Attributes:",), getattr(thing, "__dataclass_fields__", {})
    assert all(section in text for section in sections)
    for name in names:
        assert f"{name}:" in text or f"{name}," in text, name
