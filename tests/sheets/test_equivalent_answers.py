"""The normal form is equal for claims that say the same, and differs for others."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.sheets.equivalent_answers import normal_form

GOAL = "then c -> (v_a + v_b)/2 as t -> oo"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("q = t*(k_a + k_b)", "q = t*k_b + t*k_a"),
        ("q = t*(k_a + k_b)", "q = lambda*(k_b + k_a)"),
        ("q = (k_a + k_b)/2", "q = 1/2*k_a + 0.5*k_b"),
        ("q = (t + t)*k_a", "q = 2*t*k_a"),
        ("q = t*(k_a - (k_b - k_a))", "q = 2*t*k_a - t*k_b"),
        ("q_1 = t*mu_a, q_2 = t*mu_b", "q_1 = beta*mu_a, q_2 = beta*mu_b"),
        ("q = (A*B')'*k_a", "q = B*A'*k_a"),
        ("q = t^2*k_a", "q = t*k_a*t"),
    ],
)
def test_the_same_in_other_letters_or_another_order(one, other):
    assert normal_form(f"let {one}\n{GOAL}") == normal_form(f"let {other}\n{GOAL}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("q = t*(k_a + k_b)", "q = k_a + k_b"),
        ("q = t*(k_a + k_b)", "q = t*(k_a - k_b)"),
        ("q = t*k_a", "q = t*k_b"),
        ("q = A*B*k_a", "q = B*A*k_a"),
        ("q_1 = t*mu_a, q_2 = t*mu_b", "q_1 = t*mu_b, q_2 = t*mu_a"),
        ("q = t*k_a", "q = n*k_a"),
        ("q = exp(t)*k_a", "q = log(t)*k_a"),
    ],
)
def test_different_constructions_differ(one, other):
    assert normal_form(f"let {one}\n{GOAL}") != normal_form(f"let {other}\n{GOAL}")


def test_statements_differ_by_relation_condition_and_items():
    forms = [
        normal_form(f"given k_1..k_n free, q free, n >= 3\nthen {s}")
        for s in ("alpha_a < 1/2", "alpha_a > 1/2", "alpha_a < 1/3", "alpha_i < 1/2 for i != a", "alpha_i < 1/2 for i")
    ]
    assert len(set(forms)) == len(forms)


def test_what_cannot_be_parsed_is_compared_as_it_was_written():
    assert normal_form("", r"$q = \left( k_a \right)$") == normal_form("let ((", "q = ( k_a )")
    assert normal_form("", "q = x") != normal_form("", "q = y")
    assert normal_form("") == ""


@settings(max_examples=settings.default.max_examples * 3 // 5, deadline=None)
@given(st.text(alphabet="tkq_ab()+-*/^'=,. 0123456789\n", max_size=60))
def test_any_text_has_a_form(text):
    assert isinstance(normal_form(f"let q = {text}\n{GOAL}", text), str)
