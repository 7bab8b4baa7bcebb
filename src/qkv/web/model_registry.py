"""The models that can be asked: those named on the command line, and those trained by jobs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.web import code_snippets, limits

if TYPE_CHECKING:
    from qkv.train.runs import Run

MAX_TRAINED_MODELS = 8
"""Models trained by jobs that are kept; the oldest is dropped first."""
NAMED, TRAINED = "named at start", "trained here"


@dataclass(frozen=True)
class _Entry:
    run: Run
    folder: Path
    source: str


class ModelRegistry:
    """Runs by name. A request gives a name that is looked up here; it is never used as a path.

    Args:
        folders: Run folders by name.

    Raises:
        QkvError: A folder holds no run.
    """

    def __init__(self, folders: Mapping[str, Path]) -> None:
        from qkv.train.runs import load  # with torch, which takes longer to import than the rest of the server

        self._lock = threading.Lock()
        self._entries = {name: _Entry(load(folder), Path(folder), NAMED) for name, folder in folders.items()}

    def add(self, name: str, folder: Path) -> None:
        """Add a model that a job has trained."""
        from qkv.train.runs import load

        with self._lock:
            trained = [name for name, entry in self._entries.items() if entry.source == TRAINED]
            for oldest in trained[: max(0, len(trained) + 1 - MAX_TRAINED_MODELS)]:
                del self._entries[oldest]
            self._entries[name] = _Entry(load(folder), folder, TRAINED)

    def descriptions(self) -> list[dict[str, Any]]:
        """Name, source and size of each model."""
        with self._lock:
            entries = list(self._entries.items())
        return [
            {
                "name": name,
                "source": entry.source,
                "attention": entry.run.config.attention,
                "n_layer": entry.run.config.n_layer,
                "n_head": entry.run.config.n_head,
                "d_model": entry.run.config.d_model,
                "parameters": sum(p.numel() for p in entry.run.model.parameters()),
            }
            for name, entry in entries
        ]

    def ask(self, name: str, question: str) -> dict[str, Any]:
        """The answer of a model to a question, with the Python code that asks it.

        Raises:
            HttpRefusal: There is no such model (404).
        """
        from qkv.knowledge.answer import ask

        with self._lock:
            entry = self._entries.get(name)
            known = ", ".join(self._entries)
        if entry is None:
            raise limits.HttpRefusal(
                404,
                f"asking the model {name!r}",
                "there is no such model",
                f"Ask one of: {known}" if known else "Start the server with --model NAME=FOLDER, or train a model",
            )
        return {**ask(entry.run, question).to_json(), "python": code_snippets.ask(str(entry.folder), question)}
