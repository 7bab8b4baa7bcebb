"""Cases of a parametrised test of which `make test` runs a part, and `make test-all` all of them."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import pytest


def some(cases: Iterable[Any], fast: Collection[Any]) -> list[Any]:
    """The cases as parameters: those in `fast` in every run, the others, which share their code, in `make test-all`."""
    return [pytest.param(case, marks=() if case in fast else pytest.mark.slow) for case in cases]


def spread(cases: Sequence[Any], step: int, start: int = 0) -> list[Any]:
    """The cases as parameters: every `step`-th from `start` on in every run, the others in `make test-all`.

    A tuple holds the arguments of one case, and a `pytest.param` keeps its name and marks.
    """
    out = []
    for i, case in enumerate(cases):
        if i % step != start:
            named = hasattr(case, "marks")
            values = case.values if named else case if type(case) is tuple else (case,)
            marks = (*case.marks, pytest.mark.slow) if named else pytest.mark.slow
            case = pytest.param(*values, marks=marks, id=case.id if named else None)
        out.append(case)
    return out


def first_of_each(cases: Iterable[Any], kind: Callable[[Any], Any], slow: Collection[Any] = ()) -> list[Any]:
    """Cases as parameters: the first of each kind in every run, the others and those in `slow` in `make test-all`."""
    met, out = set(), []
    for case in cases:
        values = case if type(case) is tuple else (case,)
        fast = kind(case) not in met and values[0] not in slow
        out.append(pytest.param(*values, marks=() if fast else pytest.mark.slow))
        met |= {kind(case)} if fast else set()
    return out
