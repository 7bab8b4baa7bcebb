"""Commands killed with SIGKILL at random moments: what they write is there as a whole or not at all, and the same
command run again gives what it would have given."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from faults.count import FaultCount, Progress, Tally, nothing
from faults.processes import Fork, forked_command, scratch
from faults.samples import samples
from faults.verbs import verbs, words_of

Start = Callable[[Path], Fork]


def run(
    kind: str, start: Start, read: Callable[[Path], Any], note: str, count: int, seed: int, progress: Progress = nothing
) -> FaultCount:
    """Kill a command `count` times, run it to its end every few kills, and compare what it wrote.

    Args:
        kind: For the page.
        start: Starts the command with its outputs in a folder.
        read: What it wrote into the folder, as a plain value; None if nothing is there yet.
        note: For the page.
        count: How many kills.
        seed: Of the moments.
        progress: Called with kills done and in all.
    """
    tally, draw = Tally(kind, count, progress), random.Random(seed)
    with scratch() as folder:
        whole = folder / "whole"
        whole.mkdir()
        began = time.monotonic()
        ended = start(whole).wait(300)
        duration, wanted = time.monotonic() - began, read(whole)
        if wanted is None:
            raise RuntimeError(f"{kind} does not work here: {ended.err[-800:]}")
        out = folder / "killed"
        while sum(tally.counts.values()) < count:
            out.mkdir(exist_ok=True)
            fork = start(out)
            time.sleep(draw.random() * duration)
            fork.send(signal.SIGKILL)
            fork.wait()
            tally.add(*_outcome(read, out, wanted))
            if read_safely(read, out) == wanted or draw.random() < 0.2:
                again = start(out).wait(300)
                if again.code != ended.code or read_safely(read, out) != wanted:
                    tally.add("lost", f"run again, it ended with {again.code}: {again.err[-600:]}")
                shutil.rmtree(out)
    return tally.result(note)


def read_safely(read: Callable[[Path], Any], out: Path) -> Any:
    """What is in a folder, or the error that reading it raised."""
    try:
        return read(out)
    except Exception as why:
        return why


def _outcome(read: Callable[[Path], Any], out: Path, wanted: Any) -> tuple[str, str]:
    found = read_safely(read, out)
    if isinstance(found, Exception):
        return "lost", f"{type(found).__name__}: {found}"
    return ("unchanged", "") if found is None or found == wanted else ("believed", f"{found!r:.600}")


def _trust(out: Path) -> Any:
    from qkv.knowledge.confidence.badge import Badge
    from qkv.train import checkpoint

    run_folder = out / "run"
    checkpoint.load(run_folder)
    badge = Badge.load(run_folder)
    return None if badge is None else repr(badge)


def _study(out: Path) -> Any:
    """The cells that are measured, but for the time that they took; None before all of them are."""
    from qkv.core.json_files import read_json, verified

    found = {}
    for path in sorted((out / "study" / "cells").glob("*.json")):
        cell = verified(read_json(path))
        found[path.name] = {name: value for name, value in cell["result"].items() if name != "seconds"}
    return found if len(found) == STUDY_CELLS else None


STUDY_CELLS = 3


def _start_study(out: Path) -> Fork:
    return Fork(partial(_small_study, out / "study"))


def _small_study(folder: Path) -> None:
    """Three cells of the study "extraction", small; run by the function that all studies call."""
    from dataclasses import asdict, replace

    from qkv.knowledge.studies import extraction
    from qkv.knowledge.studies.experiment import Cell, run_cells

    setup = replace(extraction.SETUP, people=16, exposures=4, d_model=16, n_head=2, vocab_size=400, batch_size=16)
    chosen = [extraction.CONDITIONS[i] for i in (8, 7, 4)]
    cells = [
        Cell(f"cell-{i}", asdict(condition), partial(extraction.measure, condition, setup, 0))
        for i, condition in enumerate(chosen)
    ]
    run_cells(folder, "extraction", cells)


def _page(name: str, out: Path) -> Any:
    path = out / name
    text = path.read_text("utf-8") if path.is_file() else None
    if text is not None and not text.rstrip().endswith("</html>"):
        raise ValueError("half of a page")
    return text


def _start_verb(verb: str, out: Path) -> Fork:
    return forked_command(words_of(verb, out), out)


def _start_check(out: Path) -> Fork:
    import qkv.claims.catalogue as catalogue

    document = out / "claims.md"
    if not document.is_file():
        text = "\n".join(text for _, text in catalogue.documents())
        blocks = [f"```claim{block.partition('```')[0]}```" for block in text.split("```claim")[1:9]]
        document.write_text("\n\n".join(blocks), "utf-8")
    return forked_command(["check", document.name, "--html", "claims.html"], out)


def _start_class(out: Path) -> Fork:
    """The grading of a class, in two processes."""
    sheets = [out / f"student{i}.md" for i in range(4)]
    for i, sheet in enumerate(sheets):
        if not sheet.is_file():
            text = (samples() / "answers.md").read_text("utf-8")
            sheet.write_text(text.replace("t k_a", f"{i + 1} t k_a"), "utf-8")
    outputs = ["--html", "grades.html", "--csv", "grades.csv", "--processes", "2"]
    problem = ["--problem", str(samples() / "problem.md")]
    return forked_command(["grade", *(sheet.name for sheet in sheets), *problem, *outputs], out)


def _grades(out: Path) -> Any:
    """The page and the table of a class; the table is written last, so that it is never there without the page."""
    page, table = _page("grades.html", out), out / "grades.csv"
    if not table.is_file():
        return None
    if page is None:
        raise ValueError("a table without its page")
    return page, table.read_text("utf-8")


def kinds() -> list[tuple[str, Callable[[int, int, Progress], FaultCount]]]:
    """Name and function of each command that is killed."""
    again = "Every few kills the command runs to its end, and must write what it writes without kills."
    found = [
        (
            "badge",
            partial(run, "killed while fitting a badge (qkv trust)", partial(_start_verb, "trust"), _trust, again),
        ),
        ("study", partial(run, "killed in a study", _start_study, _study, f"{STUDY_CELLS} cells. {again}")),
        ("check", partial(run, "killed in qkv check", _start_check, partial(_page, "claims.html"), again)),
    ]
    if "grade" in verbs():
        grading = partial(run, "killed while grading a class", _start_class, _grades, again)
        found.append(("grade", grading))
    return found
