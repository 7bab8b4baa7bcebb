"""What a job's process does: train a small model, or study noise at many scales."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from qkv.errors import QkvError
from qkv.web.compute_pool import follow_parent

Tell = Callable[[dict[str, Any]], None]

OFTEN = 0.2
"""Seconds between two events, at least."""
VERSIONS, SHARE, HEADS, BLOCK, LR, FEW = 5, 0.5, 4, 128, 3e-3, 5
"""Of training: wordings of each sentence, share of questions, heads, longest text, rate; and questions to suggest."""


def run(pipe: Connection, kind: str, settings: dict[str, Any], folder: str) -> None:
    """Do the job and say how it goes: ("progress", …) now and then, ("done", …) or ("failed", …) at the end."""
    os.environ["OMP_NUM_THREADS"] = "1"
    with contextlib.suppress(OSError):
        os.nice(10)  # the page stays quick
    threading.Thread(target=follow_parent, daemon=True).start()
    last = 0.0

    def tell(data: dict[str, Any]) -> None:
        nonlocal last
        if time.monotonic() - last >= OFTEN or data["done"] == data["total"]:
            last = time.monotonic()
            pipe.send(("progress", data))

    try:
        import torch

        torch.set_num_threads(1)
        pipe.send(("done", KINDS[kind](settings, Path(folder), tell)))
    except QkvError as why:
        pipe.send(("failed", {"asked": why.request, "came": why.problem, "try": why.hint}))
    except Exception as why:
        came = f"it failed, which is a bug ({type(why).__name__}: {why})"[:300]
        pipe.send(("failed", {"asked": f"a job of kind {kind}", "came": came, "try": "Report it"}))


def study(settings: dict[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    """Variance and success of the three layouts at each scale, from many draws."""
    from qkv.noise.key_noise import Gaussian
    from qkv.noise.layout_report import layout_reports, reference_layouts
    from qkv.web.routes.noise import memory_of, wanted_of

    memory, wanted = memory_of(settings["n"]), wanted_of(settings["heads"])
    noise = Gaussian(isotropic=settings["isotropic"], along={"a": settings["along"]})
    curves: dict[str, list[dict[str, float]]] = {}
    scales = settings["scales"]
    for done, scale in enumerate(scales, 1):
        layouts = reference_layouts(memory, wanted, noise, scale)
        found = layout_reports(
            memory, layouts, noise, wanted, settings["success"],
            n_samples=1, n_draws=settings["draws"], seed=settings["seed"],
        )  # fmt: skip
        for arm in found:
            row = {"scale": scale, "mean": arm.mean, "variance": arm.variance}
            row |= {"probability": arm.probability, "low": arm.low, "high": arm.high}
            curves.setdefault(arm.name, []).append(row)
        tell({"done": done, "total": len(scales), "scale": scale})
    return {"curves": [{"name": name, "points": rows} for name, rows in curves.items()]}


def train(settings: dict[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    """A model that reads where people were born, and is asked about half of them; the others it has only read of."""
    from qkv.knowledge.datasets.facts import Facts
    from qkv.knowledge.datasets.pantheon import pantheon
    from qkv.knowledge.datasets.templates import biographies, questions, worded
    from qkv.knowledge.training.mixed_run import train_mixed
    from qkv.model.config import ModelConfig
    from qkv.train import tokenizers
    from qkv.train.settings import TrainSettings

    everyone = pantheon()
    chosen = everyone.people[: settings["people"]]
    # Only the place of birth, so that sentences are short and a small model has room for them.
    facts = Facts(tuple(born(person) for person in chosen))
    taught, read = facts.split(0.5, settings["seed"])
    texts = list(biographies(facts, VERSIONS, seed=settings["seed"]))
    pairs = list(questions(taught))
    steps = settings["steps"]

    def watch(step: int, total: int, loss: float, speed: float) -> None:
        tell({"done": step, "total": total, "loss": loss, "tokens_per_second": speed})

    run = train_mixed(
        folder / "model",
        texts,
        pairs,
        SHARE,
        config=ModelConfig(
            n_head=HEADS,
            context_length=BLOCK,
            attention=settings["attention"],
            n_layer=settings["layers"],
            d_model=settings["width"],
        ),
        settings=TrainSettings(
            steps=steps,
            batch_size=32,
            lr=LR,
            objective="next",
            val_fraction=0.0,
            log_every=5,
            checkpoint_every=steps,
            seed=settings["seed"],
        ),
        tokenizer=tokenizers.train("characters", [*texts, *(part for pair in pairs for part in pair)]),
        callback=watch,
    )
    strangers = everyone.people[settings["people"] : settings["people"] + FEW]
    kinds = (("asked while learning", taught), ("only read about", read), ("never read about", strangers))
    return {
        "model": folder.name,
        "parameters": sum(p.numel() for p in run.model.parameters()),
        "questions": [
            {"kind": kind, "question": worded(person.name), "answer": person.city}
            for kind, people in kinds
            for person in list(people)[:FEW]
        ],
    }


def born(person: Any) -> Any:
    """A person of whom only the place of birth is told."""
    return person._replace(country="", year="", occupation="")


KINDS: dict[str, Callable[[dict[str, Any], Path, Tell], dict[str, Any]]] = {"noise-study": study, "train": train}
