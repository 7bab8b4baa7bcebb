"""The result of trust: what is guaranteed of "remembered" answers, how many there are, and the quality of features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from qkv.core.display import Card, Displayable, lower_percent, number, percent, percent_interval
from qkv.knowledge.confidence.badge import REMEMBERED, Badge
from qkv.knowledge.confidence.guarantee import MIN_LEVEL
from qkv.knowledge.confidence.metrics import Reliability
from qkv.knowledge.confidence.outside_limit import OutsideLimit


class FeatureQuality(NamedTuple):
    """How well one feature separates known from unknown people, and right from wrong answers.

    `auroc_seen` is over all questions given, `auroc_right` over those about known people; AURC and PRR are those of
    right answers over all. None where all answers are right or all are wrong.
    """

    feature: str
    auroc_seen: float
    auroc_right: float | None
    aurc: float
    prr: float | None


class PlainThreshold(NamedTuple):
    """What a threshold on the log-probability of the answer alone reaches, fitted and tested on the same people.

    Attributes:
        level: Share of accepted answers that is guaranteed to be right; 0 if none is accepted.
        precision: Share of accepted answers that are right; 1 if there are none.
        coverage: Share of the right answers that are accepted.
        unknown: Answers accepted about people who are not in the text.
        invented: Answers accepted about invented names.
    """

    level: float
    precision: float
    coverage: float
    unknown: int
    invented: int


@dataclass(frozen=True)
class Trust(Displayable):
    """A badge and its quality, with every answer judged by a fit that has not seen its person.

    Attributes:
        level: Share of "remembered" answers that shall be right.
        stated_level: Share of them that is guaranteed to be right: `level`, or less if that could not be shown; 0 if no
            answer is called "remembered".
        confidence: Share of all draws of such people in which such a statement is true.
        known: Questions about people in the training text.
        unknown: Questions about other people.
        accuracy: Share of right answers among the known.
        precision: Share of "remembered" answers that are right; 1 if there are none.
        low: Lower end of the 95 % interval of the precision (Wilson), which counts people: answers about one person are
            not independent.
        high: Upper end of the 95 % interval of the precision.
        coverage: Share of the right answers that are called "remembered"; right guesses about people who are not in the
            text count as well.
        counts: For each badge, its answers by kind: right, wrong, unknown and invented.
        features: The quality of each feature, and of the badge itself.
        reliability: Stated probabilities of being right against the share that is right.
        plain: What a threshold on the log-probability alone reaches.
        more_questions: How many more such questions would be expected to show `level`, if as many of the surest answers
            stay right: 0 if it is shown, None if that share is too small for any number. With few questions the share
            says little, and more of them may give a score that is better.
        empty: Given questions with an empty answer, which has no badge and is counted nowhere else.
        held_out: Whether the figures are of people that the badge was not fitted on at all (`calibration` below 1).
        remarks: What the names were checked against, and other remarks.
        kept_earlier: Whether the badge was not written to the run's folder, because it calls nothing "remembered" and
            the one that is there does.
        badge: The fitted badge.
        answers: One dictionary for each question that the figures are of.
        outside: What is guaranteed of the share of unknown people, and of invented names, that are called "remembered";
            empty if it was not limited.
    """

    level: float
    stated_level: float
    confidence: float
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
    plain: PlainThreshold
    more_questions: int | None
    empty: int
    held_out: bool
    remarks: tuple[str, ...]
    kept_earlier: bool
    badge: Badge = field(repr=False)
    answers: tuple[dict[str, Any], ...] = field(repr=False)
    outside: tuple[OutsideLimit, ...] = ()

    @property
    def ece(self) -> float:
        """Expected calibration error of the probability of being right."""
        return self.reliability.ece

    @property
    def any_remembered(self) -> bool:
        """Whether any answer is called "remembered"; if not, `precision` is 1 and means nothing."""
        return self.n_remembered > 0

    @property
    def n_remembered(self) -> int:
        """Answers that are called "remembered", without those about invented names."""
        return sum(self.counts[REMEMBERED][kind] for kind in ("right", "wrong", "unknown"))

    @property
    def n_right(self) -> int:
        """How many of these are right; about people who are not in the text, a right guess counts."""
        return round(self.precision * self.n_remembered)

    @property
    def known_coverage(self) -> float:
        """Share of the right answers about people in the text that are called "remembered"."""
        n_right = sum(counts["right"] for counts in self.counts.values())
        return self.counts[REMEMBERED]["right"] / max(1, n_right)

    def quality(self, feature: str) -> FeatureQuality:
        """The quality of one feature, or of "badge"."""
        return next(each for each in self.features if each.feature == feature)

    def rows(self) -> list[dict[str, Any]]:
        """One row per question, in the form that pandas.DataFrame takes."""
        return list(self.answers)

    def to_json(self) -> dict[str, Any]:
        features = [each._asdict() for each in self.features]
        return {
            **super().to_json(),
            "features": features,
            "plain": self.plain._asdict(),
            "outside": [each.to_json() for each in self.outside],
            "kinds": [kind._asdict() for kind in self._kinds],
            "known_coverage": self.known_coverage,
            "ece": self.ece,
        }

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
        return Card(
            title=self._title(),
            facts=(
                *self._level_facts(),
                *self._share_facts(),
                *self._outside_facts(),
                *self._kind_facts(),
                (
                    "questions",
                    f"{self.known} about people in the text ({percent(self.accuracy)} right), "
                    f"{self.unknown} about others" + (f"; {self.empty} without an answer" if self.empty else ""),
                ),
                ("badges", "; ".join(f"{badge}: {_count_text(counts)}" for badge, counts in self.counts.items())),
                ("calibration error", number(self.ece, 3)),
                *((("names", "; ".join(self.remarks)),) if self.remarks else ()),
                *((("not saved", "the badge in the run's folder works, and is kept"),) if self.kept_earlier else ()),
            ),
            columns=("feature", "AUROC seen", "AUROC right", "AURC", "PRR"),
            rows=rows,
            note="AUROC seen: people in the text against others. AUROC right: right against wrong answers about people "
            "in the text.",
        )

    def _title(self) -> str:
        if not self.stated_level:
            least = ", the least that is called so" if self.level < MIN_LEVEL else ""
            return f"No answer can be called “remembered” at {self._wanted}{least}"
        level, sure = lower_percent(self.stated_level, 3), lower_percent(self.confidence, 6)
        counted = getattr(self.badge, "counted", "")  # a language model is asked once about each person of a table
        return f"“remembered”: right at least {level} of the time{counted} ({sure} confidence)"

    @property
    def _wanted(self) -> str:
        """The level that was asked for; below one half, which is never called so, one half."""
        return lower_percent(max(self.level, MIN_LEVEL), 6)

    def _level_facts(self) -> tuple[tuple[str, str], ...]:
        """What it would take to guarantee the level that was asked for, if it is not."""
        if self.stated_level >= self.level:
            return ()
        wanted = self._wanted
        if self.more_questions is None and self.outside and not self.badge.remembered.bound:
            return ((f"for {wanted}", "no set of the surest answers passes both the level and the limits below"),)
        if self.more_questions is None:
            made = self.badge.remembered  # of the people fitted on, who may be others than those measured on
            share = f"of the {made.accepted} surest answers {made.right} are right"
            share = share if made.accepted else "the surest answers are not right often enough"
            return ((f"for {wanted}", f"{share}; while that share stays, no number of questions shows it"),)
        return ((f"for {wanted}", f"about {self.more_questions} more questions like these, if as many are right"),)

    def _share_facts(self) -> tuple[tuple[str, str], ...]:
        who = "people held out" if self.held_out else "each person judged by a fit without them"
        alone = self.plain
        said = f"covers {percent(alone.coverage)}" + (
            f", right at least {lower_percent(alone.level, 3)} of the time" if alone.level else ""
        )
        if not self.any_remembered:
            return (("log-probability alone", said),) if self.stated_level else ()
        return (
            (
                "measured",
                f"{self.n_right} of {self.n_remembered} answers called remembered are right ({who}): "
                f"{percent(self.precision)}, 95 % interval {percent_interval(self.low, self.high)}",
            ),
            ("coverage", self._coverage_text()),
            ("log-probability alone", said),
        )

    def _coverage_text(self) -> str:
        """Which right answers are called "remembered"."""
        every = f"{percent(self.coverage)} of the right answers are called remembered"
        if not self.unknown or self.coverage == self.known_coverage:
            return every
        return f"{every}; of those about people in the text {percent(self.known_coverage)}"

    @property
    def _kinds(self) -> tuple[KindLevel, ...]:
        """What is guaranteed of each kind of question; a language model is asked one kind."""
        return getattr(self.badge, "kinds", ())

    def _kind_facts(self) -> tuple[tuple[str, str], ...]:
        """What “remembered” guarantees of each kind of question, where there are several."""
        if len(self._kinds) < 2 or not self.stated_level:
            return ()
        said = (
            f"{kind.kind} {lower_percent(kind.remembered, 3)}"
            if kind.remembered
            else f"{kind.kind} no level of one half or more is shown: unsure"
            for kind in self._kinds
        )
        return (("of each kind alone", "; ".join(said)),)

    def _outside_facts(self) -> tuple[tuple[str, str], ...]:
        """What the badge says of names outside the text, and what is guaranteed of that."""
        limits = {each.group: each for each in self.outside}
        kinds = (("unknown", "outsider", "people not in the text"), ("invented", "invented", "invented names"))
        out = []
        for kind, group, name in kinds:
            n = sum(counts[kind] for counts in self.counts.values())
            if not n or (kind == "unknown" and group not in limits):
                continue
            text = f"{self.counts[REMEMBERED][kind]} of {n} answers about them are called remembered"
            if kind == "invented":
                text += "; not counted above"
            if group in limits:
                limit = str(limits[group])
                if self.held_out and kind == "invented":  # these are made of the people held out
                    limit = limit.replace("such names", "names made of the people's fitted on")
                text += f"; {limit}"
            out.append((name, text))
        return tuple(out)


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
