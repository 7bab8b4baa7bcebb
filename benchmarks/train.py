"""Training speed of qkv, compared with transformers' GPT-2, the rate of plain matrix products, and padded batches."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np
from peak_memory import peak_bytes

VOCAB = 256
BATCH = {"tiny": 64, "course": 32}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="one round of one step, small batches, the tiny model only"
    )
    parser.add_argument("--rounds", type=int, default=6, help="turns of each side")
    parser.add_argument("--steps", type=int, default=4, help="steps in each turn")
    parser.add_argument(
        "--cpu",
        action="store_true",
        help="one thread, and its processor time: for a machine that is busy with other work",
    )
    parser.add_argument("--worker", nargs=3, metavar=("SIDE", "PRESET", "BATCH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cpu:
        use_one_thread()
    if options.worker:
        work(*options.worker[:2], int(options.worker[2]))
        return
    rounds, steps = (1, 1) if options.quick else (options.rounds, options.steps)
    figures: dict[str, Any] = {"ratios": {}, "threads": 1 if options.cpu else os.cpu_count()}
    print(f"{'what':<26} {'ours':>9} {'other':>9} {'ratio':>6}   tokens/s, medians of {rounds} turns each")
    for preset in ("tiny",) if options.quick else ("tiny", "course"):
        batch = 4 if options.quick else BATCH[preset]
        sides, rate = take_turns(("ours", "peer", "peer-gelu", "ours-bfloat16"), preset, batch, rounds, steps)
        ours, peer, exact_gelu, half = sides
        figures["ratios"][f"{preset}: Hugging Face"] = line(f"{preset}, GPT-2 as it comes", ours, peer)
        figures["ratios"][f"{preset}: Hugging Face, exact GELU"] = line("  with our exact GELU", ours, exact_gelu)
        figures["ratios"][f"{preset}: bfloat16 to Hugging Face"] = line("  ours in bfloat16", half, peer)
        gflops = statistics.median(6 * ours.facts["parameters"] * t / 1e9 for t in ours.speeds)
        figures["ratios"][f"{preset}: matrix products"] = round(gflops / rate, 3)
        figures[f"{preset}: GFLOP/s"] = [round(gflops, 1), round(rate, 1)]
        print(
            f"{preset + ', of the machine':<26} {gflops:>9.1f} {rate:>9.1f} {gflops / rate:>6.2f}   GFLOP/s", flush=True
        )
    (packed, padded), _ = take_turns(("packed", "padded"), "tiny", 4 if options.quick else 64, rounds, steps)
    figures["ratios"]["ragged: padded"] = line("ragged (42 of 64), padded", packed, padded)
    batch = 4 if options.quick else 128
    (ours, peer), _ = take_turns(
        ("ours", "peer"), "tiny" if options.quick else "course", batch, 1, 1 if options.quick else 2
    )
    gb = [side.facts["gb"] for side in (ours, peer)]
    figures["ratios"]["memory: Hugging Face"] = round(gb[0] / gb[1], 3)
    print(f"{f'course, batch {batch}, memory':<26} {gb[0]:>9.2f} {gb[1]:>9.2f} {gb[0] / gb[1]:>6.2f}   GB at the peak")
    print(json.dumps(figures))


class Clock:
    """The clock of this process: wall-clock time, or processor time with --cpu."""

    read = staticmethod(time.perf_counter)
    options: tuple[str, ...] = ()


def use_one_thread() -> None:
    """Compute with one thread, and measure its processor time, here and in worker processes."""
    import torch

    torch.set_num_threads(1)
    Clock.read, Clock.options = staticmethod(time.process_time), ("--cpu",)


class Side:
    """A worker process that runs training steps on request."""

    def __init__(self, side: str, preset: str, batch: int) -> None:
        command = [sys.executable, __file__, *Clock.options, "--worker", side, preset, str(batch)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.speeds: list[float] = []
        self.facts: dict[str, Any] = {}

    def turn(self, steps: int, record: bool = True) -> None:
        """Run some steps; record the speed, unless they only warm up."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        self.facts = json.loads(self._process.stdout.readline())
        if record:
            self.speeds.append(self.facts["tokens"] / statistics.median(self.facts["seconds"]))

    def end(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def take_turns(names: tuple[str, ...], preset: str, batch: int, rounds: int, steps: int) -> tuple[list[Side], float]:
    """Run all sides in turn, so that other load on the machine affects them alike; and the rate of matrix products."""
    sides = [Side(name, preset, batch) for name in names]
    rates = []
    for side in sides:
        side.turn(2 if steps > 1 else 1, record=False)  # warm up
    for _ in range(rounds):
        for side in sides:
            side.turn(steps)
        rates.append(matmul_rate())
    for side in sides:
        side.end()
    return sides, statistics.median(rates)


def line(name: str, one: Side, two: Side) -> float:
    """Print the speeds of two sides; the median of the ratios of their turns."""
    speeds = [statistics.median(side.speeds) for side in (one, two)]
    ratio = statistics.median(a / b for a, b in zip(one.speeds, two.speeds, strict=True))
    print(f"{name:<26} {speeds[0]:>9,.0f} {speeds[1]:>9,.0f} {ratio:>6.2f}", flush=True)
    return round(ratio, 3)


def matmul_rate(n: int = 1024) -> float:
    """GFLOP/s of float32 products of square matrices, the median of a few."""
    import torch

    a, b = torch.randn(n, n), torch.randn(n, n)
    times = []
    for _ in range(12):
        began = Clock.read()
        _ = a @ b
        times.append(Clock.read() - began)
    return 2 * n**3 / statistics.median(times[2:]) / 1e9


def work(side: str, preset: str, batch: int) -> None:
    """Run as many steps as each line of standard input says, and print their times as a line of JSON."""
    step, tokens, parameters = (peer if side.startswith("peer") else ours)(preset, batch, side)
    for count in sys.stdin:
        seconds = []
        for _ in range(int(count)):
            began = Clock.read()
            step()
            seconds.append(Clock.read() - began)
        peak = peak_bytes() / 2**30
        print(json.dumps({"seconds": seconds, "tokens": tokens, "parameters": parameters, "gb": peak}), flush=True)


def data(context_length: int, batch: int, ragged: bool) -> list[list[int]]:
    """Random sequences, of full length or of 20 to 64 tokens."""
    random = np.random.default_rng(0)
    lengths = random.integers(20, 65, batch) if ragged else np.full(batch, context_length)
    return [random.integers(3, VOCAB, n + 1).tolist() for n in lengths]


def ours(name: str, batch: int, side: str) -> Any:
    """qkv's training step: packing, loss, gradients, clipping, AdamW."""
    from unittest import mock

    from qkv.model.config import preset
    from qkv.model.gpt import GPT
    from qkv.train import loop
    from qkv.train.allocator import reuse_memory
    from qkv.train.data.objectives import Example
    from qkv.train.data.packing import pack
    from qkv.train.distributed import ProcessGroup
    from qkv.train.optimizers import make_optimizer
    from qkv.train.settings import TrainSettings

    reuse_memory(large_pages=True)
    config = preset(name, vocab_size=VOCAB)
    examples = [Example(ids) for ids in data(config.context_length, batch, side in ("packed", "padded"))]
    model = GPT(config).train()
    settings = TrainSettings(batch_size=batch, precision="bfloat16" if side.endswith("bfloat16") else "float32")
    optimizer = make_optimizer({p: n for n, p in model.named_parameters()}, settings)
    packing = (lambda examples, exact: pack(examples, config.context_length)) if side == "padded" else pack

    def step() -> None:
        with mock.patch.object(loop, "pack", packing):
            loop.one_step(model, optimizer, examples, 0, settings, ProcessGroup())

    return step, sum(len(e.ids) - 1 for e in examples), sum(p.numel() for p in model.parameters())


def peer(name: str, batch: int, side: str) -> Any:
    """The step of transformers' GPT-2 of the same shape and dropout, with the same optimizer and clipping."""
    import torch
    import transformers

    from qkv.model.config import preset

    transformers.logging.set_verbosity_error()
    c = preset(name, vocab_size=VOCAB)
    config = transformers.GPT2Config(
        vocab_size=VOCAB, n_positions=c.context_length, n_embd=c.d_model, n_layer=c.n_layer, n_head=c.n_head,
        resid_pdrop=c.dropout, embd_pdrop=c.dropout, attn_pdrop=0.0, use_cache=False, bos_token_id=0, eos_token_id=0
    )  # fmt: skip
    if side == "peer-gelu":
        config.activation_function = "gelu"
    model = transformers.GPT2LMHeadModel(config).train()
    groups = [
        {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), fused=True)
    rows = torch.tensor(data(c.context_length, batch, False))
    x, y = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        logits = model(input_ids=x).logits
        loss = torch.nn.functional.cross_entropy(logits.view(-1, VOCAB), y.view(-1))
        loss.backward()
        loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step, x.numel(), sum(p.numel() for p in model.parameters())


if __name__ == "__main__":
    main()
