"""trust: calibrate the badge of a language model on real and invented names, and state what is guaranteed of it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from qkv.core.display import Card, percent
from qkv.errors import QkvError
from qkv.knowledge.confidence.badge import REMEMBERED, UNSURE, writing_of_badge
from qkv.knowledge.confidence.calibrator import MADE_UP, CrossFit
from qkv.knowledge.confidence.cross_fitting import cross_fit
from qkv.knowledge.confidence.guarantee import CONFIDENCE
from qkv.knowledge.confidence.logistic import expit
from qkv.knowledge.confidence.metrics import aurc, auroc, prr, reliability
from qkv.knowledge.confidence.trust_result import FeatureQuality, PlainThreshold, Trust
from qkv.knowledge.datasets.accepted_names import is_accepted
from qkv.knowledge.datasets.facts import Facts, Person
from qkv.knowledge.datasets.pantheon import pantheon
from qkv.knowledge.intervals import wilson_interval
from qkv.knowledge.language_models.answer_file import Progress, fingerprint, read_signals
from qkv.knowledge.language_models.badge import FORMATS, INVENTED, REAL, ModelBadge, badge_path, fit_model_badge
from qkv.knowledge.language_models.causal_model import CausalModel, open_causal_model
from qkv.knowledge.language_models.known_facts import draw_people, questions_about
from qkv.knowledge.language_models.name_probes import read_name_probes
from qkv.knowledge.language_models.prompts import about
from qkv.knowledge.language_models.signals import SIGNALS, SignalReader, Signals, invented_names

INVENTED_PER_PERSON = 0.5
LOWER_IS_BETTER = ("entropy", "movement", "nobody", "copied")


@dataclass(frozen=True)
class ModelTrust(Trust):
    """The badge of a language model and its quality; as `Trust`, with `known` the real people asked about.

    Nobody knows which people a model's training text names, so there are no `unknown` people: invented names stand for
    them, and AUROC seen is that of real against invented names.
    """

    def card(self) -> Card:
        card = super().card()
        facts = [
            (
                name,
                f"{self.known} about real people ({percent(self.accuracy)} right)" if name == "questions" else text,
            )
            for name, text in card.facts
        ]
        facts = [(name, text.replace("run's folder", "model's folder")) for name, text in facts]
        note = (
            "AUROC seen: real people against invented names (names of two words or more). AUROC right: right against "
            "wrong answers about real people."
        )
        return replace(card, facts=tuple(facts), note=note)


def trust(
    model: CausalModel | str | Path,
    facts: Facts | None = None,
    *,
    relation: str = "city",
    people: int = 1000,
    level: float = 0.95,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    save: bool = True,
    answers: str | Path | None = None,
    offline: bool = True,
    progress: Progress = lambda done, total: None,
) -> ModelTrust:
    """Calibrate the badge of a causal language model for a relation, and state what is guaranteed of it.

    Every answer is judged by a fit without its person. Where `level` cannot be guaranteed, the highest level that can
    is stated. Two probes of the name, for real names and for countries, are fitted on other people of the shipped table
    and on invented names, without asking. Answers about invented names, made of parts of the names of these people and
    in no row of the shipped table, teach the badge what the model says of nobody; they do not count for the level.

    Args:
        model: The model, its folder, or its hub name.
        facts: Facts about people; the shipped table if None.
        relation: What to ask for: "city", "country", "year" or "occupation".
        people: How many people to ask about, drawn by the seed.
        level: Share of "remembered" answers that shall be right.
        confidence: Share of all draws of such people in which the statement shall be true.
        seed: Seed of the draw, of invented names and of folds.
        save: Whether to write the badge to the model's folder, where `ask` finds it.
        answers: File that the answers are appended to; a stopped run continues from it.
        offline: Look only at folders and at what was downloaded before.
        progress: Called with questions done and in all, then with names done and in all, for the probes.

    Returns:
        What is guaranteed of "remembered", its precision and coverage, and the quality of each signal.

    Raises:
        QkvError: A share is out of range, the folder holds no causal language model, or fewer than five answers are
            right, or wrong; or the file of the badge is not one that qkv wrote.
        MissingExtra: transformers is not installed.
    """
    for name, share in (("level", level), ("confidence", confidence)):
        if not 0 < share < 1:
            raise QkvError("calibrating trust", f"the {name} is {share}", "Give a share in (0, 1), such as 0.95")
    chosen = draw_people(facts, relation, people, seed)
    names = names_of_nobody(chosen, round(INVENTED_PER_PERSON * len(chosen)), seed, facts)
    asked = [*questions_about(chosen, relation), *(about(name, relation) for name in names)]
    opened = model if isinstance(model, CausalModel) else open_causal_model(model, offline=offline)
    if save and Path(opened.name).is_dir():
        writing_of_badge(badge_path(opened.name, relation), FORMATS)
    weights = fingerprint(opened)  # of the files that answer, whatever happens to the folder meanwhile
    found = read_signals(opened, asked, path=answers, progress=progress)
    expected = [getattr(person, relation) for person in chosen] + [""] * len(names)
    reader, left_out = SignalReader(opened, relation), frozenset(question.name for question in asked)
    others = (p for p in (pantheon() if facts is None else facts) if p.name not in left_out)
    values = [value for person in others if (value := getattr(person, relation))]
    probes = read_name_probes(reader, len(chosen), left_out, seed, progress)
    badge, fit = fit_model_badge(
        relation, weights, found, expected, level=level, confidence=confidence, seed=seed, values=values,
        probes=probes,
    )  # fmt: skip
    kept = save and Path(opened.name).is_dir() and not _save_unless_worse(badge, opened.name)
    return measured(badge, fit, found, expected, seed=seed, kept_earlier=kept)


def names_of_nobody(people: Sequence[Person], n: int, seed: int, facts: Facts | None = None) -> list[str]:
    """Up to n invented names made of parts of these people's, none of them in a table of facts or in the prompts."""
    real = [*pantheon(), *people, *(facts or ())]
    taken = {person.name for person in real} | set(invented_names())
    for count in (2 * n, n, n // 2, 0):
        try:
            made = Facts(tuple(people)).invented_names(count, seed) if count else ()
        except QkvError:
            continue
        return [name for name in made if name not in taken][:n]
    return []


def measured(
    badge: ModelBadge,
    fit: CrossFit | None,
    found: Signals,
    expected: Sequence[str],
    *,
    seed: int = 0,
    kept_earlier: bool = False,
) -> ModelTrust:
    """The quality of a badge: out of fold on the rows of its fit, or on other people if `fit` is None.

    Empty answers have no badge, and are only counted.
    """
    empty = sum(not answer for answer in found.answers)
    found, expected = found.not_empty(expected)
    right = _right(found, expected, badge.relation)
    groups = np.array(_groups(expected))
    real = groups == REAL
    x = badge.inputs(found, None if fit is None else [True] * len(real))
    scores = badge.calibrator.scores(x) if fit is None else fit.scores
    badges = np.array([badge.calibrator.badge_of_score(float(score)) for score in scores])
    called = badges == REMEMBERED
    n_right, n = int((called & right).sum()), int((called & real).sum())
    low, high = wilson_interval(n_right, n) if n else (0.0, 1.0)
    made = badge.remembered
    more = (made.more - 1) * int(real.sum())
    return ModelTrust(
        level=made.wanted,
        stated_level=made.level,
        confidence=made.confidence,
        known=int(real.sum()),
        unknown=0,
        accuracy=float(right[real].mean()),
        precision=n_right / n if n else 1.0,
        low=low,
        high=high,
        coverage=n_right / max(1, int(right.sum())),
        counts=_counts(badges, real, right),
        features=_qualities(found, _seen_scores(badge, fit, x, scores), scores, real, right),
        reliability=reliability(expit(scores[real]), right[real]),
        plain=_plain(badge, found, real, right, seed),
        more_questions=None if math.isinf(more) else math.ceil(more),
        empty=empty,
        held_out=fit is None,
        remarks=("invented ones are made of parts of these people's names and are in no table of facts",),
        kept_earlier=kept_earlier,
        badge=badge,  # type: ignore[arg-type]  # as Badge, it has `remembered`
        answers=_rows(found, expected, right, badges, scores),
    )


def _save_unless_worse(badge: ModelBadge, folder: str) -> bool:
    """Write a badge to a model's folder; one that calls nothing "remembered" does not replace one that does."""
    if not badge.remembered.accepted and os.path.lexists(badge_path(folder, badge.relation)):
        try:
            earlier = ModelBadge.load(folder, badge.relation, badge.model)
        except QkvError:
            earlier = None
        if earlier is not None and earlier.remembered.accepted:
            return False
    badge.save(folder)
    return True


def _right(found: Signals, expected: Sequence[str], relation: str) -> np.ndarray:
    pairs = zip(found.answers, expected, strict=True)
    return np.array([is_accepted(answer, wanted, relation) for answer, wanted in pairs], dtype=bool)


def _groups(expected: Sequence[str]) -> list[str]:
    return [REAL if wanted else INVENTED for wanted in expected]


def _counts(badges: np.ndarray, real: np.ndarray, right: np.ndarray) -> dict[str, dict[str, int]]:
    kinds = {"right": real & right, "wrong": real & ~right, "unknown": np.zeros_like(real), "invented": ~real}
    return {
        badge: {kind: int((own & (badges == badge)).sum()) for kind, own in kinds.items()}
        for badge in (REMEMBERED, UNSURE, MADE_UP)
    }


def _seen_scores(badge: ModelBadge, fit: CrossFit | None, x: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """How surely each name is that of somebody real: out of fold on the rows of the fit."""
    if fit is not None and fit.seen_scores is not None:
        return fit.seen_scores
    p_seen = badge.calibrator.p_seen(x)
    return scores if p_seen is None else p_seen


def _qualities(
    found: Signals, for_real: np.ndarray, scores: np.ndarray, real: np.ndarray, right: np.ndarray
) -> tuple[FeatureQuality, ...]:
    """AUROC seen is over names of two words or more, because every invented name has two."""
    columns = {name: found.column(name) * (-1 if name in LOWER_IS_BETTER else 1) for name in SIGNALS}
    pairs = {name: (column, column) for name, column in columns.items()}
    pairs["badge"] = (for_real, scores)
    several = np.array([" " in question.name for question in found.questions])
    both = right[real].any() and not right[real].all()
    return tuple(
        FeatureQuality(
            name,
            auroc(seen[several], real[several]) if 0 < real[several].sum() < several.sum() else 0.5,
            auroc(own[real], right[real]) if both else None,
            aurc(own[real], right[real]),
            prr(own[real], right[real]) if both else None,
        )
        for name, (seen, own) in pairs.items()
    )


def _plain(badge: ModelBadge, found: Signals, real: np.ndarray, right: np.ndarray, seed: int) -> PlainThreshold:
    """The same test with the log-probability of the answer as the only signal, on the same people."""
    x = found.column("log_probability")[:, None]
    made = badge.remembered
    names = [question.name for question, own in zip(found.questions, real, strict=True) if own]
    fit = cross_fit(x[real], right[real], people=names, level=made.wanted, confidence=made.confidence, seed=seed)
    accepted = fit.badges == REMEMBERED
    of_nobody = np.array(fit.calibrator.badges(x[~real])) == REMEMBERED
    n, n_right = int(accepted.sum()), int((accepted & right[real]).sum())
    return PlainThreshold(
        fit.calibrator.remembered.level,
        n_right / n if n else 1.0,
        n_right / max(1, int(right[real].sum())),
        0,
        int(of_nobody.sum()),
    )


def _rows(
    found: Signals, expected: Sequence[str], right: np.ndarray, badges: np.ndarray, scores: np.ndarray
) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "question": question.text,
            "wanted": wanted,
            "answer": answer,
            "right": bool(ok),
            "seen": True,
            "badge": str(badge),
            "p_right": float(p),
            **dict(zip(SIGNALS, map(float, values), strict=True)),
        }
        for question, wanted, answer, ok, badge, p, values in zip(
            found.questions, expected, found.answers, right, badges, expit(scores), found.values, strict=True
        )
        if wanted
    )
