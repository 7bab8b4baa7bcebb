"""Every kind of file that qkv reads, truncated and flipped: read unchanged, refused with a sentence, or (never, of a
file that qkv wrote) read as something else."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from faults.count import FaultCount, Progress, Tally, nothing
from faults.damage import damaged_copies, first_difference
from faults.processes import scratch
from faults.samples import samples

Read = Callable[[], Any]
OWN, INPUT = "own", "input"


class Reported(Exception):
    """The reader left out what is damaged, and said so."""


class TrueOfOther(Exception):
    """A certificate of other numbers, which is true of them."""


@dataclass(frozen=True)
class FileKind:
    """A kind of file.

    Attributes:
        name: What it is.
        prepare: From an empty folder to the file in it, and the function that reads it as a plain value.
        written_by: OWN if qkv writes it, so that other content must be noticed; INPUT if a person or another program
            does: there another digit is another input.
        note: For the page.
        slowness: Divides the number of damaged copies, where reading takes long.
    """

    name: str
    prepare: Callable[[Path], tuple[Path, Read]]
    written_by: str = OWN
    note: str = ""
    slowness: int = 1


def run_kind(kind: FileKind, count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Damage a file `count` times, and read it each time."""
    from qkv.errors import QkvError

    count = max(1, count // kind.slowness)
    tally = Tally(f"{kind.name}, damaged", count, progress)
    with scratch() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path, read = kind.prepare(folder)
        good, wanted = path.read_bytes(), read()
        for copy in damaged_copies(good, count, seed):
            path.write_bytes(copy)
            try:
                found = read()
            except (QkvError, Reported):
                tally.add("refused")
            except TrueOfOther:
                tally.add("other_input")
            except Exception as why:
                tally.add("tracebacks", f"{type(why).__name__}: {why}; {first_difference(good, copy)}")
            else:
                if found == wanted:
                    tally.add("unchanged")
                else:
                    different = "believed" if kind.written_by == OWN else "other_input"
                    tally.add(different, first_difference(good, copy))
    return tally.result(kind.note)


def _copy(folder: Path, *names: str) -> list[Path]:
    """Copies of samples in a folder."""
    out = []
    for name in names:
        source, target = samples() / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        out.append(target)
    return out


def plain(value: Any) -> Any:
    """A value that can be compared: arrays as type, shape and bytes."""
    if hasattr(value, "detach"):
        value = value.detach().double().numpy() if value.is_floating_point() else value.numpy()
    if hasattr(value, "tobytes"):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, dict):
        return {name: plain(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return repr(value)


# Files of a run


def _run_file(name: str, folder: Path) -> tuple[Path, Read]:
    from qkv.train import checkpoint, run_files, tokenizers

    (run,) = _copy(folder, "run")
    text = "Where was Ada Ω [] born?"
    reads: dict[str, Read] = {
        "config.json": lambda: run_files.read_description(run),
        "tokenizer.json": lambda: (lambda t: (t.to_json(), t.encode(text), t.vocab_size))(tokenizers.load(run)),
        "model.safetensors": lambda: plain(checkpoint.load(run)),
        "optimizer": lambda: plain(checkpoint.load(run)),
    }
    path = next(run.glob("optimizer-*")) if name == "optimizer" else run / name
    return path, reads[name]


def _header_of(name: str, folder: Path) -> tuple[Path, Read]:
    """The weights without torch, as `qkv ask` reads them; small tensors, so that most damage hits the header."""
    import numpy as np
    import torch

    from qkv.train import checkpoint, run_files

    weights = {f"layer.{i}": torch.arange(4.0) + i for i in range(12)}
    checkpoint.write(folder / name, weights, {"step": "7"})
    raw = lambda a: np.ascontiguousarray(a).reshape(-1).view(np.uint8)  # noqa: E731
    return folder / name, lambda: plain(run_files.read_tensors(folder / name, "np", raw))


def _log(folder: Path) -> tuple[Path, Read]:
    from qkv.errors import QkvWarning
    from qkv.train.metrics_log import read_log

    (run,) = _copy(folder, "run")
    path = run / "log.jsonl"
    good, wanted = path.read_bytes(), read_log(run)

    def read() -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lines = read_log(run)
        rest = iter(wanted)
        if not all(line in rest for line in lines):
            return lines  # a line that was never written
        if any(issubclass(w.category, QkvWarning) for w in caught):
            raise Reported
        if lines != wanted and good.startswith(path.read_bytes().rstrip(b"\n")):
            raise TrueOfOther  # cut between two lines: the log of an earlier moment
        return lines

    return path, read


def _badge(folder: Path) -> tuple[Path, Read]:
    from qkv.knowledge.confidence.badge import Badge

    (run,) = _copy(folder, "run")
    return run / "trust.json", lambda: repr(Badge.load(run))


def _model_badge(folder: Path) -> tuple[Path, Read]:
    from qkv.knowledge.language_models.badge import ModelBadge, badge_path

    badge = model_badge()
    badge.save(folder)
    return badge_path(folder, "city"), lambda: repr(ModelBadge.load(folder, "city", badge.model))


def model_badge() -> Any:
    """A badge of a language model, fitted to signals that were drawn."""
    import numpy as np

    from qkv.knowledge import pantheon
    from qkv.knowledge.language_models.badge import fit_model_badge
    from qkv.knowledge.language_models.prompts import about
    from qkv.knowledge.language_models.signals import SIGNALS, Signals

    rng = np.random.default_rng(0)
    people = pantheon().people[:160]
    names = [p.name for p in people] + [f"Nobody {i}" for i in range(80)]
    real = np.arange(len(names)) < len(people)
    knows = real & (rng.random(len(names)) < 0.5)
    values = np.abs(rng.normal(size=(len(names), len(SIGNALS)))) + 2.0 * knows[:, None]
    cities = [p.city for p in people] + [""] * 80
    answers = tuple(city if k else "Rome" for city, k in zip(cities, knows, strict=True))
    hidden = rng.normal(size=(len(names), 8)).astype(np.float32) + real[:, None]
    n = len(names)
    questions = tuple(about(name, "city") for name in names)
    found = Signals(questions, answers, ((5,),) * n, (True,) * n, (((5, -1.0),),) * n, values, hidden)
    return fit_model_badge("city", "fingerprint", found, cities, level=0.8)[0]


def _answers(folder: Path) -> tuple[Path, Read]:
    """Answers of a language model that a stopped run continues from."""
    import numpy as np

    from qkv.knowledge.language_models import answer_file
    from qkv.knowledge.language_models.prompts import about
    from qkv.knowledge.language_models.signals import SIGNALS, Signals

    rng, n = np.random.default_rng(0), 6
    found = Signals(
        tuple(about(f"Person {i}", "city") for i in range(n)), tuple(f"City {i}" for i in range(n)), ((5, 6),) * n,
        (True,) * n, (((5, -1.0), (7, -2.5)),) * n, rng.normal(size=(n, len(SIGNALS))), np.ones((n, 8), np.float32),
    )  # fmt: skip
    header = {"format": answer_file.FORMAT, "model": "m", "relation": "city", "prompts": "p", "signals": list(SIGNALS)}
    path = folder / "answers.jsonl"
    answer_file._append(path, header, answer_file._rows(found))
    good = path.read_bytes()

    def read() -> Any:
        damaged = path.read_bytes()
        rows = answer_file._stored(path, header)
        if damaged != good and good.startswith(damaged[: damaged.rfind(b"\n") + 1]):
            raise TrueOfOther  # cut: the answers of an earlier moment, and the rest is asked again
        return rows

    return path, read


def _cell(folder: Path) -> tuple[Path, Read]:
    from qkv.knowledge.studies.experiment import Cell, run_cells

    cell = Cell("cell", {"seed": 3, "people": 300}, lambda _: {"accuracy": 0.8125, "interval": [0.75, 0.875]})
    read = lambda: run_cells(folder, "test", [cell])["cell"]  # noqa: E731
    read()
    return folder / "cells" / "cell.json", read


def _allocation(folder: Path) -> tuple[Path, Read]:
    import torch

    from qkv.heads.allocation import COUNTS, NUMBERS, Allocation

    bits = torch.arange(3 * 2 * 8).reshape(3, 2, 8) % 4 + 1
    basis = torch.linalg.qr(torch.arange(3 * 2 * 64.0).reshape(3, 2, 8, 8).sin())[0]
    path = folder / "bits.json"
    figures: dict[str, Any] = {**dict.fromkeys(NUMBERS, 0.125), **dict.fromkeys(COUNTS, 3), "average": 3.0}
    Allocation(model="model", bits=bits, basis=basis, **figures).save(path)
    return path, lambda: plain(vars(Allocation.load(path)))


def _certificate(suffix: str, folder: Path) -> tuple[Path, Read]:
    """A saved design: verified from its raw inputs, so that other numbers are refused unless they make it true."""
    import qkv
    from faults.certificate_oracle import corruptions, oracle
    from qkv.design.certificates.certificate import load

    memory = corruptions().gaussian(0, d=6)
    design = qkv.design.blend(memory, {1: 0.5, 4: 0.5}, tol=1e-2)
    path = folder / f"design{suffix}"
    design.certificate.save(path)
    wanted = None

    def read() -> Any:
        found = load(path)
        entries = [{"kind": c.kind, "data": plain(dict(c.data)), "claims": plain(dict(c.claims))} for c in found]
        for certificate in found:
            verification = certificate.verify()
            if not verification:
                raise qkv.QkvError("verifying", verification.why, "Design again")
        if wanted is not None and entries != wanted:
            data = [json.loads(json.dumps(c.to_json())) for c in found]
            if all(oracle().truth(c["kind"], c["data"], c["claims"]) for c in data):
                raise TrueOfOther
        return entries

    wanted = read()
    return path, read


# Inputs of the user


def _memory(name: str, folder: Path) -> tuple[Path, Read]:
    from qkv.core.memory import Memory

    (path,) = _copy(folder, name)

    def read() -> Any:
        found = Memory.load(path)
        return plain([found.keys, found.values, list(found.labels)])

    return path, read


def _saved_as_input(folder: Path) -> tuple[Path, Read]:
    import qkv
    from qkv.cli.common import heads_of
    from qkv.core.memory import Memory
    from qkv.design.certificates import save

    memory = Memory.load(samples() / "memory.json")
    design = qkv.design.copy(memory, 0)
    path = folder / "design.json"
    save(design.certificates, path, design.to_json())
    return path, lambda: plain([*heads_of(path), Memory.load(path).keys])


def _input(name: str, reader: Callable[[Path], Read], folder: Path) -> tuple[Path, Read]:
    (path,) = _copy(folder, name)
    return path, reader(path)


def _questions(path: Path) -> Read:
    from qkv.knowledge.datasets.facts import load_questions

    return lambda: repr(load_questions(path))


def _facts(path: Path) -> Read:
    from qkv.knowledge.datasets.fact_tables import load_facts

    return lambda: repr(load_facts(path))


def _texts(path: Path) -> Read:
    from qkv.knowledge.datasets.facts import load_texts

    return lambda: repr(load_texts(path))


def _claims(path: Path) -> Read:
    from qkv.claims.syntax.markdown import UnparsedClaim, read
    from qkv.cli.claims import _read

    def parse() -> Any:
        found = read(_read(path))
        if not found or any(isinstance(claim, UnparsedClaim) for claim in found):
            raise Reported
        return repr(found)

    return parse


def _verdicts(path: Path) -> Read:
    import qkv
    from qkv.cli.claims import _read

    def decide() -> Any:
        found = qkv.check(_read(path), seconds=3)
        kinds = [verdict.verdict for verdict in found]
        if not kinds or "malformed" in kinds:
            raise Reported
        return repr([(verdict.id, verdict.verdict, verdict.says) for verdict in found])

    return decide


def _sheet(path: Path) -> Read:
    from qkv.sheets import read_sheet
    from qkv.sheets.sheet_files import sheet_text

    return lambda: repr(read_sheet(sheet_text(path), path.name))


def _problem(path: Path) -> Read:
    from qkv.sheets.problems import load_problem

    return lambda: repr(load_problem(path))


def _options(path: Path) -> Read:
    from qkv.cli.train import _file
    from qkv.model.config import ModelConfig
    from qkv.train.recipes import field_names
    from qkv.train.settings import TrainSettings

    known = (*field_names(ModelConfig), *field_names(TrainSettings))
    return lambda: repr(_file(path, known))


def _token_texts(path: Path) -> Read:
    import numpy as np

    from qkv.cli.texts import _texts_from
    from qkv.design.sequences.texts import Sequences, Vocabulary

    words = Vocabulary.side_by_side(np.eye(12, 6) + 0.1, length=8)
    return lambda: repr(Sequences(words, _texts_from(path)).ids)


def _imported(name: str, folder: Path) -> tuple[Path, Read]:
    """A file of a Hugging Face model that is imported."""
    import qkv

    (model,) = _copy(folder, "model")
    out = folder / "imported"

    def read() -> Any:
        shutil.rmtree(out, ignore_errors=True)
        found = qkv.train.import_model(model, out)
        return plain([found.config, dict(found.model.named_parameters()), found.tokenizer.encode("Ada was born in")])

    return model / name, read


def kinds() -> list[FileKind]:
    """All kinds of files."""
    from importlib.util import find_spec

    verified = "Without a checksum: every bound is recomputed. Another input: other numbers of which it is true."
    other = "Another input: another digit or letter that is as valid as the first."
    found = [
        FileKind("config.json of a run", partial(_run_file, "config.json")),
        FileKind("tokenizer.json of a run", partial(_run_file, "tokenizer.json")),
        FileKind("checkpoint, weights", partial(_run_file, "model.safetensors")),
        FileKind("checkpoint, optimizer", partial(_run_file, "optimizer")),
        FileKind("checkpoint, header", partial(_header_of, "model.safetensors")),
        FileKind("log.jsonl of a run", _log, note="Another input: cut between two lines, as an earlier log ends."),
        FileKind("trust.json of a run", _badge),
        FileKind("badge of a language model", _model_badge),
        FileKind(
            "answers of a language model",
            _answers,
            note="Another input: cut after a line; what is missing is asked again.",
        ),
        FileKind("cell of a study", _cell),
        FileKind("key bits (allocation)", _allocation),
        FileKind("certificate, .json", partial(_certificate, ".json"), note=verified),
        FileKind("certificate, .safetensors", partial(_certificate, ".safetensors"), note=verified),
        FileKind("design read as arrays", _saved_as_input, INPUT, other),
        FileKind("memory, .npz", partial(_memory, "memory.npz"), INPUT, other),
        FileKind("memory, compressed .npz", partial(_memory, "packed.npz"), INPUT, other),
        FileKind("memory, .npy", partial(_memory, "keys.npy"), INPUT, other),
        FileKind("memory, .csv", partial(_memory, "keys.csv"), INPUT, other),
        FileKind("memory, .json", partial(_memory, "memory.json"), INPUT, other),
        FileKind("memory, .safetensors", partial(_memory, "memory.safetensors"), INPUT, other),
        FileKind("questions, .tsv", partial(_input, "known.tsv", _questions), INPUT, other),
        FileKind("facts, .csv", partial(_input, "facts.csv", _facts), INPUT, other),
        FileKind("facts, .jsonl", partial(_input, "facts.jsonl", _facts), INPUT, other),
        FileKind("texts, .txt", partial(_input, "text.txt", _texts), INPUT, other),
        FileKind("claims, parsed", partial(_input, "claims.md", _claims), INPUT, other),
        FileKind("claims, decided", partial(_input, "claims.md", _verdicts), INPUT, other, slowness=10),
        FileKind("answer sheet, .tex", partial(_input, "sheet.tex", _sheet), INPUT, other),
        FileKind("answer sheet, .md", partial(_input, "answers.md", _sheet), INPUT, other),
        FileKind("problem file", partial(_input, "problem.md", _problem), INPUT, other),
        FileKind("options, .toml", partial(_input, "options.toml", _options), INPUT, other),
        FileKind("options, .json", partial(_input, "options.json", _options), INPUT, other),
        FileKind("texts as token numbers, .json", partial(_input, "token_texts.json", _token_texts), INPUT, other),
    ]
    if find_spec("transformers") is not None:
        found += [
            FileKind(f"{name} of another library", partial(_imported, name), INPUT, other)
            for name in ("config.json", "model.safetensors", "tokenizer.json")
        ]
    return found
