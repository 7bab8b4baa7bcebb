"""Setup of the studies: settings, people, questions, and training in each way."""

import dataclasses
from collections import Counter

import pytest

from qkv.errors import QkvError
from qkv.knowledge import biographies, pantheon, questions
from qkv.knowledge.studies.setup import (
    FINETUNING,
    RELATIONS,
    StudySetup,
    finetune_on_questions,
    pretrain_cloze,
    sample_people,
    train_next_token,
    training_and_held_out_questions,
)
from qkv.model.config import ModelConfig
from qkv.train import finetune, load, pretrain
from qkv.train.settings import TrainSettings


def test_fields_are_those_of_model_and_training_and_reach_them():
    known = {f.name for cls in (ModelConfig, TrainSettings) for f in dataclasses.fields(cls)}
    own = {f.name for f in dataclasses.fields(StudySetup)}
    assert own - known == {"people", "exposures"}
    setup = StudySetup(d_model=32, n_layer=3, n_head=2, batch_size=8, lr=1e-4, question_fraction=0.3,
                       predict_title_fraction=0.2, min_warmup_steps=7)  # fmt: skip
    config, settings = setup.config("rope", 48), setup.settings(5, 800)
    for name in own - {"people", "exposures", "vocab_size"}:
        made = config if hasattr(config, name) else settings
        assert getattr(made, name) == getattr(setup, name)
    assert config.context_length == 48 and settings.seed == 5 and settings.steps == 100
    assert setup.settings(0, 800, batch_size=4).steps == 200 and setup.settings(0, 1).steps == 10


def test_people_of_the_text_and_others_are_different_and_from_cities_of_a_size():
    per_city = Counter(person.city for person in pantheon())
    one, two = sample_people(30, seed=4, min_per_city=20)
    assert len(one) == len(two) == 30 and not {p.name for p in one} & {p.name for p in two}
    assert all(per_city[p.city] >= 20 for p in (*one, *two))
    assert set(one.people[0].facts()) == set(RELATIONS)
    assert (one, two) == sample_people(30, seed=4, min_per_city=20) != sample_people(30, seed=5, min_per_city=20)


def test_training_and_held_out_questions_are_about_all_people_once():
    facts, _ = sample_people(11, seed=0)
    training, held_out = training_and_held_out_questions(facts, seed=0)
    assert sorted(training + held_out) == sorted(questions(facts)) and abs(len(training) - len(held_out)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("mixed", [True, False])
def test_next_token_training_has_the_questions_mixed_in_or_afterwards(mixed, tmp_path, small_setup):
    facts, _ = sample_people(24, seed=0)
    texts, asked = biographies(facts).texts, list(questions(facts))
    run = train_next_token(tmp_path, texts, asked, small_setup(StudySetup()), 0, mixed=mixed)
    assert run.folder.name == ("base" if mixed else "tuned")
    assert run.data["kind"] == ("text" if mixed else "questions")
    assert mixed or run.step == FINETUNING.steps


def test_a_finished_run_is_taken_as_it_is(tmp_path, small_setup):
    facts, _ = sample_people(24, seed=0)
    texts, asked = biographies(facts, title=True).texts, list(questions(facts))
    setup = small_setup(StudySetup())
    first, second = (pretrain_cloze(tmp_path / "base", texts, (), setup, 0) for _ in range(2))
    assert first.step == second.step == first.settings.steps
    tuned = [finetune_on_questions(tmp_path, first, asked, 0) for _ in range(2)]
    weights = [run.model.embedding.weight for run in tuned]
    assert weights[0].equal(weights[1]) and not weights[0].equal(first.model.embedding.weight)


@pytest.mark.parametrize("other", ["parent", "questions"])
def test_a_finished_run_of_another_parent_or_other_questions_is_not_taken(other, tmp_path):
    tiny = {"n_layer": 1, "n_head": 2, "d_model": 16, "steps": 1, "batch_size": 2}
    asked = {"own": [("Where was Ada born?", "London")], "other": [("Where was Bo born?", "Rome")]}
    for name in ("base", "mine"):
        pretrain(["Ada was born in London."], tmp_path / name, **tiny, seed=5 if name == "mine" else 0)
    parent, questions_ = ("mine", "own") if other == "parent" else ("base", "other")
    finetune(tmp_path / parent, asked[questions_], tmp_path / "tuned", FINETUNING)
    before = (tmp_path / "tuned" / "config.json").read_bytes()
    with pytest.raises(QkvError, match=rf"resuming .*tuned: .*{other}"):
        finetune_on_questions(tmp_path, load(tmp_path / "base"), asked["own"], 0)
    assert (tmp_path / "tuned" / "config.json").read_bytes() == before
