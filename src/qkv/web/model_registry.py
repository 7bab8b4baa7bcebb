"""The models that can be asked: those named at start and those trained here, opened when first asked."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.web import code_snippets, limits

if TYPE_CHECKING:
    from qkv.train.runs import Run

MOST_TRAINED = 8


class Models:
    """Runs by name. A request gives a name that is looked up here; it never becomes a path."""

    def __init__(self, named: Mapping[str, Path]) -> None:
        from qkv.train.runs import load

        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._sources: dict[str, str] = {}
        self._folders: dict[str, Path] = {}
        for name, folder in named.items():
            self._runs[name] = load(folder)  # a folder that holds no run is refused at start
            self._folders[name] = Path(folder)
            self._sources[name] = "named at start"

    def add(self, name: str, folder: Path) -> None:
        """A model that was trained here."""
        from qkv.train.runs import load

        with self._lock:
            trained = [n for n, source in self._sources.items() if source == "trained here"]
            for old in trained[: max(0, len(trained) + 1 - MOST_TRAINED)]:
                for held in (self._runs, self._sources, self._folders):
                    held.pop(old, None)
            self._runs[name] = load(folder)
            self._folders[name] = folder
            self._sources[name] = "trained here"

    def listed(self) -> list[dict[str, Any]]:
        """What is known of each."""
        with self._lock:
            runs = list(self._runs.items())
        return [
            {
                "name": name,
                "source": self._sources[name],
                "attention": run.config.attention,
                "layers": run.config.n_layer,
                "heads": run.config.n_head,
                "width": run.config.d_model,
                "parameters": sum(p.numel() for p in run.model.parameters()),
            }
            for name, run in runs
        ]

    def ask(self, name: str, question: str) -> dict[str, Any]:
        """The answer of a model to a question."""
        from qkv.knowledge.answer import ask

        with self._lock:
            if name not in self._runs:
                known = ", ".join(self._runs) or "none; start one with --model NAME=FOLDER, or train one"
                raise limits.HttpRefusal(
                    404, f"asking the model {name!r}", "there is no such model", f"There is {known}"
                )
            run, folder = self._runs[name], self._folders[name]
        return {**ask(run, question).to_json(), "python": code_snippets.ask(str(folder), question)}
