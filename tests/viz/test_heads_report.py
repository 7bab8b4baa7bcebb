import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")
sys.path.insert(0, str(Path(__file__).parents[1] / "heads"))
from families import text, tiny, tokenizer

from qkv.heads.attention_model import from_transformers
from qkv.heads.example_model import TEXT, example
from qkv.viz.heads_report import KIND_COLOURS, table_page, view_page


def self_contained(page):
    assert page.startswith("<!doctype html>") and "<script" not in page
    assert not [part for part in ("http://", "https://", "src=", "@import") if part in page]
    return page


def test_the_page_of_the_table_has_every_head_in_the_colour_of_its_kind():
    table = from_transformers(tiny("gpt2"), tokenizer(), name="<mine>").table(text(30), effect_tokens=12)
    page = self_contained(table_page(table))
    assert page.count("<title>") == 1 + len(table) and "&lt;mine&gt;" in page and "<mine>" not in page
    for row in table:
        assert f"{row.layer}.{row.head}: {row.kind} ({row.score:.2f}), effect {row.effect:+.4f}" in page
        assert KIND_COLOURS[row.kind] in page


def test_the_page_of_a_head_states_its_numbers():
    view = example().head(1, 0).view(TEXT, token=11, bits=2)
    page = self_contained(view_page(view))
    assert page.count('class="row') == len(view.tokens) == 12
    assert (
        '“11 cat” looks most at “3 saw”, with weight <span class="whole">1 − ' in page and "With keys of 2 bits" in page
    )
    assert "induction: 1.00 of its weight" in page and "A hardened query:" in page
    without = view_page(example().head(1, 0).view(TEXT, token=0, harden=False))
    assert "hardened query:" not in without and "“0 [start]” looks most at “0 [start]”, with weight 1.000." in without
