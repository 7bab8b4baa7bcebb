"""What jobs compute, called in this process."""

import itertools

import pytest

from qkv.errors import QkvError
from qkv.noise import Gaussian, layout_reports, reference_layouts
from qkv.web import job_tasks
from qkv.web.noise_scenario import NoiseScenario

STUDY = {
    "n": 5,
    "along": 0.5,
    "isotropic": 0.0,
    "heads": 3,
    "radius": 0.2,
    "scales": [2.0, 4.0],
    "n_draws": 100,
    "seed": 1,
}


class Pipe:
    """The parent's end of a pipe, as a list."""

    def __init__(self):
        self.sent = []

    def send(self, message):
        self.sent.append(message)


@pytest.fixture
def in_process(monkeypatch):
    """Runs a task in this process, without changing its priority, environment, threads or signals."""
    monkeypatch.setattr(job_tasks.os, "nice", lambda increment: 0)
    monkeypatch.setattr(job_tasks, "initialise_worker", lambda: None)

    def run(kind, settings, folder=""):
        pipe = Pipe()
        job_tasks.run_task(pipe, kind, settings, folder)
        return pipe.sent

    return run


def test_a_study_has_the_figures_of_the_library_at_each_scale(tmp_path):
    progress = []
    found = job_tasks.noise_study(STUDY, tmp_path, progress.append)["curves"]
    assert progress == [{"done": i + 1, "total": 2, "scale": s} for i, s in enumerate(STUDY["scales"])]
    memory, wanted = NoiseScenario(5, 0.5, 0.0, 3).memory, dict.fromkeys("abc", 1 / 3)
    noise = Gaussian(isotropic=0.0, along={"a": 0.5})
    for i, scale in enumerate(STUDY["scales"]):
        layouts = reference_layouts(memory, wanted, noise, scale)
        expected = layout_reports(memory, layouts, noise, wanted, 0.2, n_samples=1, n_draws=100, seed=1)
        for curve, report in zip(found, expected, strict=True):
            point = {"scale": scale, "mean": report.mean, "variance": report.variance}
            point |= {"probability": report.probability, "low": report.low, "high": report.high}
            assert curve["name"] == report.name and curve["points"][i] == point


def test_the_last_message_is_the_result_and_the_one_before_is_complete_progress(in_process):
    sent = in_process("noise-study", STUDY)
    assert sent[-1][0] == "done" and [c["name"] for c in sent[-1][1]["curves"]][1] == "three heads"
    assert sent[-2] == ("progress", {"done": 2, "total": 2, "scale": 4.0})


def test_a_refusal_and_a_bug_are_reported_with_request_problem_and_hint(in_process, monkeypatch):
    def refuse(settings, folder, report):
        raise QkvError("a", "b", "c")

    monkeypatch.setitem(job_tasks.TASKS, "refusing", refuse)
    assert in_process("refusing", {}) == [("failed", {"request": "a", "problem": "b", "hint": "c"})]
    ((status, detail),) = in_process("noise-study", {})
    assert status == "failed" and "KeyError" in detail["problem"] and detail["hint"] == "Report it"


def test_training_gives_a_model_and_questions_of_three_kinds(tmp_path, monkeypatch):
    monkeypatch.setattr(job_tasks, "BATCH_SIZE", 4)
    progress = []
    settings = {"people": 4, "steps": 10, "n_layer": 1, "d_model": 32, "attention": "rope", "seed": 0}
    found = job_tasks.train(settings, tmp_path / "train-1", progress.append)
    assert found["model"] == "train-1" and progress[-1]["done"] == progress[-1]["total"] == 10
    kinds = [q["kind"] for q in found["questions"]]
    assert kinds == ["asked about in training"] * 2 + ["only read about"] * 2 + ["not read about"] * 5
    from qkv.train import load

    run = load(tmp_path / "train-1" / "model")
    assert (run.config.n_layer, run.config.d_model, run.config.n_head) == (1, 32, job_tasks.N_HEAD)
    assert sum(p.numel() for p in run.model.parameters()) == found["parameters"]


def test_a_refined_study_leaves_no_wide_gap_in_which_a_curve_changes(tmp_path):
    """The step from failure to success is narrower than the gap between the first scales; so is one head's peak."""
    progress = []
    settings = {**STUDY, "n": 10, "heads": 2, "radius": 0.1, "scales": [1.0, 3.0, 5.0, 20.0], "refine": 60}
    curves = job_tasks.noise_study(settings, tmp_path, progress.append)["curves"]
    assert progress[-1]["done"] == progress[-1]["total"] <= 64
    for curve in curves:
        points = curve["points"]
        assert points == sorted(points, key=lambda p: p["scale"]) and len(points) == progress[-1]["done"]
        for p, q in itertools.pairwise(points):
            close = q["scale"] / p["scale"] <= job_tasks.CLOSE_SCALES
            assert close or abs(p["probability"] - q["probability"]) <= job_tasks.SMALL_CHANGE
    peak = max(curves[0]["points"], key=lambda p: p["probability"])
    assert 3 < peak["scale"] < 5 and peak["probability"] > 1.1 * max(p["probability"] for p in curves[0]["points"][-2:])
    assert peak["scale"] not in settings["scales"]


def test_a_study_stops_at_its_largest_number_of_scales(tmp_path):
    settings = {**STUDY, "scales": [1.0, 20.0], "refine": 3}
    assert [len(c["points"]) for c in job_tasks.noise_study(settings, tmp_path, lambda p: None)["curves"]] == [5] * 3


def test_constant_curves_need_no_further_scale():
    assert job_tasks.steepest({1.0: [0.2, 1.0], 9.0: [0.2, 1.0]}) == job_tasks.steepest({2.0: [0.5]}) == []
    assert job_tasks.steepest({1.0: [0.0], 1.004: [1.0]}) == []  # a jump that is located well enough
