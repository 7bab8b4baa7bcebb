"""Probes of names: the discriminants are those of Gaussian classes, and a probe is one linear model of its inputs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from qkv.knowledge import pantheon
from qkv.knowledge.confidence.logistic import fit
from qkv.knowledge.confidence.metrics import auroc
from qkv.knowledge.language_models import name_probes
from qkv.knowledge.language_models.causal_model import CausalModel
from qkv.knowledge.language_models.name_probes import (
    REAL_RIDGE,
    NameProbes,
    country_of,
    fit_country,
    fit_real,
    name_inputs,
    read_name_probes,
)
from qkv.knowledge.language_models.signals import SignalReader


def drawn(n: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Hidden states around one centre for each of three countries, and a rare one."""
    random = np.random.default_rng(seed)
    countries = ["France", "Italy", "Japan", "Malta"]
    own = random.choice(4, p=[0.4, 0.3, 0.29, 0.01], size=n)
    centres = np.random.default_rng(5).normal(size=(4, 12))
    return [countries[i] for i in own], centres[own] * 2 + random.normal(size=(n, 12))


def test_the_country_probe_tells_countries_and_pools_the_rare_ones() -> None:
    countries, hidden = drawn(400, 1)
    probe = fit_country(countries, hidden)
    assert probe is not None and set(probe.countries) == {"France", "Italy", "Japan", ""}
    others, states = drawn(300, 2)
    logs = probe.log_probabilities(states)
    assert np.allclose(np.exp(logs).sum(1), 1)
    likeliest = [probe.countries[i] for i in logs.argmax(1)]
    assert np.mean([a == b for a, b in zip(likeliest, others, strict=True)]) > 0.8
    assert fit_country(["France"] * 20, hidden[:20]) is None


def test_an_answer_has_the_log_probability_of_its_country() -> None:
    countries, hidden = drawn(400, 1)
    probe = fit_country(countries, hidden)
    assert probe is not None
    probes = NameProbes(fit(hidden, np.arange(400) % 2), probe)
    logs = probe.log_probabilities(hidden[:4])
    found = probes.fits(["Paris", "Tokyo", "Nowhere at all", "Rome, Italy"], "city", hidden[:4])
    wanted = [logs[i, probe.countries.index(c)] for i, c in enumerate(("France", "Japan", "", "Italy"))]
    assert found == pytest.approx(np.maximum(wanted, name_probes.LEAST_LOG))
    assert not probes.fits(["1879"] * 4, "year", hidden[:4]).any()
    assert not NameProbes(probes.real, None).fits(["Paris"] * 4, "city", hidden[:4]).any()


def test_the_country_of_an_answer_is_that_of_the_shipped_table() -> None:
    for answer, relation, country in (
        ("Paris", "city", "France"),
        ("Königsberg", "city", "Russia"),
        ("England", "country", "United Kingdom"),
        ("London, England", "city", "United Kingdom"),
        ("", "city", ""),
        ("Xyzzy", "country", ""),
    ):
        assert country_of(answer, relation) == country


def test_the_probe_for_real_names_is_one_linear_model_of_its_inputs() -> None:
    random = np.random.default_rng(3)
    real = np.arange(300) < 150
    signals, hidden = random.normal(size=(300, 3)) + real[:, None], random.normal(size=(300, 20)) * 3 + 7
    hidden[:, 4] += 4 * real
    model = fit_real(signals, hidden, real)
    score = model.score(name_inputs(signals, hidden))
    z = (hidden - hidden.mean(0)) / hidden.std(0)
    _, vectors = np.linalg.eigh(z.T @ z)
    direct = fit(np.hstack((signals, z @ vectors[:, ::-1])), real.astype(float), REAL_RIDGE)
    assert score == pytest.approx(direct.score(np.hstack((signals, z @ vectors[:, ::-1]))), abs=1e-6)
    assert auroc(score, real) > 0.9


def test_probes_survive_json_and_damaged_ones_are_refused() -> None:
    countries, hidden = drawn(200, 1)
    probes = NameProbes(fit(hidden, np.arange(200) % 2), fit_country(countries, hidden))
    data = json.loads(json.dumps(probes.to_json()))
    again = NameProbes.from_json(data)
    answers = ["Paris"] * 200
    assert (again.fits(answers, "city", hidden) == probes.fits(answers, "city", hidden)).all()
    for field, value in (("bias", [1.0]), ("scale", [0.0] * 12), ("weights", [[float("nan")] * 4] * 12)):
        with pytest.raises(ValueError, match="do not fit together"):
            NameProbes.from_json({**data, "country": {**data["country"], field: value}})


def test_the_probes_are_fitted_on_names_that_are_not_asked_about(
    model: CausalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_probes, "MIN_NAMES", 60)
    asked = frozenset(person.name for person in pantheon().people[:9000])
    read, done, own = [], [], SignalReader.read_names

    def reading(self: SignalReader, names: list[str], n_contexts: int) -> object:
        read.extend(names)
        return own(self, names, n_contexts)

    monkeypatch.setattr(SignalReader, "read_names", reading)
    reader = SignalReader(model, "city")
    probes = read_name_probes(reader, 10, asked, 0, lambda n, total: done.append((n, total)))
    assert len(read) == done[-1][0] == done[-1][1] and 100 < len(read) <= 120 and not set(read) & asked
    table = {person.name for person in pantheon()}
    assert sum(name in table for name in read) == 60
    assert np.isfinite(probes.real.score(name_inputs(np.zeros((1, 3)), np.zeros((1, 32))))).all()
