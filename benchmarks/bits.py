"""How few bits do keys need? Predictions of rounding, allocated bits and the packed cache, on MiniLM and SmolLM2.

Texts: `texts/wiki.txt` and `texts/essay.txt` were written for this measurement, and the code is qkv's own. Allocations
are calibrated on Python's reference manual (`pydoc_data`, part of every Python), on other windows for each seed; what
is measured on is never calibrated on. Windows have grids of their own. `bits_forecast.py` compares the KL divergence
with what was expected.

    python benchmarks/bits.py --smollm2 models/smollm2 --minilm models/minilm
"""

import argparse
import json
import math
import random
import time
from pathlib import Path

import numpy as np
import torch

import qkv
from qkv.heads.allocation import COUNTS, NUMBERS, Calibration, rounded_keys
from qkv.heads.key_grid import key_grid
from qkv.heads.rounding import rounding
from qkv.heads.sensitivity import key_gradients

ROOT = Path(__file__).resolve().parents[1]
DOMAINS = {
    "wiki": ROOT / "benchmarks" / "texts" / "wiki.txt",
    "essay": ROOT / "benchmarks" / "texts" / "essay.txt",
    "code": ROOT / "src" / "qkv" / "core" / "memory.py",
}
WINDOW = 256
"""Tokens of the windows that allocations are calibrated and measured on."""
CALIBRATION_WINDOWS, SAMPLES, EVALUATION_WINDOWS = 4, 2, 8
KIVI_GROUP = 32


def fit(rows, predicted, measured):
    """R² about y = x, and the ratio of the means."""
    x, y = (np.array([getattr(row, name) for row in rows]) for name in (predicted, measured))
    return 1 - float(((y - x) ** 2).sum() / ((y - y.mean()) ** 2).sum()), float(x.mean() / y.mean())


def predictions(model, text, window, bits):
    """Predicted against measured, over the heads."""
    start = time.perf_counter()
    found = rounding(model, text, bits, window=window)
    out = {"tokens": found.tokens, "windows": found.windows, "heads": len(found) // len(bits)}
    for b in bits:
        rows = [row for row in found if row.bits == b]
        error, survival = fit(rows, "predicted", "measured"), fit(rows, "survives_predicted", "survives")
        out[b] = {
            "error_r2": error[0], "error_ratio": error[1], "survival_r2": survival[0],
            "mean_error": float(np.mean([row.measured for row in rows])),
            "survives": float(np.mean([row.survives for row in rows])),
            "certified": float(np.mean([row.certified for row in rows])),
            "exact_queries": sum(row.exact_queries for row in rows),
            "certified_but_moved": sum(row.certified > row.survives for row in rows),
        }  # fmt: skip
        print(
            f"  {b} bits: error R² {error[0]:.3f}, ratio {error[1]:.3f}; top item stays R² {survival[0]:.3f}",
            flush=True,
        )
    out["seconds"] = time.perf_counter() - start
    return out


class Domain:
    """Windows of one text, with the model's own probabilities."""

    def __init__(self, model, name, count):
        self.model, self.name = model, name
        self.windows = model.windows(DOMAINS[name].read_text(encoding="utf-8"), WINDOW)[:count]
        self.own = [model.run(ids[None]).logits[0].log_softmax(-1) for ids in self.windows]

    def compare(self, logits_of):
        """KL and perplexity of other logits, in nats per token."""
        kl = loss = 0.0
        for ids, own in zip(self.windows, self.own, strict=True):
            other = logits_of(ids).log_softmax(-1)
            kl += float((own.double().exp() * (own.double() - other.double())).sum())
            loss -= float(other[:-1].gather(1, ids[1:, None]).double().sum())
        tokens = sum(map(len, self.windows))
        return {"kl": kl / tokens, "perplexity": math.exp(loss / (tokens - len(self.windows)))}

    def rounded(self, keys):
        return self.compare(lambda ids: self.model.run(ids[None], keys=keys).logits[0])


def calibration_windows(model, seed, count):
    """Windows of Python's reference manual, drawn by the seed."""
    from pydoc_data.topics import topics

    names = sorted(topics)
    random.Random(seed).shuffle(names)
    found, most = [], 0
    while len(found) < count:
        most += 8
        found = [w for w in model.windows("\n\n".join(topics[n] for n in names[:most]), WINDOW) if len(w) == WINDOW]
    return found[:count]


def entropy_bits(model, windows, average):
    """Bits of each key head by the entropy of its attention: average + (mean entropy - own) / 4, with H₂ in bits.

    The rule of vllm issue 38930; rounded down, and the bits that are left go to the largest remainders.
    """
    shape, entropies = model.shape, torch.zeros(model.shape.layers, model.shape.heads, dtype=torch.float64)

    def tap(_, call):
        entropies[call.layer] -= call.weights[0].double().square().sum(-1).log2().mean(-1) / len(windows)

    model.stream(windows, tap, lambda done, total: None)
    own = entropies.reshape(shape.layers, shape.key_heads, -1).mean(-1).flatten()
    wanted = (average + (own.mean() - own) / 4).clamp(min=1, max=8)
    bits = wanted.floor()
    left = int(average * len(own) - bits.sum())
    bits[(wanted - bits).argsort(descending=True)[: max(0, left)]] += 1
    return bits.clamp(max=8).long().reshape(shape.layers, shape.key_heads, 1).expand(-1, -1, shape.size)


def grouped(bits, group):
    """Keys rounded channel by channel in groups of tokens, as KIVI stores them, with the values left alone."""

    def change(_, key, value):
        parts = [key_grid(part, bits).rounded(part) for part in key.split(group, 2)]
        return torch.cat(parts, 2), value

    return change


def shown(label, stored, found):
    cells = "  ".join(f"{d} {f['kl']:.4f} ({f['perplexity']:.2f})" for d, f in found.items())
    print(f"  {label:34} {stored:6.3f} bits  {cells}", flush=True)


def allocation(model, averages, seeds, calibration_count, evaluation_count):
    """The table of KL and perplexity, and the packed cache against the simulation."""
    domains = {name: Domain(model, name, evaluation_count) for name in DOMAINS}
    shape = (model.shape.layers, model.shape.key_heads, model.shape.size)
    table, start = {}, time.perf_counter()
    whole = {n: d.rounded(None) for n, d in domains.items()}
    shown("whole keys", 32, whole)
    grid_bits = 32 / WINDOW

    def measure(label, keys, bits, grids, average):
        found = {name: domain.rounded(keys) for name, domain in domains.items()}
        shown(label, bits + grids, found)
        table.setdefault(average, {})[label] = {"stored_bits": bits + grids, **found}
        return found

    for average in averages:
        measure("uniform", rounded_keys(torch.full(shape, average)), average, grid_bits, average)
    chosen, own_basis = {}, {}
    for seed in range(seeds):
        gradients = key_gradients(model, calibration_windows(model, seed, calibration_count), SAMPLES, seed)
        calibration = Calibration.of(gradients)
        rotated = Calibration.of(gradients, in_own_basis=True) if seed == 0 else None
        for average in averages:
            chosen[average, seed] = calibration.cheapest(average)
            bits = chosen[average, seed].bits
            measure(f"allocated, seed {seed}", rounded_keys(bits), float(bits.double().mean()), grid_bits, average)
            if rotated is not None:
                own_basis[average] = rotated.cheapest(average)
    for average in averages:
        ratios_to_uniform(table[average], seeds)
    for average in averages:
        entropy = entropy_bits(model, calibration_windows(model, 0, calibration_count), average)
        measure("per head, by entropy", rounded_keys(entropy), float(entropy.double().mean()), grid_bits, average)
        measure("KIVI-style, groups of 32 tokens", grouped(average, KIVI_GROUP), average, 32 / KIVI_GROUP, average)
        own = own_basis[average]
        keys, mean = rounded_keys(own.bits, own.sensitivity.basis), float(own.bits.double().mean())
        measure("allocated in own basis, seed 0", keys, mean, grid_bits, average)
    cache = packed(model, domains, table, chosen)
    return {
        "window": WINDOW, "calibration_windows": calibration_count, "evaluation_windows": evaluation_count,
        "seeds": seeds, "whole": whole, "table": table, "cache": cache,
        "seconds": time.perf_counter() - start,
    }  # fmt: skip


def ratios_to_uniform(rows, seeds):
    """Add the KL of the allocations over that of uniform bits, for each text."""
    rows["ratio_to_uniform"] = {}
    for name in DOMAINS:
        even = rows["uniform"][name]["kl"]
        ratios = [rows[f"allocated, seed {s}"][name]["kl"] / even for s in range(seeds)]
        rows["ratio_to_uniform"][name] = {"mean": float(np.mean(ratios)), "worst": max(ratios)}
        print(f"    {name}: {np.mean(ratios):.2f} of uniform's KL, at worst {max(ratios):.2f}", flush=True)


def packed(model, domains, table, chosen):
    """The packed cache: its size against the promise, and its KL against that of the simulation."""
    out = {}
    for average in sorted({a for a, _ in chosen}):
        bits = chosen[average, 0].bits
        nothing = dict.fromkeys((*NUMBERS, *COUNTS), 0)
        given = qkv.heads.Allocation(model="", bits=bits, basis=None, **{**nothing, "average": average})
        for name, domain in domains.items():
            caches = []

            def logits(ids, given=given, caches=caches):
                cache = qkv.heads.quantised_cache(model, given, tail=0, group=WINDOW, exact_prompt=False)
                caches.append(cache)
                with torch.no_grad():
                    return model.model(input_ids=ids[None], past_key_values=cache, use_cache=True).logits[0]

            found = domain.compare(logits)
            simulated = table[average]["allocated, seed 0"][name]["kl"]
            promised = WINDOW * int(bits.sum()) / 8 + 4 * bits.numel()
            out[f"{average} {name}"] = {
                "kl_over_simulated": found["kl"] / simulated,
                "size_over_promised": caches[0].key_bytes() / promised,
                "size_over_float16": 2 * caches[0].key_bytes() / caches[0].whole_key_bytes(),
            }
            print(f"  cache, {average} bits, {name}: {out[f'{average} {name}']}", flush=True)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smollm2", default="models/smollm2", help="folder of `qkv models get smollm2`")
    parser.add_argument("--minilm", default="models/minilm", help="folder of `qkv models get minilm`")
    parser.add_argument("--part", choices=("predictions", "allocation"), help="one part only")
    parser.add_argument("--quick", action="store_true", help="one seed, one window of each text")
    parser.add_argument("--calibration-windows", type=int, default=CALIBRATION_WINDOWS, help="of each seed")
    parser.add_argument("--evaluation-windows", type=int, default=EVALUATION_WINDOWS, help="of each text")
    options = parser.parse_args()
    texts = [path.read_text(encoding="utf-8") for path in DOMAINS.values()]
    found = {}
    if options.part != "allocation":
        print("MiniLM, each paragraph a text", flush=True)
        paragraphs = [p for t in texts for p in t.split("\n\n") if 150 <= len(p) <= 2000]
        minilm = qkv.heads.open(options.minilm)
        found["minilm"] = predictions(minilm, paragraphs[:4] if options.quick else paragraphs, None, (4, 3))
        smollm2 = qkv.heads.open(options.smollm2)
        print("SmolLM2, windows of 128 tokens", flush=True)
        ids = [w for t in texts for w in smollm2.windows(t, 128)[:5] if len(w) == 128]
        windows = [smollm2.tokenizer.decode(w) for w in (ids[:2] if options.quick else ids)]
        found["smollm2"] = predictions(smollm2, windows, 128, (4, 3))
    if options.part != "predictions":
        print(f"SmolLM2, allocated bits, windows of {WINDOW} tokens", flush=True)
        sizes = (1, 1, 1) if options.quick else (5, options.calibration_windows, options.evaluation_windows)
        found["allocation"] = allocation(qkv.heads.open(options.smollm2), (3, 4), *sizes)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
