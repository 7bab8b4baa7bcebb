import pytest
import torch
from families import CONFIGS, ENCODERS, text, tiny, tokenizer
from marks import spread

from qkv.errors import QkvError
from qkv.heads.attention_model import from_transformers
from qkv.heads.rounding import RoundingParts


@pytest.mark.parametrize("family", spread(list(CONFIGS), 4))
def test_a_survey_agrees_with_capture_and_table(family):
    model = from_transformers(tiny(family), tokenizer(), name=family)
    words = text(40)
    found, seen = model.survey(words), model.capture(words)
    assert found.tokens == seen.tokens and found.causal is (family not in ENCODERS)
    for layer, call in enumerate(seen.calls):
        for head in range(4):
            assert torch.allclose(found.weights(layer, head), call.weights[0, head], atol=1e-6)
            scores = call.scores()[0, head]
            assert torch.equal(torch.isfinite(found.scores(layer, head)), torch.isfinite(scores))
    table = model.table(words, effect_tokens=8)
    for row, one in zip(table, found.heads, strict=True):
        assert (row.layer, row.head, row.kind) == (one.layer, one.head, one.kind)
        mine = (one.score, one.effective, one.margin, one.radius, one.reads)
        assert (row.score, row.effective, row.margin, row.radius, row.reads) == pytest.approx(mine, abs=1e-6)


@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt_oss", "bert"])
def test_rounding_one_head_is_rounding_its_layer(family):
    model = from_transformers(tiny(family), tokenizer())
    found, seen = model.survey(text(30)), model.capture(text(30))
    parts = RoundingParts(3, 4, (4, 2), "channel", exact_queries=0)
    for call in seen.calls:
        parts.add(call)
    whole = {(r.layer, r.head, r.bits): r for r in parts.rows()}
    for layer, head in ((0, 0), (1, 3), (2, 2)):
        for row in found.rounding(layer, head, (4, 2)):
            same = whole[layer, head, row.bits]
            assert row.measured == pytest.approx(same.measured, rel=1e-4)
            assert (row.survives, row.certified) == pytest.approx((same.survives, same.certified), abs=0.04)


def test_the_small_picture_is_the_largest_weight_of_each_part():
    model = from_transformers(tiny("gpt2"), tokenizer())
    found = model.survey(text(48))
    weights = found.weights(1, 2)
    parts = weights.reshape(24, 2, 24, 2).amax((1, 3))
    assert found.pictures.shape == (3, 4, 24, 24)
    assert torch.equal(found.pictures[1, 2], (255 * parts).round().to(torch.uint8))


def test_what_does_not_fit_is_refused():
    model = from_transformers(tiny("gpt2"), tokenizer(), name="mine")
    for words, problem in ((text(65), "65 tokens"), ("w3", "one token")):
        with pytest.raises(QkvError, match=problem):
            model.survey(words)
    found = model.survey(text(5))
    for call in (found.weights, found.scores, found.summary):
        with pytest.raises(QkvError, match="mine"):
            call(3, 0)
    with pytest.raises(QkvError, match="bits"):
        found.rounding(0, 0, (9,))
    assert "gpt2" not in str(found) and "mine on 5 tokens" in str(found)
