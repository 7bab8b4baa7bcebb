"""The badge of an answer: remembered, made up or unsure, with what is guaranteed of it; stored as trust.json."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qkv.core.files import Writing, creating, replacing, write_text
from qkv.core.json_files import CHECKSUM, EDITED, read_json, verified, with_checksum
from qkv.errors import QkvError
from qkv.knowledge.confidence.calibrator import MADE_UP as MADE_UP
from qkv.knowledge.confidence.calibrator import REMEMBERED as REMEMBERED
from qkv.knowledge.confidence.calibrator import UNSURE as UNSURE
from qkv.knowledge.confidence.calibrator import Calibrator
from qkv.knowledge.confidence.features import FEATURES
from qkv.knowledge.confidence.guarantee import Guarantee
from qkv.knowledge.confidence.kind_levels import KindLevel
from qkv.train.data.question_frames import PLACE, frame_of, match_frame
from qkv.train.run_files import weights_checksum

FILE = "trust.json"
FORMATS = "qkv-trust-"
FORMAT = f"{FORMATS}12"
ADVERBS = frozenset(
    ["not", "never", "often", "usually", "mostly", "typically", "mainly", "commonly", "generally", "actually", "really",
     "still", "originally", "today", "now", "also", "sometimes", "always", "ever", "first", "currently", "probably"]
)  # fmt: skip
"""Words that people put beside a name; a title that begins or ends with one, in small letters, has no badge."""
COUNTS = ("n_unnamed", "n_unanswered")
INPUTS = tuple(name for name in FEATURES if name != "agreement")
"""The features that the badge is fitted on: not the agreement of samples, which would let it depend on their seed."""
MAX_ABS_INPUT = 30.0  # inputs of the logistic models are clipped to ± this
MIN_PROBABILITY = 1e-6  # distance from 0 and 1 before a logarithm is taken
RULE_REMEMBERED, RULE_MADE_UP = 0.9, 0.5  # probabilities of the answer, for a run whose badge is not calibrated


class Judgement(NamedTuple):
    """The badge of one answer, with P(answer right) and P(person in the training text) if the badge is calibrated."""

    badge: str
    p_right: float | None
    p_seen: float | None


@dataclass(frozen=True)
class Badge:
    """The calibrated badge of a run, as `trust` fits it.

    Attributes:
        calibrator: Models and thresholds, with what is guaranteed of the answers above and below them.
        unread_name: Mean log-probability of a token of the name, in the middle of the names that are not in the text.
        n_unnamed: Questions in which no name was found, among those that it was fitted on.
        n_unanswered: Questions about people outside the text whose right answer was not given, among them.
        by_name: Whether some names had more questions than others, so that what is guaranteed counts names.
        kinds: The kinds of questions that it was fitted on, with what is guaranteed of each; it says nothing of others.
            Empty for a run that does not record the questions that it was trained on.
    """

    calibrator: Calibrator
    unread_name: float
    n_unnamed: int = 0
    n_unanswered: int = 0
    by_name: bool = False
    kinds: tuple[KindLevel, ...] = ()

    @property
    def remembered(self) -> Guarantee:
        """What is guaranteed of the answers that are called "remembered"."""
        return self.calibrator.remembered

    @property
    def counted(self) -> str:
        """How what is guaranteed counts answers, as a part of a sentence; nothing where each counts alike."""
        return ", each name counted once" if self.by_name else ""

    def judge(self, values: np.ndarray) -> list[Judgement]:
        """The badge of each answer, from feature values (n, features)."""
        x = model_inputs(values)
        seen = self.calibrator.p_seen(x)
        chances = [None] * len(x) if seen is None else seen.tolist()
        rows = zip(self.calibrator.badges(x), self.calibrator.p_right(x).tolist(), chances, strict=True)
        return [Judgement(badge, right, own) for badge, right, own in rows]

    def kind_of(self, question: str, frames: Sequence[str]) -> KindLevel | None:
        """The kind of a question, if the badge was fitted on it; `frames` are the kinds that the run was trained on.

        An adverb beside the name ("What is tin not used for?") makes it another question.
        """
        frame = frame_of(question, frames)
        name = match_frame(question, [frame]) if frame else None
        words = question[slice(*name)].split() if name else []
        if len(words) > 1 and not ADVERBS.isdisjoint((words[0], words[-1])):
            return None
        return next((kind for kind in self.kinds if kind.kind == frame), None)

    def is_unshown(self, question: str, badge: str) -> bool:
        """Whether nothing is shown of answers with this badge to questions of this kind: then it is unsure."""
        kind = self.kind_of(question.strip(), [each.kind for each in self.kinds])
        return kind is not None and {REMEMBERED: kind.remembered, MADE_UP: kind.made_up}.get(badge) == 0

    def statement(self, badge: str, kind: KindLevel | None = None) -> str | None:
        """What is guaranteed of answers with this badge to questions of a kind, in words; None of unsure ones.

        Where nobody said what is right for people outside the text, a guess about them may be right.
        """
        remembered, made_up = self.calibrator.remembered, self.calibrator.made_up
        if kind is not None:
            remembered, made_up = replace(remembered, level=kind.remembered), replace(made_up, level=kind.made_up)
        if badge == REMEMBERED:
            return remembered.sentence("right", self.counted)
        wrong = "wrong, or about somebody who is not in the text," if self.n_unanswered else "wrong"
        return made_up.sentence(wrong, self.counted) if badge == MADE_UP else None

    def save(self, folder: str | Path, weights: str | None = None) -> None:
        """Write trust.json into the folder of a run, atomically.

        Args:
            folder: The folder.
            weights: Checksum of the weights that the badge was fitted on; that of those in the folder if left out.
        """
        data: dict[str, Any] = {"calibrator": self.calibrator.to_json(), "unread_name": self.unread_name}
        data |= {name: getattr(self, name) for name in (*COUNTS, "by_name")}
        data["kinds"] = [kind._asdict() for kind in self.kinds]
        data["weights"] = weights_checksum(Path(folder)) if weights is None else weights
        text = json.dumps(with_checksum({"format": FORMAT, **data})) + "\n"
        write_text(Path(folder) / FILE, text, writing_of_badge(Path(folder) / FILE, FORMATS))

    @classmethod
    def load(cls, folder: str | Path, weights: str | None = None) -> Badge | None:
        """The badge of a run, or None if it has not been calibrated.

        Damaged files, other formats, and badges that were fitted on other weights are refused: what they guarantee does
        not hold for this run. `weights` is the checksum of its weights in memory; those in the folder if left out.
        """
        path = Path(folder) / FILE
        if not os.path.lexists(path):
            return None
        if not path.is_file():
            raise QkvError(f"reading {path}", "it is no file", "Remove it, and calibrate again with: qkv trust")
        try:
            data = read_json(path)
            version = data.get("format") if isinstance(data, dict) else None
            if version != FORMAT:
                raise ValueError(f"its format is {version!r}, not {FORMAT!r}")
            if data.get(CHECKSUM) == EDITED:
                raise ValueError("it was edited by hand, and what it guarantees was not measured so")
            data = verified(data, required=True)
            if set(data) != {"format", "calibrator", "unread_name", *COUNTS, "by_name", "kinds", "weights"}:
                raise ValueError("it has other fields")
            counts = [data[name] for name in COUNTS]
            calibrator, unread = Calibrator.from_json(data["calibrator"]), float(data["unread_name"])
            kinds = tuple(KindLevel(**each) for each in data["kinds"])
            badge = cls(calibrator, unread, counts[0], counts[1], data["by_name"], kinds)
            if badge.calibrator.features != INPUTS:
                raise ValueError("it was fitted on other features")
            if any(type(count) is not int or not 0 <= count <= badge.calibrator.n_questions for count in counts):
                raise ValueError("its number of questions without a name or an answer is not one")
            if type(badge.by_name) is not bool:
                raise ValueError("it does not say how answers are counted")
            if any(type(kind.kind) is not str or PLACE not in kind.kind for kind in kinds):
                raise ValueError("its kinds of questions are none")
            highest = (calibrator.remembered.level, calibrator.made_up.level)
            if any(
                type(level) not in (int, float) or not 0 <= level <= most
                for kind in kinds
                for level, most in zip(kind[1:], highest, strict=True)
            ):
                raise ValueError("it states more of a kind of question than of all")
            if not -1e4 <= badge.unread_name <= 0:
                raise ValueError("its log-probability of an unread name is not one")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as why:
            raise QkvError(
                f"reading {path}",
                f"it is damaged or of another version ({why})",
                "Move it away, and calibrate again with: qkv trust",
            ) from None
        if data["weights"] != (weights_checksum(Path(folder)) if weights is None else weights):
            raise QkvError(
                f"reading {path}",
                "it was fitted on other weights: the run was trained on since, or the file is of another run",
                "Calibrate again with: qkv trust; or remove the file",
            )
        return badge


def writing_of_badge(path: Path, formats: str) -> Writing:
    """How a badge comes to its path, at which there must be nothing, or a badge as some version of qkv wrote it.

    Args:
        path: Where it is to be written.
        formats: What the format of such badges begins with.

    Raises:
        QkvError: There is something else: a file of other contents, one that is damaged or edited, a link or a folder.
    """
    if not os.path.lexists(path):
        return creating
    try:
        stored = read_json(path) if path.is_file() and not path.is_symlink() else None
        own = isinstance(stored, dict) and stored.get(CHECKSUM) != EDITED
        if own and str(verified(stored).get("format")).startswith(formats):
            return replacing
    except (OSError, ValueError):
        pass
    problem = "it is there already, and is no badge as qkv wrote it"
    raise QkvError(f"writing the badge {path}", problem, "Move it away, or calibrate without saving (--no-save)")


def save_unless_worse(badge: Badge, folder: str | Path, weights: str | None = None) -> bool:
    """Write a badge to a run's folder; one that calls nothing "remembered" does not replace one that does."""
    if not badge.remembered.accepted:
        try:
            earlier = Badge.load(folder, weights)
        except QkvError:
            earlier = None
        if earlier is not None and earlier.remembered.accepted:
            return False
    badge.save(folder, weights)
    return True


def model_inputs(values: np.ndarray) -> np.ndarray:
    """Inputs (n, INPUTS) of the badge's models, from feature values (n, FEATURES).

    Probabilities become log-odds and the entropy its logarithm, so that 0.99 and 0.999 are as far apart as 0.5 and 0.9:
    right and wrong answers of high probability differ there.
    """
    columns = {name: values[:, i] for i, name in enumerate(FEATURES)}
    for name in ("log_probability", "name_only_log_probability", "no_name_log_probability"):
        log = np.minimum(columns[name], -MIN_PROBABILITY)
        columns[name] = log - np.log(-np.expm1(log))
    columns["entropy"] = np.log(np.maximum(columns["entropy"], MIN_PROBABILITY))
    return np.clip(np.column_stack([columns[name] for name in INPUTS]), -MAX_ABS_INPUT, MAX_ABS_INPUT)


def rule_of_thumb(log_probabilities: Sequence[float]) -> list[Judgement]:
    """Badges by the probability of the answer alone, for a run whose badge is not calibrated."""
    out = []
    for p in np.exp(np.asarray(log_probabilities, dtype=float)):
        badge = REMEMBERED if p >= RULE_REMEMBERED else MADE_UP if p < RULE_MADE_UP else UNSURE
        out.append(Judgement(badge, None, None))
    return out
