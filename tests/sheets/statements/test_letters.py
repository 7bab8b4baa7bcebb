"""Letters that an author gives a meaning: scores, weights, noise, lengths, and scales that look like queries."""

from __future__ import annotations

import pytest
from marks import spread

from qkv.sheets.pipeline import grade
from qkv.sheets.statements.notation import written
from qkv.sheets.statements.tree import Symbol

SCORES = "We write $s_i := k_i^\\top q$ for the scores.\n\n"
TWO = "(b) We take $q = t(k_a + k_b)$ with $t$ large.\n\n"
NOISY = "(c) i. Take $q = t(\\mu_a + \\mu_b)$ with $t$ large.\n\n"
LONG = "(c) ii. Our query was $q = t(\\mu_a + \\mu_b)$, and $k_a \\approx r\\mu_a$ now.\n\n"


def last(text: str, problem: str = "attention-2021", file: str = "sheet.md") -> str:
    return grade(text, problem, file).statements[-1].verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (TWO + "So $s_a = s_b = t$.", "right"),
        (TWO + "So $s_a = 2t$.", "wrong"),
        (TWO + "So $s_i = 0$ for $i \\neq a, b$.", "right"),
        (TWO + "So $s_i = t$ for $i \\neq a, b$.", "wrong"),
        (TWO + "So $\\alpha_a = \\frac{e^{s_a}}{\\sum_i e^{s_i}}$.", "right"),
        (NOISY + "So $\\mathrm{Var}(s_i) = 2\\alpha t^2$.", "right"),
        (NOISY + "So $\\mathrm{Var}(s_i) = \\alpha t^2$.", "wrong"),
        (
            NOISY + "So $s_a \\approx t$ and $s_i \\approx 0$ for $i \\neq a, b$; $\\mathrm{Var}(s_i) = 2\\alpha t^2$.",
            "right",
        ),
        (LONG + "So $s_a \\approx rt$.", "limit"),
        (LONG + "So $s_a - s_b \\approx (r - 1)t$.", "limit"),
        (LONG + "So $s_b \\approx rt$.", "not_read"),  # true where r is 1
    ],
)
def test_scores_that_are_defined_once_hold_in_all_parts(text: str, verdict: str) -> None:
    assert last(SCORES + text) == verdict


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ("$s_a = s_b = t$", "right"),
        ("$z_a = t$", "right"),
        ("$\\ell_i = 0$ for $i \\neq a, b$", "right"),
        ("$z_a = 2t$", "not_read"),
        ("$e_i = 1$ for $i \\neq a, b$", "not_read"),
    ],
)
def test_a_letter_that_may_be_a_score_is_never_wrong(words: str, verdict: str) -> None:
    assert last(f"{TWO}Then {words}.") == verdict


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ("$p_a^{(1)} \\approx \\frac{e^t}{e^t + n - 1}$", "right"),
        ("$p_b^{(2)} \\approx 1$", "limit"),
        ("$p_b^{(1)} \\approx 1$", "wrong"),
    ],
)
def test_weights_of_a_head_may_be_called_p(words: str, verdict: str) -> None:
    found = last(f"(d) i. Let $q_1 = t\\mu_a$ and $q_2 = t\\mu_b$, $t \\gg 0$. Then {words}.")
    assert found in (verdict, "limit" if verdict == "right" else verdict)


def test_g_is_a_scale_where_queries_are_called_q() -> None:
    text = "(b) Take $q = g(k_a + k_b)$, $g$ large. Then $k_a^T q = g$, {}."
    assert last(text.format("$\\|q\\|^2 = 2g^2$")) == "right"
    assert last(text.format("$\\|q\\|^2 = g^2$")) == "wrong"
    assert grade(text.format("$k_b^T q = g$"), "attention-2021", "a.md").statements[0].verdict == "choice"
    assert written(Symbol("ℊ")) == "g"
    assert last("(b) Let $g = t(k_a + k_b)$. Then $k_a^T g = t$.") == "right"  # and a query where none is


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ("For $0 < r < 1$: $c \\approx v_b$.", "limit"),
        ("For $0 < r < 1$: $c \\approx v_a$.", "wrong"),
        ("For $r > 1$ we get $c \\approx v_a$, and for $0 < r < 1$ we get $c \\approx v_b$.", "limit"),
        ("$r = 1$ exactly: $c \\approx \\frac12(v_a + v_b)$.", "limit"),
    ],
)
def test_a_letter_between_two_numbers_is_a_condition(words: str, verdict: str) -> None:
    assert last(LONG + words) == verdict


@pytest.mark.parametrize("told", ["0 < r < 1", "1 > r > 0", "|r - 1| \\ll 1", "r > 1"])
def test_a_range_of_a_letter_is_never_wrong(told: str) -> None:
    found = grade(f"{LONG}For $r > 1$ we get $c \\approx v_a$. Next let ${told}$.", "attention-2021", "sheet.md")
    assert found.statements[-1].verdict in ("choice", "not_read")


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ("$k_a^T q \\approx wt + t$", "limit"),
        ("$k_a^T q \\approx (1 + w)t$", "limit"),
        ("$k_a^T q \\approx wt$", "wrong"),
        ("at $1 + w = 0.5$", "choice"),
    ],
)
def test_a_length_beside_a_rest_in_words(words: str, verdict: str) -> None:
    head = "(c) ii. With $q = t(\\mu_a + \\mu_b)$ and $k_a = (1 + w)\\mu_a + \\text{tiny noise}$ we see "
    assert last(f"{head}{words}.") == verdict


def test_noise_with_a_deviation_of_its_own_letter() -> None:
    head = "(c) i. Let $q = t(\\mu_a + \\mu_b)$. With $k_i = \\mu_i + \\sigma\\xi_i$, $\\xi_i \\sim N(0, I)$, "
    assert last(f"{head}$\\mathrm{{Var}}(k_i^T q) = 2\\sigma^2 t^2$.") == "right"
    assert last(f"{head}$\\mathrm{{Var}}(k_i^T q) = 2\\sigma t^2$.") == "wrong"
    long = (
        "(c) ii. Let $q = t(\\mu_a + \\mu_b)$, $k_i = \\mu_i + \\sigma\\xi_i$, $k_a = \\ell_a\\mu_a + \\sigma\\xi_a$. "
    )
    assert grade(long, "attention-2021", "a.md").statements[-1].verdict != "wrong"
    assert last(f"{long}For $\\ell_a > 1$ we have $c \\approx v_a$.") == "limit"


@pytest.mark.parametrize(
    ("words", "verdict"),
    spread(
        [
            ("$k_a^T q \\sim N(t, 2\\alpha t^2)$", "right"),
            ("$k_a^T q \\sim N(t, \\alpha t^2)$", "wrong"),
            ("$k_a^T q \\sim N(2t, 2\\alpha t^2)$", "wrong"),
            ("$\\sqrt{\\mathrm{Var}(k_a^T q)} = t\\sqrt{2\\alpha} \\approx 1.41 t\\sqrt{\\alpha}$", "limit"),
            ("as $\\alpha \\to 0$ the scores do not move and $c \\approx \\frac12(v_a + v_b)$", "limit"),
            ("as $\\alpha \\to 0$ it is not true that $c \\approx v_a$", "not_read"),
            ("$\\mathrm{Var}(k_a^T q) = 2\\alpha t^2$ does not matter", "right"),
            ("$\\mathrm{Var}(k_a^T q) = 3\\alpha t^2$ does not matter", "wrong"),
            ("$\\mathrm{Var}(k_a^T q) = 3\\alpha t^2$ does not hold", "choice"),
        ],
        3,
    ),
)
def test_small_noise(words: str, verdict: str) -> None:
    assert last(f"{NOISY}Here {words}.") == verdict


@pytest.mark.parametrize(("number", "verdict"), [("0.71", "limit"), ("0.5", "wrong"), ("0.9", "wrong")])
def test_a_rounded_factor_of_a_scale(number: str, verdict: str) -> None:
    assert (
        last(f"{LONG}$\\sqrt{{\\mathrm{{Var}}(k_a^T q)}} = t\\sqrt{{1/2 + 2\\alpha}} \\approx {number}t$.") == verdict
    )


def test_coordinates_as_a_list_with_or_without_a_transpose() -> None:
    head = "(b) i. With $A = [a_1, \\dots, a_m]$ and $v_a = c_1 a_1 + \\dots + c_m a_m$, "
    for listed in ("(c_1, \\dots, c_m)", "(c_1, \\dots, c_m)^T"):
        assert last(f"{head}$A^T v_a = {listed}$.", "attention-2022") == "right"


def test_macros_stand_apart_from_a_command_before_them() -> None:
    text = (
        "\\newcommand{\\dotp}[2]{#1^\\top #2}\\begin{document}\n\\section*{(b)} Let $q = t(k_a + k_b)$. "
        "Then $\\dotp{k_a}{q}=\\dotp{k_b}{q}=t$.\n\\section*{(c)} i. The same.\\end{document}"
    )
    found = grade(text, "attention-2021", "sheet.tex")
    assert [(s.part, s.verdict) for s in found.statements] == [("b", "choice"), ("b", "right")]


def test_a_length_that_words_name() -> None:
    head = "(d) ii. Let $q_1 = t\\mu_a$ and $q_2 = t\\mu_b$; call the length of $k_a$ along $\\mu_a$ $m = 1 + w$. Then "
    assert last(f"{head}$k_a^T q_1 \\approx mt$.") == "limit"
    assert last(f"{head}$k_a^T q_2 \\approx mt$.") == "wrong"


def test_labels_of_typst_in_another_font() -> None:
    text = "== (c) One head\n_i._ Take $q = t (mu_a + mu_b)$.\n\n_ii._ Then $k_b^T q approx t$.\n"
    found = grade(text, "attention-2024", "sheet.typ")
    assert [(s.part, s.verdict) for s in found.statements] == [("c.i", "choice"), ("c.ii", "limit")]
