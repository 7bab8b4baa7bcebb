"""Facts, training on them, answers, scores, calibrated confidence, and studies.

Reading order, which is the order of imports (each part imports only parts before it):

1. intervals: confidence intervals of proportions and means.
2. datasets: facts about people and things, the shipped table, texts and questions by templates, files of them.
3. training: texts and questions in one run; texts without some people.
4. answering: torch-free model, encoding of questions, beam search, attention on the name.
5. evaluation: `evaluate`, exact-match accuracy beside baselines.
6. confidence: features of an answer, logistic regression, badge, metrics, and `trust`, which calibrates the badge.
7. answer: `ask`, an answer with its badge. It imports neither torch nor SciPy.
8. language_models: the same of Hugging Face models: `ask`, `evaluate`, `trust`, with signals and a badge of their own.
9. studies: `study`, resumable experiments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkv._lazy import lazily

if TYPE_CHECKING:  # what editors and mypy see; at run time the same names are imported when they are first used
    from qkv.knowledge.answer import Answer as Answer
    from qkv.knowledge.answer import ask as ask
    from qkv.knowledge.confidence.badge import Badge as Badge
    from qkv.knowledge.confidence.calibration import Trust as Trust
    from qkv.knowledge.confidence.calibration import trust as trust
    from qkv.knowledge.datasets.examples import write_example as write_example
    from qkv.knowledge.datasets.fact_files import FactFiles as FactFiles
    from qkv.knowledge.datasets.fact_files import write_facts as write_facts
    from qkv.knowledge.datasets.fact_tables import load_facts as load_facts
    from qkv.knowledge.datasets.facts import Facts as Facts
    from qkv.knowledge.datasets.facts import Person as Person
    from qkv.knowledge.datasets.facts import Questions as Questions
    from qkv.knowledge.datasets.facts import Texts as Texts
    from qkv.knowledge.datasets.facts import load_questions as load_questions
    from qkv.knowledge.datasets.facts import load_texts as load_texts
    from qkv.knowledge.datasets.pantheon import pantheon as pantheon
    from qkv.knowledge.datasets.templates import biographies as biographies
    from qkv.knowledge.datasets.templates import questions as questions
    from qkv.knowledge.evaluation import Scores as Scores
    from qkv.knowledge.evaluation import evaluate as evaluate
    from qkv.knowledge.studies import study as study
    from qkv.knowledge.studies.experiment import Study as Study
    from qkv.knowledge.training.mixed_run import train_mixed as train_mixed
    from qkv.knowledge.training.text_filter import drop_texts_about as drop_texts_about
else:
    _HOME = {
        "Facts": "datasets.facts",
        "Person": "datasets.facts",
        "Questions": "datasets.facts",
        "Texts": "datasets.facts",
        "load_facts": "datasets.fact_tables",
        "FactFiles": "datasets.fact_files",
        "write_facts": "datasets.fact_files",
        "write_example": "datasets.examples",
        "load_questions": "datasets.facts",
        "load_texts": "datasets.facts",
        "pantheon": "datasets.pantheon",
        "biographies": "datasets.templates",
        "questions": "datasets.templates",
        "train_mixed": "training.mixed_run",
        "drop_texts_about": "training.text_filter",
        "ask": "answer",
        "Answer": "answer",
        "Badge": "confidence.badge",
        "evaluate": "evaluation",
        "Scores": "evaluation",
        "trust": "confidence.calibration",
        "Trust": "confidence.calibration",
        "study": "studies",
        "Study": "studies.experiment",
    }
    __getattr__, __dir__, __all__ = lazily(__name__, _HOME)
