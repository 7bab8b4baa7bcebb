"""ask: the answer of a run with alternatives, its badge and the reason for it, and the attention on the name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.core.display import Card, Displayable, number, probability_percent
from qkv.errors import QkvError, kind_of, refuse_negative
from qkv.knowledge.answering.answer_model import AnswerModel, frames_of, load_answer_model
from qkv.knowledge.answering.name_attention import HeadAttention, span_attention
from qkv.knowledge.confidence.badge import MADE_UP, REMEMBERED, UNSURE, Badge, Judgement, rule_of_thumb
from qkv.knowledge.confidence.features import FEATURES, N_BEAMS, N_SAMPLES, AnswerFeatures, answer_features

if TYPE_CHECKING:
    from qkv.train.runs import Run

MAX_HEADS_SHOWN = 4
MAX_SAMPLES = 1_000_000
MAX_FRAMES_SHOWN = 3
NO_ANSWER = "(no answer)"
NO_KINDS = (
    "The run does not record which questions it was trained on: the badge holds for questions like those that it was "
    "fitted on."
)
ON_AVERAGE = (
    "What the badge guarantees holds for a share of all answers that it calls so, and says nothing of a single one."
)
TOO_FEW = (
    "Of this kind of question alone, those that the badge was fitted on show no level of one half or more: the answer "
    "is unsure."
)
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Alternative:
    """A possible answer with its probability."""

    text: str
    probability: float


@dataclass(frozen=True)
class Answer(Displayable):
    """The answer of a run to a question, and how far to trust it.

    Attributes:
        question: The question.
        answer: The most likely answer.
        alternatives: The different answers of the beam search with their probabilities, the answer itself first.
        badge: "remembered", "made up" or "unsure"; None where the answer is empty. It is "unsure" where the badge says
            nothing of such a question, because it has no name or is of a kind that it was not fitted on.
        guarantee: How often answers with this badge are right (remembered) or wrong (made up), such as "right at least
            95 % of the time (95 % confidence)"; None where nothing is guaranteed.
        why: The reason for the badge, in a sentence.
        evidence: The features (`qkv.knowledge.confidence.features.FEATURES`), the `probability` of the answer, and for
            a calibrated run `seen` and `right`: P(person in the training text) and P(answer right). These two are None
            for a run that is not calibrated, and for a question of another kind.
        heads: Attention of each head from the last token to the name, largest weight first; none without a name.
        name: The name that was found in the question; empty if none was found.
    """

    question: str
    answer: str
    alternatives: tuple[Alternative, ...]
    badge: str | None
    why: str
    evidence: dict[str, float | None]
    heads: tuple[HeadAttention, ...]
    name: str
    guarantee: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "heads": [head._asdict() for head in self.heads]}

    def card(self) -> Card:
        heads = "; ".join(f"layer {h.layer} head {h.head}: {h.weight:.2f}" for h in self.heads[:MAX_HEADS_SHOWN])
        return Card(
            title=_printable(self.answer) or NO_ANSWER,
            facts=(
                *(
                    (("badge", f"{self.badge}: {self.guarantee}" if self.guarantee else self.badge),)
                    if self.badge
                    else ()
                ),
                ("because", self.why),
                *(
                    (
                        (
                            f"attention on {_printable(self.name)}",
                            heads or "no head of this kind of attention reads tokens from there",
                        ),
                    )
                    if self.name
                    else ()
                ),
            ),
            columns=("alternative", "probability"),
            rows=tuple((_printable(a.text) or NO_ANSWER, number(a.probability, 3)) for a in self.alternatives),
        )


def ask(
    run: Run | AnswerModel | str | Path,
    question: str,
    *,
    beams: int = N_BEAMS,
    n_samples: int = N_SAMPLES,
    seed: int = 0,
) -> Answer:
    """Ask a run a question. From the folder of a run, this does not import torch.

    Args:
        run: A run, or its folder.
        question: The question, such as "Where was Ada Lovelace born?".
        beams: Width of the beam search, at least 2.
        n_samples: Sampled answers, for the feature `agreement`; with 0 its expected value is taken.
        seed: Seed of the samples.

    Returns:
        The answer with alternatives, badge, evidence and attention on the name. The badge is a rule of thumb by the
        probability of the answer until `trust` has calibrated the run.

    Raises:
        QkvError: The folder holds no run, or a damaged one; the question is empty or longer than the model's context;
            or the run's tokenizer has no special token ⁇ (the model was not trained on questions by qkv).

    Example:
        >>> import tempfile, qkv
        >>> texts, questions = ["Ada was born in London."], [("Where was Ada born?", "London")]
        >>> run = qkv.knowledge.train_mixed(
        ...     tempfile.mkdtemp(), texts, questions, 0.5,
        ...     config=qkv.model.ModelConfig(n_layer=1, n_head=2, d_model=16),
        ...     settings=qkv.train.TrainSettings(steps=60, batch_size=2, lr=3e-2, objective="next"),
        ...     tokenizer=qkv.train.Characters.train([*texts, "Where was Ada born?"]),
        ... )
        >>> qkv.knowledge.ask(run, "Where was Ada born?").answer
        'London'
    """
    if not isinstance(question, str):
        problem = f"it is {kind_of(question)}, not a text"
        raise QkvError("asking a question", problem, 'Give one question, such as "Where was Ada Lovelace born?"')
    run = load_answer_model(run)
    refuse_negative("asking", seed=seed, n_samples=n_samples)
    if n_samples > MAX_SAMPLES:
        raise QkvError("asking", f"{n_samples:,} sampled answers are too many", f"Give at most {MAX_SAMPLES:,}")
    found = answer_features(run, [question], beams=beams, n_samples=n_samples, seed=seed)
    badge = Badge.load(run.folder, run.weights)
    (judged,) = badge.judge(found.values) if badge else rule_of_thumb(found.column("log_probability").tolist())
    (encoded,), (texts,), (candidates,) = found.questions, found.texts, found.candidates
    frames = frames_of(run)
    kind = badge.kind_of(encoded.text, frames) if badge else None
    other_kind = bool(badge and frames) and kind is None
    if other_kind:
        judged = Judgement(UNSURE, None, None)  # no estimate holds for questions that the badge was not fitted on
    unshown = badge is not None and badge.is_unshown(encoded.text, judged.badge)
    if unshown:
        judged = judged._replace(badge=UNSURE)  # too little is shown of this kind
    if badge and not encoded.named and not badge.n_unnamed:
        judged = judged._replace(badge=UNSURE)  # nothing is known of questions without a name
    evidence: dict[str, float | None] = {
        "probability": math.exp(candidates[0].log_probability),
        **{feature: float(found.column(feature)[0]) for feature in FEATURES},
        "seen": judged.p_seen,
        "right": judged.p_right,
    }
    return Answer(
        question=encoded.text,
        answer=texts[0],
        alternatives=tuple(
            Alternative(text, math.exp(c.log_probability)) for text, c in zip(texts, candidates, strict=True)
        ),
        badge=judged.badge if texts[0] else None,
        why=explain(found, judged, n_samples, badge, other_kind) + (f" {TOO_FEW}" if unshown and texts[0] else ""),
        evidence=evidence,
        heads=tuple(span_attention(run.model, encoded.ids, encoded.name)) if encoded.named else (),
        name=run.tokenizer.decode(encoded.ids[slice(*encoded.name)]).strip() if encoded.named else "",
        guarantee=badge.statement(judged.badge, kind) if badge and texts[0] else None,
    )


def explain(
    found: AnswerFeatures,
    judged: Judgement,
    n_samples: int,
    badge: Badge | None = None,
    other_kind: bool = False,
) -> str:
    """The evidence for the badge of a single answer, in sentences; for an empty answer, there is no badge.

    Args:
        found: The features of the answer.
        judged: Its badge.
        n_samples: Sampled answers.
        badge: The calibrated badge of the run, if it has one.
        other_kind: Whether the question is of another kind than those that the badge was fitted on.
    """
    (texts,), (candidates,) = found.texts, found.candidates
    what = "the answer has" if texts[0] else "the most likely answer is empty; it has"
    parts = [f"{what} probability {_probability(candidates[0].log_probability)}"]
    if len(texts) > 1:
        ratio = math.exp(min(float(found.column("margin")[0]), 50.0))
        parts[0] += f", {_times(ratio)} that of {f'“{_printable(texts[1])}”' if texts[1] else 'no answer'}"
    if n_samples:
        parts.append(f"{round(float(found.column('agreement')[0]) * n_samples)} of {n_samples} sampled answers agree")
    named = not found.questions or found.questions[0].named
    if not named:
        parts.append("no name was found in the question")
    if not texts[0]:
        return "; ".join(parts) + "."
    if named and found.questions:
        parts += _name_evidence(found, badge)
    if badge is not None and other_kind:
        return "; ".join(parts) + f". {_of_another_kind([kind.kind for kind in badge.kinds])}"
    if judged.p_right is None:
        return "; ".join(parts) + ". This badge is a rule of thumb: calibrate it with qkv trust."
    if badge is not None and not named and not badge.n_unnamed:
        return "; ".join(parts) + ". The badge was fitted on questions with a name, and says nothing of this one."
    if judged.p_seen is not None:
        similar = "people in the training text" if judged.p_seen >= 0.5 else "people who are not in the training text"
        parts.append(f"its features resemble those of {similar}")
    text = "; ".join(parts) + f". {_what_is_estimated(judged)} is estimated at {probability_percent(judged.p_right)}."
    if badge is not None and judged.badge in (REMEMBERED, MADE_UP):
        text += f" {ON_AVERAGE}"
    return text if badge is None or badge.kinds else f"{text} {NO_KINDS}"


def _what_is_estimated(judged: Judgement) -> str:
    """What P(right) of a badge is the probability of; where it knows people in the text, right guesses do not count."""
    if judged.p_seen is None:
        return "The probability that this one is right"
    return "The probability that the person was in the text and that this one is right"


def _probability(log: float) -> str:
    """A probability with two digits, never 1 by rounding."""
    p = math.exp(log)
    return number(p, 2) if p < 0.995 or p == 1 else f"1 − {number(-math.expm1(log), 2)}"


def _of_another_kind(kinds: Sequence[str]) -> str:
    """That the badge says nothing of a question."""
    some = ", ".join(f"“{_printable(kind)}”" for kind in kinds[:MAX_FRAMES_SHOWN])
    return f"The badge was fitted on questions such as {some}; this is another kind, of which it says nothing."


def _name_evidence(found: AnswerFeatures, badge: Badge | None) -> list[str]:
    """What the name does to the answer, and how familiar it is to the model."""
    with_name, without = (
        float(found.column(feature)[0]) for feature in ("log_probability", "question_only_log_probability")
    )
    out = [f"the name makes it {_likelier(with_name - without)} than the question alone"]
    if badge is not None:
        first, last = found.questions[0].name
        per_token = float(found.column("name_mean_log_probability")[0]) - badge.unread_name
        least = number(math.exp(float(found.column("name_min_log_probability")[0])), 1)
        familiar = _likelier((last - first) * per_token)
        out.append(f"the name itself is {familiar} than one never read, its least likely step has probability {least}")
    return out


def _printable(text: str) -> str:
    """A text whose control characters are written as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _likelier(log_ratio: float) -> str:
    """A ratio of two probabilities in words: exactly up to 1000, then as a power of ten."""
    more, size = ("likelier", log_ratio) if log_ratio >= 0 else ("less likely", -log_ratio)
    if size < math.log(1.05):
        return "no likelier"
    if size < math.log(1000):
        return f"{_times(math.exp(size))} {more}"
    return f"10{str(round(size / math.log(10))).translate(SUPERSCRIPTS)} times {more}"


def _times(ratio: float) -> str:
    return "over 1000 times" if ratio > 1000 else f"{ratio:.0f} times" if ratio > 10 else f"{ratio:.1f} times"
