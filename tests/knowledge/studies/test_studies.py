"""Studies: cells are measured once and survive a stop; the formula of capacity; whose answers are borrowed."""

import itertools
import json
import math

import numpy as np
import pytest
import torch

from qkv.errors import QkvError
from qkv.knowledge import Facts, Person, study
from qkv.knowledge.studies import STUDIES, attention_variants, capacity, extraction, pretraining_ablation, rare_facts
from qkv.knowledge.studies.experiment import Cell, Study, work
from qkv.viz.plots.studies import studied


def cells(log, count=3):
    def measure(i, folder):
        assert folder.is_dir()
        log.append(i)
        if i == 1 and len(log) == 2:
            raise KeyboardInterrupt
        return {"value": i * i}

    return [Cell(f"cell-{i}", {"i": i}, lambda folder, i=i: measure(i, folder)) for i in range(count)]


def test_a_study_that_was_stopped_goes_on_where_it_was(tmp_path):
    log = []
    with pytest.raises(KeyboardInterrupt):
        work(tmp_path, cells(log), watch=lambda name, at, of: None)
    found = work(tmp_path, cells(log))
    assert log == [0, 1, 1, 2] and [found[f"cell-{i}"]["value"] for i in range(3)] == [0, 1, 4]
    assert work(tmp_path, cells(log)) == found and len(log) == 4
    assert not any((tmp_path / "runs").iterdir())


def test_time_ends_a_study_between_cells_and_other_sizes_are_refused(tmp_path):
    log = []
    work(tmp_path, cells(log, 1))
    assert set(work(tmp_path, cells(log), minutes=-1)) == {"cell-0"}
    with pytest.raises(QkvError, match="no time"):
        work(tmp_path / "other", cells(log), minutes=-1)
    with pytest.raises(QkvError, match="other sizes"):
        work(tmp_path, [Cell("cell-0", {"i": 7}, lambda folder: {})])
    (tmp_path / "cells" / "cell-0.json").write_text("{")
    with pytest.raises(QkvError, match="damaged"):
        work(tmp_path, cells(log))


def test_a_study_shows_its_table_and_what_is_left():
    found = Study(
        "extraction", "T", ({"what": "x", "accuracy": 0.5, "interval": (0.4, 0.6)}, {"what": "y"}), ("Said.",), 1, 3
    )
    card = found.card()
    assert card.columns == ("what", "accuracy", "interval") and card.rows == (
        ("x", "0.5", "0.4 to 0.6"),
        ("y", "–", "–"),
    )
    assert "2 of 3 cells are left" in card.note and not found.complete


def test_a_model_that_knows_everything_has_learned_what_the_formula_counts_by_hand():
    n, names, values, traits = 100, 4096, 64, 10
    perfect = capacity.bits(n, names, math.log(n), values, [0.0] * traits)
    assert perfect == pytest.approx(n * (12 - math.log2(n)) + n * traits * 6)
    assert capacity.bits(n, names, math.log(names), values, [math.log(values)] * traits) == pytest.approx(0)
    assert capacity.bits(n, names, 99.0, values, [99.0] * traits) == 0  # worse than guessing is not less than nothing
    half = capacity.bits(n, names, math.log(names), values, [math.log(8)] * traits)
    assert half == pytest.approx(n * traits * 3)


def test_the_losses_of_capacity_are_those_of_a_model_that_knows_one_trait():
    people = capacity.drawn(20, 16, seed=0)
    assert len({tuple(p) for p in people[:, 1:3].tolist()}) == 20 and people[:, 3:].max() < capacity.VALUES
    assert people[:, 2].min() > capacity.VALUES and set(people[:, 0]) == {capacity.VALUES}

    class Run:
        @staticmethod
        def model(tokens, layout):
            """Sure of trait 3, and knows nothing else."""
            logits = torch.zeros(20, capacity.LENGTH, 200)
            logits[torch.arange(20), 5, torch.from_numpy(people[:, 6])] = 50.0
            return logits

    names, values = capacity.losses(Run, people)
    assert names == pytest.approx(2 * math.log(200), rel=1e-4)
    assert values[3] == pytest.approx(0, abs=1e-6)
    assert np.allclose([v for i, v in enumerate(values) if i != 3], math.log(200), rtol=1e-4)


def test_capacity_runs_end_to_end_on_a_handful(tmp_path, monkeypatch):
    monkeypatch.setattr(capacity, "EXPOSURES", (5, 60))
    found = study("capacity", tmp_path, people=20)
    assert found.complete and len(found.rows) == 2
    few, many = found.rows
    assert 0 <= few["bits_per_parameter"] < many["bits_per_parameter"] and json.loads(
        (tmp_path / "study.json").read_text()
    )
    assert studied(found)


def test_borrowed_answers_are_traced_to_parts_of_names_and_to_the_prior():
    known = Facts((Person("Ada Long", "Rome"), Person("Bob Short", "Oslo"), Person("Cy Wide", "Lima")))
    asked = Facts((Person("Ada Short", "Bern"), Person("Dee Wide", "Kiev"), Person("Eve Tall", "Graz")))
    found = pretraining_ablation.borrowed(asked, ["Oslo", "Rome", "Nowhere"], known, ["Rome"])
    assert found["by_name"] == pytest.approx(1 / 3) and found["by_prior"] == pytest.approx(1 / 3)
    assert found["examples"] == ["Where was Ada Short born? Oslo (so was Bob Short; it was Bern)"]
    # Dealt out at random, Rome or Oslo come to Ada Short two times in three, Lima never to Dee Wide.
    assert found["by_chance"] == pytest.approx(2 / 9) and found["common"] == pytest.approx(1 / 3)
    assert "33 % of the answers" in pretraining_ablation.told([found])[0]


def test_particles_initials_and_numbers_are_no_parts_of_a_name():
    assert pretraining_ablation.parts_of("Henry VIII of England") == ["Henry", "England"]
    assert pretraining_ablation.parts_of("Jo de la Cruz III, B. Cruz") == ["Cruz"]


def test_kinds_differ_only_where_the_interval_of_the_difference_and_every_seed_say_so():
    scores = {
        "rope": [(140, 150), (140, 150)],
        "causal": [(135, 150), (135, 150)],
        "perceiver": [(10, 150), (10, 150)],
        "synthesizer": [(141, 150), (90, 150)],
    }
    said = dict(zip(itertools.combinations(scores, 2), attention_variants.compared(scores), strict=True))
    assert "nothing is proved" in said["rope", "causal"] and "disagree" not in said["rope", "causal"]
    assert said["rope", "perceiver"].startswith("rope beats perceiver by 80 to 91")
    assert said["causal", "perceiver"].startswith("causal beats")
    assert said["perceiver", "synthesizer"].startswith("synthesizer beats")
    # Over all questions rope is far ahead, but one seed says otherwise.
    assert said["rope", "synthesizer"].startswith("Between") and "seeds disagree" in said["rope", "synthesizer"]


@pytest.mark.parametrize("module", [pretraining_ablation, rare_facts, attention_variants, extraction])
def test_every_study_goes_from_people_to_a_table_and_a_picture(module, tmp_path, monkeypatch):
    from dataclasses import replace

    school = replace(module.SCHOOL, people=24, exposures=4, width=16, heads=2, vocab=500, batch=16)
    monkeypatch.setattr(module, "SCHOOL", school)
    if module is attention_variants:
        monkeypatch.setattr(module, "ATTENTIONS", ("rope", "perceiver"))
    if module is extraction:
        monkeypatch.setattr(module, "RUNGS", (extraction.RUNGS[0], extraction.RUNGS[4], extraction.RUNGS[6]))
    if module is rare_facts:
        monkeypatch.setattr(module, "SHARES", (0.0, 0.5))
    name = module.__name__.rsplit(".", 1)[1].removeprefix("attention_").removeprefix("pretraining_")
    found = study(name, tmp_path, seeds=1)
    assert found.complete and found.name == name and len(found.rows) >= 2
    assert json.loads(json.dumps(found.to_json()))["rows"]
    assert studied(found).axes


def test_studies_that_do_not_exist_and_numbers_that_are_none_are_refused(tmp_path):
    for name, options in (("nothing", {}), ("extraction", {"seeds": -1}), ("extraction", {"minutes": 0})):
        with pytest.raises(QkvError, match="the study"):
            study(name, tmp_path, **options)
    assert set(STUDIES) == {"extraction", "capacity", "variants", "ablation", "rare_facts"}
