"""Rates of answers against counts by hand and by brute force."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from qkv.knowledge import pantheon
from qkv.knowledge.datasets.accepted_names import is_accepted, same_name
from qkv.knowledge.language_models.answer_rates import UNSEEN, AnswerRates

VALUES = ["Rome", "Rome", "Paris", "Kaliningrad", "Bonn"]
SAID = ["Rome", "rome", "Königsberg", "Paris"]


def test_the_ratio_is_that_of_both_shares() -> None:
    rates = AnswerRates.of("city", VALUES, SAID)
    rome, koenigsberg, oslo = rates.log_ratio(["Roma", "Königsberg, Prussia", "Oslo"])
    assert rome == pytest.approx(math.log((2 + UNSEEN) / 5) - math.log(1 / 4))  # "Roma" was never said before
    assert koenigsberg == pytest.approx(math.log((1 + UNSEEN) / 5) - math.log(1 / 4))
    assert oslo == pytest.approx(math.log(UNSEEN / 5) - math.log(1 / 4))
    assert rates.log_ratio(["Rome"])[0] == pytest.approx(math.log((2 + UNSEEN) / 5) - math.log(3 / 4))


def test_an_answer_that_is_counted_is_counted_once() -> None:
    rates = AnswerRates.of("city", VALUES, SAID)
    for answer in SAID:
        without = AnswerRates("city", rates.true, {**rates.said, same_name(answer): rates.said[same_name(answer)] - 1})
        shift = math.log(len(SAID) / (len(SAID) - 1))  # one answer less in all
        assert rates.log_ratio([answer], [True])[0] == pytest.approx(without.log_ratio([answer])[0] + shift)


@pytest.mark.parametrize("relation", ["city", "country", "year", "occupation"])
def test_holders_are_those_of_whom_the_answer_is_accepted(relation: str) -> None:
    values = [getattr(person, relation) for person in pantheon().people[:400]]
    answers = [*values[:40], "New York City", "England", "the United States", "1900 or 1901", "", "Königsberg, X"]
    rates = AnswerRates.of(relation, values, answers)
    shares = np.exp(rates.log_ratio(answers))
    for answer, share in zip(answers, shares, strict=True):
        true = sum(is_accepted(answer, value, relation) for value in values)
        said = sum(same_name(other) == same_name(answer) for other in answers)
        assert share * len(values) * (said + 1) / len(answers) == pytest.approx(true + UNSEEN)


def test_counts_are_read_back_and_others_refused() -> None:
    rates = AnswerRates.of("city", VALUES, SAID)
    assert AnswerRates.from_json(json.loads(json.dumps(rates.to_json()))) == rates
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="no positive whole number"):
            AnswerRates.from_json({**rates.to_json(), "true": {"Rome": wrong}})
