"""Which spans of a text questions ask for: a softmax regression fitted to questions whose text is known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from qkv.train.data.entity_passages import Passage, TitleIndex, parse_passages
from qkv.train.data.question_frames import common_frames

MIN_QUESTIONS_PER_FRAME = 20
MIN_FRAME_QUESTIONS, MIN_FRAME_FRACTION = 5, 0.2  # or at least so many that are this fraction of all questions
MAX_FRAMES, MAX_QUESTIONS_FOR_FRAMES = 50, 5000  # that a run records
LBFGS_ITERATIONS = 60
NONE = "none"  # feature of the choice that no span of a passage is the answer
RIDGE = 0.03  # L2 penalty of a weight, times the square root of the number of passages


@dataclass(frozen=True)
class MatchedQuestion:
    """A question, its kind, and the passages whose title it names.

    Attributes:
        question: The question.
        answer: Its answer.
        frame: The question with … for the name; the question itself if it names no title.
        passages: Numbers of the passages.
    """

    question: str
    answer: str
    frame: str
    passages: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SpanRelevance:
    """For each passage, the probability of each of its spans to be what a question asks for.

    The probabilities of a passage add up to 1 minus the probability that none of its spans is: a text about somebody
    may not say what is asked for.

    Attributes:
        frames: Kinds of questions (questions with … for the name) that were fitted.
        fitted_pairs: Number of pairs of a question and a passage with its answer that it was fitted to.
        probabilities: One array per passage, one number per span: the mean over the frames by their frequency.
        by_frame: The same for each frame.
        weights: Frequency of each frame.
    """

    frames: tuple[str, ...]
    fitted_pairs: int
    probabilities: tuple[np.ndarray, ...]
    by_frame: tuple[tuple[np.ndarray, ...], ...] = ()
    weights: tuple[float, ...] = ()

    @property
    def fitted(self) -> bool:
        """Whether there were questions enough; if not, all spans of a passage have the same probability."""
        return bool(self.frames)


def match_questions(passages: Sequence[Passage], questions: Sequence[tuple[str, str]]) -> list[MatchedQuestion]:
    """The kind of each question and the passages that it is about, by their titles."""
    titles = TitleIndex(passages)
    out = []
    for question, answer in questions:
        found, frame = titles.frame(question)
        out.append(MatchedQuestion(question, answer, frame, tuple(found)))
    return out


def question_frames(texts: Sequence[str], questions: Sequence[tuple[str, str]]) -> list[str]:
    """The frames of questions, most frequent first: by the titles of the texts, or else by the words they share."""
    asked = [question for question, _ in questions[:MAX_QUESTIONS_FOR_FRAMES]]
    matched = match_questions(parse_passages(texts, asked), questions[:MAX_QUESTIONS_FOR_FRAMES])
    counts = Counter(each.frame for each in matched if each.passages)
    by_title = [frame for frame, count in counts.most_common() if count >= min(MIN_FRAME_QUESTIONS, len(asked))]
    return (by_title + common_frames([each.question for each in matched if not each.passages]))[:MAX_FRAMES]


def fit_span_relevance(passages: Sequence[Passage], questions: Sequence[tuple[str, str]]) -> SpanRelevance:
    """Fit which spans questions ask for, and average over the kinds of questions by their frequency.

    A kind, or frame, is what remains of a question without the name. A softmax over the spans of the passage that a
    question names, and over "none of them", is fitted to choose the answer, or none where no span is the answer.
    Features are the words around a span, its place, its kind, and whether it answers other questions; "none" has one
    feature of its own. Where every question of a kind is answered by its passage, there is no "none".
    """
    return fit_matched(passages, match_questions(passages, questions))


def fit_matched(passages: Sequence[Passage], questions: Sequence[MatchedQuestion]) -> SpanRelevance:
    """`fit_span_relevance` of questions whose passages are known."""
    kinds: dict[str, list[tuple[int, str]]] = {}
    wordings: dict[str, set[str]] = {}
    unanswered: dict[str, set[int]] = {}
    for each in questions:
        for number in each.passages:
            if any(span.text == each.answer for span in passages[number].spans):
                kinds.setdefault(each.frame, []).append((number, each.answer))
                wordings.setdefault(each.frame, set()).add(each.question)
            else:
                unanswered.setdefault(each.frame, set()).add(number)
    kinds = {frame: pairs for frame, pairs in kinds.items() if _is_common(len(wordings[frame]), len(questions))}
    uniform = [np.full(len(p.spans), 1 / max(1, len(p.spans))) for p in passages]
    if not kinds:
        return SpanRelevance((), 0, tuple(uniform))
    count = sum(map(len, kinds.values()))
    weights = tuple(len(pairs) / count for pairs in kinds.values())
    by_frame = tuple(tuple(_fit(passages, pairs, unanswered.get(frame, set()))) for frame, pairs in kinds.items())
    total = [np.zeros(len(p.spans)) for p in passages]
    for found, weight in zip(by_frame, weights, strict=True):
        for shares, found_shares in zip(total, found, strict=True):
            shares += found_shares * weight
    return SpanRelevance(tuple(kinds), count, tuple(total), by_frame, weights)


def _is_common(count: int, total: int) -> bool:
    """Whether a kind of question is frequent enough to be fitted: a lot, or a good part of a few."""
    return count >= MIN_QUESTIONS_PER_FRAME or count >= max(MIN_FRAME_QUESTIONS, MIN_FRAME_FRACTION * total)


def _fit(
    passages: Sequence[Passage], pairs: Sequence[tuple[int, str]], unanswered: Collection[int] = ()
) -> list[np.ndarray]:
    """Probabilities of the spans of each passage, fitted to pairs of a passage's number and the answer in it.

    Of the `unanswered` passages none of the spans is an answer. With any of these, "none" is one more choice in every
    passage, after its spans.
    """
    answers = Counter(answer for _, answer in pairs)
    own = dict(pairs)
    none = set(unanswered) - own.keys()
    names: dict[str, int] = {}
    rows: list[int] = []
    columns: list[int] = []
    owner: list[int] = []
    right: list[bool] = []
    for number, each in enumerate(passages):
        # Whether a span answers *other* questions: the label must not be a feature.
        spare = answers - Counter([own[number]] if number in own else [])
        for place, span in enumerate(each.spans):
            for feature in _features(each, place, spare):
                rows.append(len(owner))
                columns.append(names.setdefault(feature, len(names)))
            owner.append(number)
            right.append(number in own and span.text == own[number])
        if none:
            rows.append(len(owner))
            columns.append(names.setdefault(NONE, len(names)))
            owner.append(number)
            right.append(number in none)
    if not owner:
        return [np.zeros(0) for _ in passages]
    x = torch.sparse_coo_tensor(
        torch.tensor([rows, columns]),
        torch.ones(len(rows), dtype=torch.float64),
        (len(owner), len(names)),
        check_invariants=False,
    ).coalesce()
    owners, wanted = torch.tensor(owner), torch.tensor(right)
    known = torch.tensor(sorted(own.keys() | none))
    weights = torch.zeros(len(names), dtype=torch.float64, requires_grad=True)

    def log_shares() -> torch.Tensor:
        scores = (x @ weights[:, None])[:, 0]
        return scores - _group_logsumexp(scores, owners, len(passages))[owners]

    search = torch.optim.LBFGS([weights], max_iter=LBFGS_ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        search.zero_grad()
        chosen = _group_logsumexp(log_shares()[wanted], owners[wanted], len(passages))[known]
        value = -chosen.sum() + RIDGE * len(known) ** 0.5 * weights.square().sum()
        value.backward()
        return value

    search.step(loss)
    shares = log_shares().detach().exp().numpy()
    ends = np.searchsorted(np.array(owner), np.arange(len(passages) + 1))
    return [shares[a:b][: len(passage.spans)] for passage, (a, b) in zip(passages, pairwise(ends), strict=True)]


def _group_logsumexp(scores: torch.Tensor, owners: torch.Tensor, count: int) -> torch.Tensor:
    """logsumexp of the scores of each owner."""
    top = torch.full((count,), -torch.inf, dtype=scores.dtype).scatter_reduce(0, owners, scores.detach(), "amax")
    sums = torch.zeros(count, dtype=scores.dtype).index_add(0, owners, (scores - top[owners]).exp())
    return top + sums.log()


def _features(passage: Passage, place: int, answers: Counter[str]) -> Iterator[str]:
    """Binary features of a span, by name; `answers` counts the answers to other questions."""
    span = passage.spans[place]
    before = [_shape(word) for word in span.before[-6:]]
    after = [_shape(word) for word in span.after[:2]]
    yield "kind " + ("number" if span.text[0].isdigit() else "name" if span.salient else "words")
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
    """A word as a feature: in lower case, with # for numbers."""
    return re.sub(r"\d+", "#", word.strip(".,;:()").lower()) or "("
