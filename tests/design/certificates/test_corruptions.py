"""Saved certificates, corrupted at random: every false one is refused, no true one is."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from marks import some

import qkv
from qkv.design.certificates.certificate import load
from qkv.design.certificates.statements import KINDS

sys.path.insert(0, str(Path(__file__).parent))
import oracle
import oracle_texts
from corruptions import SOURCES, TEXT_SOURCES, corrupt, extreme, float64_first, pack, saved

ROUNDS = 8
EACH = 84
"""Corruptions in one test; those of all sources and rounds, slow ones too, are more than 10,000."""


def corrupted(name, round_, suffix):
    """The round's corrupted entries, each with what the oracle says of it."""
    rng = np.random.default_rng([round_, *name.encode()])
    for _ in range(EACH):
        entry = json.loads(saved(name, round_ // 2, suffix))
        corrupt(rng, entry)
        yield entry, bool(oracle.truth(entry["kind"], entry["data"], entry["claims"]))


@pytest.mark.parametrize("round_", some(range(ROUNDS), [0]))
@pytest.mark.parametrize("name", SOURCES)
def test_false_ones_are_refused_and_true_ones_are_not(name, round_, tmp_path):
    suffix = (".json", ".safetensors")[round_ % 2]
    path = tmp_path / f"corrupted{suffix}"
    outcomes = []
    for entry, expected in corrupted(name, round_, suffix):
        pack(entry, path)
        try:
            verification = load(path)[0].verify()
        except qkv.QkvError:  # NaN has no form in a file
            assert "NaN" in json.dumps(entry) and not expected
            continue
        assert bool(verification) is expected, f"{verification.why}\n{json.dumps(entry)}"
        outcomes.append(expected)
    assert 5 <= sum(outcomes) <= EACH - 5, "nearly all alike, so this tests little"


def test_ten_thousand_of_every_kind_are_tried_and_a_good_part_is_true_and_a_good_part_false():
    assert len(SOURCES) * ROUNDS * EACH >= 10_000
    assert {SOURCES[name](0).kind for name in SOURCES} == set(oracle.JUDGES)
    outcomes = [expected for name in SOURCES for _, expected in corrupted(name, 0, ".json")]
    assert 0.2 < np.mean(outcomes) < 0.8


@pytest.fixture
def in_float64():
    with float64_first():
        yield


@pytest.mark.parametrize("round_", some(range(ROUNDS), [0]))
@pytest.mark.parametrize("name", [*SOURCES, *TEXT_SOURCES])
def test_numbers_of_extreme_sizes_prove_nothing_false_in_float64(name, round_, tmp_path, in_float64):
    rng = np.random.default_rng([round_, *name.encode()])
    path, accepted = tmp_path / "extreme.json", 0
    for _ in range(EACH if round_ else EACH // 4):
        entry = json.loads(saved(name, round_ // 2, ".json"))
        extreme(rng, entry)
        true = oracle_texts.truth(entry["kind"], entry["data"], entry["claims"])
        pack(entry, path)
        try:
            held = bool(load(path)[0].verify())
        except qkv.QkvError:  # NaN has no form in a file
            held = False
        assert true or not held, json.dumps(entry)
        accepted += held
    assert accepted


def test_every_kind_is_forged_and_judged():
    sources = {**SOURCES, **TEXT_SOURCES}
    assert {sources[name](0).kind for name in sources} == {*oracle.JUDGES, *oracle_texts.JUDGES} == set(KINDS)
