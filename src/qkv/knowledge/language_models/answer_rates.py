"""How often an answer is true, and how often the model gives it: an answer that is given to everybody is a guess."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkv.knowledge.datasets.accepted_names import accepted_forms, forms_of_answer
from qkv.knowledge.datasets.other_names import same_name

UNSEEN = 0.3  # of a person is added to the count of an answer that is true


@dataclass(frozen=True)
class AnswerRates:
    """How often values are true of the people of some facts, and how often a model gives them as answers.

    Attributes:
        relation: What the questions ask for.
        true: Number of people with each value, of those that were not asked about.
        said: Number of answers with each text, as `same_name` writes it, about real people and about invented names: if
            only some of them were counted, those would be known by it.
    """

    relation: str
    true: Mapping[str, int]
    said: Mapping[str, int]

    @classmethod
    def of(cls, relation: str, values: Sequence[str], answers: Sequence[str]) -> AnswerRates:
        """The counts of true values and of answers."""
        return cls(relation, dict(Counter(values)), dict(Counter(map(same_name, answers))))

    def log_ratio(self, answers: Sequence[str], counted: Sequence[bool] | None = None) -> np.ndarray:
        """log(share of people of whom each answer is true / share of answers that are this one).

        It bounds from above how often the answer can be right. The people of whom it is true must be others than those
        that are asked about: with their own values, and also with all but their own, a right answer would be known by
        its rate.

        Args:
            answers: The answers.
            counted: Whether each answer is among those counted in `said`; left out if none is. One that is not counts
                as one more, so that it is the same for an answer that was fitted on and for a new one.

        Returns:
            The logarithms, (n,).
        """
        people, given = max(1, sum(self.true.values())), sum(self.said.values())
        holders = self._holders(set(answers))
        out = []
        for answer, own in zip(answers, counted if counted is not None else [False] * len(answers), strict=True):
            said = self.said.get(same_name(answer), 0) + (not own)
            out.append(np.log((holders[answer] + UNSEEN) / people) - np.log(max(1, said) / max(1, given + (not own))))
        return np.array(out)

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` is its inverse."""
        return {"relation": self.relation, "true": dict(self.true), "said": dict(self.said)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> AnswerRates:
        """The counts from their data; what is no count is refused with ValueError, KeyError or TypeError."""
        true, said = dict(data["true"]), dict(data["said"])
        if not all(type(n) is int and n > 0 for n in (*true.values(), *said.values())):
            raise ValueError("a count of answers is no positive whole number")
        return cls(str(data["relation"]), true, said)

    def _holders(self, answers: Iterable[str]) -> dict[str, int]:
        """Number of people of whom each answer is true."""
        values: dict[str, set[str]] = {}
        for value in self.true:
            for form in accepted_forms(value, self.relation):
                values.setdefault(form, set()).add(value)
        found = {
            answer: set[str]().union(*(values.get(form, set()) for form in forms_of_answer(answer, self.relation)))
            for answer in answers
        }
        return {answer: sum(self.true[value] for value in own) for answer, own in found.items()}
