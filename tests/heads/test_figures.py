"""Every figure of the table of heads and of rounding, computed again from the models' weights without qkv."""

import math

import head_reference as reference
import numpy as np
import pytest
import torch
from families import CONFIGS, ENCODERS, text, tiny, tokenizer
from marks import spread

from qkv.heads.attention_model import from_transformers
from qkv.heads.table import repeated_ids

SKIPPED = 4


def value_and_output(model, layer, heads, size):
    """A layer's value and output matrices, (key heads, size, width) and (width, heads, size)."""
    if hasattr(model, "transformer"):
        block, width = model.transformer.h[layer].attn, model.config.n_embd
        value, output = block.c_attn.weight[:, 2 * width :].T, block.c_proj.weight.T
    elif hasattr(model, "gpt_neox"):
        block = model.gpt_neox.layers[layer].attention
        value = block.query_key_value.weight.view(heads, 3 * size, -1)[:, 2 * size :]
        output = block.dense.weight
    elif hasattr(model, "encoder"):
        block = model.encoder.layer[layer].attention
        value, output = block.self.value.weight, block.output.dense.weight
    else:
        block = getattr(model.model, "decoder", model.model).layers[layer].self_attn
        value, output = block.v_proj.weight, reference.projections(model)[layer].weight
    with torch.no_grad():
        return value.double().reshape(-1, size, output.shape[0]), output.double().reshape(-1, heads, size)


def writing(model, layer, head, heads, size):
    """Copying, effective rank and subspace, from matrices of the size of the vocabulary or of the hidden states."""
    value, output = value_and_output(model, layer, heads, size)
    matrix = (output[:, head] @ value[head // (heads // len(value))]).numpy()
    tokens = matrix
    if not hasattr(model, "encoder"):
        ends = model.get_input_embeddings(), model.get_output_embeddings()
        into, out = (m.weight.detach().double().numpy() for m in ends)
        tokens = out @ matrix @ into.T
    levels = np.linalg.eigvals(tokens)
    levels = levels[np.argsort(-abs(levels))][:size]
    singular = np.linalg.svd(matrix, compute_uv=False)[:size]
    share = singular / singular.sum()
    symmetric = np.sort(np.linalg.eigvalsh((matrix + matrix.T) / 2))[::-1].cumsum()
    subspace = (symmetric / np.sqrt(np.arange(1, len(matrix) + 1))).max() / np.linalg.norm(matrix)
    return levels.real.sum() / abs(levels).sum(), np.exp(-(share * np.log(share)).sum()), max(0.0, subspace)


def looks(windows, weights, layer, head):
    """Mean weights on the patterns of a text, effective number of tokens and its share, and how many read firmly."""
    rows = [weights[w][layer, head][i] for w in range(len(windows)) for i in range(SKIPPED, len(windows[w]))]
    places = [i for ids in windows for i in range(SKIPPED, len(ids))]
    averaged = [float(torch.special.entr(row / row.sum()).sum().exp()) for row in rows]
    return {
        "previous": np.mean([float(row[i - 1]) for row, i in zip(rows, places, strict=True)]),
        "first": np.mean([float(row[0]) for row in rows]),
        "itself": np.mean([float(row[i]) for row, i in zip(rows, places, strict=True)]),
        "effective": np.mean(averaged),
        "share": np.mean([n / int((row > 0).sum()) for n, row in zip(averaged, rows, strict=True)]),
        "reads": np.mean([float(row.max() >= 0.9) for row in rows]),
        "margin": np.median([float(row.log().topk(2).values.diff().abs()) for row in rows]),
    }


def radius(windows, weights, captured, layer, head):
    found = []
    for number, ids in enumerate(windows):
        query, key, _ = captured[number][layer]
        query, key = query[head], key[head // (len(query) // len(key))]
        length = np.median(key.norm(dim=1).numpy())
        for i in range(SKIPPED, len(ids)):
            top = (key[weights[number][layer, head, i] > 0] @ query[i]).topk(2).values
            found.append(float(top[0] - top[1]) / (2 * float(query[i].norm())) / length)
    return np.median(found)


def moved(model, ids, base, encoder):
    if not encoder:
        return float((reference.losses(model, ids) - base).mean())
    with torch.no_grad():
        states = model(ids).last_hidden_state.double()
    return float(((states - base).norm(dim=-1) / base.norm(dim=-1)).mean())


@pytest.mark.parametrize("family", spread(list(CONFIGS), 3))
def test_every_figure_of_the_table(family):
    model, encoder = tiny(family, 7), family in ENCODERS
    opened = from_transformers(model, tokenizer())
    words, shape = [text(9, 1), text(31, 2)], opened.shape
    windows = opened.windows(words, 20)
    rows = opened.table(words, window=20, effect_tokens=8).rows
    weights = [reference.own_weights(model, ids[None]) for ids in windows]
    captured = [reference.parts(model, ids[None]) for ids in windows]
    means = reference.mean_outputs(model, windows, shape.size)
    ids = windows[0][None, :8]
    with torch.no_grad():
        base = model(ids).last_hidden_state.double() if encoder else reference.losses(model, ids)
    twice = repeated_ids(opened, 0)
    again = None if encoder else reference.own_weights(model, twice)
    own_mean = None if encoder else reference.mean_outputs(model, twice, shape.size)
    half = twice.shape[1] // 2
    for row in rows[:: 5 if encoder else 3]:
        layer, head, cut = row.layer, row.head, slice(row.head * shape.size, (row.head + 1) * shape.size)
        expected = looks(windows, weights, layer, head)
        share = expected.pop("share")
        for name, figure in expected.items():
            assert getattr(row, name) == pytest.approx(figure, abs=2e-6), name
        true = radius(windows, weights, captured, layer, head)
        assert true * (1 - 1e-9) <= row.radius <= true * (1 + 1e-15)
        with reference.replaced_outputs(model, shape.size, {(layer, head): means[layer][cut]}):
            assert row.effect == pytest.approx(moved(model, ids, base, encoder), abs=5e-6)
        if encoder:
            judged = {after: _mean_of_copies(windows, weights, layer, head, after) for after in (True, False)}
        else:
            judged = {after: reference.copies(twice[0], again[layer, head], after) for after in (True, False)}
            with reference.replaced_outputs(model, shape.size, {(layer, head): own_mean[layer][cut]}):
                lost = reference.losses(model, twice)[:, -half:].mean()
            lost -= reference.losses(model, twice)[:, -half:].mean()
            assert row.effect_repeated == pytest.approx(float(lost), abs=5e-6)
        for name, after in (("induction", True), ("duplicate", False)):
            found = getattr(row, name)
            assert (found is None) == math.isnan(judged[after])
            assert found is None or found == pytest.approx(judged[after], abs=1e-6)
        named = reference.kind(row.previous, row.first, row.itself, judged[True], judged[False], share)
        assert row.kind == named
        assert (row.copying, row.rank, row.subspace) == pytest.approx(
            writing(model, layer, head, shape.heads, shape.size), abs=1e-9
        )


def _mean_of_copies(windows, weights, layer, head, after):
    """Over all windows: a window counts as often as it has queries with a copy."""
    total, count = 0.0, 0
    for ids, own in zip(windows, weights, strict=True):
        for place in range(SKIPPED, len(ids)):
            same = [j for j in range(place) if ids[j] == ids[place]]
            seen = [j + 1 for j in same if j + 1 < place] if after else same
            if seen:
                total, count = total + float(own[layer, head, place, seen].sum()), count + 1
    return total / count if count else math.nan


def visible_weights(model, family, layer, head, scores):
    """Weights of scores of one query, with the family's soft cap and sink."""
    scores = 2 * torch.tanh(scores / 2) if family == "gemma2" else scores
    if family != "gpt_oss":
        return scores, scores.softmax(0)
    sink = model.model.layers[layer].self_attn.sinks[head].detach().double()
    return scores, torch.cat([scores, sink[None]]).softmax(0)[:-1]


@pytest.mark.parametrize("per", ["channel", "token"])
@pytest.mark.parametrize("family", spread(list(CONFIGS), 3))
def test_every_figure_of_rounding(family, per):
    """Error, top item, what is proved, noise and first order; and the KL divergence of the whole model."""
    model, axis, bits = tiny(family, 11), -2 if per == "channel" else -1, 2
    opened = from_transformers(model, tokenizer())
    ids = opened.windows(text(24, 9))[0][None]
    found = opened.rounding(text(24, 9), bits, per=per, exact_queries=0)
    weights, captured = reference.own_weights(model, ids), reference.parts(model, ids)
    if family not in ENCODERS:
        expected = reference.divergence(model, ids, lambda _, k: reference.on_grid(k, bits, axis)[0]) / ids.shape[1]
        assert found.kl[0] == pytest.approx(expected, rel=1e-5)
    for layer, head in ((0, 1), (2, 3)):
        query, key, value = captured[layer]
        query, shared = query[head], head // (len(query) // len(key))
        key, value = key[shared], value[shared]
        rounded, step = reference.on_grid(key, bits, axis)
        free = (key > key.amin(axis, keepdim=True)) & (key < key.amax(axis, keepdim=True))
        sums = dict.fromkeys(("output", "moved", "survives", "certified", "variance", "wide", "linear"), 0.0)
        for i in range(SKIPPED, len(query)):
            seen = weights[layer, head, i] > 0
            plain, there = key[seen] @ query[i], rounded[seen] @ query[i]
            scores, own = visible_weights(model, family, layer, head, plain)
            output = own @ value[seen]
            changed = visible_weights(model, family, layer, head, there)[1] @ value[seen]
            error, top = (query[i].abs() * step[seen] / 2).sum(1), int(plain.argmax())
            spread = (query[i].square() * step[seen].square() / 12 * free[seen]).sum(1)
            spread = spread * (1 - (scores / 2).square()).square() if family == "gemma2" else spread
            others = (plain + error).index_fill(0, torch.tensor([top]), -torch.inf)
            sums["output"] += float(output.square().sum())
            sums["moved"] += float((changed - output).square().sum())
            tops = (plain >= plain.max() - 1e-11) & (there >= there.max() - 1e-11)
            sums["survives"] += float(tops.any())
            sums["certified"] += float(plain[top] - error[top] > others.max())
            sums["variance"] += float(spread.mean())
            sums["wide"] += float(spread.mean() > 1)
            sums["linear"] += float((spread * own.square() * (value[seen] - output).square().sum(1)).sum())
        row, count = found.of(layer, head)[0], len(query) - SKIPPED
        assert row.measured == pytest.approx((sums["moved"] / sums["output"]) ** 0.5, rel=1e-9)
        assert row.predicted == pytest.approx((sums["linear"] / sums["output"]) ** 0.5, rel=1e-9)
        assert row.noise == pytest.approx((sums["variance"] / count) ** 0.5, rel=1e-9)
        shares = (sums["survives"] / count, sums["certified"] / count, sums["wide"] / count)
        assert (row.survives, row.certified, row.wide) == pytest.approx(shares, abs=1e-12)
        assert row.certified <= row.survives
