"""Answers of a language model to many questions, in a file that a stopped run continues.

The file has one JSON object per line, each with a checksum: a header with the model, the relation and the signals, then
one answer each, with its signals. Answers are appended batch by batch; a last line that was cut off is dropped.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from qkv.core.json_files import CHECKSUM, EDITED, parse_json, verified, with_checksum
from qkv.errors import QkvError
from qkv.knowledge.language_models.causal_model import CausalModel
from qkv.knowledge.language_models.prompts import EXAMPLES, NAME_CONTEXTS, STATEMENTS, WORDINGS, Question
from qkv.knowledge.language_models.signals import SIGNALS, SignalReader, Signals

FORMAT = "qkv-answers-4"
QUESTIONS_PER_STEP = 128
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")
TOKENIZERS = (".model", ".txt", ".tiktoken", ".bpe", ".codes", ".vocab", ".spm")
MODEL_FILES = (".json", ".jinja", *WEIGHTS, *TOKENIZERS)
MORE_TEMPLATES = "additional_chat_templates/*.jinja"
BADGES = "qkv-trust-*.json"  # they do not change the answers
Progress = Callable[[int, int], None]


def read_signals(
    model: CausalModel,
    questions: Sequence[Question],
    *,
    path: str | Path | None = None,
    progress: Progress = lambda done, total: None,
) -> Signals:
    """Answer questions of one relation, and compute the signals of each answer.

    Args:
        model: The model.
        questions: The questions, all for the same relation.
        path: File to append the answers to; those that it holds already are not asked again.
        progress: Called with questions done and in all.

    Returns:
        The signals in the order of the questions.

    Raises:
        QkvError: There are no questions, they are for different relations, or the file is of another model or other
            prompts.
    """
    relations = {question.relation for question in questions}
    if len(relations) != 1:
        problem = "there are none" if not questions else f"they ask for {', '.join(sorted(relations))}"
        raise QkvError("asking questions", problem, "Give questions that ask for the same")
    reader = SignalReader(model, relations.pop())
    header = _header(model, reader.relation)
    known = _stored(Path(path), header) if path is not None else {}
    missing = list(dict.fromkeys(question for question in questions if question.text not in known))
    progress(len(questions) - len(missing), len(questions))
    for start in range(0, len(missing), QUESTIONS_PER_STEP):
        rows = _rows(reader.read(missing[start : start + QUESTIONS_PER_STEP]))
        if path is not None:
            _append(Path(path), header, rows)
        known.update({row["question"]: row for row in rows})
        progress(len(questions) - max(0, len(missing) - start - QUESTIONS_PER_STEP), len(questions))
    return _signals(questions, [known[question.text] for question in questions])


def fingerprint(model: CausalModel) -> str:
    """A checksum of all that the answers depend on: the model's files, or its parameters if it has no folder."""
    folder, digest = Path(model.name), hashlib.sha256()
    kinds = [file for file in folder.glob("*") if file.suffix in MODEL_FILES] + list(folder.glob(MORE_TEMPLATES))
    files = sorted(file for file in kinds if file.is_file() and not (file.match(BADGES) or file.name.startswith(".")))
    for file in files:
        with file.open("rb") as opened:
            digest.update(
                f"{file.relative_to(folder).as_posix()} {hashlib.file_digest(opened, 'sha256').hexdigest()} ".encode()
            )
    if not files:
        for name, tensor in model.model.state_dict().items():
            content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode() + content.tobytes())
    return digest.hexdigest()[:16]


def _header(model: CausalModel, relation: str) -> dict[str, Any]:
    prompts = hashlib.sha256(repr((WORDINGS, STATEMENTS, EXAMPLES, NAME_CONTEXTS)).encode()).hexdigest()[:16]
    return {
        "format": FORMAT,
        "model": fingerprint(model),
        "relation": relation,
        "prompts": prompts,
        "signals": list(SIGNALS),
    }


def _rows(found: Signals) -> list[dict[str, Any]]:
    return [
        {
            "question": question.text,
            "answer": answer,
            "tokens": list(tokens),
            "ended": ended,
            "first": [list(pair) for pair in first],
            "values": values.tolist(),
            "hidden": base64.b64encode(hidden.astype("<f2").tobytes()).decode(),
        }
        for question, answer, tokens, ended, first, values, hidden in zip(
            found.questions,
            found.answers,
            found.tokens,
            found.ended,
            found.first,
            found.values,
            found.hidden,
            strict=True,
        )
    ]


def _signals(questions: Sequence[Question], rows: Sequence[dict[str, Any]]) -> Signals:
    return Signals(
        tuple(questions),
        tuple(row["answer"] for row in rows),
        tuple(tuple(row["tokens"]) for row in rows),
        tuple(bool(row["ended"]) for row in rows),
        tuple(tuple((int(i), float(log)) for i, log in row["first"]) for row in rows),
        np.array([row["values"] for row in rows]),
        np.stack([np.frombuffer(base64.b64decode(row["hidden"]), "<f2") for row in rows]).astype(np.float32),
    )


def _append(path: Path, header: dict[str, Any], rows: Sequence[dict[str, Any]]) -> None:
    request = f"writing answers to {path}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.is_file() or path.stat().st_size == 0
        with path.open("a", encoding="utf-8") as file:
            for row in ([header] if new else []) + list(rows):
                file.write(json.dumps(with_checksum(row), ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as why:
        raise QkvError(request, str(why), "Name a file that can be written") from None


def _stored(path: Path, header: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The answers in a file by question; a line that was cut off at the end is removed from it."""
    if not path.is_file() or path.stat().st_size == 0:
        return {}
    request, hint = f"continuing with the answers in {path}", "Name another file, or remove this one"
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    try:
        if not whole and content.startswith(f'{{"format": "{FORMAT}"'.encode()):
            path.write_bytes(b"")  # cut off in its first line: there is no answer in it
            return {}
        first, *rows = [parse_json(line) for line in whole.decode().split("\n")[:-1]] or [None]
        if not isinstance(first, dict) or first.get("format") != FORMAT:
            raise ValueError(f"it is no file of answers, or of another version than {FORMAT}")
        if any(isinstance(row, dict) and row.get(CHECKSUM) == EDITED for row in (first, *rows)):
            raise ValueError("a line of it was edited by hand, and is not what the model answered")
        first, *rows = [verified(row, required=True) for row in (first, *rows)]
        other = [name for name in header if first.get(name) != header[name]]
        if other:
            raise ValueError(f"it was written with another {' and another '.join(other)}")
        found = {str(row["question"]): row for row in rows}
        for row in rows:
            if len(row["values"]) != len(SIGNALS) or not np.isfinite(row["values"]).all():
                raise ValueError("a line of it is damaged")
        if rows and not all(isinstance(text, str) for text in _signals((), rows).answers):
            raise ValueError("a line of it is damaged")
    except KeyError as why:
        raise QkvError(request, f"a line of it has no {why.args[0]}", hint) from None
    except (ValueError, TypeError, UnicodeDecodeError) as why:
        problem = str(why) if str(why).startswith(("it ", "its ", "a line")) else f"a line of it is damaged ({why})"
        raise QkvError(request, problem, hint) from None
    if len(whole) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    return found
