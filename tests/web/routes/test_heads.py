"""Routes of heads: the example, a model of transformers, a run, and what is refused."""

import base64
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest

pytest.importorskip("transformers")
sys.path.insert(0, str(Path(__file__).parents[2] / "heads"))
from families import text, tiny, tokenizer

EXAMPLE = "built-in example"
WORDS = "the cat saw the dog and the cat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("models") / "gpt2"
    tiny("gpt2").save_pretrained(out)
    tokenizer().save_pretrained(out)
    return out


@pytest.fixture(scope="module")
def named(serve, folder):
    """A server that was started with one model."""
    with serve(models={"mine": folder}) as address, httpx.Client(base_url=address, timeout=120) as client:
        yield client


def numbers(reply, n):
    return np.frombuffer(base64.b64decode(reply["weights"]), "<f4").reshape(n, n)


@pytest.mark.slow
def test_the_survey_and_the_weights_are_those_of_the_library(named, folder):
    import qkv

    words = text(20)
    model = qkv.heads.open(folder)
    expected = model.survey(words)
    found = named.post("/api/heads/survey", json={"model": "mine", "text": words}).json()
    assert found["tokens"] == list(expected.tokens) and (found["layers"], found["heads"]) == (3, 4)
    assert [row["kind"] for row in found["rows"]] == [one.kind for one in expected.heads]
    pictures = np.frombuffer(base64.b64decode(found["pictures"]), np.uint8)
    assert np.array_equal(pictures, expected.pictures.numpy().ravel())
    place = {"model": "mine", "text": words, "layer": 2, "head": 1}
    weights = named.post("/api/heads/weights", json=place).json()
    assert np.allclose(numbers(weights, 20), expected.weights(2, 1).numpy(), atol=1e-6)


@pytest.mark.slow
def test_a_token_the_rounding_and_the_code_are_those_of_the_library(named, folder, run_code):
    import qkv

    words = text(20)
    model = qkv.heads.open(folder)
    place = {"model": "mine", "text": words, "layer": 2, "head": 1}
    weights = named.post("/api/heads/weights", json=place).json()
    view = model.head(2, 1).view(words, token=7, bits=3, harden=False)
    token = named.post("/api/heads/token", json={**place, "token": 7, "bits": 3}).json()
    assert [one["position"] for one in token["looked_up"]] == [one.position for one in view.looked_up]
    assert token["margin"] == pytest.approx(view.margin, rel=1e-5) and token["hardened"] is None
    rounded = named.post("/api/heads/rounding", json=place).json()
    assert [row["bits"] for row in rounded["rows"]] == [8, 6, 5, 4, 3, 2]
    assert run_code(token["python"])["view"].looked_up[0].position == view.looked_up[0].position
    assert np.allclose(run_code(weights["python"])["weights"], numbers(weights, 20), atol=1e-6)


def test_models_named_at_start_come_first_and_the_example_last(named):
    found = named.get("/api/heads/models").json()["models"]
    assert [(m["name"], m["kind"]) for m in found if m["source"] in ("named at start", "built in")] == [
        ("mine", "transformers"), (EXAMPLE, "example"),
    ]  # fmt: skip


def test_a_model_of_transformers_answers_no_questions(named):
    assert all(m["name"] != "mine" for m in named.get("/api/models").json()["models"])
    found = named.post("/api/ask", json={"model": "mine", "question": "Who?"})
    assert found.status_code == 422 and "Heads" in found.json()["error"]["hint"]


@pytest.mark.parametrize(
    ("path", "change", "status", "said"),
    [
        ("survey", {"model": "other"}, 404, "no such model"),
        ("survey", {"model": "../../etc"}, 404, "no such model"),
        ("survey", {"text": "w3 " * 65}, 422, "65 tokens"),
        ("survey", {"text": ""}, 422, "text"),
        ("survey", {"text": "x" * 20_001}, 422, "text"),
        ("weights", {"layer": 3}, 422, "layers are 0 to 2"),
        ("weights", {"head": -1}, 422, "head"),
        ("token", {"token": 20}, 422, "20 tokens"),
        ("token", {"bits": 0}, 422, "bits"),
        ("rounding", {"layer": 1025}, 422, "layer"),
    ],
)
def test_what_is_refused_is_named(named, folder, path, change, status, said):
    body = {"model": "mine", "text": text(20)}
    body |= {"layer": 0, "head": 0} if path != "survey" else {}
    body |= {"token": 0} if path == "token" else {}
    found = named.post(f"/api/heads/{path}", json={**body, **change})
    assert found.status_code == status and said in found.json()["error"]["problem"]
    assert str(folder) not in found.text


@pytest.mark.slow
def test_the_table_is_a_job_that_keeps_the_folder_to_itself(named, folder):
    started = named.post("/api/jobs", json={"kind": "heads", "model": "mine", "text": text(12), "effect_tokens": 4})
    job = f"/api/jobs/{started.json()['id']}"
    with named.stream("GET", f"{job}/events") as events:
        assert "event: done" in "".join(events.iter_text())
    state = named.get(job)
    assert str(folder) not in state.text and state.json()["status"] == "done"
    rows = state.json()["result"]["rows"]
    assert len(rows) == 12 and state.json()["result"]["rounding"]["bits"] == [4] and "effect" in rows[0]
    assert named.post("/api/jobs", json={"kind": "heads", "model": EXAMPLE, "text": "a b"}).status_code == 404


def test_the_example_is_there_without_a_model(post, client):
    assert client.get("/api/heads/models").json()["models"][-1]["name"] == EXAMPLE
    found = post("/api/heads/survey", {"model": EXAMPLE, "text": WORDS})
    assert [row["kind"] for row in found["rows"]] == ["previous token", "duplicate", "induction", "broad"]
    place = {"model": EXAMPLE, "text": WORDS, "layer": 1, "head": 0}
    weights = numbers(post("/api/heads/weights", place), 9)
    assert weights[8].argmax() == 3 and weights[8, 3] > 0.99
    hard = post("/api/heads/token", {**place, "token": 8, "harden": True})["hardened"]
    assert hard["squared_error"] <= hard["own_squared_error"] and hard["says"]
