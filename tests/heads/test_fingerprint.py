"""Bits are for one model: another of the same shape is refused, the same one in another type is not."""

import json
import warnings

import pytest
import torch
from families import CONFIGS, ENCODERS, text, tiny, tokenizer
from marks import spread

from qkv.core.json_files import with_checksum
from qkv.errors import QkvError, QkvWarning
from qkv.heads.allocation import Allocation, allocate
from qkv.heads.attention_model import from_transformers
from qkv.heads.fingerprint import Fingerprint
from qkv.heads.packed_cache import quantised_cache


@pytest.fixture(scope="module")
def bits():
    return allocate(from_transformers(tiny("llama"), tokenizer(), name="mine"), text(60), 3)


@pytest.fixture
def written(bits, tmp_path):
    bits.save(tmp_path / "bits.json")
    return tmp_path / "bits.json"


@pytest.mark.parametrize("family", spread(list(CONFIGS), 3))
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
def test_a_model_fits_itself_in_every_type_and_no_other(family, kind):
    own = Fingerprint.of(tiny(family))
    assert own.fits(Fingerprint.of(tiny(family).to(kind))) and Fingerprint.of(tiny(family).to(kind)).fits(own)
    assert not own.fits(Fingerprint.of(tiny(family, 1).to(kind)))
    assert not any(own.fits(Fingerprint.of(tiny(other))) for other in ("opt", "phi") if other != family)
    assert Fingerprint.from_json(json.loads(json.dumps(own.to_json()))) == own


def test_little_training_is_told_apart(bits):
    torch.manual_seed(0)
    trained = tiny("llama")
    for weights in trained.parameters():
        weights.data += 0.005 * torch.randn_like(weights)
    with pytest.raises(QkvError, match="this model has other weights"):
        quantised_cache(trained, bits)


def test_a_file_is_taken_by_its_model_alone(written):
    with warnings.catch_warnings():
        warnings.simplefilter("error", QkvWarning)
        for own in (tiny("llama"), from_transformers(tiny("llama"), tokenizer()), tiny("llama").to(torch.bfloat16)):
            quantised_cache(own, written)
    with pytest.raises(QkvError, match=r"the bits are for mine, and this model has other weights.*any_model=True"):
        quantised_cache(tiny("llama", 1), written)
    assert torch.equal(quantised_cache(tiny("llama", 1), written, any_model=True).bits, Allocation.load(written).bits)


def test_a_file_that_does_not_say_its_model_is_read_with_a_remark(written):
    data = json.loads(written.read_text())
    old = {name: data[name] for name in data if name not in ("checksum", "fingerprint", "calibration_windows")}
    written.write_text(json.dumps(with_checksum({**old, "version": 2})))
    found = Allocation.load(written)
    assert found.fingerprint is None and found.calibration_windows is None
    assert "not known beyond its name" in found.card().note and " window" not in dict(found.card().facts)["measured on"]
    with pytest.warns(QkvWarning, match="the bits of mine. Which model these bits are for is not known"):
        quantised_cache(tiny("llama", 1), written)


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprint": 5}, {"fingerprint": {}}, {"fingerprint": {"layout": 1, "weights": []}},
        {"fingerprint": {"layout": "a", "weights": [None]}}, {"fingerprint": {"layout": "a", "weights": "b"}},
        {"calibration_windows": 0}, {"calibration_windows": True}, {"calibration_windows": "1"}, {"version": 2},
        {"version": 4}, {"version": [3]},
    ],
)  # fmt: skip
def test_damaged_fingerprints_are_refused(change, written):
    data = json.loads(written.read_text())
    written.write_text(json.dumps(with_checksum({**{n: data[n] for n in data if n != "checksum"}, **change})))
    with pytest.raises(QkvError, match="reading key bits"):
        Allocation.load(written)


def test_weights_that_are_not_at_hand_are_not_compared(bits):
    assert Fingerprint.of(tiny("llama").to("meta")) is None and Fingerprint.of(torch.nn.LayerNorm(3)) is None


def test_a_card_says_whether_one_window_judged_its_own_bits(bits):
    model = from_transformers(tiny("llama"), tokenizer())
    facts = dict(bits.card().facts)
    assert facts["calibrated on"].startswith("30 tokens in 1 window, which judges its own bits; 2 backward passes")
    several = allocate(model, text(60), 3, window=10)
    assert several.calibration_windows == 3
    assert dict(several.card().facts)["calibrated on"].startswith("30 tokens in 3 windows; 2 backward passes")


@pytest.mark.parametrize("family", sorted(ENCODERS))
def test_encoders_have_no_cache(family):
    for model in (tiny(family), from_transformers(tiny(family), tokenizer())):
        with pytest.raises(QkvError, match="each token sees all"):
            quantised_cache(model, 4)
