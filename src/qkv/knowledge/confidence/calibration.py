"""trust: fit the badge of a run on some people, and measure its precision, coverage and calibration on others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qkv.core.display import Card, Displayable, number
from qkv.errors import QkvError
from qkv.knowledge.confidence.badge import MADE_UP, REMEMBERED, UNSURE, Badge, model_inputs
from qkv.knowledge.confidence.features import FEATURES, N_SAMPLES, AnswerFeatures, answer_features
from qkv.knowledge.confidence.logistic import expit, fit_cross_validated
from qkv.knowledge.confidence.metrics import Reliability, aurc, auroc, conformal_threshold, prr, reliability
from qkv.knowledge.datasets.facts import Questions, load_questions
from qkv.knowledge.datasets.templates import name_span, with_invented_names
from qkv.knowledge.evaluation import QuestionSource, RunOrFolder, exact_match, question_pairs
from qkv.knowledge.intervals import wilson_interval
from qkv.train.runs import as_run

INVENTED_PER_KNOWN = 0.5  # questions about invented names for each question about a known person
MIN_QUESTIONS = 20  # of each kind (known, unknown, right, wrong) to fit a badge on


class FeatureQuality(NamedTuple):
    """How well one feature separates known from unknown people, and right from wrong answers.

    `auroc_seen` is over all held-out questions, `auroc_right` over those about known people; AURC and PRR are those of
    right answers over all. None where all answers are right or all are wrong.
    """

    feature: str
    auroc_seen: float
    auroc_right: float | None
    aurc: float
    prr: float | None


@dataclass(frozen=True)
class Trust(Displayable):
    """The quality of a badge, measured on people that it was not fitted on.

    Attributes:
        level: Share of "remembered" answers that shall be right.
        known: Held-out questions about people in the training text.
        unknown: Held-out questions about other people.
        accuracy: Share of right answers among the known.
        precision: Share of "remembered" answers that are right; 1 if there are none.
        low: Lower end of the 95 % interval of the precision (Wilson).
        high: Upper end of the 95 % interval of the precision.
        coverage: Share of the right answers that are called "remembered".
        counts: For each badge, its answers by kind: right, wrong, unknown and invented.
        features: The quality of each feature, of the linear probe, and of the badge itself.
        reliability: Stated probabilities of being right against the share that is right.
        badge: The fitted badge.
        answers: One dictionary for each held-out question.
    """

    level: float
    known: int
    unknown: int
    accuracy: float
    precision: float
    low: float
    high: float
    coverage: float
    counts: dict[str, dict[str, int]]
    features: tuple[FeatureQuality, ...]
    reliability: Reliability
    badge: Badge = field(repr=False)
    answers: tuple[dict[str, Any], ...] = field(repr=False)

    @property
    def ece(self) -> float:
        """Expected calibration error of the probability of being right."""
        return self.reliability.ece

    @property
    def any_remembered(self) -> bool:
        """Whether any held-out answer is called "remembered"; if not, `precision` is 1 and means nothing."""
        return self.n_remembered > 0

    @property
    def n_remembered(self) -> int:
        """Held-out answers that are called "remembered", without those about invented names."""
        return sum(self.counts[REMEMBERED][kind] for kind in ("right", "wrong", "unknown"))

    @property
    def n_right(self) -> int:
        """How many of these are right; about people who are not in the text, a right guess counts."""
        return round(self.precision * self.n_remembered)

    def _invented_facts(self) -> tuple[tuple[str, str], ...]:
        """What the badge says of invented names, which the precision does not count."""
        n = sum(counts["invented"] for counts in self.counts.values())
        if not n:
            return ()
        called = self.counts[REMEMBERED]["invented"]
        return (("invented names", f"{called} of {n} answers about them are called remembered; not counted above"),)

    def quality(self, feature: str) -> FeatureQuality:
        """The quality of one feature, of "probe", or of "badge"."""
        return next(each for each in self.features if each.feature == feature)

    def rows(self) -> list[dict[str, Any]]:
        """One row per held-out question, in the form that pandas.DataFrame takes."""
        return list(self.answers)

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "features": [each._asdict() for each in self.features], "ece": self.ece}

    def card(self) -> Card:
        rows = tuple(
            (
                q.feature.replace("_", " "),
                f"{q.auroc_seen:.3f}",
                _or_dash(q.auroc_right),
                f"{q.aurc:.3f}",
                _or_dash(q.prr),
            )
            for q in self.features
        )
        if self.any_remembered:
            title = f"{self.n_right} of {self.n_remembered} held-out answers called “remembered” are right"
            share, required = f"{100 * self.precision:.1f} %", f"required {100 * self.level:.0f} %"
            first = ("share", f"{share}; 95 % interval {100 * self.low:.1f} to {100 * self.high:.1f} %; {required}")
        else:
            title = f"No answer can be called “remembered” at {100 * self.level:.0f} %"
            first = ("try", "more questions to fit the badge on, or a lower level")
        return Card(
            title=title,
            facts=(
                first,
                *self._invented_facts(),
                ("coverage", f"{100 * self.coverage:.1f} % of the right answers are called remembered"),
                (
                    "held out",
                    f"{self.known} questions about people in the text ({100 * self.accuracy:.1f} % right), "
                    f"{self.unknown} about others",
                ),
                ("badges", "; ".join(f"{badge}: {_count_text(counts)}" for badge, counts in self.counts.items())),
                ("calibration error", number(self.ece, 3)),
            ),
            columns=("feature", "AUROC seen", "AUROC right", "AURC", "PRR"),
            rows=rows,
            note="AUROC seen: people in the text against others. AUROC right: right against wrong answers about people "
            "in the text.",
        )


def trust(
    run: RunOrFolder,
    known: QuestionSource,
    unknown: QuestionSource | Sequence[str],
    *,
    level: float = 0.95,
    calibration: float = 0.5,
    n_samples: int = N_SAMPLES,
    seed: int = 0,
    save: bool = True,
) -> Trust:
    """Calibrate the badge of a run on some people, and measure it on the others.

    To the unknown people it adds questions about invented names, made of parts of known names: the hardest to tell
    from known ones. They count as wrong answers when the badge is fitted; how many of them are called "remembered" is
    reported separately.

    Args:
        run: The run, or its folder.
        known: Questions with answers about people in the run's training text: `Questions`, pairs, or a file of lines
            `question<TAB>answer`. No question in training should be about these people.
        unknown: Questions about people that are not in the text; answers may be left out. If they are given, a right
            guess counts as right.
        level: Share of "remembered" answers that shall be right.
        calibration: Share of the people that the badge is fitted on; it is measured on the rest.
        n_samples: Sampled answers per question, for the feature `agreement`.
        seed: Seed of the split, of invented names and of sampled answers.
        save: Whether to write the badge to the run's folder, as trust.json, where `ask` finds it.

    Returns:
        Precision and coverage of "remembered", calibration error, and the quality of each feature, on held-out people.

    Raises:
        QkvError: `level` or `calibration` is not in (0, 1), or there are fewer than 20 questions of a kind (known,
            unknown, right, wrong) to fit on.

    Example:
        With a run that was pretrained on biographies, and two files of questions::

            found = qkv.knowledge.trust("runs/birth", "known.tsv", "unknown.txt", level=0.9)
            found.precision, found.coverage, found.ece
            qkv.knowledge.ask("runs/birth", "Where was Ada Lovelace born?").badge  # now calibrated
    """
    run = as_run(run)
    known_pairs, unknown_pairs = question_pairs(known), _optionally_answered(unknown)
    pairs = [*known_pairs, *unknown_pairs]
    n_given = len(pairs)
    seen = np.arange(n_given) < len(known_pairs)
    fitted = _calibration_split([question for question, _ in pairs], seen, calibration, seed)
    for part in (True, False):  # each invented name is made of names on one side of the split
        own = [known_pairs[i][0] for i in np.flatnonzero(fitted[: len(known_pairs)] == part)]
        invented = _questions_about_invented_names(own, pairs, seed)
        pairs += invented
        fitted = np.append(fitted, np.full(len(invented), part))
    seen = np.arange(len(pairs)) < len(known_pairs)
    given = np.arange(len(pairs)) < n_given
    found = answer_features(run, [question for question, _ in pairs], n_samples=n_samples, seed=seed)
    right = np.array(
        [
            expected != "" and exact_match(answer, expected)
            for answer, (_, expected) in zip(found.answers, pairs, strict=True)
        ]
    )
    _check_counts(seen[fitted & given], right[fitted & given])
    badge = fit_badge(found.values[fitted], found.hidden[fitted], seen[fitted], right[fitted], level, seed)
    if save:
        badge.save(run.folder)
    judged = badge.judge(found.values[~fitted & ~given], found.hidden[~fitted & ~given])
    return _measure(badge, found, pairs, seen, right, ~fitted & given, Counter(each.badge for each in judged))


def fit_badge(
    values: np.ndarray, hidden: np.ndarray, seen: np.ndarray, right: np.ndarray, level: float, seed: int = 0
) -> Badge:
    """Fit probe, models and thresholds to answers that are known to be right or wrong.

    The probe scores that the models are fitted on, and the probabilities that the thresholds are chosen on, are out of
    fold: they come from fits without the row.
    """
    _check_counts(seen, right)
    probe, probe_scores = fit_cross_validated(hidden, seen, seed)
    x = model_inputs(values, probe_scores)
    seen_model, _ = fit_cross_validated(x, seen, seed)
    right_model, log_odds = fit_cross_validated(x, right, seed)
    p_right = expit(log_odds)
    high = conformal_threshold(p_right, right, level)
    low = -conformal_threshold(-p_right, ~right, level)
    remembered = right[p_right >= high]
    return Badge(
        probe,
        seen_model,
        right_model,
        remembered_threshold=min(high, 2.0),
        made_up_threshold=max(min(low, high - 1e-12), -1.0),
        level=level,
        precision=float(remembered.mean()) if len(remembered) else 1.0,
        n_questions=len(seen),
    )


def _measure(
    badge: Badge,
    found: AnswerFeatures,
    pairs: list[tuple[str, str]],
    seen: np.ndarray,
    right: np.ndarray,
    held_out: np.ndarray,
    invented: Counter[str],
) -> Trust:
    """The quality of a badge on the held-out questions; `invented` counts the badges of invented names."""
    values, hidden, seen, right = found.values[held_out], found.hidden[held_out], seen[held_out], right[held_out]
    p_right = badge.p_right(values, hidden)
    badges = np.array([badge.name(float(p)) for p in p_right])
    remembered = badges == REMEMBERED
    n_right, n = int((remembered & right).sum()), int(remembered.sum())
    low, high = wilson_interval(n_right, n) if n else (0.0, 1.0)
    counts = {
        name: {
            "right": int((own & seen & right).sum()),
            "wrong": int((own & seen & ~right).sum()),
            "unknown": int((own & ~seen).sum()),
            "invented": invented[name],
        }
        for name in (REMEMBERED, UNSURE, MADE_UP)
        for own in (badges == name,)
    }
    answers = tuple(
        {
            "question": pairs[i][0],
            "wanted": pairs[i][1],
            "answer": found.answers[i],
            "right": bool(right[j]),
            "seen": bool(seen[j]),
            "badge": str(badges[j]),
            "p_right": float(p_right[j]),
            **dict(zip(FEATURES, map(float, values[j]), strict=True)),
        }
        for j, i in enumerate(np.flatnonzero(held_out))
    )
    return Trust(
        level=badge.level,
        known=int(seen.sum()),
        unknown=int((~seen).sum()),
        accuracy=float(right[seen].mean()),
        precision=n_right / n if n else 1.0,
        low=low,
        high=high,
        coverage=n_right / max(1, int(right.sum())),
        counts=counts,
        features=_feature_qualities(badge, values, hidden, seen, right),
        reliability=reliability(p_right, right),
        badge=badge,
        answers=answers,
    )


def _feature_qualities(
    badge: Badge, values: np.ndarray, hidden: np.ndarray, seen: np.ndarray, right: np.ndarray
) -> tuple[FeatureQuality, ...]:
    # For each feature: the score for "seen" and the score for "right". A low entropy speaks for both.
    scores = {name: (values[:, i] * (-1 if name == "entropy" else 1),) * 2 for i, name in enumerate(FEATURES)}
    scores["probe"] = (badge.probe.score(hidden),) * 2
    scores["badge"] = (badge.p_seen(values, hidden), badge.p_right(values, hidden))
    both_among_seen = right[seen].any() and not right[seen].all()
    both = right.any() and not right.all()
    return tuple(
        FeatureQuality(
            name,
            auroc(for_seen, seen),
            auroc(for_right[seen], right[seen]) if both_among_seen else None,
            aurc(for_right, right),
            prr(for_right, right) if both else None,
        )
        for name, (for_seen, for_right) in scores.items()
    )


def _questions_about_invented_names(
    asked: Sequence[str], pairs: Sequence[tuple[str, str]], seed: int
) -> list[tuple[str, str]]:
    """A random part of these questions with invented names and the answer ""; none that is in `pairs` already."""
    order = np.random.default_rng((seed, 18)).permutation(len(asked))[: round(INVENTED_PER_KNOWN * len(asked))]
    given = {question for question, _ in pairs}
    return [(each, "") for each in with_invented_names([asked[i] for i in order], seed) if each not in given]


def _calibration_split(asked: Sequence[str], seen: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Which questions to fit on: split by person, with the same share of known and of unknown people."""
    if not 0 < share < 1:
        raise QkvError("calibrating trust", f"the calibration share is {share}", "Give a share in (0, 1), such as 0.5")
    names = [question[slice(*name_span(question))] for question in (each.strip() for each in asked)]
    out = np.zeros(len(names), dtype=bool)
    for kind in (True, False):
        people = sorted({name for name, is_seen in zip(names, seen, strict=True) if is_seen == kind})
        order = np.random.default_rng((seed, 16)).permutation(len(people))
        chosen = {people[i] for i in order[: round(share * len(people))]}
        out |= np.array([is_seen == kind and name in chosen for name, is_seen in zip(names, seen, strict=True)])
    return out


def _check_counts(seen: np.ndarray, right: np.ndarray) -> None:
    """Refuse to fit a badge on fewer than MIN_QUESTIONS questions of any kind."""
    counts = {
        "questions about people in the text": int(seen.sum()),
        "questions about people who are not in the text": int((~seen).sum()),
        "right answers": int(right.sum()),
        "wrong answers": int((~right).sum()),
    }
    for kind, count in counts.items():
        if count < MIN_QUESTIONS:
            raise QkvError(
                "fitting a badge",
                f"there are {count} {kind} to fit it on",
                f"Give enough questions for {MIN_QUESTIONS} of each kind",
            )


def _optionally_answered(unknown: QuestionSource | Sequence[str]) -> list[tuple[str, str]]:
    """(question, answer) pairs, with "" where there is no answer."""
    if isinstance(unknown, Questions):
        return list(unknown.pairs)
    if isinstance(unknown, str | Path):
        return list(load_questions(unknown, answered=False).pairs)
    return [(each, "") if isinstance(each, str) else each for each in unknown]


def _count_text(counts: dict[str, int]) -> str:
    kinds = {
        "right": "right",
        "wrong": "wrong",
        "unknown": "about people not in the text",
        "invented": "about invented names",
    }
    return ", ".join(f"{counts[kind]} {text}" for kind, text in kinds.items() if counts[kind]) or "none"


def _or_dash(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
