"""cross_fit: a calibrator from feature rows and labels, with every row used for the fit and for the thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from qkv.errors import QkvError
from qkv.knowledge.confidence.calibrator import Calibrator, CrossFit, groups_or_known, log_odds_of_both
from qkv.knowledge.confidence.guarantee import CONFIDENCE, Guarantee, guarantee
from qkv.knowledge.confidence.logistic import LogisticModel, fit, mean_model
from qkv.knowledge.confidence.outside_limit import GROUPS as OUTSIDE_GROUPS
from qkv.knowledge.confidence.outside_limit import OutsideLimit, outside_limit

N_FOLDS, N_ASSIGNMENTS = 10, 5
SEEN_RIDGE, RIGHT_RIDGE = 1.0, 3.0
GROUPS = ("known", *OUTSIDE_GROUPS)
MIN_PEOPLE = 5  # with a right answer, and with a wrong one, that a fit needs
LESSER_LEVEL = 0.5
"""Share of the allowed error at which a level below the wanted one is stated.

With all of it, 6 to 8 % of the statements were false where the truth is quadratic or a product of two features.
"""


def cross_fit(
    x: Any,
    right: Any,
    *,
    groups: Sequence[str] | None = None,
    people: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    level: float = 0.95,
    confidence: float = CONFIDENCE,
    max_outside: float | None = None,
    more_invented: Any = (),
    n_assignments: int = N_ASSIGNMENTS,
    seed: int = 0,
) -> CrossFit:
    """Fit a score for "this answer is right", and choose thresholds by it on the same rows, each out of fold.

    The rows are split into folds by person. The score of a row comes from models that were fitted without its fold; the
    thresholds are chosen on these scores (`guarantee`), and the calibrator for new rows uses the mean of all these
    models, which is linear as each of them is. So every row serves for the fit and for the threshold, and no row is
    scored by a model that has seen its label.

    The confidence is proved for scores that are fixed in advance. Fitted ones choose the first set that is tested, and
    the labels have a part in them: by luck that a whole draw shares, its set can look better than it is. So where the
    wanted level is not shown, the lesser one is stated at half the error (LESSER_LEVEL). With that, simulations keep
    the stated confidence for truths that a linear score fits and for such that none fits (docs/knowledge.md); it is not
    a proof.

    The score is that of P(known)·P(right, if known): the few wrong answers about somebody known are not lost among the
    many about others. The guarantees count known rows and outsiders, in the proportion in which they are given; rows
    about invented names serve for the fit, and for `max_outside`.

    Args:
        x: Feature rows (n, d), finite. They should be transformed so that more is better or worse throughout, such as
            log-odds instead of probabilities; their scale does not matter.
        right: Whether each answer is right.
        groups: For each row "known" (somebody the model was trained on), "outsider" or "invented"; all known if left
            out. With some of both kinds, the calibrator also estimates P(known).
        people: Whom each row is about: rows about one person stay in one fold, and one of them, chosen at random,
            counts for the guarantees, whose tests need independent rows. All different if left out.
        features: Names of the columns.
        level: Share of "remembered" answers that shall be right. Where it cannot be guaranteed, the strongest level
            that can is stated in `.calibrator.remembered.level`.
        confidence: Share of all draws of such rows in which the statement shall be true.
        max_outside: The largest share of outsiders, and of invented names, that may be called "remembered", each with
            this confidence (`outside_limit`); None for no limit. It does not depend on `level`, so that a lower level
            still never covers less.
        more_invented: Feature rows (m, d) of more invented names, which serve for `max_outside` only.
        n_assignments: How often the rows are split into folds.
        seed: Seed of the folds.

    Returns:
        The calibrator, with the out-of-fold scores of each row.

    Raises:
        QkvError: The rows do not fit together, a group has another name, or fewer than five people have a right
            answer, or a wrong one.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(right)
    _check_rows(x, y, groups, people, features)
    y = y.astype(bool)
    kinds = groups_or_known(groups, len(y))
    known = np.array([kind == "known" for kind in kinds], dtype=bool)
    names = list(people) if people is not None else [str(i) for i in range(len(y))]
    assignments = [_folds(names, kinds, y, (seed, i)) for i in range(n_assignments)]
    grouped = _enough_of_both(known, names) and _enough_of_both(
        y[known], [n for n, k in zip(names, known, strict=True) if k]
    )
    right_model, scores = out_of_fold(x, y, assignments, RIGHT_RIDGE, known if grouped else None)
    seen_model = seen_scores = None
    if grouped:
        seen_model, seen_scores = out_of_fold(x, known, assignments, SEEN_RIDGE)
        scores = log_odds_of_both(seen_scores, scores)
    counted = one_row_each(names, seed)
    tested = counted & np.array([kind != "invented" for kind in kinds], dtype=bool)
    labels = tuple(features) if features is not None else tuple(f"feature {j}" for j in range(x.shape[1]))
    nothing = guarantee((), (), level, confidence)
    scored = Calibrator(labels, right_model, seen_model, nothing, nothing, len(y))
    limits: tuple[OutsideLimit, ...] = ()
    if max_outside is not None:
        more = scored.scores(np.asarray(more_invented, dtype=float).reshape(-1, x.shape[1]))
        own = [kind if is_counted else "" for kind, is_counted in zip(kinds, counted, strict=True)]
        limits = _limits(scores, own, more, max_outside, confidence)
    remembered = _within(limits, scores[tested], y[tested], level, confidence)
    others = int(tested.sum()) - remembered.accepted
    made_up = guarantee(
        -scores[tested], ~y[tested], level, confidence, most=others, lesser_confidence=for_lesser(confidence)
    )
    calibrator = replace(scored, remembered=remembered, made_up=made_up, outside=limits)
    return CrossFit(calibrator, scores, y, kinds, seen_scores)


def for_lesser(confidence: float) -> float:
    """The confidence with which a level below the wanted one is stated."""
    return 1 - LESSER_LEVEL * (1 - confidence)


def one_row_each(names: Sequence[str], seed: int) -> np.ndarray:
    """One row of each person, chosen at random and without looking at labels."""
    chosen = {
        name: i for i in np.random.default_rng((seed, 23)).permutation(len(names)).tolist() for name in [names[i]]
    }
    return np.isin(np.arange(len(names)), list(chosen.values()))


def _limits(
    scores: np.ndarray, kinds: Sequence[str], more_invented: np.ndarray, wanted: float, confidence: float
) -> tuple[OutsideLimit, ...]:
    """The limit of each group of names outside the text that has any."""
    of_kind = {group: scores[[kind == group for kind in kinds]] for group in OUTSIDE_GROUPS}
    of_kind["invented"] = np.concatenate((of_kind["invented"], more_invented))
    return tuple(outside_limit(own, group, wanted, confidence) for group, own in of_kind.items() if len(own))


def _within(
    limits: Sequence[OutsideLimit], scores: np.ndarray, right: np.ndarray, level: float, confidence: float
) -> Guarantee:
    """The guarantee of answers that score above the threshold of every limit."""
    lowest = max((each.threshold for each in limits), default=-np.inf)
    most = int((scores > lowest).sum())
    found = guarantee(scores, right, level, confidence, most=most, lesser_confidence=for_lesser(confidence))
    return replace(found, threshold=max(found.threshold, lowest)) if found.accepted else found


def out_of_fold(
    x: np.ndarray, y: np.ndarray, assignments: Sequence[np.ndarray], ridge: float, fitted: np.ndarray | None = None
) -> tuple[LogisticModel, np.ndarray]:
    """The mean of the models that are each fitted without one fold, and the score of each row by those without it.

    If `fitted` is given, the models are fitted on these rows only; all rows are scored.
    """
    models, scores = [], np.zeros((len(assignments), len(y)))
    for own, folds in zip(scores, assignments, strict=True):
        for fold in np.unique(folds):
            rest = folds != fold
            own_rows = rest if fitted is None else rest & fitted
            model = fit(x[own_rows], y[own_rows], ridge)
            own[~rest] = model.score(x[~rest])
            models.append(model)
    return mean_model(models), scores.mean(0)


def _folds(names: Sequence[str], kinds: Sequence[str], y: np.ndarray, seed: tuple[int, int]) -> np.ndarray:
    """A random fold for each row: one for all rows of a person, and every fold with the same share of each stratum.

    The strata are the groups, and in each the people with a wrong answer and the others.
    """
    strata: dict[str, tuple[str, bool]] = {}
    for name, kind, ok in zip(names, kinds, y.tolist(), strict=True):
        strata[name] = (kind, ok and strata.get(name, (kind, True))[1])
    random = np.random.default_rng((*seed, 19))
    order = sorted(strata)
    mixed = sorted(zip([strata[name] for name in order], random.random(len(order)).tolist(), order, strict=True))
    fold_of = {name: i % N_FOLDS for i, (_, _, name) in enumerate(mixed)}
    return np.array([fold_of[name] for name in names])


def _enough_of_both(labels: np.ndarray, names: Sequence[str]) -> bool:
    """Whether each label is that of MIN_PEOPLE people or more."""
    return (
        min(len({name for name, own in zip(names, labels, strict=True) if own == label}) for label in (True, False))
        >= MIN_PEOPLE
    )


def _check_rows(
    x: np.ndarray,
    y: np.ndarray,
    groups: Sequence[str] | None,
    people: Sequence[str] | None,
    features: Sequence[str] | None,
) -> None:
    request = "fitting a badge"
    lengths = {len(each) for each in (y, *(g for g in (groups, people) if g is not None))}
    if x.ndim != 2 or lengths != {len(x)} or not np.isfinite(x).all() or not np.isin(y, (0, 1)).all():
        raise QkvError(
            request,
            f"the feature rows have shape {x.shape}, and there are {len(y)} labels",
            "Give rows of finite numbers, and for each a label True or False (and a group and a person, or none)",
        )
    if features is not None and len(features) != x.shape[1]:
        raise QkvError(request, f"{len(features)} names for {x.shape[1]} features", "Give a name for each column")
    other = sorted({str(each) for each in groups or ()} - set(GROUPS))
    if other:
        raise QkvError(request, f"a group is {other[0]!r}", f"Use {', '.join(GROUPS)}")
    names = list(people) if people is not None else [str(i) for i in range(len(y))]
    if not _enough_of_both(y.astype(bool), names):
        n_right, n_wrong = (len({n for n, own in zip(names, y, strict=True) if own == label}) for label in (1, 0))
        raise QkvError(
            request,
            f"the answers are right for {n_right} and wrong for {n_wrong} of the names asked about",
            f"Give questions enough for {MIN_PEOPLE} of each",
        )
