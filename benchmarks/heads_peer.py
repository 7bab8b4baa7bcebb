"""The peer's side of benchmarks/heads.py: attention patterns and OV eigenvalues with TransformerLens.

Runs in an environment of its own, which has TransformerLens and not qkv. It prints one JSON
line; the measures go to a file.
"""

from __future__ import annotations

import argparse
import json
import time
from importlib.metadata import version

import torch
import transformers
from peak_memory import peak_bytes
from transformer_lens.model_bridge import TransformerBridge

SKIPPED = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("tokens", help="file with token ids, (windows, tokens)")
    parser.add_argument("out", help="file for the measures")
    parser.add_argument("--hooks", action="store_true", help="stream with hooks in place of run_with_cache")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    clock = time.process_time if options.cpu else time.perf_counter
    ids = torch.load(options.tokens)
    model = TransformerBridge.boot_transformers(options.folder)
    loaded = peak_bytes() / 2**30
    start = clock()
    with torch.no_grad():
        found = patterns(model, ids, options.hooks)
        watched = clock()
        found["copying"] = copying(model)
    seconds = clock() - start
    torch.save(found, options.out)
    peak = peak_bytes() / 2**30
    print(
        json.dumps(
            {
                "seconds": seconds, "seconds_patterns": watched - start, "gb": peak, "gb_loaded": loaded,
                "version": version("transformer-lens"),
            }
        )
    )  # fmt: skip


def patterns(model: TransformerBridge, ids: torch.Tensor, hooks: bool) -> dict[str, torch.Tensor]:
    """The measures of every head, averaged over the windows."""
    masks, rows = pattern_masks(ids)
    found: list[dict[str, torch.Tensor]] = []

    def is_pattern(name: str) -> bool:
        return name.endswith("hook_pattern")

    if hooks:
        model.run_with_hooks(
            ids, return_type=None, fwd_hooks=[(is_pattern, lambda p, hook: found.append(scores(p, masks, rows)))]
        )
    else:
        _, cache = model.run_with_cache(ids, names_filter=is_pattern)
        found = [scores(cache["pattern", layer], masks, rows) for layer in range(model.cfg.n_layers)]
    return {name: torch.stack([one[name] for one in found]) for name in found[0]}


def pattern_masks(ids: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Where earlier copies of each token are, and what followed them."""
    n = ids.shape[1]
    earlier = torch.ones(n, n, dtype=torch.bool).tril(-1)
    same = (ids[:, :, None] == ids[:, None, :]) & earlier
    after = torch.zeros_like(same)
    after[:, :, 1:] = same[:, :, :-1]
    after &= earlier
    late = (torch.arange(n) >= SKIPPED)[None, :, None]
    return {"duplicate": same & late, "induction": after & late}, torch.arange(SKIPPED, n)


def scores(p: torch.Tensor, masks: dict[str, torch.Tensor], rows: torch.Tensor) -> dict[str, torch.Tensor]:
    """Measures of one layer from its patterns, (windows, heads, tokens, tokens)."""
    out = {
        "previous": p.diagonal(-1, -2, -1)[..., SKIPPED - 1 :].mean((0, -1)),
        "itself": p.diagonal(0, -2, -1)[..., SKIPPED:].mean((0, -1)),
        "first": p[..., SKIPPED:, 0].mean((0, -1)),
        "effective": torch.special.entr(p[..., SKIPPED:, :]).sum(-1).exp().mean((0, -1)),
    }
    for name, mask in masks.items():
        out[name] = torch.einsum("bhqk,bqk->h", p, mask.to(p.dtype)) / mask.any(-1).sum()
    return out


def copying(model: TransformerBridge) -> torch.Tensor:
    """Sum of the eigenvalues of each head's token-to-logits matrix over the sum of their sizes."""
    full = model.W_E @ model.OV @ model.W_U
    eigenvalues = full.eigenvalues
    return eigenvalues.real.sum(-1) / eigenvalues.abs().sum(-1)


if __name__ == "__main__":
    main()
