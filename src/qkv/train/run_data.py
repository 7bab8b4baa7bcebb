"""What config.json records of the data of a run, and a text that is kept in the run's own folder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qkv.core.files import Writing
from qkv.errors import QkvError
from qkv.train.data.span_relevance import question_frames
from qkv.train.data.tables import text_lines
from qkv.train.data.text_files import SizedIterable, read_questions, read_texts
from qkv.train.run_files import TEXT_FILE, recorded_path
from qkv.train.settings import CLOZE

TextSource = str | Path | SizedIterable[str]
QuestionSource = str | Path | SizedIterable[tuple[str, str]]


@dataclass(frozen=True)
class DerivedText:
    """A text that is made when a run is created, under its lock, and is kept in its folder as text.txt.

    Attributes:
        make: Returns its lines.
    """

    make: Callable[[], Sequence[str]]


@dataclass(frozen=True)
class KeptText:
    """A text that was made, before it is written.

    Attributes:
        path: Where it is kept.
        content: Its bytes.
    """

    path: Path
    content: bytes

    @classmethod
    def of(cls, text: DerivedText, folder: Path) -> KeptText:
        """The text that a run in a folder is to keep; a file of another content in its place is refused."""
        made = cls(folder / TEXT_FILE, "".join(line + "\n" for line in text.make()).encode())
        made.is_there()
        return made

    def is_there(self) -> bool:
        """Whether a file with this content is there already; one with another content is refused."""
        if not os.path.lexists(self.path):
            return False
        if self.path.is_file() and self.path.read_bytes() == self.content:
            return True
        problem = f"{self.path} is there already, with another content"
        hint = "Give another --out, or move that file"
        raise QkvError(f"writing the text of a run to {self.path.parent}", problem, hint)

    def write(self, writing: Writing) -> None:
        """Write the file, unless it is there."""
        if not self.is_there():
            with writing(self.path) as temporary:
                temporary.write_bytes(self.content)

    def texts(self) -> list[str]:
        """Its texts."""
        return read_texts(text_lines(self.content))


def texts_of(text: TextSource | KeptText) -> list[str]:
    """The texts of a source."""
    return text.texts() if isinstance(text, KeptText) else read_texts(text)


def data_record(text: TextSource | KeptText, questions: QuestionSource | None, objective: str) -> dict[str, Any]:
    """What config.json says about the data of a run on texts."""
    mixed_in: dict[str, Any] = {}
    if questions is not None:
        frames = question_frames(texts_of(text), read_questions(questions))
        mixed_in = {"questions": origin(questions), "frames": frames}
    return {"kind": "cloze" if objective == CLOZE else "text", **origin(text), **mixed_in}


def origin(data: TextSource | QuestionSource | KeptText) -> dict[str, Any]:
    """Path of a file, if it is one, and checksum of the contents."""
    if isinstance(data, KeptText):
        return {"path": str(data.path.resolve()), "sha256": hashlib.sha256(data.content).hexdigest()}
    if isinstance(data, str | Path):
        path = Path(data)
        if not path.is_file():
            raise QkvError(f"reading {path}", "there is no such file", "Check the path")
        return {"path": str(path.resolve()), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    return {"sha256": hashlib.sha256(json.dumps(list(data)).encode()).hexdigest()}


def same_data(folder: Path, data: Any, record: Mapping[str, Any]) -> Any:
    """The data that was given, or the file that was recorded, if it is what the run was started with."""
    data = recorded_path(record, folder) if data is None else data
    if data is None:
        raise QkvError(f"resuming {folder}", "its data was not a file", "Give the same data again")
    if origin(data)["sha256"] != record.get("sha256"):
        raise QkvError(f"resuming {folder}", "the data is not what it began with", "Give the same data, or a new --out")
    return data
