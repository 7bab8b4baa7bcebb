"""What is counted, and that a fault that does harm is seen."""

import pytest

from faults.count import FaultCount, Tally


def test_every_fault_is_counted_once_and_harm_is_seen():
    seen = []
    tally = Tally("x", 3, lambda done, total: seen.append((done, total)))
    tally.add("refused")
    tally.add("unchanged")
    assert tally.result().harmless and tally.result("why").note == "why"
    tally.add("believed", "a false number")
    found = tally.result()
    assert (found.tried, found.refused, found.unchanged, found.believed) == (3, 1, 1, 1)
    assert not found.harmless and found.examples == ("believed: a false number",) and seen[-1] == (3, 3)
    with pytest.raises(ValueError):
        tally.add("tried")


@pytest.mark.parametrize("outcome", ["lost", "believed", "tracebacks", "hangs"])
def test_each_harm_makes_a_count_harmful(outcome):
    assert not FaultCount("x", 1, **{outcome: 1}).harmless


def test_a_fault_that_was_not_counted_is_noticed():
    assert not FaultCount("x", 5, refused=4).harmless and FaultCount("x", 5, refused=4, unchanged=1).harmless


def test_a_count_is_read_back_from_json():
    found = FaultCount("x", 2, refused=1, lost=1, examples=("lost: y",))
    assert FaultCount.from_json(found.to_json()) == found
