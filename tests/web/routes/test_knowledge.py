"""Routes of models: the list, and what is refused."""


def test_without_models_the_list_is_empty_and_a_question_is_refused_with_a_hint(client):
    named = [m for m in client.get("/api/models").json()["models"] if m["source"] == "named at start"]
    assert named == []
    found = client.post("/api/ask", json={"model": "nobody", "question": "Who?"})
    assert found.status_code == 404 and "no such model" in found.json()["error"]["problem"]


def test_questions_have_a_length(client):
    for question in ("", "x" * 501):
        assert client.post("/api/ask", json={"model": "a", "question": question}).status_code == 422
