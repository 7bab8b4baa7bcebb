"""What a real language model knows, and how well right answers and real names are told from wrong and invented ones.

    qkv models get smollm2 --out models/smollm2
    python benchmarks/language_model_knowledge.py models/smollm2 --answers answers/smollm2

Two sets of people of the shipped table are drawn by one seed before anything is looked at: those that signals and badge
are fitted on (`--fitted`), and those that everything is measured on (`--people`). Answers are appended to files in the
folder of `--answers`, so that a stopped measurement goes on, and a second one needs no forward pass.

Beside the badge stand, on the same answers: the log-probability of the answer, its entropy, and, with `--samples`,
semantic entropy (Kuhn et al. 2023; Farquhar et al. 2024) in its discrete form: answers are sampled at temperature 1,
those that name the same value are one meaning, and the entropy is that of the shares of the meanings. The last line is
JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from qkv.knowledge import pantheon
from qkv.knowledge.confidence.metrics import auroc
from qkv.knowledge.datasets.accepted_names import is_accepted
from qkv.knowledge.datasets.facts import Person
from qkv.knowledge.datasets.other_names import same_name
from qkv.knowledge.intervals import wilson_interval
from qkv.knowledge.language_models.answer_file import fingerprint, read_signals
from qkv.knowledge.language_models.badge import fit_model_badge
from qkv.knowledge.language_models.calibration import LOWER_IS_BETTER, measured
from qkv.knowledge.language_models.causal_model import CausalModel, open_causal_model
from qkv.knowledge.language_models.known_facts import questions_about, scored
from qkv.knowledge.language_models.name_probes import NameProbes, name_inputs, read_name_probes
from qkv.knowledge.language_models.prompts import Question, about, example_people
from qkv.knowledge.language_models.signals import MAX_ANSWER_TOKENS, SIGNALS, SignalReader, Signals, answer_text

SEED, INVENTED_SEED = 2024, 9
FIRST_FITTED = 1000  # the people measured on come first in the draw, and keep their places whatever is asked for


def draw() -> tuple[list[Person], list[Person]]:
    """The people to measure on, and the people to fit on: the first and the second thousand of one draw."""
    able = [person for person in pantheon() if person.name not in example_people()]
    order = np.random.default_rng(SEED).permutation(len(able))
    return [able[i] for i in order[:FIRST_FITTED]], [able[i] for i in order[FIRST_FITTED : 2 * FIRST_FITTED]]


def invented(people: list[Person], n: int) -> list[str]:
    """Names of nobody in the shipped table, made of parts of these people's names."""
    from qkv.knowledge.datasets.facts import Facts

    taken = {person.name for person in pantheon()}
    made = Facts(tuple(people)).invented_names(n + 50, INVENTED_SEED)
    return [name for name in made if name not in taken][:n]


def answers(model: CausalModel, asked: list[Question], path: Path) -> Signals:
    began = time.perf_counter()

    def progress(done: int, total: int) -> None:
        print(f"{path.name}: {done} of {total}, {time.perf_counter() - began:.0f} s", flush=True)

    return read_signals(model, asked, path=path, progress=progress)


def semantic_entropy(model: CausalModel, asked: list[Question], n_samples: int, path: Path) -> np.ndarray:
    """Entropy of the meanings of sampled answers, negated so that more is surer; kept in a file."""
    known = {}
    if path.is_file():
        known = {row["question"]: row["samples"] for row in map(json.loads, path.read_text().splitlines())}
    reader = SignalReader(model, asked[0].relation)
    missing = [question for question in asked if question.text not in known]
    for start in range(0, len(missing), 32):
        part = missing[start : start + 32]
        random = np.random.default_rng((SEED, start))
        prompts = [reader.prompt(question) for question in part]
        drawn = model.generate(prompts, MAX_ANSWER_TOKENS, sample=random, repeats=n_samples)
        with path.open("a") as file:
            for i, question in enumerate(part):
                texts = [answer_text(model, one.tokens) for one in drawn[i * n_samples : (i + 1) * n_samples]]
                known[question.text] = texts
                file.write(json.dumps({"question": question.text, "samples": texts}) + "\n")
        print(f"{path.name}: {start + len(part)} of {len(missing)}", flush=True)
    out = []
    for question in asked:
        meanings = [same_name(text.split(",")[0]) for text in known[question.text]]
        shares = np.array([meanings.count(meaning) for meaning in set(meanings)]) / len(meanings)
        out.append(float((shares * np.log(shares)).sum()))
    return np.array(out)


def measure(model: CausalModel, relation: str, options: argparse.Namespace) -> dict[str, object]:
    folder: Path = options.answers
    held_out, to_fit = draw()
    held_out, to_fit = held_out[: options.people], to_fit[: options.fitted]
    fit_on = answers(model, questions_about(to_fit, relation), folder / f"tune-{relation}.jsonl")
    found = answers(model, questions_about(held_out, relation), folder / f"final-{relation}.jsonl")
    wanted_fit, wanted = [getattr(p, relation) for p in to_fit], [getattr(p, relation) for p in held_out]
    groups_fit, groups = [], []
    if options.invented and relation == "city":
        for people, n, name, into in (
            (draw()[1], options.invented // 2, "tune", groups_fit),
            (draw()[0], options.invented, "final", groups),
        ):
            names = [about(each, relation) for each in invented(people, n)]
            into.append(answers(model, names, folder / f"{name}-inv-{relation}.jsonl"))
    fit_rows, fit_wanted = _joined(fit_on, wanted_fit, groups_fit)
    rows, row_wanted = _joined(found, wanted, groups)
    # Rates of answers count the whole table but all people who are asked about.
    drawn = {person.name for part in draw() for person in part}
    others = [getattr(person, relation) for person in pantheon() if person.name not in drawn]
    asked = frozenset(question.name for each in (fit_rows, rows) for question in each.questions)
    probes = read_name_probes(SignalReader(model, relation), len(to_fit), asked)
    settings = {"level": options.level, "confidence": 0.95, "seed": 0, "probes": probes}
    badge, fit = fit_model_badge(relation, fingerprint(model), fit_rows, fit_wanted, values=others, **settings)
    own, other = measured(badge, fit, fit_rows, fit_wanted), measured(badge, None, rows, row_wanted)
    # As a user would calibrate it on the people measured on: every person judged by a fit without them.
    again = fit_model_badge(relation, "", rows, row_wanted, values=others, **settings)
    crossed = measured(*again, rows, row_wanted)
    right = np.array([is_accepted(a, w, relation) for a, w in zip(found.answers, wanted, strict=True)])
    right_fit = np.array([is_accepted(a, w, relation) for a, w in zip(fit_on.answers, wanted_fit, strict=True)])
    result: dict[str, object] = {
        "people": len(right),
        "fitted_on": len(right_fit),
        "right": int(right.sum()),
        "auroc_right": {
            "badge, fitted on other people": other.quality("badge").auroc_right,
            "badge, fitted on other people, on these out of fold": own.quality("badge").auroc_right,
            "badge, cross-fitted": crossed.quality("badge").auroc_right,
            **{name: round(_auroc(found, name, right), 3) for name in SIGNALS},
        },
        "auroc_right_fitted_people": {name: round(_auroc(fit_on, name, right_fit), 3) for name in SIGNALS},
        "remembered": {
            "fitted on other people": _level(other),
            "cross-fitted": _level(crossed),
        },
        "groups": [group._asdict() for group in scored(found, wanted, relation, held_out).groups],
    }
    if groups:
        result["auroc_real"] = {
            "invented": int(sum(not each for each in row_wanted)),
            "badge, fitted on other people": other.quality("badge").auroc_seen,
            "probe of the name": real_names(probes, rows, row_wanted),
            **{name: other.quality(name).auroc_seen for name in SIGNALS},
        }
    if options.samples:
        some = questions_about(held_out[: options.sampled_people], relation)
        scores = semantic_entropy(model, some, options.samples, folder / f"samples-{relation}.jsonl")
        own_right = right[: len(some)]
        result["semantic_entropy"] = {
            "people": len(some),
            "samples": options.samples,
            "auroc_right": auroc(scores, own_right),
            "badge on the same people": auroc(badge.calibrator.scores(badge.inputs(found))[: len(some)], own_right),
            "log_probability on the same people": auroc(found.column("log_probability")[: len(some)], own_right),
        }
    return result


def real_names(probes: NameProbes, rows: Signals, wanted: list[str]) -> float:
    """AUROC of the probe for real names, among names of two words or more."""
    several = np.array([" " in question.name for question in rows.questions])
    scores = probes.real.score(name_inputs(rows.name_values, rows.middle_hidden))
    return auroc(scores[several], np.array([bool(each) for each in wanted])[several])


def _joined(found: Signals, wanted: list[str], more: list[Signals]) -> tuple[Signals, list[str]]:
    """Answers about real people, then those about invented names, of which nothing is expected."""
    parts = [found, *more]
    tuples = [
        sum((getattr(p, name) for p in parts), ()) for name in ("questions", "answers", "tokens", "ended", "first")
    ]
    values, hidden = (np.vstack([getattr(p, name) for p in parts]) for name in ("values", "hidden"))
    return Signals(*tuples, values, hidden), [*wanted, *[""] * sum(len(p.answers) for p in more)]


def _auroc(found: Signals, signal: str, right: np.ndarray) -> float:
    return auroc(found.column(signal) * (-1 if signal in LOWER_IS_BETTER else 1), right)


def _level(found: object) -> dict[str, object]:
    n, right = found.n_remembered, found.n_right  # type: ignore[attr-defined]
    return {
        "wanted": found.level,  # type: ignore[attr-defined]
        "stated": found.stated_level,  # type: ignore[attr-defined]
        "called": n,
        "right": right,
        "interval": wilson_interval(right, n) if n else None,
        "coverage": found.coverage,  # type: ignore[attr-defined]
        "invented_called": found.counts["remembered"]["invented"],  # type: ignore[attr-defined]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--answers", type=Path, required=True, help="folder of the files of answers")
    parser.add_argument("--relations", nargs="+", default=["city", "country"])
    parser.add_argument("--people", type=int, default=1000, help="people to measure on, at most 1000")
    parser.add_argument("--fitted", type=int, default=384, help="other people to fit on, at most 1000")
    parser.add_argument(
        "--invented", type=int, default=256, help="invented names to measure on; half as many to fit on"
    )
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--samples", type=int, default=0, help="sampled answers a question, for semantic entropy")
    parser.add_argument("--sampled-people", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.answers.mkdir(parents=True, exist_ok=True)
    model = open_causal_model(options.model)
    found = {relation: measure(model, relation, options) for relation in options.relations}
    print(json.dumps({"model": str(options.model.name), "seed": SEED, **found}))


if __name__ == "__main__":
    main()
