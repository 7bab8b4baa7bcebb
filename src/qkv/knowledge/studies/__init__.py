"""The studies: experiments on facts, resumable, with one table and one picture each."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import TYPE_CHECKING

from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.knowledge.studies.experiment import Study, Watch

STUDIES = {"extraction": 1, "capacity": 1, "variants": 3, "ablation": 1, "rare_facts": 1}
"""The studies by name, and the number of seeds that each takes by default."""
_MODULES = {"variants": "attention_variants", "ablation": "pretraining_ablation"}


def study(
    name: str,
    out: str | Path,
    *,
    seeds: int = 0,
    minutes: float = math.inf,
    people: int = 0,
    callback: Watch | None = None,
) -> Study:
    """Run a study in a folder, or go on with it; 0 seeds or people stand for the study's own numbers."""
    asked = f"the study {name!r}"
    if name not in STUDIES:
        raise QkvError(asked, "there is none of this name", f"Choose from {', '.join(STUDIES)}")
    if seeds < 0 or people < 0 or not minutes > 0:
        raise QkvError(asked, f"seeds, people and minutes are {seeds}, {people} and {minutes}", "Give positive numbers")
    module = importlib.import_module(f"qkv.knowledge.studies.{_MODULES.get(name, name)}")
    return module.study(out, seeds or STUDIES[name], minutes, people, callback)
