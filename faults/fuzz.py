"""Fuzzing of the claim parser, the file readers and the reader of answer sheets: with atheris, which follows coverage,
where it is installed; otherwise with random mutations of sound inputs. An input is read, or refused with a sentence."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from faults.count import FaultCount, Progress, Tally, nothing
from faults.damage import damaged_copies
from faults.processes import ROOT, environment
from faults.samples import CLAIMS, samples

LONGEST_INPUT = 5.0
"""Seconds after which reading one input counts as a hang."""
Target = Callable[[bytes], bool]
"""Reads an input; whether it was refused. Anything but a QkvError is a fault."""


def claim_parser() -> Target:
    """Claims in Markdown, with LaTeX in them."""
    from qkv.claims.syntax.markdown import UnparsedClaim, read

    def target(data: bytes) -> bool:
        found = read(data.decode("utf-8", "replace"))
        return any(isinstance(claim, UnparsedClaim) for claim in found)

    return target


def file_readers() -> Target:
    """All readers of files: the first byte chooses one."""
    from qkv.cli.texts import _texts_from
    from qkv.cli.train import _file
    from qkv.core.files import read_arrays
    from qkv.design.certificates.certificate import load
    from qkv.errors import QkvError
    from qkv.heads.allocation import Allocation
    from qkv.knowledge.datasets.fact_tables import load_facts
    from qkv.knowledge.datasets.facts import load_questions, load_texts
    from qkv.train import tokenizers
    from qkv.train.checkpoint import read as read_checkpoint

    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="qkv-fuzz-", dir=memory if memory.is_dir() else None))

    def certified(path: Path) -> Any:
        return [certificate.verify() for certificate in load(path)]

    readers: list[tuple[str, Callable[[Path], Any]]] = [
        *((f"a{suffix}", read_arrays) for suffix in (".npz", ".npy", ".csv", ".json", ".safetensors")),
        ("c.json", certified), ("c.safetensors", certified), ("bits.json", Allocation.load),
        ("f.csv", load_facts), ("f.jsonl", load_facts), ("q.tsv", load_questions), ("t.txt", load_texts),
        ("o.toml", lambda path: _file(path, ("steps", "lr"))), ("o.json", lambda path: _file(path, ("steps", "lr"))),
        ("t.json", _texts_from), ("tokenizer.json", lambda path: tokenizers.load(path, foreign=True)),
        ("m.safetensors", read_checkpoint),
    ]  # fmt: skip

    def target(data: bytes) -> bool:
        if not data:
            return True
        name, read = readers[data[0] % len(readers)]
        path = folder / name
        path.write_bytes(data[1:])
        try:
            read(path)
        except QkvError:
            return True
        return False

    return target


def sheet_reader() -> Target:
    """Answer sheets in every format, and problem files: the first byte chooses one."""
    from qkv.errors import QkvError
    from qkv.sheets import read_sheet
    from qkv.sheets.problems import load_problem
    from qkv.sheets.sheet_files import sheet_text

    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="qkv-fuzz-", dir=memory if memory.is_dir() else None))
    suffixes = (".tex", ".md", ".typ", ".txt", ".ipynb", ".problem.md")

    def target(data: bytes) -> bool:
        if not data:
            return True
        suffix = suffixes[data[0] % len(suffixes)]
        path = folder / f"sheet{suffix}"
        path.write_bytes(data[1:])
        try:
            if suffix == ".problem.md":
                load_problem(path)
            else:
                read_sheet(sheet_text(path), path.name)
        except QkvError:
            return True
        return False

    return target


TARGETS: dict[str, Callable[[], Target]] = {
    "claim parser": claim_parser, "file readers": file_readers, "sheet reader": sheet_reader,
}  # fmt: skip


def seeds_of(name: str) -> list[bytes]:
    """Sound inputs to begin with."""
    from qkv.claims.catalogue import documents

    if name == "sheet reader":
        here = samples()
        cell = {"cell_type": "markdown", "source": (here / "answers.md").read_text("utf-8").splitlines(True)}
        notebook = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}).encode()
        sheet, answers = (here / "sheet.tex").read_bytes(), (here / "answers.md").read_bytes()
        sound = (sheet, answers, answers, answers, notebook, (here / "problem.md").read_bytes())
        return [bytes([i]) + text for i, text in enumerate(sound)]
    if name != "file readers":
        texts = [text for _, text in documents()]
        blocks = [f"```claim{block.partition('```')[0]}```\n" for text in texts for block in text.split("```claim")[1:]]
        return [CLAIMS.encode(), *(block.encode() for block in blocks)]
    here = samples()
    files = (
        "memory.npz", "keys.npy", "keys.csv", "memory.json", "memory.safetensors", "certificate.json",
        "certificate.json", "memory.json", "facts.csv", "facts.jsonl", "known.tsv", "text.txt", "options.toml",
        "options.json", "token_texts.json", "run/tokenizer.json", "run/model.safetensors",
    )  # fmt: skip
    return [bytes([i]) + (here / file).read_bytes()[:20_000] for i, file in enumerate(files)]


def run(name: str, seconds: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Fuzz one target for so many seconds."""
    with_atheris = importlib.util.find_spec("atheris") is not None
    how = "atheris" if with_atheris else "random mutations, since atheris is not installed"
    tally = Tally(f"fuzzing: {name}", seconds, progress)
    with tempfile.TemporaryDirectory(prefix="qkv-fuzz-") as folder:
        report = Path(folder) / "report.json"
        worker = "atheris" if with_atheris else "mutations"
        command = [sys.executable, "-m", "faults.fuzz", worker, name, str(seconds), str(seed), str(report)]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds * 3 + 180,
        )
        if not report.is_file():
            tally.add("tracebacks", f"the fuzzer itself ended: {done.stderr[-1200:]}")
            return tally.result(f"{how}, {seconds} s.")
        found = json.loads(report.read_text())
    for outcome in ("refused", "unchanged"):
        tally.counts[outcome] += found[outcome]
    for outcome in ("tracebacks", "hangs"):
        for example in found[outcome]:
            tally.add(outcome, example)
    return tally.result(f"{how}, {seconds} s. Unchanged: read as a sound input.")


class _Report:
    """Counts what a target does, and writes it now and then, since atheris ends the process."""

    def __init__(self, target: Target, path: Path) -> None:
        self._target, self._path, self._written = target, path, time.monotonic()
        self._found: dict[str, Any] = {"refused": 0, "unchanged": 0, "tracebacks": [], "hangs": []}

    def __call__(self, data: bytes) -> None:
        began = time.monotonic()
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                refused = self._target(data)
        except Exception:
            lines = traceback.format_exc().splitlines()
            self._note("tracebacks", f"{data[:400]!r}: {' / '.join(lines[-6:])}")
        else:
            if time.monotonic() - began > LONGEST_INPUT:
                self._note("hangs", f"{data[:400]!r}")
            else:
                self._found["refused" if refused else "unchanged"] += 1
        if time.monotonic() - self._written > 1:
            self.write()

    def _note(self, outcome: str, example: str) -> None:
        if len(self._found[outcome]) < 50:
            self._found[outcome].append(example)

    def write(self) -> None:
        self._written = time.monotonic()
        other = self._path.with_suffix(".new")
        other.write_text(json.dumps(self._found))
        other.replace(self._path)


def _mutate(name: str, seconds: float, seed: int, report: Path) -> None:
    """Random mutations of sound inputs, one to four each."""
    check, draw, sound = _Report(TARGETS[name](), report), random.Random(seed), seeds_of(name)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        data = draw.choice(sound)
        for _ in range(draw.randrange(1, 5)):
            data = next(damaged_copies(data, 1, draw.randrange(10**12))) or b" "
        check(data)
    check.write()


def _fuzz(name: str, seconds: int, seed: int, report: Path) -> None:
    """atheris: the modules under test are instrumented while they are imported."""
    import atheris

    packages = {
        "claim parser": ["qkv.claims.syntax"],
        "file readers": ["qkv.core", "qkv.design.certificates", "qkv.knowledge.datasets", "qkv.train", "qkv.cli"],
        "sheet reader": ["qkv.sheets"],
    }[name]
    with atheris.instrument_imports(include=packages):
        target = TARGETS[name]()
    check = _Report(target, report)
    with tempfile.TemporaryDirectory() as corpus:
        for i, data in enumerate(seeds_of(name)):
            (Path(corpus) / f"{i:04}").write_bytes(data)
        options = [
            f"-max_total_time={seconds}",
            f"-seed={seed + 1}",
            "-max_len=8000",
            "-timeout=60",
            "-rss_limit_mb=8000",
        ]
        atheris.Setup([sys.argv[0], *options, corpus], check)
        check.write()
        atheris.Fuzz()


def kinds() -> list[tuple[str, Callable[[int, int, Progress], FaultCount]]]:
    """Name and function of each target that there is."""
    return [(name, partial(run, name)) for name in TARGETS]


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    worker, name, seconds, seed, report = sys.argv[1:]
    (_fuzz if worker == "atheris" else _mutate)(name, int(seconds), int(seed), Path(report))
