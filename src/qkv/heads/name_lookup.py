"""Which heads look up the name in a question, and what the model answers without them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from qkv.core.display import Card, Displayable
from qkv.core.validation import whole
from qkv.errors import QkvError, kind_of
from qkv.heads.ablation import REPLACEMENTS, MeanOutputs, Removal, checked_ids, checked_removal, without_heads
from qkv.heads.adapter import widened
from qkv.heads.attention_model import checked_model
from qkv.heads.patterns import checked_seed
from qkv.heads.rounding import share_text
from qkv.heads.table import signed

if TYPE_CHECKING:
    from qkv.heads.adapter import AttentionCall
    from qkv.heads.attention_model import AttentionModel, Progress

DRAWS = 10
"""Random choices of as many other heads, to compare with."""


class NamedQuestion(NamedTuple):
    """A question as token ids.

    Attributes:
        ids: The question, up to the token after which the answer comes.
        answer: The answer, up to the token that ends it.
        name: The positions [first, last) of the name in the question.
    """

    ids: Sequence[int]
    answer: Sequence[int]
    name: tuple[int, int]


@dataclass(frozen=True)
class NameHead:
    """One head.

    Attributes:
        layer: Its layer, from 0.
        head: Its number in the layer, from 0.
        weight: Mean weight of the question's last token, from which the answer is read, on the name.
        effect: How much the loss of the answers grows without it, in nats per token.
    """

    layer: int
    head: int
    weight: float
    effect: float


@dataclass(frozen=True)
class Answering:
    """How well a model answers.

    Attributes:
        loss: Loss of the answers, in nats per token.
        right: Share of questions that greedy decoding answers exactly.
    """

    loss: float
    right: float


@dataclass(frozen=True)
class NameHeads(Displayable):
    """Which heads look up the name, and what the model answers without them.

    Attributes:
        model: The model's name.
        questions: How many were asked.
        name_share: Mean share of the question's tokens that are of the name: the weight that a uniform head has there.
        whole: The model as it is.
        removed: The heads that put the most weight on the name, such as "1.2".
        without: The model without those.
        random: The model without as many others, the mean over random choices.
        random_worst: The largest loss and the smallest share of right answers over these choices.
        draws: How many choices.
        removal: What takes the place of the output of a removed head: its "mean" over questions and answers, or "zero".
        rows: All heads, the largest weight on the name first.
    """

    model: str
    questions: int
    name_share: float
    whole: Answering
    removed: tuple[str, ...]
    without: Answering
    random: Answering
    random_worst: Answering
    draws: int
    removal: Removal
    rows: tuple[NameHead, ...]

    def __iter__(self) -> Iterator[NameHead]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def card(self) -> Card:
        def said(found: Answering) -> str:
            return f"{share_text(found.right)} right, loss {found.loss:.3f}"

        count, more = len(self.removed), self.draws > 1
        facts = (
            ("asked", f"{self.questions} questions; {self.name_share:.0%} of their tokens are of the name"),
            ("whole model", said(self.whole)),
            (f"without {', '.join(self.removed)}", said(self.without)),
            (
                f"without {count} other{'s' * (count > 1)}",
                said(self.random) + (f"; mean of {self.draws} random choices" if more else ""),
            ),
            *([("the worst of these", said(self.random_worst))] if more else []),
        )
        rows = tuple((f"{r.layer}.{r.head}", f"{r.weight:.2f}", signed(r.effect)) for r in self.rows)
        note = (
            "weight: mean weight of the question's last token on the name. effect: how much the loss of the answers "
            f"grows, in nats per token, when the head's output is {REPLACEMENTS[self.removal]}."
        )
        return Card(f"Heads of {self.model} that look up the name", facts, ("head", "weight", "effect"), rows, note)


def name_heads(
    model: AttentionModel,
    questions: Sequence[NamedQuestion],
    *,
    count: int = 2,
    removal: Removal = "mean",
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> NameHeads:
    """Find the heads that look at the name when the answer is due, and remove them.

    Args:
        model: A model that predicts the next token.
        questions: Questions with their answers and where the name is.
        count: How many heads to remove together.
        removal: What takes the place of a removed head's output: its "mean" over questions and answers, or "zero".
        seed: Of the random choices of other heads.
        progress: Called with steps done and in all.

    Returns:
        Weight on the name and effect of every head, and the model's answers with and without the first ones.

    Raises:
        QkvError: The model predicts no tokens, there are no questions, one does not fit into the context, is not of
            the model's tokens, or its name is not in it.
    """
    request = "finding the heads that look up the name"
    shape = checked_model(request, model).shape
    count, removal = whole(request, "count", count, 1), checked_removal(request, removal)
    seed = checked_seed(request, seed)
    if not model.predicts:
        raise QkvError(request, f"{model.name} predicts no tokens", "Open a model that generates text")
    questions = _checked_questions(request, model, questions)
    if 2 * count > shape.layers * shape.heads:
        problem = f"{count} heads are more than half of the {shape.layers * shape.heads}"
        raise QkvError(request, problem, "Remove fewer, so that there are others to compare with")
    batch = _Batch(model, questions, removal)
    every = [(layer, head) for layer in range(shape.layers) for head in range(shape.heads)]
    draws = 1 if 2 * count == len(every) else DRAWS  # there is only one choice of all others
    steps = len(every) + draws + 2
    weights = batch.name_weights()
    progress(1, steps)
    base, effects = batch.answers([]), {}
    for number, one in enumerate(every):
        effects[one] = batch.answers([one]).loss - base.loss
        progress(2 + number, steps)
    ranked = sorted(every, key=lambda at: -float(weights[at]))
    first, others = ranked[:count], ranked[count:]
    generator, random = torch.Generator().manual_seed(seed), []
    for number in range(draws):
        chosen = torch.randperm(len(others), generator=generator)[:count].tolist()
        random.append(batch.answers([others[i] for i in chosen]))
        progress(2 + len(every) + number, steps)
    without = batch.answers(first)
    progress(steps, steps)
    mean = Answering(sum(r.loss for r in random) / draws, sum(r.right for r in random) / draws)
    worst = Answering(max(r.loss for r in random), min(r.right for r in random))
    share = sum((q.name[1] - q.name[0]) / len(q.ids) for q in questions) / len(questions)
    rows = tuple(NameHead(layer, head, float(weights[layer, head]), effects[layer, head]) for layer, head in ranked)
    removed = tuple(f"{layer}.{head}" for layer, head in first)
    return NameHeads(model.name, len(questions), share, base, removed, without, mean, worst, draws, removal, rows)


def _checked_questions(request: str, model: AttentionModel, questions: Any) -> list[NamedQuestion]:
    """Questions of the model's tokens, each with an answer, and a name in the question itself."""
    if not isinstance(questions, Iterable) or isinstance(questions, str):
        raise QkvError(request, f"questions are {kind_of(questions)}", "Give a list of NamedQuestion")
    found = []
    for number, one in enumerate(questions):
        if not isinstance(one, tuple) or len(one) != 3:
            problem = f"question {number} is {kind_of(one)}"
            raise QkvError(request, problem, "Give NamedQuestion(ids, answer, (first, last))")
        which = f"{request}, question {number}"
        ids, answer = (_row(which, model, part) for part in one[:2])
        found.append(NamedQuestion(ids, answer, _place_of_name(which, one[2], len(ids))))
    if not found:
        raise QkvError(request, "there are no questions", "Give at least one")
    return found


def _row(request: str, model: AttentionModel, part: Any) -> list[int]:
    """Token ids of a question or an answer."""
    if hasattr(part, "__len__") and not len(part):
        raise QkvError(request, "questions and answers must not be empty", "Leave it out")
    rows = part[None] if isinstance(part, Tensor) else [list(part)] if isinstance(part, Iterable) else part
    ids: list[int] = checked_ids(request, model, rows, 1)[0].tolist()
    return ids


def _place_of_name(request: str, name: Any, tokens: int) -> tuple[int, int]:
    """The positions [first, last) of a name, which is a part of the question."""
    hint = "Give the places (first, last) of its tokens in the question, the last one not included"
    if not isinstance(name, Sequence) or isinstance(name, str) or len(name) != 2:
        raise QkvError(request, f"the place of the name is {name!r:.40}", hint)
    first, last = whole(request, "the first token of the name", name[0], 0), whole(request, "its end", name[1], 1)
    if not first < last <= tokens:
        raise QkvError(request, f"the name is at {first} to {last}, and the question has {tokens} tokens", hint)
    return first, last


class _Batch:
    """Questions with their answers, filled up at the end: a causal model does not see what comes after."""

    def __init__(self, model: AttentionModel, questions: Sequence[NamedQuestion], removal: Removal) -> None:
        rows = [[*q.ids, *q.answer] for q in questions]
        longest = max(map(len, rows))
        if longest - 1 > model.context:
            problem = f"a question and its answer must be no longer than {model.context} tokens together"
            raise QkvError("reading questions", problem, "Leave the others out")
        self.model, self.questions = model, questions
        self.ids = torch.tensor([row + [row[-1]] * (longest - len(row)) for row in rows])
        places = torch.arange(longest)[None]
        starts = torch.tensor([len(q.ids) for q in questions])[:, None]
        ends = torch.tensor([len(row) for row in rows])[:, None]
        self.read, self.removal = (places < ends - 1)[:, :-1], removal  # tokens that another one follows
        self.means: list[Tensor] | None = None
        self.asked = ((places >= starts) & (places < ends))[:, 1:]  # where the next token is one of the answer

    def name_weights(self) -> Tensor:
        """Mean weight of every head on the name, from the last token of the question."""
        shape, last = self.model.shape, torch.tensor([len(q.ids) - 1 for q in self.questions])
        named = torch.zeros(self.ids.shape[0], self.ids.shape[1] - 1, dtype=torch.float64)
        for row, question in enumerate(self.questions):
            named[row, question.name[0] : question.name[1]] = 1
        found = torch.zeros(shape.layers, shape.heads, dtype=torch.float64)

        def tap(call: AttentionCall) -> None:
            looking = call.weights[torch.arange(len(last)), :, last].double()
            found[call.layer] = (looking * named[:, None]).sum(-1).mean(0)

        outputs = MeanOutputs(self.read)
        self.model.run(self.ids[:, :-1], tap, output=outputs, logits=1)
        self.means = outputs.result() if self.removal == "mean" else None
        return found

    def answers(self, removed: Sequence[tuple[int, int]]) -> Answering:
        """Loss of the answers, and how many greedy decoding gets right, without some heads.

        Greedy decoding gives exactly the answer if and only if every token of the answer is the likeliest after those
        before it.
        """
        logits = self.model.run(self.ids[:, :-1], output=without_heads(removed, self.means)).logits
        losses = nn.functional.cross_entropy(widened(logits).transpose(1, 2), self.ids[:, 1:], reduction="none")
        hits = (logits.argmax(-1) == self.ids[:, 1:]) | ~self.asked
        loss = float(losses[self.asked].double().mean())
        return Answering(loss, float(hits.all(1).double().mean()))
