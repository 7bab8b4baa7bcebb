"""trust: fit a run's badge on some people, and measure on others how far it can be believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qkv.core.display import Card, Displayable, number
from qkv.errors import QkvError
from qkv.knowledge.confidence.badge import MADE_UP, NAMES, REMEMBERED, UNSURE, Badge, features
from qkv.knowledge.confidence.features import SAMPLES, Signals, signals
from qkv.knowledge.confidence.logistic import chosen, logistic
from qkv.knowledge.confidence.metrics import Reliability, aurc, auroc, prr, reliability, threshold
from qkv.knowledge.datasets.facts import Questions, load_questions
from qkv.knowledge.datasets.templates import about_nobody, name_in
from qkv.knowledge.evaluation import QuestionSource, Runs, match, pairs_of
from qkv.knowledge.intervals import wilson
from qkv.train.runs import as_run

INVENTED = 0.5  # names that nobody has, for each that is known
LEAST = 20  # questions of each kind that a badge is fitted on, and measured on


class SignalQuality(NamedTuple):
    """How well one signal tells who was read of, and, among those who were, which answers are right."""

    signal: str
    seen: float
    right: float | None
    aurc: float
    prr: float | None


@dataclass(frozen=True)
class Trust(Displayable):
    """What a badge is worth on people that it was not fitted on."""

    level: float
    known: int
    unknown: int
    accuracy: float
    precision: float
    low: float
    high: float
    coverage: float
    counts: dict[str, dict[str, int]]
    signals: tuple[SignalQuality, ...]
    reliability: Reliability
    badge: Badge = field(repr=False)
    answers: tuple[dict[str, Any], ...] = field(repr=False)

    @property
    def ece(self) -> float:
        """The expected calibration error of the chance of being right."""
        return self.reliability.ece

    @property
    def any(self) -> bool:
        """Whether any answer was called remembered; if not, `precision` is 1 and says nothing."""
        return any(self.counts[REMEMBERED].values())

    def measured(self, signal: str) -> SignalQuality:
        """The measures of one signal; `badge` is all of them together."""
        return next(each for each in self.signals if each.signal == signal)

    def rows(self) -> list[dict[str, Any]]:
        """One row for each held-out question; pandas.DataFrame takes them as they are."""
        return list(self.answers)

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "signals": [each._asdict() for each in self.signals], "ece": self.ece}

    def card(self) -> Card:
        rows = tuple(
            (m.signal.replace("_", " "), f"{m.seen:.3f}", _or_dash(m.right), f"{m.aurc:.3f}", _or_dash(m.prr))
            for m in self.signals
        )
        said = "; ".join(f"{word}: {_told(counts)}" for word, counts in self.counts.items())
        interval = f"{100 * self.low:.1f} to {100 * self.high:.1f} %; asked for {100 * self.level:.0f} %"
        return Card(
            title=f"“remembered” is right {100 * self.precision:.1f} % of the time"
            if self.any
            else f"No answer could be called “remembered” at {100 * self.level:.0f} %",
            facts=(
                ("interval", interval)
                if self.any
                else ("try", "more questions to fit it on, or a lower level"),
                ("covers", f"{100 * self.coverage:.1f} % of the right answers"),
                ("held out", f"{self.known} questions on people it read of ({100 * self.accuracy:.1f} % right), "
                 f"{self.unknown} on others"),
                ("badges", said),
                ("calibration error", number(self.ece, 3)),
            ),
            columns=("signal", "AUROC seen", "AUROC right", "AURC", "PRR"),
            rows=rows,
            note="AUROC seen: read of or never; AUROC right: right or wrong, among those read of.",
        )  # fmt: skip


def trust(
    run: Runs,
    known: QuestionSource,
    unknown: QuestionSource | Sequence[str],
    *,
    level: float = 0.95,
    calibration: float = 0.5,
    samples: int = SAMPLES,
    seed: int = 0,
    save: bool = True,
) -> Trust:
    """Fit the badge of a run on a share of the people, measure it on the others, and keep it in the run's folder.

    Names that nobody has, put together from known ones, are among those that it is fitted on: the hardest strangers.
    `known` are questions on people that the run has read of, with answers; `unknown` on people that it has not, whose
    answers, if they come along, show a lucky guess.
    """
    run = as_run(run)
    people, strangers = pairs_of(known), _maybe(unknown)
    pairs = [*people, *strangers]
    given = len(pairs)
    seen = np.arange(given) < len(people)
    fitted = _calibration_half([question for question, _ in pairs], seen, calibration, seed)
    for part in (True, False):  # nobody's name is put together from names on both sides
        about = _nobodies([people[i][0] for i in np.flatnonzero(fitted[: len(people)] == part)], pairs, seed)
        pairs += about
        fitted = np.append(fitted, np.full(len(about), part))
    seen = np.arange(len(pairs)) < len(people)
    found = signals(run, [question for question, _ in pairs], samples=samples, seed=seed)
    right = np.array([true != "" and match(said, true) for said, (_, true) in zip(found.answers, pairs, strict=True)])
    asked = np.arange(len(pairs)) < given
    _enough(seen[fitted & asked], right[fitted & asked])
    badge = fit_badge(found.numbers[fitted], found.hidden[fitted], seen[fitted], right[fitted], level, seed)
    if save:
        badge.save(run.folder)
    invented = badge.judge(found.numbers[~fitted & ~asked], found.hidden[~fitted & ~asked])
    return _measured(badge, found, pairs, seen, right, ~fitted & asked, Counter(each.badge for each in invented))


def fit_badge(
    numbers: np.ndarray, hidden: np.ndarray, seen: np.ndarray, right: np.ndarray, level: float, seed: int = 0
) -> Badge:
    """The badge for answers whose truth is known.

    Each model is judged by what it says of rows it was not fitted on: the probe's scores that the others take, and the
    chances that the thresholds are counted on, come from fits without the row.
    """
    _enough(seen, right)
    probe, scores = chosen(hidden, seen, seed)
    x = features(numbers, scores)
    reader, _ = chosen(x, seen, seed)
    model, odds = chosen(x, right, seed)
    chances = logistic(odds)
    high = threshold(chances, right, level)
    low = -threshold(-chances, ~right, level)
    said = right[chances >= high]
    return Badge(
        probe, reader, model, min(high, 2.0), max(min(low, high - 1e-12), -1.0), level,
        float(said.mean()) if len(said) else 1.0, len(seen),
    )  # fmt: skip


def _measured(
    badge: Badge,
    found: Signals,
    pairs: list[tuple[str, str]],
    seen: np.ndarray,
    right: np.ndarray,
    held: np.ndarray,
    invented: Counter[str],
) -> Trust:
    numbers, hidden, seen, right = found.numbers[held], found.hidden[held], seen[held], right[held]
    chances, read = badge.right(numbers, hidden), badge.seen(numbers, hidden)
    words = np.array([badge.word(float(p)) for p in chances])
    table = {name: (numbers[:, i] * (-1 if name == "entropy" else 1),) * 2 for i, name in enumerate(NAMES)}
    table["probe"] = (badge.probe.score(hidden),) * 2
    table["badge"] = (read, chances)
    both = right[seen].any() and not right[seen].all()
    rows = tuple(
        SignalQuality(
            name,
            auroc(one, seen),
            auroc(two[seen], right[seen]) if both else None,
            aurc(two, right),
            prr(two, right) if right.any() and not right.all() else None,
        )
        for name, (one, two) in table.items()
    )
    said = words == REMEMBERED
    good, n = int((said & right).sum()), int(said.sum())
    low, high = wilson(good, n) if n else (0.0, 1.0)
    counts = {
        word: {
            "right": int((mine & seen & right).sum()),
            "wrong": int((mine & seen & ~right).sum()),
            "unknown": int((mine & ~seen).sum()),
            "invented": invented[word],
        }
        for word in (REMEMBERED, UNSURE, MADE_UP)
        for mine in (words == word,)
    }
    answers = tuple(
        {
            "question": pairs[i][0], "wanted": pairs[i][1], "answer": found.answers[i], "right": bool(right[j]),
            "seen": bool(seen[j]), "badge": str(words[j]), "chance": float(chances[j]),
            **dict(zip(NAMES, map(float, numbers[j]), strict=True)),
        }
        for j, i in enumerate(np.flatnonzero(held))
    )  # fmt: skip
    return Trust(
        badge.level, int(seen.sum()), int((~seen).sum()), float(right[seen].mean()), good / n if n else 1.0, low, high,
        float((said & right).sum() / max(1, right.sum())), counts, rows, reliability(chances, right), badge, answers,
    )  # fmt: skip


def _nobodies(asked: Sequence[str], pairs: Sequence[tuple[str, str]], seed: int) -> list[tuple[str, str]]:
    """Some of these questions, about names that nobody has; none that was given already."""
    order = np.random.default_rng((seed, 18)).permutation(len(asked))[: round(INVENTED * len(asked))]
    said = {question for question, _ in pairs}
    return [(each, "") for each in about_nobody([asked[i] for i in order], seed) if each not in said]


def _calibration_half(asked: Sequence[str], seen: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Which questions to fit on: by person, so that nobody is on both sides, and the same share of both kinds."""
    if not 0 < share < 1:
        raise QkvError("measuring trust", f"the calibration share is {share}", "Give a share in (0, 1), such as 0.5")
    names = [question[slice(*name_in(question))] for question in (each.strip() for each in asked)]
    out = np.zeros(len(names), dtype=bool)
    for kind in (True, False):
        people = sorted({name for name, is_seen in zip(names, seen, strict=True) if is_seen == kind})
        order = np.random.default_rng((seed, 16)).permutation(len(people))
        mine = {people[i] for i in order[: round(share * len(people))]}
        out |= np.array([is_seen == kind and name in mine for name, is_seen in zip(names, seen, strict=True)])
    return out


def _enough(seen: np.ndarray, right: np.ndarray) -> None:
    for what, count in (
        ("people it read of", int(seen.sum())), ("people it never read of", int((~seen).sum())),
        ("right answers", int(right.sum())), ("wrong answers", int((~right).sum())),
    ):  # fmt: skip
        if count < LEAST:
            raise QkvError(
                "fitting a badge",
                f"there are {count} {what} to fit it on",
                f"Give enough questions for {LEAST} of each",
            )


def _maybe(unknown: QuestionSource | Sequence[str]) -> list[tuple[str, str]]:
    """Questions that may have no answers: a list of them, or a file whose lines may hold a question alone."""
    if isinstance(unknown, Questions):
        return list(unknown.pairs)
    if isinstance(unknown, str | Path):
        return list(load_questions(unknown, answered=False).pairs)
    return [(each, "") if isinstance(each, str) else each for each in unknown]


def _told(counts: dict[str, int]) -> str:
    """Whom a badge was given to, in words."""
    words = {"right": "right", "wrong": "wrong", "unknown": "of people never read of", "invented": "of invented names"}
    return ", ".join(f"{counts[kind]} {said}" for kind, said in words.items() if counts[kind]) or "nobody"


def _or_dash(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
