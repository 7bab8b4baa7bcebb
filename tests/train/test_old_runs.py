"""Conversion of old config.json files: every name that is mapped to is a field of today."""

import pytest

from qkv.model.config import ModelConfig
from qkv.train import old_runs
from qkv.train.recipes import field_names
from qkv.train.settings import TrainSettings


@pytest.mark.parametrize(
    ("table", "cls"), [(old_runs.MODEL_FIELDS, ModelConfig), (old_runs.SETTINGS_FIELDS, TrainSettings)]
)
def test_old_names_become_fields_of_today_and_none_is_both(table, cls):
    fields = set(field_names(cls))
    assert set(table.values()) <= fields and not set(table) & fields
    assert len(set(table.values())) == len(table)


@pytest.mark.parametrize(
    ("kind", "objective", "wanted"),
    [
        ("drills", "drill", ("cloze", "cloze", "cloze")),
        ("text", "span", ("text", "span", "custom")),
        ("questions", "next", ("questions", "next", "custom")),
        ("imported", "span", ("imported", "span", "custom")),
    ],
)
def test_objectives_data_kinds_and_the_recipe_are_converted(kind, objective, wanted):
    old = {"format": "qkv-1", "model": {"width": 8}, "settings": {"objective": objective}, "data": {"kind": kind}}
    new = old_runs.converted(old)
    assert (new["data"]["kind"], new["settings"]["objective"], new["recipe"]) == wanted
    assert new["model"] == {"d_model": 8} and old["model"] == {"width": 8}  # the argument is left alone
