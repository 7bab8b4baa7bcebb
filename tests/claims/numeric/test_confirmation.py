"""Confirmation: a violation is certain only where exact arithmetic shows it on an instance that meets what is given."""

import subprocess
import sys

import numpy as np
import pytest
import sympy as sp
from claim_builders import context_of
from marks import spread

from qkv.claims.numeric.confirmation import Violation, _is_zero, equality_at, moves_outputs, violation
from qkv.claims.numeric.instances import instances
from qkv.claims.semantics.ranges import Range

KEYS = "k_1..k_n orthonormal, t > 0"


def judged(given, let, then, numbers=(), count=1):
    context = context_of(given, let, then)
    found = list(instances(context, count))
    for inst in found:
        for name, number in dict(numbers).items():
            inst.put(name, number)
    return [violation(inst, context.claim.statement.core) for inst in found]


@pytest.mark.parametrize(
    ("given", "let", "then"),
    [
        (f"{KEYS}, n >= 3", "q = t*k_a", "alpha_a = 1/2"),
        (f"{KEYS}, n >= 3", "q = t*k_a", "alpha_a < alpha_b"),
        ("s real, t real", "", "exp(s)*exp(t) = exp(s + t) + 1/100000000"),
        ("t real", "", "log(exp(t) + exp(-90)) = t"),
        ("t real", "", "t = t < t + 1 = t + 2"),
        ("A orthonormal basis, x in R^m", "", "A*x = 0"),
    ],
)
def test_what_is_false_everywhere_is_a_certain_violation(given, let, then):
    for found in judged(given, let, then, count=8):
        assert isinstance(found, Violation) and not found.tie


@pytest.mark.parametrize(
    ("given", "let", "then"),
    [
        (f"{KEYS}, n >= 3", "q = t*(k_a + k_b)", "alpha_a = alpha_b"),
        (f"{KEYS}, n >= 3", "q = t*(k_a + k_b)", "alpha_a < 1/2"),
        ("s real, t real", "", "exp(s)*exp(t) = exp(s + t)"),
        ("t > 0", "", "log(1 + t) < t"),
        ("t > 0", "", "1/t - 1/(t + 1/1000000) > 0"),
        ("t > 0", "", "sqrt(t)*sqrt(t) <= t"),
        ("k_1..k_n free, q free, n >= 3, k_a'q = k_b'q", "", "alpha_a <= 1"),
    ],
)
def test_what_is_true_is_never_violated(given, let, then):
    assert not any(isinstance(found, Violation) for found in judged(given, let, then, count=16))


@pytest.mark.parametrize(
    ("given", "let", "then", "numbers"),
    [
        (f"{KEYS}, n = 2", "q = t*(k_a + k_b)", "alpha_a < 1/2", {}),
        (f"{KEYS}, n = 1", "q = t*k_a", "alpha_a < 1", {}),
        ("t real", "", "(t - 1/2)^2 > 0", {"t": 0.5}),
        ("t <= 1/3", "", "t < 1/3", {"t": 1 / 3}),
        ("s real, t real", "", "exp(s) != exp(t)", {"s": 1.0, "t": 1.0}),
    ],
)
def test_a_tie_is_shown_in_symbols(given, let, then, numbers):
    (found,) = judged(given, let, then, numbers)
    assert isinstance(found, Violation) and found.tie


def test_a_number_outside_its_range_shows_nothing():
    assert judged("t > 1", "", "t > 2", {"t": 0.5}) == [True]
    assert judged("t < 1/3", "", "t != 1/3", {"t": 1 / 3}) == [True]
    assert judged("s > t, t > 0", "", "s > 2*t", {"s": 1.0, "t": 3.0}) == [True]


def test_a_condition_that_holds_up_to_rounding_is_not_met():
    context = context_of("k_1..k_n free, q free, n = 2, k_a'q = k_b'q", "", "alpha_a = alpha_b")
    (inst,) = instances(context, 1)
    inst.families["k"]["a"] = inst.families["k"]["b"] + 1e-15 * inst.vectors["q"]
    inst.cache.clear()
    assert violation(inst, context.claim.statement.core) is not False or np.allclose(1e-15, 0)
    assert not isinstance(violation(inst, context.claim.statement.core), Violation)


@pytest.mark.parametrize(
    ("inner", "at", "where", "certain"),
    [
        ("exp(r)*r = 1", 0.5671432904097838, Range(), True),
        ("r^2 = 2", 2**0.5, Range(), True),
        ("r = 3/4", 0.75, Range(), True),
        ("r^2 = 0", 0.0, Range(), True),
        ("r^2 = -1/100000000", 0.0, Range(), False),
        ("1/r = 0", 1e9, Range(), False),
        ("1/r + 1000 = 1000", 1e-3, Range(), False),
        ("r > 5", 6.0, Range(), True),
        ("r > 5", 5.0, Range(), False),
    ],
)
def test_a_number_that_makes_an_equality_true(inner, at, where, certain):
    context = context_of("r real", "", f"no real r makes {inner}")
    (inst,) = instances(context, 1)
    assert equality_at(inst, context.claim.statement.core.inner, "r", at, where) == certain


def test_a_root_must_lie_in_its_range():
    context = context_of("0 < r < 1", "", "no real r makes r^2 = 2")
    (inst,) = instances(context, 1)
    assert not equality_at(inst, context.claim.statement.core.inner, "r", 2**0.5, context.numbers["r"])


@pytest.mark.parametrize(("matrix", "moves"), [("V = x_1*x_1'", True), ("V = 2*I", False)])
def test_outputs_that_know_a_token_move(matrix, moves):
    context = context_of("u_a, u_b orthonormal", f"x_1 = u_a, x_2 = 2*u_b, {matrix}", "c is permutation equivariant")
    (inst,) = instances(context, 1)
    assert moves_outputs(inst, "c") == moves


@pytest.mark.parametrize(
    ("head", "then"),
    spread([
        ("given k_1..k_n free, q free, n >= 2", "sum_i alpha_i^2 <= 1"),
        ("given k_1..k_n free, q free, n >= 2", "sum_i alpha_i^3 < sum_i alpha_i^2"),
        ("given k_1..k_n orthonormal, n >= 4, t real, s real\nlet q = t*k_a + s*k_b", "alpha_a != alpha_d when t > s"),
        (
            "given k_1..k_n orthonormal, n >= 4, t real, s real\nlet q = t*k_a + s*k_b",
            "t*alpha_a != s*alpha_b when t > s",
        ),
    ], 4),
)  # fmt: skip
def test_exponents_with_large_denominators_do_not_kill_the_process(head, then):
    """Polynomials in e^(1/2^50) have degrees that overflow the integers of the library beneath SymPy."""
    block = f"```claim x\n{head}\nthen {then}\n```"
    code = f"import qkv; print(*(v.verdict for v in qkv.check({block!r})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and done.stdout.strip() in ("holds", "undecided", "refuted")


def test_exponentials_cancel_only_if_every_exponent_does():
    x = sp.exp(sp.Rational(1, 2**50))
    assert _is_zero(x / (1 + x) + 1 / (1 + x) - 1) and _is_zero(x * sp.exp(1) - sp.exp(1 + sp.Rational(1, 2**50)))
    assert not _is_zero(x - 1) and not _is_zero(x / (1 + x) - sp.Rational(1, 2))
