"""Certified radii of top items, against exact fractions and against the worst change of keys."""

from fractions import Fraction

import mpmath
import numpy as np
import oracle
import pytest

from qkv.design.certificates import Certificate
from qkv.design.certificates.statements import top_item
from qkv.design.certificates.statements.base import InvalidCertificate
from qkv.design.certificates.statements.top_item import radius_lower_bounds
from qkv.errors import QkvError


def causal(keys, queries):
    """Data of a causal head without ties: query r reads keys 0 to r; the first query has no rival."""
    rows = [r for r in range(1, len(queries)) if queries[r].any()]
    items = [int(np.argmax(keys[: r + 1] @ queries[r])) for r in rows]
    return {"keys": keys, "queries": queries[rows], "items": items, "first": [0] * len(rows), "last": rows}


def true_square(keys, query, item, first, last):
    """The square of the true radius with its sign, in fractions."""
    q = [Fraction(float(x)) for x in query]
    scores = [sum(Fraction(float(a)) * b for a, b in zip(k, q, strict=True)) for k in keys[first : last + 1]]
    own = scores.pop(item - first)
    gap = own - max(scores)
    return (1 if gap > 0 else -1) * gap**2 / (4 * sum(x * x for x in q))


def root(square):
    """The radius from its square, as a float."""
    return float(mpmath.sqrt(abs(oracle.big(square))))


def spread(rng, how, n, d):
    keys, queries = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    if how == "integers":
        return rng.integers(-3, 4, (n, d)).astype(float), rng.integers(-3, 4, (n, d)).astype(float)
    if how == "huge":
        return keys * 1e200, queries * 1e-100
    if how == "tiny":
        return keys * 1e-300, queries * 1e-20
    if how == "subnormal":
        return keys * 1e-318, queries
    if how == "far from the origin":
        return keys * 1e-9 + 1e3, queries
    if how == "float32":
        return keys.astype(np.float32).astype(float), queries.astype(np.float32).astype(float) * 0.125
    if how == "mixed":
        return keys * 10.0 ** rng.uniform(-12, 12, (n, 1)), queries * 10.0 ** rng.uniform(-12, 12, (n, d))
    return keys, queries


HOW = ("plain", "integers", "huge", "tiny", "subnormal", "far from the origin", "float32", "mixed")


@pytest.mark.parametrize("how", HOW)
def test_float64_bounds_are_never_above_the_radius_and_near_it(how):
    tried = 0
    for seed in range(12):
        rng = np.random.default_rng([seed, len(how)])
        keys, queries = spread(rng, how, int(rng.integers(2, 12)), int(rng.integers(1, 6)))
        data = causal(keys, queries)
        if not data["items"]:
            continue
        places = [np.array(data[name]) for name in ("items", "first", "last")]
        low = radius_lower_bounds(keys, data["queries"], *places)
        for r, (query, item, last) in enumerate(zip(data["queries"], data["items"], data["last"], strict=True)):
            true = true_square(keys, query, item, 0, last)
            assert int(np.sign(low[r])) * Fraction(float(low[r])) ** 2 <= true, (how, seed, r)
            if how not in ("tiny", "subnormal", "mixed") and true > 0:
                assert low[r] >= root(true) * (1 - 1e-9) - 1e-12 * float(np.abs(keys).max())
            tried += 1
    assert tried > 20


@pytest.mark.parametrize("how", HOW)
def test_what_is_claimed_is_accepted_if_and_only_if_fractions_confirm_it(how):
    outcomes = []
    for seed in range(8):
        rng = np.random.default_rng([7, seed, len(how)])
        keys, queries = spread(rng, how, 6, 3)
        data = causal(keys, queries)
        if seed == 7:
            data["items"][-1] = (data["items"][-1] + 1) % 6  # which is not on top
        plain = {name: np.asarray(value).tolist() for name, value in data.items()}
        rows = zip(data["queries"], data["items"], data["first"], data["last"], strict=True)
        roots = [root(true_square(keys, *row)) for row in rows]
        for factor in (1 - 1e-9, 1 - 1e-15, 1.0, 1 + 1e-15, 1 + 1e-9):
            claims = {"radius": [max(r * factor, 5e-324) for r in roots]}
            found = bool(Certificate("top item", data, claims).verify())
            assert found is oracle.truth("top item", plain, claims)
            outcomes.append(found)
    assert how in ("integers", "subnormal") or 0 < sum(outcomes) < len(outcomes)


def test_the_worst_change_of_keys_is_half_the_margin_of_a_unit_query():
    keys, query = np.array([[3.0, 0], [1.0, 0], [0, 5.0]]), [2.0, 0]
    data = {"keys": keys, "queries": [query], "items": [0], "first": [0], "last": [2]}
    assert Certificate("top item", data, {"radius": 1.0}).verify()
    assert not Certificate("top item", data, {"radius": np.nextafter(1.0, 2)}).verify()
    assert Certificate("top item", {**data, "items": [2], "first": [2], "last": [2]}, {"radius": 1.0}).verify().why


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"items": [2]}, "not among the keys"),
        ({"first": [1], "last": [1], "items": [1]}, "reads one key only"),
        ({"queries": [[0.0, 0.0]]}, "a query is zero"),
        ({"last": [3]}, "from 0 to 2"),
        ({"items": [0, 1]}, "do not fit"),
        ({"queries": [[1.0, np.nan]]}, "NaN"),
        ({"mask": "causal"}, "not checked here"),
    ],
)
def test_what_states_nothing_is_refused(change, why):
    data = {"keys": [[3.0, 0], [1.0, 0], [0, 5.0]], "queries": [[2.0, 0]], "items": [0], "first": [0], "last": [1]}
    assert Certificate("top item", data, {"radius": 0.5}).verify()
    verification = Certificate("top item", {**data, **change}, {"radius": 0.5}).verify()
    assert not verification and why in verification.why


def test_a_tie_cannot_be_claimed():
    data = {"keys": [[1.0], [1.0]], "queries": [[1.0]], "items": [0], "first": [0], "last": [1]}
    for radius in (0.0, -1.0, 5e-324, [1e-9]):
        assert not Certificate("top item", data, {"radius": radius}).verify()
    with pytest.raises(QkvError, match="a query is zero"):
        Certificate.issue("top item", {**data, "queries": [[0.0]]})


def test_a_large_head_is_checked_and_one_false_radius_among_many_is_refused():
    rng = np.random.default_rng(0)
    keys, queries = rng.normal(size=(300, 64)), rng.normal(size=(300, 64))
    made = Certificate.issue("top item", causal(keys, queries))
    assert made.verify(), made.verify().why
    radii = np.array(made.claims["radius"])
    radii[170] *= 1 + 1e-9
    assert not Certificate("top item", made.data, {"radius": radii}).verify()
    assert "each of 299 queries" in made.statement and "at least half of them" in made.statement


HEAD = {
    "keys": [[3.0, 0], [1.0, 0], [0, 5.0], [-3.0, 1.0]], "queries": [[2.0, 0], [3.0, 4.0], [-1.0, 0.0]],
    "items": [0, 2, 3], "first": [0, 1, 2], "last": [1, 2, 3],
}  # fmt: skip
RADII = [1.0, (20 - 3) / 10, 1.5]


def test_radii_are_half_the_smallest_difference_of_scores_by_the_norm():
    p = top_item._parse({name: np.array(value) for name, value in HEAD.items()})
    for in_float64 in (True, False):
        found = top_item._measure(p, in_float64, {"radius": [r * (1 + 1e-15) for r in RADII]})["radius"]
        assert [float(b.mid()) for b in found] == pytest.approx(RADII, rel=1e-15)
        proved = top_item._measure(p, in_float64, {"radius": [r * (1 - 1e-9) for r in RADII]})["radius"]
        assert all(b >= r * (1 - 1e-9) for b, r in zip(proved, RADII, strict=True))
        one = top_item._measure(p, in_float64, {"radius": [1.2]})["radius"]
        assert float(one[0].mid()) == pytest.approx(1.0) and float(one[1]) == pytest.approx(1.7)
    issued = [float(b) for b in top_item._measure(p, True, {"radius": []})["radius"]]
    sharper = radius_lower_bounds(p["keys"], p["queries"], p["items"], p["first"], p["last"])
    assert (
        issued
        == radius_lower_bounds(*(p[k] for k in ("keys", "queries", "items", "first", "last")), slack=4.0).tolist()
    )
    assert all(a < b for a, b in zip(issued, sharper, strict=True)) and top_item.ISSUE_SLACK == 4
    for wrong in ([1.0, 1.0], [1.0] * 4):
        with pytest.raises(InvalidCertificate, match="radii for 3 queries"):
            top_item._measure(p, True, {"radius": wrong})


def test_only_so_many_open_radii_are_decided_in_the_first_pass(monkeypatch):
    assert top_item.MAX_BALLS_FIRST == 16
    monkeypatch.setattr(top_item, "MAX_BALLS_FIRST", 2)
    p = top_item._parse({name: np.array(value) for name, value in HEAD.items()})
    first, second = (top_item._measure(p, how, {"radius": [9.0] * 3})["radius"] for how in (True, False))
    assert [b.is_nan() for b in first] == [False, False, True] and not any(b.is_nan() for b in second)


def test_a_subnormal_half_is_rounded_down():
    keys = np.array([[3 * 5e-324], [0.0]])
    places = [np.array([0]), np.array([0]), np.array([1])]
    low = radius_lower_bounds(keys, np.array([[1.0]]), *places)
    assert low[0] <= 1.5 * 5e-324 and low[0] < 2 * 5e-324


def test_a_query_may_read_any_range_that_holds_its_item():
    good = {"items": [1], "first": [0], "last": [3], "queries": [[1.0, 0.0]]}
    for first, item, last in ((0, 0, 1), (2, 3, 3), (1, 2, 3)):
        parsed = top_item._parse({**HEAD, **good, "items": [item], "first": [first], "last": [last]})
        assert parsed["items"].tolist() == [item]
    for first, item, last in ((1, 0, 3), (0, 3, 2)):
        with pytest.raises(InvalidCertificate, match="not among the keys"):
            top_item._parse({**HEAD, **good, "items": [item], "first": [first], "last": [last]})
    with pytest.raises(InvalidCertificate, match="do not fit"):
        top_item._parse({**HEAD, "queries": np.ones((3, 3))})


@pytest.mark.parametrize(
    ("radii", "least", "half"),
    [([0.9, 0.1], "0.1", "0.9"), ([0.9, 0.5, 0.1], "0.1", "0.5"), ([0.9, 0.5, 0.12349, 0.7], "0.123", "0.7")],
)
def test_the_statement_says_what_holds_for_all_and_for_half_of_the_queries(radii, least, half):
    said = top_item._describe({"items": list(range(len(radii)))}, {"radius": radii})
    assert said == (
        f"each of {len(radii)} queries scores its item's key highest of the keys that it reads, and still does if "
        f"every key moves by less than {least}; at least half of them do if every key moves by less than {half}"
    )


def test_the_statement_of_one_query_names_its_key():
    assert top_item._describe({"items": 4}, {"radius": 0.12349}, lambda i: f"k{i}") == (
        "the query scores key k4 highest of the keys that it reads, and still does if every key moves by less than "
        "0.123"
    )
    said = top_item._describe({"items": [4, 5, 6]}, {"radius": [0.12349]})
    assert said.endswith("less than 0.123; at least half of them do if every key moves by less than 0.123")
    assert top_item.TOP_ITEM.float64_first({}) is True
