"""Models that are not like the others: what is said of them holds, or they are refused with a sentence."""

import math

import numpy as np
import pytest
import torch
import transformers
from families import _GPT2, _PLAIN, _SHARED, CONFIGS, ENCODERS, text, tiny, tokenizer
from marks import spread
from transformers import AutoModel, AutoModelForCausalLM

import qkv.heads as heads
from qkv.errors import QkvError
from qkv.heads.firmness import FirmnessParts
from qkv.heads.patterns import PatternSums, score_text
from qkv.heads.rounding import percent_rounded_down
from qkv.heads.token_view import HardenedQuery, firmness_text, hardened_text

WORDS = text(24, 4)


def random(model, std=0.25, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for weights in model.parameters():
        weights.data = std * torch.randn(weights.shape, generator=generator)
    return model.eval()


def made(maker, config):
    found = maker.from_config(config, attn_implementation="eager") if hasattr(maker, "from_config") else maker(config)
    return random(found)


def opened(model, **options):
    return heads.from_transformers(model, tokenizer(), **options)


def t5():
    return transformers.T5Config(vocab_size=97, d_model=32, num_layers=2, num_heads=4, d_kv=8, d_ff=48)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
def test_scores_with_a_bias_for_each_distance_are_refused(kind):
    """T5's attention adds it to the scores: radii and certificates of queries and keys alone would be false."""
    with pytest.raises(QkvError, match="something is added to the inner products"):
        opened(made(transformers.T5EncoderModel, t5()).to(kind))


@pytest.mark.skipif(not hasattr(transformers, "DogeConfig"), reason="this version of transformers has no Doge")
def test_scores_with_a_bias_in_the_mask_are_refused():
    with pytest.raises(QkvError, match="something is added to the inner products"):
        opened(made(AutoModelForCausalLM, transformers.DogeConfig(**_SHARED)))


def test_models_of_two_texts_are_refused():
    config = transformers.BartConfig(
        vocab_size=97, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64,
    )  # fmt: skip
    with pytest.raises(QkvError, match="reads one text and writes another"):
        opened(made(AutoModel, config))
    alone = opened(made(AutoModelForCausalLM, config))
    assert alone.shape.layers == 2 and alone.predicts and alone.causal


@pytest.mark.parametrize(
    ("maker", "labels"),
    spread([
        (transformers.LlamaForSequenceClassification, 3), (transformers.LlamaForSequenceClassification, 2),
        (transformers.LlamaForTokenClassification, 5), (transformers.LlamaForTokenClassification, 97),
        (transformers.LlamaForQuestionAnswering, 2), (transformers.BertForMaskedLM, 2),
        (transformers.BertForSequenceClassification, 3), (transformers.BertForTokenClassification, 97),
        (transformers.BertLMHeadModel, 2),
    ], 4),
)  # fmt: skip
def test_classes_are_no_next_tokens(maker, labels):
    """A classifier predicts no tokens, even with as many classes as tokens: its hidden states are measured instead."""
    config = transformers.LlamaConfig if "Llama" in maker.__name__ else transformers.BertConfig
    model = made(maker, config(**(_SHARED if "Llama" in maker.__name__ else _PLAIN), num_labels=labels))
    found = opened(model)
    assert not found.predicts and found.family == maker.__name__ and found.model is model.base_model
    own, inner = found.table(WORDS), opened(model.base_model).table(WORDS)
    assert own.rows == inner.rows and own.effect_unit == "relative change of the last hidden states"
    with pytest.raises(QkvError, match="predicts no tokens"):
        heads.token_losses(found, [[3, 4, 5]])


def test_a_folder_of_an_encoder_that_claims_to_predict(tmp_path):
    model = made(transformers.BertLMHeadModel, transformers.BertConfig(**_PLAIN))
    model.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    found = heads.open(tmp_path)
    assert not found.predicts and not found.causal and len(found.table(WORDS)) == 12


@pytest.mark.parametrize("context", spread([2, 3, 4, 5, 6], 3))
def test_contexts_too_short_to_tell_patterns_apart(context):
    """Nothing is judged on repeated tokens where there is no room for them, and nothing says so."""
    found = opened(made(AutoModelForCausalLM, transformers.GPT2Config(**{**_GPT2, "n_positions": context})))
    table, view = found.table(WORDS), found.head(0, 0).view(" ".join(WORDS.split()[:context]), harden=False)
    short = context < 5
    assert (table.told_apart, table.repeated) == (not short, not short)
    assert (table.rows[0].effect_repeated is None) == short
    assert all(math.isfinite(x) for row in table.records() for x in row.values() if isinstance(x, float))
    note = " ".join(table.card().note.split())
    assert ("repeated random tokens" not in note and "all figures, the kinds among them, are of its" in note) == short
    assert not short or view.judged_on == "the text"


def saturated():
    """A Gemma-2 whose scores are far beyond their soft cap, so that float32 cannot tell them apart after it."""
    model = tiny("gemma2")
    for layer in model.model.layers:
        layer.self_attn.q_proj.weight.data *= 300
    return opened(model)


@pytest.mark.slow
def test_a_soft_cap_that_saturates_is_no_tie():
    model = saturated()
    for place in range(1, 24):
        view = model.head(1, 2).view(WORDS, token=place, harden=False)
        call = model.capture(WORDS).calls[1]
        seen = torch.isfinite(call.scores()[0, 2, place])
        query, key = call.query[0, 2, place].double(), call.key[0, 1][seen].double()
        top, length = (key @ query).topk(2), float(np.median(key.norm(dim=1)))
        true = float(top.values[0] - top.values[1]) / 2 / float(query.norm()) / length
        assert true * (1 - 1e-9) <= view.radius <= true * (1 + 1e-15)
        said = firmness_text(view.margin, view.radius)
        assert "stays on top" in said and "a tie" not in said and "margin 0" not in said
        assert view.looked_up[0].position == int(seen.nonzero()[int(top.indices[0])])
    parts = FirmnessParts(3, 4)
    for one in model.capture(WORDS).calls:
        parts.add(one, one.scores_and_plain()[1][0])
    table = model.table(WORDS)
    assert [r.radius for r in table.rows] == parts.result().radius.flatten().tolist()
    assert min(r.radius for r in table.rows) > 0


def test_a_sink_takes_no_part_in_how_many_tokens_are_averaged():
    """Nearly all weight on the sink: the rest is on as many tokens as it is."""
    n, visible = 12, torch.ones(12, 12, dtype=torch.bool).tril()
    for left in (1.0, 0.5, 1e-3, 1e-30):
        sums = PatternSums(1, 3)
        weights = torch.zeros(3, n, n)
        weights[0] = left * visible / visible.sum(-1, keepdim=True)
        weights[1].diagonal().fill_(left)
        weights[2, :, 0] = left / 2
        weights[2].diagonal().add_(left / 2)
        sums.add(0, weights, torch.arange(n), visible, True)
        found = sums.result()
        assert found.effective[0].tolist() == pytest.approx([8.5, 1, 2], rel=1e-5)
        assert float(found.share[0, 0]) == pytest.approx(1, rel=1e-5) and float(found.share.max()) <= 1
    sums = PatternSums(1, 1)
    sums.add(0, torch.zeros(1, n, n), torch.arange(n), visible, True)
    assert float(sums.result().effective) == 1


def test_a_query_of_zeros_has_a_whole_view():
    model = tiny("llama")
    model.model.layers[0].self_attn.q_proj.weight.data.zero_()
    found = opened(model)
    view, row = found.head(0, 0).view(WORDS), found.table(WORDS).rows[0]
    assert (view.hardened.length, view.hardened.cosine) == (1, 1) and row.kind == "broad" and 0.999 < row.score <= 1
    assert "a tie: no token is alone on top" in dict(view.card().facts)["how firmly"]


def test_scores_beyond_prediction_leave_the_rest_of_the_view():
    model = tiny("llama")
    for layer in model.model.layers:
        layer.self_attn.q_proj.weight.data *= 1e6
    found = opened(model)
    view = found.head(1, 1).view(WORDS)
    assert not view.spread and view.hardened is None and view.note.startswith("Spread and hardened query are left out")
    assert view.radius > 0 and view.looked_up and len(view.rounding) == 6
    assert all(
        math.isfinite(x)
        for row in found.table(WORDS, bits=(3,)).records()
        for x in row.values()
        if isinstance(x, float)
    )


def test_tokens_that_see_only_themselves():
    model = opened(made(AutoModelForCausalLM, transformers.MistralConfig(**_SHARED, sliding_window=1)))
    facts = dict(model.head(0, 0).view(WORDS).card().facts)
    assert "strongest" not in facts and "how firmly" not in facts and facts["what it looks up"].startswith("self: 1.00")
    assert model.table(WORDS).to_json()["rows"][0]["margin"] in (None, "inf")


@pytest.mark.parametrize("family", sorted(set(CONFIGS) - ENCODERS))
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_half_precision_is_measured_in_float32(family, kind):
    """Losses, entropies and margins are those of the captured numbers, not of numbers with three digits."""
    model = opened(tiny(family).to(kind))
    call = model.capture(WORDS).calls[1]
    assert {x.dtype for x in (call.query, call.key, call.value, call.weights)} == {torch.float32}
    exact = call.query.double() @ call.key.double().repeat_interleave(call.groups, 1).mT * call.scaling
    plain = call.scores_and_plain()[1]
    assert float((plain - exact)[plain.isfinite()].abs().max()) < 1e-4
    ids = model.windows(WORDS)[0][None]
    with torch.no_grad():
        logs = model.model(ids).logits.double().log_softmax(-1)
    losses = -logs[:, :-1].gather(-1, ids[:, 1:, None])[..., 0]
    assert torch.allclose(heads.token_losses(model, ids).double(), losses, atol=1e-5)
    assert all(one.verify() for one in model.head(1, 1).radius_certificates(WORDS))


def test_keys_that_round_to_one_tie_and_each_stays_on_top():
    """Two keys that one step holds are the same key after rounding: the top item is still on top, by any order."""
    model = opened(tiny("gpt2 scaled by layer", 11))
    ties = 0
    for seed in range(4):
        words = text(17, seed)
        ids = model.windows(words)[0]
        calls = []
        model.run(ids[None], calls.append)
        rows = model.rounding(words, 1)
        for layer, head in ((0, 0), (1, 2), (2, 0), (2, 3)):
            call = calls[layer]
            keys, queries = call.key[0, head].double(), call.query[0, head].double() * call.scaling
            low, step = keys.amin(0), keys.amax(0) - keys.amin(0)
            rounded = low + ((keys - low) / step).round() * step
            stayed = []
            for place in range(4, len(ids)):
                own, there = keys[: place + 1] @ queries[place], rounded[: place + 1] @ queries[place]
                best = int(own.argmax())
                stayed.append(bool(there[best] >= there.max() - 1e-10))
                ties += int((there >= there.max() - 1e-10).sum()) > 1
            assert rows.of(layer, head)[0].survives == pytest.approx(np.mean(stayed), abs=1e-12)
    assert ties > 0


def test_sentences_of_bounds_and_shares_round_the_right_way():
    base = {"bits": 3, "squared_error": 1.0, "own_squared_error": 2.0, "length": 1.0, "cosine": 1.0, "query": (1.0,)}
    for distance in np.random.default_rng(0).uniform(0, 0.01, 50):
        said = hardened_text(HardenedQuery(distance=float(distance), **base))
        assert float(said.split("weights within ")[1].split(" of")[0]) >= distance
    assert [score_text("mixed", x) for x in (0.3999, 0.394, 0.11)] == ["0.39", "0.39", "0.11"]
    assert [score_text("self", x) for x in (0.4, 0.999)] == ["0.40", "1.00"]
    percents = [percent_rounded_down(i / 100) for i in range(101)]
    assert percents == [f"{i}%" for i in range(101)]
    assert percent_rounded_down(0.2899) == "28%"
