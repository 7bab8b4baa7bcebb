"""What a model's own numbers say of each of its answers: how likely, how much likelier than the next, how settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch

from qkv.errors import QkvError
from qkv.knowledge.badge import NAMES
from qkv.knowledge.beams import Candidate, likeliest
from qkv.knowledge.texts import name_in
from qkv.model.decoding import Choice, decode
from qkv.model.gpt import GPT
from qkv.model.layout import Layout
from qkv.train.runs import Run
from qkv.train.tokens import END_ID, MASK_ID

BEAMS, SAMPLES, LONGEST = 5, 8, 32
CHUNK = 8192  # tokens that are read together


class Asked(NamedTuple):
    """A question as the model reads it, and the places of the name in it (first, past last)."""

    text: str
    ids: list[int]
    name: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Signals:
    """For each question: the candidate answers, the signals, and the hidden state at the end of the name."""

    asked: tuple[Asked, ...]
    texts: tuple[tuple[str, ...], ...]
    candidates: tuple[tuple[Candidate, ...], ...]
    numbers: np.ndarray
    """(questions, signals), in the order of NAMES."""
    hidden: np.ndarray
    """(questions, width)."""

    @property
    def answers(self) -> tuple[str, ...]:
        """The likeliest answer to each."""
        return tuple(each[0] for each in self.texts)

    def column(self, name: str) -> np.ndarray:
        """One signal by its name."""
        return self.numbers[:, NAMES.index(name)]


def signals(
    run: Run, questions: Sequence[str], *, beams: int = BEAMS, samples: int = SAMPLES, seed: int = 0
) -> Signals:
    """Answer questions and measure each answer; one random number belongs to each question and sample."""
    asked = tuple(read(run, question) for question in questions)
    prompts = [each.ids for each in asked]
    room = min(LONGEST, run.config.block + 1 - max(map(len, prompts)))
    found = likeliest(run.model, prompts, max(2, beams), room, MASK_ID)
    candidates = [_distinct(run, each) for each in found]
    best = [each[0][1] for each in candidates]
    margins = [
        each[0][1].log_probability - (each[1][1].log_probability if len(each) > 1 else -50.0) for each in candidates
    ]
    entropies, hidden = _along(run.model, asked, best)
    agreed = _agreement(run, prompts, best, samples, seed)
    known, bare = _familiarity(run, asked), _to_the_bare_name(run, asked, best)
    numbers = np.stack([[each.log_probability for each in best], margins, entropies, agreed, known, bare], axis=1)
    return Signals(
        asked,
        tuple(tuple(text for text, _ in each) for each in candidates),
        tuple(tuple(one for _, one in each) for each in candidates),
        numbers,
        hidden,
    )


def read(run: Run, question: str) -> Asked:
    """A question as ids, ⁇ after it, with the places of the name."""
    if not run.tokenizer.special:
        raise QkvError("asking", "this model's tokenizer has no sign ⁇", "Ask a run that qkv trained on questions")
    text = question.strip()
    if not text:
        raise QkvError("asking", "the question is empty", "Write it out, like: Where was Ada Lovelace born?")
    ids = run.tokenizer.encode(text)
    if len(ids) + 2 > run.config.block:
        raise QkvError(
            f"asking {text[:40]!r}…",
            f"the question has {len(ids)} tokens",
            f"The model holds {run.config.block}: shorten it",
        )
    first, last = name_in(text)
    before = text[:first].rstrip(" ")  # the space before a word belongs to its token
    start = len(run.tokenizer.encode(before)) if before else 0
    end = len(run.tokenizer.encode(text[:last]))
    start = min(start, len(ids) - 1)
    return Asked(text, [*ids, MASK_ID], (start, max(start + 1, min(end, len(ids)))))


def _distinct(run: Run, found: list[Candidate]) -> list[tuple[str, Candidate]]:
    """Candidates as texts: two ways to spell one text are one answer, as likely as both together."""
    out: dict[str, Candidate] = {}
    for one in found:
        text = run.tokenizer.decode(list(one.tokens)).strip()
        old = out.get(text)
        if old is not None:
            one = old._replace(log_probability=float(np.logaddexp(old.log_probability, one.log_probability)))
        out[text] = one
    return sorted(out.items(), key=lambda item: -item[1].log_probability)


@torch.inference_mode()
def _along(model: GPT, asked: Sequence[Asked], best: Sequence[Candidate]) -> tuple[np.ndarray, np.ndarray]:
    """The entropy of the next token, summed along each answer and its end; the hidden state at the end of the name."""
    device = model.embedding.weight.device
    rows = [[*a.ids, *b.tokens] for a, b in zip(asked, best, strict=True)]
    entropies = np.zeros(len(rows))
    hidden = np.zeros((len(rows), model.config.width), dtype=np.float32)
    for some in _chunks(rows):
        layout = Layout((len(list(same)), t) for t, same in groupby(len(rows[i]) for i in some)).to(device)
        states = model.hidden(torch.tensor([t for i in some for t in rows[i]], device=device), layout)
        at, where, owner = 0, [], []
        for i in some:
            hidden[i] = states[at + asked[i].name[1] - 1].float().cpu().numpy()
            places = range(at + len(asked[i].ids) - 1, at + len(rows[i]))
            where += list(places)
            owner += [i] * len(places)
            at += len(rows[i])
        logs = model.head(states[torch.tensor(where, device=device)]).double().log_softmax(-1)
        np.add.at(entropies, owner, -(logs.exp() * logs).sum(-1).cpu().numpy())
    return entropies, hidden


def _agreement(run: Run, prompts: list[list[int]], best: Sequence[Candidate], samples: int, seed: int) -> np.ndarray:
    """The share of sampled answers that are the likeliest one."""
    if samples < 1:
        return np.array([np.exp(each.log_probability) for each in best])
    many = [prompt for prompt in prompts for _ in range(samples)]
    longest = max(len(each.tokens) for each in best)  # what is longer than that agrees with none
    room = min(longest + 1, run.config.block + 1 - max(map(len, prompts)))
    drawn = decode(run.model, many, room, Choice(temperature=1.0, seed=seed), stop=MASK_ID).tokens
    same = [tuple(tokens) == best[i // samples].tokens for i, tokens in enumerate(drawn)]
    return np.array(same, dtype=float).reshape(-1, samples).mean(1)


@torch.inference_mode()
def _familiarity(run: Run, asked: Sequence[Asked]) -> np.ndarray:
    """How likely the model finds the name itself at the beginning of a text, in mean log-probability of its tokens."""
    rows = [[END_ID, *each.ids[slice(*each.name)]][: run.config.block + 1] for each in asked]
    return np.array([each.mean() for each in _logs(run.model, rows)])


@torch.inference_mode()
def _to_the_bare_name(run: Run, asked: Sequence[Asked], best: Sequence[Candidate]) -> np.ndarray:
    """How likely the same answer is to the name alone, without a question: knowing does not hang on the wording."""
    names = [[*each.ids[slice(*each.name)], MASK_ID] for each in asked]
    rows = [[*n, *b.tokens, MASK_ID][: run.config.block + 1] for n, b in zip(names, best, strict=True)]
    return np.array([each[len(n) - 1 :].sum() for each, n in zip(_logs(run.model, rows), names, strict=True)])


def _logs(model: GPT, rows: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """The log-probability of every token of each row, but the first, after those before it."""
    device = model.embedding.weight.device
    out: list[np.ndarray] = [np.zeros(0)] * len(rows)
    for some in _chunks(rows):
        layout = Layout((len(list(same)), t) for t, same in groupby(len(rows[i]) - 1 for i in some)).to(device)
        logits = model.head(model.hidden(torch.tensor([t for i in some for t in rows[i][:-1]], device=device), layout))
        wanted = torch.tensor([t for i in some for t in rows[i][1:]], device=device)
        logs = logits.double().log_softmax(-1).gather(-1, wanted[:, None])[:, 0].cpu().numpy()
        at = 0
        for i in some:
            out[i] = logs[at : at + len(rows[i]) - 1]
            at += len(rows[i]) - 1
    return out


def _chunks(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Numbers of rows sorted by length, some at a time."""
    out: list[list[int]] = []
    total = CHUNK
    for i in sorted(range(len(rows)), key=lambda i: len(rows[i])):
        if total + len(rows[i]) > CHUNK:
            out.append([])
            total = 0
        out[-1].append(i)
        total += len(rows[i])
    return out
