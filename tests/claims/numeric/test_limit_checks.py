"""Numerical limit checks on limits that are known."""

import pytest
from claim_builders import context_of

from qkv.claims.numeric.evaluator import CannotEvaluate
from qkv.claims.numeric.instances import instances
from qkv.claims.numeric.limit_checks import PATH, approaches, limit, move_along, require_bounded_statistics


def instance(given, then, let=""):
    context = context_of(given, let, then)
    return next(iter(instances(context, 1))), context.claim.statement.core


@pytest.mark.parametrize(
    ("then", "verdict"),
    [
        ("1/t -> 0 as t -> oo", True),
        ("1/t -> 1 as t -> oo", False),
        ("t/(t + 1) -> 1 as t -> oo", True),
        ("t/(t + 1) -/-> 1 as t -> oo", False),
        ("t/(t + 1) -/-> 2 as t -> oo", True),
        ("exp(-t)*t^3 -> 0 as t -> oo", True),
        ("(1 + 1/t)^2 -> 1 as t -> oo", True),
        ("t -> oo as t -> oo", True),
        ("t -> oo as t -> 0", False),
        ("-t -> -oo as t -> oo", True),
        ("1/t -> oo as t -> oo", False),
        ("t^2 -> 0 as t -> 0", True),
        ("exp(t) -> 1 as t -> 0", True),
        ("log(t) -> oo as t -> oo", True),
    ],
)
def test_known_limits(then, verdict):
    assert limit(*instance("t > 0", then))[0] is verdict


@pytest.mark.parametrize("then", ["log(log(t + 2)) -> 0 as t -> oo", "log(log(t + 2)) -> oo as t -> oo"])
def test_slow_growth_is_never_judged_wrongly(then):
    assert limit(*instance("t > 1", then))[0] is not ("-> 0" in then)


def test_the_share_of_draws_is_a_probability():
    """e^(gamma t)/(1 + e^(gamma t)) tends to 1 for gamma > 0, with probability Φ(1/sqrt(1/2)) = 0.921."""
    then = "exp(gamma*t)/(1 + exp(gamma*t)) -> 1 as t -> oo"
    verdict, share = limit(*instance("gamma ~ N(1, 1/2)", then))
    assert verdict is not True and share == pytest.approx(0.9214, abs=0.01)


def test_numbers_move_along_the_path_from_their_side():
    inst, core = instance("s > 0, t > 0", "1/t + s -> 0 as s -> 0, t -> oo")
    for place in range(len(PATH)):
        move_along(inst, approaches(inst, core), place)
        s, t = (float(inst.numbers[n].reshape(-1)[0]) for n in "st")
        assert t == PATH[place] and 0 < s < 1 / t  # the limit that is taken first goes farther
    low, core = instance("t < 2", "t -> 2 as t -> 2")
    move_along(low, core.approach, 1)
    assert float(low.numbers["t"].reshape(-1)[0]) < 2


def test_limits_in_n_and_noise_that_vanishes_last_cannot_be_evaluated():
    inst, core = instance("k_1..k_n orthonormal, n >= 2", "alpha_a -> 0 as n -> oo", "q = k_a")
    with pytest.raises(CannotEvaluate):
        limit(inst, core)
    noise = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), n = 3"
    inst, core = instance(noise, "alpha_a -> 1 as t -> oo, eps -> 0", "q = t*mu_a")
    with pytest.raises(CannotEvaluate):
        limit(inst, core)


def test_statistics_of_unbounded_expressions_are_refused():
    noise = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), n = 3, eps -> 0"
    inst, core = instance(noise, "E[t*alpha_a] -> 0 as t -> oo", "q = t*mu_a")
    with pytest.raises(CannotEvaluate):
        require_bounded_statistics(inst, core.left)
    inst, core = instance(noise, "E[alpha_a] -> 0 as t -> oo", "q = t*mu_a")
    require_bounded_statistics(inst, core.left)
