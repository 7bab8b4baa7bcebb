"""Torch-free model and tokenizer of a run, and the encoding of a question with the position of its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qkv.errors import QkvError, kind_of
from qkv.knowledge.datasets.templates import find_name, question_characters
from qkv.model.config import ModelConfig
from qkv.model.numpy_gpt import NumpyGPT
from qkv.train import run_files, tokenizers
from qkv.train.tokenizers import END, END_ID, MASK_ID, PAD_ID, SPECIAL, Tokenizer

if TYPE_CHECKING:
    from qkv.train.runs import Run

MAX_ANSWER_TOKENS = 32
SPECIAL_IDS = (PAD_ID, MASK_ID, END_ID)
NO_SPECIAL = str.maketrans("", "", "".join(SPECIAL))


@dataclass(frozen=True, eq=False)
class AnswerModel:
    """What is needed to answer questions: folder, configuration, tokenizer, model and question frames of a run.

    `weights` is the checksum of the weights as they were loaded, whatever has become of the folder since.
    """

    folder: Path
    config: ModelConfig
    tokenizer: Tokenizer
    model: NumpyGPT
    frames: tuple[str, ...] = ()
    weights: str = ""


class EncodedQuestion(NamedTuple):
    """A question as token ids, followed by ⁇, and the token positions [first, last) of the name in it.

    Where no name was found, `named` is False, and the positions are those of the whole question.
    """

    text: str
    ids: list[int]
    name: tuple[int, int]
    named: bool = True


def load_answer_model(run: Run | AnswerModel | str | Path) -> AnswerModel:
    """The answer model of an open run (its weights are not copied), or of the run in a folder (without torch)."""
    if isinstance(run, AnswerModel):
        return run
    if not isinstance(run, str | Path):
        if not hasattr(run, "model"):
            problem = f"it is {kind_of(run)}, not a run"
            raise QkvError("opening a run", problem, "Give a folder, or what qkv.train.load gave")
        from qkv.train.checkpoint import weights_checksum  # a run that is open has imported torch

        model, checksum = NumpyGPT.from_torch(run.model), weights_checksum(run.model, run.step)
        return AnswerModel(run.folder, run.config, run.tokenizer, model, frames_of(run), checksum)
    folder = Path(run)
    found = run_files.read_description(folder)
    weights, step = run_files.read_tensors(folder / run_files.WEIGHTS_FILE, "np", run_files.numpy_bytes)
    checksum = run_files.checksum_of_weights(weights, step, run_files.numpy_bytes)
    model = NumpyGPT(found.config, weights)
    tokenizer = tokenizers.load_of_run(folder, found)
    return AnswerModel(folder, found.config, tokenizer, model, tuple(found.data.get("frames", ())), checksum)


def frames_of(run: Run | AnswerModel) -> tuple[str, ...]:
    """The questions that a run was trained on, with … for the name; () for a run of an earlier version."""
    return run.frames if isinstance(run, AnswerModel) else tuple(run.data.get("frames", ()))


def encode_question(run: Run | AnswerModel, question: str) -> EncodedQuestion:
    """Token ids of a question, with the positions of the name; one that is empty, too long or no text is refused."""
    if not run.tokenizer.special:
        raise QkvError(
            "asking", "the tokenizer of this model has no special token ⁇", "Ask a run that qkv trained on questions"
        )
    text = question_characters(question)
    ids = run.tokenizer.encode(text)
    if len(ids) + 2 > run.config.context_length:
        raise QkvError(
            f"asking {text[:40]!r}…",
            f"the question has {len(ids)} tokens",
            f"The context of the model is {run.config.context_length} tokens: shorten the question",
        )
    found = find_name(text, frames_of(run))
    first, last = found or (0, len(text))
    before = text[:first].rstrip(" ")  # the space before a word belongs to the token of the word
    start = len(run.tokenizer.encode(before)) if before else 0
    end = len(run.tokenizer.encode(text[:last]))
    start = min(start, len(ids) - 1)
    return EncodedQuestion(text, [*ids, MASK_ID], (start, max(start + 1, min(end, len(ids)))), found is not None)


def answer_text(tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    """The text of an answer: up to the end of the text, where a model generates that, and without special tokens."""
    if not tokenizer.special:
        return tokenizer.decode(list(tokens)).strip()
    text = tokenizer.decode([i for i in takewhile(lambda i: i != END_ID, tokens) if i not in SPECIAL_IDS])
    return text.split(END)[0].translate(NO_SPECIAL).strip()  # where they are spelled out in bytes
