"""Which options a command line gave, and the refusal of those without effect and of outputs that replace inputs."""

from __future__ import annotations

import json
import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

import typer

from qkv.errors import QkvError

OUTPUTS = ("save", "plot", "html", "csv", "claims", "answers", "out", "report", "save_proofs")
"""Parameters that name a file or folder to write."""
FOLDERS = ("out", "save_proofs")
"""Those that name a folder, in the commands that `WRITTEN_IN` lists."""
RUN_FILES = ("config.json", "tokenizer.json", "log.jsonl", "model.safetensors", "optimizer-*.safetensors", ".qkv-*")
WRITTEN_IN = {
    "pretrain": RUN_FILES,
    "finetune": RUN_FILES,
    "import": RUN_FILES,
    "export": (
        "config.json", "generation_config.json", "model.safetensors", "README.md", "tokenizer.json",
        "tokenizer_config.json",
    ),
    "facts": ("texts.txt", "train.tsv", "dev.tsv", "outside.tsv", "facts.json", ".qkv-*"),
    "study": ("study.json", "*.svg", "cells/*.json", ".qkv-*"),
    "check": ("*.v",),
    "tour": ("report.html",),
    "get": ("*",),
}  # fmt: skip
"""The files that a command writes into its output folder; a test compares them with those that are there."""
MAX_CONFIG_BYTES = 2**24
"""A larger config.json is no run's."""
MAX_PARENTS = 100
"""Runs that are followed from one that was finetuned to what it was finetuned from."""
MODEL_FILES = (
    *RUN_FILES, "generation_config.json", "model*.safetensors", "model*.json", "tokenizer*", "vocab*",
    "merges.txt", "special_tokens_map.json", "added_tokens.json", "*.bin", "*.jinja",
)  # fmt: skip
"""What is read of an input that is a folder: the files of a run, or of a Hugging Face model."""


def is_given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_idle(context: typer.Context, request: str, names: Sequence[str], belong_to: str) -> None:
    """Refuse options that have no effect on what was asked for, rather than pass over them in silence.

    Args:
        context: Of the command.
        request: What was asked for.
        names: The parameters without effect.
        belong_to: What they are for, such as "language models".
    """
    for name in names:
        if is_given(context, name):
            option = _written(context, name)
            raise QkvError(request, f"{option} has no effect here: it is for {belong_to}", f"Leave out {option}")


def refuse_overwriting(context: typer.Context, resumed: Sequence[Path] = (), **resolved: object) -> None:
    """Refuse an output that is an input of the same call, or another output: writing it would destroy the other.

    Args:
        context: Of the command.
        resumed: Folders of all runs that the same call continues.
        resolved: Values by parameter, instead of those on the command line: where they come from a file, or are made of
            others.
    """
    values = {**context.params, **resolved}
    inputs = [(name, path) for name, value in values.items() if name not in OUTPUTS for path in _paths(value)]
    read = {_place(path): name for name, path in inputs if not path.is_dir()}
    folders = {path: name for name, path in inputs if path.is_dir()}
    recorded = {_place(file): name for path, name in folders.items() for file in _trained_on(path)}
    if values.get("resume") is True:
        outs = (*_paths(values.get("out")), *resumed)
        recorded |= {_place(file): "out" for path in outs for file in _trained_on(path)}
    from_stdin = "-" in {str(each) for name, value in values.items() if name not in OUTPUTS for each in _each(value)}
    written: dict[object, str] = {}
    outputs = [(name, path) for name, value in values.items() if name in OUTPUTS for path in _paths(value)]
    for name, path in outputs:
        for file in _replaced(context, name, path, values.get("resume") is True):
            place = _place(file)
            if place in read:
                problem = f"it would replace the file of {_written(context, read[place])}, which is read"
            elif place in written:
                problem = f"{_written(context, written[place])} is written to the same file"
            elif place in recorded:
                problem = f"it would replace the file that {_written(context, recorded[place])} is trained on"
            elif from_stdin and _is_stdin(file):
                problem = "it would replace the file that standard input comes from"
            elif file == path and file.parent in folders and _is_of_model(file.name):
                problem = f"it would replace a file of the model in {file.parent.name}, which is read"
            else:
                written[place] = name
                continue
            raise QkvError(f"{_written(context, name)} {path.name}", problem, "Give another path")


def _replaced(context: typer.Context, name: str, output: Path, resume: bool) -> Iterator[Path]:
    """The file of an output; of a folder, the files that are replaced in it, which are none where a run continues."""
    names = WRITTEN_IN.get(context.command.name or "", ())
    if name in FOLDERS and names:
        if not (resume and (output / "config.json").is_file()):
            for pattern in names:
                with suppress(
                    OSError, RuntimeError
                ):  # links in a circle; a folder that cannot be read is refused when it is written to
                    yield from [path.resolve() for path in output.glob(pattern)]
    elif not output.is_dir():
        yield output


def _place(file: Path) -> object:
    """What two paths of one file have in common, also where the file system ignores case or how letters are composed.

    Names of one file in other folders are places of their own: replacing one leaves the others.
    """
    name = unicodedata.normalize("NFC", file.name).casefold()
    try:
        found, folder = file.stat(), file.parent.stat()
    except (OSError, ValueError):
        return file
    return name, found.st_dev, found.st_ino, folder.st_dev, folder.st_ino


def _is_of_model(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in MODEL_FILES)


def _trained_on(folder: Path) -> Iterator[Path]:
    """The files that a run records as what it is trained on, and those of the runs that it was finetuned from.

    Training and `trust` read them again.
    """
    for _ in range(MAX_PARENTS):
        path, parent = folder / "config.json", None
        with suppress(OSError, ValueError, RuntimeError, AttributeError):
            if path.is_file() and path.stat().st_size < MAX_CONFIG_BYTES:
                data = json.loads(path.read_text("utf-8")).get("data") or {}
                parent = data.get("parent")
                for record in (data, data.get("questions")):
                    if isinstance(record, dict) and isinstance(record.get("path"), str):
                        yield Path(record["path"]).resolve()
        if not isinstance(parent, str) or not parent:
            return
        folder = Path(parent)


def _is_stdin(file: Path) -> bool:
    """Whether a file is the one that standard input comes from."""
    with suppress(OSError):
        found = os.fstat(0)
        return stat.S_ISREG(found.st_mode) and os.path.samestat(found, file.stat())
    return False


def _each(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else (value,)


def _paths(value: object) -> Iterator[Path]:
    """The paths among the values of a parameter, those that do not exist yet too; of texts, only existing ones."""
    for each in _each(value):
        with suppress(OSError, ValueError, RuntimeError):  # a text that is no path; links in a circle
            if isinstance(each, Path) or (isinstance(each, str) and each and Path(each).exists()):
                yield Path(each).resolve()


def _written(context: typer.Context, name: str) -> str:
    """The option as it is written; of a switch, the side that was chosen."""
    parameter = next(each for each in context.command.params if each.name == name)
    on, off = parameter.opts, parameter.secondary_opts
    written = max(off if off and context.params[name] is False else on, key=len)
    return written if written.startswith("-") else written.upper()
