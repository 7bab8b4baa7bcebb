"""Types of facts, questions and texts, and loaders of the latter two; unusable rows are reported by line number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qkv.core.display import Card, Displayable
from qkv.errors import QkvError
from qkv.train.data.tables import parse_questions, text_lines

RELATIONS = ("city", "country", "year", "occupation")
MAX_PROBLEMS_SHOWN = 5


class Problem(NamedTuple):
    """A row that was left out: its line number and the reason."""

    line: int
    why: str


class Person(NamedTuple):
    """A person, or another subject, with facts; a fact that is not known is the empty string.

    Attributes:
        name: Full name.
        city: City of birth of a person.
        country: Country of birth of a person.
        year: Year of birth of a person, such as "1815" or "384 BC".
        occupation: Occupation of a person.
        more: Other (relation, value) pairs, and all of those of a thing.

    Example:
        >>> from qkv.knowledge import Person
        >>> Person("Ada Lovelace", city="London", more=(("pet", "Puff"),)).facts()
        {'city': 'London', 'pet': 'Puff'}
    """

    name: str
    city: str = ""
    country: str = ""
    year: str = ""
    occupation: str = ""
    more: tuple[tuple[str, str], ...] = ()

    def facts(self) -> dict[str, str]:
        """The known facts by relation."""
        known = {relation: str(getattr(self, relation)) for relation in RELATIONS}
        return {relation: value for relation, value in (*known.items(), *self.more) if value}


@dataclass(frozen=True)
class Facts(Displayable):
    """People with their facts.

    Attributes:
        people: The people, in the order of their source.
        problems: Rows of the source that were left out, with line numbers.
        columns: The first row of the source, where it was taken for the names of columns.
        missing: Cells of the source that say that nothing is known, such as NA, in the order of its lines.

    Example:
        >>> from qkv.knowledge import Facts, Person
        >>> facts = Facts((Person("Ada Lovelace", "London"), Person("Alan Turing", "London"), Person("Emmy Noether")))
        >>> len(facts), [person.name for person in facts.sample(2, seed=0)]
        (3, ['Ada Lovelace', 'Emmy Noether'])
        >>> facts.invented_names(2, seed=0)
        ('Emmy Turing', 'Alan Lovelace')
    """

    people: tuple[Person, ...]
    problems: tuple[Problem, ...] = ()
    columns: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.people)

    def __iter__(self) -> Iterator[Person]:
        return iter(self.people)

    def only(self, *relations: str) -> Facts:
        """The same people with only these relations.

        Raises:
            QkvError: Nobody has a fact of one of them.
        """
        known = {r for person in self.people for r in (*RELATIONS, *(name for name, _ in person.more))}
        if missing := [relation for relation in relations if relation not in known]:
            problem = f"nobody has a fact {', '.join(map(repr, missing))}"
            raise QkvError("keeping some relations of the facts", problem, f"There are {', '.join(sorted(known))}")
        people = []
        for person in self.people:
            four = {r: str(getattr(person, r)) for r in RELATIONS if r in relations}
            people.append(Person(person.name, **four, more=tuple(each for each in person.more if each[0] in relations)))
        return replace(self, people=tuple(people))

    def sample(self, n: int, seed: int = 0) -> Facts:
        """A random sample of n people without replacement, in random order."""
        if not 0 < n <= len(self.people):
            raise QkvError(
                f"sampling {n} people", f"there are {len(self.people)}", "Ask for at least one and at most all"
            )
        chosen = np.random.default_rng((seed, 11)).permutation(len(self.people))[:n]
        return replace(self, people=tuple(self.people[i] for i in chosen))

    def split(self, share: float = 0.5, seed: int = 0) -> tuple[Facts, Facts]:
        """A random split in two non-empty parts, the first with this share of the people."""
        if not (0 < share < 1 and len(self.people) > 1):
            raise QkvError(
                f"splitting {len(self.people)} people",
                f"the share is {share}",
                "Give two or more people, and a share in (0, 1)",
            )
        order = np.random.default_rng((seed, 12)).permutation(len(self.people))
        first = min(max(1, round(share * len(order))), len(order) - 1)
        return tuple(
            replace(self, people=tuple(self.people[i] for i in part)) for part in (order[:first], order[first:])
        )  # type: ignore[return-value]

    def invented_names(self, n: int, seed: int = 0) -> tuple[str, ...]:
        """n different names of no person in these facts: the name of one person with the last word of another's."""
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
            f"inventing {n} names",
            f"{len(long)} names have two words or more",
            "Give more people, or ask for fewer names",
        )

    def card(self) -> Card:
        known = Counter(relation for person in self.people for relation in person.facts())
        rows = tuple((p.name, ", ".join(f"{r} {v}" for r, v in p.facts().items())) for p in self.people[:5])
        return Card(
            title=f"{len(self.people):,} people",
            facts=tuple((relation, f"{count:,} known") for relation, count in known.most_common()),
            columns=("name", "facts"),
            rows=rows,
            note=self.note,
        )

    @property
    def note(self) -> str:
        """What of the source is no fact, in words; empty if there is nothing."""
        n, written = len(self.missing), ", ".join(dict.fromkeys(self.missing))
        cells = f"{n} cell{'s' * (n != 1)} taken for not known ({written})" if n else ""
        return "; ".join(each for each in (describe_problems(self.problems), cells) if each)


@dataclass(frozen=True)
class Questions(Displayable):
    """Questions with their answers.

    Attributes:
        pairs: (question, answer) pairs.
        problems: Rows of the source that were left out, with line numbers.

    Example:
        >>> from qkv.knowledge import Questions
        >>> dict(Questions((("Where was Ada Lovelace born?", "London"),)))
        {'Where was Ada Lovelace born?': 'London'}
    """

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
            note=describe_problems(self.problems),
        )


@dataclass(frozen=True)
class Texts(Displayable):
    """Documents to train on.

    Attributes:
        texts: One string per document.
        problems: Lines of the source that were left out, with line numbers.

    Example:
        >>> from qkv.knowledge import Texts
        >>> len(Texts(("Ada Lovelace was born in London.",)))
        1
    """

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
            note=describe_problems(self.problems),
        )


def load_questions(path: str | Path, answered: bool = True) -> Questions:
    """Load questions from a file of lines `question<TAB>answer`, or from a table that a spreadsheet exported.

    Such a table has commas, semicolons or tabs between its cells, may have quotes around them, and may have a header
    that names the columns `question` and `answer`. Empty lines are skipped. A line of another form is left out and
    listed in `problems`.

    Args:
        path: The file, in UTF-8.
        answered: If False, a line may hold a question alone; its answer is then "".

    Returns:
        The questions, and the lines that were left out.

    Raises:
        QkvError: The file does not exist, or no line of it can be used.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from qkv.knowledge import load_questions
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "questions.tsv")
        ...     _ = path.write_text("Where was Ada Lovelace born?\\tLondon\\nno answer\\n")
        ...     found = load_questions(path)
        >>> found.pairs
        (('Where was Ada Lovelace born?', 'London'),)
        >>> found.problems
        (Problem(line=2, why='it has 1 cells, not question<TAB>answer'),)
    """

    found, bad = parse_questions(numbered_lines(path), answered)
    if not found:
        raise no_usable_row(path, [Problem(*each) for each in bad], "lines question<TAB>answer")
    return Questions(tuple((question, answer) for _, question, answer in found), tuple(Problem(*each) for each in bad))


def load_texts(path: str | Path) -> Texts:
    """Load texts from a file with one document per line.

    Empty lines are skipped. A line that is not UTF-8 text is left out and listed in `problems`.

    Args:
        path: The file.

    Returns:
        The texts, and the lines that were left out.

    Raises:
        QkvError: The file does not exist, or no line of it can be used.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from qkv.knowledge import load_texts
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "texts.txt")
        ...     _ = path.write_text("Ada was born in London.\\nAlan was, too.\\n")
        ...     load_texts(path).texts
        ('Ada was born in London.', 'Alan was, too.')
    """

    def row(line: str) -> str:
        if "\0" in line or "\N{REPLACEMENT CHARACTER}" in line:
            raise ValueError("it is not UTF-8 text")
        return line.strip()

    good, bad = _rows(path, numbered_lines(path, zeros=True), row, "one document per line")
    return Texts(tuple(good), tuple(bad))


def describe_problems(problems: Iterable[Problem]) -> str:
    """The problems in one sentence; empty if there are none."""
    rows = list(problems)
    shown = "; ".join(f"line {line}: {why}" for line, why in rows[:MAX_PROBLEMS_SHOWN])
    more = f"; and {len(rows) - MAX_PROBLEMS_SHOWN} more" if len(rows) > MAX_PROBLEMS_SHOWN else ""
    return f"{len(rows)} bad row{'s' * (len(rows) != 1)} left out ({shown}{more})" if rows else ""


def numbered_lines(path: str | Path, zeros: bool = False) -> list[tuple[int, str]]:
    """The non-empty lines of a file with their numbers; bytes that are not UTF-8 become U+FFFD.

    Args:
        path: The file, in UTF-8, or in what its byte order mark says.
        zeros: Whether lines may hold zero bytes.

    Raises:
        QkvError: There is no such file, or it holds zero bytes.
    """
    path = Path(path)
    if not path.is_file():
        raise QkvError(f"reading {path}", "there is no such file", "Check the path")
    lines = text_lines(path.read_bytes(), errors="replace")
    if not zeros and any("\0" in line for line in lines):
        raise QkvError(f"reading {path}", "it holds zero bytes, which text does not", "Save it as UTF-8 text")
    return [(n, line) for n, line in enumerate(lines, 1) if line.strip()]


def _rows(
    path: object, lines: list[tuple[int, str]], parse: Callable[[str], Any], format_hint: str
) -> tuple[list[Any], list[Problem]]:
    """The parsed lines, and the problems of the others; a file without any usable line is refused."""
    good, bad = [], []
    for number, line in lines:
        try:
            if "\N{REPLACEMENT CHARACTER}" in line:
                raise ValueError("it is not UTF-8 text")
            good.append(parse(line))
        except ValueError as why:
            bad.append(Problem(number, str(why)))
    if not good:
        raise no_usable_row(path, bad, format_hint)
    return good, bad


def no_usable_row(path: object, bad: list[Problem], format_hint: str) -> QkvError:
    """The refusal of a file none of whose rows can be used."""
    problem = describe_problems(bad).replace(" left out", "") if bad else "it is empty"
    return QkvError(f"reading {path}", f"no row of it can be used: {problem}", f"Give {format_hint}")
