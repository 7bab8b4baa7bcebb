"""Rules of texts as values."""

import pytest

from qkv.design import duplicate, induction, previous
from qkv.errors import QkvError


def test_rules_say_what_they_do():
    assert "the one before it" in str(previous())
    assert str(induction(sink=3)).endswith("each other token reads the first")


def test_a_sink_stands_at_the_start_and_nowhere_else():
    assert duplicate(sink=9).targets([9, 1, 2, 1]) == {0: (0,), 1: (0,), 2: (0,), 3: (1,)}
    assert induction(sink=9).targets([9, 1, 2, 1]) == {0: (0,), 1: (0,), 2: (0,), 3: (2,)}
    for ids in ([1, 9], [9, 1, 9], []):
        with pytest.raises(QkvError, match="sink"):
            duplicate(sink=9).targets(ids)


@pytest.mark.parametrize("sink", [-1, 0.5, True, "a"])
def test_a_sink_is_a_token_number(sink):
    with pytest.raises(QkvError, match="sink is"):
        induction(sink=sink)
