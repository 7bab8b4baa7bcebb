"""No change of keys within the radius brings another item on top; a slightly larger one can."""

import statistics

import pytest
import torch
from families import CONFIGS, text, tiny, tokenizer

from qkv.heads.attention_model import from_transformers
from qkv.heads.firmness import FirmnessParts


def test_the_radius_holds_and_is_sharp():
    model = from_transformers(tiny("llama"), tokenizer())
    call = model.capture(text(20)).calls[1]
    scores = call.scores()[0].double()
    generator = torch.Generator().manual_seed(0)
    for head in range(4):
        for row in range(4, 20):
            query = call.query[0, head, row].double() * call.scaling
            keys = call.key[0, head // 2].double()[: row + 1]
            first, second = scores[head, row, : row + 1].topk(2).indices.tolist()
            radius = float(scores[head, row, first] - scores[head, row, second]) / (2 * float(query.norm()))
            for _ in range(20):
                moves = torch.randn(keys.shape, generator=generator, dtype=torch.float64)
                moves *= 0.999 * radius / moves.norm(dim=1, keepdim=True)
                assert int(((keys + moves) @ query).argmax()) == first
            worst = keys.clone()
            worst[first] -= 1.001 * radius * query / query.norm()
            worst[second] += 1.001 * radius * query / query.norm()
            assert int((worst @ query).argmax()) != first


def test_medians_over_windows():
    model = from_transformers(tiny("llama"), tokenizer())
    parts, margins = FirmnessParts(3, 4), []
    for seed in (0, 1):
        for call in model.capture(text(20, seed)).calls:
            scores = call.scores()[0]
            parts.add(call, scores)
            if call.layer == 1:
                top = scores[2, 4:].topk(2).values.double()
                margins.append(top[:, 0] - top[:, 1])
    found = parts.result()
    assert found.margin.shape == (3, 4)
    assert float(found.margin[1, 2]) == float(torch.cat(margins).quantile(0.5))
    assert ((found.reads >= 0) & (found.reads <= 1)).all()


@pytest.mark.parametrize("family", CONFIGS)
def test_every_family_certifies_its_top_items(family):
    model = from_transformers(tiny(family), tokenizer())
    made = model.head(1, 3).radius_certificates(text(100))
    assert len(made) == 2 and [len(one.data["keys"]) for one in made] == [64, 36]
    for one, ids in zip(made, model.windows(text(100)), strict=True):
        assert one.verify(), one.verify().why
        calls = []
        model.run(ids[None], calls.append)
        weights = calls[1].weights[0, 3]
        assert len(one.data["items"]) > 20
        for item, first, last in zip(one.data["items"], one.data["first"], one.data["last"], strict=True):
            row = weights[int(last)] if model.causal else None
            assert row is None or ((row[: int(first)] == 0).all() and int(row.argmax()) == int(item))


def test_the_radii_of_the_table_are_below_the_true_ones_and_near_them():
    model = from_transformers(tiny("llama"), tokenizer())
    call = model.capture(text(20)).calls[1]
    parts = FirmnessParts(3, 4)
    for one in model.capture(text(20)).calls:
        parts.add(one, one.scores()[0])
    keys, queries = call.key[0, 1].double(), call.query[0, 2].double()
    true = []
    for row in range(4, 20):
        top = (keys[: row + 1] @ queries[row]).topk(2).values
        true.append(float(top[0] - top[1]) / (2 * float(queries[row].norm())))
    median = statistics.median(true) / float(keys.norm(dim=1).quantile(0.5))
    assert median * (1 - 1e-9) <= float(parts.result().radius[1, 2]) <= median * (1 + 1e-15)
