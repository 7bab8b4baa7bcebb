"""Study "extraction": conditions in words, and a small run of three of them."""

import json

import pytest

from qkv.knowledge import study
from qkv.knowledge.studies import extraction
from qkv.knowledge.studies.extraction import CONDITIONS
from qkv.viz.plots.studies import study_figure


def test_conditions_are_different_and_have_different_descriptions():
    assert len(set(CONDITIONS)) == len({condition.text for condition in CONDITIONS}) == 9
    assert CONDITIONS[0].text == "one version, fixed, next token; questions after"
    assert CONDITIONS[-1].text == "5 versions, permuted, cloze; questions mixed in"


@pytest.mark.slow
def test_the_study_gives_a_table_and_a_figure(tmp_path, monkeypatch, small_setup):
    monkeypatch.setattr(extraction, "SETUP", small_setup(extraction.SETUP))
    monkeypatch.setattr(extraction, "CONDITIONS", (CONDITIONS[0], CONDITIONS[4], CONDITIONS[6], CONDITIONS[8]))
    found = study("extraction", tmp_path, seeds=1)
    assert found.complete and found.name == "extraction" and [row["n"] for row in found.rows] == [12] * 4
    assert json.loads(json.dumps(found.to_json()))["rows"] and study_figure(found).axes
    assert all(row["interval"][0] <= row["accuracy"] <= row["interval"][1] for row in found.rows)
