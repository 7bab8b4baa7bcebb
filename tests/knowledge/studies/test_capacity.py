"""Study "capacity": the formula by hand, the losses of a known model, and a small run."""

import json
import math

import numpy as np
import pytest
import torch

from qkv.knowledge import study
from qkv.knowledge.studies import capacity
from qkv.viz.plots.studies import study_figure


def test_bits_of_models_that_know_everything_nothing_or_a_part():
    n, names, values, traits = 100, 4096, 64, 10
    perfect = capacity.bits(n, names, math.log(n), values, [0.0] * traits)
    assert perfect == pytest.approx(n * (12 - math.log2(n)) + n * traits * 6)
    assert capacity.bits(n, names, math.log(names), values, [math.log(values)] * traits) == pytest.approx(0)
    assert capacity.bits(n, names, 99.0, values, [99.0] * traits) == 0  # worse than guessing counts as 0
    half = capacity.bits(n, names, math.log(names), values, [math.log(8)] * traits)
    assert half == pytest.approx(n * traits * 3)


def test_the_losses_of_a_model_that_knows_one_trait():
    people = capacity.random_people(20, 16, seed=0)
    assert len({tuple(p) for p in people[:, 1:3].tolist()}) == 20 and people[:, 3:].max() < capacity.N_VALUES
    assert people[:, 2].min() > capacity.N_VALUES and set(people[:, 0]) == {capacity.N_VALUES}

    class Run:
        @staticmethod
        def model(tokens, layout):
            """Knows trait 3 and nothing else."""
            logits = torch.zeros(20, capacity.LENGTH, 200)
            logits[torch.arange(20), 5, torch.from_numpy(people[:, 6])] = 50.0
            return logits

    names, values = capacity.losses(Run, people)
    assert names == pytest.approx(2 * math.log(200), rel=1e-4)
    assert values[3] == pytest.approx(0, abs=1e-6)
    assert np.allclose([v for i, v in enumerate(values) if i != 3], math.log(200), rtol=1e-4)


@pytest.mark.slow
def test_more_exposures_give_more_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(capacity, "EXPOSURES", (5, 60))
    found = study("capacity", tmp_path, people=20)
    assert found.complete and len(found.rows) == 2
    few, many = found.rows
    assert 0 <= few["bits_per_parameter"] < many["bits_per_parameter"] and json.loads(
        (tmp_path / "study.json").read_text()
    )
    assert study_figure(found)
