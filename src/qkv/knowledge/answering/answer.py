"""ask: an answer with its alternatives, a badge that says how far to trust it and why, and which heads look there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.core.display import Card, Displayable, number
from qkv.knowledge.answering.answer_model import AnswerModel, answerer
from qkv.knowledge.answering.name_attention import HeadAttention, looks
from qkv.knowledge.confidence.badge import NAMES, Badge, Judgement, rule_of_thumb
from qkv.knowledge.confidence.features import BEAMS, SAMPLES, Signals, signals

if TYPE_CHECKING:
    from qkv.train.runs import Run

SHOWN = 4  # heads on the card


@dataclass(frozen=True)
class Alternative:
    """An answer that the model could have given, and how likely it was."""

    text: str
    probability: float


@dataclass(frozen=True)
class Answer(Displayable):
    """What a run answers, what else it might have, and what is to be thought of it."""

    question: str
    answer: str
    alternatives: tuple[Alternative, ...]
    badge: str
    why: str
    evidence: dict[str, float | None]
    heads: tuple[HeadAttention, ...]
    name: str

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "heads": [look._asdict() for look in self.heads]}

    def card(self) -> Card:
        most = "; ".join(f"layer {h.layer} head {h.head}: {h.weight:.2f}" for h in self.heads[:SHOWN])
        return Card(
            title=self.answer or "(no answer)",
            facts=(
                ("badge", self.badge),
                ("because", self.why),
                (f"look at {self.name}", most or "this kind of attention reads no tokens from there"),
            ),
            columns=("alternative", "probability"),
            rows=tuple((a.text, number(a.probability, 3)) for a in self.alternatives),
        )


def ask(
    run: Run | AnswerModel | str | Path, question: str, *, beams: int = BEAMS, samples: int = SAMPLES, seed: int = 0
) -> Answer:
    """Ask a run, or the one in a folder, a question; `qkv trust` first makes the badge a measured one."""
    run = answerer(run)
    found = signals(run, [question], beams=beams, samples=samples, seed=seed)
    badge = Badge.load(run.folder)
    judged = (
        badge.judge(found.numbers, found.hidden) if badge else rule_of_thumb(found.column("log_probability").tolist())
    )
    (asked,), (texts,), (candidates,) = found.asked, found.texts, found.candidates
    evidence: dict[str, float | None] = {
        "probability": math.exp(candidates[0].log_probability),
        **{name: float(found.column(name)[0]) for name in NAMES},
        "probe": float(badge.probe.score(found.hidden)[0]) if badge else None,
        "seen": judged[0].seen,
        "right": judged[0].right,
    }
    return Answer(
        asked.text,
        texts[0],
        tuple(Alternative(t, math.exp(c.log_probability)) for t, c in zip(texts, candidates, strict=True)),
        judged[0].badge,
        why(found, judged[0], badge, samples),
        evidence,
        tuple(looks(run.model, asked.ids, asked.name)),
        run.tokenizer.decode(asked.ids[slice(*asked.name)]).strip(),
    )


def why(found: Signals, judged: Judgement, badge: Badge | None, samples: int) -> str:
    """The evidence on the first answer, in a sentence."""
    (texts,), (candidates,) = found.texts, found.candidates
    parts = [f"it gives this answer a probability of {number(math.exp(candidates[0].log_probability), 2)}"]
    if len(texts) > 1:
        times = math.exp(min(float(found.column("margin")[0]), 50.0))
        parts.append(f"{_times(times)} that of “{texts[1]}”")
    if samples:
        parts.append(f"{round(float(found.column('agreement')[0]) * samples)} of {samples} sampled answers agree")
    if judged.seen is not None and judged.right is not None and badge is not None:
        read = "people it has read of" if judged.seen >= 0.5 else "people it never read of"
        parts.append(f"its numbers are like those of {read}")
        return "; ".join(parts) + f". Answers like it are right {_percent(judged.right)} of the time."
    return "; ".join(parts) + ". A rule of thumb: measure it with qkv trust."


def _times(times: float) -> str:
    return "over 1000 times" if times > 1000 else f"{times:.0f} times" if times > 10 else f"{times:.1f} times"


def _percent(p: float) -> str:
    return f"{100 * p:.0f} %" if 0.005 < p < 0.995 else "under 1 %" if p < 0.5 else "over 99 %"
