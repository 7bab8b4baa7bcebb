"""How long do answers take? 500 questions scored, one asked in a session, and one asked by a process of its own."""

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
from qkv.model.config import ModelConfig
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import BytePairs

BARS = {"score": 5.0, "ask": 0.05, "process": 1.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20 questions, each thing once")
    options = parser.parse_args()
    count, rounds = (20, 1) if options.quick else (500, 5)
    people = pantheon().sample(count, 0)
    asked = questions(people)
    with tempfile.TemporaryDirectory() as folder:
        run = taught(Path(folder, "run"), people)
        words = [sys.executable, "-m", "qkv", "ask", str(run.folder), asked.pairs[0][0], "--json"]
        taken = {
            "score": middle(lambda: evaluate(run, asked), rounds),
            "ask": middle(lambda: ask(run, asked.pairs[0][0]), 4 * rounds),
            "process": middle(lambda: subprocess.run(words, check=True, capture_output=True), rounds),
            "import torch": middle(lambda: subprocess.run([sys.executable, "-c", "import torch"], check=True), rounds),
        }
    for name, (wall, own) in taken.items():
        bar = f"(bar {BARS[name]} s)" if name in BARS else ""
        print(f"{name:>12}: {wall:.3f} s by the clock, {own:.3f} s of the processor {bar}")
    figures = {name: {"seconds": round(wall, 4), "processor": round(own, 4)} for name, (wall, own) in taken.items()}
    holds = {name: taken[name][0] < bar for name, bar in BARS.items()}
    print(json.dumps({"questions": count, **figures, "holds": holds}))


def taught(folder: Path, people: Any) -> Any:
    """A run of the default recipe's shape, trained just enough to end its answers: they need not be true."""
    texts, asked = biographies(people).texts, questions(people).pairs
    config = ModelConfig("rope", 2, 4, d_model=192, context_length=64)
    settings = TrainSettings(steps=60, batch_size=32, lr=3e-3, objective="next", val_fraction=0.0)
    return train_mixed(
        folder, texts, asked, 0.9, config=config, settings=settings, tokenizer=BytePairs.train(texts, 3000)
    )


def middle(work: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """The medians of the clock's seconds and of the processor's, children's included, for a machine that others use."""
    walls, own = [], []
    for _ in range(rounds):
        began, spent = time.perf_counter(), sum(os.times()[:4])
        work()
        walls.append(time.perf_counter() - began)
        own.append(sum(os.times()[:4]) - spent)
    return statistics.median(walls), statistics.median(own)


if __name__ == "__main__":
    main()
