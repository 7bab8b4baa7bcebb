"""Files that qkv wrote, read as inputs: their arrays by name, and by the names under which commands ask for them."""

import pytest

from qkv.core.documents import is_result, is_saved, named_arrays
from qkv.errors import QkvError


def test_a_document_of_json_gives_its_fields_under_the_names_that_commands_ask_for():
    data = {"schema": "qkv/design", "version": 1, "queries": [[1.0]], "output": [2.0], "scale": None, "matrix": [[3.0]]}
    assert is_result(data) and not is_saved(data)
    assert named_arrays("reading", data) == {
        "queries": [[1.0]], "query": [[1.0]], "along": [[1.0]], "output": [2.0], "target": [2.0],
        "matrix": [[3.0]], "A": [[3.0]], "B": [[3.0]],
    }  # fmt: skip


def test_a_field_of_its_own_name_is_kept_and_the_first_alias_counts():
    data = {
        "schema": "qkv/read",
        "version": 1,
        "query": [1.0],
        "queries": [[5.0]],
        "output": [2.0],
        "output_mean": [3.0],
    }
    found = named_arrays("reading", data)
    assert (found["query"], found["along"], found["target"]) == ([1.0], [1.0], [2.0])
    assert named_arrays("reading", {"schema": "qkv/noise", "output_mean": [3.0]})["target"] == [3.0]


def test_a_saved_design_gives_the_inputs_of_its_first_certificate_and_of_its_result_the_labels():
    saved = {
        "format": "qkv-certificate/1",
        "certificates": [{"data": {"keys": [[1.0], [2.0]], "query": [1.0], "items": [1.0], "wanted": [1.0]}},
                         {"data": {"keys": [[9.0]], "values": [[9.0]]}}],
        "result": {"query": [4.0], "keys": 3, "values": [[5.0]], "wanted": {"a": 1.0}, "labels": ["a", "b"]},
    }  # fmt: skip
    assert is_saved(saved) and not is_result(saved)
    found = {"keys": [[1.0], [2.0]], "query": [1.0], "along": [1.0], "items": [1.0]}
    assert named_arrays("reading", saved) == {**found, "labels": ["a", "b"], "wanted": {"b": 1.0}}
    assert named_arrays("reading", {**saved, "result": {}}) == {**found, "wanted": {"1": 1.0}}
    for result in ([], "keys", {"labels": None}):
        assert named_arrays("reading", {**saved, "result": result}) == {**found, "wanted": {"1": 1.0}}
    alone = {"format": "qkv-certificate/1", "data": {"keys": [[1.0]]}}
    assert named_arrays("reading", alone) == {"keys": [[1.0]]}
    assert named_arrays("reading", {"format": "qkv-certificate/1", "certificates": ["broken"]}) == {}


def test_other_objects_stay_as_they_are():
    assert named_arrays("reading", {"matrix": [1.0], "scale": None}) == {"matrix": [1.0], "scale": None}
    assert not any(
        test(data) for test in (is_result, is_saved) for data in ([], None, {}, {"schema": "other/1"}, "qkv/")
    )


def test_the_document_of_a_refusal_is_refused_with_its_message():
    with pytest.raises(QkvError, match=r"holds the refusal of another command \(no such key"):
        named_arrays("reading a.json", {"schema": "qkv/error", "version": 1, "message": "no such key"})
