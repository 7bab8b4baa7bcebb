"""Quantifiers: the cases of an index are all named items that it allows, and one unnamed item if there may be one."""

import pytest
from claim_builders import cases_of, context_of

from qkv.claims.semantics.quantifiers import instances

KEYS = "k_1..k_n orthonormal, n >= 4, t > 0"


def labels(*claim):
    return [case.label for case in cases_of(*claim)]


@pytest.mark.parametrize(
    ("given", "let", "then", "expected"),
    [
        (KEYS, "q = k_a + k_b", "alpha_a > 0", [""]),
        (KEYS, "q = k_a + k_b", "alpha_i > 0", ["i = a", "i = b", "i another item"]),
        (KEYS, "q = k_a + k_b", "alpha_i > 0 for all i", ["i = a", "i = b", "i another item"]),
        (KEYS, "q = k_a + k_b", "alpha_i > 0 for i != a", ["i = b", "i another item"]),
        (KEYS, "q = k_a", "alpha_j > 0 for j != a", ["j another item"]),
        ("k_1..k_n orthonormal, n = 2", "q = k_a + k_b", "alpha_i > 0", ["i = a", "i = b"]),
        ("k_1..k_n orthonormal, n = 2", "q = k_a + k_b", "alpha_i > 0 for i != a, b", []),
        ("k_1..k_3 orthonormal", "q = k_1", "alpha_i > 0", ["i = 1", "i = 2", "i = 3"]),
        (KEYS, "q = k_a", "sum_i alpha_i = 1", [""]),
        (KEYS, "q = k_a", "k_i'k_j = 0 for j != i",
         ["i = a, j another item", "i another item, j = a", "i another item, j another item"]),
        ("A, B orthonormal bases", "", "a_i'a_1 = 0 for i != 1", ["i another item"]),
        ("A, B orthonormal bases", "", "a_i'a_1 = 0", ["i = 1", "i another item"]),
    ],
)  # fmt: skip
def test_labels_of_the_cases(given, let, then, expected):
    assert labels(given, let, then) == expected


def test_each_case_has_a_context_of_its_own_without_a_quantifier():
    for case in cases_of(KEYS, "q = k_a", "alpha_i > 0 for i != a"):
        assert case.context.claim.statement.quantifier is None
        assert "i" not in {s for name in [case.core.sides[0]] for s in name.subs}
        assert case.core is case.context.claim.statement.core


def test_a_claim_without_an_index_keeps_its_context():
    context = context_of(KEYS, "q = k_a", "alpha_a > 0")
    (case,) = instances(context)
    assert case.context is context


def test_the_unnamed_item_gets_a_name_that_no_item_has():
    cases = cases_of(KEYS, "q = k_other", "alpha_i > 0")
    assert [c.label for c in cases] == ["i = other", "i another item"]
    assert [c.core.sides[0].subs for c in cases] == [("other",), ("others",)]
