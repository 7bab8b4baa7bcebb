"""left iff right over keys: both directions are decided, and the weaker verdict counts."""

import pytest
from marks import spread

import qkv


@pytest.mark.parametrize(
    ("then", "kind"),
    spread(
        [
            ("alpha_a > alpha_b iff k_a'q > k_b'q", "proved"),
            ("k_a'q > k_b'q iff alpha_a > alpha_b", "proved"),
            ("alpha_a = alpha_b iff k_a'q = k_b'q", "proved"),
            ("alpha_a > alpha_b iff k_a'q >= k_b'q", "refuted"),
            ("alpha_a > 1/2 iff k_a'q > k_b'q", "refuted"),
            ("alpha_a > alpha_b > 0 iff k_a'q > k_b'q", "malformed"),
        ],
        3,
    ),
)
def test_an_equivalence_needs_both_directions(then, kind):
    (found,) = qkv.check(f"```claim x\ngiven k_1..k_n free, q free, n >= 3\nthen {then}\n```")
    assert found.verdict == kind, found.because


def test_a_direction_that_needs_a_further_condition_refutes():
    text = "```claim x\ngiven k_1..k_n orthonormal, n >= 2, t real\nlet q = t*k_a\nthen alpha_a > 1/2 iff t > 0\n```"
    (found,) = qkv.check(text)
    assert found.verdict == "refuted"
    assert found.because == "from right to left: true exactly when t > log(n - 1)"
    assert found.counterexample is not None
