"""Rules of a certificate: each form is parsed, and every defect of one is refused by itself."""

import numpy as np
import pytest

from qkv.design.certificates.statements.base import InvalidCertificate
from qkv.design.certificates.statements.rules import parse_rules, scope

GOOD = {"rules": [0, 2], "items": [1, 0, 1], "offsets": [0, 1, 3], "weights": [1.0, 0.5, 0.5]}


def data(**changes):
    return {name: np.array(value) for name, value in {**GOOD, **changes}.items()}


def test_lists_of_items_are_a_table_of_wanted_weights():
    wanted = parse_rules(data(), 3).wanted(3)
    assert wanted.tolist() == [[0, 1, 0], [0.5, 0.5, 0]]


@pytest.mark.parametrize(
    "changes",
    [
        {"offsets": [1, 1, 3]},
        {"offsets": [0, 1, 2]},
        {"offsets": [0, 0, 3]},
        {"offsets": [0, 2, 1]},
        {"weights": [1.0, 0.0, 1.0]},
        {"weights": [1.0, -0.5, 1.5]},
        {"weights": [0.0, 0.5, 0.5]},
        {"items": [1, 1, 1]},
        {"items": [1, 0, 3]},
        {"weights": [1.0, 1.0]},
        {"offsets": [0, 3]},
    ],
    ids=str,
)
def test_each_defect_is_refused(changes):
    with pytest.raises(InvalidCertificate):
        parse_rules(data(**changes), 3)


# Several sequences, masks, and rules as people write them


def plain(**given):
    return parse_rules(given, 5)


SEQUENCES = {
    "rules": [4, 0, 2, 1], "items": [3, 4, 1, 0, 1, 2], "offsets": [0, 2, 3, 5, 6],
    "weights": [0.25, 0.75, 1, 0.5, 0.5, 1], "lengths": [3, 2],
}  # fmt: skip


def test_rules_of_each_sequence_come_together_with_its_tokens():
    rules = plain(**SEQUENCES)
    assert rules.count == 4 and [rules.entries(r) for r in range(4)] == [
        slice(0, 2), slice(2, 3), slice(3, 5), slice(5, 6)
    ]  # fmt: skip
    found = [(rows.tolist(), start, stop) for rows, start, stop in rules.sequences()]
    assert found == [([1, 2, 3], 0, 3), ([0], 3, 5)]
    assert [rules.seen(r) for r in range(4)] == [[3, 4], [0, 1, 2], [0, 1, 2], [0, 1, 2]]
    assert rules.wanted(5).tolist() == [[0, 0, 0, 0.25, 0.75], [0, 1, 0, 0, 0], [0.5, 0.5, 0, 0, 0], [0, 0, 1, 0, 0]]
    assert rules.starts.tolist() == [0, 3, 5] and parse_rules(data(), 3).starts.tolist() == [0, 3]


def test_a_causal_mask_shows_the_tokens_up_to_the_reader():
    rules = plain(rules=[3, 4, 1], wanted=np.eye(5)[[3, 3, 0]], mask="causal", lengths=[3, 2])
    assert rules.mask == "causal"
    assert [rules.seen(r) for r in range(3)] == [[3], [3, 4], [0, 1]]
    assert rules.visible(np.array([0, 1]), 3, 5).tolist() == [[True, False], [True, True]]
    with pytest.raises(InvalidCertificate, match="token 3 should read token 4, which it does not see"):
        plain(rules=[4, 3], wanted=np.eye(5)[[3, 4]], mask="causal")
    assert plain(rules=[3], wanted=np.eye(5)[[3]], mask="causal").count == 1


def test_a_table_shows_where_it_is_1():
    table = np.tri(5)
    table[4, 0] = 0
    rules = plain(rules=[4, 1], wanted=np.eye(5)[[1, 0]], mask=table)
    assert [rules.seen(r) for r in range(2)] == [[1, 2, 3, 4], [0, 1]]
    with pytest.raises(InvalidCertificate, match="token 4 should read token 0, which it does not see"):
        plain(rules=[1, 4], wanted=np.eye(5)[[0, 0]], mask=table)
    apart = plain(rules=[4], wanted=np.eye(5)[[3]], mask=table, lengths=[3, 2])
    assert apart.seen(0) == [3, 4]


@pytest.mark.parametrize(("reader", "item"), [(2, 3), (3, 2), (0, 4), (4, 0)])
def test_no_token_reads_another_sequence(reader, item):
    with pytest.raises(InvalidCertificate, match=f"token {reader} should read token {item}, which"):
        plain(rules=[1, reader], items=[1, reader, item], offsets=[0, 1, 3], weights=[1, 0.5, 0.5], lengths=[3, 2])
    assert plain(rules=[reader], wanted=np.eye(5)[[reader]], lengths=[3, 2]).count == 1


@pytest.mark.parametrize(
    "mask", [np.ones((4, 5)), np.ones((5, 4)), np.full((5, 5), 0.5), np.full((5, 5), 2.0), "all", np.ones(5)], ids=str
)
def test_masks_that_are_none_are_refused(mask):
    with pytest.raises(InvalidCertificate, match="mask"):
        plain(rules=[1], wanted=np.eye(5)[[0]], mask=mask)


@pytest.mark.parametrize("lengths", [[3, 3], [3, 1], [5, 0], [6], [2.5, 2.5], [[3, 2]]], ids=str)
def test_lengths_must_be_those_of_the_tokens(lengths):
    with pytest.raises(InvalidCertificate, match="lengths"):
        plain(rules=[1], wanted=np.eye(5)[[0]], lengths=lengths)
    assert plain(rules=[1], wanted=np.eye(5)[[0]], lengths=5).starts.tolist() == [0, 5]
    assert plain(rules=[1], wanted=np.eye(5)[[0]], lengths=[4, 1]).starts.tolist() == [0, 4, 5]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"rules": [0]}, "either reads"),
        ({"reads": {0: 1}, "rules": [0]}, "either reads"),
        ({"reads": {0: 1}, "wanted": np.eye(5)[[0]]}, "either reads"),
        ({"rules": [0], "wanted": np.eye(5)[[0]], "items": [0]}, "either reads"),
        ({"rules": [0, 1], "wanted": np.eye(5)[[0]]}, "rules and wanted weights do not fit"),
        ({"rules": [0], "wanted": np.eye(4)[[0]]}, "tokens and wanted weights do not fit"),
        ({"rules": [0], "wanted": [[2.0, -1.0, 0, 0, 0]]}, "non-negative"),
        ({"rules": [0, 1], "wanted": np.vstack([np.eye(5)[0], np.zeros(5)])}, "sum to 1"),
        ({"rules": [0], "wanted": [[0.5, 0.5 + 2e-9, 0, 0, 0]]}, "sum to 1"),
        ({"rules": [0], "wanted": [[0.5, 0.5 - 2e-9, 0, 0, 0]]}, "sum to 1"),
        ({"rules": [0, 0], "wanted": np.eye(5)[[0, 1]]}, "names an item twice"),
        ({"rules": [5], "wanted": np.eye(5)[[0]]}, "from 0 to 4"),
        ({"rules": [0], "items": [5], "offsets": [0, 1], "weights": [1.0]}, "items must be whole numbers from 0 to 4"),
        ({"rules": [0], "items": [1], "offsets": [0, 2], "weights": [1.0]}, "offsets must be whole numbers"),
        ({"rules": [0], "items": [1], "offsets": [0], "weights": [1.0]}, "rules and offsets do not fit"),
        ({"rules": [0], "items": [1], "offsets": [0, 1], "weights": [0.5, 0.5]}, "items and weights do not fit"),
        ({"rules": [0], "items": [1, 1], "offsets": [0, 2], "weights": [0.5, 0.5]}, "names a token twice"),
        ({"rules": [0], "items": [1, 2], "offsets": [1, 2], "weights": [0.5, 0.5]}, "a rule reads nothing"),
        ({"rules": [0], "items": [1, 2], "offsets": [0, 1], "weights": [1.0, 0.5]}, "a rule reads nothing"),
        ({"rules": [0, 1], "items": [1, 2], "offsets": [0, 0, 2], "weights": [0.5, 0.5]}, "a rule reads nothing"),
        ({"rules": [0], "items": [1, 2], "offsets": [0, 2], "weights": [1.0, 0.0]}, "a rule reads nothing, or has"),
        ({"reads": {0: 5}}, "rule 0 reads token 5, and there are 5"),
        ({"reads": {0: {1: 0.5, 5: 0.5}}}, "rule 0 reads token 5"),
        ({"reads": {0: {1: 0.5}}}, "sum to 1"),
        ({"reads": {0: {1: "1"}}}, "no real number"),
        ({"reads": {"0": 1, 0: 2}}, "reads names token 0 twice"),
        ({"reads": {0: {1: 0.5, "1": 0.5}}}, "what token 0 reads names token 1 twice"),
        ({"reads": {0.5: 1}}, "no whole number"),
        ({"reads": {"01": 1}}, "no whole number"),
        ({"reads": {"²": 1}}, "no whole number"),
        ({"reads": {"-1": 1}}, "no whole number"),
        ({"reads": [[0, 1]]}, "either reads"),
        ({"reads": {}}, "not a list"),
    ],
    ids=str,
)  # fmt: skip
def test_each_defect_of_each_form_is_refused_with_its_reason(given, why):
    with pytest.raises(InvalidCertificate, match=why):
        plain(**given)


def test_rules_that_people_write_are_read_in_their_order():
    rules = plain(reads={"3": 4, 1.0: {"0": 0.25, 2: 0.75}, 0: 0})
    assert rules.readers.tolist() == [3, 1, 0]
    assert rules.wanted(5).tolist() == [[0, 0, 0, 0, 1], [0.25, 0, 0.75, 0, 0], [1, 0, 0, 0, 0]]
    assert rules.items.tolist() == [4, 0, 2, 0] and rules.offsets.tolist() == [0, 1, 3, 4]
    nearly = plain(rules=[0], wanted=[[0.5, 0.5 + 5e-10, 0, 0, 0]])
    assert nearly.weights.tolist() == [0.5, 0.5 + 5e-10] and nearly.mask is None
    twice = plain(rules=[0, 1], items=[2, 2], offsets=[0, 1, 2], weights=[1.0, 1.0])  # by different rules
    assert twice.wanted(5)[:, 2].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, ""),
        ({"lengths": [5]}, "in the given sequence, "),
        ({"lengths": [2, 3], "mask": "causal"}, "in the 2 given sequences, under a causal mask, "),
        ({"mask": np.eye(2)}, "under the given mask, "),
    ],
)
def test_the_scope_is_said_in_words(given, said):
    assert scope(given) == said
