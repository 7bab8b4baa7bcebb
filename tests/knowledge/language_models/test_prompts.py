"""Prompts: the name and the relation of a question, chat templates, examples that name nobody who is asked about."""

from __future__ import annotations

import pytest

from qkv.errors import QkvError
from qkv.knowledge import pantheon
from qkv.knowledge.datasets.facts import RELATIONS
from qkv.knowledge.language_models.causal_model import CausalModel, from_transformers
from qkv.knowledge.language_models.prompts import WORDINGS, about, example_people, understood, ways

from .conftest import tiny_model, tiny_tokenizer


def test_every_wording_is_understood_for_every_kind_of_name() -> None:
    names = ["Plato", "Immanuel Kant", "Robert Jenkinson, 2nd Earl of Liverpool", "{name}", "50 Cent", "Édith Piaf"]
    for relation in RELATIONS:
        for wording in WORDINGS[relation]:
            for name in names:
                found = understood(f"  {wording.replace('{name}', name)} ")
                assert (found.name, found.relation) == (name, relation)


def test_another_question_has_no_relation_and_an_empty_one_is_refused() -> None:
    found = understood("Who taught Immanuel Kant?")
    assert found.relation == "" and found.name == "Immanuel Kant"
    assert understood("why is the sky blue?").name == ""
    with pytest.raises(QkvError, match="the question is empty"):
        understood("  ")
    with pytest.raises(QkvError, match="there are no wordings"):
        about("Plato", "pet")


def test_the_examples_are_facts_of_the_shipped_table_and_differ_between_the_ways(model: CausalModel) -> None:
    known = {person.name: person for person in pantheon()}
    assert example_people() <= set(known)
    for relation in RELATIONS:
        found = ways(model, relation)
        assert len(found) == 3 and len({way.before for way in found}) == 3
        for way in found:
            shown = [name for name in example_people() if name in way.before]
            assert len(shown) == 4
            assert sorted(way.answers) == sorted(getattr(known[name], relation) for name in shown)
            assert all(answer in way.before for answer in way.answers)


def test_a_chat_template_is_used_where_there_is_one_and_braces_in_a_name_are_kept() -> None:
    chat = from_transformers(tiny_model(), tiny_tokenizer(chat=True))
    question = about("Ada {x} Lovelace", "city")
    text = ways(chat, "city")[0].prompt(question)
    assert text.count("<|im_start|>user") == 5
    assert text.endswith(
        "<|im_start|>user\nIn which city was Ada {x} Lovelace born?<|im_end|>\n<|im_start|>assistant\n"
        "Ada {x} Lovelace was born in"
    )
    plain = ways(from_transformers(tiny_model(), tiny_tokenizer()), "city")[0].prompt(question)
    assert plain.endswith("Question: In which city was Ada {x} Lovelace born?\nAnswer: Ada {x} Lovelace was born in")


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ raise_exception('no such role') }}", "no such role"),
        ("{% for m in %}", "Expected an expression"),
        ("{{ messages[99]['content'] }}", "list object has no element 99"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ messages[0]['content'] }}", "leaves out the question"),
    ],
)
def test_a_chat_template_that_fails_is_refused_in_a_sentence(template: str, why: str) -> None:
    tokenizer = tiny_tokenizer(chat=True)
    tokenizer.chat_template = template
    with pytest.raises(QkvError, match=why):
        ways(from_transformers(tiny_model(), tokenizer), "city")
