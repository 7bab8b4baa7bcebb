"""Changes of tokens that words tell, and those that nobody can tell."""

from __future__ import annotations

import pytest

from qkv.sheets import grade
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.changes import changes_in, says_changed

U_C, U_D = T.Symbol("u", ("c",)), T.Symbol("u", ("d",))


@pytest.mark.parametrize(
    ("words", "token", "vectors"),
    [
        ("after adding $u_d$,", "x_2", [U_D]),
        ("with $u_d$ added to $x_1$", "x_1", [U_D]),
        ("if $u_c$ or $u_d$ is added", "x_2", [U_C, U_D]),
        ("adding both $u_c$ and $u_d$", "x_2", [T.Binary("+", U_C, U_D), U_C, U_D]),
        ("加上 $u_d$ 之后", "x_2", [U_D]),
        ("给 $x_1$ 加上 $u_c$", "x_1", [U_C]),
        ("把 $u_d$ 加到 $x_3$", "x_3", [U_D]),
    ],
)
def test_what_is_added(words, token, vectors):
    found = changes_in(words, "x_2")
    assert [c.value for c in found] == vectors
    assert {(c.token, c.added) for c in found} == {(token, True)}


@pytest.mark.parametrize(
    "words",
    ["replacing $x_2$ by $u_c$", "once $x_2$ is changed to $u_c$", "we change $x_2$ into $u_c$", "将 $x_2$ 改为 $u_c$"],
)
def test_what_a_token_becomes(words):
    (found,) = changes_in(words, "x_1")
    assert (found.token, found.value, found.added) == ("x_2", U_C, False)


@pytest.mark.parametrize("words", ["adding $u_d$ to $q$", "the weights add up to $1$", "we add the scores", ""])
def test_what_is_no_change_of_a_token(words):
    assert not changes_in(words, "x_2")


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("dropping the factor", True),
        ("swapping the heads gives", True),
        ("去掉 $t$ 的话", True),
        ("with the query", False),
        ("the weights add up to", False),
        ("in addition,", False),
    ],
)
def test_changes_that_are_told(words, changed):
    assert says_changed(words, "") == changed


def test_what_holds_only_without_the_change_gets_no_verdict():
    found = grade(r"(e) (i) After adding $u_d$ to $x_2$ we have $x_2^\top x_2 = \beta^2$.", "attention-2021")
    (statement,) = found.statements
    assert statement.verdict == "not_read" and "without the change" in statement.because
