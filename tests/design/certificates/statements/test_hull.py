"""Statements about hulls: "selects", "inside" and "copyable", against exact fractions."""

import math
from fractions import Fraction

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qkv
from qkv.design.certificates import Certificate
from qkv.design.certificates.statements import hull
from qkv.design.certificates.statements.base import InvalidCertificate


def changed(certificate, data=None, claims=None):
    """The same certificate with some data or claims replaced."""
    return Certificate(certificate.kind, {**certificate.data, **(data or {})}, {**certificate.claims, **(claims or {})})


def test_a_combination_of_thousands_of_keys_is_not_solved_in_fractions():
    keys = np.random.default_rng(0).normal(size=(3000, 8))
    data = {"keys": keys, "item": 0, "indices": np.arange(1, 3000), "weights": np.ones(2999)}
    assert not Certificate("inside", data, {"margin_at_most": 100.0, "exact": 0.0}).verify()


def test_indices_of_a_combination_are_not_cut_to_whole_numbers(counted):
    for name in ("indices", "offsets", "possible"):
        shifted = np.array(counted.data[name], dtype=float)
        shifted[-1] += 1e-7
        assert not changed(counted, data={name: shifted}).verify()


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 3))
def test_a_claimed_margin_is_accepted_if_and_only_if_fractions_confirm_it(seed, n, d):
    rng = np.random.default_rng(seed)
    keys, query = rng.integers(-4, 5, (n, d)).astype(float), rng.integers(-4, 5, d).astype(float)
    if not query.any():
        return
    gap = min(Fraction(float((keys[0] - k) @ query)) for k in keys[1:])
    for claim in (1e-9, 0.25, 0.5, 1.0, 2.0):
        true = gap > 0 and Fraction(claim) ** 2 * Fraction(float(query @ query)) <= gap**2
        data = {"keys": keys, "item": 0, "query": query}
        assert bool(Certificate("selects", data, {"margin": claim}).verify()) == true
        assert (
            oracle.truth("selects", {"keys": keys.tolist(), "item": 0, "query": query.tolist()}, {"margin": claim})
            == true
        )


def test_an_exact_combination_is_told_from_one_that_is_off_by_an_ulp():
    keys = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 0.0], [1.0, np.nextafter(0.0, 1.0)]])
    data = {"keys": keys, "indices": [0, 1], "weights": [0.75, 0.25]}
    claims = {"margin_at_most": 1e-300, "exact": 0.0}
    assert Certificate("inside", {**data, "item": 2}, claims).verify()
    assert not Certificate("inside", {**data, "item": 3}, claims).verify()
    assert Certificate("inside", {**data, "item": 3}, {"margin_at_most": 1e-300}).verify()


def test_one_false_answer_among_many_is_refused():
    result = qkv.design.copyable(np.random.default_rng(3).normal(size=(40, 3)))
    made = result.certificate
    assert made.verify()
    margins = np.array(made.claims["margin"])
    margins[-1] *= 1.5
    assert not changed(made, claims={"margin": margins}).verify()
    flipped = np.array(made.data["possible"], dtype=float)
    flipped[int(result.vertices[0])] = 0.0
    assert not changed(made, data={"possible": flipped}).verify()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"indices": [0, 0]}, "twice"),
        ({"indices": [0, 2]}, "uses the key itself"),
        ({"weights": [-1.0, 2.0]}, "not negative"),
        ({"weights": [0.0, 0.0]}, "not all zero"),
        ({"weights": [1.0]}, "do not fit"),
        ({"item": 7}, "from 0 to 2"),
    ],
)
def test_combinations_that_state_nothing_are_refused(change, why):
    data = {"keys": [[0.0], [2.0], [1.0]], "item": 2, "indices": [0, 1], "weights": [0.5, 0.5]}
    assert Certificate("inside", data, {"margin_at_most": 0.0, "exact": 0.0}).verify()
    found = Certificate("inside", {**data, **change}, {"margin_at_most": 1.0}).verify()
    assert not found and why in found.why


# Each function by itself

SQUARE = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 4.0], [1.0, 1.0], [2.0, 2.0]])
COPYABLE = {
    "keys": SQUARE, "possible": [1, 1, 1, 1, 0, 0], "queries": [[-1.0, -1.0], [3.0, -4.0], [-1.0, 1.0], [1.0, 1.0]],
    "offsets": [0, 3, 5], "indices": [0, 1, 2, 1, 2], "weights": [2.0, 1.0, 1.0, 0.5, 0.5],
}  # fmt: skip
MARGINS = [1 * 2**0.5, 12 / 5, 2 * 2**0.5, 4 / 2**0.5]


def copyable(**changes):
    return {name: np.array(value) for name, value in {**COPYABLE, **changes}.items()}


def measured(margin, residual, in_float64=True, **changes):
    claims = {"margin": margin, "margin_at_most": residual}
    return hull._measure_copyable(hull._parse_copyable(copyable(**changes)), in_float64, claims)


def test_every_key_has_its_margin_or_residual():
    """Key 4 is (2 k_0 + k_1 + k_2)/4 and key 5 the middle of keys 1 and 2: both exactly."""
    low = [m * (1 - 1e-9) for m in MARGINS]
    for in_float64 in (True, False):
        found = measured(low, [1e-9, 1e-9], in_float64)
        assert all(ball >= claim for ball, claim in zip(found["margin"], low, strict=True))
        assert [float(b) for b in found["margin"]] == pytest.approx(MARGINS, rel=1e-9)
        assert all(ball <= 1e-9 for ball in found["margin_at_most"])
    exact = measured([m * (1 + 1e-15) for m in MARGINS], [0.0, 0.0])
    assert float(exact["margin"][1].mid()) == pytest.approx(2.4, rel=1e-15)
    assert all(b == 0 for b in exact["margin_at_most"])
    off = measured(low, [0.0, 0.0], weights=[2.0, 1.0, 1.0, 0.75, 0.25])
    assert float(off["margin_at_most"][1].mid()) == pytest.approx(2**0.5, rel=1e-14) and off["margin_at_most"][0] == 0
    refuted = measured([9.0] * 4, [1.0, 1.0])
    assert [float(b.mid()) for b in refuted["margin"]] == pytest.approx(MARGINS, rel=1e-14)


def test_only_so_many_open_claims_are_decided_in_the_first_pass(monkeypatch):
    assert hull.MAX_BALLS_FIRST == 16
    monkeypatch.setattr(hull, "MAX_BALLS_FIRST", 1)
    weights = [1.0, 1.0, 1.0, 0.75, 0.25]
    first, second = (measured([9.0] * 4, [0.0, 0.0], how, weights=weights) for how in (True, False))
    assert [b.is_nan() for b in first["margin"]] == [False, True, True, True]
    assert [b.is_nan() for b in first["margin_at_most"]] == [False, True]
    assert not any(b.is_nan() for b in second["margin"] + second["margin_at_most"])


@pytest.mark.parametrize(("margin", "residual"), [([1.0] * 3, [1.0, 1.0]), ([1.0] * 4, [1.0])])
def test_each_key_has_one_bound(margin, residual):
    with pytest.raises(InvalidCertificate, match="bounds for"):
        measured(margin, residual)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"possible": [1, 1, 1, 1, 0]}, "keys and answers do not fit"),
        ({"possible": [1, 1, 1, 1, 0, 0.5]}, "neither possible"),
        ({"possible": [1, 1, 1, 1, 0, 2]}, "neither possible"),
        ({"queries": COPYABLE["queries"][:3]}, "possible keys and queries do not fit"),
        ({"queries": np.ones((4, 3))}, "the keys and the queries do not fit"),
        ({"queries": [[-1.0, -1.0], [0.0, 0.0], [-1.0, 1.0], [1.0, 1.0]]}, "zero, NaN or infinite"),
        ({"queries": [[-1.0, -1.0], [np.inf, 0.0], [-1.0, 1.0], [1.0, 1.0]]}, "zero, NaN or infinite"),
        ({"indices": [0, 1, 2, 1, 6]}, "indices must be whole numbers from 0 to 5"),
        ({"offsets": [0, 3, 6]}, "offsets must be whole numbers from 0 to 5"),
        ({"offsets": [0, 5]}, "impossible keys and combinations do not fit"),
        ({"offsets": [0, 3, 4]}, "indices, weights and offsets do not fit"),
        ({"weights": [2.0, 1.0, 1.0, 0.5]}, "indices, weights and offsets do not fit"),
        ({"offsets": [1, 3, 5]}, "a combination is empty"),
        ({"offsets": [0, 0, 5]}, "a combination is empty"),
        ({"weights": [2.0, 1.0, -1e-300, 0.5, 0.5]}, "negative or no number"),
        ({"weights": [2.0, 1.0, np.inf, 0.5, 0.5]}, "negative or no number"),
        ({"weights": [2.0, 1.0, 1.0, 0.0, 0.0]}, "all zero"),
        ({"weights": [0.0, 0.0, 0.0, 0.5, 0.5]}, "all zero"),
        ({"indices": [0, 1, 4, 1, 2]}, "uses the key itself"),
        ({"indices": [0, 1, 2, 1, 5]}, "uses the key itself"),
    ],
)
def test_each_defect_of_the_answers_is_refused_by_itself(changes, why):
    with pytest.raises(InvalidCertificate, match=why):
        hull._parse_copyable(copyable(**changes))


def test_answers_of_one_kind_need_nothing_of_the_other():
    all_yes = {"keys": SQUARE[:4], "possible": np.ones(4), "queries": np.array(COPYABLE["queries"])}
    empty = {"offsets": np.array([0]), "indices": np.array([]), "weights": np.array([])}
    parsed = hull._parse_copyable(all_yes | empty)
    assert parsed["yes"].tolist() == [0, 1, 2, 3] and parsed["no"].tolist() == []
    none = copyable(possible=[0, 0], keys=[[1.0, 1.0], [1.0, 1.0]], queries=[], offsets=[0, 1, 2], indices=[1, 0],
                    weights=[1.0, 1.0])  # fmt: skip
    assert hull._parse_copyable(none)["queries"].shape == (0, 2)
    assert hull._parse_copyable(copyable(weights=[2.0, 0.0, 1.0, 0.5, 0.0]))["weights"][1] == 0


def test_a_query_selects_by_its_margin_at_unit_norm():
    p = hull._parse_selects({"keys": SQUARE, "item": 1, "query": [3.0, -4.0]})
    assert float(hull._measure_selects(p, False, {})["margin"].mid()) == pytest.approx(2.4, rel=1e-15)
    alone = hull._parse_selects({"keys": [[1.0, 0.0]], "item": 0, "query": [3.0, -4.0]})
    assert hull._measure_selects(alone, False, {})["margin"] == math.inf
    for changes, why in (({"query": [0.0, 0.0]}, "the query is zero"), ({"query": [1.0]}, "do not fit")):
        with pytest.raises(InvalidCertificate, match=why):
            hull._parse_selects({"keys": SQUARE, "item": 1, "query": [3.0, -4.0], **changes})


def test_a_residual_is_the_distance_from_the_combination():
    data = {"keys": SQUARE, "item": 4, "indices": [0, 3], "weights": [1.0, 3.0]}
    parsed = hull._parse_inside(data)
    assert float(hull._measure_inside(parsed, False, {})["margin_at_most"].mid()) == pytest.approx(8**0.5, rel=1e-14)
    assert set(hull._measure_inside(parsed, False, {})) == {"margin_at_most"}
    assert hull._measure_inside(parsed, False, {"exact": [0.0]})["exact"] == 0  # on the segment
    outside = hull._parse_inside(data | {"indices": [3, 5]})
    assert hull._measure_inside(outside, False, {"exact": [0.0]})["exact"] == 1
    assert hull._parse_inside(data | {"weights": [0.0, 3.0]})["weights"].tolist() == [0.0, 3.0]


def test_statements_about_hulls_in_words():
    assert hull._describe_selects({"item": 2}, {"margin": 0.1234567}, lambda i: f"k{i}") == (
        "this query, at unit norm, scores key k2 above every other by at least 0.123456"
    )
    inside = {"item": 2, "indices": [0, 1, 3]}
    assert hull._describe_inside(inside, {"exact": 0.0}) == (
        "key 2 is exactly a convex combination of 3 independent other keys: no query selects it"
    )
    assert hull._describe_inside(inside, {"margin_at_most": 0.12345}) == (
        "key 2 is a convex combination of 3 other keys to within 0.124: no unit query scores it above all other keys "
        "by more"
    )
    claims = {"margin": [0.5, 0.12349], "margin_at_most": [0.001, 0.0123456]}
    assert hull._describe_copyable({"possible": [1, 0, 1, 0]}, claims) == (
        "of 4 keys, 2 can be selected by a unit query with a margin of at least 0.123, 2 cannot with a margin above "
        "0.0124, by these witnesses"
    )
    assert hull._describe_copyable({"possible": [1, 1]}, claims | {"margin_at_most": []}) == (
        "of 2 keys, 2 can be selected by a unit query with a margin of at least 0.123, by these witnesses"
    )
    assert hull._describe_copyable({"possible": [0, 0]}, claims | {"margin": []}) == (
        "of 2 keys, 0 can be selected by a unit query, 2 cannot with a margin above 0.0124, by these witnesses"
    )
    assert hull.COPYABLE.float64_first({}) is True
