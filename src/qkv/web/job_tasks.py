"""What the process of a job does: train a model, compute noise figures at many scales, measure a model's heads."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.errors import QkvError
from qkv.web.schemas import refusal_detail
from qkv.web.worker_process import initialise_worker

if TYPE_CHECKING:
    from qkv.knowledge.datasets.facts import Person

Report = Callable[[dict[str, Any]], None]
"""Called with the progress so far: `done`, `total` and figures of the task."""
Task = Callable[[dict[str, Any], Path, Report], dict[str, Any]]
"""Called with the settings of a job, a folder for files and a progress callback; returns the job's result."""

PROGRESS_SECONDS = 0.2
"""Least time between two progress events, apart from the last."""
TEXTS_PER_PERSON, QUESTION_FRACTION = 5, 0.5
"""Training data: wordings of each biography, and the fraction of questions in a batch."""
N_HEAD, CONTEXT_LENGTH, BATCH_SIZE, LEARNING_RATE = 4, 128, 32, 3e-3
SMALL_CHANGE, CLOSE_SCALES = 0.03, 1.005
"""A study adds scales until between two neighbours no probability changes by more, or their ratio is smaller."""
EXAMPLE_QUESTIONS = 5
"""Example questions of each kind in the result of a training job."""


def run_task(pipe: Connection, kind: str, settings: dict[str, Any], folder: str) -> None:
    """Run a job in this process and send its events: ("progress", …) repeatedly, then ("done", …) or ("failed", …)."""
    initialise_worker()
    with contextlib.suppress(OSError):
        os.nice(10)  # requests of the page come first
    sent_at = 0.0

    def report(progress: dict[str, Any]) -> None:
        nonlocal sent_at
        if time.monotonic() - sent_at >= PROGRESS_SECONDS or progress["done"] == progress["total"]:
            sent_at = time.monotonic()
            pipe.send(("progress", progress))

    try:
        pipe.send(("done", TASKS[kind](settings, Path(folder), report)))
    except QkvError as error:
        pipe.send(("failed", refusal_detail(error)))
    except Exception as error:  # the job manager reports it to the page
        problem = f"it failed, which is a bug ({type(error).__name__}: {error})"[:300]
        pipe.send(("failed", refusal_detail(QkvError(f"a job of kind {kind}", problem, "Report it"))))


def noise_study(settings: dict[str, Any], folder: Path, report: Report) -> dict[str, Any]:
    """Variance and probability of success of the three layouts, at each scale."""
    from qkv.noise.layout_report import layout_reports
    from qkv.web.noise_scenario import NoiseScenario, layouts

    scenario = NoiseScenario(settings["n"], settings["along"], settings["isotropic"], settings["heads"])

    def points_at(scale: float) -> dict[str, dict[str, float]]:
        """The figures of each layout, by its name."""
        reports = layout_reports(
            scenario.memory,
            layouts(scenario, scale),
            scenario.noise,
            scenario.wanted,
            settings["radius"],
            n_samples=1,
            n_draws=settings["n_draws"],
            seed=settings["seed"],
        )
        return {
            found.name: {
                "scale": scale,
                "mean": found.mean,
                "variance": found.variance,
                "probability": found.probability,
                "low": found.low,
                "high": found.high,
            }
            for found in reports
        }

    scales = sorted(set(settings["scales"]))
    most = len(scales) + settings.get("refine", 0)
    found: dict[float, dict[str, dict[str, float]]] = {}
    while scales:
        scale = scales.pop(0)
        found[scale] = points_at(scale)
        if not scales and len(found) < most:
            scales += steepest({s: [p["probability"] for p in points.values()] for s, points in found.items()})
        total = most if scales else len(found)
        report({"done": len(found), "total": total, "scale": scale})
    names = list(next(iter(found.values())))
    return {"curves": [{"name": name, "points": [found[s][name] for s in sorted(found)]} for name in names]}


def steepest(probabilities: dict[float, list[float]]) -> list[float]:
    """The scale at which to refine curves of probabilities next, as a list of one; empty if they are fine enough.

    It lies in the middle, in logarithms, of the two neighbours between which a curve changes most, of those that are
    not yet close to each other.

    Args:
        probabilities: The values of all curves, by scale.

    Example:
        >>> steepest({1.0: [0.0], 4.0: [0.5], 8.0: [0.6]}), steepest({1.0: [0.5], 4.0: [0.51]})
        ([2.0], [])
    """
    scales = sorted(probabilities)
    changes = [
        (max(abs(a - b) for a, b in zip(probabilities[low], probabilities[high], strict=True)), low, high)
        for low, high in itertools.pairwise(scales)
        if high > CLOSE_SCALES * low
    ]
    change, low, high = max(changes, default=(0.0, 0.0, 0.0))
    return [math.sqrt(low * high)] if change > SMALL_CHANGE else []


def train(settings: dict[str, Any], folder: Path, report: Report) -> dict[str, Any]:
    """Train a model on texts about people's birthplaces, and on questions about half of them.

    The result names the model and gives example questions about people it was asked about in training, people it has
    only read about, and people it has not read about.
    """
    from qkv.knowledge.datasets.facts import Facts
    from qkv.knowledge.datasets.pantheon import pantheon
    from qkv.knowledge.datasets.templates import biographies, question_text, questions
    from qkv.knowledge.training.mixed_run import train_mixed
    from qkv.model.config import ModelConfig
    from qkv.train import tokenizers
    from qkv.train.settings import TrainSettings

    everyone = pantheon()
    n_people, steps, seed = settings["people"], settings["steps"], settings["seed"]
    facts = Facts(tuple(_only_birthplace(person) for person in everyone.people[:n_people]))
    asked_about, read_about = facts.split(0.5, seed)
    texts = list(biographies(facts, TEXTS_PER_PERSON, seed=seed))
    pairs = list(questions(asked_about))

    def callback(step: int, total: int, loss: float, speed: float) -> None:
        report({"done": step, "total": total, "loss": loss, "tokens_per_second": speed})

    run = train_mixed(
        folder / "model",
        texts,
        pairs,
        QUESTION_FRACTION,
        config=ModelConfig(
            n_head=N_HEAD,
            context_length=CONTEXT_LENGTH,
            attention=settings["attention"],
            n_layer=settings["n_layer"],
            d_model=settings["d_model"],
        ),
        settings=TrainSettings(
            steps=steps,
            batch_size=BATCH_SIZE,
            lr=LEARNING_RATE,
            objective="next",
            val_fraction=0.0,
            log_every=5,
            checkpoint_every=steps,
            seed=seed,
        ),
        tokenizer=tokenizers.train("characters", [*texts, *(part for pair in pairs for part in pair)]),
        callback=callback,
    )
    unknown = everyone.people[n_people : n_people + EXAMPLE_QUESTIONS]
    groups = (("asked about in training", asked_about), ("only read about", read_about), ("not read about", unknown))
    return {
        "model": folder.name,
        "parameters": sum(p.numel() for p in run.model.parameters()),
        "questions": [
            {"kind": kind, "question": question_text(person.name), "answer": person.city}
            for kind, people in groups
            for person in list(people)[:EXAMPLE_QUESTIONS]
        ],
    }


def measure_heads(settings: dict[str, Any], folder: Path, report: Report) -> dict[str, Any]:
    """The table of heads of a model that was named at start, with the effect of removing each."""
    from dataclasses import replace

    from qkv.heads.attention_model import open as open_model

    model = replace(open_model(settings["folder"]), name=settings["model"])
    text, tokens = settings["text"], settings["effect_tokens"]
    found = model.table(
        text, effect_tokens=tokens, bits=(4,), progress=lambda done, total: report({"done": done, "total": total})
    )
    return found.to_json()


def _only_birthplace(person: Person) -> Person:
    """The person without other facts, so that sentences are short enough for a small model."""
    return person._replace(country="", year="", occupation="")


TASKS: dict[str, Task] = {"noise-study": noise_study, "train": train, "heads": measure_heads}
