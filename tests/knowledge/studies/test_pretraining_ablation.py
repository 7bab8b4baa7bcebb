"""Study "ablation": sources of made-up answers, name parts, and a small run."""

import itertools
import json

import pytest

from qkv.knowledge import Facts, Person, study
from qkv.knowledge.studies import pretraining_ablation
from qkv.knowledge.studies.pretraining_ablation import answer_sources, describe, finding, name_parts
from qkv.viz.plots.studies import study_figure


def test_answers_are_traced_to_parts_of_names_and_to_frequent_places():
    known = Facts((Person("Ada Long", "Rome"), Person("Bob Short", "Oslo"), Person("Cy Wide", "Lima")))
    asked = Facts((Person("Ada Short", "Bern"), Person("Dee Wide", "Kiev"), Person("Eve Tall", "Graz")))
    found = answer_sources(asked, ["Oslo", "Rome", "Nowhere"], known, ["Rome"])
    assert found["by_name"] == pytest.approx(1 / 3) and found["by_prior"] == pytest.approx(1 / 3)
    assert found["examples"] == ["Where was Ada Short born? Oslo (the birthplace of Bob Short; right is Bern)"]
    # Permuted at random, Ada Short gets Rome or Oslo two times in three, and Dee Wide never gets Lima.
    assert found["by_chance"] == pytest.approx(2 / 9) and found["common"] == pytest.approx(1 / 3)
    assert "33 % of the answers" in describe([found])[0]
    said = describe([{**found, "examples": ["Where was Ada born? Washington, D.C."]}])[1]
    assert said == "Such answers are true of another person: Where was Ada born? Washington, D.C."


def test_particles_initials_and_numerals_are_not_name_parts():
    assert name_parts("Henry VIII of England") == ["Henry", "England"]
    assert name_parts("Jo de la Cruz III, B. Cruz") == ["Cruz"]


def test_by_chance_is_the_mean_over_all_permutations_of_the_answers():
    known = Facts((Person("Ada Long", "Rome"), Person("Bob Short", "Oslo"), Person("Cy Wide", "Lima")))
    asked = Facts((Person("Ada Short", "Bern"), Person("Dee Wide", "Kiev"), Person("Eve Long", "Graz")))
    answers = ["Rome", "Lima", "Oslo"]
    shares = [answer_sources(asked, order, known, [])["by_name"] for order in itertools.permutations(answers)]
    assert answer_sources(asked, answers, known, [])["by_chance"] == pytest.approx(sum(shares) / len(shares))


def test_the_study_gives_a_table_and_a_figure(tmp_path, monkeypatch, small_setup):
    monkeypatch.setattr(pretraining_ablation, "SETUP", small_setup(pretraining_ablation.SETUP))
    found = study("ablation", tmp_path, seeds=1)
    assert found.complete and found.name == "ablation" and len(found.rows) == 5
    assert json.loads(json.dumps(found.to_json()))["rows"] and len(study_figure(found).axes) == 2
    assert [row["n"] for row in found.rows if "n" in row] == [6, 6, 6]
    assert all(0 <= row["probability"] <= 1 for row in found.rows if "probability" in row)


@pytest.mark.parametrize(
    ("whole", "deleted", "shown"),
    [((90, 100), (5, 100), True), ((3, 4), (1, 4), False), ((5, 100), (90, 100), False), ((4, 4), (0, 0), False)],
)
def test_the_title_states_a_difference_only_where_one_is_shown(whole, deleted, shown):
    assert (finding(whole, deleted) == "Without their text, more answers are made up") == shown
