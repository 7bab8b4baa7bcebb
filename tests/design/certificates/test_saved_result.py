"""The result beside certificates: what differs from them is named, whatever a file holds; tests/cli/test_chaining.py
changes the results of every kind of design."""

import json

import pytest

import qkv
from qkv.design.certificates.certificate import save, verify_file
from qkv.design.certificates.saved_result import differences

FOUND = qkv.design.blend([[4.0, 0.0], [0.0, 4.0], [-4.0, -4.0]], {0: 0.5, 1: 0.5})
RESULT = json.loads(json.dumps({"labels": ["a", "b", "c"], **FOUND.to_json(), "wanted": {"a": 0.5, "b": 0.5}}))


def fields(**changes):
    return [each.field for each in differences({**RESULT, **changes}, FOUND.certificates)]


def test_the_result_that_was_computed_is_that_of_its_certificates():
    assert fields() == []
    assert fields(note="texts are for people", scale=7.0, labels=["x", "y", "z"], wanted={"x": 0.5, "y": 0.5}) == []
    assert fields(possible=None, labels=None, query=None) == []
    assert fields(keys=[[4.0, 0.0], [0.0, 4.0], [-4.0, -4.0]]) == []  # the same numbers once more


@pytest.mark.parametrize(
    "changes",
    [
        {"query": [RESULT["query"]]},
        {"query": RESULT["query"][:1]},
        {"query": [*RESULT["query"][:1], "x"]},
        {"query": [True, 1.0]},
        {"query": {"x": RESULT["query"]}},
        {"distance": RESULT["distance"] * 0.5},
        {"least_norm_within_tol": RESULT["least_norm_within_tol"] * 2},
        {"least_norm_within_tol": RESULT["least_norm"]},
        {"least_norm_within_tol": "9"},
        {"least_norm": {"value": 9}},
        {"least_norm": RESULT["least_norm_within_tol"]},
        {"distance": "0.0"},
        {"distance_at_least": RESULT["tol"]},
        {"tol": 1e-30},
        {"values": [["1.0", 2]]},
        {"more": [{"query": [1.0]}]},
        {"more": {"deep": [[], [{"x": [0]}]]}},
        {"wanted": {"b": 0.5, "a": 0.5}},
        {"wanted": {"a": 0.5, "b": "half"}},
        {"wanted": {"a": 0.5, "c": 0.5}},
        {"wanted": {}},
        {"wanted": [0.25, 0.75]},
        {"labels": ["a", "b"]},
        {"labels": ["a", "b", "b"]},
        {"labels": [["a"], ["b"], ["c"]]},
        {"labels": 3},
        {"answers": [{"query": [1.0]}]},
        {"answers": 0},
        {"items": "0 and 1"},
        {"residual": 0.0},
        {"at_least": 0.5},
        {"tol": "0.001"},
        {"possible": False},
        {"possible": 1},
        {"possible": "yes"},
        {"possible": []},
        {"impossible": 0},
        {"shared": [1.0]},
    ],
    ids=lambda changes: json.dumps(changes)[:50],
)
def test_fields_that_differ_are_named(changes):
    assert set(changes) <= set(fields(**changes))


def test_a_shared_vector_needs_a_certificate_with_its_coordinates():
    found = qkv.design.project([[1.0], [0.0]], [[0.0], [1.0]])  # its certificate holds A, and no x
    (wrong,) = differences({"shared": [1.0, 0.0]}, found.certificates)
    assert (wrong.field, wrong.why) == ("shared", "no certificate covers it")


@pytest.mark.parametrize("answers", [[], [None], [[1.0]], [{}], [{"item": 0}], "x"])
def test_decisions_that_are_none_are_refused(answers):
    found = qkv.design.copyable([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.25, 0.25]])
    result = json.loads(json.dumps(found.to_json()))
    assert not list(differences(result, [found.certificate]))
    refused = [each.field for each in differences({**result, "answers": answers}, [found.certificate])]
    assert refused == ["answers"]


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_a_file_is_verified_with_its_result(suffix, tmp_path):
    path = tmp_path / f"c{suffix}"
    save(FOUND.certificates, path, RESULT)
    assert len(verify_file(path)) == len(FOUND.certificates) and all(verify_file(path))
    save(FOUND.certificates, path, {**RESULT, "query": [0.0, 0.0]})
    *certificates, last = verify_file(path)
    assert all(certificates) and not last
    assert last.why == "result.query: it is not what the certificate holds"


def test_a_later_certificate_does_not_cover_the_query_of_the_first(tmp_path):
    other = qkv.design.copy([[4.0, 0.0], [0.0, 4.0], [-4.0, -4.0]], 2)
    query = other.query.tolist()
    both = [*FOUND.certificates, other.certificate]
    assert [each.field for each in differences({**RESULT, "query": query}, both)] == ["query"]


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("data", "keys", 5), ("data", "items", "x"), ("data", "query", {}), ("data", "values", [[]]),
        ("claims", "distance", {"x": 1}), ("claims", "distance", []), ("claims", "output", "far"),
    ],
)  # fmt: skip
def test_a_malformed_certificate_beside_a_result_is_refused_in_a_sentence(part, name, value, tmp_path):
    path = tmp_path / "c.json"
    save(FOUND.certificates, path, RESULT)
    document = json.loads(path.read_text())
    document["certificates"][0][part][name] = value
    path.write_text(json.dumps(document))
    found = verify_file(path)
    assert not found[0] and found[0].why
    certificates = list(FOUND.certificates)
    broken = type(certificates[0])(
        certificates[0].kind, *({**getattr(certificates[0], p), **({name: value} if p == part else {})}
                                for p in ("data", "claims"))
    )  # fmt: skip
    list(differences(RESULT, [broken, *certificates[1:]]))
