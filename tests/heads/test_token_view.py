import numpy as np
import pytest
import torch
from families import text, tiny, tokenizer
from marks import spread

from qkv.errors import QkvError
from qkv.heads.attention_model import from_transformers
from qkv.heads.token_view import (
    HardenedQuery,
    firmness_text,
    hardened_text,
    kind_text,
    round_to_levels,
    shown_spread,
    shown_token,
    shown_weight,
)


@pytest.fixture(scope="module")
def model():
    return from_transformers(tiny("llama"), tokenizer(), name="mine")


def test_weights_scores_and_order_are_those_of_the_head(model):
    words = text(20)
    call = model.capture(words).calls[2]
    view = model.head(2, 1).view(words, token=9, harden=False)
    assert [one.position for one in view.looked_up] == call.weights[0, 1, 9, :10].argsort(descending=True).tolist()
    for one in view.looked_up:
        assert one.weight == pytest.approx(float(call.weights[0, 1, 9, one.position]), abs=1e-6)
        assert one.score == pytest.approx(float(call.scores()[0, 1, 9, one.position]), abs=1e-5)
    assert sum(one.weight for one in view.looked_up) == pytest.approx(1, abs=1e-5)
    best = max(float(w) for i, row in enumerate(call.weights[0, 1]) for w in row if i)
    assert view.links[0].weight == pytest.approx(best, abs=1e-6)
    assert view.token == 9 and model.head(2, 1).view(words, harden=False).token == 19


@pytest.mark.parametrize("seed", spread(range(5), 3))
def test_no_move_of_the_keys_within_the_radius_changes_the_top_token(model, seed):
    """The largest move towards a change that the radius allows, for every query, and random ones."""
    words = text(24, seed)
    memory = model.head(1, seed % 4).memory(words)
    for place in (5, 12, 23):
        view = model.head(1, seed % 4).view(words, token=place, harden=False)
        seen, query = memory.at(place)
        length = float(np.median(seen.keys.norm(dim=1).numpy()))
        top = view.looked_up[0].position
        for sign in (1, 0):
            moved = seen.keys.clone()
            if sign:
                towards = query / query.norm() * view.radius * length * (1 - 1e-9)
                moved += towards
                moved[top] -= 2 * towards
            else:
                steps = torch.randn(moved.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
                moved += view.radius * length * steps / steps.norm(dim=1, keepdim=True)
            assert int((moved @ query).argmax()) == top
        beyond = seen.keys.clone() + 1.001 * query / query.norm() * view.radius * length
        beyond[top] -= 2 * 1.001 * query / query.norm() * view.radius * length
        assert int((beyond @ query).argmax()) != top, "the radius is sharp"


def test_the_spread_is_that_of_keys_that_were_really_rounded(model):
    words = text(24)
    view = model.head(0, 2).view(words, token=20, bits=3, harden=False)
    seen, query = model.head(0, 2).memory(words).at(20)
    keys = seen.keys.numpy()
    low, high = keys.min(0), keys.max(0)
    levels = np.round((keys - low) / (high - low) * 7) / 7 * (high - low) + low
    weights = torch.softmax(torch.from_numpy(levels) @ query, 0)
    off = float((weights @ seen.values - seen.read(query).output).norm() / seen.read(query).output.norm())
    (three,) = [one for one in view.spread if one.bits == 3]
    assert three.measured == pytest.approx(off, rel=1e-6)
    assert {one.position: one.rounded for one in view.looked_up} == pytest.approx(dict(enumerate(weights.tolist())))
    errors = [one.predicted for one in view.spread]
    assert [one.bits for one in view.spread] == [8, 6, 5, 4, 3, 2] and errors == sorted(errors)


def test_two_keys_are_the_ends_of_their_grids_and_do_not_move(model):
    view = model.head(1, 2).view(text(2), bits=2)
    assert max(max(one.predicted, one.measured) for one in view.spread) < 1e-12 and len(view.spread) == 6
    assert "none was found" in hardened_text(view.hardened)


@pytest.mark.slow
def test_the_spread_is_expected_over_texts(model):
    """The mean square of what rounding does, over many tokens, is what was predicted."""
    measured = predicted = 0.0
    for seed in range(4):
        for token in range(30, 60, 3):
            view = model.head(0, 2).view(text(60, seed), token=token, bits=4, harden=False)
            (four,) = [one for one in view.spread if one.bits == 4]
            measured, predicted = measured + four.measured**2, predicted + four.predicted**2
    assert measured == pytest.approx(predicted, rel=0.35)


def test_the_hardened_query_is_within_its_distance_and_never_worse(model):
    words = text(16)
    view = model.head(1, 1).view(words, token=15, bits=3)
    found = view.hardened
    seen, query = model.head(1, 1).memory(words).at(15)
    mine = torch.tensor(found.query, dtype=torch.float64)
    distance = float((seen.read(mine).weights - seen.read(query).weights).abs().sum() / 2)
    assert found.distance == pytest.approx(distance, abs=1e-9) and distance <= 0.01
    assert found.squared_error <= found.own_squared_error and found.gain >= 1
    assert {one.position: one.hardened for one in view.looked_up} == pytest.approx(
        dict(enumerate(seen.read(mine).weights.tolist()))
    )


@pytest.mark.parametrize("family", ["gemma2", "gpt_oss"])
def test_a_head_that_is_no_plain_lookup_says_so(family):
    view = from_transformers(tiny(family), tokenizer()).head(1, 2).view(text(12))
    assert view.spread == () and view.hardened is None
    assert ("soft cap" if family == "gemma2" else "sink") in view.note and view.note in " ".join(str(view).split())
    assert view.rounding and view.margin is not None


def test_a_token_that_sees_itself_only(model):
    view = model.head(0, 0).view(text(6), token=0)
    assert view.margin is None and view.hardened is None and view.looked_up[0].weight == 1
    assert all(link.token > 0 for link in view.links)


def test_what_is_not_there_is_refused(model):
    for options, problem in (({"token": 6}, "6 tokens"), ({"token": True}, "6 tokens"), ({"bits": 40}, "bits is 40")):
        with pytest.raises(QkvError, match=problem):
            model.head(0, 0).view(text(6), **options)
    with pytest.raises(QkvError, match="layers 0 to 2"):
        model.head(3, 0)


def test_sentences_are_those_of_the_numbers():
    assert firmness_text(0.0, 0.0) == "a tie: no token is alone on top"
    assert "too close" in firmness_text(1e-12, 0.0)
    assert "less than 0.1234 of" in firmness_text(1.0, 0.12349)
    assert kind_text("broad", 0.6, "the text") == "broad: it averages 0.60 of the tokens that it sees on the text"
    assert kind_text("mixed", 0.3999, "the text").endswith("the largest takes 0.39")
    assert (
        kind_text("induction", 0.9, "repeated random tokens")
        == "induction: 0.90 of its weight on repeated random tokens"
    )
    assert [shown_weight(w) for w in (0, 1e-5, 0.5, 0.99999, 1)] == [
        "0.000",
        "< 0.001",
        "0.500",
        "1 − 1.0e-05",
        "1.000",
    ]
    assert [shown_token(t) for t in (" cat", "\n", "##s", " ")] == ["cat", "'\\n'", "##s", "' '"]
    same = HardenedQuery(4, 1.0, 1.0, 0.0, 1.0, 1.0, (1.0,))
    assert "none was found" in hardened_text(same)


def test_constant_channels_are_not_rounded():
    keys = torch.tensor([[1.0, 0.3], [1.0, 0.9]], dtype=torch.float64)
    rounded = round_to_levels(keys, torch.tensor([0.0, 0.6], dtype=torch.float64))
    assert torch.allclose(rounded, keys)


@pytest.mark.parametrize(("spread", "shown"), [(0.0, "0"), (3.9e-8, "< 1e-6"), (1.2e-6, "1.2e-06"), (0.0312, "0.031")])
def test_a_spread_below_single_precision_has_no_digits(spread, shown):
    assert shown_spread(spread) == shown
