"""Verdicts on formulas of sheets of our own making: right, in a limit, wrong, chosen, not read."""

from __future__ import annotations

import pytest
from marks import spread

from qkv.sheets.pipeline import grade
from qkv.sheets.problems import load_problem
from qkv.sheets.reading import read_sheet
from qkv.sheets.statements.deciding import Budget
from qkv.sheets.statements.judge import judge


def verdicts(text: str, problem: str = "attention-2021", file: str = "") -> list[str]:
    statements, _ = judge(read_sheet(text, file), load_problem(problem), Budget())
    return [s.verdict for s in statements]


@pytest.mark.parametrize(
    ("formula", "verdict"),
    spread([
        (r"$k_a^T q = t$", "right"),
        (r"$q \cdot k_a = t$", "right"),
        (r"$\langle k_a, q \rangle = t$", "right"),
        (r"$k_a^T q = 2t$", "wrong"),
        (r"$\alpha_a = \alpha_b = \frac{e^t}{2e^t + (n-2)e^0}$", "right"),
        (r"$\alpha_a = \frac{\exp(t)}{\exp(t) + n - 1}$", "wrong"),
        (r"$\alpha_a = \frac12$", "limit"),
        (r"$\alpha_a \approx 1$", "wrong"),
        (r"$\lim_{t\to\infty} \alpha_a = \frac12$", "limit"),
        (r"$c = \alpha_a v_a + \alpha_b v_b$", "limit"),
        (r"$c \approx 0.5 v_a + 0.5 v_b$", "limit"),
        (r"$c \approx v_a$", "wrong"),
        (r"$k_i^T q = 0$ for $i \notin \{a, b\}$", "right"),
        (r"$k_i^T q = 0$", "right"),
        (r"the remaining $\alpha_i \approx 0$", "limit"),
        (r"$k_a^T q = k_b^T q \gg k_i^T q$", "limit"),
        (
            r"$\alpha_i = \begin{cases} \frac{e^t}{2e^t+n-2} & i \in \{a,b\} \\"
            r" \frac{1}{2e^t+n-2} & \text{otherwise}\end{cases}$",
            "right",
        ),
        (r"$\alpha_i = \begin{cases} \frac{1}{2} & i = a \\ \frac{1}{n} & \text{otherwise}\end{cases}$", "wrong"),
        (r"$k_a^T q = v_a$", "wrong"),
        (r"the score is $\alpha_a = q^T k_a = t$", "right"),
        (r"we want $c \approx v_a$", "choice"),
        (r"if $c \approx v_a$", "choice"),
        (r"it is not the case that $\alpha_a \approx 1$, so $\alpha_a \to \frac12$", "limit"),
        (r"$t = 100$", "choice"),
        (r"$\alpha_a = e^t / 2 e^t + n$", "not_read"),
        (r"$\alpha_a = \mathcal{F}(t)$", "not_read"),
    ], 4),
)  # fmt: skip
def test_an_average_of_two(formula: str, verdict: str) -> None:
    found = verdicts(f"(b) Let $q = t(k_a + k_b)$ with a large $t$. Then {formula}.")
    assert found[0] == "choice"
    assert found[-1] == verdict


def test_without_a_scale_an_approximation_is_wrong() -> None:
    text = r"(b) Take $q = \frac{k_a + k_b}{2}$. Then $\alpha_a \approx \frac12$ and $c \approx \frac12 (v_a + v_b)$."
    assert verdicts(text) == ["choice", "wrong", "wrong"]


def test_what_stands_before_the_choice_is_a_goal() -> None:
    text = r"(b) $c \approx \frac12(v_a + v_b)$. So $q = k_a + k_b$."
    assert verdicts(text) == ["choice", "choice"]


@pytest.mark.parametrize(("scale", "query"), [("C", "g"), ("c", "q"), (r"\beta", "q"), ("x", "q"), (r"\log(t)", "q")])
def test_letters_of_the_author(scale: str, query: str) -> None:
    text = rf"(b) ${query} = {scale}(K_a + K_b)$ and $K_a^\top {query} = {scale}$ but $K_a^\top {query} = 3$."
    assert verdicts(text) == ["choice", "right", "wrong"]


NOISE = r"""(c)
i. $q = \beta(u_a + u_b)$. As $\Sigma_i = \alpha I$, $k_i \approx u_i$ and {first}.

ii. Now $\Sigma_a = \alpha I + \frac12 u_a u_a^\top$, so
$k_a \approx \gamma u_a$ with $\gamma \sim N(1, \frac12)$ and {second}.
"""


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (r"$\alpha_a \approx \frac12$", r"$k_a^T q = \gamma \beta$", "limit"),
        (r"$\alpha_a \approx \frac12$", r"$k_a^T q \approx \beta$", "not_read"),
        (r"$\alpha_a \approx \frac12$", r"$k_b^T q \approx \gamma \beta$", "wrong"),
        (r"$\alpha_a \approx \frac12$", r"when $\gamma > 1$, $c \approx v_a$", "limit"),
        (r"$\alpha_a \approx \frac12$", r"when $\gamma < 1$, $c \approx v_a$", "wrong"),
        (r"$\alpha_a \approx \frac12$", r"$\mathrm{Var}[k_a^T q] = \beta^2 (2\alpha + \frac12)$", "right"),
        (r"$\alpha_a \approx \frac12$", r"$\mathrm{Var}[k_a^T q] = \beta^2 (\alpha + \frac12)$", "wrong"),
    ],
)
def test_noisy_keys(first: str, second: str, verdict: str) -> None:
    found = verdicts(NOISE.format(first=first, second=second))
    assert found[:4] == ["choice", "right", "limit", "limit"]
    assert found[4:7] == ["right", "limit", "limit"]
    assert found[-1] == verdict


def test_two_heads() -> None:
    text = (
        r"(d) i. $q_1 = t\mu_a$, $q_2 = t\mu_b$. $c_1 \approx v_a$, $\alpha^{(2)}_b \approx 1$, "
        r"$c = \frac12(c_1 + c_2) \approx \frac12(v_a + v_b)$, $c_2 \approx v_a$."
    )
    assert verdicts(text) == ["choice", "choice", "limit", "limit", "limit", "wrong"]


TOKENS = r"""(e)
i. $k_2^T q_2 = \beta^2$, $\alpha_{22} = \frac{e^{\beta^2}}{e^{\beta^2} + 2} \approx 1$,
$c_2 \approx u_a$, $c_2 \approx u_b$. Say $x_2 = u_a + u_d$. Then $k_2^T q_2 = 2\beta^2$.

ii. $V = (u_b u_b^T - u_c u_c^T) \odot \frac{1}{\beta^2}$, $K = I$, $Q = (u_d u_a^T + u_c u_d^T)/\beta^2$.
$v_1 = u_b$, $\alpha_1 \approx [0, 0, 1]$, $\alpha_2 \approx [0, 1, 0]$, $c_1 \approx v_3 = u_b - u_c$.
"""


def test_tokens_and_matrices() -> None:
    found = verdicts(TOKENS)
    assert found == [
        "right", "limit", "limit", "wrong", "choice", "right",
        "choice", "choice", "choice", "right", "limit", "wrong", "limit",
    ]  # fmt: skip


def test_subspaces() -> None:
    text = (
        r"(b) (i) $A = [a_1, \ldots, a_m]$, $v_a = c_1 a_1 + \cdots + c_m a_m = Ac$, $M = AA^T$. "
        r"$A^T A = I$, $M v_b = A A^T B d = 0$, $Ms = v_a$, $Ms = v_b$."
    )
    assert verdicts(text, "attention-2022") == ["choice", "right", "choice", "right", "right", "right", "wrong"]


def test_aligned_rows_go_on() -> None:
    text = r"""(b) Let $q = t(k_a + k_b)$.
\begin{align*}
\alpha_a &= \frac{\exp(k_a^\top q)}{\sum_{j=1}^n \exp(k_j^\top q)} \\
 &= \frac{e^t}{2e^t + n - 2} \\
 &= \frac{e^t}{2e^t + n} \\
 &\approx \frac12
\end{align*}"""
    assert verdicts(text, file="s.tex") == ["choice", "right", "right", "wrong", "limit"]


def test_the_first_mistake_comes_first() -> None:
    text = "(b) $q = \\frac12(k_a + k_b)$ as asked.\n\nThen $c \\approx \\frac12(v_a + v_b)$."
    found = grade(text, "attention-2021")
    assert [(s.verdict, s.follows_from) for s in found.statements] == [("choice", None), ("wrong", 1)]


def test_a_condition_that_is_not_enough_is_wrong() -> None:
    found = grade("(a) When $k_j^T q > k_i^T q$ for all $i \\neq j$.", "attention-2021")
    assert [s.verdict for s in found.statements] == ["wrong"]
    found = grade("(a) When $k_j^T q \\gg k_i^T q$ for all $i \\neq j$.", "attention-2021")
    assert [s.verdict for s in found.statements] == ["limit"]


def test_notation_is_told() -> None:
    found = grade("(b) $q = \\lambda(K_a + K_b)$, $K_a^T q = \\lambda$", "attention-2021")
    assert found.notation == (("λ", "the scale"), ("K", "the keys"))
    assert "given k_1..k_n orthonormal" in found.statements[1].claim


def test_a_letter_without_numerals_is_read_by_its_formulas() -> None:
    text = "(b) $M = AA^T$ gives $Ms = v_a$. Then $q = t(k_a + k_b)$ gives $k_a^T q = t$."
    assert verdicts(text, "attention-2022") == ["choice", "right", "choice", "right"]
