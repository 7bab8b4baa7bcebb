"""Questions about names that nobody has: made of parts of known names, and in neither the texts nor the questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qkv.errors import QkvError
from qkv.knowledge.datasets.name_index import NameIndex
from qkv.knowledge.datasets.templates import find_name
from qkv.train import run_files
from qkv.train.data.text_files import SizedIterable, read_questions, read_texts

if TYPE_CHECKING:
    from qkv.train.runs import Run

MAX_COUNTED = 10**6  # different names that are counted before any is made
MAX_STAGES = 100  # of training, each from the run before
TRIES = 100  # names made for each that is wanted, where most of them are found in the text


class InventedQuestions(NamedTuple):
    """Questions about invented names; `found` names were made, found in the text or a question, and left out."""

    questions: tuple[str, ...]
    found: int


class NameCheck:
    """The names in a run's text and in its questions, as far as the files that it was trained on can still be read.

    Attributes:
        checked: What is read: "the text", "the training questions".
        unchecked: Those of the two that cannot be read, or have changed since.
        text: The names in the text; None if it cannot be read.
        trained: The training questions, as far as they can be read.
    """

    def __init__(self, run: Run, text: str | Path | SizedIterable[str] | None = None) -> None:
        texts = read_texts(text) if text is not None else _training_texts(run)
        asked = _training_questions(run)
        found = {"the text": texts, "the training questions": asked}
        self.checked = tuple(name for name, lines in found.items() if lines is not None)
        self.unchecked = tuple(name for name, lines in found.items() if lines is None)
        self.text = None if texts is None else NameIndex(texts)
        self.trained = frozenset(asked or ())
        self._asked = NameIndex(asked or ())

    def __contains__(self, name: str) -> bool:
        return (self.text is not None and name in self.text) or name in self._asked


def invented_questions(
    names: NameCheck, known: Sequence[str], given: Sequence[str], n: int, seed: int, frames: Sequence[str] = ()
) -> InventedQuestions:
    """Up to n of the known questions with names that are in neither the run's text nor any question.

    A name is that of one question with the last word of another's; of names of one word, with its second half.
    Questions in which no name is found give no parts.

    Args:
        names: The names in the text and the training questions.
        known: Questions about people in the text; the names are made of parts of theirs.
        given: All questions that were given: names in these are not taken.
        n: Number of questions wanted; fewer if the names do not suffice.
        seed: Seed of the choice.
        frames: The questions that the run was trained on, with … for the name.
    """
    asked = NameIndex([*known, *given])
    spans = [(question, find_name(question, frames)) for question in known]
    parts = [(question, *span, *_in_two(question[slice(*span)])) for question, span in spans if span and _long(span)]
    random = np.random.default_rng((seed, 18))
    out: dict[str, str] = {}
    found: set[str] = set()
    made: set[str] = set()
    tried: set[str] = set()  # each is looked for once, since a text may be long
    possible = _combinations(parts)
    for _ in range(TRIES * n if len(parts) > 1 else 0):
        if len(out) == n or len(made) == possible:
            break
        (question, a, b, start, _), (other, c, d, _, end) = (parts[int(i)] for i in random.integers(len(parts), size=2))
        name = start + end
        if start.endswith(" ") != (" " in other[c:d]):
            continue  # one name is of one word, and the other is not
        made.add(name)
        if name in tried or name in (question[a:b], other[c:d]):
            continue
        tried.add(name)
        if name in names or name in asked:
            found.add(name)
        else:
            out[name] = question[:a] + name + question[b:]
    return InventedQuestions(tuple(out.values()), len(found))


def _long(span: tuple[int, int]) -> bool:
    """Whether a name is long enough to be cut in two."""
    return span[1] - span[0] > 3


def _combinations(parts: Sequence[tuple[str, int, int, str, str]]) -> int:
    """How many different names the beginnings and ends of names make: of several words, and of one."""
    names: set[str] = set()
    for several in (True, False):
        of_kind = [part for part in parts if part[3].endswith(" ") == several]
        starts, ends = {part[3] for part in of_kind}, {part[4] for part in of_kind}
        if len(starts) * len(ends) > MAX_COUNTED:
            return MAX_COUNTED  # more than will be tried
        names |= {start + end for start in starts for end in ends}
    return len(names)


def _in_two(name: str) -> tuple[str, str]:
    """A name before its last word, with the space, and the last word; of a single word, its two halves."""
    words = name.split()
    if len(words) > 1:
        return " ".join(words[:-1]) + " ", words[-1]
    return name[: len(name) // 2], name[len(name) // 2 :]


def _training_texts(run: Run) -> list[str] | None:
    """The texts that a run, and those that it was finetuned from, were trained on; None if some cannot be read, or if
    there are none."""
    out: list[str] = []
    folder: Path = run.folder
    data: dict[str, Any] = run.data
    for _ in range(MAX_STAGES):
        if data.get("kind") != "questions":
            texts = run_files.read_recorded(data, folder, read_texts)
            if texts is None:
                return None
            out += texts
        if not data.get("parent") or data.get(run_files.FROM_SCRATCH) is True:  # which took no weights
            return out or None
        parent = _parent(data)
        if parent is None:
            return None
        folder, data = parent
    return None


def _training_questions(run: Run) -> list[str] | None:
    """The questions that a run, and those that it was finetuned from, were trained on; None if some cannot be read."""
    out: list[str] = []
    folder: Path = run.folder
    data: dict[str, Any] = run.data
    for _ in range(MAX_STAGES):
        record = data if data.get("kind") == "questions" else data.get("questions") or {}
        pairs = run_files.read_recorded(record, folder, read_questions) if record or data is run.data else ()
        if pairs is None:
            return None
        out += [question for question, _ in pairs]
        if not data.get("parent") or data.get(run_files.FROM_SCRATCH) is True:
            return out
        parent = _parent(data)
        if parent is None:
            return None
        folder, data = parent
    return None


def _parent(data: Mapping[str, Any]) -> tuple[Path, dict[str, Any]] | None:
    """The run that a run was finetuned from, with what it records, if its weights are still those that it gave."""
    folder = run_files.parent_of(data)
    try:
        return None if folder is None else (folder, run_files.read_description(folder).data)
    except QkvError:
        return None
