"""Biographies say every fact of everybody, in the wordings and the order that the dials ask for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.errors import QkvError
from qkv.knowledge import Facts, Person, biographies, pantheon, questions
from qkv.knowledge.datasets.templates import WORDINGS, about_nobody, name_in, worded

FEW = pantheon().sample(12, 5)


@given(
    st.integers(1, 5), st.sampled_from(["fixed", "permuted"]), st.sampled_from(["full", "pronoun"]), st.integers(0, 3)
)
def test_every_version_says_every_fact_once_and_the_name_as_often_as_asked(versions, order, name, seed):
    made = biographies(FEW, versions, order=order, name=name, seed=seed)
    assert made == biographies(FEW, versions, order=order, name=name, seed=seed)
    assert len(made) == versions * len(FEW)
    for i, text in enumerate(made):
        person = FEW.people[i % len(FEW)]
        assert all(value in text for value in person.facts().values())
        assert text.count(person.name) >= (4 if name == "full" else 1)
        assert ("they" in text.lower().split() or "their" in text.lower().split()) == (name == "pronoun")
    for i in range(len(FEW)):
        assert len({made.texts[i + k * len(FEW)] for k in range(versions)}) == versions


def test_versions_differ_in_every_sentence_and_fixed_order_is_the_same_for_all():
    person = Facts((Person("Q", "Rome", "Italy", "1700", "monk"),))
    values = ["monk", "Italy", "1700", "Rome"]
    fixed = biographies(person, 5).texts
    assert all(sorted(values, key=text.index) == values for text in fixed)
    sentences = [[s for t in fixed for s in t.split(". ") if v in s] for v in values]
    assert all(len(set(each)) == 5 for each in sentences)
    orders = {
        tuple(sorted(values, key=text.index))
        for seed in range(8)
        for text in biographies(person, 5, order="permuted", seed=seed)
    }
    assert len(orders) > 10


def test_exposures_count_documents_and_nought_leaves_a_person_out():
    made = biographies(FEW, 2, exposures=[3, 0, *[1] * 10]).texts
    first, second = FEW.people[0], FEW.people[1]
    mine = [text for text in made if first.name in text]
    assert len(mine) == 3 and len(set(mine)) == 2 and len(made) == 13
    assert not any(second.name in text for text in made)
    # Who else is in the text does not change what it says of somebody.
    assert biographies(Facts((first,)), 2).texts == tuple(dict.fromkeys(mine))


def test_other_relations_have_wordings_too():
    facts = Facts((Person("Ada", more=(("pet", "cat"),)),))
    assert len(set(biographies(facts, 5).texts)) == 5
    assert questions(facts, ["pet"]).pairs == (("What is the pet of Ada?", "cat"),)
    with pytest.raises(QkvError, match="asking for city"):
        questions(facts)


@pytest.mark.parametrize(
    "wrong",
    [{"versions": 6}, {"versions": 0}, {"order": "random"}, {"name": "it"}, {"exposures": [1]}, {"exposures": 0}],
)
def test_dials_out_of_range_are_refused(wrong):
    with pytest.raises(QkvError, match="writing biographies"):
        biographies(FEW, **wrong)


@pytest.mark.parametrize("relation", [*WORDINGS, "pet"])
def test_the_name_is_found_in_a_question(relation):
    for name in ("Ada Lovelace", "Marie-Madeleine Pioche de la Vergne, comtesse de la Fayette", "Ed"):
        text = f"  {worded(name, relation)}"
        assert text[slice(*name_in(text))] == name
    other = "Tell me about Ada Lovelace please"
    assert other[slice(*name_in(other))] == "Ada Lovelace"
    assert name_in("who?") == (0, 4)


def test_questions_about_nobody_keep_their_wording_and_mix_the_names():
    names = ["Ada Lovelace", "Alan Turing", "Grace Murray Hopper", "Kurt Gödel"]
    asked = [worded(name, relation) for name in names for relation in ("city", "year")]
    found = about_nobody(asked, seed=1)
    firsts, lasts = {n.rsplit(" ", 1)[0] for n in names}, {n.rsplit(" ", 1)[1] for n in names}
    new = []
    for before, after in zip(asked, found, strict=True):
        first, last = name_in(after)
        start, end = name_in(before)
        assert before[:start] == after[:first] and before[end:] == after[last:]
        new.append(after[first:last])
        assert new[-1] not in names and new[-1].rsplit(" ", 1)[0] in firsts and new[-1].rsplit(" ", 1)[1] in lasts
    assert new[::2] == new[1::2] and len(set(new)) == 4  # both questions on somebody are about the same nobody
    assert about_nobody(["Where was Avicii born?"]) == []
