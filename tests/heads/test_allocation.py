"""Allocated bits: optimal for given costs, predicted by Fisher information, measured on another text, kept in files."""

import itertools
import json
import random

import numpy as np
import pytest
import torch
from families import text, tiny, tokenizer
from marks import some

from qkv.errors import QkvError
from qkv.heads.allocation import (
    COUNTS,
    NUMBERS,
    Allocation,
    Calibration,
    allocate,
    rounded_keys,
    split_windows,
    spread_bits,
)
from qkv.heads.attention_model import from_transformers
from qkv.heads.divergence import mean_kl
from qkv.heads.forecast import forecasts
from qkv.heads.sensitivity import key_gradients, own_basis, sensitivity


def opened(family="llama", seed=0):
    return from_transformers(tiny(family, seed), tokenizer(), name=family)


@pytest.mark.parametrize("seed", range(60))
def test_no_allocation_is_better(seed):
    """Every allocation of three channels with 2 to 8 bits, tried out."""
    draw = np.random.default_rng(seed)
    cost = np.exp(draw.normal(0, 3, 3)) / (2.0 ** np.arange(1, 9)[:, None] - 1) ** 2
    if seed % 2:  # rounding errors on a text are not quite convex in the bits
        cost = cost * np.exp(draw.normal(0, 0.1, cost.shape))
    average = float(draw.uniform(2.1, 7.9))
    found = spread_bits(cost, average, 2)
    assert found.sum() <= average * 3 and found.min() >= 2
    spent = int(found.sum())
    best = min(
        sum(cost[b - 1, i] for i, b in enumerate(bits))
        for bits in itertools.product(range(2, 9), repeat=3)
        if sum(bits) <= spent
    )
    own = sum(cost[b - 1, i] for i, b in enumerate(found))
    if seed % 2 == 0:
        assert own == pytest.approx(best, rel=1e-12) and spent == int(average * 3 + 1e-9)
    else:
        assert own <= best * 1.05


@pytest.mark.parametrize("seed", some(range(2), [0]))
def test_the_prediction_is_the_kl_of_small_errors(seed):
    """At 8 bits second order is exact, and many drawn tokens leave little to chance."""
    model = opened("llama", seed)
    windows = model.windows(text(96, seed), 32)
    found, even = key_gradients(model, windows, 40, seed), torch.full((3, 2, 8), 8)
    for basis in (None, own_basis(found)):
        expected = forecasts(model, windows, [(even, basis)], draws=16)[0].kl
        assert float(sensitivity(found, basis).kl(even).sum()) == pytest.approx(expected, rel=0.2)


@pytest.mark.slow
def test_the_information_is_that_of_all_tokens():
    """Against the Fisher information summed over every possible next token, for one window and layer."""
    model = opened("gpt2")
    ids = model.windows(text(12))[0]
    found = key_gradients(model, [ids], 250)
    exact = torch.zeros_like(found.keys[0][2])
    keys = {}

    def watch(layer, key, value):
        if layer == 2:
            key = keys["last"] = key.detach().requires_grad_(True)
        return key, value

    with torch.enable_grad(), model.adapter.attached(keys=watch):
        chances = model.model(input_ids=ids[None], use_cache=False).logits[0].log_softmax(-1)
    for row in chances:
        for chance in row:
            (slope,) = torch.autograd.grad(chance, keys["last"], retain_graph=True)
            exact += float(chance.detach().exp()) * slope[0].double().square()
    sampled = found.gradients[0][:, 2].square().mean(0)
    assert float(sampled.sum()) == pytest.approx(float(exact.sum()), rel=0.05)
    assert np.corrcoef(sampled.flatten(), exact.flatten())[0, 1] > 0.97


def test_an_allocation_is_judged_on_what_did_not_choose_it():
    """With one drawn token the cheapest bits look cheaper on the text that chose them than they are."""
    model = opened()
    gradients = key_gradients(model, model.windows(text(128), 32), 1)
    found = Calibration.of(gradients).cheapest(4)
    assert float(found.sensitivity.kl(found.bits).sum()) < found.predicted_kl
    for parts in (gradients.halves(), key_gradients(model, model.windows(text(32)), 2).halves()):
        assert parts is not None
    assert key_gradients(model, model.windows(text(32)), 1).halves() is None


def test_what_is_expected_on_the_calibration_text_is_judged_by_the_other_half():
    """Against forecasts window by window; the whole text chooses other bits than its halves."""
    model = opened()
    words, other = text(192), text(64, 9)
    found = allocate(model, words, 4, evaluation=other, window=64, seed=3)
    windows = model.windows(words, 64)
    gradients = key_gradients(model, windows, 2, 3)
    halves = [Calibration.of(part).cheapest(4).bits for part in gradients.halves()]
    assert not torch.equal(halves[0], found.bits)
    one = forecasts(model, windows[1::2], [(halves[0], None)], seed=3)[0].kl
    two = forecasts(model, windows[0::2], [(halves[1], None)], seed=3)[0].kl
    assert found.predicted_kl == pytest.approx((one + 2 * two) / 3, rel=1e-6)
    here = forecasts(model, model.windows(other, 64), [(found.bits, None)], seed=3)[0]
    assert (found.forecast_kl, found.forecast_spread) == pytest.approx((here.kl, here.spread), rel=1e-6)
    assert "An estimate, no bound." in " ".join(str(found).split())


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen3", "gemma2", "gpt_oss"])
def test_every_family(family):
    model = opened(family)
    before = [w.requires_grad for w in model.model.parameters()]
    found = allocate(model, text(100), 4, samples=3, in_own_basis=family == "llama")
    assert found.calibration_tokens + found.evaluation_tokens == 100
    shape = model.shape
    assert found.bits.shape == (shape.layers, shape.key_heads, shape.size)
    assert found.mean_bits == pytest.approx(4, abs=0.01) and int(found.bits.min()) >= 2
    assert found.uniform_bits == 4 and found.measured_kl > 0
    assert "other tokens" in str(found)
    assert json.dumps(found.to_json(), allow_nan=False)
    assert [w.requires_grad for w in model.model.parameters()] == before
    ids = split_windows(model, text(100), None, None)[1]
    assert found.measured_kl == pytest.approx(mean_kl(model, ids, rounded_keys(found.bits, found.basis)), rel=1e-6)


def test_allocated_bits_cost_less_than_uniform_ones():
    model = opened("llama", 3)
    found = allocate(model, text(256), 4, evaluation=text(128, 9), samples=8)
    assert found.measured_kl < 0.9 * found.uniform_kl


@pytest.mark.parametrize("shift", [1, 2, 7, 31, 33, 63, 64, 65, 90])
@pytest.mark.parametrize("window", [None, 8, 20])
def test_a_shifted_calibration_text_is_no_other_text(shift, window):
    model, words = opened(), text(192).split()
    for moved in (" ".join(words[shift:]), " ".join([*text(shift, 5).split(), *words])):
        with pytest.raises(QkvError, match="32 tokens in a row stand in the calibration text"):
            split_windows(model, " ".join(words), moved, window)


def test_windows_that_share_a_run_are_left_out_and_no_others():
    model = opened()
    words, other = text(320).split(), text(320, 9).split()
    for start in (0, 1, 50, 64, 100, 224):
        for length, common in ((32, True), (31, False)):
            mixed = list(other)
            mixed[start : start + length] = words[77 : 77 + length]
            found = split_windows(model, " ".join(words), " ".join(mixed), None)[1]
            windows = model.windows(" ".join(mixed))
            touched = set(range(start // 64, (start + length - 1) // 64 + 1)) if common else set()
            assert [w.tolist() for w in found] == [w.tolist() for i, w in enumerate(windows) if i not in touched]
    repeated = " ".join(words[:64] * 4)
    with pytest.raises(QkvError, match="2 of the 2 windows"):
        split_windows(model, repeated, None, None)
    with pytest.raises(QkvError, match="10 tokens in a row stand"):
        split_windows(model, " ".join(words[:20]), " ".join(words[1:21]), None)


def test_calibration_and_evaluation_never_share_a_window():
    model = opened()
    first, second = split_windows(model, text(60), None, None)
    assert sum(map(len, first)) + sum(map(len, second)) == 60 and len(first) == len(second) == 1
    with pytest.raises(QkvError, match="Give different texts"):
        split_windows(model, text(64), text(64), None)
    with pytest.raises(QkvError, match="calibrated on"):
        split_windows(model, [text(40), text(30, 1)], [text(30, 2), text(40)], None)
    with pytest.raises(QkvError, match="one window only"):
        split_windows(model, text(30), None, 30)


def test_refusals():
    model = opened()
    for options in ({"average": 1}, {"average": 9}, {"average": "x"}, {"samples": 0}, {"seed": -1}):
        with pytest.raises(QkvError):
            allocate(model, text(40), **options)
    with pytest.raises(QkvError, match="predicts no tokens"):
        allocate(opened("bert"), text(40))


@pytest.fixture(scope="module", params=[False, True])
def saved(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("bits") / "bits.json"
    found = allocate(opened(), text(60), 3.5, in_own_basis=request.param)
    found.save(path)
    return found, path


def test_files_give_back_what_was_saved(saved):
    found, path = saved
    again = Allocation.load(path)
    assert torch.equal(again.bits, found.bits) and again.to_json() == found.to_json()
    if found.basis is not None:
        assert torch.allclose(again.basis, found.basis, rtol=1e-6)


def test_damaged_files_are_refused_or_mean_the_same(saved, tmp_path):
    """150 files that were cut, flipped or had a piece removed: none is read as something else."""
    found, path = saved
    content, draw = path.read_bytes(), random.Random(0)
    spoiled = tmp_path / "bits.json"
    for number in range(150):
        damaged = bytearray(content)
        at = draw.randrange(len(content) - 2)
        if number % 3 == 0:
            damaged = damaged[:at]
        elif number % 3 == 1:
            damaged[at] ^= 1 << draw.randrange(8)
        else:
            del damaged[at : at + draw.randrange(1, 40)]
        spoiled.write_bytes(bytes(damaged))
        try:
            read = Allocation.load(spoiled)
        except QkvError as why:
            assert "reading key bits" in str(why)
        else:
            assert read.to_json() == found.to_json()  # a space between two numbers was removed


@pytest.mark.parametrize(
    "change",
    [
        {"format": "else"}, {"version": 1}, {"more": 1}, {"model": 5}, {"shape": [3, 2]}, {"shape": [3, 2, 9]},
        {"shape": [0, 2, 8]}, {"shape": "abc"}, {"average": 2.0}, {"average": None}, {"measured_kl": "x"},
        {"samples": 1.5}, {"seed": -1}, {"seed": True}, {"bits": [[[9] * 8] * 2] * 3}, {"bits": [[[2.0] * 8] * 2] * 3},
        {"bits": [[[True] * 8] * 2] * 3}, {"bits": 3}, {"bits": [[[3] * 8] * 2] * 2}, {"basis": 5}, {"basis": "?"},
        {"basis": "AAAA"}, {"basis": "A" * (4 * 4 * 3 * 2 * 8 * 8 // 3)},
    ],
)  # fmt: skip
def test_files_of_other_content_are_refused(change, tmp_path):
    figures = {**dict.fromkeys(NUMBERS, 0.1), **dict.fromkeys(COUNTS, 5), "average": 3.0}
    good = Allocation(model="x", bits=torch.full((3, 2, 8), 3), basis=None, **figures)
    good.save(tmp_path / "bits.json")
    assert Allocation.load(tmp_path / "bits.json").average == 3.0
    data = json.loads((tmp_path / "bits.json").read_text())
    (tmp_path / "bits.json").write_text(json.dumps({**data, **change, "checksum": "edited"}))
    with pytest.raises(QkvError, match="reading key bits"):
        Allocation.load(tmp_path / "bits.json")
    with pytest.raises(QkvError, match="reading key bits"):
        Allocation.load(tmp_path / "none.json")
