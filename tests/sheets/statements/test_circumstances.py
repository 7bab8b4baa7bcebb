"""The words around a formula: goals, hypotheses, negations and conditions, in English and Chinese."""

from __future__ import annotations

import pytest

from qkv.sheets.reading import read_sheet
from qkv.sheets.statements.circumstances import Circumstances, circumstances


def around(text: str, place: int) -> Circumstances:
    return circumstances(read_sheet(f"(a) {text}").formulas[place])


@pytest.mark.parametrize(
    "text",
    [
        "We want $c = v_a$.",
        "To have $c = v_a$ more is called for.",
        "我们希望 $c = v_a$。",
        "In order to get $c = v_a$",
    ],
)
def test_goals(text: str) -> None:
    assert around(text, 0).goal


@pytest.mark.parametrize("text", ["Then $c = v_a$.", "Hence we see $c = v_a$.", "因此 $c = v_a$。"])
def test_assertions_are_no_goals(text: str) -> None:
    found = around(text, 0)
    assert not (found.goal or found.hypothesis or found.negated or found.choice or found.unclear)


@pytest.mark.parametrize("text", ["If $c = v_a$ then", "Suppose $c = v_a$.", "如果 $c = v_a$"])
def test_hypotheses(text: str) -> None:
    assert around(text, 0).hypothesis


@pytest.mark.parametrize(
    "text", ["The output is not $c = v_a$.", "But $c = v_a$ does not hold.", "而 $c = v_a$ 不成立"]
)
def test_negations(text: str) -> None:
    assert around(text, 0).negated


def test_a_condition_before_and_one_for_the_next_formula() -> None:
    text = "When $g > 1$, $c = v_a$, when $g < 1$, $c = v_b$."
    first, second = around(text, 1), around(text, 3)
    assert [c.clause.signs for c in first.conditions if c.clause] == [(">",)]
    assert [c.clause.signs for c in second.conditions if c.clause] == [("<",)]


def test_chinese_conditions_stand_before() -> None:
    text = "当 $g>1$ 时 $c = v_a$，当 $g<1$ 时 $c = v_b$。"
    assert [c.clause.signs for c in around(text, 1).conditions if c.clause] == [(">",)]


def test_a_condition_of_the_formula_before_is_not_taken() -> None:
    found = around(r"As $k_i^T k_j = 0$ for all $i \neq j$, we get $k_a^T q = t$.", 2)
    assert not [c for c in found.conditions if c.kind == "index"]


def test_otherwise_and_others() -> None:
    assert around("And $k_i^T q = t$ otherwise.", 0).otherwise
    assert around(r"while the remaining $\alpha_i = 0$.", 0).others


def test_suppositions_in_words_are_unclear() -> None:
    assert around("If nobody looks, $c = v_a$.", 0).unclear
    assert not around("If $g > 1$, $c = v_a$.", 1).unclear
