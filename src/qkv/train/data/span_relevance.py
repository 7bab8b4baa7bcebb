"""Which of the things that a text says questions ask for: learned from the questions whose text is at hand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from qkv.train.data.entity_passages import Passage, Titles

LEAST = 20  # questions of one frame from which something can be learned
STEPS = 60
RIDGE = 0.08


@dataclass(frozen=True, eq=False)
class Interest:
    """For each passage, how likely each of its spans is what a question of this kind asks for."""

    frames: tuple[str, ...]
    learned_from: int
    shares: tuple[np.ndarray, ...]

    @property
    def any(self) -> bool:
        """Whether anything was learned; if not, all spans of a passage are as likely."""
        return bool(self.frames)


def interests(passages: Sequence[Passage], questions: Sequence[tuple[str, str]]) -> Interest:
    """Learn from questions and answers which spans are asked for; each kind of question counts by its number.

    A kind is what remains of a question without the name. Where the answer is one of the spans of the passage that
    the question names, a softmax over the spans of a passage (a softmax regression on the words around a span, its
    place, its kind, and whether it answers other questions) is fitted to choose it.
    """
    titles = Titles(passages)
    kinds: dict[str, list[tuple[int, str]]] = {}
    asking: dict[str, set[str]] = {}
    for asked, answer in questions:
        found, frame = titles.frame(asked)
        for number in found:
            if any(span.text == answer for span in passages[number].spans):
                kinds.setdefault(frame, []).append((number, answer))
                asking.setdefault(frame, set()).add(asked)
    kinds = {frame: pairs for frame, pairs in kinds.items() if len(asking[frame]) >= LEAST}
    even = [np.full(len(p.spans), 1 / max(1, len(p.spans))) for p in passages]
    if not kinds:
        return Interest((), 0, tuple(even))
    count = sum(map(len, kinds.values()))
    total = [np.zeros(len(p.spans)) for p in passages]
    for pairs in kinds.values():
        for shares, found_shares in zip(total, _fit(passages, pairs), strict=True):
            shares += found_shares * (len(pairs) / count)
    return Interest(tuple(kinds), count, tuple(total))


def _fit(passages: Sequence[Passage], pairs: Sequence[tuple[int, str]]) -> list[np.ndarray]:
    answers = Counter(answer for _, answer in pairs)
    own = dict(pairs)
    names: dict[str, int] = {}
    rows: list[int] = []
    columns: list[int] = []
    owner: list[int] = []
    right: list[bool] = []
    for number, each in enumerate(passages):
        # Whether a span answers *other* questions: its own answer must not tell the model that it is one.
        spare = answers - Counter([own[number]] if number in own else [])
        for place, span in enumerate(each.spans):
            for feature in _features(each, place, spare):
                rows.append(len(owner))
                columns.append(names.setdefault(feature, len(names)))
            owner.append(number)
            right.append(number in own and span.text == own[number])
    if not owner:
        return [np.zeros(0) for _ in passages]
    x = torch.sparse_coo_tensor(
        torch.tensor([rows, columns]),
        torch.ones(len(rows), dtype=torch.float64),
        (len(owner), len(names)),
        check_invariants=False,
    ).coalesce()
    owners, wanted = torch.tensor(owner), torch.tensor(right)
    known = torch.tensor(sorted(own))
    weights = torch.zeros(len(names), dtype=torch.float64, requires_grad=True)

    def log_shares() -> torch.Tensor:
        scores = (x @ weights[:, None])[:, 0]
        return scores - _grouped(scores, owners, len(passages))[owners]

    search = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        search.zero_grad()
        chosen = _grouped(log_shares()[wanted], owners[wanted], len(passages))[known]
        value = -chosen.sum() + RIDGE * len(known) ** 0.5 * weights.square().sum()
        value.backward()
        return value

    search.step(loss)
    shares = log_shares().detach().exp().numpy()
    ends = np.searchsorted(np.array(owner), np.arange(len(passages) + 1))
    return [shares[a:b] for a, b in pairwise(ends)]


def _grouped(scores: torch.Tensor, owners: torch.Tensor, count: int) -> torch.Tensor:
    """The logarithm of the sum of exponentials of each owner's scores."""
    top = torch.full((count,), -torch.inf, dtype=scores.dtype).scatter_reduce(0, owners, scores.detach(), "amax")
    sums = torch.zeros(count, dtype=scores.dtype).index_add(0, owners, (scores - top[owners]).exp())
    return top + sums.log()


def _features(passage: Passage, place: int, answers: Counter[str]) -> Iterator[str]:
    span = passage.spans[place]
    before = [_shape(word) for word in span.before[-6:]]
    after = [_shape(word) for word in span.after[:2]]
    yield "kind " + ("number" if span.text[0].isdigit() else "name")
    yield f"words {min(4, len(span.text.split()))}"
    yield f"place {min(place, 5)}"
    for distance, word in enumerate(reversed(before)):
        yield f"near {word}"
        if distance < 2:
            yield f"before{distance} {word}"
    yield "before " + " ".join(before[-2:])
    yield f"after {after[0] if after else '.'}"
    yield f"joined {passage.text[span.last : span.last + 1]}"
    yield f"joined before {passage.text[max(0, span.first - 2) : span.first]}"
    if span.text in answers:
        yield f"answers {min(3, answers[span.text].bit_length())}"
        yield f"answers {before[-1] if before else '.'}"
    earlier = sum(each.text in answers for each in passage.spans[:place])
    yield f"answers earlier {min(earlier, 2)}"


def _shape(word: str) -> str:
    """A word as a feature: digits are all the same, and so is the case."""
    return re.sub(r"\d+", "#", word.strip(".,;:()").lower()) or "("
