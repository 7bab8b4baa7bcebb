"""Decoding speed of qkv for prompts of mixed lengths, compared with transformers' generate and with no KV cache."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import transformers

from qkv.model.config import preset
from qkv.model.decoding import decode
from qkv.model.gpt import GPT
from qkv.train import checkpoint
from qkv.train.allocator import reuse_memory
from qkv.train.convert.hf_export import gpt2_config
from qkv.train.convert.weight_names import GPT2

VOCAB, NEW = 256, 16
Clock = Callable[[], float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="8 prompts, one round, the tiny model")
    parser.add_argument("--prompts", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side")
    parser.add_argument(
        "--cpu",
        action="store_true",
        help="one thread, and its processor time: for a machine that is busy with other work",
    )
    options = parser.parse_args()
    if options.cpu:
        torch.set_num_threads(1)
    clock = time.process_time if options.cpu else time.perf_counter
    count, rounds = (8, 1) if options.quick else (options.prompts, options.rounds)
    reuse_memory()
    transformers.logging.set_verbosity_error()
    figures: dict[str, Any] = {"prompts": count, "new": NEW, "ratios": {}}
    print(f"{count} questions of 22 to 47 tokens, {NEW} new tokens each; seconds, medians of {rounds} turns each")
    for name in ("tiny",) if options.quick else ("tiny", "course"):
        batches = (4, 8) if options.quick else (32, 64, 128, 256, 500)
        figures |= {name: measure(name, count, rounds, batches, clock)}
        for peer in ("transformers", "naive"):
            figures["ratios"][f"{name}: {peer}"] = figures[name][f"{peer}_ratio"]
    print(json.dumps(figures))


def measure(name: str, count: int, rounds: int, batches: tuple[int, ...], clock: Clock) -> dict[str, Any]:
    """The times of both sides on the same weights, and how many texts agree."""
    torch.manual_seed(0)
    config = preset(name, vocab_size=VOCAB)
    model = GPT(config).eval()
    with torch.no_grad():
        for p in model.parameters():  # away from small initial weights, so that texts differ
            p.add_(0.05 * torch.randn_like(p))
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**gpt2_config(config))).eval()
    theirs.load_state_dict(GPT2.theirs(checkpoint.state_of(model), config), strict=False)
    theirs.tie_weights()
    theirs.generation_config.eos_token_id = None
    prompts = questions(count)

    def ours() -> list[list[int]]:
        return decode(model, prompts, NEW).tokens

    peers = {b: peer(theirs, prompts, b) for b in batches}
    agree = sum(a == b for a, b in zip(ours(), peers[batches[0]](), strict=True))
    best = min(batches, key=lambda b: timed(peers[b], clock))
    turns = [(timed(ours, clock), timed(peers[best], clock)) for _ in range(rounds)]
    seconds, other = (statistics.median(side) for side in zip(*turns, strict=True))
    ratio = statistics.median(b / a for a, b in turns)
    few = prompts[: max(2, count // 20)]
    slow = timed(lambda: naive(model, few), clock) * count / len(few)
    print(f"{name:>7}: ours {seconds:.3f}, transformers {other:.3f} ({ratio:.2f} times, batch {best}), "
          f"naive {slow:.1f} ({slow / seconds:.0f} times); {agree} of {count} texts agree", flush=True)  # fmt: skip
    return {
        "seconds": round(seconds, 4), "transformers_seconds": round(other, 4), "transformers_batch": best,
        "transformers_ratio": round(ratio, 3), "naive_ratio": round(slow / seconds, 1), "agree": f"{agree}/{count}",
    }  # fmt: skip


def questions(count: int) -> list[list[int]]:
    """Where was NAME born? with names of 5 to 30 letters, one token for each letter, and a final separator."""
    random = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz "))
    names = ["".join(random.choice(letters, n)) for n in random.integers(5, 31, count)]
    return [[*f"Where was {name} born?".encode(), 1] for name in names]


def peer(model: Any, prompts: list[list[int]], batch: int) -> Callable[[], list[list[int]]]:
    """transformers' generate, batch by batch, padded on the left."""

    @torch.inference_mode()
    def run() -> list[list[int]]:
        out = []
        for first in range(0, len(prompts), batch):
            some = prompts[first : first + batch]
            longest = max(map(len, some))
            ids = torch.tensor([[0] * (longest - len(p)) + p for p in some])
            seen = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in some])
            made = model.generate(
                input_ids=ids, attention_mask=seen, max_new_tokens=NEW, do_sample=False, pad_token_id=0
            )
            out += made[:, longest:].tolist()
        return out

    return run


@torch.inference_mode()
def naive(model: GPT, prompts: list[list[int]]) -> None:
    """Process the whole text again for every token, one prompt at a time."""
    for prompt in prompts:
        text = list(prompt)
        for _ in range(NEW):
            text.append(int(model(torch.tensor([text]))[0, -1].argmax()))


def timed(run: Callable[[], Any], clock: Clock) -> float:
    """Seconds that a call takes."""
    began = clock()
    run()
    return clock() - began


if __name__ == "__main__":
    main()
