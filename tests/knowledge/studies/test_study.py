"""study: the list of studies and refusals."""

import importlib

import pytest

from qkv.errors import QkvError
from qkv.knowledge import study
from qkv.knowledge.studies import STUDIES


def test_every_listed_study_has_a_module():
    assert set(STUDIES) == {"extraction", "capacity", "variants", "ablation", "rare_facts", "considerations"}
    for entry in STUDIES.values():
        assert callable(importlib.import_module(f"qkv.knowledge.studies.{entry.module}").study) and entry.seeds >= 1


@pytest.mark.parametrize(
    ("name", "options"),
    [("nothing", {}), ("extraction", {"seeds": -1}), ("extraction", {"people": -1}), ("extraction", {"minutes": 0})],
)
def test_unknown_studies_and_negative_numbers_are_refused(name, options, tmp_path):
    with pytest.raises(QkvError, match="the study"):
        study(name, tmp_path, **options)
