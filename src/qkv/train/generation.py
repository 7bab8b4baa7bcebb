"""Text from a run: many prompts at once, greedy or sampled, with the log-probability of every token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qkv.core.display import Card, Displayable
from qkv.errors import QkvError
from qkv.model.decoding import Sampler, decode
from qkv.train.allocator import reuse_memory
from qkv.train.runs import Run
from qkv.train.tokenizers import END_ID, MASK_ID


@dataclass(frozen=True)
class Generated(Displayable):
    """What a model wrote after each prompt."""

    prompts: tuple[str, ...]
    texts: tuple[str, ...]
    unknown: tuple[str, ...]
    tokens: tuple[tuple[str, ...], ...] | None = None
    log_probabilities: tuple[tuple[float, ...], ...] | None = None

    def card(self) -> Card:
        rows: tuple[tuple[str, ...], ...] = tuple(zip(self.prompts, self.texts, strict=True))
        sums = () if self.log_probabilities is None else ("log-probability",)
        if self.log_probabilities is not None:
            rows = tuple((*row, f"{sum(each):.3f}") for row, each in zip(rows, self.log_probabilities, strict=True))
        strange = " ".join(self.unknown)
        return Card(
            title=f"{len(rows)} prompt{'s' * (len(rows) != 1)} continued",
            columns=("prompt", "text", *sums),
            rows=rows,
            note=f"never seen in training, and spelled in bytes: {strange}" if strange else "",
        )


def generate(
    run: Run,
    prompts: Sequence[str],
    new: int = 32,
    *,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    ask: bool = False,
    log_probabilities: bool = False,
) -> Generated:
    """Continue prompts until the text ends; with `ask`, each is a question ⁇ whose answer ends with ⁇."""
    if isinstance(prompts, str):
        raise QkvError("generating", "prompts is one string", "Give a list of prompts")
    ids = [run.tokenizer.encode(prompt) for prompt in prompts]
    stop: int | None = None
    if run.tokenizer.special:
        reads_on = run.settings.objective == "next" and run.data["kind"] == "text" and not ask
        stop = END_ID if reads_on else MASK_ID
        ids = [[*each, MASK_ID] if ask else [END_ID, *each] if reads_on else each for each in ids]
    elif ask:
        raise QkvError("asking", "this model's tokenizer has no sign ⁇", "Leave out --ask")
    choice = Sampler(temperature, top_k, top_p, seed)
    reuse_memory()
    done = decode(run.model, ids, new, choice, stop=stop, log_probabilities=log_probabilities)
    unknown = run.tokenizer.unknown("".join(prompts))
    texts = tuple(run.tokenizer.decode(each) for each in done.tokens)
    if done.log_probabilities is None:
        return Generated(tuple(prompts), texts, unknown)
    named = tuple(tuple(run.tokenizer.decode([token]) for token in each) for each in done.tokens)
    return Generated(tuple(prompts), texts, unknown, named, tuple(map(tuple, done.log_probabilities)))
