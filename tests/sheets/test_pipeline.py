"""grade: whatever the text, a grade comes back in time."""

from __future__ import annotations

import random

import pytest

from qkv.errors import QkvError
from qkv.sheets.pipeline import grade

SHEET = r"""# 1. Attention
## (a)
i. When $k_j^T q \gg k_i^T q$ for all $i \neq j$, $\alpha_j \approx 1$.
## (b)
Let $q = \lambda(k_a + k_b)$ with $\lambda \gg 0$. Then $k_a^\top q = \lambda$ and
$$\alpha_a = \begin{cases} \frac{e^\lambda}{2e^\lambda + n - 2} & i = a \\ 0 & \text{otherwise} \end{cases}$$
## (d)
i. \begin{align} q_1 &= \lambda\mu_a \\ q_2 &= \lambda\mu_b \end{align} so $c_1 \approx v_a$.
"""


def test_a_sheet_of_text_only() -> None:
    found = grade("Nothing to see.")
    assert found.statements == ()
    assert found.remarks


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(QkvError):
        grade(3)  # type: ignore[arg-type]
    with pytest.raises(QkvError):
        grade("text", "no such problem")


def mutated(text: str, rng: random.Random) -> str:
    signs = [
        "$",
        "$$",
        "\\",
        "{",
        "}",
        "_",
        "^",
        "(",
        ")",
        "&",
        "\\\\",
        "\\frac",
        "\\begin{align}",
        "\\end{cases}",
        "\n\n",
        "≈",
        "当",
    ]
    out = list(text)
    for _ in range(rng.randint(1, 12)):
        place = rng.randrange(len(out))
        kind = rng.random()
        if kind < 0.35:
            del out[place : place + rng.randint(1, 8)]
        elif kind < 0.8:
            out.insert(place, rng.choice(signs))
        else:
            start = rng.randrange(len(out))
            out[place:place] = out[start : start + rng.randint(1, 40)]
        out = out or ["x"]
    return "".join(out)


def test_garbled_sheets_give_a_grade(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading and judging of mutated sheets never fails; claims are not decided here, which is tested by themselves."""
    monkeypatch.setattr("qkv.sheets.statements.judge.MAX_READINGS", 1)
    monkeypatch.setattr("qkv.sheets.statements.links.decide", lambda claim, budget: None)
    monkeypatch.setattr("qkv.sheets.pipeline.answers_of", lambda sheet, problem: ())
    rng = random.Random(5)
    for number in range(150):
        text = mutated(SHEET, rng)
        found = grade(text, "attention-2021", ["s.md", "s.tex", "s.typ", "s.txt", "s.ipynb"][number % 5])
        assert all(1 <= s.line <= text.count("\n") + 1 for s in found.statements)


@pytest.mark.slow
def test_deep_and_long_formulas_are_bounded() -> None:
    deep = "(b) $q = " + "(" * 3000 + "k_a" + ")" * 3000 + "$ and $" + "x" * 5000 + " = 1$"
    assert {s.verdict for s in grade(deep).statements} <= {"not_read", "choice"}
    assert len(grade("(b) " + "$k_a = " * 1000).statements) <= 1000


def test_reasons_are_told_in_the_authors_letters() -> None:
    found = grade("(b) $q = x(k_a + k_b)$ gives $\\alpha_a \\approx 1$.", "attention-2021")
    assert found.statements[-1].verdict == "wrong"
    assert "x -> oo" in found.statements[-1].because


@pytest.mark.parametrize("text", ["", "\n\n", "Nothing to see here."])
def test_a_sheet_without_formulas_and_parts_has_no_edition(text):
    found = grade(text)
    assert (found.problem, found.answers, found.is_empty) == ("", (), True)
    assert grade(text, "attention-2024").problem == "attention-2024"


def test_a_title_of_a_part_below_a_named_one_is_no_numeral():
    assert grade("Permuting the input\n\n$x = 1$", "attention-2024").problem == "attention-2024"
