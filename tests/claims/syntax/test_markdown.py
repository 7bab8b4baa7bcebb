"""Markdown to claims: where blocks may stand, how they are named, and the limits of their size."""

import time

import pytest

import qkv
from qkv.claims.syntax.markdown import (
    MAX_BLOCK_LINES,
    MAX_BLOCKS,
    MAX_DOCUMENT_LENGTH,
    MAX_STATEMENTS,
    UnparsedClaim,
    read,
)
from qkv.claims.syntax.nodes import Claim

CLAIM = "given t > 1\nthen t > 0\n"


def test_a_broken_then_leaves_the_others_of_its_block_alone():
    verdicts = qkv.check(
        "```claim x\ngiven k_1..k_n free, q free\nthen sum_i alpha_i = = 1\nthen sum_i alpha_i = 1\n```"
    )
    assert [v.verdict for v in verdicts] == ["malformed", "proved"]


def test_a_block_that_is_never_closed_is_malformed():
    (broken,) = read("text\n```claim x\nthen 1 = 1\n")
    assert isinstance(broken, UnparsedClaim) and broken.why.at == (2, 1)


def test_a_document_without_claims_has_no_verdicts():
    assert len(qkv.check("# Nothing\n\n```python\nprint(1)\n```\n")) == 0


def quoted(text, mark="> "):
    return "".join(f"{mark}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (f"````text\n```claim a\n{CLAIM}```\n````\n```claim b\n{CLAIM}```", ["b"]),
        (quoted(f"```claim a\n{CLAIM}```"), ["a"]),
        (quoted(f"```claim a\n{CLAIM}```", "> > "), ["a"]),
        (f"```Claim a\n{CLAIM}```", ["a"]),
        (f"~~~ claim: a\n{CLAIM}~~~", ["a"]),
        (f"```claim a\n{CLAIM}`````", ["a"]),
        (f"- ```claim a\n  {CLAIM.replace(chr(10), chr(10) + '  ')}```", ["a"]),
        (f"```claims\n{CLAIM}```", []),
        ("a ```claim a``` in a line", []),
    ],
)
def test_where_a_claim_may_stand_in_a_document(text, ids):
    found = qkv.check(text)
    assert [v.id for v in found] == ids
    assert all(v.verdict == "proved" for v in found)


def test_a_quoted_claim_knows_its_place():
    found = qkv.check(quoted("```claim a\ngiven t > 1\nthen t >> 0\n```"))
    assert "line 3, column 11" in found[0].because


def test_claims_of_one_name_are_told_apart():
    block = "```claim x\ngiven t > 1\nthen t > 0\nthen t > 1\n```\n```claim y\ngiven t > 1\nthen t > 2\n```\n"
    found = qkv.check("\ufeff" + block + block)
    assert [v.id for v in found] == ["x #1", "x #2", "y", "x #1 (2)", "x #2 (2)", "y (2)"]


def test_every_then_is_a_claim_with_the_givens_and_lets_of_its_block():
    text = "```claim x\ngiven t > 1, s real\nlet w = t + s\nthen w > 1\nthen w > 2\n```"
    one, two = read(text)
    assert isinstance(one, Claim) and (one.id, two.id) == ("x #1", "x #2")
    assert one.given == two.given and one.lets == two.lets and one.says == "w > 1"
    assert (one.statement.at, two.statement.at) == ((4, 6), (5, 6))


def test_numbers_that_any_statement_of_a_block_sends_somewhere_are_known_to_all():
    one, two = read("```claim x\ngiven t > 1\nthen 1/t -> 0 as t -> oo\nthen no real r makes r = t\n```")
    assert one.moving == two.moving == ("r", "t")


def test_comments_are_left_out_and_lines_go_on():
    (claim,) = read("```claim x\n# a comment\ngiven t > 1,  # one more\n      s > 0\nthen t\n  > 0\n```")
    assert len(claim.given) == 2 and claim.says == "t > 0"


def test_names_without_a_predicate_join_the_next_declaration():
    (claim,) = read("```claim x\ngiven u_a, u_b orthonormal, t > 0\nthen t > 0\n```")
    assert [len(g.names) for g in claim.given[:1]] == [2] and len(claim.given) == 2


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("t > 0\n", "given, let or then"),
        ("given t > 0\n", "a block without a statement"),
        ("then t > 0\n" * (MAX_STATEMENTS + 1), f"at most {MAX_STATEMENTS}"),
        ("given t > 0\n" * MAX_BLOCK_LINES + "then t > 0\n", f"at most {MAX_BLOCK_LINES}"),
        ("then t > 0" + " " * 2000 + "\n", "at most 2000"),
        ("given t >\nthen t > 0\n", "line 2, column 10"),
    ],
)
def test_blocks_that_cannot_be_read_say_why(body, message):
    (broken,) = read(f"```claim x\n{body}```")
    assert isinstance(broken, UnparsedClaim) and message in str(broken.why)


TAKES_LINEAR_TIME = {
    "spaces": " " * 400_000,
    "quotation marks": "> " * 200_000,
    "blanks after a fence": "```" + " a" * 200_000,
    "fences that are never closed": "```x\n" * 40_000,
    "blocks of one name": "```claim x\n```\n" * 5_000,
    "blocks without a name": "```claim\n```\n" * 5_000,
    "names without a predicate": "```claim x\ngiven " + ("u_a, " * 390 + "\n") * 50 + "then 1 = 1\n```",
    "comments": "```claim x\nthen 1 = 1" + " #" * 200_000 + "\n```",
    "blanks in a block": "```claim x\nthen 1 = 1" + " " * 400_000 + "\n```",
}


@pytest.mark.parametrize("kind", TAKES_LINEAR_TIME)
def test_a_long_document_is_read_in_linear_time(kind):
    start = time.process_time()
    read(TAKES_LINEAR_TIME[kind])
    assert time.process_time() - start < 2


def test_documents_are_bounded():
    for text in (" " * (MAX_DOCUMENT_LENGTH + 1), "```claim\n```\n" * (MAX_BLOCKS + 1)):
        (one,) = read(text)
        assert isinstance(one, UnparsedClaim) and one.id == "document"
        assert str(MAX_DOCUMENT_LENGTH) in str(one.why) or str(MAX_BLOCKS) in str(one.why)


def test_deep_nests_of_latex_are_no_bug():
    (one,) = read("```claim x\nthen $" + "\\log " * 380 + "$\n```")
    assert isinstance(one, UnparsedClaim) and "bug" not in str(one.why)


def test_names_are_numbered_in_the_order_of_the_document():
    ids = [one.id for one in read("```claim x\n```\n" * 3 + "```claim x (2)\n```\n" + "```claim x\n```")]
    assert ids == ["x", "x (3)", "x (4)", "x (2)", "x (5)"]
