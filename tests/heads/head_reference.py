"""What a model computes, taken from transformers alone: nothing here goes through qkv."""

import importlib
from contextlib import contextmanager

import numpy as np
import torch


def own_weights(model, ids):
    """(layers, heads, tokens, tokens), as the model gives them out."""
    with torch.no_grad():
        return torch.stack(model(ids, output_attentions=True).attentions)[:, 0].double()


@contextmanager
def changed_attention(model, change):
    """The family's attention function, called with what `change` makes of queries, keys and values."""
    home = importlib.import_module(type(model).__module__)
    own, count = home.eager_attention_forward, iter(range(1000))

    def forward(module, query, key, value, mask, *args, **options):
        query, key, value = change(next(count), query, key, value, options.get("scaling", args[0] if args else None))
        return own(module, query, key, value, mask, *args, **options)

    home.eager_attention_forward = forward
    try:
        with torch.no_grad():
            yield
    finally:
        home.eager_attention_forward = own


def parts(model, ids):
    """Queries, scaled so that scores are plain inner products, keys and values of each layer, in float64."""
    found = []

    def keep(layer, query, key, value, scaling):
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        found.append((query[0].double() * scale, key[0].double(), value[0].double()))
        return query, key, value

    with changed_attention(model, keep):
        model(ids)
    return found


def projections(model):
    """The maps that take the heads' outputs of each layer."""
    if hasattr(model, "encoder"):
        return [layer.attention.output.dense for layer in model.encoder.layer]
    names = ("o_proj", "c_proj", "dense", "out_proj")
    attention = [m for m in model.modules() if type(m).__name__.endswith("Attention")]
    return [next(getattr(m, name) for name in names if hasattr(m, name)) for m in attention]


@contextmanager
def replaced_outputs(model, size, removed):
    """Outputs of some heads replaced: removed maps (layer, head) to a vector."""

    def hook(layer):
        def replace(_, inputs):
            states = inputs[0].clone()
            for (at, head), new in removed.items():
                if at == layer:
                    states[..., head * size : (head + 1) * size] = new
            return (states,)

        return replace

    handles = [m.register_forward_pre_hook(hook(layer)) for layer, m in enumerate(projections(model))]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def mean_outputs(model, windows, size):
    """The mean output of each layer's heads over all tokens of the windows, (heads · size)."""
    kept = [[] for _ in projections(model)]

    def keep(layer):
        return lambda _, inputs: kept[layer].append(inputs[0].detach().reshape(-1, inputs[0].shape[-1]).double())

    handles = [m.register_forward_pre_hook(keep(layer)) for layer, m in enumerate(projections(model))]
    with torch.no_grad():
        for ids in windows:
            model(ids[None])
    for handle in handles:
        handle.remove()
    return [torch.cat(rows).mean(0).float() for rows in kept]


def losses(model, ids):
    """Loss of each token but the first."""
    with torch.no_grad():
        logs = model(ids).logits.double().log_softmax(-1)
    return -logs[:, :-1].gather(-1, ids[:, 1:, None])[..., 0]


def divergence(model, ids, change):
    """Sum over tokens of the KL divergence of the next-token probabilities with changed keys."""
    with torch.no_grad():
        own = model(ids).logits[0].double().log_softmax(-1)
    with changed_attention(model, lambda layer, q, k, v, s: (q, change(layer, k[0])[None].to(k.dtype), v)):
        other = model(ids).logits[0].double().log_softmax(-1)
    return float((own.exp() * (own - other)).sum())


def on_grid(keys, bits, axis=-2):
    """Keys rounded to 2^bits equal levels from the least entry of a channel to the largest, and the steps."""
    low, high = keys.amin(axis, keepdim=True), keys.amax(axis, keepdim=True)
    step = (high - low) / (2**bits - 1)
    level = ((keys - low) / torch.where(step > 0, step, torch.ones_like(step))).round()
    return low + level * step, step.expand_as(keys)


def kind(previous, first, itself, induction, duplicate, share):
    """The name of a head's pattern, as the documents give it."""
    copies = {name: x for name, x in (("induction", induction), ("duplicate", duplicate)) if x >= 0.4}
    others = {
        name: x for name, x in (("previous token", previous), ("first token", first), ("self", itself)) if x >= 0.4
    }
    named = copies or others
    return max(named, key=named.get) if named else "broad" if share >= 0.5 else "mixed"


def copies(ids, weights, after):
    """Mean weight on earlier copies of the token, or on what came after them; NaN if nothing is repeated."""
    found = []
    for place in range(4, len(ids)):
        same = [j for j in range(place) if ids[j] == ids[place]]
        seen = [j + 1 for j in same if j + 1 < place] if after else same
        if seen:
            found.append(float(weights[place, seen].sum()))
    return np.mean(found) if found else np.nan
