"""A calibrator comes back from its JSON as it was, and one with absurd numbers in it is refused."""

import json
import math
import re

import numpy as np
import pytest

from qkv.knowledge.confidence.calibrator import Calibrator
from qkv.knowledge.confidence.cross_fitting import cross_fit

ABSURD = (-1, -5, 2, 1e308, 10**400, math.nan, math.inf, None, True, "x", [], {}, 0.5)


@pytest.fixture(scope="module", params=["good", "useless"])
def fitted(request):
    random = np.random.default_rng(0)
    right = random.random(400) < 0.6
    x = random.normal(size=(400, 2)) + (3.0 * right[:, None] if request.param == "good" else 0.0)
    others = np.where(random.random(400) < 0.5, "outsider", "invented")
    groups = np.where(right | (random.random(400) < 0.5), "known", others)
    return cross_fit(x, right, groups=groups.tolist(), max_outside=0.1).calibrator


def leaves(data, path=()):
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list | tuple) else ()
    yield path
    for name, value in pairs:
        yield from leaves(value, (*path, name))


def test_what_is_read_is_what_was_written(fitted):
    assert Calibrator.from_json(fitted.to_json()) == fitted


def test_one_absurd_number_is_refused_or_states_nothing_absurd(fitted):
    text = json.dumps(fitted.to_json())
    tried = refused = 0
    for path in leaves(json.loads(text)):
        for value in ABSURD if path else ():
            data = json.loads(text)
            place = data
            for name in path[:-1]:
                place = place[name]
            if place[path[-1]] == value and type(place[path[-1]]) is type(value):
                continue
            place[path[-1]] = value
            tried += 1
            try:
                read = Calibrator.from_json(data)
            except (ValueError, KeyError, TypeError):
                refused += 1
                continue
            for each in (read.remembered, read.made_up):
                assert 0 <= each.level <= 1 and (each.accepted > 0) == (each.level > 0) == math.isfinite(each.threshold)
                assert not each.accepted or each.level <= each.bound <= each.right / each.accepted
            for limit in read.outside:
                assert 0 <= limit.allowed < limit.n and limit.allowed / limit.n <= limit.bound <= 1
            for sentence in map(str, (read.remembered, read.made_up, *read.outside)):
                assert all(0 <= float(each) <= 100 for each in re.findall(r"(-?[\d.e+]+) %", sentence)), sentence
    assert tried > 300 and refused > 0.7 * tried


@pytest.mark.parametrize(
    "change",
    [
        {"remembered": -1}, {"outside": [3]}, {"n_questions": -5}, {"features": [None, {}]},
        {"right_model": {"mean": [10**400, 0], "scale": [1, 1], "weights": [0, 0], "bias": 0}},
        {"right_model": {"mean": [0, 0], "scale": [1, -1], "weights": [0, 0], "bias": 0}},
    ],
)  # fmt: skip
def test_what_an_attack_found_is_refused(fitted, change):
    with pytest.raises((ValueError, KeyError, TypeError)):
        Calibrator.from_json({**fitted.to_json(), **change})


@pytest.mark.parametrize(
    "change",
    [
        {"bound": -5},
        {"bound": 1e-300},
        {"confidence": 2},
        {"confidence": 1},
        {"wanted": -1},
        {"n": -5},
        {"allowed": -1},
        {"group": "x"},
        {"shown": "maybe"},
    ],
)
def test_a_limit_that_names_cannot_show_is_refused(fitted, change):
    data = fitted.to_json()
    data["outside"] = [{**data["outside"][0], **change}]
    with pytest.raises((ValueError, KeyError, TypeError)):
        Calibrator.from_json(data)


@pytest.mark.parametrize("confidence", [0, -0.0, 1, 1.0])
def test_no_guarantee_is_certain_or_worth_nothing(fitted, confidence):
    data = fitted.to_json()
    data["remembered"]["confidence"] = confidence
    with pytest.raises(ValueError):
        Calibrator.from_json(data)
