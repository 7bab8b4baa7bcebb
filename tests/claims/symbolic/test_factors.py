"""Factors: transposes, shapes and what each stands for."""

import sympy as sp

from qkv.claims.semantics.context import REST
from qkv.claims.symbolic.factors import Factor, member, noise_vector, turn, unnamed_mean, unnamed_sum
from qkv.claims.symbolic.unknowns import RestWeight

ONE = member("v", REST)
EVERY = [
    Factor("q", "vector"),
    Factor("x", "vector", "m"),
    Factor("A", "basis", "d", "m"),
    member("k", "a"),
    ONE,
    noise_vector("a"),
    unnamed_sum(ONE),
    unnamed_mean(ONE, RestWeight("")),
    turn(sp.Symbol("x")),
]


def test_transposing_twice_gives_the_factor_back():
    for one in EVERY:
        assert one.turned().turned() == one
        assert one.turned().shape == one.shape[::-1]
        assert one.turned() != one


def test_a_factor_stands_upright_before_transposing():
    for one in EVERY[:-1]:
        assert one.turned().upright() == one == one.upright()
        assert type(one.turned()) is type(one)


def test_what_a_factor_is_a_member_of():
    assert [f.family_name for f in EVERY] == ["", "", "", "k", "v", "", "v", "", ""]
    assert [f.of_unnamed_item for f in EVERY] == [False, False, False, False, True, False, False, False, False]
    assert [f.is_noise for f in EVERY] == [False] * 5 + [True] + [False] * 3
    assert unnamed_sum(noise_vector(REST)).is_noise and noise_vector(REST).of_unnamed_item


def test_sums_and_means_keep_the_transpose():
    for made in (unnamed_sum(ONE.turned()), unnamed_mean(ONE.turned(), RestWeight(""))):
        assert made.flipped and made.of == ONE and made.shape == ("1", "d")


def test_rotations_add_their_angles_when_transposed():
    x, y = sp.symbols("x y")
    assert turn(x - y).turned() == turn(y - x)
    assert turn(2 * (x + y)) == turn(2 * x + 2 * y)
