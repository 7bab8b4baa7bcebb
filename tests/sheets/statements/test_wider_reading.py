"""Notations, conditions in words and kinds of statements beyond the plainest."""

from __future__ import annotations

import pytest
from marks import spread

from qkv.sheets.pipeline import grade
from qkv.sheets.reading import read_sheet
from qkv.sheets.statements.bindings import compared_keys
from qkv.sheets.statements.circumstances import circumstances
from qkv.sheets.statements.deciding import Budget, ClaimText, canonical, decide, is_remembered
from qkv.sheets.statements.parser import parse

TWO = "(b) We take $q = s(k_a + k_b)$ with $s$ large.\n\n"
LONG = "(c) ii. Our query was $q = s(\\mu_a + \\mu_b)$, and $k_a \\approx r\\mu_a$ now.\n\n"


def last(text: str, problem: str = "attention-2021") -> str:
    return grade(text, problem, "sheet.md").statements[-1].verdict


@pytest.mark.parametrize(
    ("words", "verdict"),
    spread(
        [
            (r"$\overset{\text{score}}{k_a^T q} = \underbrace{s}_{\text{large}}$", "right"),
            (r"$\underbrace{k_a^T q = 2s}_{\text{twice}}$", "wrong"),
            (r"$k_b^T q = s \quad (s \gg 0)$", "right"),
            (r"$\alpha_b = \frac{e^s}{2e^s + \sum_{others} e^0}$", "right"),
            (r"$\alpha_b = \frac{e^s}{e^s + \sum_{others} e^0}$", "wrong"),
            (r"$\alpha_b = \frac{e^s}{2e^s + n}$", "wrong"),  # the number of the others is not n
            (r"$\alpha_b = \frac{e^s}{2e^s}$", "limit"),  # what is small was left out
            (r"$\alpha_b = \frac{e^s}{2e^s + n - 2} = \frac12$", "limit"),
            (r"With $s = 9$ and $n = 30$ this is $\alpha_a \approx 0.499$.", "limit"),
            (r"With $s = 1$ and $n = 30$ this is $\alpha_a \approx 0.499$.", "wrong"),
            (r"It is then $\alpha_a \approx 0.497$.", "not_read"),  # numbers of an example that was not read
            (r"The denominator is $Z = 2e^s + n - 2$.", "right"),
            (r"The denominator is $Z = e^s + n - 2$.", "wrong"),
        ],
        4,
    ),
)
def test_orthonormal_keys(words: str, verdict: str) -> None:
    assert last(TWO + words) == verdict


def test_weights_are_no_scores_without_a_sign_of_it() -> None:
    half = r"(b) Let $q = \frac12 (k_a + k_b)$. Hence "
    assert last(half + r"$\alpha_a = \alpha_b = \frac12$.") == "wrong"
    assert last(half + r"the scores before the softmax are $\alpha_a = \alpha_b = \frac12$.") == "right"


def test_what_holds_for_any_query() -> None:
    assert last(r"(b) In general $c = \sum_i \alpha_i v_i$.") == "right"
    assert last(r"(b) In general $\alpha_a = \frac12$.") == "not_read"


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        (r"If $r$ is slightly larger than 1, then $c \approx v_a$.", "limit"),
        (r"If $r$ is slightly smaller than 1, then $c \approx v_a$.", "not_read"),  # slow to accuse
        (r"When $k_a^T q > k_b^T q$ we see $c \approx v_a$.", "limit"),
        (r"In some samples $c \approx v_b$.", "limit"),
        (r"A draw with a shorter $k_a$ gives $c \approx v_b$.", "limit"),
        (r"$\frac{e^{rs}}{e^{rs} + e^s} = \frac{1}{1 + e^{(1-r)s}} = \sigma((r - 1)s)$", "limit"),
        (r"$\frac{e^{rs}}{e^{rs} + e^s} = \frac{1}{1 + e^{(r-1)s}}$", "wrong"),
    ],
)
def test_a_key_of_random_length(words: str, verdict: str) -> None:
    assert last(LONG + words) == verdict


@pytest.mark.slow
def test_two_equal_heads_do_not_help() -> None:
    text = "(d) i. Let $q_1 = q_2 = s(\\mu_a + \\mu_b)$.\n\nii. For each sample $c \\approx \\frac12(v_a + v_b)$."
    assert last("(c) ii. We have $k_a \\approx r\\mu_a$.\n\n" + text) == "wrong"


def test_a_fixed_large_scale() -> None:
    text = "(d) i. Use $q_1 = 80\\mu_a$ and $q_2 = 80\\mu_b$, so "
    assert last(text + r"$c_1 \approx v_a$.") == "limit"
    assert last(text + r"$c_1 \approx v_b$.") == "wrong"


def test_a_chain_that_chooses_a_matrix() -> None:
    text = r"(b) i. At first $M = A^T$ came to mind. Better is $M = A A^T = \sum_{i=1}^m a_i a_i^T$."
    assert last(text, "attention-2022") in ("right", "choice")


def test_what_a_choice_gives() -> None:
    text = r"(d) i. One gets $c_1 \approx v_a$ by setting $q_1 = \mu_a$ and $q_2 = \mu_b$."
    assert grade(text, "attention-2021", "s.md").statements[0].verdict == "wrong"


def test_otherwise_refers_to_its_own_paragraph() -> None:
    gap = "\n" * 12
    text = TWO + r"$\alpha_i \to 0$ for $i \neq a, b$." + gap + r"And $k_i^T q = 0$ otherwise."
    assert last(text) == "right"


def test_compared_keys() -> None:
    def sign(math: str) -> str:
        return compared_keys(parse(math)[0])

    assert [sign(r"k_a^T q > k_b^T q"), sign(r"\alpha_b > \alpha_a"), sign(r"k_a^T q > 1")] == [">", "<", ""]


def test_every_and_some_samples() -> None:
    def said(text: str) -> tuple[bool, bool]:
        found = circumstances(read_sheet(text, "s.md").formulas[0])
        return found.every, found.some

    assert said("(c) It is always $c = v_a$.") == (True, False)
    assert said("(c) Sometimes $c = v_a$.") == (False, True)


def test_own_command_around_rows() -> None:
    text = "(b) Let $q = k_a$.\n\\eqs{\n k_a^T q &= k_a^T k_a \\\\\n &= 1\n}\nDone."
    assert [f.math for f in read_sheet(text, "s.tex").formulas][1:] == ["k_a^T q &= k_a^T k_a", "&= 1"]


def test_capital_and_listed_labels() -> None:
    assert read_sheet("(A) $x = 1$\n\n(B) $y = 2$\n\n(C) $z = 3$", "s.md").parts == ("a", "b", "c")
    typst = "= Attention\n\n== (a) One\n\n+ $k_a = 1$\n+ $k_b = 2$\n\n== (b) Two\n\n$k_c = 3$\n"
    assert [f.part for f in read_sheet(typst, "s.typ").formulas] == ["a.i", "a.ii", "b"]


def test_verdicts_are_shared_by_letters() -> None:
    def claim(scale: str) -> ClaimText:
        given = ("k_1..k_n orthonormal", "n >= 3", f"{scale} > 0")
        return ClaimText(given, (f"q = {scale}*(k_a + k_b)",), f"k_a'*q = 2*{scale}")

    assert canonical(claim("lambda").text)[0] == canonical(claim("beta").text)[0]
    first = decide(claim("lambda"), Budget())
    assert is_remembered(claim("beta").text)
    second = decide(claim("beta"), Budget(seconds=0.0))
    assert first is not None and second is not None
    assert first.verdict == second.verdict == "refuted"
    assert "lambda" in first.because and "beta" in second.because
    assert "lambda" not in second.because


def test_letters_that_clash_are_not_renamed() -> None:
    text = "given lambda > 0, t free\nthen  lambda*t = 0"
    assert canonical(text) == (text, {})


@pytest.mark.parametrize(
    "expectation", [r"\mathrm{E}[%s]", r"E[%s]", r"\text{E}(%s)", r"E\left[%s\right]", r"\mathbb{E}[%s]"]
)
def test_an_e_before_a_bracket_is_the_expectation(expectation):
    score = expectation % r"k_a^\top q"
    sheet = rf"(c) i. Take $q=\lambda(\mu_a+\mu_b)$ for large $\lambda$. Then ${score} = \lambda$, not ${score} = 1$."
    told = [s.verdict for s in grade(sheet, "attention-2021").statements if s.formula.endswith(r"= \lambda")]
    assert told == ["right"]


def test_an_index_condition_without_dollar_signs_has_all_its_letters():
    sheet = "(b) Choose q = β(k_a + k_b) , β very large.\n    k_iᵀq = 0   for i ≠ a, b\n    k_iᵀq = 1   for i ≠ a, b\n"
    told = [(s.verdict, s.claim.splitlines()[-1]) for s in grade(sheet, "attention-2021").statements[1:]]
    assert [verdict for verdict, _ in told] == ["right", "wrong"]
    assert all(claim.endswith("for i != a, b") for _, claim in told)


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        (r"$\alpha_a = \frac{e^s}{e^s + e^s + 1}$", "wrong"),  # other items counted as one
        (r"$\alpha_a \approx \frac{e^s}{e^s + e^s + 1}$", "limit"),
        (r"A smaller query would only give $\alpha_a = \frac{e}{2e + n - 2}$.", "not_read"),
        (r"If we do not scale (i.e. $s = 1$), $\alpha_a = \frac{e}{2e + n - 2}$.", "right"),
        (r"In the same way we find for the third one $\alpha_b \approx 1$.", "not_read"),
        (r"For example $n = 10,\ s = 10$ gives $\alpha_a \approx 0.4998$.", "limit"),
        (r"$\lim_{s \to 0} \alpha_a = \frac12$", "wrong"),
        (r"$\lim_{s \to \infty} \alpha_a = \frac12$", "limit"),
        (r"$c \not\approx v_a$", "limit"),
        (r"$k_a^T q \gg \max_{i \neq a, b} k_i^T q$", "limit"),
        (r"$(k_a^T q, k_b^T q) = (s, s)$", "right"),
        (r"$(k_a^T q, k_b^T q) = (s, 0)$", "wrong"),
        (r"$k_i^T q = \begin{cases} s & i \in \{a, b\} \\ 0 & \text{for all other } i \end{cases}$", "right"),
        (r"$k_i^T q = 0$ when $i \ne a$ and $i \ne b$.", "right"),
        (r"$k_a^T q = s \in \mathbb{R}$", "right"),
        (
            r"As $s \to \infty$ the weight $\alpha_a = \frac{e^s}{2e^s + n - 2}$ grows, and this is $\approx \frac12$.",
            "limit",
        ),
    ],
)
def test_cases_examples_and_counts(words: str, verdict: str) -> None:
    assert last(TWO + words) == verdict


NOISY = r"(c) i. $q = s(\mu_a + \mu_b)$ with $s \gg 0$ and $\Sigma_i = \sigma^2 I$." + "\n\n(c) ii. "


@pytest.mark.parametrize(
    ("words", "verdict"),
    spread(
        [
            (r"$\mathrm{Var}(k_a^T q) = 2\sigma^2 s^2 + \frac12 s^2$", "right"),  # the author's letter for the noise
            (r"$\mathbb{E} \langle k_a, q \rangle = s$", "right"),
            (r"$k_a \approx \mu_a + \delta \mu_a$, so $k_a^T q \approx (1 + \delta) s$", "limit"),
            (r"$k_a \approx r \mu_a$, and only $r = 1$ gives $\alpha_a \approx \alpha_b$", "limit"),
            (r"$k_a \approx r \mu_a$ and $\alpha_a \approx \frac{r}{r + 1}$", "wrong"),
            (r"$k_a \approx r \mu_a$. When $r < 1$, $\alpha_a \approx 0$ and $\alpha_b \approx 1$", "limit"),
            (r"$k_a \approx r \mu_a$ and in general $c \not\approx \frac12(v_a + v_b)$", "limit"),
            (r"$\mathrm{Var}(c) \approx 0$", "not_read"),
        ],
        3,
    ),
)
def test_noise_and_lengths(words: str, verdict: str) -> None:
    assert last(NOISY + words) == verdict


def test_each_assertion_keeps_its_own_condition() -> None:
    text = NOISY + r"$k_a \approx r \mu_a$ and $c \approx v_a$ when $r > 1$, and $c \approx v_b$ when $r < 1$."
    found = grade(text, "attention-2021", "sheet.md").statements
    assert [s.verdict for s in found if s.formula.startswith("c")] == ["limit", "limit"]
