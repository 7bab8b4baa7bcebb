"""Wiring: replies agree with NumPy and with the library, and so does their Python code."""

import numpy as np
import pytest


def close(a, b):
    return np.allclose(np.asarray(a, dtype=float), np.asarray(b, dtype=float), rtol=1e-12, atol=1e-14)


def test_matrices_satisfy_the_rules_and_the_python_code_gives_the_same(post, state, run_code):
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
    names = run_code(found["python"])
    assert close(names["wired"].Q, found["Q"]) and close(names["reading"].weights, found["weights"])
    assert close(names["reading"].output / 2.0, found["outputs"])


def test_weights_are_within_tol_at_beta_one_and_sharper_at_larger_beta(post, state):
    body = state("wiring")
    most = [post("/api/wiring", {**body, "beta": beta})["weights"][0][2] for beta in (0.5, 1.0, 1.5, 3.0)]
    assert most == sorted(most) and 1 - body["tol"] - 1e-9 <= most[1] < 0.999 < most[3]


def test_rules_without_a_solution_are_impossible(post, run_code):
    tokens = [{"name": "x", "is": {"u": 1}}, {"name": "y", "is": {"u": 2}}, {"name": "z", "is": {"u": 3}}]
    found = post("/api/wiring", {"tokens": tokens, "rules": [{"token": "x", "reads": "y", "writes": {"u": 1}}]})
    assert not found["possible"] and found["Q"] is None and found["weights"] is None
    assert "reading" not in run_code(found["python"])


def test_the_derivation_agrees_with_the_numbers(post, state):
    found = post("/api/wiring", {**state("wiring"), "beta": 3.0})
    lines = [line["text"] for line in found["derivation"]]
    assert lines[0] == "x_1 = u_d + u_b" and any("x_1 writes u_b - u_c" in line for line in lines)
    assert any("as β → ∞ the highest score takes all the weight: x_2 reads x_1" in line for line in lines)
    assert all(line["latex"] for line in found["derivation"])
    odd = post("/api/wiring", {
        "tokens": [{"name": r"\href{javascript:x}", "is": {r"\evil": 1}}, {"name": "y", "is": {"b": 1}}],
        "rules": [{"token": "y", "reads": r"\href{javascript:x}", "writes": {"b": 1}}],
    })  # fmt: skip
    assert not any("href" in line["latex"] and r"\href" in line["latex"] for line in odd["derivation"])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tokens": [{"name": "x", "is": {"u": 1}}] * 2}, "two tokens x"),
        ({"rules": [{"token": "nobody", "reads": "x_1", "writes": {"u": 1}}]}, "no such token"),
        ({"rules": [{"token": "x_1", "reads": "nobody", "writes": {"u": 1}}]}, "no such token"),
        ({"rules": [{"token": "x_1", "reads": "x_2", "writes": {"u": 1}}] * 2}, "two rules for tokens x_1"),
        ({"rules": [{"token": "x_1", "reads": "x_2", "writes": {f"v{i}": 1 for i in range(12)}}]}, "16 vectors"),
    ],
)
def test_requests_that_contradict_themselves_are_refused(client, state, change, problem):
    found = client.post("/api/wiring", json={**state("wiring"), **change})
    assert found.status_code == 422 and problem in found.json()["error"]["problem"]


def test_the_statuses_are_those_of_the_library():
    """The route states them itself, so that the server starts without torch."""
    from typing import get_args

    from qkv.design import wiring as library
    from qkv.web.routes import wiring

    assert get_args(wiring.Status) == get_args(library.Status)
