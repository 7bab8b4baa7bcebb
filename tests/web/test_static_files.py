"""The numbers of the pages are the library's: each reply's own Python gives them again."""

import numpy as np
import pytest
import torch

from qkv import Memory
from qkv.design import blend, copy

MIDDLE = {
    "keys": [[1, 0], [0, 1], [-1, -1], [0.1, 0]],
    "values": [[1], [2], [3], [4]],
    "labels": ["a", "b", "c", "middle"],
}


def run(code):
    """The names that a reply's Python leaves."""
    names = {"__name__": "notebook"}
    exec(compile(code, "copied", "exec"), names)
    return names


def close(a, b):
    return np.allclose(np.asarray(a, dtype=float), np.asarray(b, dtype=float), rtol=1e-12, atol=1e-14)


def test_lookup_gives_softmax_and_its_python_gives_the_same(post, state):
    body = state("lookup")
    found = post("/api/lookup", body)
    scores = body["scale"] * np.array(body["keys"]) @ np.array(body["query"])
    alpha = np.exp(scores) / np.exp(scores).sum()
    assert close(found["scores"], scores) and close(found["weights"], alpha)
    assert close(found["output"], alpha @ np.array(body["values"]))
    assert close(found["leak"], alpha[2:].sum())
    names = run(found["python"])
    assert close(names["reading"].weights, found["weights"]) and close(names["reading"].output, found["output"])
    assert close(names["leaks"].scales, found["curve"]["scales"]) and close(
        names["leaks"].leaks, found["curve"]["leaks"]
    )
    assert names["leaks"].scale == found["certified_scale"]
    assert names["leaks"].certificate.verify()


def test_from_the_certified_scale_on_the_leak_is_small_and_just_before_it_is_not(post, state):
    body = state("lookup")
    found = post("/api/lookup", body)
    after = post("/api/lookup", {**body, "scale": found["certified_scale"]})
    before = post("/api/lookup", {**body, "scale": 0.999 * found["certified_scale"]})
    assert after["leak"] <= found["tol"] < before["leak"]
    assert post("/api/lookup", {**body, "query": [-0.8, -0.6]})["certified_scale"] is None


def test_without_wanted_items_the_heaviest_is_meant(post, state):
    body = {k: v for k, v in state("lookup").items() if k != "wanted"}
    found = post("/api/lookup", body)
    assert found["wanted"] == ["a"] and close(found["leak"], 1 - found["weights"][0])


@pytest.mark.parametrize("leak", [1e-3, 1e-6])
def test_copy_and_blend_are_the_library_s(post, leak):
    memory = Memory(MIDDLE["keys"], MIDDLE["values"], MIDDLE["labels"])
    copied = post("/api/design/copy", {**MIDDLE, "item": "a", "leak": leak})
    blended = post("/api/design/blend", {**MIDDLE, "weights": {"a": 0.5, "b": 0.5}, "leak": leak})
    for found, design in ((copied, copy(memory, "a", leak)), (blended, blend(memory, {"a": 0.5, "b": 0.5}, leak))):
        assert found["possible"] and found["obstacle"] is None
        assert close(found["query"], design.query) and found["scale"] == design.scale
        assert found["leak"] * (1 - 1e-12) <= found["bound"] <= leak * (1 + 1e-9)
        names = run(found["python"])
        assert close(names["design"].query, found["query"]) and close(names["reading"].weights, found["weights"])


def test_a_key_inside_the_hull_comes_with_the_combination_that_it_is(post):
    found = post("/api/design/copy", {**MIDDLE, "item": "middle"})
    assert not found["possible"] and found["bound"] > 0.5
    mixed = found["obstacle"]["combination"]
    keys = dict(zip(MIDDLE["labels"], MIDDLE["keys"], strict=True))
    assert close(sum(w * np.array(keys[name]) for name, w in mixed.items()), keys["middle"])
    assert close(sum(mixed.values()), 1) and "no query selects it" in found["obstacle"]["says"]
    assert "key middle is" in found["obstacle"]["says"] and "1 of item middle" in found["certificate"]
    assert not run(found["python"])["design"].possible


def test_a_blend_that_cannot_be_is_refused_with_what_stands_in_the_way(post):
    line = {"keys": [[0], [1], [2]], "values": [[0], [1], [2]], "labels": ["a", "b", "c"]}
    found = post("/api/design/blend", {**line, "weights": {"a": 0.5, "c": 0.5}})
    assert not found["possible"] and found["obstacle"] is not None
    assert set(found["obstacle"]["combination"]) <= set(line["labels"])


def test_wiring_follows_its_rules_and_its_python_gives_the_same(post, state):
    body = state("wiring")
    found = post("/api/wiring", {**body, "beta": 2.0})
    assert found["names"] == ["x_1", "x_2", "x_3"] and found["vectors"] == ["u_d", "u_b", "u_a", "u_c"]
    X = 2.0 * np.array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 1]], dtype=float)
    Q, K, V = (np.array(found[name]) for name in "QKV")
    scores = (X @ Q.T) @ (X @ K.T).T
    alpha = np.exp(scores - scores.max(1, keepdims=True))
    alpha /= alpha.sum(1, keepdims=True)
    assert np.allclose(found["weights"], alpha) and np.allclose(found["outputs"], alpha @ X @ V.T / 2.0)
    assert alpha[0, 2] > 0.99 and alpha[1, 0] > 0.99
    assert np.allclose(found["outputs"][0], [0, 1, 0, -1], atol=0.02)
    assert np.allclose(found["outputs"][1], [0, 1, 0, 0], atol=0.02)
    names = run(found["python"])
    assert close(names["wired"].Q, found["Q"]) and close(names["reading"].weights, found["weights"])
    assert close(names["reading"].output / 2.0, found["outputs"])


def test_at_beta_one_the_weights_are_within_tol_and_a_longer_beta_sharpens_them(post, state):
    body = state("wiring")
    most = [post("/api/wiring", {**body, "beta": beta})["weights"][0][2] for beta in (0.5, 1.0, 1.5, 3.0)]
    assert most == sorted(most) and 1 - body["tol"] - 1e-9 <= most[1] < 0.999 < most[3]


def test_rules_that_no_matrices_follow_are_refused_with_a_proof(post):
    tokens = [{"name": "x", "is": {"u": 1}}, {"name": "y", "is": {"u": 2}}, {"name": "z", "is": {"u": 3}}]
    found = post("/api/wiring", {"tokens": tokens, "rules": [{"token": "x", "reads": "y", "writes": {"u": 1}}]})
    assert not found["possible"] and found["Q"] is None and found["weights"] is None
    assert "reading" not in run(found["python"])


def test_the_derivation_says_what_the_numbers_say(post, state):
    found = post("/api/wiring", {**state("wiring"), "beta": 3.0})
    lines = [line["text"] for line in found["derivation"]]
    assert lines[0] == "x_1 = u_d + u_b" and any("x_1 writes u_b - u_c" in line for line in lines)
    assert any("as β → ∞ the highest score takes all: x_2 reads x_1" in line for line in lines)
    assert all(line["latex"] for line in found["derivation"])
    odd = post("/api/wiring", {
        "tokens": [{"name": r"\href{javascript:x}", "is": {r"\evil": 1}}, {"name": "y", "is": {"b": 1}}],
        "rules": [{"token": "y", "reads": r"\href{javascript:x}", "writes": {"b": 1}}],
    })  # fmt: skip
    assert not any("href" in line["latex"] and r"\href" in line["latex"] for line in odd["derivation"])


def test_verdicts_are_those_of_check_with_their_lines(post):
    from qkv.claims.symbolic import prover  # noqa: F401  (a claim's clock should not wait for imports)

    text = "\n".join([
        "# Two blocks", "", "```claim mine", "given k_1..k_n orthonormal, n >= 3", "let q = t*(k_a + k_b)",
        "then alpha_a -> 1/2 as t -> oo", "then alpha_a -> 1/3 as t -> oo", "```", "",
        "```claim broken", "then alpha ->", "```",
    ])  # fmt: skip
    found = post("/api/check", {"text": text})
    kinds = {v["id"]: (v["verdict"], v["line"]) for v in found["verdicts"]}
    assert kinds == {"mine #1": ("proved", 6), "mine #2": ("refuted", 7), "broken": ("malformed", 11)}
    again = run(found["python"])["verdicts"]
    bare = [{k: v for k, v in one.items() if k not in ("line", "column")} for one in found["verdicts"]]
    assert again.to_json()["verdicts"] == bare and found["complete"]


def test_the_catalogue_is_there_to_start_from(client):
    documents = client.get("/api/catalogue").json()["documents"]
    assert [d["name"] for d in documents][:2] == ["writeup_1", "writeup_2"] and "```claim" in documents[0]["text"]


def test_noise_gives_three_arms_whose_python_gives_the_same(post, state):
    for body in (state("noise"), {**state("noise"), "isotropic": 0.0, "n": 5}, {**state("noise"), "heads": 3, "n": 20}):
        found = post("/api/noise", body)
        arms = run(found["python"])["found"]
        several = {2: "two heads", 3: "three heads"}[body["heads"]]
        assert [a["name"] for a in found["arms"]] == ["one head", several, "min variance"]
        for shown, arm in zip(found["arms"], arms, strict=True):
            assert (shown["mean"], shown["variance"]) == pytest.approx((arm.mean, arm.variance), rel=1e-12, abs=1e-15)
            assert shown["probability"] == arm.probability and shown["low"] <= arm.probability <= shown["high"]
            assert close(shown["weight_samples"], arm.drawn) and len(shown["weight_samples"]) == body["samples"]
            assert close(shown["law"]["share"], arm.share) and close(shown["law"]["edges"], arm.edges)
            assert shown["law"]["method"] == "quadrature" and sum(shown["law"]["share"]) == pytest.approx(1)
        one, two, hard = (a["variance"] for a in found["arms"])
        assert hard < two / 10 < one / 10


def test_some_items_must_be_left_that_are_not_wanted(client, state):
    for path, kind in (("/api/noise", {}), ("/api/jobs", {"kind": "noise-study"})):
        body = {"n": 5, "heads": 5, **kind}
        found = client.post(path, json=body)
        assert found.status_code == 422 and found.json()["error"]["came"] == "5 heads for 5 items"


def test_arms_agree_with_keys_that_are_really_drawn(post):
    body = {"n": 6, "along": 0.5, "isotropic": 0.01, "scale": 5.0, "success": 0.3, "samples": 10, "seed": 1}
    found = post("/api/noise", body)["arms"][0]
    generator = torch.Generator().manual_seed(0)
    draws = 200_000
    keys = torch.eye(6).repeat(draws, 1, 1) + 0.1 * torch.randn(draws, 6, 6, generator=generator)
    keys[:, 0, 0] += 0.5**0.5 * torch.randn(draws, generator=generator)
    alpha = torch.softmax(5.0 * (keys[:, :, 0] + keys[:, :, 1]), -1)
    assert found["mean"] == pytest.approx(float(alpha[:, 0].mean()), abs=5e-3)
    assert found["variance"] == pytest.approx(float(alpha[:, 0].var()), abs=3e-3)
    miss = alpha - torch.tensor([0.5, 0.5, 0, 0, 0, 0])
    truth = float((miss.norm(dim=1) <= 0.3).double().mean())
    held = torch.histogram(alpha[:, 0], torch.tensor(found["law"]["edges"])).hist / draws
    assert float((held - torch.tensor(found["law"]["share"])).abs().max()) < 5e-3
    assert found["low"] - 0.01 <= truth <= found["high"] + 0.01
