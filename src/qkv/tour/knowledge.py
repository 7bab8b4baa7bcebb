"""Tour chapter on knowledge: train on 300 people, calibrate the badge, and ask about known and invented names."""

from __future__ import annotations

import math
import statistics
import tempfile
from pathlib import Path

from qkv.errors import with_full_stop
from qkv.knowledge.answer import NO_ANSWER, ask
from qkv.knowledge.confidence.calibration import trust
from qkv.knowledge.datasets.templates import biographies, question_text, questions
from qkv.knowledge.evaluation import evaluate
from qkv.knowledge.studies.setup import StudySetup, pretrain_cloze, sample_people, training_and_held_out_questions
from qkv.train.recipes import PREDICT_TITLE_FRACTION
from qkv.viz.html_report import Chapter, Picture
from qkv.viz.plots.knowledge import heads, reliability
from qkv.viz.theme import figure_svg

SETUP = StudySetup(people=300, exposures=60, predict_title_fraction=PREDICT_TITLE_FRACTION)
N_SAMPLES = 4
LEVEL = 0.9  # of “remembered”; with so few people to fit on, 95 % could not be guaranteed


def remembering() -> Chapter:
    """Pretrain on people of the shipped table, score, calibrate the badge, and ask about known and invented names."""
    facts, others = sample_people(SETUP.people, seed=0)
    asked, held_out = training_and_held_out_questions(facts, seed=0)
    texts = biographies(facts, 1, title=True).texts
    with tempfile.TemporaryDirectory() as folder:
        run = pretrain_cloze(Path(folder, "run"), texts, asked, SETUP, seed=0)
        scores = evaluate(run, held_out, training=asked)
        outside = questions(others.sample(len(held_out)))
        found = trust(run, held_out, outside, n_samples=N_SAMPLES, level=LEVEL, text=texts)
        right = {row["question"]: row for row in found.rows() if row["seen"] and row["right"]}
        known = ask(run, max(right, key=lambda question: right[question]["p_right"]), n_samples=N_SAMPLES)
        invented = [ask(run, question_text(name), n_samples=N_SAMPLES) for name in facts.invented_names(3, seed=1)]
    parameters = sum(p.numel() for p in run.model.parameters())
    answers = "; ".join(f"{each.name}: {each.answer or NO_ANSWER} ({each.badge or 'no badge'})" for each in invented)
    medians = {
        seen: statistics.median(math.exp(row["log_probability"]) for row in found.rows() if row["seen"] is seen)
        for seen in (True, False)
    }
    return Chapter(
        "What a model remembers, and what it makes up",
        (
            f"A model of {parameters:,} parameters is trained on cloze examples from {len(texts)} short biographies of people in "
            f"Pantheon 1.0, such as “{texts[0]}” Questions about half of the people are mixed in; it is scored on questions about the "
            "other half.",
            scores,
            f"It also answers questions about people who are not in the text. The median probability of its answers is "
            f"{medians[True]:.2f} for {found.known} questions about people in the text, and {medians[False]:.2f} for {found.unknown} "
            "about others. Some training examples ask for the name too, so that the model's own probabilities show whether it knows a name. A badge is fitted on these "
            "people, and on names made of parts of two known ones; each person is judged by a fit without them.",
            found,
            Picture(
                figure_svg(reliability(found)),
                "Left: stated probabilities against the share of right answers. Right: the answers of each badge.",
                "qkv trust RUN --known known.tsv --unknown unknown.tsv --plot trust.svg",
            ),
            "A person in the text, about whom there was no training question:",
            known,
            Picture(
                figure_svg(heads(known)),
                "Attention of each head from the last token of the question to the name.",
                f'qkv ask RUN "{known.question}" --plot heads.svg',
            ),
            with_full_stop(f"Invented names, made of parts of names in the text: {answers}"),
            invented[0],
        ),
    )
