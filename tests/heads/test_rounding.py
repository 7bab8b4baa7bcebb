"""Rounded keys: measured against the model itself, predictions against drawn errors, proofs against the worst error."""

import csv
import io
import json
import math

import pytest
import torch
from families import CONFIGS, ENCODERS, text, tiny, tokenizer
from marks import some, spread

from qkv.errors import QkvError
from qkv.heads.attention_model import from_transformers
from qkv.heads.divergence import OwnChances
from qkv.heads.key_grid import key_grid
from qkv.heads.rounding import SLACK, RoundingParts, _Queries, _Rivals


def opened(family, seed=0):
    return from_transformers(tiny(family, seed), tokenizer(), name=family)


@pytest.mark.parametrize("family", spread(list(CONFIGS), 4))
def test_every_family(family):
    found = opened(family).rounding(text(30), (8, 4, 2), exact_queries=1)
    assert len(found) == 3 * 4 * 3 and found.bits == (8, 4, 2)
    assert (found.kl is None) is (family in ENCODERS)
    for row in found:
        assert row.certified <= row.survives <= 1 and 0 <= row.survives_predicted <= 1
        assert math.isfinite(row.predicted) and math.isfinite(row.measured)
        assert (row.method == "first order") is (row.exact_queries == 0)
    for one, two in ((8, 4), (4, 2)):
        means = [sum(r.measured for r in found if r.bits == b) for b in (one, two)]
        assert means[0] < means[1]
    json.dumps(found.to_json(), allow_nan=False)
    assert len(list(csv.DictReader(io.StringIO(found.to_csv())))) == len(found) == len(found.records())
    assert "rounded keys" in str(found)


@pytest.mark.parametrize("family", some(["gpt2", "llama", "gemma2", "gpt_oss", "bert"], ["llama", "bert"]))
@pytest.mark.parametrize("per", ["channel", "token"])
def test_the_measured_error_is_that_of_the_model_itself(family, per):
    """The first layer, run by transformers with rounded keys and without."""
    model, outputs = opened(family), []
    ids = model.windows(text(30))[0]

    def keep(layer, output):
        if layer == 0:
            outputs.append(output[0, 4:].double())
        return output

    model.run(ids[None], output=keep)
    model.run(ids[None], output=keep, keys=lambda _, k, v: (key_grid(k, 3, per).rounded(k), v))
    moved = ((outputs[1] - outputs[0]).square().sum((0, 2)) / outputs[0].square().sum((0, 2))).sqrt()
    found = [r.measured for r in model.rounding(text(30), 3, per=per) if r.layer == 0]
    assert found == pytest.approx(moved.tolist(), rel=1e-3)


def drawn_errors(call, bits, draws, seed=0):
    """E‖error‖² and survival by independent uniform errors of every entry that is no extreme, with a plain softmax."""
    generator = torch.Generator().manual_seed(seed)
    key, grid = call.key.double(), key_grid(call.key.double(), bits)
    free = (key > key.amin(-2, keepdim=True)) & (key < key.amax(-2, keepdim=True))
    scores = call.query.double() @ key.repeat_interleave(call.groups, 1).mT * call.scaling
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    value = call.value.double().repeat_interleave(call.groups, 1)
    own, top = (
        scores.masked_fill(hidden, -torch.inf).softmax(-1) @ value,
        scores.masked_fill(hidden, -torch.inf).argmax(-1),
    )
    square, stays = torch.zeros(own.shape[1:3], dtype=torch.float64), torch.zeros(own.shape[1:3], dtype=torch.float64)
    for _ in range(draws):
        moved = key + free * grid.step * (torch.rand(key.shape, generator=generator, dtype=torch.float64) - 0.5)
        scores = call.query.double() @ moved.repeat_interleave(call.groups, 1).mT * call.scaling
        scores = scores.masked_fill(hidden, -torch.inf)
        square += (scores.softmax(-1) @ value - own).square().sum(-1)[0] / draws
        stays += (scores.argmax(-1) == top)[0].double() / draws
    return square[:, 4:], stays[:, 4:]


def test_first_order_and_survival_agree_with_drawn_errors():
    call = opened("llama").capture(text(40)).calls[1]
    parts = RoundingParts(3, 4, (7,), "channel")
    parts.add(call)
    square, stays = drawn_errors(call, 7, 400)
    assert parts.sums["predicted"][0, 1].tolist() == pytest.approx(square.sum(-1).tolist(), rel=0.1)
    found = (parts.sums["survives_predicted"] / parts.sums["queries"])[0, 1].tolist()
    assert found == pytest.approx(stays.mean(-1).tolist(), abs=0.02)


def test_exact_moments_agree_with_drawn_errors_where_first_order_does_not():
    call = opened("llama").capture(text(40)).calls[1]
    exact, linear = RoundingParts(3, 4, (1,), "channel", 400), RoundingParts(3, 4, (1,), "channel", 0)
    exact.add(call)
    linear.add(call)
    square = drawn_errors(call, 1, 400)[0].sum(-1)
    assert (exact.sums["exact"][0, 1] > 10).all() and (linear.sums["exact"] == 0).all()
    assert exact.sums["predicted"][0, 1].tolist() == pytest.approx(square.tolist(), rel=0.1)
    assert (linear.sums["predicted"][0, 1] > 1.3 * square).all()
    sampled = RoundingParts(3, 4, (1,), "channel", 12, seed=1)
    sampled.add(call)
    assert sampled.sums["predicted"][0, 1].tolist() == pytest.approx(square.tolist(), rel=0.3)


@pytest.mark.parametrize(
    "family", some(["gpt2", "llama", "gemma2", "gpt_oss", "neox", "bert"], ["gpt2", "gpt_oss", "bert"])
)
@pytest.mark.parametrize("per", ["channel", "token"])
@pytest.mark.parametrize("seed", some(range(3), [0]))
def test_no_error_of_half_a_step_moves_a_certified_top_item(family, per, seed):
    """The worst error for each query: the top key against the query's signs, another key along them."""
    model = opened(family, seed)
    checked = 0
    for call in model.capture(text(20, seed)).calls:
        (queries,) = _Queries.blocks(call, per)
        key, step = call.key.double(), key_grid(call.key.double(), 1, per).step
        for bits in (6, 8):
            sure, half = queries.certified(2.0**bits - 1), (step / (2.0**bits - 1) / 2).expand(key.shape)
            for h, row in sure.nonzero().tolist():
                sign = queries.call.query[0, h, row].sign()
                first, at = int(queries.top[h, row]), h // call.groups
                worst = key.clone()
                worst[0, at] += half[0, at] * sign
                worst[0, at, first] -= 2 * half[0, at, first] * sign
                assert int(queries.call.scores(worst)[0, h, row].argmax()) == first
                checked += 1
    assert checked > 20


@pytest.mark.parametrize("family", spread(list(CONFIGS), 4))
@pytest.mark.parametrize("per", ["channel", "token"])
def test_blocks_of_queries_give_what_all_queries_at_once_give(family, per, monkeypatch):
    model, found = opened(family), []
    for size in (1000, 7):
        monkeypatch.setattr("qkv.heads.rounding.BLOCK", size)
        found.append(model.rounding(text(60), (5, 2), per=per, exact_queries=2).records())
    for one, two in zip(*found, strict=True):
        assert one.pop("method") == two.pop("method") and one == pytest.approx(two, rel=1e-6)


def test_a_kl_divergence_is_never_negative():
    """Equal tokens have equal values, so that rounding changes nothing but the last digits."""
    kl = opened("llama").rounding(" ".join(["w5"] * 30), (8, 4, 1)).kl
    assert min(kl) >= 0 and max(kl) < 1e-9
    logits = 4 * torch.randn(70, 97, generator=torch.Generator().manual_seed(0))
    assert OwnChances(logits).kl(logits + 3) < 1e-9


@pytest.mark.parametrize("apart", [1e-3, 0.01, 0.1, 1, 10, 1000])
@pytest.mark.parametrize("sharp", [0.1, 4, 30])
def test_a_kl_divergence_is_that_of_float64(apart, sharp):
    logits = sharp * torch.randn(70, 997, generator=torch.Generator().manual_seed(0))
    other = logits + apart * torch.randn(70, 997, generator=torch.Generator().manual_seed(1))
    own, there = logits.double().log_softmax(-1), other.double().log_softmax(-1)
    wanted = float((own.exp() * (own - there)).sum())
    assert OwnChances(logits).kl(other) == pytest.approx(wanted, rel=1e-4, abs=1e-9)


def test_the_certificate_is_sharp_for_heads_without_a_cap():
    """Just beyond the margin, the worst error does bring another item on top."""
    call = opened("llama").capture(text(20)).calls[0]
    (queries,) = _Queries.blocks(call, "channel")
    last = torch.full(queries.top.shape, 0.0, dtype=torch.float64)
    top2 = queries.scores.topk(2, -1).values
    last = 2 * queries.unit_error[..., 0] / (top2[..., 0] - top2[..., 1])  # where both sides are equal
    for h, row in ((0, 3), (1, 7), (3, 12)):
        assert bool(queries.certified(float(last[h, row]) * (1 + 1e-6))[h, row])
        assert not bool(queries.certified(float(last[h, row]) * (1 - 1e-6))[h, row])
    assert SLACK < 1e-9


def test_the_chance_of_the_top_item():
    scores = torch.tensor([[[1.0, 0.0, -torch.inf]]], dtype=torch.float64)
    variances = torch.tensor([[[0.5, 0.5, 0.0]]], dtype=torch.float64)
    top, slack = torch.tensor([[0]]), torch.zeros(1, 1)
    found = _Rivals.of(scores, variances, top, torch.isfinite(scores), slack).chance_of_top(1.0)
    assert float(found) == pytest.approx(0.8413447, abs=1e-4)
    sure = _Rivals.of(scores, 0 * variances, top, torch.isfinite(scores), slack).chance_of_top(1.0)
    assert float(sure) == 1.0


def test_the_whole_models_kl():
    model = opened("llama")
    found = model.rounding(text(40), (4,), window=20)
    logits = []
    for ids in model.windows(text(40), 20):
        for keys in (None, lambda _, k, v: (key_grid(k, 4).rounded(k), v)):
            logits.append(model.run(ids[None], keys=keys).logits[0].double().log_softmax(-1))
    pairs = [(logits[0], logits[1]), (logits[2], logits[3])]
    kl = torch.cat([torch.nn.functional.kl_div(b, a, log_target=True, reduction="none").sum(-1) for a, b in pairs])
    assert found.kl[0] == pytest.approx(float(kl.mean()), rel=1e-6)


def test_the_table_with_bits():
    model = opened("gpt2")
    plain, found = model.table(text(30), effect_tokens=8), model.table(text(30), effect_tokens=8, bits=(4, 3))
    assert plain.rounding is None and found.rows == plain.rows
    assert found.rounding == model.rounding(text(30), (4, 3))
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert float(rows[5]["measured_3"]) == found.rounding.of(1, 1)[1].measured
    assert found.card().columns[-8:-4] == ("4 bits: error", "4 bits: error predicted", "4 bits: top", "4 bits: proved")
    assert json.dumps(found.to_json(), allow_nan=False)


def test_queries_whose_moments_are_refused_are_left_to_first_order(monkeypatch):
    import qkv.heads.rounding as module

    def refuse(*args):
        raise QkvError("moments", "too wide", "Use less")

    plain = opened("llama").rounding(text(30), 1, exact_queries=0)
    monkeypatch.setattr(module, "head_moments", refuse)
    found = opened("llama").rounding(text(30), 1)
    assert [r.predicted for r in found] == pytest.approx([r.predicted for r in plain])
    assert all(r.method == "first order" and r.exact_queries == 0 for r in found) and any(r.wide for r in found)


def test_refusals():
    model = opened("gpt2")
    for options in ({"bits": 0}, {"bits": [4, 4]}, {"bits": 9}, {"per": "head"}, {"exact_queries": -1}, {"bits": ()}):
        with pytest.raises(QkvError):
            model.rounding(text(30), **options)


def test_proved_shares_are_never_rounded_up():
    from qkv.heads.rounding import HeadRounding, Rounding, percent_rounded_down

    assert [percent_rounded_down(x) for x in (0.0, 0.006, 0.996, 503 / 504, 1.0)] == ["0%", "0%", "99%", "99%", "100%"]
    row = HeadRounding(0, 0, 8, 0.0, 0.0, 1.0, 1.0, 503 / 504, 0.0, 0.0, 0, "first order")
    found = Rounding("m", "channel", (8,), 504, 1, None, (row,))
    assert found.card().rows[0][-1] == "99%"
