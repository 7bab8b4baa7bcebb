"""No text of a claim reaches Coq unescaped."""

import re

import pytest

from qkv.claims.kernel.identifiers import Identifiers, comment

HOSTILE = [
    "*) Axiom false : False. (*",
    '"',
    'a "quoted *) text" (* (*',
    "(*",
    "*)",
    "(*)",
    "**))",
    "((**",
    "\\exp \n Admitted. \t *)",
    "α ≥ 0 — *）",
    "' '' \x00 \x1b[31m",
    "* ) ( *",
    "*" * 50 + ")" * 50,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_comment_neither_ends_early_nor_nests_nor_opens_a_string(text):
    inside = comment(text)
    assert inside.startswith("(* ") and inside.endswith(" *)") and inside.isascii() and "\n" not in inside
    assert "(*" not in inside[2:-2] and "*)" not in inside[2:-2] and '"' not in inside


@pytest.mark.parametrize("name", ["t", "in", "fun", "Prop", "k_a", "alpha_{1,a}", "β", "a b", "x)", "", "0", "exp"])
def test_identifiers_are_generated_with_a_prefix(name):
    word = Identifiers().of("num", name)
    assert re.fullmatch(r"num_[A-Za-z0-9]+x?|num_", word), word


def test_different_names_get_different_identifiers():
    names = Identifiers()
    every = [names.of(kind, name) for kind in ("num", "vec") for name in ("a_b", "ab", "a_{b}", "é", "è", "a")]
    assert len(set(every)) == len(every)
    assert names.of("num", "ab") == names.of("num", "ab")
