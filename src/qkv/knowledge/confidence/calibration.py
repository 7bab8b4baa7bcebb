"""trust: fit the badge of a run, and state what is guaranteed of it; every person serves for the fit and the test."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qkv.errors import QkvError, refuse_negative
from qkv.knowledge.answering.answer_model import frames_of
from qkv.knowledge.confidence.badge import (
    FILE,
    FORMATS,
    INPUTS,
    MADE_UP,
    REMEMBERED,
    UNSURE,
    Badge,
    model_inputs,
    save_unless_worse,
    writing_of_badge,
)
from qkv.knowledge.confidence.calibrator import CrossFit
from qkv.knowledge.confidence.cross_fitting import cross_fit
from qkv.knowledge.confidence.features import FEATURES, N_SAMPLES, AnswerFeatures, answer_features
from qkv.knowledge.confidence.guarantee import CONFIDENCE, Guarantee
from qkv.knowledge.confidence.invented import NameCheck, invented_questions
from qkv.knowledge.confidence.kind_levels import KindLevel, kind_levels
from qkv.knowledge.confidence.logistic import expit
from qkv.knowledge.confidence.metrics import aurc, auroc, prr, reliability
from qkv.knowledge.confidence.outside_limit import MAX_OUTSIDE
from qkv.knowledge.confidence.trust_result import FeatureQuality, PlainThreshold
from qkv.knowledge.confidence.trust_result import Trust as Trust
from qkv.knowledge.datasets.facts import Questions, load_questions
from qkv.knowledge.datasets.templates import find_name, name_of
from qkv.knowledge.evaluation import QuestionSource, RunOrFolder, exact_match, question_pairs
from qkv.knowledge.intervals import independent_draws, wilson_interval
from qkv.train.checkpoint import weights_checksum
from qkv.train.data.question_frames import frame_of
from qkv.train.data.text_files import SizedIterable
from qkv.train.runs import as_run

INVENTED_PER_KNOWN = 2  # questions about invented names for each question about a known person, to fit on
TESTED_PER_KNOWN, MAX_TESTED = 4, 1000  # with those that serve for the limit only: so many for each, at most so many
N_ASSIGNMENTS = 20  # of people to folds
MIN_QUESTIONS = 20  # of each group (known, unknown, right, wrong) to fit a badge on
MIN_PER_KIND = 10  # known questions of a kind, and unknown ones, for a badge that speaks of this kind
MAX_KINDS_SHOWN = 3
KNOWN, OUTSIDER, INVENTED = "known", "outsider", "invented"
LOWER_IS_BETTER = ("entropy", "name_mean_excess_surprise", "name_max_excess_surprise")


class _Answers(NamedTuple):
    """Questions with the answers of a run, one row each."""

    pairs: list[tuple[str, str]]
    groups: np.ndarray
    people: list[str]
    found: AnswerFeatures
    right: np.ndarray
    fitted: np.ndarray
    """Rows to fit the badge on."""
    limiting: np.ndarray
    """Rows about more invented names, for the limit of those called "remembered" only."""
    measured: np.ndarray
    """Rows to measure it on."""
    filled: np.ndarray
    """Rows with an answer that is not empty."""


def trust(
    run: RunOrFolder,
    known: QuestionSource,
    unknown: QuestionSource | Sequence[str],
    *,
    level: float = 0.95,
    confidence: float = CONFIDENCE,
    max_outside: float = MAX_OUTSIDE,
    calibration: float = 1.0,
    n_samples: int = N_SAMPLES,
    seed: int = 0,
    save: bool = True,
    text: str | Path | SizedIterable[str] | None = None,
) -> Trust:
    """Calibrate the badge of a run, and state how often its "remembered" answers are right.

    The people are split into folds. Each answer is judged by models that were fitted without its person, and the
    threshold is chosen and tested on these judgements, so that every person serves for both. Where `level` cannot be
    guaranteed, the highest level that can is stated, and how many more questions `level` would take.

    To the unknown people it adds questions about invented names, made of parts of known names: the hardest to tell
    from known ones. Names that stand in the run's text or in a question are left out. They serve for the fit, not for
    the level.

    An answer is only called "remembered" if, besides, at most a share `max_outside` of the unknown people, and of the
    invented names, are called so. This is tested by an exact binomial bound; where there are too few names for one, the
    share of the names given is kept at `max_outside`, and the bound that it has is stated (`Trust.outside`).

    Args:
        run: The run, or its folder.
        known: Questions with answers about people in the run's training text: `Questions`, pairs, or a file of lines
            `question<TAB>answer`. No question in training should be about these people.
        unknown: Questions about people that are not in the text; answers may be left out. If they are given, a right
            guess counts as right. Of both groups, questions worded as none that the run was trained on, and kinds with
            fewer than ten in a group, are left out and counted: the badge says nothing of such questions.
        level: Share of "remembered" answers that shall be right.
        confidence: Share of all draws of such people in which the statement shall be true.
        max_outside: Largest share of unknown people, and of invented names, that may be called "remembered", each with
            this confidence.
        calibration: Share of the people that the badge is fitted on; below 1, it is measured on the rest.
        n_samples: Sampled answers per question, for the feature `agreement`, which the badge does not use.
        seed: Seed of folds, invented names and sampled answers.
        save: Whether to write the badge to the run's folder, as trust.json, where `ask` finds it. One that calls no
            answer "remembered" does not replace one that does.
        text: The texts that the run was trained on, for the check of names; if left out, the recorded file is read.

    Returns:
        What is guaranteed of "remembered", its precision and coverage, and the quality of each feature.

    Raises:
        QkvError: `level`, `confidence`, `max_outside` or `calibration` is out of range, or there are fewer than 20
            questions of a kind (known, unknown, right, wrong) to fit on; or trust.json is not a badge that qkv wrote.

    Example:
        With a run that was pretrained on biographies, and two files of questions::

            found = qkv.knowledge.trust("runs/birth", "known.tsv", "unknown.txt", level=0.9)
            found.stated_level, found.precision, found.coverage
            qkv.knowledge.ask("runs/birth", "Where was Ada Lovelace born?").badge  # now calibrated
    """
    _check_shares(level, confidence, max_outside, calibration)
    refuse_negative("calibrating trust", seed=seed, n_samples=n_samples)
    run = as_run(run)
    if save:
        writing_of_badge(Path(run.folder) / FILE, FORMATS)
    weights = weights_checksum(run.model, run.step)  # those that answer, whatever happens to the folder meanwhile
    known_pairs, unknown_pairs = _once(question_pairs(known)), _once(_optionally_answered(unknown))
    names, frames = NameCheck(run, text), frames_of(run)
    known_pairs, trained = _not_trained(known_pairs, names, frames)
    known_pairs, unknown_pairs, kinds, of_others = _of_kinds(known_pairs, unknown_pairs, frames)
    pairs, groups, fitted, limiting, remarks = _questions(known_pairs, unknown_pairs, names, frames, calibration, seed)
    found = answer_features(run, [question for question, _ in pairs], n_samples=n_samples, seed=seed)
    right = np.array(
        [
            expected != "" and exact_match(answer, expected)
            for answer, (_, expected) in zip(found.answers, pairs, strict=True)
        ]
    )
    filled = np.array([answer != "" for answer in found.answers])
    _check_filled(filled, groups)
    answers = _Answers(
        pairs,
        groups,
        [name_of(question, frames) for question, _ in pairs],
        found,
        right,
        fitted,
        limiting,
        fitted | limiting if calibration == 1 else ~(fitted | limiting),
        filled,
    )
    badge, out_of_fold = _fit(answers, kinds, level, confidence, max_outside, seed)
    remarks = (*remarks, *trained, *of_others)
    kept_earlier = save and not save_unless_worse(badge, run.folder, weights)
    return _measure(badge, out_of_fold, answers, remarks, kept_earlier, seed)


def fit_badge(
    values: np.ndarray,
    right: np.ndarray,
    groups: Sequence[str],
    level: float,
    confidence: float = CONFIDENCE,
    *,
    people: Sequence[str] | None = None,
    max_outside: float | None = MAX_OUTSIDE,
    more_invented: np.ndarray | None = None,
    n_unnamed: int = 0,
    n_unanswered: int = 0,
    by_name: bool = False,
    kinds: Sequence[str] = (),
    seed: int = 0,
) -> tuple[Badge, CrossFit]:
    """Fit a badge to answers that are known to be right or wrong; see `cross_fit`.

    Args:
        values: Features of the answers, (n, features).
        right: Whether each answer is right.
        groups: "known", "outsider" or "invented" for each.
        level: Share of "remembered" answers that shall be right.
        confidence: Share of all draws in which the statement shall be true.
        people: Whom each question is about; all different if left out.
        max_outside: Largest share of outsiders, and of invented names, that may be called "remembered"; None for no
            limit.
        more_invented: Features of answers about more invented names, which serve for this limit only.
        n_unnamed: Questions in which no name was found.
        n_unanswered: Questions about outsiders whose right answer is not known, so that they count as wrong.
        by_name: Whether some people have more questions than others.
        kinds: The kind of each question, with … for the name; none if left out.
        seed: Seed of the folds.
    """
    group_of = np.asarray(groups)
    _check_counts(group_of, right)
    found = cross_fit(
        model_inputs(values),
        right,
        groups=group_of.tolist(),
        people=people,
        features=INPUTS,
        level=level,
        confidence=confidence,
        max_outside=max_outside,
        more_invented=() if more_invented is None else model_inputs(more_invented),
        n_assignments=N_ASSIGNMENTS,
        seed=seed,
    )
    unread = values[group_of == OUTSIDER, list(FEATURES).index("name_mean_log_probability")]
    levels: tuple[KindLevel, ...] = ()
    if kinds:
        given = np.flatnonzero(group_of != INVENTED).tolist()
        names = list(people) if people is not None else [str(i) for i in range(len(right))]
        own = [[each[i] for i in given] for each in (kinds, names)]
        levels = kind_levels(own[0], found.scores[given], np.asarray(right)[given], own[1], found.calibrator, seed)
    return Badge(found.calibrator, float(np.median(unread)), n_unnamed, n_unanswered, by_name, levels), found


def _not_trained(
    known: list[tuple[str, str]], names: NameCheck, frames: Sequence[str]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Known questions without those about names that training asked about; and a remark."""
    asked = {name_of(question, frames) for question in names.trained} - {""}
    kept = [(question, answer) for question, answer in known if name_of(question, frames) not in asked]
    left_out = len(known) - len(kept)
    if left_out and len(kept) < MIN_QUESTIONS <= len(known):
        problem = (
            f"{left_out} of the {len(known)} known questions are about names that the run was trained on with questions"
        )
        raise QkvError("calibrating trust", problem, "Give questions about others in the text: their answers show more")
    said = f"known questions left out, since training asked about the same names: {left_out}"
    return kept, [said] if left_out else []


Pairs = list[tuple[str, str]]


def _of_kinds(known: Pairs, unknown: Pairs, frames: Sequence[str]) -> tuple[Pairs, Pairs, tuple[str, ...], list[str]]:
    """The questions of kinds that the run was trained on and that both groups have, these kinds, and remarks.

    The badge is asked about no others: in another wording the run may know nothing, or no name be found, and of a kind
    that one group lacks nothing is shown. A run that does not record its kinds has its questions kept.
    """
    if not frames:
        return known, unknown, (), []
    own = [[frame_of(question.strip(), frames) for question, _ in pairs] for pairs in (known, unknown)]
    counts = [Counter(kinds) for kinds in own]
    kinds = tuple(frame for frame in frames if min(count[frame] for count in counts) >= MIN_PER_KIND)
    kept = [
        [pair for pair, kind in zip(pairs, of, strict=True) if kind in kinds]
        for pairs, of in zip((known, unknown), own, strict=True)
    ]
    strange = [
        question
        for pairs, of in zip((known, unknown), own, strict=True)
        for (question, _), kind in zip(pairs, of, strict=True)
        if kind is None
    ]
    rare = len(known) + len(unknown) - sum(map(len, kept)) - len(strange)
    remarks = []
    if strange:
        remarks.append(f"questions left out, worded as none that the run was trained on: {len(strange)}")
    if rare:
        remarks.append(
            f"questions left out, of kinds with fewer than {MIN_PER_KIND} known or {MIN_PER_KIND} unknown ones: {rare}"
        )
    for group, pairs, rest in zip(("known", "unknown"), (known, unknown), kept, strict=True):
        if len(rest) < MIN_QUESTIONS <= len(pairs):
            shown = f", such as {strange[0]!r}" if strange else ""
            some = ", ".join(f"“{frame}”" for frame in frames[:MAX_KINDS_SHOWN])
            raise QkvError(
                "calibrating trust",
                f"{len(rest)} of {len(pairs)} {group} questions remain ({'; '.join(remarks)}{shown})",
                f"Word known and unknown questions as in training, such as {some}",
            )
    return kept[0], kept[1], kinds, remarks


def _questions(
    known: list[tuple[str, str]],
    unknown: list[tuple[str, str]],
    names: NameCheck,
    frames: Sequence[str],
    calibration: float,
    seed: int,
) -> tuple[list[tuple[str, str]], np.ndarray, np.ndarray, np.ndarray, tuple[str, ...]]:
    """All questions with those about invented names, their groups, the two kinds of rows for the fit, and remarks."""
    pairs = [*known, *unknown]
    groups = [KNOWN] * len(known) + [OUTSIDER] * len(unknown)
    given = [question for question, _ in pairs]
    people = [name_of(question, frames) for question in given]
    both = sorted(set(people[: len(known)]) & set(people[len(known) :]))
    if both:
        problem = f"{len(both)} names are among the known and the unknown people, such as {both[0]}"
        raise QkvError("calibrating trust", problem, "Leave them out of one of the two")
    fitted = _calibration_split(people, np.array(groups) == KNOWN, calibration, seed)
    limiting, left_out = np.zeros(len(pairs), dtype=bool), 0
    for part in (True, False):  # each invented name is made of names on one side of the split
        own = [known[i][0] for i in np.flatnonzero(fitted[: len(known)] == part)]
        n = INVENTED_PER_KNOWN * len(own)
        tested = max(n, min(TESTED_PER_KNOWN * len(own), MAX_TESTED)) if part else n
        made = invented_questions(names, own, given, tested, seed, frames)
        pairs += [(question, "") for question in made.questions]
        groups += [INVENTED] * len(made.questions)
        first = np.arange(len(made.questions)) < n
        fitted, limiting = np.append(fitted, first & part), np.append(limiting, ~first & part)
        left_out += made.found
    n_invented = len(pairs) - len(given)
    named = [find_name(question.strip(), frames) is not None for question in given]
    misplaced = _misplaced(names, people, named, len(known))
    return pairs, np.array(groups), fitted, limiting, (*_remarks(names, n_invented, left_out), *misplaced)


def _remarks(names: NameCheck, n_invented: int, left_out: int) -> list[str]:
    """What the invented names were checked against."""
    if not n_invented:
        return ["no names could be invented from the known ones: nothing is known of names that nobody has"]
    out = [f"invented ones are not in {', '.join(names.checked)} or the questions given".replace("in  or", "in")]
    if left_out:
        out[0] += f"; left out as found there: {left_out}"
    if names.unchecked:
        out.append(f"{' and '.join(names.unchecked)} could not be read again for this")
    return out


def _counting(called: Sequence[str], badge: Badge) -> Iterator[str]:
    """How questions about one name, and those without an answer, count; `called` are the names of answers called so."""
    if len(set(called)) < len(called):
        n = len(set(called))
        yield f"the {len(called)} answers called remembered are about {n} names, which the interval counts"
    if badge.by_name:
        yield "some have more questions than others: what is guaranteed counts each name once, by one of its questions"
    if badge.n_unanswered:
        yield f"{badge.n_unanswered} unknown ones have no answer given: what is said of them counts as wrong"


def _misplaced(names: NameCheck, people: Sequence[str], named: Sequence[bool], n_known: int) -> list[str]:
    """How many known names are not in the text, and how many unknown ones are; questions without a name are counted."""
    out = []
    if unnamed := len(people) - sum(named):
        out.append(f"in {unnamed} questions no name was found: each counts as one of its own")
    if names.text is not None:
        pairs = list(zip(people, named, strict=True))
        known, unknown = ({name for name, own in part if own} for part in (pairs[:n_known], pairs[n_known:]))
        strange, read = sum(name not in names.text for name in known), sum(name in names.text for name in unknown)
        if strange and strange == len(known) and unknown and read == len(unknown):
            problem = "no known name is in the text that the run was trained on, and every unknown one is"
            raise QkvError("calibrating trust", problem, "Exchange known and unknown questions")
        if strange:
            out.append(f"{strange} of the {len(known)} known names are not in the text")
        if read:
            out.append(f"{read} of the {len(unknown)} unknown names are in the text")
    return out


def _fit(
    answers: _Answers, kinds: Sequence[str], level: float, confidence: float, max_outside: float, seed: int
) -> tuple[Badge, CrossFit]:
    rows = np.flatnonzero(answers.fitted & answers.filled)
    return fit_badge(
        answers.found.values[rows],
        answers.right[rows],
        answers.groups[rows].tolist(),
        level,
        confidence,
        people=[answers.people[i] for i in rows],
        max_outside=max_outside,
        more_invented=answers.found.values[answers.limiting & answers.filled],
        n_unnamed=sum(not answers.found.questions[i].named for i in rows),
        n_unanswered=sum(answers.groups[i] == OUTSIDER and not answers.pairs[i][1] for i in rows),
        by_name=len({*Counter(answers.people[i] for i in rows if answers.groups[i] != INVENTED).values()}) > 1,
        kinds=[frame_of(answers.pairs[i][0].strip(), kinds) or "" for i in rows] if kinds else (),
        seed=seed,
    )


def _measure(
    badge: Badge, out_of_fold: CrossFit, answers: _Answers, remarks: tuple[str, ...], kept_earlier: bool, seed: int
) -> Trust:
    """The quality of a badge on the rows to measure it on."""
    rows = np.flatnonzero(answers.measured & answers.filled)
    held_out = not (answers.measured & answers.fitted).any()
    values, right, groups = answers.found.values[rows], answers.right[rows], answers.groups[rows]
    scores = badge.calibrator.scores(model_inputs(values))
    p_seen = badge.calibrator.p_seen(model_inputs(values))
    if not held_out:
        scores[answers.fitted[rows]] = out_of_fold.scores
        if p_seen is not None and out_of_fold.seen_scores is not None:
            p_seen[answers.fitted[rows]] = expit(out_of_fold.seen_scores)
    badges = np.array([badge.calibrator.badge_of_score(float(score)) for score in scores])
    badges[[badge.is_unshown(answers.pairs[i][0], own) for i, own in zip(rows, badges.tolist(), strict=True)]] = UNSURE
    given, seen, called = groups != INVENTED, groups == KNOWN, badges == REMEMBERED
    n_right, n = int((called & given & right).sum()), int((called & given).sum())
    # Answers about one person are not independent: taken as alike, which is too few draws rather than too many.
    names = [answers.people[i] for i in rows[called & given]]
    draws = independent_draws(names)
    low, high = wilson_interval(min(n_right / n * draws, draws), draws) if n else (0.0, 1.0)
    remarks = (*remarks, *_counting(names, badge))
    made = badge.remembered
    more = (made.more - 1) * int((answers.fitted & answers.filled & (answers.groups != INVENTED)).sum())
    return Trust(
        level=made.wanted,
        stated_level=made.level,
        confidence=made.confidence,
        known=int(seen.sum()),
        unknown=int((given & ~seen).sum()),
        accuracy=float(right[seen].mean()) if seen.any() else 0.0,
        precision=n_right / n if n else 1.0,
        low=low,
        high=high,
        coverage=n_right / max(1, int(right[given].sum())),
        counts=_counts(badges, groups, right),
        features=_feature_qualities(
            values[given],
            (scores if p_seen is None else p_seen)[given],
            scores[given],
            seen[given],
            right[given],
        ),
        reliability=reliability(expit(scores[given]), right[given]),
        plain=plain_threshold(answers.found, answers, made, seed),
        more_questions=None if math.isinf(more) else math.ceil(more),
        empty=int((answers.measured & ~answers.filled & (answers.groups != INVENTED)).sum()),
        held_out=held_out,
        remarks=remarks,
        kept_earlier=kept_earlier,
        outside=badge.calibrator.outside,
        badge=badge,
        answers=_answer_rows(answers, rows[given], badges[given], scores[given]),
    )


def plain_threshold(found: AnswerFeatures, answers: _Answers, wanted: Guarantee, seed: int) -> PlainThreshold:
    """The same test with the log-probability of the answer as the only feature, on the same people."""
    x = model_inputs(found.values)[:, :1]
    given = answers.groups != INVENTED
    rows = np.flatnonzero(answers.fitted & answers.filled & given)
    people = [answers.people[i] for i in rows]
    level, confidence = wanted.wanted, wanted.confidence
    fit = cross_fit(x[rows], answers.right[rows], people=people, level=level, confidence=confidence, seed=seed)
    accepted = np.zeros(len(x), dtype=bool)
    if (answers.measured & answers.fitted).any():
        accepted[rows] = fit.badges == REMEMBERED
        rest = np.flatnonzero(answers.filled & ~given)
    else:
        rest = np.flatnonzero(answers.filled & answers.measured)
    accepted[rest] = np.array(fit.calibrator.badges(x[rest])) == REMEMBERED
    accepted &= answers.measured
    right = answers.right & answers.measured & given
    n = int((accepted & given).sum())
    return PlainThreshold(
        fit.calibrator.remembered.level,
        int((accepted & right).sum()) / n if n else 1.0,
        int((accepted & right).sum()) / max(1, int(right.sum())),
        int((accepted & (answers.groups == OUTSIDER)).sum()),
        int((accepted & ~given).sum()),
    )


def _counts(badges: np.ndarray, groups: np.ndarray, right: np.ndarray) -> dict[str, dict[str, int]]:
    """For each badge, its answers by kind."""
    kinds = {
        "right": (groups == KNOWN) & right,
        "wrong": (groups == KNOWN) & ~right,
        "unknown": groups == OUTSIDER,
        "invented": groups == INVENTED,
    }
    return {
        badge: {kind: int((own & (badges == badge)).sum()) for kind, own in kinds.items()}
        for badge in (REMEMBERED, UNSURE, MADE_UP)
    }


def _answer_rows(
    answers: _Answers, rows: np.ndarray, badges: np.ndarray, scores: np.ndarray
) -> tuple[dict[str, Any], ...]:
    """One dictionary for each of these rows."""
    return tuple(
        {
            "question": answers.pairs[i][0],
            "wanted": answers.pairs[i][1],
            "answer": answers.found.answers[i],
            "right": bool(answers.right[i]),
            "seen": bool(answers.groups[i] == KNOWN),
            "badge": str(badge),
            "p_right": float(p),
            **dict(zip(FEATURES, map(float, answers.found.values[i]), strict=True)),
        }
        for i, badge, p in zip(rows.tolist(), badges, expit(scores), strict=True)
    )


def _feature_qualities(
    values: np.ndarray, for_known: np.ndarray, scores: np.ndarray, seen: np.ndarray, right: np.ndarray
) -> tuple[FeatureQuality, ...]:
    """How well each feature, and the badge by its two scores, tells people in the text and right answers."""
    # For each feature: the score for "seen" and the score for "right". A low entropy or surprise speaks for both.
    columns = {name: values[:, i] * (-1 if name in LOWER_IS_BETTER else 1) for i, name in enumerate(FEATURES)}
    pairs = {name: (column, column) for name, column in columns.items()}
    pairs["badge"] = (for_known, scores)
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
        for name, (for_seen, for_right) in pairs.items()
    )


def _calibration_split(names: Sequence[str], seen: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Which questions to fit on: split by person, with the same share of known and of unknown people."""
    out = np.zeros(len(names), dtype=bool)
    for kind in (True, False):
        people = sorted({name for name, is_seen in zip(names, seen, strict=True) if is_seen == kind})
        order = np.random.default_rng((seed, 16)).permutation(len(people))
        chosen = {people[i] for i in order[: round(share * len(people))]}
        out |= np.array([is_seen == kind and name in chosen for name, is_seen in zip(names, seen, strict=True)])
    return out


def _check_shares(level: float, confidence: float, max_outside: float, calibration: float) -> None:
    """Refuse shares out of range before any work."""
    for name, value in (("level", level), ("confidence", confidence), ("max_outside", max_outside)):
        if not 0 < value < 1:
            raise QkvError("calibrating trust", f"the {name} is {value}", "Give a share in (0, 1), such as 0.95")
    if not 0 < calibration <= 1:
        raise QkvError("calibrating trust", f"the calibration share is {calibration}", "Give a share in (0, 1]")


def _check_filled(filled: np.ndarray, groups: np.ndarray) -> None:
    """Refuse a run that says nothing to almost all questions, before their number is called too small."""
    given = groups != INVENTED
    if int((filled & given).sum()) < MIN_QUESTIONS <= int(given.sum()):
        problem = f"the run gives an empty answer to {int((~filled & given).sum())} of {int(given.sum())} questions"
        raise QkvError("fitting a badge", problem, "Finetune the run on questions like these first, or longer")


def _check_counts(groups: np.ndarray, right: np.ndarray) -> None:
    """Refuse to fit a badge on fewer than MIN_QUESTIONS questions of any kind; invented names do not count."""
    given = groups != INVENTED
    counts = {
        "questions about people in the text": int((groups == KNOWN).sum()),
        "questions about people who are not in the text": int((groups == OUTSIDER).sum()),
        "right answers": int((right & given).sum()),
        "wrong answers": int((~right & given).sum()),
    }
    for kind, count in counts.items():
        if count < MIN_QUESTIONS:
            raise QkvError(
                "fitting a badge",
                f"there are {count} {kind} to fit it on",
                f"Give enough questions for {MIN_QUESTIONS} of each kind",
            )


def _once(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs without repetitions: a question that is given twice shows no more than once."""
    return list(dict.fromkeys((question, answer) for question, answer in pairs))


def _optionally_answered(unknown: QuestionSource | Sequence[str]) -> list[tuple[str, str]]:
    """(question, answer) pairs, with "" where there is no answer."""
    if isinstance(unknown, Questions):
        return list(unknown.pairs)
    if isinstance(unknown, str | Path):
        return list(load_questions(unknown, answered=False).pairs)
    return [(each, "") if isinstance(each, str) else each for each in unknown]
