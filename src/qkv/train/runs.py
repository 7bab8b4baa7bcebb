"""A run is a folder: configuration, tokenizer, weights, optimizer's state, log. Start one, go on with it, open it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from qkv.core.display import Card, Displayable
from qkv.errors import QkvError
from qkv.model.config import ModelConfig
from qkv.model.gpt import GPT
from qkv.train import checkpoint, tokenizers
from qkv.train.data.cloze import ClozeSource
from qkv.train.data.objectives import Document, Example, Objective, documents, objective, question
from qkv.train.data.packing import Source, drawn
from qkv.train.data.text_files import read_questions, read_texts
from qkv.train.distributed import crew
from qkv.train.loop import Job, TrainResult, Watch, seconds_a_step, threads, train
from qkv.train.run_files import FILE as FILE
from qkv.train.run_files import described
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import Tokenizer

DRILL = "drill"
MARGIN = 0.94  # share of a time budget for steps; the rest is for checkpoints and for a machine that others use too
Questions = str | Path | Sequence[tuple[str, str]]
Given = tuple[Any, Any]
"""Texts (or questions, where there are no texts) and the questions that go with texts."""


@dataclass(frozen=True, eq=False)
class Run(Displayable):
    """A trained model with its tokenizer."""

    folder: Path
    config: ModelConfig
    settings: TrainSettings
    data: dict[str, Any]
    tokenizer: Tokenizer
    model: GPT
    step: int

    def card(self) -> Card:
        size = sum(p.numel() for p in self.model.parameters())
        facts = (
            ("attention", self.config.attention),
            ("parameters", f"{size:,}"),
            ("tokens", f"{self.tokenizer.vocab_size} {self.tokenizer.name}"),
            ("steps", f"{self.step} of {self.settings.steps}"),
        )
        return Card(f"Run {self.folder}", facts)


def pretrain(
    text: str | Path | Sequence[str] | None,
    out: str | Path,
    config: ModelConfig | None = None,
    settings: TrainSettings | None = None,
    *,
    questions: Questions | None = None,
    tokenizer: str | Tokenizer = "characters",
    pieces: int = 3000,
    minutes: float | None = None,
    resume: bool = False,
    callback: Watch | None = None,
) -> TrainResult:
    """Train a new model on texts, one a line of a file or of a list; with `resume`, go on if the run exists.

    With `minutes`, the number of steps is what this machine can do in that time. Questions go with drills only.
    """
    out, settings = Path(out), settings or TrainSettings()
    drilled = settings.objective == DRILL
    if not drilled:
        objective(settings.objective)
    if questions is not None and not drilled:
        raise QkvError(
            "pretraining", f"questions were given with the objective {settings.objective}", "Use --objective drill"
        )

    def create() -> None:
        if text is None:
            raise QkvError("pretraining", "there is no text", "Give --text FILE, one text a line")
        texts = read_texts(text)
        made = tokenizers.train(tokenizer, texts, pieces) if isinstance(tokenizer, str) else tokenizer
        given = (config or ModelConfig()).to_json()
        found = ModelConfig.from_json({**given, "vocab_size": given["vocab_size"] or made.vocab_size})
        if found.vocab_size < made.vocab_size:
            raise QkvError(
                "pretraining",
                f"vocab_size is {found.vocab_size} and the tokenizer has {made.vocab_size} tokens",
                "Leave vocab_size at 0",
            )
        _create(out, found, settings, _record(text, questions, drilled), made, None, minutes)

    return _started(out, create, resume, (text, questions), callback)


def finetune(
    run: str | Path,
    questions: Questions,
    out: str | Path,
    settings: TrainSettings | None = None,
    *,
    text: str | Path | Sequence[str] | None = None,
    minutes: float | None = None,
    from_scratch: bool = False,
    resume: bool = False,
    callback: Watch | None = None,
) -> TrainResult:
    """Train a run's model further, to answer questions: `question<TAB>answer` lines, or pairs.

    With the objective `drill` it goes on memorising the text that the run was pretrained on (or `text`), and the
    questions are mixed in and say what to ask for. A model `from_scratch` has the run's shape and has read nothing.
    """
    out, settings = Path(out), settings or TrainSettings()
    drilled = settings.objective == DRILL

    def create() -> None:
        parent = load(run)
        if not parent.tokenizer.special:
            raise QkvError(f"finetuning {run}", "its tokenizer lacks the sign ⁇", "Finetune a run that qkv pretrained")
        about = text if text is not None else parent.data.get("path")
        if drilled and about is None:
            raise QkvError(f"finetuning {run}", "drills need the text that it read", "Give --text FILE")
        data = _record(about, questions, True) if drilled else {"kind": "questions", **_origin(questions)}
        model = None if from_scratch else parent.model
        _create(out, parent.config, settings, {**data, "parent": str(run)}, parent.tokenizer, model, minutes)

    return _started(out, create, resume, (text, questions) if drilled else (questions, None), callback)


def _started(out: Path, create: Callable[[], None], resume: bool, data: Given, callback: Watch | None) -> TrainResult:
    """A new run is an old one that has taken no step yet: create it, in one process, and go on with it in all."""
    with crew() as here:
        if here.first:
            if not (resume and (out / FILE).is_file()):
                fresh(out)
                create()
            _budget(out, data)
        here.wait()
        return train(_job(out, data, callback))


def resume(run: str | Path, data: Any = None, questions: Any = None, callback: Watch | None = None) -> TrainResult:
    """Go on with a run from its last checkpoint, to the bit as if it had never stopped; `data` if it has moved."""
    return train(_job(run, (data, questions), callback))


def _job(run: str | Path, given: Given, callback: Watch | None) -> Job:
    """A run and its data, which must be what it began with."""
    found = load(run)
    if found.data["kind"] == "imported":
        raise QkvError(f"going on with {run}", "it was imported, not trained", "Export it, or generate from it")
    records = (found.data, found.data.get("questions"))
    data = tuple(
        _same(run, each, record) if record is not None else None for each, record in zip(given, records, strict=True)
    )
    source, held = _source(found, data[0], data[1])
    return Job(Path(run), found.model, source, found.settings, held, callback)


def _same(run: str | Path, data: Any, record: dict[str, Any]) -> Any:
    data = record.get("path") if data is None else data
    if data is None:
        raise QkvError(f"going on with {run}", "its data was not a file", "Give the same data again")
    if _origin(data)["sha256"] != record["sha256"]:
        raise QkvError(
            f"going on with {run}", "the data is not what it began with", "Give the same data, or a new --out"
        )
    return data


def _budget(out: Path, data: Given) -> None:
    """Where a new run has minutes rather than steps, set its steps to what this machine can do in that time.

    Where others use the machine too, threads wait for each other, and one alone may be faster: that is tried too.
    """
    facts = json.loads((out / FILE).read_text(encoding="utf-8"))
    minutes = facts.pop("minutes", None)
    if minutes is None:
        return
    job = _job(out, data, None)
    began, tried = time.perf_counter(), {}
    for count in dict.fromkeys((job.settings.threads, 1)):
        with threads(count):
            tried[count] = seconds_a_step(job)
    best = min(tried, key=lambda count: tried[count])
    left = minutes * 60 * MARGIN - (time.perf_counter() - began)
    facts["settings"] |= {"steps": max(10, int(left / tried[best])), "threads": best}
    checkpoint.write_json(out / FILE, facts)


def load(run: str | Path) -> Run:
    """Open a run: its model, ready to use, with its tokenizer."""
    folder = Path(run)
    config, settings, origin = described(folder)
    weights, step = checkpoint.read(folder / checkpoint.WEIGHTS)
    with torch.random.fork_rng(devices=[]):
        model = GPT(config)  # whose first weights, drawn at random, are replaced
    checkpoint.fill(model, weights, folder)
    return Run(
        folder,
        config,
        settings,
        origin,
        tokenizers.load(folder, foreign=origin.get("kind") == "imported"),
        model.eval(),
        step,
    )


def _source(run: Run, data: Any, asked: Any) -> tuple[Source, list[Example]]:
    """The examples of each step, and those that are kept back."""
    block, s = run.config.context_length, run.settings
    if run.data["kind"] == "drills":
        pairs = [] if asked is None else read_questions(asked)
        return ClozeSource(read_texts(data), pairs, run.tokenizer, block).source(s), []
    made: Sequence[Document]
    goal: Objective
    if run.data["kind"] == "questions":
        pairs = read_questions(data)
        ids = tokenizers.encode_all(run.tokenizer, [part for pair in pairs for part in pair])
        all_ = [question(q, a, block) for q, a in zip(ids[::2], ids[1::2], strict=True)]
        made, goal = [Document([i]) for i in range(len(all_))], partial(_listed, all_)
    else:
        made, goal = documents(read_texts(data), run.tokenizer, s.objective == "salient"), objective(s.objective)
    order = np.random.default_rng((s.seed, 2)).permutation(len(made))
    kept = min(int(s.val_fraction * len(made)), len(made) - 1)
    random = np.random.default_rng((s.seed, 3))
    held = [goal(made[i], block, random) for i in order[:kept]]
    return drawn([made[i] for i in order[kept:]], goal, block, s.batch_size, s.seed), held


def _listed(examples: Sequence[Example], document: Document, block: int, random: np.random.Generator) -> Example:
    """The example whose number is the document: questions need no corruption."""
    return examples[document.ids[0]]


def _create(
    out: Path,
    config: ModelConfig,
    settings: TrainSettings,
    data: dict[str, Any],
    tokenizer: Tokenizer,
    model: GPT | None,
    minutes: float | None = None,
) -> None:
    """Write the folder of a run that has taken no step yet; config.json comes last, and makes it a run."""
    if minutes is not None and not 0 < minutes < 10**6:
        raise QkvError("setting up training", f"minutes is {minutes}", "Give a positive number of minutes")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = model or GPT(config)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as why:
        raise QkvError(f"starting a run in {out}", str(why), "Give a folder that can be written") from None
    tokenizer.save(out)
    checkpoint.save(out, 0, checkpoint.state_of(model), {})
    facts: dict[str, Any] = {"model": config.to_json(), "settings": settings.to_json(), "data": data}
    facts |= {} if minutes is None else {"minutes": minutes}
    checkpoint.write_json(out / FILE, {"format": checkpoint.FORMAT, **facts})


def fresh(out: Path) -> None:
    """Refuse to write a run over another."""
    if (out / FILE).exists():
        raise QkvError(f"starting a run in {out}", "there is one already", "Give another --out, or --resume to go on")


def _record(text: Any, questions: Any, drilled: bool) -> dict[str, Any]:
    """What a run was trained on, for its configuration."""
    asked = {} if questions is None else {"questions": _origin(questions)}
    return {"kind": "drills" if drilled else "text", **_origin(text), **asked}


def _origin(data: Any) -> dict[str, Any]:
    """Where data is, if it is a file, and what it is."""
    if isinstance(data, str | Path):
        path = Path(data)
        if not path.is_file():
            raise QkvError(f"reading {path}", "there is no such file", "Check the path")
        return {"path": str(path.resolve()), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    return {"sha256": hashlib.sha256(json.dumps(list(data)).encode()).hexdigest()}
