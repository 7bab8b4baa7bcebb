"""Rules of a wiring: met or not, and the reason, against cases worked out by hand."""

import numpy as np
import pytest

from qkv.core.attention import self_attention
from qkv.design import wire
from qkv.web.wiring_rules import rule_reports

U = np.eye(4)
A, B, C, D = U
NAMES = ["x_1", "x_2", "x_3"]


def reports(X, rules, tol=0.05, beta=1.0):
    """Reports for rules {reader: (reads, writes)}."""
    reads = [tuple(({r: 1.0} if isinstance(r, int) else r).items()) for r, _ in rules.values()]
    writes = [list(w) for _, w in rules.values()]
    found = wire(X, {i: r for i, (r, _) in rules.items()}, {i: w for i, (_, w) in rules.items()}, tol)
    weights = self_attention(beta * np.array(X), found.Q, found.K, found.V).weights if found.possible else None
    return rule_reports(NAMES, X, list(rules), reads, writes, found, weights)


def test_rules_that_can_be_met_are_met():
    found = reports([D + B, A, C + B], {0: (1, B), 1: (0, B - C)})
    assert [r.met for r in found] == [True, True] and not any(r.why for r in found)
    assert all(r.distance <= 0.05 * (1 + 1e-9) and r.residual < 1e-12 for r in found)
    (half,) = reports([A, B, C], {0: ({1: 0.5, 2: 0.5}, D)})
    assert half.met and half.wanted == {"x_2": 0.5, "x_3": 0.5}


def test_two_tokens_that_read_the_same_cannot_write_different_vectors():
    found = reports([A, B, C], {0: (1, B), 2: (1, C)})
    assert [r.met for r in found] == [False, False]
    assert found[0].why == "it reads the same as x_3, so it writes the same, and the rules say otherwise"
    assert found[0].residual == pytest.approx(np.sqrt(0.5)) and found[0].distance <= 0.05 * (1 + 1e-9)


def test_a_multiple_must_be_written_as_a_multiple():
    X = [A, B, 2 * A]
    assert all(r.met for r in reports(X, {0: (2, 2 * C), 1: (0, C)}, tol=0.3))
    found = reports(X, {0: (2, C), 1: (0, C)}, tol=0.3)
    assert (
        found[0].why == "it reads 2 times the same as x_2, so it writes 2 times the same, and the rules say otherwise"
    )
    assert "it reads 0.5 times the same as x_1" in found[1].why and not found[1].met


def test_a_dependence_of_three_rules_is_named():
    found = reports([A, B, A + C], {0: (1, D), 1: (2, D), 2: ({1: 0.5, 2: 0.5}, A)})
    assert any("sum of multiples of what other tokens read" in r.why for r in found) and not all(r.met for r in found)


def test_a_zero_reading_writes_zero():
    found = reports([A, B, 0 * A], {0: (2, B)})
    assert not found[0].met and "the zero vector, so it writes 0" in found[0].why


def test_at_a_small_length_the_weights_are_far_from_the_rule():
    (near,), (far,) = (reports([A, B, C], {0: (1, B)}, beta=beta) for beta in (1.0, 0.3))
    assert near.met and not far.met and far.distance > 0.3
    assert far.why.startswith("its weights are 0.") and far.why.endswith("at β = 1 they are within 0.05")


@pytest.mark.parametrize(
    ("X", "rules", "why"),
    [
        ([A, B, A], {0: (1, B), 2: (0, B)}, "x_1 and x_3 are the same vector, so they read the same"),
        ([A, B, B], {0: (1, B)}, "x_2 and x_3 are the same vector, so every token reads them in equal parts"),
        ([0 * A, B, C], {0: (1, B)}, "x_1 is the zero vector, so it reads all tokens in equal parts"),
    ],
)
def test_equal_and_zero_tokens_are_named_where_no_scores_do_it(X, rules, why):
    found = reports(X, rules)
    assert why in [r.why for r in found] and not all(r.met for r in found)
    assert all(r.distance is None and r.residual is None for r in found)


def test_many_rules_with_known_truth():
    """Independent tokens can read and write anything; a rule that repeats another's reading decides by its writing."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        X = np.linalg.qr(rng.standard_normal((4, 4)))[0][:3] * rng.uniform(0.5, 2)
        a, b = rng.permutation(3)[:2]
        one, two = rng.integers(-2, 3, (2, 4)).astype(float)
        same = bool(rng.integers(2))
        found = reports(X.tolist(), {0: (int(a), one), 1: (int(a if same else b), two)}, tol=0.1)
        assert [r.met for r in found] == 2 * [not same or bool((one == two).all())]
