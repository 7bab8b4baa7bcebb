"""The badge: its file, its thresholds and the inputs of its models."""

import json

import numpy as np
import pytest
from scipy import special

from qkv.errors import QkvError
from qkv.knowledge import Badge
from qkv.knowledge.confidence.badge import FILE, FORMAT, MADE_UP, REMEMBERED, UNSURE, model_inputs, rule_of_thumb
from qkv.knowledge.confidence.calibration import fit_badge
from qkv.knowledge.confidence.features import FEATURES
from qkv.knowledge.confidence.logistic import LogisticModel


@pytest.fixture(scope="module")
def simulated(simulate):
    return simulate(200, 0)


@pytest.fixture(scope="module")
def badge(simulated):
    return fit_badge(*simulated, 0.9)


def test_a_badge_survives_its_file(badge, simulated, tmp_path):
    values, hidden, *_ = simulated
    assert Badge.load(tmp_path) is None
    badge.save(tmp_path)
    again = Badge.load(tmp_path)
    assert again == badge and again.judge(values, hidden) == badge.judge(values, hidden)
    assert json.loads((tmp_path / FILE).read_text())["features"] == list(FEATURES)


def test_damaged_files_and_other_formats_are_refused(badge, tmp_path):
    badge.save(tmp_path)
    text = (tmp_path / FILE).read_text()
    data = json.loads(text)
    broken = [text[:-20], "[]", "{}", text.replace(FORMAT, "other"), text.replace(FORMAT, "qkv-trust-4")]
    broken += [json.dumps({**data, "probe": {**data["probe"], "weights": [1]}}), json.dumps({**data, "more": 1})]
    broken += [json.dumps({**data, "features": ["other"]})]
    for each in broken:
        (tmp_path / FILE).write_text(each)
        with pytest.raises(QkvError, match="damaged or of another version"):
            Badge.load(tmp_path)


def test_the_badge_follows_from_the_probability_and_the_thresholds():
    model = LogisticModel((), (), (), 0.0)
    badge = Badge(model, model, model, 0.8, 0.3, 0.95, 1.0, 100)
    assert [badge.name(p) for p in (0.9, 0.8, 0.79, 0.31, 0.3, 0.0)] == [
        REMEMBERED, REMEMBERED, UNSURE, UNSURE, MADE_UP, MADE_UP,
    ]  # fmt: skip
    never = Badge(model, model, model, 2.0, -1.0, 0.95, 1.0, 100)
    assert [never.name(p) for p in (0.0, 1.0)] == [UNSURE, UNSURE]


def test_judgements_are_those_of_the_three_models(badge, simulated):
    values, hidden, *_ = simulated
    x = model_inputs(values, badge.probe.score(hidden))
    for i, judged in enumerate(badge.judge(values, hidden)):
        assert judged.p_right == pytest.approx(special.expit(badge.right_model.score(x[i : i + 1])[0]))
        assert judged.p_seen == pytest.approx(special.expit(badge.seen_model.score(x[i : i + 1])[0]))
        assert judged.badge == badge.name(judged.p_right)


def test_inputs_are_log_odds_of_probabilities_the_log_of_the_entropy_and_the_rest_as_it_is():
    p = np.array([0.999, 0.5, 1e-9, 1.0])
    values = np.column_stack([np.log(p)] + [np.full(4, 0.25)] * (len(FEATURES) - 1))
    x = model_inputs(values, np.array([0.0, 1.0, 100.0, -100.0]))
    names = list(FEATURES)
    assert x[:3, 0] == pytest.approx(special.logit(p[:3]), rel=1e-6) and 13 < x[3, 0] < 14
    assert x[:, names.index("entropy")] == pytest.approx(np.log(0.25))
    assert x[:, names.index("margin")] == pytest.approx(0.25)
    assert x[:, -1].tolist() == [0, 1, 30, -30]


def test_without_calibration_the_badge_is_a_rule_of_thumb():
    assert [j.badge for j in rule_of_thumb([-0.01, -0.3, -3])] == ["remembered", "unsure", "made up"]
    assert rule_of_thumb([-0.01])[0].p_right is None


def test_a_damaged_file_is_refused_or_means_the_same(badge, tmp_path, damaged_copies):
    badge.save(tmp_path)
    refused = 0
    for copy in damaged_copies((tmp_path / FILE).read_bytes(), 600):
        (tmp_path / FILE).write_bytes(copy)
        try:
            assert Badge.load(tmp_path) == badge
        except QkvError:
            refused += 1
    assert refused > 500


def test_a_badge_of_the_format_without_a_checksum_is_read_and_an_edited_one_says_so(badge, tmp_path):
    badge.save(tmp_path)
    data = json.loads((tmp_path / FILE).read_text())
    del data["checksum"]
    (tmp_path / FILE).write_text(json.dumps({**data, "format": "qkv-trust-5"}))
    assert Badge.load(tmp_path) == badge
    (tmp_path / FILE).write_text(json.dumps(data))
    with pytest.raises(QkvError, match="its checksum is missing"):
        Badge.load(tmp_path)
    (tmp_path / FILE).write_text(json.dumps({**data, "level": 0.5, "checksum": "edited"}))
    assert Badge.load(tmp_path).level == 0.5
    for wrong in ({"level": "0.5"}, {"level": None}, {"n_questions": True}, {"precision": float("nan")}, {"probe": 3}):
        (tmp_path / FILE).write_text(json.dumps({**data, **wrong, "checksum": "edited"}))
        with pytest.raises(QkvError, match="damaged or of another version"):
            Badge.load(tmp_path)
    (tmp_path / FILE).write_text("[" * 10**5)
    with pytest.raises(QkvError, match="nested"):
        Badge.load(tmp_path)
