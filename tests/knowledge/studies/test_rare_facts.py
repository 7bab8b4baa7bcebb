"""Study "rare_facts": a small run, and the lengths of its texts."""

import json

import pytest

from qkv.knowledge import study
from qkv.knowledge.studies import rare_facts
from qkv.viz.plots.studies import study_figure


@pytest.mark.slow
def test_the_study_gives_a_table_and_a_figure(tmp_path, monkeypatch, small_setup):
    monkeypatch.setattr(rare_facts, "SETUP", small_setup(rare_facts.SETUP))
    monkeypatch.setattr(rare_facts, "SHARES", (0.0, 0.5))
    found = study("rare_facts", tmp_path, seeds=1)
    assert found.complete and found.name == "rare_facts" and [row["seen_once"] for row in found.rows] == [0.0, 0.5]
    assert json.loads(json.dumps(found.to_json()))["rows"] and study_figure(found).axes
    none, half = found.rows
    assert none["made_up_of_once"] is None and none["made_up"] == none["made_up_of_often"]
    cell = json.loads((tmp_path / "cells" / "share-50-seed-0.json").read_text("utf-8"))["result"]
    assert cell["n_once"] + cell["n_often"] == cell["n"] == half["n"]
    assert cell["wrong_once"] + cell["wrong_often"] == cell["wrong"] == round(half["made_up"] * half["n"])


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_texts_are_of_one_length_for_every_share(share, tmp_path, monkeypatch, small_setup):
    class Stop(Exception):
        pass

    def pretrain(folder, texts, *rest, examples):
        lengths.append(len(texts))
        raise Stop

    lengths = []
    monkeypatch.setattr(rare_facts, "pretrain_cloze", pretrain)
    with pytest.raises(Stop):
        rare_facts.measure(share, small_setup(rare_facts.SETUP), 0, tmp_path)
    assert abs(lengths[0] - rare_facts.OFTEN * 24) < rare_facts.OFTEN


@pytest.mark.parametrize(
    ("once", "often", "title"),
    [
        ((60, 100), (10, 100), "Facts stated once are made up more often"),
        ((10, 100), (60, 100), "Facts stated once are made up less often"),
        ((2, 4), (0, 4), rare_facts.NEUTRAL_TITLE),  # too few to tell
        ((20, 100), (18, 100), rare_facts.NEUTRAL_TITLE),
        ((0, 0), (1, 4), rare_facts.NEUTRAL_TITLE),  # no such fact was asked for
        ((3, 4), (0, 0), rare_facts.NEUTRAL_TITLE),
    ],
)
def test_the_title_states_a_difference_only_where_one_is_shown(once, often, title):
    found, remarks = rare_facts.finding(once, often)
    assert found == title and bool(remarks) == bool(once[1] and often[1])
    if remarks:
        assert f"of the {once[1]} answers" in remarks[0] and f"of the {often[1]} about" in remarks[0]
