"""Remarks between brackets, cases that are left out, conditions of other formulas: none of them accuses."""

from __future__ import annotations

import pytest

from qkv.sheets import grade


def verdicts(sheet: str, problem: str = "attention-2024") -> dict[str, str]:
    """The verdict of every formula of a sheet."""
    return {s.formula: s.verdict for s in grade(sheet, problem).statements}


@pytest.mark.parametrize(
    "remark",
    [
        r"(One could also take $q_1 = q_2 = t(\mu_a + \mu_b)$, which gains nothing.)",
        r"（也可以取 $q_1 = q_2 = t(\mu_a + \mu_b)$，但没有好处。）",
    ],
)
def test_another_choice_in_brackets_does_not_replace_the_query(remark):
    sheet = rf"""(d) (i) We take $q_1 = t \mu_a$, $q_2 = t \mu_b$ with $t \gg 0$. {remark}
Then $k_b^\top q_1 \approx 0$ and $c_1 \approx v_a$."""
    found = grade(sheet, "attention-2024")
    said = {s.formula: s.verdict for s in found.statements}
    assert said[r"k_b^\top q_1 \approx 0"] == "limit" and said[r"c_1 \approx v_a"] == "limit"
    answer = next(a for a in found.answers if a.part == "d.i")
    assert answer.verdict == "limit" and "q_1 = t μ_a" in answer.because


def test_a_query_that_stands_in_brackets_alone_is_the_answer():
    found = grade(
        r"(b) A large multiple of the sum will do (we choose $q = t(k_a + k_b)$ with $t \gg 0$).", "attention-2024"
    )
    assert next(a for a in found.answers if a.part == "b").verdict == "limit"


def test_a_value_before_is_no_condition_where_the_formula_has_its_own():
    sheet = r"""(c) (i) $q = t(\mu_a + \mu_b)$ with $t \gg 0$.
(ii) Let $k_a \approx \gamma \mu_a$. There is a step at $\gamma = 1$: $c \approx v_a$ for $\gamma > 1$."""
    assert verdicts(sheet)[r"c \approx v_a"] == "limit"
    sheet = sheet.replace(r": $c \approx v_a$ for $\gamma > 1$", r": there $c \approx v_a$")
    assert verdicts(sheet)[r"c \approx v_a"] != "limit"


def test_noise_with_a_factor_has_the_spread_that_is_left():
    sheet = r"(c) (i) Write $k_i = \mu_i + \sqrt{\alpha} z_i$, where $z_i \sim \mathcal{N}(0, I)$ for $i \neq a$."
    assert verdicts(sheet)[r"z_i \sim \mathcal{N}(0, I)"] == "right"
    assert verdicts(sheet.replace("(0, I)", "(0, 2I)"))[r"z_i \sim \mathcal{N}(0, 2I)"] != "right"


@pytest.mark.parametrize("words", ["we may ignore samples with", "neglecting the cases where", "题目说忽略"])
def test_a_case_that_is_left_out_is_not_asserted(words):
    sheet = rf"""(d) (i) $q_1 = t\mu_a$, $q_2 = t\mu_b$, $t \gg 0$.
(ii) Here {words} $k_a^\top q_1 < 0$, so $c_1 \approx v_a$."""
    assert verdicts(sheet)[r"k_a^\top q_1 < 0"] == "choice"
