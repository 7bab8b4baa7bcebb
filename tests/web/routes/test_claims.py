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
    added = ("line", "column", "says_pieces", "because_pieces")
    bare = [{k: v for k, v in one.items() if k not in added} for one in found["verdicts"]]
    for one in found["verdicts"]:
        for name in ("says", "because"):
            assert "".join(piece["text"] for piece in one[f"{name}_pieces"]) == one[name]
    assert found["verdicts"][1]["because_pieces"][1]["latex"] == r"\frac{1}{2}"
    assert again.to_json()["verdicts"] == bare and found["complete"]


def test_the_catalogue_has_examples_by_topic_and_the_answer_sheets(client):
    documents = client.get("/api/catalogue").json()["documents"]
    examples = [d for d in documents if d["kind"] == "example"]
    sheets = [d for d in documents if d["kind"] == "answer sheet"]
    assert [*examples, *sheets] == documents and examples[0]["topic"] == "The average of two values"
    assert [d["name"] for d in sheets] == [*(f"writeup_{i}" for i in range(1, 6)), "supplement"]
    assert all("```claim" in d["text"] and "write-up" not in d["topic"] for d in documents)


def test_the_report_is_a_self_contained_download(client):
    found = client.post("/api/check/report", json={"text": CLAIM})
    assert found.headers["content-disposition"].startswith("attachment") and ">✓ proved</span>: fine" in found.text
    assert "--item-a" in found.text and "<script" not in found.text
