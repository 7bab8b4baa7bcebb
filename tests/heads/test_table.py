import csv
import io
import itertools
import json

import pytest
import torch
from families import CONFIGS, ENCODERS, text, tiny, tokenizer
from marks import spread

from qkv.errors import QkvError
from qkv.heads.ablation import mean_outputs, token_losses
from qkv.heads.attention_model import from_transformers
from qkv.heads.table import repeated_ids


@pytest.mark.parametrize("family", spread(list(CONFIGS), 4))
def test_the_table_has_a_row_for_every_head(family):
    model = from_transformers(tiny(family), tokenizer(), name=family)
    steps = []
    found = model.table(text(100), effect_tokens=20, progress=lambda done, total: steps.append((done, total)))
    assert [(r.layer, r.head) for r in found] == [(i, j) for i in range(3) for j in range(4)]
    assert found.tokens == 100 and found.windows == 2 and found.effect_tokens == 20
    assert found.repeated is (family not in ENCODERS)
    assert steps[-1][0] == steps[-1][1] and all(a <= b for (a, _), (b, _) in itertools.pairwise(steps))
    assert all(0 <= r.score <= 1 + 1e-6 and 1 <= r.effective <= 64 for r in found)
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert document["rows"][5]["kind"] == found.rows[5].kind
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert len(rows) == 12 and float(rows[5]["effect"]) == found.rows[5].effect
    assert len(found.records()) == 12
    assert "judged on repeated random tokens" in found.card().note or family in ENCODERS


@pytest.mark.parametrize("removal", ["mean", "zero"])
def test_effects_are_those_of_removing_the_head(removal):
    model = from_transformers(tiny("llama"), tokenizer())
    found = model.table(text(40), window=20, effect_tokens=16, removal=removal)
    windows = model.windows(text(40), 20)
    ids, means = windows[0][None, :16], mean_outputs(model, torch.stack(windows))
    alone = token_losses(model, ids, [(1, 1)], by=removal, means=means).mean() - token_losses(model, ids).mean()
    assert found.rows[5].effect == pytest.approx(float(alone), abs=1e-5)
    twice = repeated_ids(model, 0)
    again = token_losses(model, twice, [(1, 1)], by=removal) - token_losses(model, twice)
    assert found.rows[5].effect_repeated == pytest.approx(float(again[:, -(twice.shape[1] // 2) :].mean()), abs=1e-5)
    said = {"mean": "replaced by its mean over all tokens", "zero": "set to zero"}[removal]
    assert f"nats per token on 16 tokens, with the head's output {said}" in " ".join(str(found).split())


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert"])
def test_a_model_in_double_precision_has_the_same_table(family):
    single = from_transformers(tiny(family), tokenizer()).table(text(40), effect_tokens=16)
    double = from_transformers(tiny(family).double(), tokenizer()).table(text(40), effect_tokens=16)
    for one, two in zip(single, double, strict=True):
        assert one.kind == two.kind
        assert (one.effect, one.radius, one.copying) == pytest.approx((two.effect, two.radius, two.copying), abs=2e-3)
    assert single.rows != double.rows


def test_what_is_no_text_is_refused():
    model = from_transformers(tiny("gpt2"), tokenizer())
    for odd in (None, 5, [1, 2]):
        with pytest.raises(QkvError, match="Give one text or a list of texts"):
            model.table(odd)


def test_writing_columns_are_empty_where_the_matrices_are_not_found(monkeypatch):
    def refuse(model):
        raise QkvError("the output matrices", "the values are no affine function", "Measure something else")

    monkeypatch.setattr("qkv.heads.table.output_circuits", refuse)
    found = from_transformers(tiny("llama"), tokenizer()).table(text(20), effect_tokens=4)
    assert all((r.copying, r.rank, r.subspace) == (None, None, None) for r in found.rows)
    assert "copying, rank and subspace are empty" in " ".join(str(found).split())
    assert json.dumps(found.to_json(), allow_nan=False)
    assert next(csv.DictReader(io.StringIO(found.to_csv())))["copying"] == ""
