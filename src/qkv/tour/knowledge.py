"""The tour's chapter on knowledge: a model reads of three hundred people, and is asked about known and invented names."""

from __future__ import annotations

import tempfile
from pathlib import Path

from qkv.knowledge.answering.answer import ask
from qkv.knowledge.confidence.calibration import trust
from qkv.knowledge.datasets.templates import biographies, questions, worded
from qkv.knowledge.evaluation import evaluate
from qkv.knowledge.studies.setup import StudySetup, drilled, halves, people
from qkv.train.recipes import PREDICT_TITLE_FRACTION
from qkv.viz.html_report import Chapter, Picture
from qkv.viz.plots.knowledge import heads, reliability
from qkv.viz.theme import svg

SCHOOL = StudySetup(people=300, exposures=60, named=PREDICT_TITLE_FRACTION)
SAMPLES = 4
LEVEL = 0.9  # what “remembered” promises; with few people to fit on, 95 % would leave little to say


def remembering() -> Chapter:
    """Pretrain on people of the shipped table, score, measure the badge, and ask about a known and an invented name."""
    facts, strangers = people(SCHOOL.people, seed=0)
    asked, held = halves(facts, seed=0)
    texts = biographies(facts, 1, title=True).texts
    with tempfile.TemporaryDirectory() as folder:
        run = drilled(Path(folder, "run"), texts, asked, SCHOOL, seed=0)
        scores = evaluate(run, held, training=asked)
        found = trust(run, held, questions(strangers.sample(len(held))), samples=SAMPLES, level=LEVEL)
        said = {row["question"]: row for row in found.rows() if row["seen"] and row["right"]}
        known = ask(run, max(said, key=lambda question: said[question]["chance"]), samples=SAMPLES)
        invented = [ask(run, worded(name), samples=SAMPLES) for name in facts.invented(3, seed=1)]
    parameters = sum(p.numel() for p in run.model.parameters())
    words = "; ".join(f"{each.name}: {each.answer} ({each.badge})" for each in invented)
    return Chapter(
        "What a model remembers, and what it makes up",
        (
            f"A model of {parameters:,} parameters is drilled on {len(texts)} short biographies of people in Pantheon 1.0, such as "
            f"“{texts[0]}” Among the drills are questions on half of the people; it is asked about the other half.",
            scores,
            f"It answers questions on {len(held)} people it never read of just as fluently. Some drills asked for the name too, so "
            "that its own numbers tell whose name it knows. A badge is fitted on half of the people, and on names put together "
            "from two known ones, and measured on the others.",
            found,
            Picture(
                svg(reliability(found)),
                "Left: stated chances against the share that was right. Right: what each badge was given to.",
                "qkv trust RUN --known known.tsv --unknown unknown.tsv --plot trust.svg",
            ),
            "Somebody it read of, though no question in training was about them:",
            known,
            Picture(
                svg(heads(known)),
                "Where the answer begins, some heads look back at the name.",
                f'qkv ask RUN "{known.question}" --plot heads.svg',
            ),
            f"Names that nobody has, put together from names that were read: {words}.",
            invented[0],
        ),
    )
