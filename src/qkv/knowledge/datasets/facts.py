"""Facts about people, questions and texts, from tables and files, with every bad row by its number."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qkv.core.display import Card, Displayable
from qkv.errors import QkvError

RELATIONS = ("city", "country", "year", "occupation")
SAME = {
    "city": ("birthplace", "place of birth", "born in", "birth city", "birthcity"),
    "country": ("birth country", "country of birth", "nation"),
    "year": ("birth year", "year of birth", "birthyear", "born"),
    "occupation": ("profession", "job", "works as"),
}
"""Other names of the relations that texts and questions have wordings for."""
_RELATION = {other: relation for relation, others in SAME.items() for other in (relation, *others)}
NAMED = 5  # bad rows that are spelled out before "and … more"


class Problem(NamedTuple):
    """A row that could not be used, and why."""

    line: int
    why: str


class Person(NamedTuple):
    """Somebody, and what is said of them; `more` has the relations that are not among the four."""

    name: str
    city: str = ""
    country: str = ""
    year: str = ""
    occupation: str = ""
    more: tuple[tuple[str, str], ...] = ()

    def facts(self) -> dict[str, str]:
        """What is known, by relation."""
        known = {relation: str(getattr(self, relation)) for relation in RELATIONS}
        return {relation: value for relation, value in (*known.items(), *self.more) if value}


@dataclass(frozen=True)
class Facts(Displayable):
    """People with their facts, in an order that means something or nothing, and the rows that were left out."""

    people: tuple[Person, ...]
    problems: tuple[Problem, ...] = ()

    def __len__(self) -> int:
        return len(self.people)

    def __iter__(self) -> Iterator[Person]:
        return iter(self.people)

    def only(self, *relations: str) -> Facts:
        """The same people, and of what is known about them only some relations."""
        people = []
        for person in self.people:
            known = {r: v for r, v in person.facts().items() if r in relations}
            four = {r: known.pop(r, "") for r in RELATIONS}
            people.append(Person(person.name, **four, more=tuple(known.items())))
        return replace(self, people=tuple(people))

    def sample(self, n: int, seed: int = 0) -> Facts:
        """n people at random, in random order."""
        if not 0 < n <= len(self.people):
            raise QkvError(f"drawing {n} people", f"there are {len(self.people)}", "Ask for at least one, at most all")
        chosen = np.random.default_rng((seed, 11)).permutation(len(self.people))[:n]
        return replace(self, people=tuple(self.people[i] for i in chosen))

    def split(self, share: float = 0.5, seed: int = 0) -> tuple[Facts, Facts]:
        """Two parts at random, the first with that share of the people; neither is empty."""
        if not (0 < share < 1 and len(self.people) > 1):
            raise QkvError(
                f"splitting {len(self.people)} people",
                f"the share is {share}",
                "Give two or more, and a share in (0, 1)",
            )
        order = np.random.default_rng((seed, 12)).permutation(len(self.people))
        first = min(max(1, round(share * len(order))), len(order) - 1)
        return tuple(
            replace(self, people=tuple(self.people[i] for i in part)) for part in (order[:first], order[first:])
        )  # type: ignore[return-value]

    def invented(self, n: int, seed: int = 0) -> tuple[str, ...]:
        """Names that nobody here has: the beginning of one person's name with the end of another's."""
        taken = {person.name for person in self.people}
        words = [person.name.split() for person in self.people]
        long = [each for each in words if len(each) > 1]
        random, out = np.random.default_rng((seed, 13)), dict[str, None]()
        for _ in range(100 * n if len(long) > 1 else 0):
            one, two = (long[int(i)] for i in random.integers(len(long), size=2))
            name = " ".join((*one[:-1], two[-1]))
            if name not in taken:
                out[name] = None
            if len(out) == n:
                return tuple(out)
        raise QkvError(
            f"inventing {n} names", f"{len(long)} names have two words or more", "Give more people, or ask for fewer"
        )

    def card(self) -> Card:
        known = Counter(relation for person in self.people for relation in person.facts())
        rows = tuple((p.name, ", ".join(f"{r} {v}" for r, v in p.facts().items())) for p in self.people[:5])
        return Card(
            title=f"{len(self.people):,} people",
            facts=tuple((relation, f"{count:,} known") for relation, count in known.most_common()),
            columns=("name", "facts"),
            rows=rows,
            note=told(self.problems),
        )


@dataclass(frozen=True)
class Questions(Displayable):
    """Questions with their answers, and the rows that were left out."""

    pairs: tuple[tuple[str, str], ...]
    problems: tuple[Problem, ...] = ()

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.pairs)

    def card(self) -> Card:
        return Card(
            f"{len(self.pairs):,} questions",
            columns=("question", "answer"),
            rows=self.pairs[:5],
            note=told(self.problems),
        )


@dataclass(frozen=True)
class Texts(Displayable):
    """Documents, one a line, and the lines that were left out."""

    texts: tuple[str, ...]
    problems: tuple[Problem, ...] = ()

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def card(self) -> Card:
        return Card(
            f"{len(self.texts):,} texts",
            columns=("text",),
            rows=tuple((t,) for t in self.texts[:5]),
            note=told(self.problems),
        )


def load_questions(path: str | Path, answered: bool = True) -> Questions:
    """Lines `question<TAB>answer`; where they need not be `answered`, a question alone has the answer ""."""

    def row(line: str) -> tuple[str, str]:
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) == 1 and cells[0] and not answered:
            return cells[0], ""
        if len(cells) != 2 or not all(cells):
            raise ValueError(
                f"it has {len(cells)} cells, not question<TAB>answer" if len(cells) != 2 else "a cell is empty"
            )
        return cells[0], cells[1]

    good, bad = _rows(path, _lines(path), row, "lines question<TAB>answer")
    return Questions(tuple(good), tuple(bad))


def load_texts(path: str | Path) -> Texts:
    """One document a line; a line of characters that no text has is a bad one."""

    def row(line: str) -> str:
        if "\0" in line or "\N{REPLACEMENT CHARACTER}" in line:
            raise ValueError("it is not UTF-8 text")
        return line.strip()

    good, bad = _rows(path, _lines(path), row, "one document a line")
    return Texts(tuple(good), tuple(bad))


def load_facts(path: str | Path) -> Facts:
    """Subject, relation, object: three columns of a .csv (a header may name them), or objects of a .jsonl file.

    Relations called city, country, year or occupation, or like it, have wordings of their own in texts and questions.
    """
    path = Path(path)
    wanted = "subject, relation, object in .csv or .jsonl"
    if path.suffix not in (".csv", ".jsonl"):
        raise QkvError(f"reading facts from {path}", f"'{path.suffix}' is not a format of facts", f"Give {wanted}")
    read = _comma if path.suffix == ".csv" else _object
    lines = _lines(path)
    if (
        path.suffix == ".csv"
        and lines
        and [c.strip().lower() for c in lines[0][1].split(",")] == ["subject", "relation", "object"]
    ):
        lines = lines[1:]
    told: dict[str, dict[str, str]] = {}

    def row(line: str) -> None:
        subject, relation, value = read(line)
        relation = _RELATION.get(relation.lower(), relation)
        known = told.setdefault(subject, {}).setdefault(relation, value)
        if known != value:
            raise ValueError(f"{subject} has {relation} {known} already, and {value} here")

    _, bad = _rows(path, lines, row, wanted)
    people = []
    for name, known in told.items():
        four = {relation: known.pop(relation, "") for relation in RELATIONS}
        people.append(Person(name, **four, more=tuple(known.items())))
    return Facts(tuple(people), tuple(bad))


def told(problems: Iterable[Problem]) -> str:
    """Problems in one sentence, or nothing."""
    every = list(problems)
    named = "; ".join(f"line {line}: {why}" for line, why in every[:NAMED])
    more = f"; and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return f"{len(every)} bad row{'s' * (len(every) != 1)} left out ({named}{more})" if every else ""


def _comma(line: str) -> tuple[str, str, str]:
    cells = [cell.strip() for cell in next(csv.reader([line], strict=True))]
    if len(cells) != 3 or not all(cells):
        raise ValueError(f"it has {len(cells)} cells, not 3" if len(cells) != 3 else "a cell is empty")
    return cells[0], cells[1], cells[2]


def _object(line: str) -> tuple[str, str, str]:
    data = json.loads(line)
    names = ("subject", "relation", "object")
    if not isinstance(data, dict) or set(data) != set(names):
        raise ValueError("it is not an object with subject, relation and object")
    cells = [str(data[name]).strip() for name in names]
    if not all(cells) or any(not isinstance(data[name], str | int) or isinstance(data[name], bool) for name in names):
        raise ValueError("subject, relation or object is empty, or neither text nor a whole number")
    return cells[0], cells[1], cells[2]


def _lines(path: str | Path) -> list[tuple[int, str]]:
    """The lines of a file that hold anything, with their numbers; bytes that are not UTF-8 spoil their line only."""
    path = Path(path)
    if not path.is_file():
        raise QkvError(f"reading {path}", "there is no such file", "Check the path")
    text = path.read_bytes().decode("utf-8-sig", errors="replace")
    return [(n, line.rstrip("\r")) for n, line in enumerate(text.split("\n"), 1) if line.strip()]


def _rows(
    path: object, lines: list[tuple[int, str]], row: Callable[[str], Any], wanted: str
) -> tuple[list[Any], list[Problem]]:
    """What the lines hold, and the problems with the others; only problems is a refusal."""
    good, bad = [], []
    for number, line in lines:
        try:
            if "\N{REPLACEMENT CHARACTER}" in line:
                raise ValueError("it is not UTF-8 text")
            good.append(row(line))
        except (ValueError, csv.Error) as why:
            bad.append(Problem(number, str(why)))
    if not good:
        came = told(bad).replace(" left out", "") if bad else "it is empty"
        raise QkvError(f"reading {path}", f"no row of it can be used: {came}", f"Give {wanted}")
    return good, bad
