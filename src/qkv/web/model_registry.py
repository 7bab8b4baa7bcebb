"""The models that can be asked, or looked at: those named on the command line, trained by jobs, or kept."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.core.hugging_face import is_hugging_face_folder
from qkv.errors import QkvError
from qkv.web import code_snippets, limits
from qkv.web.schemas import encoded

if TYPE_CHECKING:
    from qkv.train.runs import Run

MAX_TRAINED_MODELS = 8
"""Models trained by jobs that are kept; the oldest is dropped first."""
MAX_KEPT_MODELS = 100
"""Models in the folder for kept models; a further one is refused."""
NAMED, TRAINED, KEPT = "named at start", "trained here", "kept"
DEFAULT_RUNS = Path("runs", "explorer")
"""Folder for kept models, relative to where the server was started."""


@dataclass(frozen=True)
class _Entry:
    """A model; `run` is None for one of transformers, whose heads can be looked at but which answers no questions."""

    run: Run | None
    folder: Path
    source: str


class ModelRegistry:
    """Models by name. A request gives a name that is looked up here; it is never used as a path.

    Args:
        folders: Folders of runs, or of models of transformers, by name.
        runs: Folder for kept models. Those that it has are offered; one that cannot be read is left out.

    Raises:
        QkvError: One of `folders` holds no model.
    """

    def __init__(self, folders: Mapping[str, Path], runs: Path = DEFAULT_RUNS) -> None:
        self._lock = threading.Lock()
        self.runs, self._runs_folder = runs, runs.resolve()
        self._entries = {name: _Entry(_load(folder), Path(folder), NAMED) for name, folder in folders.items()}
        for folder in self._kept_folders():
            with contextlib.suppress(QkvError):
                self._entries.setdefault(folder.name, _Entry(_load(folder), folder, KEPT))

    def add(self, name: str, folder: Path) -> None:
        """Add a model that a job has trained."""
        with self._lock:
            trained = [name for name, entry in self._entries.items() if entry.source == TRAINED]
            for oldest in trained[: max(0, len(trained) + 1 - MAX_TRAINED_MODELS)]:
                del self._entries[oldest]
            self._entries[name] = _Entry(_load(folder), folder, TRAINED)

    def keep(self, name: str) -> dict[str, Any]:
        """Copy a model that a job has trained into the folder for kept models, where the next server finds it.

        Returns:
            Its description, as in `descriptions`.

        Raises:
            HttpRefusal: There is no such model (404), the folder holds too many (429) or cannot be written (503).
        """
        request = f"keeping the model {name!r}"
        with self._lock:
            entry = self._find(request, name)
            if entry.source == TRAINED:
                if len(self._kept_folders()) >= MAX_KEPT_MODELS:
                    problem = f"{self.runs} holds {MAX_KEPT_MODELS} models"
                    raise limits.HttpRefusal(429, request, problem, "Remove one of them")
                folder = self._runs_folder / name
                try:
                    _copy_folder(entry.folder, folder)
                except OSError as why:
                    hint = "Start the server with --runs and a folder that can be written"
                    raise limits.HttpRefusal(503, request, f"{why.strerror or why}: {folder}", hint) from None
                entry = self._entries[name] = _Entry(entry.run, folder, KEPT)
            return _description(name, entry)

    def descriptions(self) -> list[dict[str, Any]]:
        """Name, source and size of each model that can be asked."""
        with self._lock:
            entries = list(self._entries.items())
        return [_description(name, entry) for name, entry in entries if entry.run is not None]

    def head_models(self) -> list[dict[str, Any]]:
        """Name, source and kind of each model whose heads can be looked at."""
        with self._lock:
            entries = list(self._entries.items())
        kinds = {name: "transformers" if entry.run is None else "run" for name, entry in entries}
        return [{"name": name, "source": entry.source, "kind": kinds[name]} for name, entry in entries]

    def folder(self, name: str) -> Path:
        """The folder of a model whose heads are looked at.

        Raises:
            HttpRefusal: There is no such model (404).
        """
        with self._lock:
            return self._find(f"looking at the heads of {name!r}", name).folder.resolve()

    def ask(self, name: str, question: str) -> dict[str, Any]:
        """The answer of a model to a question, with the Python code that asks it.

        Raises:
            HttpRefusal: There is no such model (404).
        """
        from qkv.knowledge.answer import ask

        with self._lock:
            entry = self._askable(f"asking the model {name!r}", name)
        code = code_snippets.ask(str(entry.folder.resolve()), question, temporary=entry.source == TRAINED)
        assert entry.run is not None
        return {**ask(entry.run, question).to_json(), "python": code}

    def attention(self, name: str, question: str, layer: int, head: int) -> dict[str, Any]:
        """What each token of a question looks at, in one head of the model that is asked.

        Raises:
            HttpRefusal: There is no such model (404).
            QkvError: There is no such head, or its tokens do not look at tokens.
        """
        from qkv.knowledge.answering.name_attention import question_attention

        with self._lock:
            entry = self._askable(f"asking the model {name!r}", name)
        assert entry.run is not None
        found = question_attention(entry.run, question, layer, head)
        return {"tokens": found.tokens, "weights": encoded(found.weights)}

    def _askable(self, request: str, name: str) -> _Entry:
        entry = self._find(request, name)
        if entry.run is None:
            problem = "it is a model of transformers, which answers no questions here"
            raise limits.HttpRefusal(422, request, problem, "Look at its heads on the page Heads")
        return entry

    def _find(self, request: str, name: str) -> _Entry:
        entry = self._entries.get(name)
        if entry is None:
            hint = "Start the server with --model NAME=FOLDER, or train a model"
            if self._entries:
                hint = f"Ask one of: {', '.join(self._entries)}"
            raise limits.HttpRefusal(404, request, "there is no such model", hint)
        return entry

    def _kept_folders(self) -> list[Path]:
        """The runs in the folder for kept models, by name; copies that were interrupted are hidden files."""
        from qkv.train.run_files import is_run

        if not self._runs_folder.is_dir():
            return []
        return [
            folder
            for folder in sorted(self._runs_folder.iterdir())
            if not folder.name.startswith(".") and is_run(folder)
        ]


def _load(folder: Path) -> Run | None:
    """A run; None for a folder of transformers, which is opened when its heads are first looked at."""
    if is_transformers_folder(folder):
        return None
    from qkv.train.runs import load  # with torch, which takes longer to import than the rest of the server

    return load(folder)


def is_transformers_folder(folder: Path) -> bool:
    """Whether a folder holds a model of transformers: its config.json names a family, and there are safetensors."""
    return is_hugging_face_folder(folder) and any(folder.glob("*.safetensors"))


def _description(name: str, entry: _Entry) -> dict[str, Any]:
    """Name, source and size of a model, and the folder of one that stays."""
    assert entry.run is not None
    return {
        "name": name,
        "source": entry.source,
        "folder": None if entry.source == TRAINED else str(entry.folder.resolve()),
        "attention": entry.run.config.attention,
        "n_layer": entry.run.config.n_layer,
        "n_head": entry.run.config.n_head,
        "d_model": entry.run.config.d_model,
        "parameters": sum(p.numel() for p in entry.run.model.parameters()),
    }


def _copy_folder(source: Path, target: Path) -> None:
    """Copy a folder under another name first, so that no part of it is ever seen under its own."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}-{os.getpid()}")
    failures: list[OSError] = []

    def copy(source: str, target: str) -> str:
        try:
            return shutil.copy2(source, target)
        except OSError as why:
            failures.append(why)
            raise

    try:
        shutil.copytree(source, partial, copy_function=copy)
        partial.rename(target)
    except shutil.Error as all_of_them:  # a list of names and texts
        raise failures[0] if failures else OSError(errno.EIO, "not all of it can be copied") from all_of_them
    finally:
        shutil.rmtree(partial, ignore_errors=True)
