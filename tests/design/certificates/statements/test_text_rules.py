"""The rules of texts against their definitions, written out."""

import itertools

import pytest

from qkv.design.certificates.statements.text_rules import targets


def by_definition(rule, ids, sink):
    out = {}
    for i in range(len(ids)):
        if rule == "previous":
            read = [j for j in range(len(ids)) if j == i - 1]
        else:
            equal = [j for j in range(i) if ids[j] == ids[i] and not (sink and j == 0)]
            read = equal if rule == "duplicate" else [j + 1 for j in equal]
        if not read and sink:
            read = [0]
        if read:
            out[i] = tuple(read)
    return out


@pytest.mark.parametrize("sink", [False, True])
@pytest.mark.parametrize("rule", ["previous", "duplicate", "induction"])
def test_every_short_text_is_read_as_defined(rule, sink):
    for n in range(1, 6):
        for ids in itertools.product(range(3), repeat=n):
            found = targets(rule, ids, sink)
            assert found == by_definition(rule, ids, sink)
            assert all(max(read) <= i for i, read in found.items()), "a causal mask would hide it"


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match="no rule 'next'"):
        targets("next", [0, 1])


def test_the_first_token_is_no_sink_unless_it_is_said():
    assert targets("duplicate", [7, 8, 7]) == {2: (0,)} == targets("duplicate", [7, 8, 7], sink=False)
