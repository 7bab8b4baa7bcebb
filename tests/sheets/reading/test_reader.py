"""Sheets of every form are read into parts, formulas, lines and the words around them."""

from __future__ import annotations

import json

import pytest

from qkv.sheets.reading import read_sheet

LATEX = r"""\documentclass{article}
\newcommand{\key}[1]{k_{#1}}
\begin{document}
\begin{enumerate}[label=(\alph*)]
\item Scores grow. % a comment with $x = 1$
\item
  \begin{enumerate}[label=(\roman*)]
  \item Set $q = s(\key{a} + \key{b})$ for a big $s$.
  \item Hence
  \begin{align}
    \key{a}^\top q &= s \\
      &= s + 0
  \end{align}
  \end{enumerate}
\end{enumerate}
\end{document}
"""
MARKDOWN = """# 1. Attention

### (a)
We have $k_j^T q \\gg k_i^T q$ for $i \\neq j$.

### (b)
- (i) first $M = A A^T$
- (ii) then
$$
q = t(k_a + k_b)
$$

# 2. Positions
### (a)
$P X = X$
"""
TYPST = """= Attention exploration

+ Copying
  + When
    #answer
    $k_j^T q >> k_i^T q$ for all $i != j$
  + Then
    #answer
    $ alpha_a = exp(t) / (2 exp(t) + n - 2) $
"""


def told(text: str, file: str) -> list[tuple[str, int, str]]:
    return [(f.part, f.line, f.math) for f in read_sheet(text, file).formulas]


def test_latex_parts_macros_rows_and_comments() -> None:
    assert told(LATEX, "sheet.tex") == [
        ("b.i", 8, "q = s(k_a + k_b)"),
        ("b.i", 8, "s"),
        ("b.ii", 11, r"k_a^\top q &= s"),
        ("b.ii", 12, "&= s + 0"),
    ]


def test_markdown_parts_and_further_questions() -> None:
    found = told(MARKDOWN, "sheet.md")
    assert [(part, line) for part, line, _ in found] == [("a", 4), ("a", 4), ("b.i", 7), ("b.ii", 10), ("2.a", 15)]


def test_typst_math_becomes_latex() -> None:
    sheet = read_sheet(TYPST, "sheet.typ")
    assert [f.part for f in sheet.formulas] == ["a.i", "a.i", "a.ii"]
    assert sheet.formulas[0].math == r"k_j^{T} q \gg k_i^{T} q"
    assert sheet.formulas[2].math == r"\alpha_a = \frac{\exp(t)}{2 \exp(t) + n - 2}"
    assert sheet.formulas[2].source == "alpha_a = exp(t) / (2 exp(t) + n - 2)"


def test_notebook_lines_are_those_of_the_file() -> None:
    cells = [
        {"cell_type": "code", "source": ["x = 1\n"]},
        {"cell_type": "markdown", "source": ["(a) now\n", "\n", "$k_a^T q = 1$"]},
    ]
    text = json.dumps({"cells": cells}, indent=1)
    (formula,) = read_sheet(text, "sheet.ipynb").formulas
    assert formula.part == "a"
    assert "k_a^T q = 1" in text.split("\n")[formula.line - 1]


def test_plain_text_without_signs() -> None:
    text = "(b) Take q = t (k_a + k_b) with t large. Then k_a^T q = t and α_a = exp(t)/(2 exp(t) + n - 2), about 1/2."
    assert [f.source for f in read_sheet(text).formulas] == [
        "q = t (k_a + k_b)",
        "k_a^T q = t",
        "α_a = exp(t)/(2 exp(t) + n - 2)",
    ]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("1(b) $q = 1$", "b"),
        ("Q1 (c) ii. $q = 1$", "c.ii"),
        ("## 3.b\n$q = 1$", "b"),
        ("**(b)**\n\n**ii.** $q = 1$", "b.ii"),
        ("（b）$q = 1$", "b"),
        ("$$b) \\quad q = 1$$", "b"),
        ("\\section*{(b)} $q = 1$", "b"),
        ("- (a) i $q = 1$", "a.i"),
        ("e.g. $q = 1$", ""),
        ("i.e. $q = 1$", ""),
    ],
)
def test_labels_of_parts(text: str, part: str) -> None:
    assert read_sheet(text).formulas[-1].part == part


def test_labels_that_go_back_are_none() -> None:
    sheet = read_sheet("(c) see\n(b) for more: $k_a = 1$\n(d) $k_b = 2$")
    assert [f.part for f in sheet.formulas] == ["c", "d"]


def test_the_text_around_answers_is_not_the_authors() -> None:
    text = r"""\begin{parts}
\part Why is $\alpha_i > 0$?
\ifans{Because $e^x > 0$.}
\part And $\sum_i \alpha_i = 1$?
\ifans{As $Z = \sum_i e^{x_i}$.}
\end{parts}"""
    found = read_sheet(text, "sheet.tex").formulas
    assert [(f.source, f.own_text) for f in found] == [
        (r"\alpha_i > 0", True),
        ("e^x > 0", False),
        (r"\sum_i \alpha_i = 1", True),
        (r"Z = \sum_i e^{x_i}", False),
    ]


def test_empty_marks_last_up_to_the_next_part() -> None:
    text = "\\begin{parts}\n\\part $a = 1$\n\\ifans{} yes $b = 2$\n\\part $c = 3$\n\\ifans{} $d = 4$\n\\end{parts}"
    assert [f.own_text for f in read_sheet(text, "s.tex").formulas] == [True, False, True, False]


def test_answers_marked_in_markdown() -> None:
    text = "(a) Given $a = 1$, why?\n\n- Answer\n\n    $b = 2$\n\n(b) And $c = 3$?\n\n- Answer\n\n    $d = 4$\n"
    assert [f.own_text for f in read_sheet(text, "s.md").formulas] == [True, False, True, False]


def test_words_end_with_the_sentence() -> None:
    sheet = read_sheet("(a) Nothing here. If $x > 1$, we have $c = v_a$ for large $t$. The rest.")
    formula = sheet.formulas[1]
    assert formula.before == "If $x > 1$ , we have"
    assert formula.after == "for large $t$"


def test_matrices_stay_in_their_row_and_rows_of_equations_do_not() -> None:
    text = "(b) $$M = \\begin{bmatrix} 1 \\\\ 0 \\end{bmatrix}$$ $$\\begin{pmatrix} a = 1 \\\\ b = 2 \\end{pmatrix}$$"
    assert [f.source for f in read_sheet(text).formulas] == [
        "M = \\begin{bmatrix} 1 \\\\ 0 \\end{bmatrix}",
        "a = 1",
        "b = 2",
    ]


def test_unclosed_signs_open_nothing() -> None:
    assert read_sheet("(a) costs $5 only\n\nand $q = 1$").formulas[-1].math == "q = 1"
    assert read_sheet("\\begin{align} nothing", "s.tex").formulas == ()


def test_titles_tell_parts_that_have_no_label() -> None:
    titles = {"a": ("copying",), "b": ("average of two",)}
    sheet = read_sheet("## Copying\n$c = v_j$\n## An average of two\n$q = 1$", titles=titles)
    assert [f.part for f in sheet.formulas] == ["a", "b"]


@pytest.mark.slow
def test_long_sheets_are_cut() -> None:
    assert read_sheet("$a = 1$ " * 80_000).cut


def test_kets_are_vectors_and_bras_their_transposes():
    sheet = read_sheet(
        r"(b) $\braket{k_a|q} = t$, $\ket{c} \approx \ket{v_a}$, $M = |a_i\rangle\langle a_i|$, $\bra{k_a} = 0$."
    )
    assert [f.math for f in sheet.formulas] == [
        r"k_a^\top q = t",
        r"c \approx v_a",
        r"M = a_i a_i^\top",
        r"k_a^\top = 0",
    ]
    assert read_sheet(r"(b) $\langle k_a, q \rangle = |t|$.").formulas[0].math == r"\langle k_a, q \rangle = |t|"


def test_labels_in_the_argument_of_an_environment_or_a_callout():
    latex = "\\begin{answer}{1 (a)}\n$x = 1$\n\\end{answer}\n\\begin{solution}[(b)]\n$x = 2$\n\\end{solution}"
    assert [f.part for f in read_sheet(latex, "s.tex").formulas] == ["a", "b"]
    assert read_sheet("> [!question] (a) Copying\n\nSo $k_j = 1$.", "s.md").formulas[0].part == "a"


def test_bracketed_labels_in_typst():
    sheet = read_sheet("== (c) Heads\n#ans[\n  (i) $q = t$ here.\n\n  (ii) So $c = v$.\n]\n", "s.typ")
    assert [f.part for f in sheet.formulas] == ["c.i", "c.ii"]


def test_the_sentence_before():
    sheet = read_sheet("(b) Suppose we drop $t$. Then $x = 1$ and $y = 2$.\n\nNothing more, so $z = 3$.")
    assert [f.previous for f in sheet.formulas] == ["", *["(b) Suppose we drop $t$"] * 2, "Then $x = 1$ and $y = 2$"]
