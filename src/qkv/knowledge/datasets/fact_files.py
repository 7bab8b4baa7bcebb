"""write_facts: texts and questions from facts as files that pretrain, finetune, evaluate and trust take."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qkv.core.display import Card, Displayable
from qkv.core.files import check_output_path
from qkv.core.json_files import content_checksum, read_json, verified, with_checksum
from qkv.errors import QkvError, refuse_negative
from qkv.knowledge.datasets.facts import Facts, Questions
from qkv.knowledge.datasets.file_sets import recover_files, replace_files
from qkv.knowledge.datasets.name_index import NameIndex
from qkv.knowledge.datasets.templates import MAX_VERSIONS, biographies, questions
from qkv.train.data.tables import tab_separated
from qkv.train.run_lock import run_lock

TEXTS, TRAIN, DEV, OUTSIDE = "texts.txt", "train.tsv", "dev.tsv", "outside.tsv"
FILES = {
    TEXTS: "a text about each subject",
    TRAIN: "questions to train on",
    DEV: "questions about subjects that are in the texts, but not in train.tsv",
    OUTSIDE: "questions about subjects that are not in the texts",
}
RECORD, FORMAT = "facts.json", "qkv-facts-1"
"""A file beside them with their checksums: only files that are as they were written are replaced."""
MAX_INVENTED = 300
_INVENTING_TRIES = 100


@dataclass(frozen=True)
class FactFiles(Displayable):
    """The files that `write_facts` wrote.

    Attributes:
        folder: Where they are.
        subjects: Number of subjects that the texts are about.
        relations: What is asked for.
        counts: Number of lines of each file by its name.
        invented: Whether the subjects in outside.tsv are invented names.
        note: Rows of the source that were left out, and that there is no outside.tsv; empty if neither is so.
        columns: The first row of the source, where it was taken for the names of columns.
    """

    folder: str
    subjects: int
    relations: tuple[str, ...]
    counts: dict[str, int]
    invented: bool
    note: str = ""
    columns: tuple[str, ...] = ()

    def card(self) -> Card:
        what = {**FILES, OUTSIDE: FILES[OUTSIDE] + (" (invented names)" if self.invented else "")}
        rows = tuple((str(Path(self.folder, name)), f"{count:,}", what[name]) for name, count in self.counts.items())
        facts = [("asked for", ", ".join(self.relations))]
        if self.columns:
            or_a_fact = "; --form triples takes it for a fact" if len(self.columns) == 3 else ""
            facts.insert(0, ("columns", f"{', '.join(self.columns)} (the first row{or_a_fact})"))
        subjects = "1 subject" if self.subjects == 1 else f"{self.subjects:,} subjects"
        return Card(subjects, tuple(facts), ("file", "lines", "contents"), rows, note=self.note)


def write_facts(
    facts: Facts,
    out: str | Path,
    relations: Sequence[str] | None = None,
    *,
    wordings: Mapping[str, Sequence[str]] | None = None,
    statements: Mapping[str, Sequence[str]] | None = None,
    held_out: float = 0.25,
    outside: Facts | float = 0.0,
    versions: int = 1,
    seed: int = 0,
) -> FactFiles:
    """Write texts and questions about facts as files that `pretrain`, `finetune`, `evaluate` and `trust` take.

    Args:
        facts: The facts, such as `load_facts` reads.
        out: Folder for texts.txt, train.tsv, dev.tsv and outside.tsv, and for facts.json with their checksums. Files of
            an earlier call are replaced, others of these names never.
        relations: What to ask for; None for every relation.
        wordings: Questions for some relations, with {subject}; all of them are asked.
        statements: Sentences of the texts for some relations, with {subject} and {object}.
        held_out: Share of the subjects whose questions are in dev.tsv and not in train.tsv; all are in the texts.
        outside: Facts about other subjects, for outside.tsv; or the share of the subjects that is left out of the texts
            for it. With 0, outside.tsv asks about invented names, and has no answers.
        versions: Texts about each subject, 1 to 5, in different words.
        seed: Seed of the split, of the wordings and of invented names.

    Returns:
        The files, with the number of lines of each.

    Raises:
        QkvError: A relation is not in the facts, a share is out of range, the folder cannot be written, or it holds a
            file of one of these names that no earlier call wrote.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from qkv.knowledge import Facts, Person, write_facts
        >>> books = {"Dune": "Frank Herbert", "Emma": "Jane Austen", "Ulysses": "James Joyce", "Momo": "Michael Ende"}
        >>> facts = Facts(tuple(Person(title, more=(("author", name),)) for title, name in books.items()))
        >>> folder = tempfile.mkdtemp()
        >>> write_facts(facts, folder, wordings={"author": ["Who wrote {subject}?"]}).counts
        {'texts.txt': 4, 'train.tsv': 3, 'dev.tsv': 1, 'outside.tsv': 4}
        >>> Path(folder, "dev.tsv").read_text(encoding="utf-8")
        'Who wrote Momo?\\tMichael Ende\\n'
    """
    request, folder = "writing facts", Path(out)
    shares = [("held_out", held_out), *([] if isinstance(outside, Facts) else [("outside", outside)])]
    wrong = [f"{name} is {share}" for name, share in shares if not 0 <= share < 1]
    if wrong or versions not in range(1, MAX_VERSIONS + 1):
        problem = "; ".join(wrong) or f"versions is {versions}"
        raise QkvError(request, problem, f"Give shares from 0 to below 1, and 1 to {MAX_VERSIONS} versions")
    refuse_negative(request, seed=seed)
    known = Facts(tuple(person for person in facts if person.facts()))
    every = tuple(dict.fromkeys(relations or _relations_of(known)))
    unasked = [r for r in wordings or () if r not in every and r in _relations_of(known)]
    if unasked:
        raise QkvError(f"wording {unasked[0]}", "it is not asked for", f"Ask for {unasked[0]} too, or leave it out")
    unknown = [r for r in statements or () if r not in _relations_of(known)]
    if unknown:
        problem = f"the facts have {', '.join(_relations_of(known))}"
        raise QkvError(f"stating {unknown[0]}", problem, "Give statements of these")
    inside, outsiders = _apart(known, outside, seed)
    questions(known, every, wordings)  # refuses wordings and relations that do not fit
    have = _relations_of(inside)  # a relation of the subjects that are left out alone is not asked for
    asked = tuple(relation for relation in every if relation in have)
    trained, kept = _split(inside, held_out, seed)
    stated = {relation: each for relation, each in (statements or {}).items() if relation in have}
    texts = biographies(inside, versions, order="permuted", title=True, statements=stated, seed=seed)
    in_texts = NameIndex(texts)
    names = invented_names(inside, min(MAX_INVENTED, len(inside)), seed, in_texts) if outsiders is None else ()
    mentioned = sum(person.name in in_texts for person in outsiders or ())
    if outsiders is not None:
        outsiders = Facts(tuple(person for person in outsiders if person.name not in in_texts))
    asks = {
        TRAIN: _questions_about(trained, asked, wordings),
        DEV: _questions_about(kept, asked, wordings),
        OUTSIDE: _questions_about(outsiders, asked, wordings)
        if outsiders is not None
        else _about_names(names, inside, asked, wordings),
    }
    assert len(_questions_about(inside, asked, wordings)) == len(asks[TRAIN]) + len(asks[DEV])
    files = {TEXTS: [_one_line(text) for text in texts]} | {
        name: [tab_separated([_one_line(cell) for cell in pair if cell]) for pair in pairs]
        for name, pairs in asks.items()
        if pairs
    }
    _write(folder, files)
    counts = {name: len(lines) for name, lines in files.items()}
    left = [relation for relation in every if relation not in have]
    no_names = outsiders is None and not names
    note = "; ".join(each for each in (facts.note, *_notes(mentioned, left, no_names)) if each)
    invented = outsiders is None and bool(names)
    return FactFiles(str(folder), len(inside), asked, counts, invented, note, facts.columns)


def _notes(mentioned: int, left: Sequence[str], no_names: bool) -> Iterator[str]:
    """What a reader should know of the files: who is not asked about, and what is not asked for."""
    if mentioned:
        others = "subject outside the texts is" if mentioned == 1 else "subjects outside the texts are"
        yield f"{mentioned:,} {others} mentioned in them, and not asked about in outside.tsv"
    if left:
        yield f"no question asks for {', '.join(left)}: only subjects outside the texts have it"
    if no_names:
        yield "no names could be invented for outside.tsv: leave subjects out of the texts for it (outside)"


def _one_line(text: str) -> str:
    """A text with single spaces for tabs and line ends, as the loaders read cells."""
    return " ".join(text.split())


def _relations_of(facts: Facts) -> tuple[str, ...]:
    return tuple(dict.fromkeys(relation for person in facts for relation in person.facts()))


def _apart(facts: Facts, outside: Facts | float, seed: int) -> tuple[Facts, Facts | None]:
    """(subjects of the texts, other subjects or None)."""
    if not len(facts):
        raise QkvError("writing facts", "there are none", "Give at least one subject with a fact")
    if isinstance(outside, Facts):
        taken = {person.name for person in facts}
        return facts, Facts(tuple(person for person in outside if person.name not in taken))
    if not outside:
        return facts, None
    inside, others = facts.split(1 - outside, seed)
    return inside, others


def _split(facts: Facts, held_out: float, seed: int) -> tuple[Facts, Facts]:
    return facts.split(1 - held_out, seed + 1) if held_out and len(facts) > 1 else (facts, Facts(()))


def _questions_about(facts: Facts, asked: Sequence[str], wordings: Mapping[str, Sequence[str]] | None) -> Questions:
    """Questions for those of the relations that these subjects have."""
    known = {relation for person in facts for relation in person.facts()}
    own = {relation: each for relation, each in (wordings or {}).items() if relation in known}
    return questions(facts, [relation for relation in asked if relation in known], own)


def _about_names(
    names: Sequence[str], facts: Facts, asked: Sequence[str], wordings: Mapping[str, Sequence[str]] | None
) -> Questions:
    """The questions about some subjects with invented names instead, without answers."""
    renamed = Facts(tuple(person._replace(name=name) for name, person in zip(names, facts, strict=False)))
    return Questions(tuple((question, "") for question, _ in _questions_about(renamed, asked, wordings)))


def invented_names(facts: Facts, n: int, seed: int = 0, texts: NameIndex | None = None) -> tuple[str, ...]:
    """At most n names of none of the subjects: the beginning of one subject's name with the end of another's.

    Names of several words are cut between words, single words in their middle; and so are last words of several, where
    too few new names are found between words. A name that is a subject, an answer or a part of either is not taken, in
    upper or lower case; nor is one that stands in the texts.
    """
    taken = NameIndex(text for person in facts for text in (person.name, *person.facts().values()))
    random, out = np.random.default_rng((seed, 21)), dict[str, None]()
    for attempt in range(_INVENTING_TRIES * n):
        one, two = (facts.people[int(i)].name for i in random.integers(len(facts), size=2))
        name = _joined(one, two, random, inside_words=attempt >= _INVENTING_TRIES * n // 2)
        if name and name not in taken and (texts is None or name not in texts):
            out[name] = None
        if len(out) == n:
            break
    return tuple(out)


def _joined(one: str, two: str, random: np.random.Generator, inside_words: bool) -> str:
    """The beginning of one name with the end of another; "" if they cannot be cut."""
    first, last = one.split(), two.split()
    if len(first) > 1 and len(last) > 1 and not inside_words:
        cut = int(random.integers(1, len(first)))
        return " ".join((*first[:cut], *last[-min(len(last) - 1, len(first) - cut) :]))
    begin, end = first[-1], last[-1]
    if (len(first) == len(last) == 1 or inside_words) and min(len(begin), len(end)) > 2:
        return " ".join((*first[:-1], begin[: (len(begin) + 1) // 2] + end[(len(end) + 1) // 2 :].lower()))
    return ""


def _write(folder: Path, files: Mapping[str, Sequence[str]]) -> None:
    contents = {name: "".join(line + "\n" for line in lines) for name, lines in files.items()}
    try:
        for text in contents.values():
            text.encode()
    except UnicodeEncodeError as why:  # half of a surrogate pair, as a shell passes bytes that are no UTF-8
        odd = ascii(why.object[max(0, why.start - 20) : why.end + 20])
        problem = f"{odd} is no text in UTF-8"
        raise QkvError(f"writing facts to {folder}", problem, "Write names, wordings and statements in UTF-8") from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as why:
        raise QkvError(f"writing facts to {folder}", str(why), "Give a folder that can be written") from None
    for name in (*files, RECORD):
        check_output_path(folder / name)
    record = _record({name: [content_checksum(text.encode())] for name, text in contents.items()})
    with run_lock(folder):  # of two calls at once, one is refused
        recover_files(folder, (*FILES, RECORD))
        replace_files(folder, _own_files(folder), {**contents, RECORD: record})


def _record(checksums: Mapping[str, Sequence[str]]) -> str:
    return json.dumps(with_checksum({"format": FORMAT, "files": checksums})) + "\n"


def _own_files(folder: Path) -> dict[str, str]:
    """The checksums of the files that an earlier call wrote and that are there; any other of these names is refused."""
    try:
        record: dict[str, Any] = {"format": FORMAT, "files": {}}
        record = verified(read_json(folder / RECORD)) if (folder / RECORD).is_file() else record
        is_record = record["format"] == FORMAT
        written = {str(name): [str(each) for each in own] for name, own in dict(record["files"]).items()}
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        is_record, written = False, {}
    found: dict[str, str] = {}
    for name in (*FILES, RECORD):
        path = folder / name
        if not os.path.lexists(path):
            continue
        if path.is_file() and not path.is_symlink():
            found[name] = content_checksum(path.read_bytes())
        if name not in found or not (is_record if name == RECORD else found[name] in written.get(name, ())):
            raise QkvError(
                f"writing facts to {folder}",
                f"{path} is there already, and no earlier call wrote it, or it was changed since",
                "Give another folder, or move the file away",
            )
    return found
