"""Lookup: replies agree with NumPy and with the library, and so does their Python code."""

import numpy as np
import pytest

from qkv import Memory
from qkv.design import blend, copy
from qkv.web.routes.lookup import leak_limit

MIDDLE = {
    "keys": [[1, 0], [0, 1], [-1, -1], [0.1, 0]],
    "values": [[1], [2], [3], [4]],
    "labels": ["a", "b", "c", "middle"],
}


def close(a, b):
    return np.allclose(np.asarray(a, dtype=float), np.asarray(b, dtype=float), rtol=1e-12, atol=1e-14)


def test_weights_are_the_softmax_and_the_python_code_gives_the_same(post, state, run_code):
    body = state("lookup")
    found = post("/api/lookup", body)
    scores = body["scale"] * np.array(body["keys"]) @ np.array(body["query"])
    alpha = np.exp(scores) / np.exp(scores).sum()
    assert close(found["scores"], scores) and close(found["weights"], alpha)
    assert close(found["output"], alpha @ np.array(body["values"]))
    assert close(found["leak"], alpha[2:].sum())
    names = run_code(found["python"])
    assert close(names["reading"].weights, found["weights"]) and close(names["reading"].output, found["output"])
    assert close(names["leaks"].scales, found["curve"]["scales"]) and close(
        names["leaks"].leaks, found["curve"]["leaks"]
    )
    assert names["leaks"].scale == found["certified_scale"]
    assert names["leaks"].certificate.verify()


def test_the_leak_is_within_tol_at_the_certified_scale_and_not_just_below(post, state):
    body = state("lookup")
    found = post("/api/lookup", body)
    after = post("/api/lookup", {**body, "scale": found["certified_scale"]})
    before = post("/api/lookup", {**body, "scale": 0.999 * found["certified_scale"]})
    assert after["leak"] <= found["tol"] < before["leak"]
    assert post("/api/lookup", {**body, "query": [-0.8, -0.6]})["certified_scale"] is None


def test_without_wanted_items_the_leak_is_outside_the_heaviest(post, state):
    body = {k: v for k, v in state("lookup").items() if k != "wanted"}
    found = post("/api/lookup", body)
    assert found["wanted"] == ["a"] and close(found["leak"], 1 - found["weights"][0])


@pytest.mark.parametrize("leak", [1e-3, 1e-6])
def test_copy_and_blend_are_those_of_the_library(post, leak, run_code):
    memory = Memory(MIDDLE["keys"], MIDDLE["values"], MIDDLE["labels"])
    copied = post("/api/design/copy", {**MIDDLE, "item": "a", "leak": leak})
    blended = post("/api/design/blend", {**MIDDLE, "weights": {"a": 0.5, "b": 0.5}, "leak": leak})
    for found, design in ((copied, copy(memory, "a", leak)), (blended, blend(memory, {"a": 0.5, "b": 0.5}, leak))):
        assert found["possible"] and found["obstacle"] is None
        assert close(found["query"], design.query) and found["scale"] == design.scale
        assert found["leak"] * (1 - 1e-12) <= found["bound"] <= leak * (1 + 1e-9)
        names = run_code(found["python"])
        assert close(names["design"].query, found["query"]) and close(names["reading"].weights, found["weights"])


def test_a_key_inside_the_hull_has_its_convex_combination_as_obstacle(post, run_code):
    found = post("/api/design/copy", {**MIDDLE, "item": "middle"})
    assert not found["possible"] and found["bound"] > 0.5
    mixed = found["obstacle"]["combination"]
    keys = dict(zip(MIDDLE["labels"], MIDDLE["keys"], strict=True))
    assert close(sum(w * np.array(keys[name]) for name, w in mixed.items()), keys["middle"])
    assert close(sum(mixed.values()), 1) and "no query selects it" in found["obstacle"]["says"]
    assert "key middle is" in found["obstacle"]["says"] and "1 of item middle" in found["certificate"]
    assert not run_code(found["python"])["design"].possible


def test_an_impossible_blend_has_an_obstacle(post):
    line = {"keys": [[0], [1], [2]], "values": [[0], [1], [2]], "labels": ["a", "b", "c"]}
    found = post("/api/design/blend", {**line, "weights": {"a": 0.5, "c": 0.5}})
    assert not found["possible"] and found["obstacle"] is not None
    assert set(found["obstacle"]["combination"]) <= set(line["labels"])


@pytest.mark.parametrize("scale", [0.0, 0.5, 30.0, 200.0])
def test_the_curve_reaches_beyond_the_current_scale_and_the_python_code_gives_it(post, state, run_code, scale):
    found = post("/api/lookup", {**state("lookup"), "scale": scale})
    curve = found["curve"]
    assert curve["scales"][0] == 0 and curve["scales"][-1] >= scale
    k, q = np.array(state("lookup")["keys"]), np.array(state("lookup")["query"])
    expected = [np.exp(s * (k @ q) - s * (k @ q).max()) for s in curve["scales"]]
    assert close(curve["leaks"], [1 - e[:2].sum() / e.sum() for e in expected]) or np.allclose(
        curve["leaks"], [e[2:].sum() / e.sum() for e in expected], rtol=1e-9, atol=0
    )
    assert close(run_code(found["python"])["leaks"].scales, curve["scales"])


@pytest.mark.parametrize(
    ("query", "wanted", "limit"),
    [
        ([1, 0], {0}, 0), ([1, 0], {1}, 1), ([1, 0], {0, 2}, 0), ([0, 0], {0}, 0.75), ([1, 1], {0}, 0.5),
        ([1, 1 + 1e-15], {0}, 1), ([1, 1 + 1e-15], {1}, 0), ([-1, -1], {0, 1, 2}, 0), ([0, 0], {0, 1, 2, 3}, 0),
    ],
)  # fmt: skip
def test_the_limit_of_the_leak_is_decided_exactly(query, wanted, limit):
    assert leak_limit(MIDDLE["keys"], query, wanted) == limit


def test_the_limit_is_that_of_the_leak_at_a_huge_scale(post):
    rng = np.random.default_rng(0)
    for _ in range(40):
        keys, query = rng.integers(-3, 4, (5, 2)), rng.integers(-2, 3, 2)
        wanted = set(rng.permutation(5)[: rng.integers(1, 5)].tolist())
        scores = 1e3 * (keys @ query)
        weights = np.exp(scores - scores.max())
        expected = sum(w for i, w in enumerate(weights) if i not in wanted) / weights.sum()
        found = leak_limit(keys.astype(float).tolist(), query.astype(float).tolist(), wanted)
        assert found == pytest.approx(expected, abs=1e-12)


def test_a_leak_that_vanishes_though_a_wanted_item_scores_low_has_the_limit_zero(post):
    found = post("/api/lookup", {**MIDDLE, "query": [1, 0], "scale": 100.0, "wanted": ["a", "c"]})
    assert found["certified_scale"] is None and found["limit"] == 0 and found["leak"] < 1e-30


def test_an_equal_blend_of_all_items_is_the_zero_query(post):
    found = post("/api/design/blend", {**MIDDLE, "weights": dict.fromkeys(MIDDLE["labels"], 0.25)})
    assert found["possible"] and found["query"] == [0, 0] and found["bound"] <= 1e-9


def test_the_distance_is_the_total_variation_from_the_wanted_weights(post, client):
    rng = np.random.default_rng(3)
    for _ in range(30):
        parts = rng.dirichlet(np.ones(4))
        wanted = dict(zip(MIDDLE["labels"], parts.tolist(), strict=True))
        body = {**MIDDLE, "query": rng.normal(size=2).tolist(), "scale": float(rng.uniform(0, 9)), "wanted": wanted}
        found = post("/api/lookup", body)
        assert found["distance"] == pytest.approx(np.abs(np.array(found["weights"]) - parts).sum() / 2, abs=1e-14)
    body = {**MIDDLE, "query": [1, 0], "wanted": {"a": 0.25, "b": 0.75}}
    found = post("/api/lookup", body)
    named = post("/api/lookup", {**body, "wanted": ["a", "b"]})
    assert named["distance"] is None and named["leak"] == found["leak"] and named["python"] == found["python"]
    assert found["distance"] >= found["leak"]  # what leaks is missing elsewhere
    assert client.post("/api/lookup", json={**body, "wanted": {"a": 0.25, "b": 0.25}}).status_code == 422
    assert client.post("/api/lookup", json={**body, "wanted": {"a": 0.25, "z": 0.75}}).status_code == 422
