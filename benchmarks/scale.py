"""How do time and memory of each verb grow with its size, and what is said at the limit? Curves with fitted exponents.

Every point is a process of its own, which reports seconds of CPU and the growth of its peak memory; a curve ends when a
point has taken its share of the time. The last line is JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from peak_memory import peak_bytes

SECONDS_A_POINT = 12.0
"""After a point that took longer, a curve ends."""
LONGEST = 60.0
"""Seconds after which a point is given up."""


class Curve(NamedTuple):
    """A verb at several sizes: the name of the size, what is measured, and the sizes."""

    verb: str
    size: str
    what: str
    sizes: tuple[int, ...]


CURVES = (
    Curve("read", "n", "n keys in 64 dimensions", (10_000, 40_000, 160_000, 640_000)),
    Curve("design copy", "n", "n keys in 64 dimensions", (2000, 8000, 32_000, 128_000, 512_000)),
    Curve("design blend", "n", "n keys in 64 dimensions", (2000, 8000, 32_000, 128_000, 512_000)),
    Curve("design copyable", "n", "n keys in 16 dimensions, all decided", (250, 1000, 4000, 16_000)),
    Curve("design wire", "n", "n tokens in n dimensions, one read each", (32, 64, 128, 256, 512)),
    Curve("design wire-texts", "n", "n token vectors, induction, every text of 32", (500, 2000, 8000, 32_000)),
    Curve("design project", "n", "subspaces of n of 4n dimensions", (16, 32, 64, 128, 256)),
    Curve("design reach", "n", "n tokens in 16 dimensions", (32, 128, 512, 2048, 8192)),
    Curve("design verify", "n", "the certificate of a copy among n keys", (2000, 8000, 32_000, 128_000, 512_000)),
    Curve("noise moments", "n", "n noisy keys in 64 dimensions", (1000, 4000, 16_000, 64_000)),
    Curve("noise harden", "n", "n noisy keys in 16 dimensions", (8, 16, 32, 64, 128)),
    Curve("noise sample", "n", "a million draws over n keys", (8, 32, 128)),
    Curve("noise probability", "n", "n noisy keys in 16 dimensions", (32, 128, 512, 2048, 8192)),
    Curve("noise compare", "n", "n noisy keys in n dimensions", (8, 16, 32, 64, 128)),
    Curve("noise sweep", "n", "n heads of 16 keys, in one process", (64, 256, 1024, 4096)),
    Curve("check", "n", "n claims, one after another", (4, 8, 16, 32)),
    Curve("grade", "n", "n copies of a sheet in one process; a formula is decided once", (1, 2, 4)),
    Curve("heads", "n", "a text of n tokens, 2 layers of 4 heads", (128, 256, 512)),
    Curve("certify", "n", "one head and a text of n tokens", (64, 128, 256)),
    Curve("facts", "n", "n rows of a table", (1000, 4000, 16_000, 64_000)),
    Curve("pretrain", "n", "one step of n sequences of 64 tokens", (4, 16, 64, 256, 1024)),
    Curve("finetune", "n", "one step of n questions", (4, 16, 64, 256, 1024)),
    Curve("generate", "n", "n tokens from a small model", (12, 24, 48)),
    Curve("evaluate", "n", "n questions to a small model", (128, 512, 2048, 8192)),
    Curve("name-heads", "n", "n questions, one layer of 2 heads", (16, 64, 256)),
    Curve("export", "n", "a model of one layer and n dimensions", (64, 256, 1024, 2048)),
    Curve("import", "n", "a GPT-2 of one layer and n dimensions", (64, 256, 1024, 2048)),
    Curve("ask", "n", "one question, n sampled answers", (128, 512, 2048, 8192, 32_768)),
    Curve("trust", "n", "n people in the text and as many outside, a small model that knows them", (64, 128, 256, 512)),
    Curve("study", "n", "capacity, n people", (4, 8, 16)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the two smallest sizes of each verb")
    parser.add_argument("--only", help="verbs whose name holds this")
    parser.add_argument("--point", nargs=2, metavar=("VERB", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        print(json.dumps(measure(options.point[0], int(options.point[1]))))
        return
    curves = []
    for curve in CURVES:
        if (options.only and options.only not in curve.verb) or not available(curve.verb):
            continue
        found = curve_of(curve, curve.sizes[:2] if options.quick else curve.sizes)
        curves.append(found)
        points = ", ".join(f"{p['size']:,}: {p['seconds']:.2f} s {p['megabytes']:.0f} MB" for p in found["points"])
        print(f"{curve.verb:>18}: {points}; powers {found['time_power']} and {found['memory_power']}", flush=True)
    found_limits = [] if options.only else limits()
    for limit in found_limits:
        print(f"{limit['request']}: {limit['answer']}")
    print(json.dumps({"curves": curves, "limits": found_limits}))


def available(verb: str) -> bool:
    """Whether this version has the verb."""
    return (
        verb != "grade"
        or subprocess.run([sys.executable, "-m", "qkv", verb, "-h"], capture_output=True).returncode == 0
    )


def curve_of(curve: Curve, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Points of a curve until one takes too long, and the powers that fit its last three."""
    points: list[dict[str, Any]] = []
    for size in sizes:
        command = [sys.executable, __file__, "--point", curve.verb, str(size)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            break
        if done.returncode != 0:
            raise RuntimeError(f"{curve.verb} at {size}: {done.stderr[-600:]}")
        points.append({"size": size, **json.loads(done.stdout.splitlines()[-1])})
        if points[-1]["seconds"] > SECONDS_A_POINT:
            break
    powers = {
        "time_power": power(points, "seconds", 0.005),
        "memory_power": power(points, "megabytes", 5.0),
    }
    return {**curve._asdict(), "sizes": None, "points": points, **powers}


def power(points: list[dict[str, Any]], name: str, least: float) -> float | None:
    """The exponent that fits the last three points above a least value; None if there are fewer than two."""
    seen = [(p["size"], p[name]) for p in points if p[name] >= least][-3:]
    if len(seen) < 2:
        return None
    logs = np.log(np.array(seen, dtype=float))
    return round(float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0]), 2)


def measure(verb: str, size: int) -> dict[str, float]:
    """Seconds of CPU and growth of peak memory of a verb at a size, in this process."""
    work = WORK[verb](size)
    before = _peak_megabytes()
    began = time.process_time()
    work()
    return {"seconds": round(time.process_time() - began, 4), "megabytes": round(_peak_megabytes() - before, 1)}


def _peak_megabytes() -> float:
    return peak_bytes() / 2**20


def _keys(n: int, d: int = 64) -> Any:
    return np.random.default_rng(0).normal(size=(n, d))


Work = Callable[[], Any]


def _read(n: int) -> Work:
    import qkv

    memory = qkv.Memory(_keys(n))
    return lambda: memory.read(memory.keys[0])


def _copy(n: int) -> Work:
    import qkv

    memory = qkv.Memory(_keys(n))
    qkv.design.copy(qkv.Memory(_keys(10, 4)), 0)  # imports, before the clock starts
    return lambda: qkv.design.copy(memory, 0)


def _blend(n: int) -> Work:
    import qkv

    memory = qkv.Memory(_keys(n))
    qkv.design.blend(qkv.Memory(_keys(6, 8)), {0: 0.5, 1: 0.5})
    return lambda: qkv.design.blend(memory, {0: 0.5, 1: 0.5})


def _copyable(n: int) -> Work:
    import qkv

    qkv.design.copyable(_keys(20, 4), processes=1)
    return lambda: qkv.design.copyable(_keys(n, 16), processes=1)


def _wire(n: int) -> Work:
    import qkv

    X = _keys(n, n)
    reads = {i: (i + 1) % n for i in range(n)}
    writes = {i: X[i] for i in range(n)}
    qkv.design.wire(_keys(4, 4), {0: 1}, {0: _keys(4, 4)[1]})
    return lambda: qkv.design.wire(X, reads, writes)


def _wire_texts(n: int) -> Work:
    import qkv
    from qkv.design.sequences.rules import induction
    from qkv.design.sequences.text_wiring import wire_texts

    words = qkv.design.Vocabulary.side_by_side(_keys(n), length=32)
    return lambda: wire_texts(words, induction())


def _verify(n: int) -> Work:
    import qkv

    certificate = qkv.design.copy(qkv.Memory(_keys(n)), 0).certificate
    return certificate.verify


def _moments(n: int) -> Work:
    import qkv

    memory, noise = qkv.Memory(_keys(n) / 8, values=_keys(n)), qkv.noise.Gaussian(isotropic=0.01)
    query = memory.keys[0]
    qkv.noise.reading_moments(qkv.Memory(_keys(8, 4), values=_keys(8, 4)), _keys(1, 4)[0], noise)
    return lambda: qkv.noise.reading_moments(memory, query, noise)


def _harden(n: int) -> Work:
    import qkv

    memory, noise = qkv.Memory(_keys(n, 16)), qkv.noise.Gaussian(isotropic=0.01)
    qkv.noise.harden(qkv.Memory(_keys(3, 4)), {0: 0.5, 1: 0.5}, noise)
    return lambda: qkv.noise.harden(memory, {0: 0.5, 1: 0.5}, noise)


def _sample(n: int) -> Work:
    import qkv

    memory, noise = qkv.Memory(_keys(n, 16)), qkv.noise.Gaussian(isotropic=0.01)
    return lambda: qkv.noise.sample(memory, memory.keys[0], noise, n_draws=1_000_000)


def _claims(n: int) -> str:
    block = (
        "```claim c{i}\ngiven k_1..k_n orthonormal, n >= 3\nlet q = t*(k_a + {i}*k_b)\nthen c -> v_b as t -> oo\n```\n"
    )
    return "".join(block.replace("{i}", str(i + 2)) for i in range(n))


def _check(n: int) -> Work:
    import qkv

    qkv.check(_claims(1))
    text = _claims(n)
    return lambda: qkv.check(text)


def _grade(n: int) -> Work:
    from qkv.sheets import grade_files

    sheet = Path(__file__).parents[1] / "examples" / "answer_sheet.tex"
    return lambda: grade_files([sheet] * n, processes=1)


def _heads(n: int) -> Work:
    import qkv
    from qkv.heads.table import table

    text = "Where was Ada born? Ada was born in London. " * (n // 40 + 1)
    config = qkv.model.ModelConfig("rope", 2, 4, d_model=64, context_length=512)
    folder = Path(tempfile.mkdtemp()) / "run"
    qkv.train.pretrain([text[:200]], folder, config, steps=1, batch_size=1, tokenizer="characters")
    model = qkv.heads.open(folder)
    table(model, text[:40], effect_tokens=8)
    return lambda: table(model, text[:n], effect_tokens=8)


def _pretrain(n: int) -> Work:
    import torch

    import qkv

    torch.set_num_threads(1)
    texts = [f"Person {i} was born in the town number {i} and lived there for many years in peace." for i in range(400)]
    config = qkv.model.ModelConfig("rope", 2, 4, d_model=64, context_length=64)
    folder = tempfile.mkdtemp()
    qkv.train.pretrain(texts[:8], Path(folder) / "first", config, steps=1, batch_size=2)
    return lambda: qkv.train.pretrain(texts, Path(folder) / "run", config, steps=1, batch_size=n)


def _small_run() -> tuple[Path, list[tuple[str, str]]]:
    """A small trained model, and questions about 2,048 people."""
    import qkv
    from qkv.knowledge import biographies, pantheon, questions, train_mixed
    from qkv.train.settings import TrainSettings
    from qkv.train.tokenizers import BytePairs

    people = pantheon().sample(2048, seed=0)
    texts, asked = biographies(people).texts, questions(people)
    run = Path(tempfile.mkdtemp()) / "run"
    train_mixed(
        run, texts, asked.pairs, 0.9,
        config=qkv.model.ModelConfig("rope", 1, 2, d_model=32, context_length=64),
        settings=TrainSettings(steps=20, batch_size=16, lr=3e-3, objective="next", val_fraction=0.0),
        tokenizer=BytePairs.train(texts, 800),
    )  # fmt: skip
    return run, asked.pairs


CITIES = {"Ash": "London", "Birch": "Paris", "Cedar": "Rome", "Dale": "Berlin"}
"""A surname tells the city of birth, so that a small model learns the people of a text in seconds."""


def _knowing_run(n: int) -> tuple[Path, list[tuple[str, str]], list[str]]:
    """A small model that knows where people were born: n people it was not asked about, n names outside."""
    import qkv
    from qkv.knowledge import train_mixed
    from qkv.train.settings import TrainSettings
    from qkv.train.tokenizers import BytePairs

    surnames = list(CITIES)
    names = [f"Person{i} {surnames[i % 4]}" for i in range(n + 64)]
    texts = [f"{name} was born in {CITIES[name.split()[1]]}." for name in names]
    pairs = [(f"Where was {name} born?", CITIES[name.split()[1]]) for name in names]
    run = Path(tempfile.mkdtemp()) / "run"
    train_mixed(
        run, texts, pairs[n:], 0.5,
        config=qkv.model.ModelConfig("rope", 2, 2, d_model=64, context_length=64),
        settings=TrainSettings(steps=300, batch_size=32, lr=3e-3, objective="next", val_fraction=0.0),
        tokenizer=BytePairs.train(texts, 400),
    )  # fmt: skip
    outside = [f"Where was Nobody{i} {('Elm', 'Fern', 'Gale')[i % 3]} born?" for i in range(n)]
    return run, pairs[:n], outside


def _evaluate(n: int) -> Work:
    import qkv

    run, pairs = _small_run()
    qkv.knowledge.evaluate(run, pairs[:2])
    return lambda: qkv.knowledge.evaluate(run, pairs[:n])


def _command(line: str, **places: object) -> Work:
    """A command line that is run in this process, and whose output is thrown away."""
    from qkv.cli import run

    words = [word.format(**places) for word in line.split()]

    def work() -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            code = run(words)
        if code not in (0, 1):
            raise RuntimeError(f"{line}: {said.getvalue()[-600:]}")

    return work


def _twice(line: Callable[[int, Path], Work], n: int, small: int) -> Work:
    """The work of a command at size n, after it was run at a small size, so that nothing is left to import."""
    line(small, Path(tempfile.mkdtemp()))()
    return line(n, Path(tempfile.mkdtemp()))


def _project(n: int, here: Path) -> Work:
    np.savez(here / "spans.npz", A=np.eye(4 * n)[:, :n], B=np.eye(4 * n)[:, n:])
    return _command("design project {here}/spans.npz B", here=here)


def _reach(n: int, here: Path) -> Work:
    np.savez(here / "tokens.npz", X=_keys(n, 16), along=np.eye(16)[0], target=np.eye(16)[1])
    return _command("design reach {here}/tokens.npz --token 1 --along along --target target", here=here)


def _probability(n: int, here: Path) -> Work:
    np.save(here / "keys.npy", _keys(n, 16))
    (here / "query.json").write_text(json.dumps([1.0] * 16))
    line = "noise probability {here}/keys.npy --query {here}/query.json --weights 0=1 --isotropic 0.01"
    return _command(line, here=here)


def _compare(n: int, here: Path) -> Work:
    return _command("noise compare --orthonormal {n}x{n} --weights 0=1/2,1=1/2 --isotropic 0.01", n=n)


def _sweep(n: int, here: Path) -> Work:
    np.savez(here / "heads.npz", keys=np.stack([4 * np.eye(16)] * n), queries=np.stack([np.eye(16)[0]] * n))
    return _command("noise sweep {here}/heads.npz --processes 1 --isotropic 0.01", here=here)


def _facts(n: int, here: Path) -> Work:
    rows = "".join(f"Book number {i},Author {i % 997},{1500 + i % 500}\n" for i in range(n))
    (here / "books.csv").write_text("title,author,year\n" + rows)
    return _command("facts {here}/books.csv --out {here}/facts", here=here)


def _certify(n: int) -> Work:
    import qkv

    config = qkv.model.ModelConfig("rope", 1, 2, d_model=32, context_length=256)
    folder = Path(tempfile.mkdtemp())
    text = "Where was Ada born? Ada was born in London. " * 8
    qkv.train.pretrain([text[:200]], folder / "run", config, steps=1, batch_size=1, tokenizer="characters")

    def line(length: int, here: Path) -> Work:
        (here / "text.txt").write_text(text[:length])
        return _command(
            "certify {run} --head 0.0 --text {here}/text.txt --save {here}/radius.json", run=folder / "run", here=here
        )

    return _twice(line, n, 16)


def _with_run(line: str, n: int, small: int) -> Work:
    """A command about a small run: `{n}` is the size, `{here}/asked.tsv` has n questions."""
    run, pairs = _small_run()

    def made(size: int, here: Path) -> Work:
        (here / "asked.tsv").write_text("".join(f"{q}\t{a}\n" for q, a in pairs[:size]), "utf-8")
        return _command(line, run=run, here=here, n=size)

    return _twice(made, n, small)


def _export(n: int) -> Work:
    import qkv

    def line(width: int, here: Path) -> Work:
        config = qkv.model.ModelConfig("causal", 1, 4, d_model=width, context_length=64)
        text = ["Ada was born in London."] * 4
        qkv.train.pretrain(text, here / "run", config, steps=1, batch_size=1, tokenizer="characters")
        return _command("export {here}/run --out {here}/model", here=here)

    return _twice(line, n, 16)


def _import(n: int) -> Work:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    def line(width: int, here: Path) -> Work:
        torch.manual_seed(0)
        sizes = {"vocab_size": 500, "n_positions": 64, "n_embd": width, "n_layer": 1, "n_head": 4}
        GPT2LMHeadModel(GPT2Config(**sizes)).save_pretrained(here / "gpt2")
        return _command("import {here}/gpt2 --out {here}/run", here=here)

    return _twice(line, n, 16)


def _ask(n: int) -> Work:
    run, _ = _small_run()

    def line(samples: int, here: Path) -> Work:
        from qkv.cli import run as command

        words = ["ask", str(run), "Where was Ada Lovelace born?", "--n-samples", str(samples)]

        def work() -> None:
            with contextlib.redirect_stdout(io.StringIO()):
                assert command(words) == 0

        return work

    return _twice(line, n, 2)


def _trust(n: int) -> Work:
    run, known, outside = _knowing_run(n)

    def line(size: int, here: Path) -> Work:
        (here / "known.tsv").write_text("".join(f"{q}\t{a}\n" for q, a in known[:size]))
        (here / "outside.tsv").write_text("".join(f"{q}\n" for q in outside[:size]))
        words = "trust {run} --known {here}/known.tsv --unknown {here}/outside.tsv --no-save"
        return _command(words, run=run, here=here)

    return _twice(line, n, min(n, 32))


def _study(n: int) -> Work:
    return _twice(lambda people, here: _command(f"study capacity --people {people} --out {here}/study"), n, 2)


WORK: dict[str, Callable[[int], Work]] = {
    "read": _read, "design copy": _copy, "design blend": _blend, "design copyable": _copyable, "design wire": _wire,
    "design wire-texts": _wire_texts, "design verify": _verify, "noise moments": _moments, "noise harden": _harden,
    "noise sample": _sample, "check": _check, "grade": _grade, "heads": _heads, "pretrain": _pretrain,
    "evaluate": _evaluate, "certify": _certify, "export": _export, "import": _import, "ask": _ask, "trust": _trust,
    "study": _study,
    "design project": lambda n: _twice(_project, n, 2), "design reach": lambda n: _twice(_reach, n, 3),
    "noise probability": lambda n: _twice(_probability, n, 4), "noise compare": lambda n: _twice(_compare, n, 4),
    "noise sweep": lambda n: _twice(_sweep, n, 2), "facts": lambda n: _twice(_facts, n, 10),
    "finetune": lambda n: _with_run(
        "finetune {run} --questions {here}/asked.tsv --out {here}/tuned --steps 1 --batch-size {n}", n, 4
    ),
    "generate": lambda n: _with_run("generate {run} Ada --max-new-tokens {n}", n, 4),
    "name-heads": lambda n: _with_run("name-heads {run} --questions {here}/asked.tsv --count 1", n, 4),
}  # fmt: skip


def limits() -> list[dict[str, str]]:
    """What commands say beyond their limits: one sentence and exit code 2, whatever the size."""
    lines = {
        "an orthonormal memory of 10⁹ keys": "design copy --orthonormal 1000000000x1000000000 --item 0",
        "more keys than dimensions": "design copy --orthonormal 20x10 --item 0",
        "10¹⁵ draws": "noise sample --orthonormal 4x4 --query {folder}/q.json --isotropic 1 --n-draws 1000000000000000",
        "a model of 10⁶ layers": "pretrain --text {folder}/t.txt --out {folder}/r --steps 1 --n-layer 1000000",
        "a batch of 10¹⁵": "pretrain --text {folder}/t.txt --out {folder}/r --steps 1 --batch-size 1000000000000000",
        "a JSON file nested 10⁵ deep": "read {folder}/deep.json --query {folder}/q.json",
        "a document of 10⁷ characters": "check {folder}/long.md",
        "wire --prefer rank with 100 tokens": "design wire {folder}/x.npy --reads 0:1 --writes {folder}/w.npy --prefer rank",  # noqa: E501
    }
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "q.json").write_text("[1, 0, 0, 0]")
        (folder / "t.txt").write_text("Ada was born in London.\n")
        (folder / "deep.json").write_text("[" * 100_000)
        (folder / "long.md").write_text("x" * 10_000_000)
        np.save(folder / "x.npy", _keys(100, 4))
        np.save(folder / "w.npy", _keys(1, 4))
        for request, line in lines.items():
            words = [word.format(folder=folder) for word in line.split()]
            done = subprocess.run(
                [sys.executable, "-m", "qkv", *words], capture_output=True, text=True, timeout=LONGEST
            )
            if "Traceback" in done.stderr or done.returncode < 0:
                raise RuntimeError(f"{request}: {done.stderr[-800:]}")
            said = (done.stderr or done.stdout).strip().splitlines()
            answer = (
                " ".join(" ".join(said).split()).removeprefix("qkv: ").replace(f"{folder}/", "").replace("|", "\\|")
            )
            found.append(
                {"request": f"{request}: `{line.replace('{folder}/', '')}`", "answer": answer.replace("|", "\\|")}
            )
    return found


if __name__ == "__main__":
    main()
