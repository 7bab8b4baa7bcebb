"""How far can “remembered” be believed on runs that are there already: level, coverage and honesty of the badge.

    python benchmarks/trust_tasks.py --task "birthplaces, seed 0" RUN dev.tsv outside.tsv held.tsv --task …

A task is a name, the folder of a run, questions about people in its text (question<TAB>answer, none of them trained
on), questions about people outside it, and, or -, more questions about people in the text, held back until the end. The
badge is fitted on the known questions, as many outsiders and twice as many invented names (with more of these for the
limit of names outside the text that are called so), and measured

- inside these people, each judged by a fit without them;
- on the people held back, with as many other outsiders and other invented names; and
- over random splits of all people of the task: fitted on one half, measured on the other, do the stated level and the
  limit hold?

Beside it stands a threshold on the log-probability alone, fitted and tested on the same people in the same way.
The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtr

from qkv.knowledge.answering.answer_model import frames_of
from qkv.knowledge.confidence.badge import REMEMBERED, Badge, model_inputs
from qkv.knowledge.confidence.calibration import INVENTED_PER_KNOWN, MAX_TESTED, TESTED_PER_KNOWN, fit_badge
from qkv.knowledge.confidence.calibrator import Calibrator, CrossFit
from qkv.knowledge.confidence.cross_fitting import cross_fit
from qkv.knowledge.confidence.features import answer_features
from qkv.knowledge.confidence.invented import NameCheck, invented_questions
from qkv.knowledge.datasets.facts import load_questions
from qkv.knowledge.datasets.templates import name_of
from qkv.knowledge.evaluation import exact_match
from qkv.train.runs import load

KINDS = ("known", "outsider", "invented")
REFUTED = 0.05  # level of the exact test that a measured share is below the stated one


class Rows(NamedTuple):
    """Answers of a run to the questions of a task, without empty ones."""

    values: np.ndarray
    right: np.ndarray
    groups: np.ndarray
    people: np.ndarray
    held_back: np.ndarray
    limiting: np.ndarray
    """More invented names, for the limit only."""

    def where(self, rows: np.ndarray) -> Rows:
        return Rows(*(column[rows] for column in self))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--task", nargs=5, action="append", required=True, metavar=("NAME", "RUN", "KNOWN", "OUT", "HELD")
    )
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--confidence", type=float, nargs="+", default=[0.95, 0.9], help="the first is also split")
    parser.add_argument("--splits", type=int, default=20)
    options = parser.parse_args()
    print(json.dumps(all_figures(options.task, options.level, options.confidence, options.splits)))


def all_figures(tasks: list[list[str]], level: float, confidences: list[float], splits: int) -> dict[str, Any]:
    """The figures of all tasks; each task is the five words of --task. A table is printed on the way."""
    figures: dict[str, Any] = {"level": level, "confidence": confidences, "splits": splits, "tasks": {}}
    columns = [f"{name:>7}" for name in ("states", "right", "covers", "known")]
    print(f"{'':48} {' '.join(columns)} {'outside':>8} {'invented':>8} | {'alone':>7} {'covers':>7}")
    for name, run, known, outside, held in tasks:
        rows = answered(Path(run), Path(known), Path(outside), None if held == "-" else Path(held))
        figures["tasks"][name] = found = {str(c): measure(rows, level, c) for c in confidences}
        for confidence, own in found.items():
            for where, figure in own.items():
                print(line(f"{name}, {where}, {confidence}", figure), flush=True)
        honest = found["honesty"] = honesty(rows, level, confidences[0], splits)
        counts = f"{honest['holds']} of {honest['fits']} splits, refuted in {honest['refuted']}"
        print(f"{'':48} the stated level holds in {counts}", flush=True)
        for kind in KINDS[1:]:
            counts = f"{honest[kind]['holds']} of {honest['fits']} splits, refuted in {honest[kind]['refuted']}"
            print(f"{'':48} the limit of {kind} names holds in {counts}", flush=True)
    fits = [each["honesty"] for each in figures["tasks"].values()]
    figures["honesty"] = {key: sum(each[key] for each in fits) for key in ("fits", "holds", "refuted")}
    return figures


def answered(folder: Path, known: Path, outside: Path, held: Path | None) -> Rows:
    """The answers to all questions of a task, with those about invented names."""
    run = load(folder)
    names, frames = NameCheck(run), frames_of(run)
    parts = [load_questions(known).pairs, load_questions(held).pairs if held else ()]
    others = list(load_questions(outside, answered=False).pairs)
    questions: list[tuple[str, str, str, bool, bool]] = []
    given = [question for part in (*parts, others) for question, _ in part]
    for held_back, own in enumerate(parts):
        some, others = others[: len(own)], others[len(own) :]
        asked = [question for question, _ in own]
        n = len(own) if held_back else INVENTED_PER_KNOWN * len(own)
        tested = n if held_back else max(n, min(TESTED_PER_KNOWN * len(own), MAX_TESTED))
        made = invented_questions(names, asked, given, tested, held_back, frames).questions if own else ()
        groups = zip(KINDS, (own, some, [(question, "") for question in made]), strict=True)
        questions += [
            (*pair, kind, bool(held_back), kind == "invented" and i >= n)
            for kind, pairs in groups
            for i, pair in enumerate(pairs)
        ]
    found = answer_features(run, [question for question, *_ in questions], n_samples=0)
    right = [
        bool(wanted) and exact_match(a, wanted) for a, (_, wanted, *_) in zip(found.answers, questions, strict=True)
    ]
    rows = Rows(
        found.values,
        np.array(right),
        np.array([kind for _, _, kind, *_ in questions]),
        np.array([name_of(question, frames) for question, *_ in questions]),
        np.array([held_back for *_, held_back, _ in questions]),
        np.array([limiting for *_, limiting in questions]),
    )
    return rows.where(np.array([answer != "" for answer in found.answers]))


def measure(rows: Rows, level: float, confidence: float) -> dict[str, Any]:
    """The figures of one task."""
    inner, held = rows.where(~rows.held_back), rows.where(rows.held_back)
    fitted = inner.where(~inner.limiting)
    badge, inside = fitted_badge(inner, level, confidence)
    called_inside = np.array(badge.calibrator.badges(model_inputs(inner.values))) == REMEMBERED
    called_inside[~inner.limiting] = inside.badges == REMEMBERED
    alone, alone_inside = plain(inner, level, confidence)
    out = {
        "cross-fitted": shares(inner, called_inside, badge.remembered.level, len(fitted.right))
        | {"alone": shares(inner, alone_inside, alone.remembered.level, len(fitted.right))}
    }
    if len(held.right):
        called = np.array(badge.calibrator.badges(model_inputs(held.values))) == REMEMBERED
        by_itself = np.array(alone.badges(model_inputs(held.values)[:, :1])) == REMEMBERED
        out["held back"] = shares(held, called, badge.remembered.level, len(fitted.right)) | {
            "alone": shares(held, by_itself, alone.remembered.level, len(fitted.right))
        }
    return out


def fitted_badge(rows: Rows, level: float, confidence: float, seed: int = 0) -> tuple[Badge, CrossFit]:
    """The badge of some rows, with the limit tested on all of them that are about invented names."""
    fitted = rows.where(~rows.limiting)
    return fit_badge(
        fitted.values,
        fitted.right,
        fitted.groups.tolist(),
        level,
        confidence,
        people=fitted.people.tolist(),
        more_invented=rows.values[rows.limiting],
        seed=seed,
    )


def plain(rows: Rows, level: float, confidence: float) -> tuple[Calibrator, np.ndarray]:
    """A threshold on the log-probability of the answer alone, and which of the rows pass it, out of fold."""
    x, given = model_inputs(rows.values)[:, :1], rows.groups != "invented"
    found = cross_fit(
        x[given], rows.right[given], people=rows.people[given].tolist(), level=level, confidence=confidence
    )
    called = np.array(found.calibrator.badges(x)) == REMEMBERED
    called[given] = found.badges == REMEMBERED
    return found.calibrator, called


def shares(rows: Rows, called: np.ndarray, stated: float, fitted_on: int) -> dict[str, Any]:
    """Precision and coverage of the answers called so, and how many outsiders and invented names are among them."""
    given = rows.groups != "invented"
    n, right = int((called & given).sum()), int((called & given & rows.right).sum())
    by_kind = {kind: [int(called[rows.groups == kind].sum()), int((rows.groups == kind).sum())] for kind in KINDS}
    known = rows.groups == "known"
    return {
        "stated": stated,
        "right": right,
        "called": n,
        "precision": right / n if n else None,
        "coverage": right / max(1, int(rows.right[given].sum())),
        "known coverage": int((called & known & rows.right).sum()) / max(1, int(rows.right[known].sum())),
        "accuracy": float(rows.right[known].mean()),
        **by_kind,
        "fitted on": fitted_on,
    }


def honesty(rows: Rows, level: float, confidence: float, n_splits: int) -> dict[str, Any]:
    """Fit on one half of the people and measure on the other, over random splits."""
    people = np.unique(rows.people)
    out: dict[str, Any] = {"fits": 0, "holds": 0, "refuted": 0, "stated": [], "measured": []}
    out |= {kind: {"holds": 0, "refuted": 0, "measured": [], "bounds": []} for kind in KINDS[1:]}
    for split in range(n_splits):
        chosen = set(np.random.default_rng((split, 51)).permutation(people)[: len(people) // 2].tolist())
        half = np.array([name in chosen for name in rows.people])
        badge, _ = fitted_badge(rows.where(half), level, confidence, split)
        limits(out, badge, rows.where(~half))
        two = rows.where(~half & (rows.groups != "invented"))
        called = np.array(badge.calibrator.badges(model_inputs(two.values))) == REMEMBERED
        n, wrong = int(called.sum()), int((called & ~two.right).sum())
        stated, measured = badge.remembered.level, 1 - wrong / n if n else 1.0
        out["fits"] += 1
        out["holds"] += int(measured >= stated)
        out["refuted"] += int(wrong > 0 and 1 - bdtr(wrong - 1, n, 1 - stated) < REFUTED)
        out["stated"].append(round(stated, 4))
        out["measured"].append(round(measured, 4))
    return out


def limits(out: dict[str, Any], badge: Badge, rows: Rows) -> None:
    """Count whether what is guaranteed of names outside the text holds on these rows."""
    called = np.array(badge.calibrator.badges(model_inputs(rows.values))) == REMEMBERED
    for limit in badge.calibrator.outside:
        own = called[rows.groups == limit.group]
        n, k, found = len(own), int(own.sum()), out[limit.group]
        found["holds"] += int(k <= limit.bound * n)
        found["refuted"] += int(k > 0 and 1 - bdtr(k - 1, n, limit.bound) < REFUTED)
        found["measured"].append(round(k / n, 4))
        found["bounds"].append(round(limit.bound, 4))


def line(name: str, found: dict[str, Any]) -> str:
    """One line of the table."""

    def percent(share: float | None) -> str:
        return "–" if share is None else f"{100 * share:.1f}"

    rest = [percent(found[kind][0] / found[kind][1]) if found[kind][1] else "–" for kind in KINDS[1:]]
    alone = found["alone"]
    return (
        f"{name:48} {percent(found['stated']):>7} {percent(found['precision']):>7} {percent(found['coverage']):>7} "
        f"{percent(found['known coverage']):>7} "
        f"{rest[0]:>8} {rest[1]:>8} | {percent(alone['precision']):>7} {percent(alone['coverage']):>7}"
    )


if __name__ == "__main__":
    main()
