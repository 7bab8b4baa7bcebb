"""Sound inputs of every kind, made once: a trained run, tables, texts, questions, claims, arrays and a tiny model.

They are made in a process of its own, since `processes.Fork` needs a parent that has not trained anything.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from faults.processes import ROOT, environment

CLAIMS = """```claim average
given k_1..k_n orthonormal, n >= 3
let   q = t*(k_a + k_b)
then  c -> (v_a + v_b)/2 as t -> oo
then  alpha_a = exp(t)/(2*exp(t) + n - 2)
```

```claim odd
given t > 0
then t < 0
```
"""
SHEET = """# Temperature

## a) Cold

I take $q = t k_a$. Then $\\alpha_a \\to 1$ as $t \\to \\infty$, and so $c \\to v_a$.

## b) Hot

As t goes to 0, all weights are $\\frac{1}{n}$.
"""
SAMPLES_VARIABLE = "QKV_FAULT_SAMPLES"
"""Environment variable with a folder that `make` has filled already."""


@cache
def samples() -> Path:
    """The folder of sound inputs; made in a temporary folder unless the environment names one."""
    given = os.environ.get(SAMPLES_VARIABLE)
    folder = Path(given) if given else Path(_temporary().name)
    if not (folder / "complete").is_file():
        command = [sys.executable, "-m", "faults.samples", str(folder)]
        subprocess.run(command, cwd=ROOT, env=environment(), check=True, capture_output=True)
    return folder


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    """Kept until this process ends."""
    return tempfile.TemporaryDirectory(prefix="qkv-fault-samples-")


def make(here: Path) -> None:
    """Fill a folder with sound inputs."""
    here.mkdir(parents=True, exist_ok=True)
    _arrays(here)
    _texts(here)
    _run(here)
    _language_model(here)
    _certificate(here)
    (here / "complete").write_text("")


def _arrays(here: Path) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    rng = np.random.default_rng(0)
    keys, values = rng.normal(size=(6, 4)), rng.normal(size=(6, 3))
    np.savez(here / "memory.npz", keys=keys, values=values)
    np.savez_compressed(here / "packed.npz", keys=keys, values=values)
    np.save(here / "keys.npy", keys)
    save_file({"keys": keys, "values": values}, here / "memory.safetensors")
    rows = "".join(f"item{i}," + ",".join(f"{x:.6f}" for x in row) + "\n" for i, row in enumerate(keys))
    (here / "keys.csv").write_text("name,x,y,z,w\n" + rows)
    import json

    (here / "memory.json").write_text(json.dumps({"keys": keys.tolist(), "labels": [f"item{i}" for i in range(6)]}))
    (here / "query.json").write_text("[1.0, 0.5, -0.5, 0.25]")
    a, b, c, d = 4 * np.eye(4)
    tokens = {"X": np.array([d + b, a, c + b]), "writes": np.array([b - c, b]), "u_d": d, "u_b": b}
    np.savez(here / "tokens.npz", **tokens)
    np.savez(here / "spans.npz", A=np.eye(3)[:, :1], B=np.eye(3)[:, 1:])
    np.savez(here / "heads.npz", keys=np.stack([4 * np.eye(3), 3 * np.eye(3)]), queries=np.eye(3)[:2])
    np.savez(here / "words.npz", tokens=rng.normal(size=(12, 6)))
    (here / "token_texts.json").write_text("[[0, 1, 0, 2], [3, 4, 3, 5]]")


def _texts(here: Path) -> None:
    (here / "claims.md").write_text(CLAIMS)
    (here / "answers.md").write_text(SHEET)
    for name, example in (("sheet.tex", "answer_sheet.tex"), ("problem.md", "temperature_problem.md")):
        if (ROOT / "examples" / example).is_file():
            (here / name).write_bytes((ROOT / "examples" / example).read_bytes())
    facts = ["title,author,year", *(f"Book {i},Writer {i % 5},{1900 + i}" for i in range(12))]
    (here / "facts.csv").write_text("\n".join(facts) + "\n")
    lines = [f'{{"subject": "Book {i}", "relation": "author", "object": "Writer {i % 5}"}}' for i in range(12)]
    (here / "facts.jsonl").write_text("\n".join(lines) + "\n")
    options = {"steps": 3, "batch_size": 2, "n_layer": 1, "d_model": 16, "n_head": 2, "lr": 0.002}
    (here / "options.toml").write_text("".join(f"{name} = {value}\n" for name, value in options.items()))
    import json

    (here / "options.json").write_text(json.dumps(options, indent=1))


def _run(here: Path) -> None:
    from qkv.knowledge import biographies, pantheon, questions, train_mixed, trust
    from qkv.model.config import ModelConfig
    from qkv.train.settings import TrainSettings
    from qkv.train.tokenizers import BytePairs

    people = pantheon().sample(40, seed=2)
    texts, asked = biographies(people, 2, order="permuted").texts, questions(people).pairs
    (here / "text.txt").write_text("\n".join(texts) + "\n", "utf-8")
    (here / "known.tsv").write_text("".join(f"{q}\t{a}\n" for q, a in questions(people, ["city", "year"])), "utf-8")
    unknown = "".join(f"Where was {name} born?\n" for name in people.invented_names(30, seed=2))
    (here / "unknown.txt").write_text(unknown, "utf-8")
    train_mixed(
        here / "run", texts, asked, 0.5,
        config=ModelConfig(attention="rope", n_layer=1, n_head=2, d_model=48, context_length=80),
        tokenizer=BytePairs.train([*texts, *(q for q, _ in asked)], 500),
        settings=TrainSettings(
            steps=240, batch_size=16, lr=8e-3, objective="next", val_fraction=0.0, log_every=20, checkpoint_every=40
        ),
    )  # fmt: skip
    trust(here / "run", here / "known.tsv", here / "unknown.txt", text=here / "text.txt", level=0.6)


def _certificate(here: Path) -> None:
    import qkv

    qkv.design.copy(qkv.Memory.load(here / "memory.json"), 0).certificate.save(here / "certificate.json")


def _language_model(here: Path) -> None:
    """A random causal Hugging Face model of two small layers; left out where transformers is not installed."""
    try:
        import transformers
    except ImportError:
        return
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    from qkv.knowledge import pantheon

    pairs = Tokenizer(models.BPE())
    pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pairs.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False
    )
    pairs.train_from_iterator([f"{p.name} was born in {p.city}\n" for p in pantheon().people[:200]], trainer)
    words = transformers.PreTrainedTokenizerFast(tokenizer_object=pairs, eos_token="<|end|>", bos_token="<|end|>")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=512, n_embd=32, n_layer=2, n_head=4, n_positions=512, bos_token_id=0, eos_token_id=0
    )
    transformers.GPT2LMHeadModel(config).eval().save_pretrained(here / "model")
    words.save_pretrained(here / "model")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
