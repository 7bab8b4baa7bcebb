"""Answers found in sheets of several forms and languages, written for these tests."""

import random

import pytest
from marks import spread

from qkv.sheets import grade
from qkv.sheets.answers import answers_of
from qkv.sheets.problems import load_problem
from qkv.sheets.reading import read_sheet


def answers(text, problem="attention-2021", file="sheet.md"):
    found = {}
    for answer in answers_of(read_sheet(text, file), load_problem(problem)):
        found.setdefault(answer.part, []).append(answer)
    return found


def verdict(text, part, problem="attention-2021", place=0):
    return answers(text, problem)[part][place].verdict


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (r"Choose $q = \beta(k_a + k_b)$ with $\beta$ large.", "limit"),
        (r"Choose $\mathbf{q} = C\,(\mathbf{k}_a + \mathbf{k}_b)$.", "limit"),
        (r"First try $q = k_a + k_b$: too flat. Better, $q = s(k_a + k_b)$.", "limit"),
        (r"$q = s(k_a+k_b)$, and not $q = k_a + k_b$.", "limit"),
        (r"$q = k_a + k_b$, multiplied by a very large number", "limit"),
        (r"$q^\top = s (k_a+k_b)^\top$", "limit"),
        (r"$q = \lim_{s \to \infty} s(k_a+k_b)$", "limit"),
        (r"$q \propto k_a + k_b$", "limit"),
        (r"Let $q = k_a + k_b$, and then $q = s q$.", "limit"),
        (r"$q = k_a + k_b$. Use a large multiple of it.", "limit"),
        (r"令 $q = A(K_a + K_b)$，其中 A 很大", "limit"),
        (r"$$q = \frac{k_a + k_b}{2}$$", "misses"),
        (r"$q = \frac{k_a}{\|k_a\|} + \frac{k_b}{\|k_b\|}$", "misses"),
        (r"$q = s k_a + r k_b$", "not_read"),
        (r"$q = s (v_a + v_b)$", "misses"),
        ("A long query between both keys does it.", "prose"),
        ("", "none"),
    ],
)
def test_queries_as_people_write_them(written, wanted):
    assert verdict(f"(b) {written}\n", "b") == wanted


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (r"$k_j^\top q \gg k_i^\top q$ for every $i \neq j$", "limit"),
        (r"$k_i^\top q \ll k_j^\top q$", "limit"),
        (r"the product $k_j \cdot q$ has to be far greater than all other products", "limit"),
        (r"$q = \lambda k_j$ where $\lambda \to \infty$", "limit"),
        (r"$q$ 与 $k_j$ 的内积远大于其他内积", "limit"),
        (r"$k_j^\top q > k_i^\top q$", "misses"),
        (r"$q \approx k_j$ while the keys are orthogonal", "misses"),
        (r"$q \perp k_i$ for all $i$", "misses"),
        (r"the query resembles the key of the item", "prose"),
    ],
)
def test_conditions_for_copying(written, wanted):
    assert verdict(f"(a) {written}\n", "a") == wanted


SCALED = r"$q_1 = \beta\mu_a$ and $q_2 = \beta\mu_b$"


@pytest.mark.parametrize(
    ("queries", "said", "wanted"),
    spread(
        [
            (SCALED, r"$c$ stays close to $\frac{1}{2}(v_a + v_b)$.", "limit"),
            (SCALED, r"We get $c_1 \approx v_a$, $c_2 \approx v_b$ in every sample.", "limit"),
            (SCALED, r"$c$ swings between $v_a$ and $v_b$.", "misses"),
            (SCALED, r"If $k_a$ is short, $c \approx \frac{1}{2} v_b$.", "misses"),
            (SCALED, r"The variance of $c_1$ is large.", "misses"),
            (SCALED, r"$k_a^\top q_1$ has a large variance, yet the output hardly moves.", "prose"),
            (SCALED, r"Unlike the single head, for which $c \approx v_a$ may happen, this is stable.", "prose"),
            (r"$q_1 = \mu_a$, $q_2 = \mu_b$", r"$c \approx \frac{1}{2}(v_a + v_b)$ still.", "misses"),
            (r"$q_1 = q_2 = \beta(\mu_a + \mu_b)$", r"$c \approx v_a$ or $c \approx v_b$.", "limit"),
            (
                SCALED,
                r"If $q_1 = q_2 = \beta(\mu_a+\mu_b)$ were used, $c$ would flip between $v_a$ and $v_b$.",
                "limit",
            ),
        ],
        3,
    ),
)
def test_what_two_heads_do_over_samples(queries, said, wanted):
    assert verdict(f"(d) i. {queries}\n\nii. {said}\n", "d.ii") == wanted


def test_a_whole_sheet_in_latex():
    text = r"""
\begin{enumerate}[label=(\alph*)]
\item \begin{enumerate}[label=\roman*.]
  \item Weights are non-negative, $\alpha_i \ge 0$, and $\sum_{i=1}^n \alpha_i = 1$.
  \item $k_j^\top q \gg k_i^\top q$ for $i \ne j$.
  \item Then $c \approx v_j$.
  \item The value of the matching key is handed on.
\end{enumerate}
\item \begin{enumerate}[label=\roman*.]
  \item With $P = [a_1, \dots, a_m]$ put $M = P P^\top$.
  \item $q = \tau (k_a + k_b)$, $\tau \gg 0$.
\end{enumerate}
\item \begin{enumerate}[label=\roman*.]
  \item $q = \tau(\mu_a + \mu_b)$
  \item With $k_a \approx \eta \mu_a$: if $\eta > 1$ then $c \approx v_a$, if $\eta < 1$ then $c \approx v_b$.
\end{enumerate}
\item \begin{enumerate}[label=\roman*.]
  \item $q_1 = \mu_a$, $q_2 = \mu_b$
  \item $c \approx \frac{v_a + v_b}{2}$ again.
\end{enumerate}
\end{enumerate}
"""
    found = answers(text, "attention-2022", "sheet.tex")
    assert {part: one[0].verdict for part, one in found.items()} == {
        "a.i": "meets", "a.ii": "limit", "a.iii": "limit", "a.iv": "prose", "b.i": "meets", "b.ii": "limit",
        "c.i": "limit", "c.ii": "limit", "d.i": "misses", "d.ii": "misses",
    }  # fmt: skip
    assert found["d.ii"][0].follows_from == found["d.i"][0].line == 18
    assert "read" not in found["d.i"][0].because


def test_matrices_and_tokens():
    text = r"""
(e) i. $c_2 \approx u_a$. It is impossible: with $x_2 = u_a + u_d$ we get $c_2 \approx u_a + u_d$.

ii. $V = \frac{1}{\beta^2}(u_b u_b^T - u_c u_c^T)$, $K = I$,
$Q = \frac{1}{\beta^2}(u_d u_a^T + u_c u_d^T)$
"""
    found = answers(text)
    assert [a.verdict for a in found["e.i"]] == ["limit", "limit"]
    assert [a.verdict for a in found["e.ii"]] == ["meets", "limit"]


def test_a_part_without_a_label_begins_with_its_construction():
    text = r"""
(c) i. $q = t(\mu_a + \mu_b)$

Now $k_a \approx \gamma \mu_a$, and for $\gamma > 1$ we have $c \approx v_a$.
"""
    found = answers(text)
    assert (found["c.i"][0].verdict, found["c.ii"][0].verdict) == ("limit", "limit")


def test_an_earlier_construction_that_is_right_keeps_a_later_one_from_being_accused():
    answer = answers(r"(b) $q = t(k_a+k_b)$. In short $q = k_a + k_b$.")["b"][0]
    assert answer.verdict == "not_read" and "two readings" in answer.because


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (r"$M = a_1 a_1^\top + a_2 a_2^\top + \dots + a_m a_m^\top$", "meets"),
        (r"$M = \sum_{j=1}^m a_j a_j^\top$", "meets"),
        (r"The rows of $A$ are the $a_i$, and $M = A^\top A$.", "meets"),
        (r"$M = A^\top A$", "not_read"),
        (r"$M = \begin{bmatrix} a_1^\top \\ \vdots \\ a_m^\top \end{bmatrix}$", "misses"),
    ],
)
def test_projections_as_people_write_them(written, wanted):
    assert verdict(f"(b) i. {written}\n", "b.i", "attention-2022") == wanted


def test_a_statement_about_the_part_before_does_not_count_against_what_is_asked():
    text = (
        r"(c) i. $q = t(\mu_a+\mu_b)$ gave"
        + "\n\n"
        + r"ii. There $c \approx \frac{1}{2}(v_a+v_b)$. Now $c \approx v_a$ or $c \approx v_b$."
    )
    assert verdict(text, "c.ii") == "not_read"
    assert verdict(text.replace("There", "Still").split("Now")[0], "c.ii") == "misses"


def test_every_question_has_an_entry_in_the_order_of_the_problem():
    for name in ("attention-2021", "attention-2022", "attention-2024"):
        problem = load_problem(name)
        found = answers_of(read_sheet("nothing here", "x.txt"), problem)
        assert [a.part for a in found] == [q.part for q in problem.questions]
        assert {a.verdict for a in found} == {"none"}


def test_garbled_sheets_never_fail():
    chance = random.Random(3)
    text = r"(b) $q = t(k_a+k_b)$ (c) i. $q=\frac{\mu_a}{2}$ ii. $c \approx v_a$ when $\gamma > 1$ "
    text += r"(d) i. $q_1 = \mu_a, q_2 = t\mu_b$"
    problem = load_problem("attention-2021")
    for _ in range(12):
        changed = list(text)
        for _ in range(chance.randint(1, 10)):
            place = chance.randrange(len(changed))
            changed[place : place + chance.randint(0, 4)] = chance.choice("{}$\\_^()=≫ \n\x00'")
        found = answers_of(read_sheet("".join(changed), "x.md"), problem)
        assert not any("bug" in a.because for a in found)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (r"Take $q$ to be $r(k_a + k_b)$ for a large $r$.", "limit"),
        (r"A query that does it: q = $r(k_a + k_b)$", "limit"),
        (r"Take $q$ to be $k_a + k_b$.", "misses"),
        (r"$$\boxed{q = r(k_a+k_b)}$$", "limit"),
        (r"$q^* = r \sum_{i\in\{a,b\}} k_i$", "limit"),
        (r"With $h = k_a + k_b$ put $q = r h$.", "limit"),
        (r"$q = r(k_a + k_b)$, whereas $q = k_a + k_b$ would be too flat", "limit"),
        (r"$q = (k_a+k_b)/\tau,\ \tau \to 0^+$", "limit"),
        (r"The direction of $q$ is $k_a + k_b$.", "not_read"),
    ],
)
def test_queries_in_words_and_other_notations(written, wanted):
    assert verdict(f"(b) {written}\n", "b") == wanted


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (r"$(q_1, q_2) = (r\mu_a, r\mu_b)$", "limit"),
        (r"$(q_1, q_2) = (\mu_a, \mu_b)$", "misses"),
        (r"$q_1 = r(\mu_a + \mu_b) = q_2$", "limit"),
        (r"$q_i = r\mu_i$ for $i \in \{a, b\}$", "limit"),
        (r"$q_1 = 200\mu_a$, $q_2 = 200\mu_b$", "limit"),
        (r"$q_1 = 200\mu_a$, $q_2 = 2\mu_b$", "not_read"),
    ],
)
def test_pairs_of_queries(written, wanted):
    assert verdict(f"(d) i. {written}\n", "d.i") == wanted


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (r"$M = I - B B^\top$", "meets"),
        (r"$M = B B^\top$", "misses"),
        (r"$M = A A'$", "meets"),
        (r"$M = Σ_i a_i a_i^T$", "meets"),
        (r"$M = \sum_{k=1}^{\dim A} a_k \otimes a_k$", "meets"),
        (r"Stack the basis vectors as columns of $H$; $M = H H^\top$", "meets"),
        (r"$P_A = A A^\top$ and $M = P_A$", "meets"),
        (r"$M = A^\top A$, the columns of $A$ being $a_1, \dots, a_m$", "misses"),
    ],
)
def test_projections_in_other_notations(written, wanted):
    assert verdict(f"(b) i. {written}\n", "b.i", "attention-2022") == wanted


ONE_HEAD = r"(c) i. $q = \beta(\mu_a + \mu_b)$"


@pytest.mark.parametrize(
    ("query", "said", "wanted"),
    [
        (
            ONE_HEAD,
            r"$k_a = (1+\delta)\mu_a$: for $\delta > 0$, $c \approx v_a$, for $\delta < 0$, $c \approx v_b$",
            "limit",
        ),
        (ONE_HEAD, r"$k_a = (1+\delta)\mu_a$: for $\delta < 0$, $c \approx v_a$", "misses"),
        (ONE_HEAD, r"$c \approx v_a$ if $\|k_a\| > 1$, and $c \approx v_b$ if $\|k_a\| < 1$", "limit"),
        (ONE_HEAD, r"$c \approx v_b$ if $\|k_a\| > 1$, and $c \approx v_a$ if $\|k_a\| < 1$", "misses"),
        (ONE_HEAD, r"If $\|k_a\| > 1$ then $c \approx v_a$, otherwise $c \approx v_b$.", "limit"),
        (ONE_HEAD, r"$c \approx \begin{cases} v_a & \|k_a\| > 1 \\ v_b & \|k_a\| < 1 \end{cases}$", "limit"),
        (ONE_HEAD, r"$c$ jumps between $v_a$ and $v_b$; $c \approx \frac12(v_a+v_b)$ 不成立.", "limit"),
        (ONE_HEAD, r"$c$ 在 $v_a$ 和 $v_b$ 之间波动", "limit"),
        (ONE_HEAD.replace(r"\beta", ""), r"$c$ is closer to $v_a$ where $k_a$ is long.", "meets"),
        (ONE_HEAD.replace(r"\beta", ""), r"The variance of $c$ grows.", "prose"),
        (ONE_HEAD.replace(r"\beta", r"\gamma"), r"$\|k_a\| > 1$ gives $c \approx v_a$", "limit"),
    ],
)
def test_what_one_head_does_over_samples(query, said, wanted):
    assert verdict(f"{query}\n\nii. {said}\n", "c.ii") == wanted


def test_a_scale_called_gamma_is_not_the_length():
    text = (
        "(c) ii. $k_a = \\gamma\\mu_a$ and $c \\approx v_a$ for $\\gamma > 1$\n\n(d) i. $q_1 = \\gamma\\mu_a$, "
        "$q_2 = \\gamma\\mu_b$ with $\\gamma \\gg 0$\n\nii. $c \\approx \\frac12(v_a + v_b)$ for large $\\gamma$\n"
    )
    assert verdict(text, "d.ii") == "limit"


@pytest.mark.parametrize(
    ("part", "written", "wanted"),
    [
        ("a.i", r"Every $\alpha_i \in [0, 1]$, and they sum to one.", "meets"),
        ("a.i", r"$\alpha_i \ge 0$ as exponentials are.", "prose"),
        ("a.ii", r"$k_j^\top q > k_i^\top q$ by a wide margin", "limit"),
        ("a.ii", r"$s_j \gg s_i$ for the scores", "limit"),
        ("a.iii", r"输出 $c$ 近似等于 $k_j$ 对应的 $v_j$", "limit"),
        ("a.iii", r"The vector $v_j$ is copied to the output.", "limit"),
        ("a.iii", r"$\|c - v_j\| \approx 0$", "limit"),
        ("a.iii", "So C will approximate v_j .", "limit"),
        ("a.iii", r"$c$ is not close to $v_j$", "prose"),
    ],
)
def test_the_first_part_in_words(part, written, wanted):
    assert verdict(f"(a) {part[2:]}. {written}\n", part, "attention-2022") == wanted


def test_two_constructions_that_are_offered_are_two_answers():
    text = r"(d) i. For example $q_1 = q_2 = r(\mu_a + \mu_b)$, or else $q_1 = r\mu_a$ and $q_2 = r\mu_b$."
    found = answers(text)["d.i"]
    assert [a.verdict for a in found] == ["limit", "limit"]
    assert "q_1 = r μ_a" in found[1].because
    assert len(answers(text.replace(r"q_1 = q_2 = r(\mu_a", r"q_1 = q_2 = (\mu_a"))["d.i"]) == 1


@pytest.mark.parametrize(
    ("words", "verdict"), [("$q = 6(k_a + k_b)$.", "limit"), ("$q = 6(k_a + k_b)$, $n = 1000$.", "not_read")]
)
def test_a_stated_number_of_items_is_respected(words: str, verdict: str) -> None:
    found = grade(f"(b) {words} So $c \\approx \\frac12(v_a + v_b)$.", "attention-2021")
    assert next(a.verdict for a in found.answers if a.part == "b") == verdict
    assert found.statements[-1].verdict == verdict


@pytest.mark.parametrize(
    "words",
    [
        r"$q = \lambda_1 k_a + \lambda_2 k_b$ with $\lambda_1 = \lambda_2$ large.",
        r"$q = s k_a + t k_b$, both with the same large constant.",
        r"$q = t(k_a^\top + k_b^\top)^\top$ for $t \to \infty$.",
        r"$q = k(k_a + k_b)$ where $k$ is large.",
    ],
)
def test_equal_scales_rows_and_scales_called_like_vectors(words: str) -> None:
    found = grade(f"(b) {words}", "attention-2021")
    assert next(a.verdict for a in found.answers if a.part == "b") == "limit"


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        (r"$A = \begin{pmatrix} a_1^T \\ \vdots \\ a_m^T \end{pmatrix}$ and $M = A A^T$.", "misses"),
        (r"$A = \begin{pmatrix} a_1^T \\ \vdots \\ a_m^T \end{pmatrix}$ and $M = A^T A$.", "meets"),
        (r"$M = UU^T$ where $U$ has the vectors $a_1, \dots, a_m$ as its columns.", "meets"),
    ],
)
def test_rows_that_are_written_out_are_rows(words: str, verdict: str) -> None:
    found = grade(f"(b) i. {words}", "attention-2022")
    assert next(a.verdict for a in found.answers if a.part == "b.i") == verdict


def test_an_outcome_under_a_condition_that_is_not_understood_does_not_miss() -> None:
    text = (
        "(d) i. $q_1 = t\\mu_a$, $q_2 = t\\mu_b$, $t \\gg 0$.\n\n(d) ii. $k_a \\approx (1 + z)\\mu_a$. So "
        "$c \\approx \\frac12(v_a + v_b)$. Only if $z = -1$ would the first head give $c_1 = \\frac1n\\sum_i v_i$."
    )
    found = grade(text, "attention-2024")
    assert next(a.verdict for a in found.answers if a.part == "d.ii") == "limit"


def test_a_tendency_of_an_unscaled_query_is_not_a_miss() -> None:
    head = (
        "(c) i. Take $q = \\mu_a + \\mu_b$.\n\n(c) ii. Now $k_a \\approx z\\mu_a$, hence $k_a^T q \\approx z$ and "
        "$c \\approx \\frac{e^z}{e^z + e} v_a + \\frac{e}{e^z + e} v_b$. So "
    )
    towards = "$c$ moves towards $v_a$ when $z$ is large and towards $v_b$ when $z$ is small."
    reached = "$c \\approx v_a$ for $z > 1$ and $c \\approx v_b$ for $z < 1$."
    verdicts = [
        next(a.verdict for a in grade(head + words, "attention-2022", "a.md").answers if a.part == "c.ii")
        for words in (towards, reached)
    ]
    assert verdicts == ["prose", "misses"]
