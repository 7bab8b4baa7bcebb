"""The examples of the claims page: each topic has statements of more than one kind, and none is malformed."""

from pathlib import Path

from qkv.claims import check
from qkv.web.claim_examples import EXAMPLES, FIRST_EXAMPLE

CLAIMS_PAGE = Path(__file__).parents[2] / "src" / "qkv" / "web" / "static" / "pages" / "claims.js"


def test_every_example_is_decided():
    found = {example.name: [v.verdict for v in check(example.text)] for example in EXAMPLES}
    assert all(set(verdicts) <= {"proved", "conditional", "refuted"} for verdicts in found.values()), found
    assert all(found.values()) and sum(len(set(verdicts)) > 1 for verdicts in found.values()) >= 7
    assert found["average"] == ["proved", "proved", "conditional", "refuted"]


def test_names_and_topics_differ():
    assert len({example.name for example in EXAMPLES}) == len({example.topic for example in EXAMPLES}) == len(EXAMPLES)


def test_the_page_opens_with_the_first_example():
    """The worker decides the first example before a text comes, which helps only if the page sends the same text."""
    source = CLAIMS_PAGE.read_text(encoding="utf-8").split("const START = `", 1)[1].split("`;\n", 1)[0]
    assert source.replace("\\`", "`") == FIRST_EXAMPLE
