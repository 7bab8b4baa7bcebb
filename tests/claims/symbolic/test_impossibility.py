"""Impossibility of r*x = y: a number that does it, searched for on a grid of numbers and parameters."""

from fractions import Fraction
from itertools import product

import pytest
from build import argued
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

KEYS = "k_1..k_n orthonormal, n >= 3"
GRID = [Fraction(k, 2) for k in range(-12, 13)]
PARTS = {
    "r": lambda r, s: r,
    "2*r": lambda r, s: 2 * r,
    "r + 1": lambda r, s: r + 1,
    "r^2": lambda r, s: r * r,
    "1": lambda r, s: 1,
    "2": lambda r, s: 2,
    "0": lambda r, s: 0,
    "-4": lambda r, s: -4,
}
OF_S = {"s": lambda r, s: s, "s + r": lambda r, s: s + r, "s^2": lambda r, s: s * s}


def possible(sides, parameters) -> bool:
    """Whether some r of the grid makes both coefficients equal, for some value of the parameter."""
    return any(all(PARTS_OF[a](r, s) == PARTS_OF[b](r, s) for a, b in sides) for r, s in product(GRID, parameters))


PARTS_OF = PARTS | OF_S


@settings(
    max_examples=settings.default.max_examples * 3 // 5,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(*(st.sampled_from(sorted(PARTS)) for _ in range(4)))
def test_an_impossibility_is_proved_only_if_no_number_does_it(one, two, three, four):
    """Coefficients of two orthonormal keys, without parameters."""
    text = f"no real r makes ({one})*k_a + ({two})*k_b = ({three})*k_a + ({four})*k_b"
    if argued(KEYS, "", text) == "proved":
        assert not possible([(one, three), (two, four)], [Fraction(0)]), text


def test_a_number_that_does_it_is_noticed():
    assert possible([("r", "2"), ("2*r", "-4")], [Fraction(0)]) is False
    assert possible([("r", "2"), ("r^2", "-4")], [Fraction(0)]) is False
    assert possible([("r", "2"), ("r + 1", "r + 1")], [Fraction(0)]) is True
    assert possible([("r", "s"), ("r", "1")], GRID) is True


def test_an_impossibility_and_a_possibility_are_found():
    assert argued(KEYS, "", "no real r makes r*k_a + r*k_b = 2*k_a + k_b") == "proved"
    assert argued(KEYS, "", "no real r makes r*k_a + r*k_b = 2*k_a + 2*k_b") == "refuted"


@pytest.mark.parametrize("parts", [("s", "1"), ("s^2", "1"), ("s + r", "2")])
def test_a_parameter_at_which_both_parts_vanish_is_seen(parts):
    left = ("2*r", "r") if parts[0] == "s + r" else ("r", "r")
    assert possible([(left[0], parts[0]), (left[1], parts[1])], GRID)
    text = f"no real r makes ({left[0]})*k_a + ({left[1]})*k_b = ({parts[0]})*k_a + ({parts[1]})*k_b"
    assert argued(f"{KEYS}, s real", "", text) != "proved"
