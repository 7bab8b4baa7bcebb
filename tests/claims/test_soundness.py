"""What a review found to be decided wrongly: nothing false is proved or holds, nothing true is refuted."""

import pytest

import qkv


def verdict(given, let, then):
    givens = f"given {given}\n" if given else ""
    lets = f"let {let}\n" if let else ""
    return qkv.check(f"```claim x\n{givens}{lets}then {then}\n```")[0].verdict


KEYS = "k_1..k_n orthonormal, n >= 4, t > 0"
QUERY = "q = t*(k_a + k_b)"
BASES = "A, B orthonormal bases, x in R^m, y in R^p"
APART = "A, B orthonormal bases at right angles, x in R^m, y in R^p"


@pytest.mark.parametrize(
    ("then", "kind"),
    [
        (r"$\sum_{i=1}^{3} \alpha_i = 1$", "malformed"),
        (r"$\sum_{i=1}^2 \alpha_i = 1$", "malformed"),
        ("sum_{i=1}^3 alpha_i = 1", "malformed"),
        (r"$\sum_{i=1}^{n} \alpha_i = 1$", "proved"),
        (r"$\sum_{i=1}^n \alpha_i = 1$", "proved"),
        ("sum_{i=1}^n alpha_i = 1", "proved"),
        ("sum_{i=1}^{n} alpha_i = 1", "proved"),
    ],
)
def test_a_sum_runs_up_to_n_or_is_malformed(then, kind):
    assert verdict(KEYS, QUERY, then) == kind


@pytest.mark.parametrize(
    ("then", "kind"), [("A'*B*y = 0", "proved"), ("M*s = v_a", "proved"), ("a_1'*b_1 = 0", "proved")]
)
def test_bases_are_at_right_angles_only_when_that_is_said(then, kind):
    lets = "M = A*A', v_a = A*x, v_b = B*y, s = v_a + v_b"
    assert verdict(APART, lets, then) == kind
    assert verdict(BASES, lets, then) == "refuted"
