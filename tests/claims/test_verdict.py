"""Verdicts as values: their views, and the examples in their documentation."""

import doctest
import json

import pytest

import qkv
from qkv.claims import pipeline, verdict
from qkv.claims.verdict import KINDS, SIGNS, Step, Verdict, Verdicts


def test_verdicts_show_themselves_as_a_table():
    found = qkv.check("```claim x\ngiven t > 0\nthen t > 0\n```")
    assert "<table>" in found._repr_html_() and "proved" in found._repr_html_()
    assert found["x"].verdict == "proved" and len(found) == 1 and found.counts() == {"proved": 1}
    with pytest.raises(KeyError):
        found["y"]


@pytest.mark.parametrize("module", [verdict, pipeline])
def test_the_examples_in_the_documentation_run(module):
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


def test_every_kind_has_a_sign_and_a_card():
    assert set(SIGNS) == set(KINDS)
    for kind in KINDS:
        one = Verdict("x", kind, "t > 0", "why", (Step("a", "b"),), "t = 1\nleft = 2")
        rows = dict(one.card().facts[:3])
        assert one.card().title == f"{SIGNS[kind]} {kind}: x" and rows["step 1"] == "a"
        assert json.loads(json.dumps(one.to_json()))["derivation"] == [{"text": "a", "latex": "b"}]


def test_verdicts_are_found_by_place_and_by_name():
    found = Verdicts(tuple(Verdict(f"x #{j}", kind, "", "") for j, kind in enumerate(KINDS)))
    assert found[0] is found["x #0"] and len(list(found)) == len(found) == len(KINDS)
    assert found.counts() == dict.fromkeys(KINDS, 1)
    assert len(found.to_json()["verdicts"]) == len(KINDS)
    assert "no ```claim block" in str(Verdicts(()).card())
