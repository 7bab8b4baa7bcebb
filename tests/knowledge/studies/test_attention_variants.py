"""Study "variants": which differences are significant, and a small run."""

import itertools
import json

import pytest
from scipy import stats

from qkv.knowledge import study
from qkv.knowledge.studies import attention_variants
from qkv.knowledge.studies.attention_variants import BONFERRONI_Z, compare
from qkv.viz.plots.studies import study_figure


def test_kinds_differ_if_the_interval_excludes_0_and_all_seeds_agree():
    scores = {
        "rope": [(140, 150), (140, 150)],
        "causal": [(135, 150), (135, 150)],
        "perceiver": [(10, 150), (10, 150)],
        "synthesizer": [(141, 150), (90, 150)],
    }
    said = dict(zip(itertools.combinations(scores, 2), compare(scores), strict=True))
    assert "no difference is shown" in said["rope", "causal"] and "disagree" not in said["rope", "causal"]
    assert said["rope", "perceiver"].startswith("rope beats perceiver by 80 to 91")
    assert said["causal", "perceiver"].startswith("causal beats")
    assert said["perceiver", "synthesizer"].startswith("synthesizer beats")
    # Over all questions rope is far ahead, but one seed has it behind.
    assert said["rope", "synthesizer"].startswith("Between") and "seeds disagree" in said["rope", "synthesizer"]


def test_six_intervals_hold_together_with_95_percent():
    assert 6 * 2 * stats.norm.sf(BONFERRONI_Z) == pytest.approx(0.05)


def test_the_study_gives_a_table_and_a_figure(tmp_path, monkeypatch, small_setup):
    monkeypatch.setattr(attention_variants, "SETUP", small_setup(attention_variants.SETUP))
    monkeypatch.setattr(attention_variants, "ATTENTIONS", ("rope", "perceiver"))
    found = study("variants", tmp_path, seeds=1)
    assert found.complete and found.name == "variants" and [row["what"] for row in found.rows] == ["rope", "perceiver"]
    assert json.loads(json.dumps(found.to_json()))["rows"] and study_figure(found).axes
    assert len(found.remarks) == 1
