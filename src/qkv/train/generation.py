"""Generate text from a run: many prompts at once, greedy or sampled, with the log-probability of every token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qkv.core.display import Card, Displayable
from qkv.errors import QkvError
from qkv.model.decoding import Sampler, decode
from qkv.train.allocator import reuse_memory
from qkv.train.runs import RunOrFolder, as_run
from qkv.train.tokenizers import END_ID, MASK_ID


@dataclass(frozen=True)
class Generated(Displayable):
    """Continuations of prompts.

    Attributes:
        prompts: The prompts.
        texts: The continuation of each.
        unknown: Characters of the prompts that training never showed.
        tokens: The tokens of each continuation as texts, if log-probabilities were asked for.
        log_probabilities: The log-probability of each of them.

    Example:
        >>> import qkv
        >>> qkv.train.Generated(("Ada was born in",), (" London.",), ()).to_json()["texts"]
        [' London.']
    """

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
        unknown = " ".join(self.unknown)
        return Card(
            title=f"{len(rows)} prompt{'s' * (len(rows) != 1)} continued",
            columns=("prompt", "text", *sums),
            rows=rows,
            note=f"not in the training text, and encoded as bytes: {unknown}" if unknown else "",
        )


def generate(
    run: RunOrFolder,
    prompts: Sequence[str],
    max_new_tokens: int = 32,
    *,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    ask: bool = False,
    log_probabilities: bool = False,
) -> Generated:
    """Continue prompts until the text ends.

    Args:
        run: A run, or its folder.
        prompts: Texts to continue.
        max_new_tokens: Most tokens to generate for each.
        temperature: 0 takes the most probable token; 1 samples from the model's distribution.
        top_k: Sample from this many most probable tokens; 0 for all.
        top_p: Sample from the most probable tokens that have this probability together.
        seed: Seed of the sampling.
        ask: Whether the prompts are questions; the model then writes the answers.
        log_probabilities: Whether to return every token with its log-probability.

    Returns:
        The continuations.

    Raises:
        QkvError: If a prompt is too long, an option is out of range, or an imported model is asked questions.

    Example:
        >>> import tempfile, qkv
        >>> folder = tempfile.mkdtemp()
        >>> config = qkv.model.ModelConfig(n_layer=1, n_head=2, d_model=16)
        >>> settings = qkv.train.TrainSettings(steps=60, batch_size=4, lr=3e-2, objective="next", val_fraction=0.0)
        >>> _ = qkv.train.pretrain(["Ada was born in London."], folder, config, settings)
        >>> qkv.train.generate(folder, ["Ada was"], max_new_tokens=16).texts
        (' born in London.',)
    """
    if isinstance(prompts, str):
        raise QkvError("generating", "prompts is one string", "Give a list of prompts")
    run = as_run(run)
    ids = [run.tokenizer.encode(prompt) for prompt in prompts]
    stop: int | None = None
    if run.tokenizer.special:
        is_text = run.settings.objective == "next" and run.data["kind"] == "text" and not ask
        stop = END_ID if is_text else MASK_ID
        ids = [[*each, MASK_ID] if ask else [END_ID, *each] if is_text else each for each in ids]
    elif ask:
        raise QkvError("asking", "this model's tokenizer has no special token ⁇", "Leave out ask")
    sampler = Sampler(temperature, top_k, top_p, seed)
    reuse_memory()
    done = decode(run.model, ids, max_new_tokens, sampler, stop=stop, log_probabilities=log_probabilities)
    unknown = run.tokenizer.unknown("".join(prompts))
    texts = tuple(run.tokenizer.decode(each) for each in done.tokens)
    if done.log_probabilities is None:
        return Generated(tuple(prompts), texts, unknown)
    tokens = tuple(tuple(run.tokenizer.decode([token]) for token in each) for each in done.tokens)
    return Generated(tuple(prompts), texts, unknown, tokens, tuple(map(tuple, done.log_probabilities)))
