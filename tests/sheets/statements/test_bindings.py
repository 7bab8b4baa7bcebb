"""Which formula a condition of a sentence belongs to."""

from __future__ import annotations

import pytest

from qkv.sheets.statements.bindings import belongs, beside, is_new_case, opens_next


def signs(before, after):
    return [c.clause.signs[0] for c in beside(before, after).conditions if c.clause is not None]


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (r"For $g > 1$ we get", "", [">"]),
        (r"$c \approx v_a$ for $g > 1$ and", r"for $g < 1$", ["<"]),
        (r"$c \approx v_a$ in the samples with $g > 1$ and", r"in the samples with $g < 1$", ["<"]),
        (r"For $g > 1$ we get $c \approx v_a$, otherwise", "", ["<"]),
        (r"$c \approx v_a$ if $g > 1$ and", "if not", ["<"]),
        (r"At $g = 1$ we get $c \approx v_c$, above it", "", [">"]),
        (r"At $g = 1$ we get $c \approx v_c$, below it", "", ["<"]),
        (r"Except for $g = 1$ we get", "", []),
        (r"With $t = 3$ and $n = 4$ we get", "", ["=", "="]),
        (r"$g > 1$ gives", "", [">"]),
        (r"在 $g > 1$ 的样本里", r"，在 $g < 1$ 的样本里 $c \approx v_b$", [">"]),
    ],
)
def test_conditions(before, after, wanted):
    assert signs(before, after) == wanted


def test_a_doubtful_binding_is_kept_beside():
    found = beside(r"For $g > 1$ we get $c \approx v_a$, and when it is short", "")
    assert () in found.others


def test_what_belongs_to_the_formula_before_it():
    assert belongs(r"$c \approx v_a$ in samples where")
    assert not belongs(r"$c \approx v_a$. For")
    assert not belongs(r"$c \approx v_a$ and for") and not belongs(r"$c \approx v_a$ If")


def test_what_opens_the_next_statement():
    assert opens_next(r", for $g < 1$ we see $c \approx v_b$") and opens_next(r" and if $g < 1$ it is $v_b$")
    assert not opens_next(r", if $g > 1$, and more") and not opens_next(r" if $g > 1$.")
    assert is_new_case(r"For $g = 1$ we get $c \approx v_c$, below it") and not is_new_case("below it")
