"""The badge: its file, its statements and the inputs of its models."""

import json
import math
import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import special

from qkv.core.json_files import with_checksum
from qkv.errors import QkvError
from qkv.knowledge import Badge
from qkv.knowledge.confidence.badge import (
    FILE,
    FORMAT,
    INPUTS,
    MADE_UP,
    REMEMBERED,
    UNSURE,
    model_inputs,
    rule_of_thumb,
    save_unless_worse,
)
from qkv.knowledge.confidence.calibration import fit_badge
from qkv.knowledge.confidence.features import FEATURES
from qkv.train import checkpoint


@pytest.fixture(scope="module")
def simulated(simulate):
    return simulate(240, 0)


@pytest.fixture(scope="module")
def badge(simulated):
    return fit_badge(*simulated, 0.9)[0]


def that_says_nothing(badge):
    """The same badge with thresholds that nothing passes."""
    never = replace(badge.remembered, threshold=math.inf, level=0.0, accepted=0, right=0)
    return replace(badge, calibrator=replace(badge.calibrator, remembered=never, made_up=never))


def test_a_badge_survives_its_file(badge, simulated, tmp_path):
    assert Badge.load(tmp_path) is None
    for each in (badge, that_says_nothing(badge)):
        each.save(tmp_path)
        again = Badge.load(tmp_path)
        assert again == each and again.judge(simulated[0]) == each.judge(simulated[0])


def test_a_fit_that_came_to_nothing_does_not_replace_one_that_works(badge, tmp_path):
    nothing = that_says_nothing(badge)
    assert save_unless_worse(nothing, tmp_path) and Badge.load(tmp_path) == nothing  # there was none
    assert save_unless_worse(badge, tmp_path) and Badge.load(tmp_path) == badge
    assert not save_unless_worse(nothing, tmp_path) and Badge.load(tmp_path) == badge
    (tmp_path / FILE).unlink()
    assert save_unless_worse(nothing, tmp_path) and Badge.load(tmp_path) == nothing


def test_damaged_files_and_other_formats_are_refused(badge, tmp_path):
    badge.save(tmp_path)
    text = (tmp_path / FILE).read_text()
    data = json.loads(text)
    own = data["calibrator"]
    broken = [text[:-20], "[]", "{}", text.replace(FORMAT, "other"), text.replace(FORMAT, "qkv-trust-6")]
    for changes in (
        {"right_model": {**own["right_model"], "weights": [1]}}, {"features": ["other"]}, {"remembered": 3},
        {"remembered": {**own["remembered"], "level": "0.5"}}, {"n_questions": True}, {"seen_model": 1},
    ):  # fmt: skip
        broken.append(json.dumps(with_checksum({**data, "calibrator": {**own, **changes}})))
    broken += [
        json.dumps(with_checksum({**data, **more})) for more in ({"more": 1}, {"unread_name": None}, {"by_name": 1})
    ]
    broken += [json.dumps(with_checksum({**data, "unread_name": value})) for value in (1e308, -1e308, 0.5)]
    broken.append(json.dumps(with_checksum({**data, "calibrator": {**own, "right_model": None}})))
    broken.append(json.dumps({key: value for key, value in data.items() if key != "checksum"}))
    broken.append("[" * 10**5)
    for each in broken:
        (tmp_path / FILE).write_text(each)
        with pytest.raises(QkvError, match="damaged or of another version"):
            Badge.load(tmp_path)


@pytest.mark.parametrize("change", ["remembered", "made_up", "right_model", "unread_name", "nothing"])
def test_a_badge_that_was_edited_is_refused_whatever_it_says_of_itself(badge, tmp_path, change):
    badge.save(tmp_path)
    data = json.loads((tmp_path / FILE).read_text())
    own = data["calibrator"]
    if change in ("remembered", "made_up"):
        own[change]["threshold"] = -30.0
    elif change == "right_model":
        own[change]["bias"] = 50.0
    elif change == "unread_name":
        data[change] = -2.5
    for checksum in ("edited", data["checksum"]) if change != "nothing" else ("edited",):
        (tmp_path / FILE).write_text(json.dumps({**data, "checksum": checksum}))
        with pytest.raises(QkvError, match="edited by hand" if checksum == "edited" else "does not fit its content"):
            Badge.load(tmp_path)


def test_the_badge_follows_from_the_score_and_the_thresholds(badge):
    high, low = badge.remembered.threshold, -badge.calibrator.made_up.threshold
    scores = [high + 0.1, high, low, low - 0.1, math.nextafter(high, math.inf)]
    assert [badge.calibrator.badge_of_score(s) for s in scores] == [REMEMBERED, UNSURE, UNSURE, MADE_UP, REMEMBERED]
    assert low <= high and badge.statement(UNSURE) is None
    assert badge.statement(REMEMBERED) == str(badge.remembered)
    made_up = badge.calibrator.made_up.sentence("wrong")
    assert badge.statement(MADE_UP) == made_up and replace(badge, n_unanswered=1).statement(MADE_UP) != made_up
    nothing = that_says_nothing(badge)
    assert {nothing.calibrator.badge_of_score(s) for s in (-1e9, 0.0, 1e9)} == {UNSURE}


def test_judgements_are_those_of_the_two_models(badge, simulated):
    values = simulated[0]
    x = model_inputs(values)
    right, seen = badge.calibrator.right_model, badge.calibrator.seen_model
    for i, judged in enumerate(badge.judge(values)):
        p_seen, p_right = (special.expit(model.score(x[i : i + 1])[0]) for model in (seen, right))
        assert judged.p_seen == pytest.approx(p_seen) and judged.p_right == pytest.approx(p_seen * p_right)
        assert judged.badge == badge.calibrator.badge_of_score(special.logit(judged.p_right))


def test_inputs_are_log_odds_of_probabilities_the_log_of_the_entropy_and_the_rest_as_it_is():
    p = np.array([0.999, 0.5, 1e-9, 1.0])
    values = np.column_stack([np.log(p)] + [np.full(4, 0.25)] * (len(FEATURES) - 1))
    values[:, list(FEATURES).index("margin")] = [0.25, 0.5, 100, -100]
    x = model_inputs(values)
    assert x[:3, 0] == pytest.approx(special.logit(p[:3]), rel=1e-6) and 13 < x[3, 0] < 14
    assert x[:, INPUTS.index("entropy")] == pytest.approx(np.log(0.25))
    assert x[:, INPUTS.index("margin")].tolist() == [0.25, 0.5, 30, -30]
    assert "agreement" not in INPUTS and x.shape == (4, len(INPUTS))


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


def test_a_badge_holds_for_the_weights_that_it_was_fitted_on_alone(badge, tmp_path):
    """Not for a run that was trained on since, and not for another run that its file is copied to."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, weight in ((one, 1.0), (two, 2.0)):
        folder.mkdir()
        checkpoint.save(folder, 5, {"w": torch.full((3,), weight)}, {})
    badge.save(one)
    assert Badge.load(one).remembered == badge.remembered
    (two / FILE).write_bytes((one / FILE).read_bytes())
    with pytest.raises(QkvError, match="fitted on other weights"):
        Badge.load(two)
    checkpoint.save(one, 6, {"w": torch.full((3,), 1.0)}, {})  # even if a further step changed nothing
    with pytest.raises(QkvError, match="qkv trust; or remove the file"):
        Badge.load(one)
    assert save_unless_worse(that_says_nothing(badge), one)  # one of other weights does not work: it is replaced
    assert not Badge.load(one).remembered.accepted


@pytest.mark.parametrize("kind", ["folder", "broken link", "pipe"])
def test_what_is_no_file_is_not_taken_for_a_run_without_a_badge(kind, tmp_path):
    path = tmp_path / "trust.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "nothing")
    with pytest.raises(QkvError, match=r"trust.json: it is no file"):
        Badge.load(tmp_path, "weights")
    path.rmdir() if kind == "folder" else path.unlink()
    assert Badge.load(tmp_path, "weights") is None


@pytest.mark.parametrize(
    "kind", ["notes", "text", "damaged", "edited", "other format", "link", "broken link", "folder"]
)
def test_what_is_no_badge_as_qkv_wrote_it_is_not_replaced(kind, badge, tmp_path, contents):
    out, path = tmp_path / "out", tmp_path / "out" / FILE
    out.mkdir()
    badge.save(out, "weights")
    data = json.loads(path.read_text())
    others = {
        "notes": json.dumps({"my own": "trust notes"}),
        "text": "my own notes",
        "damaged": path.read_text()[:-20],
        "edited": json.dumps({**data, "checksum": "edited"}),
        "other format": json.dumps(with_checksum({**data, "format": "mine"})),
    }
    if "link" in kind:
        path.rename(tmp_path / "badge") if kind == "link" else path.unlink()
        path.symlink_to(tmp_path / "badge")
    elif kind == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_text(others[kind])
    before = contents(tmp_path)
    for save in (badge.save, lambda folder: save_unless_worse(that_says_nothing(badge), folder)):
        with pytest.raises(QkvError, match=r"trust\.json: it is there already, and is no badge as qkv wrote it"):
            save(out)
    assert contents(tmp_path) == before


def test_a_badge_of_another_version_is_replaced(badge, tmp_path):
    badge.save(tmp_path, "weights")
    data = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps(with_checksum({**data, "format": "qkv-trust-11"})))
    badge.save(tmp_path, "weights")
    assert Badge.load(tmp_path, "weights") == badge
