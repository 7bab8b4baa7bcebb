"""Metamorphic tests: what a sheet says does not depend on how it is written or how its parts are numbered."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from marks import spread

from qkv.sheets import Grade, grade

PARTS = {
    "a.i": r"One score is far above the rest, $k_j^\top q \gg k_i^\top q$ for $i \neq j$.",
    "a.ii": r"$c \approx v_j$.",
    "b": r"$q = t(k_a + k_b)$ with $t \gg 0$. Then $\alpha_a \approx \alpha_b \approx \frac12$.",
    "c.i": r"$q = t(\mu_a + \mu_b)$ with $t \gg 0$, as $k_i \approx \mu_i$.",
    "c.ii": r"$k_a \approx \gamma \mu_a$, so $c \approx v_a$ if $\gamma > 1$ and $c \approx v_b$ if $\gamma < 1$.",
    "d.i": r"$q_1 = t\mu_a$, $q_2 = t\mu_b$ with $t \gg 0$.",
    "d.ii": r"$c_1 \approx v_a$ and $c_2 \approx v_b$, so $c \approx \frac12(v_a + v_b)$ always.",
}
NUMBER = {"i": 1, "ii": 2}
Label = Callable[[str, bool], str]


def labelled(letter: Label, numeral: Callable[[str, str], str], begin: str = "", end: str = "") -> str:
    """A sheet whose parts begin as told: letter(letter, whether numerals follow) and numeral(letter, numeral)."""
    text, last = begin, ""
    for part, words in PARTS.items():
        name, _, sub = part.partition(".")
        text += letter(name, bool(sub)) if name != last else ""
        text += numeral(name, sub) if sub else ""
        text += words + "\n\n"
        last = name
    return text + end


def accused(found: Grade) -> list[str]:
    return [s.formula for s in found.statements if s.verdict == "wrong"]


def undecided(found: Grade) -> list[str]:
    """What should have been decided and was not."""
    answers = [a.part for a in found.answers if a.part in PARTS and a.verdict not in ("limit", "meets")]
    return answers + [s.formula for s in found.statements if s.verdict in ("wrong", "not_read")]


TEX = (r"\documentclass{article}\begin{document}" + "\n", r"\end{document}")
NUMBERINGS = {
    "headings": labelled(lambda a, s: f"## ({a})\n", lambda a, i: f"({i}) "),
    "letters and numbers": labelled(lambda a, s: f"{a}) ", lambda a, i: f"\n{NUMBER[i]}) "),
    "numbers below a letter": labelled(lambda a, s: f"({a})\n\n", lambda a, i: f"{NUMBER[i]}. "),
    "circled numbers": labelled(lambda a, s: f"（{a}）\n", lambda a, i: f"{'①②'[NUMBER[i] - 1]} "),
    "c.1": labelled(lambda a, s: "" if s else f"{a}.\n", lambda a, i: f"{a}.{NUMBER[i]}\n"),
    "1.c.ii": labelled(lambda a, s: "" if s else f"1.{a} ", lambda a, i: f"1.{a}.{i} "),
    "1c(ii)": labelled(lambda a, s: "" if s else f"1{a}: ", lambda a, i: f"1{a}({i}): "),
    "(c)-(ii)": labelled(lambda a, s: "" if s else f"({a}) ", lambda a, i: f"({a})-({i}) "),
    "Part C": labelled(lambda a, s: f"Part {a.upper()}\n\n", lambda a, i: f"{i}. "),
    "Part c, Part ii": labelled(lambda a, s: f"### Part {a}\n\n", lambda a, i: f"#### Part {i}\n\n"),
    "italics": labelled(lambda a, s: f"**{a}.** ", lambda a, i: f"*{i}.* "),
    "capitals": labelled(lambda a, s: f"{a.upper()}. ", lambda a, i: f"\n{i}. "),
    "German": labelled(lambda a, s: f"Aufgabe 1 {a})\n", lambda a, i: f"({i}) "),
    "HTML": labelled(lambda a, s: f"<h3>({a})</h3>\n", lambda a, i: f"({i}) "),
    "LaTeX items": labelled(
        lambda a, s: rf"\item[({a})] ", lambda a, i: rf"\item[({i})] ", r"\begin{enumerate}", r"\end{enumerate}"
    ),
    "LaTeX bold": labelled(lambda a, s: rf"\textbf{{({a})}} ", lambda a, i: rf"\textbf{{({i})}} ", *TEX),
    "one answer is marked": labelled(lambda a, s: f"{a}.\n" + "" if s else f"{a}.\nAnswer: ", lambda a, i: f"{a}.{i} "),
}


@pytest.mark.parametrize("name", spread(list(NUMBERINGS), 4))
def test_parts_are_found_however_they_are_numbered(name: str) -> None:
    found = grade(NUMBERINGS[name])
    assert found.problem == "attention-2024"
    assert undecided(found) == []


def test_steps_below_a_letter_are_no_parts() -> None:
    steps = "(b) Take $q = t(k_a + k_b)$, $t \\gg 0$.\n\n1. $k_a^T q = t$\n2. $\\alpha_a \\approx \\frac12$\n"
    found = grade("(a)(i) x\n\n(a)(ii) $c \\approx v_j$\n\n" + steps, "attention-2024")
    assert {s.part for s in found.statements if s.line > 4} == {"b"}
    assert next(a.verdict for a in found.answers if a.part == "b") == "limit"


WHOLE = labelled(lambda a, s: f"## ({a})\n", lambda a, i: f"({i}) ")
CHANGES: dict[str, Callable[[str], str]] = {
    "transposes": lambda t: t.replace(r"^\top", r"^{\mathsf{T}}"),
    "primes": lambda t: t.replace(r"^\top", "'"),
    "old transposes": lambda t: t.replace(r"^\top", "^t"),
    "dots": lambda t: t.replace(r"k_j^\top q", r"k_j \cdot q").replace(r"k_i^\top q", r"\langle q, k_i \rangle"),
    "bold": lambda t: t.replace("$q", r"$\mathbf{q}").replace("v_", r"\mathbf{v}_").replace("(k_a", r"(\vec{k}_a"),
    "indices": lambda t: t.replace("k_a", "k_{a}").replace("v_b", "v^{(b)}").replace("q_1", "q^{(1)}"),
    "approximately": lambda t: t.replace(r"\approx", r"\thickapprox"),
    "arrows": lambda t: t.replace(r"\approx", r"\longrightarrow"),
    "Unicode": lambda t: (
        t.replace(r"^\top", "ᵀ").replace(r"\approx", "≈").replace(r"\mu", "μ").replace(r"\gamma", "γ")
        .replace(r"\gg", "≫").replace(r"\frac12", "½").replace("k_i", "kᵢ").replace(r"\alpha", "α")
    ),
    "scale T": lambda t: t.replace("t(", "T(").replace("$t", "$T").replace("t\\mu", "T\\mu"),
    "scale k": lambda t: t.replace("= t(", "= k(").replace(r"$t \gg", r"$k \gg").replace("t\\mu", "k\\mu"),
    "postponed conditions": lambda t: t.replace(" if $", " for samples with $"),
    "conditions first": lambda t: t.replace(
        r"$c \approx v_a$ if $\gamma > 1$ and $c \approx v_b$ if $\gamma < 1$",
        r"$\gamma > 1$: $c \approx v_a$, whereas $\gamma < 1$: $c \approx v_b$",
    ),
    "cases": lambda t: t.replace(
        r"$c \approx v_a$ if $\gamma > 1$ and $c \approx v_b$ if $\gamma < 1$",
        r"$c \approx \begin{cases} v_a & \text{if } \gamma > 1 \\ v_b & \text{if } \gamma < 1 \end{cases}$",
    ),
    "a table": lambda t: t.replace(
        r"$c \approx v_a$ if $\gamma > 1$ and $c \approx v_b$ if $\gamma < 1$",
        "we see\n\n| $\\gamma > 1$ | $c \\approx v_a$ |\n|---|---|\n| $\\gamma < 1$ | $c \\approx v_b$ |\n",
    ),
    "a notebook": lambda t: json.dumps({"cells": [{"cell_type": "markdown", "source": t.splitlines(keepends=True)}]}),
}  # fmt: skip


@pytest.mark.parametrize("name", spread(list(CHANGES), 4))
def test_verdicts_do_not_depend_on_notation(name: str) -> None:
    changed = CHANGES[name](WHOLE)
    assert changed != WHOLE
    assert undecided(grade(changed, file="s.ipynb" if name == "a notebook" else "s.md")) == []


TYPST = r"""#set page(paper: "a4")
== (b)
Take $q = t (k_a + k_b)$ with $t >> 0$. Then $angle.l k_a , q angle.r = t$ and $alpha_a -> 1/2$.
== (c) (ii)
With $k_a approx eta mu _a$ we have $c approx v_a$ if $eta > 1$ and $c approx v_b$ if $eta < 1$.
"""


def test_typst_conditions_are_read_as_typst() -> None:
    text = TYPST.replace("== (c) (ii)", "== (c) (i)\n$q = t (mu_a + mu_b)$\n== (c) (ii)")
    assert undecided(grade(text, "attention-2024", "s.typ"))[: -len(PARTS)] == []
    assert accused(grade(text, "attention-2024", "s.typ")) == []


TEXT = """b. Let q = t*(k_a + k_b), t very large.
k_a.q = t, k_i.q = 0 for i != a, b
alpha_a = exp(t) / (2 exp(t) + n - 2) -> 1/2
so c ~= 1/2 (v_a + v_b)
"""


def test_typed_text_is_read() -> None:
    found = grade("a. x\n\n" + TEXT, "attention-2024", "s.txt")
    assert [s.verdict for s in found.statements][-2:] == ["limit", "limit"]
    assert accused(found) == []
