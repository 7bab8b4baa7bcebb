"""Biographies state every fact of everybody, in the wordings and the order asked for; questions and names in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.errors import QkvError
from qkv.knowledge import Facts, Person, biographies, pantheon, questions
from qkv.knowledge.datasets.templates import SENTENCES, article, name_span, question_text, with_invented_names

PEOPLE = pantheon().sample(12, 5)


@given(
    st.integers(1, 5), st.sampled_from(["fixed", "permuted"]), st.sampled_from(["full", "pronoun"]), st.integers(0, 3)
)
def test_every_version_states_every_fact_and_the_name_as_often_as_asked(versions, order, name, seed):
    made = biographies(PEOPLE, versions, order=order, name=name, seed=seed)
    assert made == biographies(PEOPLE, versions, order=order, name=name, seed=seed)
    assert len(made) == versions * len(PEOPLE)
    for i, text in enumerate(made):
        person = PEOPLE.people[i % len(PEOPLE)]
        assert all(value in text for value in person.facts().values())
        assert text.count(person.name) >= (4 if name == "full" else 1)
        assert ("they" in text.lower().split() or "their" in text.lower().split()) == (name == "pronoun")
    for i in range(len(PEOPLE)):
        assert len({made.texts[i + k * len(PEOPLE)] for k in range(versions)}) == versions


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


def test_exposures_count_documents_and_zero_leaves_a_person_out():
    made = biographies(PEOPLE, 2, exposures=[3, 0, *[1] * 10]).texts
    first, second = PEOPLE.people[0], PEOPLE.people[1]
    mine = [text for text in made if first.name in text]
    assert len(mine) == 3 and len(set(mine)) == 2 and len(made) == 13
    assert not any(second.name in text for text in made)
    # The text about a person does not depend on the other people.
    assert biographies(Facts((first,)), 2).texts == tuple(dict.fromkeys(mine))


def test_other_relations_have_sentences_and_questions():
    facts = Facts((Person("Ada", more=(("pet", "cat"),)),))
    assert len(set(biographies(facts, 5).texts)) == 5
    assert questions(facts, ["pet"]).pairs == (("What is the pet of Ada?", "cat"),)
    with pytest.raises(QkvError, match="asking for city"):
        questions(facts)


@pytest.mark.parametrize(
    "wrong",
    [{"versions": 6}, {"versions": 0}, {"order": "random"}, {"name": "it"}, {"exposures": [1]}, {"exposures": 0}],
)
def test_arguments_out_of_range_are_refused(wrong):
    with pytest.raises(QkvError, match="writing biographies"):
        biographies(PEOPLE, **wrong)


@pytest.mark.parametrize("relation", [*SENTENCES, "pet"])
def test_the_name_is_found_in_a_question(relation):
    for name in ("Ada Lovelace", "Marie-Madeleine Pioche de la Vergne, comtesse de la Fayette", "Ed"):
        text = f"  {question_text(name, relation)}"
        assert text[slice(*name_span(text))] == name
    other = "Tell me about Ada Lovelace please"
    assert other[slice(*name_span(other))] == "Ada Lovelace"
    assert name_span("who?") == (0, 4)


def test_questions_with_invented_names_keep_their_wording():
    names = ["Ada Lovelace", "Alan Turing", "Grace Murray Hopper", "Kurt Gödel"]
    asked = [question_text(name, relation) for name in names for relation in ("city", "year")]
    found = with_invented_names(asked, seed=1)
    firsts, lasts = {n.rsplit(" ", 1)[0] for n in names}, {n.rsplit(" ", 1)[1] for n in names}
    new = []
    for before, after in zip(asked, found, strict=True):
        first, last = name_span(after)
        start, end = name_span(before)
        assert before[:start] == after[:first] and before[end:] == after[last:]
        new.append(after[first:last])
        assert new[-1] not in names and new[-1].rsplit(" ", 1)[0] in firsts and new[-1].rsplit(" ", 1)[1] in lasts
    assert new[::2] == new[1::2] and len(set(new)) == 4  # both questions about a person get the same invented name
    assert with_invented_names(["Where was Avicii born?"]) == []


@pytest.mark.parametrize(
    "words",
    [
        "an honest man", "an heir", "an actor", "an unknown", "an uninformed critic", "an usher", "an urban planner",
        "an umpire", "a writer", "a historian", "a university professor", "a union leader", "a European", "a urologist",
        "a ukulele player", "a one-man band", "a user", "an American", "an engineer", "a wheelwright",
    ],
)  # fmt: skip
def test_the_article_is_the_one_that_is_spoken(words):
    said, _, noun = words.partition(" ")
    assert article(noun) == said


@pytest.mark.parametrize("value", ["Washington, D.C.", "Sammy Davis, Jr.", "London"])
@pytest.mark.parametrize("statements", [None, {"city": ["{subject} comes from {object}."]}])
def test_a_sentence_ends_in_one_full_stop(value, statements):
    facts = Facts((Person("Ada Lovelace", city=value),))
    texts = biographies(facts, versions=1 if statements else 5, statements=statements).texts
    assert all(value in text and text.endswith(".") and ".." not in text for text in texts)


def test_a_name_or_value_with_braces_is_filled_in_as_it_is():
    facts = Facts((Person("The {object} trick", more=(("use", "{subject} magic"),)),))
    (text,) = biographies(facts, versions=1, statements={"use": ["{subject} is used for {object}."]}).texts
    assert text.endswith("The {object} trick is used for {subject} magic.")


def test_a_wording_that_is_given_twice_asks_once():
    facts = Facts((Person("Ada Lovelace", city="London"),))
    asked = questions(facts, ["city"], {"city": ["Where is {subject} from?", "Where is {subject} from?"]})
    assert asked.pairs == (("Where is Ada Lovelace from?", "London"),)


def test_one_wording_for_two_relations_is_refused():
    facts = Facts((Person("Dune", more=(("author", "Herbert"), ("price", "9"))),))
    own = {"author": ["Tell me of {subject}?"], "price": ["What is {subject}?", "Tell me of {subject}?"]}
    with pytest.raises(QkvError, match="asks for author and for price"):
        questions(facts, ["author", "price"], own)
    assert len(questions(facts, ["price"], {"price": own["price"]})) == 2


@pytest.mark.parametrize("wording", ["Where was {subject} born?", "Where  was\u00a0{subject} born?"])
def test_the_wording_of_another_relation_is_refused_however_it_is_spaced(wording):
    facts = Facts((Person("Cy Ford", city="Rome", country="Italy"),))
    with pytest.raises(QkvError, match="asks for city and for country"):
        questions(facts, ["city", "country"], {"country": [wording]})
