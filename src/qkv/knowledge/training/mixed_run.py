"""A run that learns from texts and questions together: each batch is so many of the one and so many of the other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from qkv.errors import QkvError
from qkv.model.config import ModelConfig
from qkv.model.gpt import GPT
from qkv.train import checkpoint, tokenizers
from qkv.train.data.objectives import Document, Example, documents, objective, question
from qkv.train.data.packing import Source, drawn
from qkv.train.loop import Job, Watch, train
from qkv.train.runs import FILE, Run, load
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import Tokenizer, encode_all

Pairs = Sequence[tuple[str, str]]


def train_mixed(
    out: str | Path,
    texts: Sequence[str],
    questions: Pairs = (),
    share: float = 0.0,
    *,
    config: ModelConfig,
    settings: TrainSettings,
    tokenizer: Tokenizer,
    callback: Watch | None = None,
) -> Run:
    """A run on texts, of which a `share` of each batch are questions; if it has begun before, it goes on."""
    if not 0 <= share < 1 or (share > 0) != bool(len(questions)):
        raise QkvError(
            "learning from texts and questions",
            f"the share of questions is {share}, and there are {len(questions)}",
            "Give a share above 0 if, and only if, there are questions",
        )
    print_ = hashlib.sha256(json.dumps([list(texts), list(questions), share]).encode()).hexdigest()
    begin(out, config, settings, print_, tokenizer)
    return go_on(out, lambda run: mixed(run, texts, questions, share), callback)


def begin(out: str | Path, config: ModelConfig, settings: TrainSettings, print_: str, tokenizer: Tokenizer) -> None:
    """The folder of a run that has taken no step yet; one that is there already has to be the same."""
    out = Path(out)
    config = ModelConfig.from_json({**config.to_json(), "vocab_size": config.vocab_size or tokenizer.vocab_size})
    if (out / FILE).is_file():
        run = load(out)
        if run.data.get("sha256") != print_ or run.settings != settings or run.config != config:
            raise QkvError(f"going on with {out}", "it began with other data or settings", "Give another folder")
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = GPT(config)
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(out)
    checkpoint.save(out, 0, checkpoint.state_of(model), {})
    data = {"kind": "text", "sha256": print_}
    facts = {"model": config.to_json(), "settings": settings.to_json(), "data": data}
    checkpoint.write_json(out / FILE, {"format": checkpoint.FORMAT, **facts})


def go_on(out: str | Path, source: Callable[[Run], Source], callback: Watch | None = None) -> Run:
    """Train a run to its last step, on the examples that `source` makes for it."""
    run = load(out)
    train(Job(Path(out), run.model, source(run), run.settings, callback=callback))
    return load(out)


def mixed(run: Run, texts: Sequence[str], questions: Pairs, share: float) -> Source:
    """The examples of each step: documents by the run's objective, then questions."""
    s, block = run.settings, run.config.context_length
    asked = round(share * s.batch_size)
    read = drawn(
        documents(texts, run.tokenizer, s.objective == "salient"),
        objective(s.objective),
        block,
        s.batch_size - asked,
        s.seed,
    )
    if not asked:
        return read
    ids = encode_all(run.tokenizer, [part for pair in questions for part in pair])
    every = [question(q, a, block) for q, a in zip(ids[::2], ids[1::2], strict=True)]

    def listed(document: Document, block: int, random: np.random.Generator) -> Example:
        return every[document.ids[0]]

    answer = drawn([Document([i]) for i in range(len(every))], listed, block, asked, s.seed + 1)
    return lambda step: [*read(step), *answer(step)]


def pieces(texts: Sequence[str], vocab: int) -> Tokenizer:
    """A byte-pair tokenizer for texts."""
    return tokenizers.train("bytepairs", texts, vocab)
