"""A causal Hugging Face model that answers prompts: batched greedy decoding and scoring after a shared prefix."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from qkv.core.display import Card, Displayable
from qkv.core.hugging_face import load_pretrained
from qkv.errors import QkvError
from qkv.knowledge.language_models.shared_prefix import Prefix, UnsupportedAttention, register, using

BATCH_ROWS = 64
TOLERANCE = 1e-3  # nats: how far log-probabilities with a shared prefix may lie from those of the plain model
Ids = Sequence[int]


class Generated(NamedTuple):
    """A generated continuation.

    Attributes:
        tokens: Its tokens, without the end.
        logs: Log-probability of each token.
        end_log: Log-probability that it ends there: of all tokens that end an answer together.
        entropies: Entropy of the next token before each token and before the end.
        ended: Whether it ended by itself; False if the tokens ran out.
        first: The likeliest first tokens with their log-probabilities, likeliest first.
        hidden: (layers, width): hidden state of the prompt's last token in the layers that were asked for.
    """

    tokens: tuple[int, ...]
    logs: tuple[float, ...]
    end_log: float
    entropies: tuple[float, ...]
    ended: bool
    first: tuple[tuple[int, float], ...]
    hidden: np.ndarray

    @property
    def log_probability(self) -> float:
        """Log-probability of the tokens and the end."""
        return sum(self.logs) + self.end_log


class Scored(NamedTuple):
    """A given continuation.

    Attributes:
        logs: Log-probability of each token.
        end_log: Log-probability that the answer ends after it.
        greedy: Whether greedy decoding gives exactly this continuation and then ends.
        entropy: Entropy of the next token, summed over the continuation and its end.
        hidden: (layers, width): hidden state of the last token in the layers that were asked for.
    """

    logs: np.ndarray
    end_log: float
    greedy: bool
    entropy: float
    hidden: np.ndarray

    @property
    def log_probability(self) -> float:
        """Log-probability of the continuation and its end."""
        return float(self.logs.sum()) + self.end_log


@dataclass(frozen=True, eq=False)
class CausalModel(Displayable):
    """A causal language model; `open_causal_model` makes one.

    Attributes:
        name: Its folder or hub name.
        family: Its class in transformers.
        context: The longest text in tokens.
        chat: Whether its tokenizer has a chat template.
        shares_prefix: Whether a prefix is computed once for all rows; otherwise each row is computed whole.
        model: The transformers model.
        tokenizer: Its tokenizer.
    """

    name: str
    family: str
    context: int
    chat: bool
    shares_prefix: bool
    model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)

    def card(self) -> Card:
        prompt = "its chat template" if self.chat else "questions and answers, one a line"
        facts = (("context", f"{self.context} tokens"), ("asked by", prompt))
        return Card(f"{self.family} in {self.name}", facts)

    @cached_property
    def ends(self) -> Tensor:
        """Which tokens end an answer: special ones, and those with a line break."""
        size = int(self.model.get_output_embeddings().weight.shape[0])
        texts = self.tokenizer.batch_decode([[i] for i in range(min(size, len(self.tokenizer)))])
        found = torch.zeros(size, dtype=torch.bool)
        found[[i for i, text in enumerate(texts) if "\n" in text]] = True
        generation = getattr(self.model, "generation_config", None)
        stops = getattr(generation, "eos_token_id", None) or []
        stops = [stops] if isinstance(stops, int) else list(stops)
        special = [i for i in (*self.tokenizer.all_special_ids, *stops) if i is not None and i < size]
        found[special] = True
        return found

    @property
    def layers(self) -> int:
        """Number of hidden states: the embedding's and one for each block."""
        return int(self.model.config.get_text_config().num_hidden_layers) + 1

    def encode(self, text: str, *, begin: bool = False) -> list[int]:
        """Token ids of a text; special tokens written in it are read as such. `begin` adds the tokenizer's own."""
        try:
            return [int(i) for i in self.tokenizer(text, add_special_tokens=begin, verbose=False)["input_ids"]]
        except Exception as why:  # tokenizers raises no class of its own, for a word that has no token
            problem = f"its tokenizer cannot read {text[:40]!r} ({why})"
            raise QkvError(f"asking {self.name}", problem, "Use a tokenizer with a token for unknown words") from None

    def decode(self, tokens: Ids) -> str:
        """The text of tokens, without special ones and without white space at both ends."""
        return self.tokenizer.decode(list(tokens), skip_special_tokens=True).strip()

    def generate(
        self,
        prompts: Sequence[Ids],
        max_tokens: int = 12,
        *,
        layers: Sequence[int] = (),
        top: int = 5,
        sample: np.random.Generator | None = None,
        repeats: int = 1,
    ) -> list[Generated]:
        """Continue each prompt until the end of the answer: greedily, or by sampling at temperature 1.

        Args:
            prompts: Token ids of each prompt; what they share at the beginning is computed once.
            max_tokens: Tokens after which to stop.
            layers: Which hidden states of the prompt's last token to return.
            top: How many of the likeliest first tokens to return.
            sample: Random numbers to sample with; greedy if None.
            repeats: How many continuations of each prompt to return, which differ if they are sampled.

        Returns:
            The continuations of the first prompt, then those of the second, and so on.

        Raises:
            QkvError: A prompt is empty or does not fit into the model's context.
        """
        self._check(prompts, max_tokens)
        out: list[Sequence[Generated]] = [()] * len(prompts)
        prefix, rests = self._split(prompts)
        order = sorted(range(len(prompts)), key=lambda i: len(rests[i]))
        for _, group in groupby(order, key=lambda i: len(rests[i])):  # rows of one length, so nothing is padded
            same = list(group)
            for start in range(0, len(same), BATCH_ROWS):
                batch = same[start : start + BATCH_ROWS]
                found = self._generate(prefix, [rests[i] for i in batch], max_tokens, layers, top, sample, repeats)
                for j, i in enumerate(batch):
                    out[i] = found[j * repeats : (j + 1) * repeats]
        return [one for each in out for one in each]

    def score(
        self, prompts: Sequence[Ids], continuations: Sequence[Ids], *, layers: Sequence[int] = ()
    ) -> list[Scored]:
        """The log-probability of a given continuation of each prompt, and of its end.

        Args:
            prompts: Token ids of each prompt; what they share at the beginning is computed once.
            continuations: Token ids of each continuation; an empty one has only its end.
            layers: Which hidden states of the last token to return.

        Raises:
            QkvError: A prompt is empty, or prompt and continuation do not fit into the model's context.
        """
        rows = [[*prompt, *more] for prompt, more in zip(prompts, continuations, strict=True)]
        self._check(prompts, 0)
        self._check(rows, 0)
        prefix, rests = self._split(prompts)
        rests = [[*rest, *more] for rest, more in zip(rests, continuations, strict=True)]
        out: list[Scored | None] = [None] * len(rows)
        order = sorted(range(len(rows)), key=lambda i: len(rests[i]))
        for start in range(0, len(order), BATCH_ROWS):
            batch = order[start : start + BATCH_ROWS]
            longest = len(rests[batch[-1]])
            # Attention is causal, so padding at the end does not change the logits before it.
            ids = torch.zeros(len(batch), longest, dtype=torch.long)
            for row, i in zip(ids, batch, strict=True):
                row[: len(rests[i])] = torch.tensor(rests[i])
            first = min(len(rests[i]) - len(continuations[i]) for i in batch) - 1
            logits, hidden = _Rows(self, prefix).forward(ids, longest - first, hidden=bool(layers))
            for j, i in enumerate(batch):
                begin = len(rests[i]) - len(continuations[i]) - 1 - first
                logs = logits[j, begin : begin + len(continuations[i]) + 1].log_softmax(-1)
                vectors = _states(hidden, layers, j, len(rests[i]) - 1)
                out[i] = self._scored(logs, continuations[i])._replace(hidden=vectors)
        return [one for one in out if one is not None]

    def attention_to(self, prompt: Ids, span: tuple[int, int]) -> dict[tuple[int, int], float]:
        """For each (layer, head), the sum of its attention weights from the last token to positions [first, last).

        Empty where the family does not give its weights.
        """
        self._check([prompt], 0)
        before = getattr(self.model.config, "_attn_implementation", None)
        try:
            self.model.set_attn_implementation("eager")
            with torch.inference_mode():
                out = self.model(input_ids=torch.tensor([list(prompt)]), use_cache=False, output_attentions=True)
            weights = [layer for layer in getattr(out, "attentions", None) or () if layer is not None]
        except (AttributeError, ValueError, TypeError, RuntimeError):
            weights = []
        finally:
            if before is not None and self.model.config._attn_implementation != before:
                self.model.set_attn_implementation(before)
        return {
            (i, head): float(weight)
            for i, layer in enumerate(weights)
            for head, weight in enumerate(layer[0, :, -1, span[0] : span[1]].sum(-1))
        }

    def _generate(
        self,
        prefix: Prefix | Ids,
        rests: Sequence[Ids],
        max_tokens: int,
        layers: Sequence[int],
        top: int,
        sample: np.random.Generator | None,
        repeats: int,
    ) -> list[Generated]:
        n = len(rests) * repeats
        tokens: list[list[int]] = [[] for _ in range(n)]
        logs: list[list[float]] = [[] for _ in range(n)]
        entropies: list[list[float]] = [[] for _ in range(n)]
        end_logs, ended = [0.0] * n, [False] * n
        first: list[tuple[tuple[int, float], ...]] = []
        rows = list(range(n))  # of the batch, those that have not ended
        state = _Rows(self, prefix)
        logits, hidden = state.forward(torch.tensor(rests), 1, hidden=bool(layers))
        vectors = [_states(hidden, layers, i // repeats, -1) for i in range(n)]
        if repeats > 1:
            logits = logits.repeat_interleave(repeats, 0)
            state.repeat(repeats)
        for step in range(max_tokens + 1):
            now = logits[:, -1].log_softmax(-1)
            entropy = -(now.exp() * now).nan_to_num(0.0).sum(-1)
            ends = now[:, self.ends].logsumexp(-1)
            if step == 0:
                best = now.masked_fill(self.ends, -torch.inf).topk(min(top, int((~self.ends).sum())))
                first = [
                    tuple(zip(i.tolist(), v.tolist(), strict=True))
                    for i, v in zip(best.indices, best.values, strict=True)
                ]
            chosen = self._choose(now, sample)
            for row, i in enumerate(rows):
                if ended[i]:
                    continue
                entropies[i].append(float(entropy[row]))
                end_logs[i] = float(ends[row])
                if self.ends[chosen[row]]:
                    ended[i] = True
                elif step < max_tokens:
                    tokens[i].append(int(chosen[row]))
                    logs[i].append(float(now[row, chosen[row]]))
            if all(ended) or step == max_tokens:
                break
            alive = [row for row, i in enumerate(rows) if not ended[i]]
            if len(alive) <= len(rows) / 2:  # rows that have ended leave the batch
                rows = [rows[row] for row in alive]
                chosen = chosen[alive]
                state.select(alive)
            logits = state.forward(chosen[:, None], 1)[0]
        return [
            Generated(tuple(t), tuple(g), e, tuple(h), d, f, v)
            for t, g, e, h, d, f, v in zip(tokens, logs, end_logs, entropies, ended, first, vectors, strict=True)
        ]

    def _choose(self, logs: Tensor, sample: np.random.Generator | None) -> Tensor:
        """The next token of each row. Greedily, the answer ends if all ends together are the likeliest continuation."""
        if sample is not None:
            cumulative = logs.double().exp().cumsum(-1)
            drawn = torch.tensor(sample.random(len(logs)))[:, None] * cumulative[:, -1:]
            return torch.searchsorted(cumulative, drawn)[:, 0].clamp(max=logs.shape[1] - 1)
        best = logs.argmax(-1)
        ends = logs[:, self.ends].logsumexp(-1)
        stop = ends > logs.gather(1, best[:, None])[:, 0]
        one_end = int(self.ends.nonzero()[0])
        return torch.where(stop & ~self.ends[best], torch.full_like(best, one_end), best)

    def _scored(self, logs: Tensor, tokens: Ids) -> Scored:
        """The scores of a continuation from the log-probabilities (tokens + 1, vocabulary) along it."""
        entropy = float(-(logs.exp() * logs).nan_to_num(0.0).sum())
        chosen = self._choose(logs, None)
        greedy = bool(self.ends[chosen[-1]]) and chosen[:-1].tolist() == list(tokens)
        along = logs[torch.arange(len(tokens)), torch.tensor(list(tokens), dtype=torch.long)]
        return Scored(
            along.double().numpy(), float(logs[-1][self.ends].logsumexp(-1)), greedy, entropy, np.zeros((0, 0))
        )

    def _split(self, prompts: Sequence[Ids]) -> tuple[Prefix | Ids, list[list[int]]]:
        """The common beginning of the prompts, computed, and the rest of each, which has at least one token."""
        lowest, highest = min(prompts, key=list), max(prompts, key=list)
        common = min(len(prompt) for prompt in prompts) - 1
        for i, (a, b) in enumerate(zip(lowest, highest, strict=False)):
            if a != b:
                common = min(common, i)
                break
        rests = [list(prompt[common:]) for prompt in prompts]
        shared = list(prompts[0][:common])
        if not self.shares_prefix:
            return shared, rests
        return self._prefix(tuple(shared)), rests

    def _prefix(self, ids: Ids) -> Prefix:
        found = Prefix(len(ids), recording=True)
        if ids:
            with torch.inference_mode(), using(found):
                self.model(input_ids=torch.tensor([list(ids)]), use_cache=False, **_keep(self.model, 1))
        found.recording = False
        return found

    def _check(self, prompts: Sequence[Ids], more: int) -> None:
        longest = max((len(prompt) for prompt in prompts), default=0)
        if not prompts or not all(prompts):
            raise QkvError(f"asking {self.name}", "there is no prompt, or an empty one", "Write the question out")
        if longest + more > self.context:
            raise QkvError(
                f"asking {self.name}",
                f"a prompt has {longest} tokens with its examples, and the answer may have {more}",
                f"The model takes {self.context} tokens: shorten the question, or ask a model with a longer context",
            )


class _Rows:
    """A batch of rows after a prefix: forward passes that continue each other."""

    def __init__(self, model: CausalModel, prefix: Prefix | Ids) -> None:
        self.model, self.prefix = model.model, prefix
        self.done = 0
        self.cache: Any = None
        self.past: Tensor | None = None

    def select(self, rows: list[int]) -> None:
        """Keep these rows of the batch."""
        if self.cache is not None:
            self.cache.batch_select_indices(torch.tensor(rows))
        if self.past is not None:
            self.past = self.past[rows]

    def repeat(self, times: int) -> None:
        """Each row of the batch so many times."""
        if self.cache is not None:
            self.cache.batch_repeat_interleave(times)
        if self.past is not None:
            self.past = self.past.repeat_interleave(times, 0)

    def forward(self, ids: Tensor, keep: int, hidden: bool = False) -> tuple[Tensor, Any]:
        """Logits (rows, keep, vocabulary) of the last `keep` of these tokens, and all hidden states if asked for."""
        options: dict[str, Any] = {"output_hidden_states": True} if hidden else {}
        with torch.inference_mode():
            if not isinstance(self.prefix, Prefix):
                return self._whole(ids, keep, options)
            from transformers import DynamicCache

            self.cache = DynamicCache() if self.cache is None else self.cache
            first = self.prefix.length + self.done
            positions = torch.arange(first, first + ids.shape[1]).expand(len(ids), -1)
            with using(self.prefix):
                out = self.model(
                    input_ids=ids,
                    position_ids=positions,
                    past_key_values=self.cache,
                    use_cache=True,
                    **options,
                    **_keep(self.model, keep),
                )
            self.done += ids.shape[1]
        return out.logits[:, -keep:].float(), getattr(out, "hidden_states", None)

    def _whole(self, ids: Tensor, keep: int, options: dict[str, Any]) -> tuple[Tensor, Any]:
        """The same without sharing anything: every row is computed from its beginning."""
        assert not isinstance(self.prefix, Prefix)
        if self.past is None:
            self.past = torch.tensor([list(self.prefix)], dtype=torch.long).expand(len(ids), -1)
        self.past = torch.cat((self.past, ids), 1)
        out = self.model(input_ids=self.past, use_cache=False, **options, **_keep(self.model, keep))
        states = getattr(out, "hidden_states", None)
        states = None if states is None else [state[:, -ids.shape[1] :] for state in states]
        return out.logits[:, -keep:].float(), states


def open_causal_model(source: str | Path, *, offline: bool = True) -> CausalModel:
    """Open a causal Hugging Face model to ask it.

    Args:
        source: A folder with `config.json`, safetensors and a tokenizer, or a hub name.
        offline: Look only at folders and at what was downloaded before.

    Returns:
        The model, on the CPU, in float32.

    Raises:
        QkvError: Nothing is there, the weights are no safetensors, there is no tokenizer, or the model is not a causal
            language model.
        MissingExtra: transformers is not installed.
    """
    model, tokenizer = load_pretrained(source, choose=_causal(str(source)), offline=offline, dtype=torch.float32)
    return from_transformers(model, tokenizer, name=str(source))


def from_transformers(model: Any, tokenizer: Any, *, name: str = "a model") -> CausalModel:
    """Ask a transformers model that is already in memory; it is left in evaluation mode.

    Args:
        model: A causal language model.
        tokenizer: Its tokenizer.
        name: What to call it.

    Raises:
        QkvError: The tokenizer has tokens that the model does not have, none for a text, or none that ends an answer.
    """
    model.eval()
    config = model.config.get_text_config()
    rows = int(model.get_input_embeddings().weight.shape[0])
    if len(tokenizer) > rows:
        problem = f"its tokenizer has {len(tokenizer)} tokens, and the model {rows}"
        raise QkvError(f"opening the model {name}", problem, "Use the tokenizer that belongs to the model")
    context = int(getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", 0) or 1 << 20)
    chat = bool(getattr(tokenizer, "chat_template", None))
    plain = CausalModel(name, type(model).__name__, context, chat, False, model, tokenizer)
    if plain.ends[: len(tokenizer)].all():  # special tokens alone
        problem = "its tokenizer makes no tokens of a text: its files are missing, or hold no words"
        raise QkvError(f"opening the model {name}", problem, "Put the model's tokenizer into its folder")
    if not plain.ends.any():
        problem = "its tokenizer has no token that ends an answer: no special one, and none with a line break"
        raise QkvError(f"opening the model {name}", problem, "Use a tokenizer with a token for the end of a text")
    before = getattr(model.config, "_attn_implementation", None)
    shared = CausalModel(name, type(model).__name__, context, chat, True, model, tokenizer)
    if _shares_prefix(plain, shared):
        return shared
    if before is not None:
        model.set_attn_implementation(before)
    return plain


def _shares_prefix(plain: CausalModel, shared: CausalModel) -> bool:
    """Whether the model gives the same log-probabilities with a shared prefix; if so, it is left set to that."""
    model = plain.model
    if not getattr(model, "_can_set_attn_implementation", lambda: False)():
        return False
    size = int(model.get_input_embeddings().weight.shape[0])
    rows = [[(3 + 7 * i) % size for i in range(9)], [(3 + 7 * i if i < 5 else 5 + i) % size for i in range(9)]]
    more = [[1 % size, 2 % size], [4 % size]]
    try:
        wanted = plain.score(rows, more, layers=[plain.layers - 1])
        model.set_attn_implementation(register())
        found = shared.score(rows, more, layers=[plain.layers - 1])
    except (UnsupportedAttention, TypeError, ValueError, RuntimeError, KeyError, IndexError, AttributeError):
        return False
    return all(
        np.allclose(a.logs, b.logs, atol=TOLERANCE) and np.allclose(a.hidden, b.hidden, rtol=1e-3, atol=1e-3)
        for a, b in zip(wanted, found, strict=True)
    )


def _causal(source: str) -> Any:
    def choose(config: Any) -> Any:
        from transformers import AutoModelForCausalLM

        names = getattr(config, "architectures", None) or []
        if not any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in names):
            made = ", ".join(names) or str(getattr(config, "model_type", "unknown"))
            raise QkvError(
                f"opening the model {source}",
                f"it is no causal language model ({made})",
                "Name a model that predicts the next token, such as Llama, Qwen, Mistral or GPT-2",
            )
        return AutoModelForCausalLM

    return choose


def _keep(model: Any, keep: int) -> dict[str, int]:
    """The option that computes the logits of the last tokens only, where the family has it."""
    return {"logits_to_keep": keep} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}


def _states(hidden: Any, layers: Sequence[int], row: int, position: int) -> np.ndarray:
    """(layers, width): hidden states of one token."""
    if not layers:
        return np.zeros((0, 0))
    return np.stack([hidden[layer][row, position].float().numpy() for layer in layers])
