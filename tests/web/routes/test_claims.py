"""Claims: replies have the verdicts of `check`, with lines; the report is that of the command line."""

CLAIM = "```claim fine\ngiven k_1..k_n free, q free\nthen alpha_i >= 0\n```\n"


def test_verdicts_are_those_of_check_with_lines(post, run_code):
    from qkv.claims.symbolic import prover  # noqa: F401  (imported now, outside of a claim's time limit)

    text = "\n".join([
        "# Two blocks", "", "```claim mine", "given k_1..k_n orthonormal, n >= 3", "let q = t*(k_a + k_b)",
        "then alpha_a -> 1/2 as t -> oo", "then alpha_a -> 1/3 as t -> oo", "```", "",
        "```claim broken", "then alpha ->", "```",
    ])  # fmt: skip
    found = post("/api/check", {"text": text})
    kinds = {v["id"]: (v["verdict"], v["line"]) for v in found["verdicts"]}
    assert kinds == {"mine #1": ("proved", 6), "mine #2": ("refuted", 7), "broken": ("malformed", 11)}
    again = run_code(found["python"])["verdicts"]
    bare = [{k: v for k, v in one.items() if k not in ("line", "column")} for one in found["verdicts"]]
    assert again.to_json()["verdicts"] == bare and found["complete"]


def test_the_catalogue_has_the_write_ups(client):
    documents = client.get("/api/catalogue").json()["documents"]
    assert [d["name"] for d in documents] == [
        *(f"writeup_{i}" for i in range(1, 6)),
        "supplement",
    ] and "```claim" in documents[0]["text"]


def test_the_report_is_a_self_contained_download(client):
    found = client.post("/api/check/report", json={"text": CLAIM})
    assert found.headers["content-disposition"].startswith("attachment") and "✓ proved: fine" in found.text
    assert "--item-a" in found.text and "<script" not in found.text
