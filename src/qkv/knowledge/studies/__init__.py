"""study: resumable experiments on facts, each with one table and one figure."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.knowledge.datasets.facts import Facts
    from qkv.knowledge.language_models.causal_model import CausalModel
    from qkv.knowledge.studies.experiment import CellCallback, Study


class StudyEntry(NamedTuple):
    """The module of a study, and its number of seeds if none is given."""

    module: str
    seeds: int


STUDIES = {
    "extraction": StudyEntry("extraction", 1),
    "capacity": StudyEntry("capacity", 1),
    "variants": StudyEntry("attention_variants", 3),
    "ablation": StudyEntry("pretraining_ablation", 1),
    "rare_facts": StudyEntry("rare_facts", 1),
    "considerations": StudyEntry("considerations", 1),
}


def study(
    name: str,
    out: str | Path,
    *,
    seeds: int = 0,
    minutes: float = math.inf,
    people: int = 0,
    callback: CellCallback | None = None,
    model: CausalModel | str | Path | None = None,
    facts: Facts | None = None,
    relation: str = "city",
) -> Study:
    """Run a study, or continue one that was stopped.

    A study consists of cells: one training run and its measurement each; of a language model, a few people each. The
    result of each cell is a file in the folder, so that a stopped study continues with the next cell, and a stopped run
    from its last checkpoint.

    Args:
        name: "extraction", "capacity", "variants", "ablation", "rare_facts", or "considerations" of a language model.
        out: Folder of the study.
        seeds: Seeds of each cell; 0 for the default of the study.
        minutes: No cell is started after this time.
        people: People to train on, or to ask about; 0 for the default of the study.
        callback: Called before each cell with its name, its index and the number of cells.
        model: For "considerations": a causal Hugging Face model, or its folder.
        facts: For "considerations": facts about people; the shipped table if None.
        relation: For "considerations": what to ask for: "city", "country", "year" or "occupation".

    Returns:
        The table of the study, with remarks. It is incomplete if the time was not enough.

    Raises:
        QkvError: There is no study of this name; a model is missing, or given to a study that trains its own; a number
            is negative; the folder holds cells with other settings, or a study.json or figure that this study did not
            write; another process writes to it; or there was no time for a single cell.

    Example:
        Training takes minutes, so this is not run as a test::

            found = qkv.knowledge.study("rare_facts", "studies/rare_facts", minutes=30)
            found.rows, found.remarks, found.complete
    """
    request = f"the study {name!r}"
    if name not in STUDIES:
        raise QkvError(request, "there is none of this name", f"Choose from {', '.join(STUDIES)}")
    if seeds < 0 or people < 0 or not minutes > 0:
        raise QkvError(
            request, f"seeds, people and minutes are {seeds}, {people} and {minutes}", "Give positive numbers"
        )
    # Imported on use: the studies need torch, and the command line takes the names of the studies from this module.
    module = importlib.import_module(f"qkv.knowledge.studies.{STUDIES[name].module}")
    importlib.import_module("qkv.knowledge.studies.study_files").check_files_of_study(out, name)
    given = (out, seeds or STUDIES[name].seeds, minutes, people, callback)
    if name == "considerations":
        return module.study(*given, model, facts, relation)
    if model is not None:
        raise QkvError(
            request, "it trains models of its own", "Leave out the model, or choose the study considerations"
        )
    return module.study(*given)
