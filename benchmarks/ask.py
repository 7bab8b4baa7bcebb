"""Time of answers: evaluate on 500 questions, ask in a session, and `qkv ask` as a process of its own."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qkv.knowledge import ask, biographies, evaluate, pantheon, questions, train_mixed
from qkv.knowledge.training.mixed_run import pieces
from qkv.model.config import ModelConfig
from qkv.train.settings import TrainSettings

MAX_SECONDS = {"score": 5.0, "ask": 0.05, "process": 1.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20 questions, one round")
    options = parser.parse_args()
    count, rounds = (20, 1) if options.quick else (500, 5)
    people = pantheon().sample(count, 0)
    asked = questions(people)
    with tempfile.TemporaryDirectory() as folder:
        run = trained_run(Path(folder, "run"), people)
        command = [sys.executable, "-m", "qkv", "ask", str(run.folder), asked.pairs[0][0], "--json"]
        times = {
            "score": median_times(lambda: evaluate(run, asked), rounds),
            "ask": median_times(lambda: ask(run, asked.pairs[0][0]), 4 * rounds),
            "process": median_times(lambda: subprocess.run(command, check=True, capture_output=True), rounds),
            "import torch": median_times(
                lambda: subprocess.run([sys.executable, "-c", "import torch"], check=True), rounds
            ),
        }
    for name, (wall, cpu) in times.items():
        bar = f"(bar {MAX_SECONDS[name]} s)" if name in MAX_SECONDS else ""
        print(f"{name:>12}: {wall:.3f} s wall clock, {cpu:.3f} s CPU {bar}")
    figures = {name: {"seconds": round(wall, 4), "processor": round(cpu, 4)} for name, (wall, cpu) in times.items()}
    holds = {name: times[name][0] < bar for name, bar in MAX_SECONDS.items()}
    print(json.dumps({"questions": count, **figures, "holds": holds}))


def trained_run(folder: Path, people: Any) -> Any:
    """A run of the default recipe's size, trained until its answers end; they need not be right."""
    texts, asked = biographies(people).texts, questions(people).pairs
    config = ModelConfig("rope", 2, 4, d_model=192, context_length=64)
    settings = TrainSettings(steps=60, batch_size=32, lr=3e-3, objective="next", val_fraction=0.0)
    return train_mixed(folder, texts, asked, 0.9, config=config, settings=settings, tokenizer=pieces(texts, 3000))


def median_times(work: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Medians of wall-clock and of CPU seconds (children included); the latter count on a busy machine."""
    walls, cpus = [], []
    for _ in range(rounds):
        began, spent = time.perf_counter(), sum(os.times()[:4])
        work()
        walls.append(time.perf_counter() - began)
        cpus.append(sum(os.times()[:4]) - spent)
    return statistics.median(walls), statistics.median(cpus)


if __name__ == "__main__":
    main()
