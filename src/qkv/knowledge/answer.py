"""ask: the answer of a run with alternatives, its badge and the reason for it, and the attention on the name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.core.display import Card, Displayable, number
from qkv.knowledge.answering.answer_model import AnswerModel, load_answer_model
from qkv.knowledge.answering.name_attention import HeadAttention, span_attention
from qkv.knowledge.confidence.badge import Badge, Judgement, rule_of_thumb
from qkv.knowledge.confidence.features import FEATURES, N_BEAMS, N_SAMPLES, AnswerFeatures, answer_features

if TYPE_CHECKING:
    from qkv.train.runs import Run

MAX_HEADS_SHOWN = 4
NO_ANSWER = "(no answer)"


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
        badge: "remembered", "made up" or "unsure"; None where the answer is empty.
        why: The reason for the badge, in a sentence.
        evidence: The features (`qkv.knowledge.confidence.features.FEATURES`), the `probability` of the answer, and for
            a calibrated run `probe`, `seen` and `right`: the log-odds of the linear probe, P(person in the training
            text) and P(answer right). These three are None for a run that is not calibrated.
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

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "heads": [head._asdict() for head in self.heads]}

    def card(self) -> Card:
        heads = "; ".join(f"layer {h.layer} head {h.head}: {h.weight:.2f}" for h in self.heads[:MAX_HEADS_SHOWN])
        return Card(
            title=self.answer or NO_ANSWER,
            facts=(
                *((("badge", self.badge),) if self.badge else ()),
                ("because", self.why),
                *(
                    (
                        (
                            f"attention on {self.name}",
                            heads or "no head of this kind of attention reads tokens from there",
                        ),
                    )
                    if self.name
                    else ()
                ),
            ),
            columns=("alternative", "probability"),
            rows=tuple((a.text or NO_ANSWER, number(a.probability, 3)) for a in self.alternatives),
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
    run = load_answer_model(run)
    found = answer_features(run, [question], beams=beams, n_samples=n_samples, seed=seed)
    badge = Badge.load(run.folder)
    (judged,) = (
        badge.judge(found.values, found.hidden) if badge else rule_of_thumb(found.column("log_probability").tolist())
    )
    (encoded,), (texts,), (candidates,) = found.questions, found.texts, found.candidates
    evidence: dict[str, float | None] = {
        "probability": math.exp(candidates[0].log_probability),
        **{feature: float(found.column(feature)[0]) for feature in FEATURES},
        "probe": float(badge.probe.score(found.hidden)[0]) if badge else None,
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
        why=explain(found, judged, n_samples),
        evidence=evidence,
        heads=tuple(span_attention(run.model, encoded.ids, encoded.name)) if encoded.named else (),
        name=run.tokenizer.decode(encoded.ids[slice(*encoded.name)]).strip() if encoded.named else "",
    )


def explain(found: AnswerFeatures, judged: Judgement, n_samples: int) -> str:
    """The evidence for the badge of a single answer, in a sentence; for an empty answer, there is no badge."""
    (texts,), (candidates,) = found.texts, found.candidates
    what = "the answer has" if texts[0] else "the most likely answer is empty; it has"
    parts = [f"{what} probability {number(math.exp(candidates[0].log_probability), 2)}"]
    if len(texts) > 1:
        ratio = math.exp(min(float(found.column("margin")[0]), 50.0))
        parts[0] += f", {_times(ratio)} that of {f'“{texts[1]}”' if texts[1] else 'no answer'}"
    if n_samples:
        parts.append(f"{round(float(found.column('agreement')[0]) * n_samples)} of {n_samples} sampled answers agree")
    if found.questions and not found.questions[0].named:
        parts.append("no name was found in the question")
    if not texts[0]:
        return "; ".join(parts) + "."
    if judged.p_seen is None or judged.p_right is None:
        return "; ".join(parts) + ". This badge is a rule of thumb: calibrate it with qkv trust."
    similar = "people in the training text" if judged.p_seen >= 0.5 else "people who are not in the training text"
    parts.append(f"its features resemble those of {similar}")
    return "; ".join(parts) + f". Answers with such features are right {_percent(judged.p_right)} of the time."


def _times(ratio: float) -> str:
    return "over 1000 times" if ratio > 1000 else f"{ratio:.0f} times" if ratio > 10 else f"{ratio:.1f} times"


def _percent(p: float) -> str:
    return f"{100 * p:.0f} %" if 0.005 < p < 0.995 else "under 1 %" if p < 0.5 else "over 99 %"
