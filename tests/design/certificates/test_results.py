"""The result beside certificates: what differs from them is named, whatever a file holds; tests/cli/test_chaining.py
changes the results of every kind of design."""

import json
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import sympy
import torch

import qkv
from qkv.design.certificates import files
from qkv.design.certificates.certificate import Certificate, save, verify_file
from qkv.design.certificates.results import EVIDENCE, differences, kept
from qkv.design.certificates.results.copyable import negligible_margin

KEYS = [[4.0, 0.0], [0.0, 4.0], [-4.0, -4.0]]
FOUND = qkv.design.blend(KEYS, {0: 0.5, 1: 0.5})
NORMS = ("least_norm", "least_norm_within_tol")
WHOLE = {"labels": ["a", "b", "c"], **FOUND.to_json(), "wanted": {"a": 0.5, "b": 0.5}}
RESULT = json.loads(json.dumps(kept(WHOLE, FOUND.certificates)))


def as_saved(found):
    """The result of a design as a file of --save holds it."""
    return json.loads(json.dumps(kept(found.to_json(), found.certificates)))


def fields(**changes):
    return [each.field for each in differences({**RESULT, **changes}, FOUND.certificates)]


def test_the_result_that_was_computed_is_that_of_its_certificates():
    assert fields() == []
    assert fields(labels=["x", "y", "z"], wanted={"x": 0.5, "y": 0.5}) == []
    assert fields(possible=None, labels=None, query=None) == []


def test_what_no_certificate_shows_is_not_saved(tmp_path):
    """Sentences and numbers that no certificate holds are printed, and do not stand in the file."""
    assert {*WHOLE} - {*RESULT} == {"status", "scale", "says", "distance_bound", "obstacle", "measures"}
    with pytest.raises(qkv.QkvError, match="nothing checks 'note'"):
        save(FOUND.certificates, tmp_path / "c.json", {**WHOLE, "note": "any text"})
    assert not (tmp_path / "c.json").exists()
    selects = Certificate.issue("selects", {"keys": np.eye(2), "item": 0, "query": [1.0, 0.0]})
    save([selects], tmp_path / "c.json")
    with pytest.raises(qkv.QkvError, match="nothing checks 'query'"):
        save([selects], tmp_path / "c.json", {"query": [1.0, 0.0]})


@pytest.mark.parametrize(
    "changes",
    [
        {"note": "any text"},
        {"scale": 7.0},
        {"says": FOUND.certificate.statement},
        {"says": None},
        {"keys": KEYS},
        {"norm": 1e300},
        {"bounds": {"distance": 0.0}},
        {"Distance": 0.0},
        {"labels": [True, 2, 3]},
        {"distance_at_least_below_norm": 1.0},
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
    result = as_saved(found)
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
    assert {each.field for each in differences({**RESULT, "query": query}, both)} == {"certificates", "query"}


def others_with_better_bounds():
    """True certificates about other keys, about the same keys with other wanted weights, and with another tol."""
    one = {"items": [0.0], "wanted": [1.0]}
    tiny = {**one, "keys": [[1e-6], [0.0]], "tol": 1e-3}
    ratios = {**tiny, "multipliers": [0.0], "others": [1.0], "mix": [1.0]}
    anything = {**tiny, "multipliers": [1.0], "others": [0.0, 1.0], "mix": [1.0, 1.0]}
    return {
        "another memory": [
            Certificate.issue("weights", {**one, "keys": [[1.0]], "values": [[1.0]], "query": [0.0]}),
            Certificate.issue("no query", ratios),
            Certificate.issue("no query within tol", anything),
        ],
        "other weights": qkv.design.blend(KEYS, {0: 0.9, 1: 0.1}).certificates,
        "another tol": qkv.design.blend(KEYS, {0: 0.5, 1: 0.5}, tol=1e-6).certificates,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["another memory", "other weights", "another tol"])
def test_a_certificate_about_something_else_covers_no_bound(name, tmp_path):
    others, path = others_with_better_bounds()[name], tmp_path / "c.json"
    better = {
        "distance": others[0].claims["distance"], "output_distance": others[0].claims["output"],
        **{name: max((each.claims.get("norm_at_least", 0.0) for each in others), default=0.0) for name in NORMS},
    }  # fmt: skip
    for field, value in better.items():
        if value != RESULT[field]:
            save([*FOUND.certificates, *others], path, {**RESULT, field: value})
            assert not all(verify_file(path)), field
    save([*FOUND.certificates, *others], path)  # without a result, each certificate stands for itself
    assert all(verify_file(path))


def test_a_distance_of_just_tol_is_within_it():
    reading = Certificate.issue("weights", {n: a for n, a in FOUND.certificate.data.items() if n not in EVIDENCE})
    distance = float(reading.claims["distance"])
    for tol, possible in ((distance, True), (np.nextafter(distance, 0), False), (np.nextafter(distance, 1), True)):
        for said in (True, False):
            wrong = [each.field for each in differences({"tol": float(tol), "possible": said}, [reading])]
            assert wrong == ([] if said is possible else ["possible"])


def test_how_near_every_query_is_holds_below_the_norm_of_its_certificate():
    keys = [[3.0, 0.0], [0.0, 3.0], [0.0, 0.0]]
    data = {"keys": keys, "items": [0.0], "wanted": [1.0]}
    reading = Certificate.issue("weights", {**data, "values": keys, "query": [0.0, 0.0]})
    evidence = {"tol": 0.3, "multipliers": [1.0], "others": [1.0, 2.0], "mix": [1.0, 1.0]}
    bound = Certificate.issue("no query within tol", {**data, **evidence})
    norm = bound.claims["norm_at_least"]
    assert 0 < norm < 1 and qkv.design.copy(keys, 0).distance <= 1e-3
    result = {"tol": 1e-3, "possible": False, "distance_at_least": 0.3}
    for below, wrong in ((None, True), (2 * norm, True), ("x", True), (norm, False)):
        named = {
            each.field for each in differences({**result, "distance_at_least_below_norm": below}, [reading, bound])
        }
        assert ("distance_at_least" in named) is wrong
    assert [each.field for each in differences(result, [reading, bound])] == ["distance_at_least"]
    (first, *_, last) = qkv.design.copy([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], 2).certificates  # no query at all
    assert last.claims["norm_at_least"] == np.inf
    assert not list(differences({"distance_at_least": last.data["tol"]}, [first, last]))


A, B = [[1.0], [0.0]], [[0.0], [1.0]]
SHARES_NOTHING = Certificate.issue("intersection", {"A": A, "B": B, "x": [1.0], "y": [0.0]}, "gap")
NO_MATRIX = {"A": A, "B": A, "M": np.zeros((2, 2)), "C": [[7.0, 9.0]]}
ROUGHLY = Certificate("projection", NO_MATRIX, {"keeps": 1e9, "removes": 1e9})
PLANES = {"A": np.eye(3)[:, :2], "B": np.eye(3)[:, 1:], "x": [1.0, 0.0], "y": [0.0, 0.0]}
ANOTHER_KEY = {"keys": KEYS, "item": 2, "indices": [0], "weights": [1]}
RATIOS = qkv.design.blend([[1.0], [0.0], [-1.0]], {0: 0.25, 1: 0.5, 2: 0.25})


@pytest.mark.parametrize(
    ("certificates", "result", "wrong"),
    [
        ([SHARES_NOTHING], {"possible": False, "shared": [1.0, 0.0]}, ["possible", "shared"]),
        (
            [Certificate.issue("selects", {"keys": np.eye(2), "item": 0, "query": [1.0, 0.0]})],
            {"possible": False}, ["possible"],
        ),
        ([ROUGHLY], {"possible": True, "coordinates": [[7.0, 9.0]]}, ["possible", "coordinates"]),
        (
            [Certificate("intersection", PLANES, {"exact": 0.0, "gap": 1.0})],
            {"possible": False, "shared": [1.0, 0.0, 0.0]}, ["shared"],  # they share another vector
        ),
        (RATIOS.certificates, {"norm_at_least": 1e300, "gap": 2.0}, ["norm_at_least", "gap"]),
        (RATIOS.certificates, {"norm_at_least": 1e300}, ["norm_at_least"]),
        (
            [c for c in RATIOS.certificates if c.kind == "no query"],
            {"possible": False, "tol": 1e-3}, ["possible", "tol"],
        ),
        ([FOUND.certificate, Certificate.issue("inside", ANOTHER_KEY, "margin_at_most")], {"labels": None}, ["item"]),
        ([FOUND.certificate], {"tol": -1.0}, ["tol"]),
        ([FOUND.certificate], {"tol": 1e308}, ["tol"]),
    ],
    ids=[
        "no shared vector", "a witness", "a matrix that does nothing", "another vector", "claims", "a claim",
        "ratios alone", "another item", "tol below 0", "tol above 1",
    ],
)  # fmt: skip
def test_what_certificates_do_not_show_is_named(certificates, result, wrong):
    assert all(certificate.verify() for certificate in certificates)
    assert [each.field for each in differences(result, certificates)] == wrong


@pytest.mark.parametrize(
    "change",
    [{"distance": 1e-9}, {"distance": 100.0}, {"possible": True}, {"multiple": 100.0, "possible": True}, {"tol": -1.0}],
)
def test_how_near_a_multiple_comes_is_computed_again(change):
    found = qkv.design.reach(np.eye(4) * 4, token=0, along=np.eye(4)[1], target=[0.0, 0.0, 8.0, 0.0])
    result = as_saved(found)
    weaker = Certificate("unreachable", found.certificate.data, {"distance": 1e-9})
    assert found.status == "out of reach" and weaker.verify()
    assert not list(differences(result, [found.certificate]))
    said = {**result, "at_least": 1e-9, **change}
    assert set(change) - {"multiple"} <= {each.field for each in differences(said, [weaker])}
    for text in ("1e9", True, [1e9]):  # a distance is a number
        assert "distance" in {each.field for each in differences({**result, "distance": text}, [found.certificate])}
    reached = qkv.design.reach([[0.0, 3.0], [3.0, 0.0]], token=0, along=[1.0, 0.0], target=[3.0, 3.0])
    if reached.certificate is not None:
        assert not list(differences(as_saved(reached), reached.certificates))


FALSE = json.loads(Path(__file__).with_name("false_results.json").read_text("utf-8"))


@pytest.mark.parametrize("name", FALSE)
def test_results_that_only_rounding_makes_true_are_refused(name, tmp_path):
    """An attacker's files: each certificate is true, and the result beside it is false."""
    path = tmp_path / "false.json"
    path.write_text(json.dumps(FALSE[name]))
    *certificates, last = verify_file(path)
    assert certificates and all(certificates) and not last and last.why.startswith("result.")


def test_a_projection_of_vectors_of_very_unlike_lengths_is_shown_vector_by_vector(tmp_path):
    random = np.random.default_rng(615)
    a = random.standard_normal((5, 2)) * [1e10, 1e2]
    b = np.hstack([a[:, :1] / 1e10 + 1e-6 * random.standard_normal((5, 1)), random.standard_normal((5, 1))])
    found, path = qkv.design.project(a, b), tmp_path / "c.json"
    assert found.possible
    save(found.certificates, path, found.to_json())
    assert all(verify_file(path))


def test_a_key_whose_margin_is_only_bounded_is_undecided():
    data = {"keys": np.eye(2), "possible": [0, 0], "queries": [], "offsets": [0, 1, 2], "indices": [1, 0],
            "weights": [1, 1]}  # fmt: skip
    weak = Certificate("copyable", data, {"margin": [], "margin_at_most": [1.5, 1.5]})
    assert weak.verify()
    row = {"query": None, "margin": None, "margin_at_most": 1.5}
    answers = [{"item": i, "possible": None, **row, "combination": {str(1 - i): 1.0}} for i in (0, 1)]
    undecided = {"keys": 2, "possible": 0, "impossible": 0, "undecided": 2, "answers": answers}
    assert not list(differences(undecided, [weak]))
    for change in ({"impossible": 2}, {"undecided": 0}, {"possible": 2}):
        assert [each.field for each in differences({**undecided, **change}, [weak])] == list(change)
    decided = [{**answer, "possible": False} for answer in answers]
    assert [each.field for each in differences({**undecided, "answers": decided}, [weak])] == ["answers"]


@pytest.mark.parametrize("common", [0.1, 3.3, 1e300])
@pytest.mark.parametrize("spread", [1e-12, 1e-27, 1e-300])
def test_what_keys_have_in_common_does_not_make_a_margin_negligible(common, spread, tmp_path):
    """Keys on a circle with one large common coordinate: each can be selected, with a margin of 0.05 radii."""
    angles = 2 * np.pi * np.arange(20) / 20
    keys = np.stack([np.full(20, common), spread * np.cos(angles), spread * np.sin(angles)], axis=1)
    assert negligible_margin(keys) <= 1.01e-9 * spread
    found = qkv.design.copyable(keys)
    assert found.to_json()["impossible"] == 0
    save(found.certificates, tmp_path / "c.json", found.to_json())
    assert all(verify_file(tmp_path / "c.json"))


def test_keys_of_sizes_that_no_float_has_in_common_are_undecided(tmp_path):
    found = qkv.design.copyable([[-2e25], [0.0], [-3e-288]])
    told = found.to_json()
    assert (told["possible"], told["impossible"], told["undecided"]) == (1, 1, 1)
    assert "is undecided" in str(found[1]) and "1: no query was found" in str(found)
    save(found.certificates, tmp_path / "c.json", told)
    assert all(verify_file(tmp_path / "c.json"))


def test_sizes_at_the_ends_of_the_range_of_floats(tmp_path):
    found = qkv.design.project([[1.7e308], [1.7e308]], [[1.7e308], [-1.7e308]])
    assert np.allclose(found.matrix.numpy(), 0.5)
    reached = qkv.design.reach([[2.0, 0, 0]], 0, [1.0, 0, 0], [2, 5.023288317316e-312, 4.941406784847e-312])
    assert reached.status == "reached"
    for each in (found, reached):
        if each.certificates:
            save(each.certificates, tmp_path / "c.json", each.to_json())
            assert all(verify_file(tmp_path / "c.json"))
    assert qkv.design.project([[1.0], [0.0]], [[1e-309], [1e-309]]).possible
    with pytest.raises(qkv.QkvError, match="or so short"):
        qkv.design.project([[1e-309], [0.0]], [[0.0], [1.0]])


def test_large_fields_are_left_out_of_the_header_of_safetensors(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_FIELD", 200)
    found = qkv.design.copyable(np.eye(9))
    save(found.certificates, tmp_path / "c.safetensors", found.to_json())
    _, result = files.read(tmp_path / "c.safetensors")
    assert set(result) == {"keys", "possible", "impossible", "undecided"} and all(
        verify_file(tmp_path / "c.safetensors")
    )


def test_a_wiring_in_the_form_that_people_write_may_have_a_result(tmp_path):
    x = [[0, 4, 0, 4], [4, 0, 0, 0], [0, 4, 4, 0]]
    q, v = np.zeros((4, 4)), np.diag([0.0, 1.0, -1.0, 0.0])
    q[2, 3] = q[3, 0] = 1.0
    rules = {"reads": {"0": 2, "1": 0}, "writes": {"0": [0, 4, -4, 0], "1": [0, 4, 0, 0]}}
    data = {"X": x, "Q": q, "K": np.eye(4), "V": v, **rules}
    stated = Certificate("wiring", data, {"distance": 1e-3, "output": 1e-2})
    assert stated.verify()
    for result in ({"possible": True, "tol": 0.01, "head_size": 4, "labels": ["a", "b", "c"]}, {"Q": q.tolist()}):
        save([stated], tmp_path / "c.json", result)
        assert all(verify_file(tmp_path / "c.json"))
    save([stated], tmp_path / "c.json", {"possible": True, "tol": 1e-4})
    assert not all(verify_file(tmp_path / "c.json"))


@pytest.mark.parametrize(("weight", "refused"), [(0.5, False), (0.75, True), (0.49, True)])
def test_the_weights_of_a_combination_sum_to_1(weight, refused):
    """A certificate takes weights in any unit; a result shows them as those of an average."""
    keys = [[-1.0], [1.0], [0.0]]
    witnesses = {"queries": [[-1.0], [1.0]], "offsets": [0, 2], "indices": [0, 1], "weights": [weight, weight]}
    claims = {"margin": [0.99, 0.99], "margin_at_most": [1e-12]}
    stated = Certificate("copyable", {"keys": keys, "possible": [1, 1, 0], **witnesses}, claims)
    none = {"query": None, "margin": None, "combination": None, "margin_at_most": None}
    answers = [
        {**none, "item": 0, "possible": True, "query": [-1.0], "margin": 0.99},
        {**none, "item": 1, "possible": True, "query": [1.0], "margin": 0.99},
        {**none, "item": 2, "possible": False, "combination": {"0": weight, "1": weight}, "margin_at_most": 1e-12},
    ]
    assert stated.verify() and bool(list(differences({"answers": answers}, [stated]))) is refused


def test_truth_values_are_no_items():
    found = qkv.design.copyable(np.eye(2))
    result = as_saved(found)
    for item in (False, 0.0, "0"):
        answers = [{**result["answers"][0], "item": item}, result["answers"][1]]
        changed = {**result, "labels": [0, 1], "answers": answers}
        assert [each.field for each in differences(changed, found.certificates)] == ["answers"]
    assert [each.field for each in differences({"labels": [1, "1"]}, found.certificates)] == ["labels"]


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_labels_may_be_integers_that_float64_would_round(suffix, tmp_path):
    memory = qkv.Memory(KEYS, labels=[2**53 + 1, 2**63 + 1, 5])
    for found in (qkv.design.copy(memory, 5), qkv.design.copyable(memory)):
        save(found.certificates, tmp_path / f"c{suffix}", {"labels": list(memory.labels), **found.to_json()})
        assert all(verify_file(tmp_path / f"c{suffix}"))
    assert [each.field for each in differences({"keys": 2**53 + 1}, found.certificates)] == ["keys"]


def nearly_dependent():
    """Pairs of bases with columns that differ by as little as 1e-9 of their length, in one basis or across both."""
    draw = np.random.default_rng(7)
    for i in range(60):
        d = int(draw.integers(4, 8))
        whole = i % 2 == 0
        a, b = (draw.integers(-3, 4, (d, 2)) + 0.0 if whole else draw.standard_normal((d, 2)) for _ in range(2))
        small = 10.0 ** draw.uniform(-9, -3)
        if i % 3 == 0:
            a[:, 1] = (a[:, 0] + small * a[:, 1]) * 10.0 ** draw.uniform(-8, 8)
        elif i % 3 == 1:
            b[:, 1] = b[:, 0] + small * b[:, 1]
        else:
            b[:, 0] = (a[:, 0] + small * b[:, 0]) * 10.0 ** draw.uniform(-8, 8)
        if i % 8 == 0:
            b[:, 1] = a[:, 0]
        yield a, b


def test_projections_of_nearly_dependent_bases_are_right_and_accepted(tmp_path):
    seen = Counter()
    for a, b in nearly_dependent():
        try:
            found = qkv.design.project(a, b)
        except qkv.QkvError as why:
            assert "dimension" in str(why) or "dependent" in str(why)
            seen["refused"] += 1
            continue
        save(found.certificates, tmp_path / "c.json", found.to_json())
        assert all(verify_file(tmp_path / "c.json")), [each.why for each in verify_file(tmp_path / "c.json")]
        both = sympy.Matrix(np.hstack([a, b]).tolist()).applyfunc(sympy.Rational)
        rank = both.rank()
        assert found.possible or rank < both.shape[1] or found.certificate.claims["gap"] <= 1.01e-9
        seen[found.possible] += 1
    assert seen[True] > 20 and seen[False] > 3 and seen["refused"] < 20, seen


def test_a_projection_of_nearly_dependent_bases_is_that_of_fractions():
    a, b = np.array([[1.0], [2.0], [-1.0]]), np.array([[3.0, 3.0], [1.0, 1.0 + 2.0**-26], [-2.0, -2.0 + 2.0**-27]])
    exact_a, both = (sympy.Matrix(m.tolist()).applyfunc(sympy.Rational) for m in (a, np.hstack([a, b])))
    wanted = exact_a * (both.inv()[:1, :])
    found = qkv.design.project(a, b)
    assert np.allclose(found.matrix.numpy(), np.array(wanted.tolist(), dtype=float), rtol=1e-12)
    shared = qkv.design.project([[0.0, -1e-7], [-2.0, -1.9999998]], [[3.0], [-2.0]])  # A spans the plane
    assert not shared.possible and "exact" in shared.certificate.claims
    assert abs(float(shared.shared @ torch.tensor([2.0, 3.0], dtype=torch.float64))) < 1e-6


def test_how_near_a_multiple_comes_is_told_with_scores_that_float64_cannot_hold(tmp_path):
    draw, refused = np.random.default_rng(3), 0
    for _ in range(12):
        x = np.hstack([draw.standard_normal((3, 2)) * 10.0 ** draw.uniform(5, 12), np.zeros((3, 1))])
        target = [*x.mean(0)[:2], float(np.abs(x).max())]
        found = qkv.design.reach(x, 0, [*draw.standard_normal(2), 0.0], target)
        save(found.certificates, tmp_path / "c.json", found.to_json())
        refused += not all(verify_file(tmp_path / "c.json"))
    assert not refused


def test_the_sink_of_given_texts_has_its_number_in_the_vocabulary(tmp_path):
    words = qkv.design.Vocabulary.side_by_side(np.eye(5), length=4)
    texts = qkv.design.Sequences(words, [[3, 1, 4, 1], [3, 4, 4]])  # the certificate numbers 1, 3 and 4
    found = qkv.design.wire_texts(texts, qkv.design.duplicate(sink=3))
    assert found.possible and found.certificate.data["sink"] == 1
    save(found.certificates, tmp_path / "c.json", found.to_json())
    assert all(verify_file(tmp_path / "c.json"))
    result = as_saved(found)
    for sink in (0, None, 1.5, True, "3"):
        changed = {**result, "rule": {"name": "duplicate", "sink": sink}}
        assert [each.field for each in differences(changed, found.certificates)] == ["rule"]


def honest_designs():
    """Small random problems of every verb, with whole numbers, so that many cannot be solved."""
    draw = np.random.default_rng(0)
    for i in range(40):
        x = draw.integers(-2, 3, (4, 2)) + (1e-11 * draw.normal(size=(4, 2)) if i % 2 else 0.0)
        blend = {0: 0.5, int(draw.integers(1, 4)): 0.5}
        reads = {row: blend if i % 3 == 0 else int(draw.integers(4)) for row in range(1 + i % 3)}
        mask = "causal" if i % 4 == 3 else None
        words = qkv.design.Vocabulary.side_by_side(x + 7.0, length=5)
        texts = qkv.design.Sequences(words, [draw.integers(0, 4, 5).tolist() for _ in range(2)])
        rule = (qkv.design.previous, qkv.design.duplicate, qkv.design.induction)[i % 3]
        yield from (
            partial(qkv.design.copy, x, i % 4),
            partial(qkv.design.blend, x, blend),
            partial(qkv.design.wire, x, reads, dict.fromkeys(reads, x[0]), mask=mask),
            partial(qkv.design.copyable, x),
            partial(qkv.design.project, x[:, :1], x[:, i % 2 :][:, :1]),
            partial(qkv.design.project, 10.0 ** (i % 9) * x[:, :1], 10.0 ** -(i % 7) * x[:, 1:]),
            partial(qkv.design.blend, 1 + 1e-13 * x, blend, 1e-2),
            partial(qkv.design.reach, x, 0, x[1] - x[2], x[3]),
            partial(qkv.design.wire_texts, words if i % 2 else texts, rule()),
        )


def test_the_result_of_every_design_is_that_of_its_certificates(tmp_path):
    seen, impossible = Counter(), Counter()
    for design in honest_designs():
        try:
            found = design()
        except qkv.QkvError:
            continue
        if found.certificates:
            path = tmp_path / "c.json"
            save(found.certificates, path, json.loads(json.dumps(found.to_json())))
            assert all(verify_file(path)), (found, [each.why for each in verify_file(path)])
            seen[type(found).__name__] += 1
            impossible[type(found).__name__] += not np.asarray(found.possible).all()
    assert min(seen.values()) > 8 and len(seen) == 6, seen
    assert min(impossible[name] for name in ("Design", "Wiring", "Projection", "Reachability")) > 3, impossible


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
