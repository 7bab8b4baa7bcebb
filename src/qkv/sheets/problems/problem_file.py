"""load_problem: a Markdown file that describes a problem, read line by line into a Problem."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import get_args

from qkv.claims.syntax.markdown import UnparsedClaim, read
from qkv.errors import QkvError, kind_of
from qkv.sheets.problems.problem import HOLE, ROLES, SCALE, Part, Problem, Question, QuestionKind

SHIPPED = ("attention-2021", "attention-2022", "attention-2024")
"""The ids of the shipped problem files; `attention` stands for all of them."""

MAX_FILE_LENGTH = 200_000  # characters
MAX_PARTS = 60
MAX_QUESTIONS = 20  # of one part
ID = re.compile(r"[A-Za-z0-9]+([.-][A-Za-z0-9]+)*")
HEADING = re.compile(r"(#{1,3})\s+(.*?)\s*#*\s*$")
ENTRY = re.compile(r"[-*]\s+([a-z]+):\s*(.*?)\s*$")
PART_TITLE = re.compile(r"[Pp]art\s+(\S+?):?(?:\s+(.*))?$")
QUESTION_TITLE = re.compile(r"[Aa]sked:\s*(.*)$")
DEFINED = re.compile(r"\s*([A-Za-z]+(?:_\w+)?)\s*=\s*\?\s*")

PROBLEM_ENTRIES = ("id", "family", "text", "signs")
PART_ENTRIES = ("also", "titles", "text", "given", "let")
QUESTION_ENTRIES = ("kind", "given", "let", "goal", "show", "uses", "varies", "default", "item", "outcome", "words")
NEEDS_HOLE = ("construction", "output", "samples", "condition")


def load_problem(name_or_path: str | Path) -> Problem:
    """A problem by the id of a shipped file, or from a file of one's own.

    Args:
        name_or_path: Such as "attention-2022", or the path of a Markdown file (docs/problem-files.md).

    Returns:
        The problem, with the givens of each part put before those of its questions.

    Raises:
        QkvError: There is no such file, or it is not a problem file: the line and what was expected there.

    Example:
        >>> from qkv.sheets.problems import load_problem
        >>> load_problem("attention-2021").part("b").questions[0].goal
        ('c -> (v_a + v_b)/2 as scale -> oo',)
    """
    if isinstance(name_or_path, str) and name_or_path in SHIPPED:
        return _shipped(name_or_path)
    request = f"loading the problem {str(name_or_path)!r}"
    hint = f"Give the path of a problem file, or one of {', '.join(SHIPPED)}"
    try:
        path = Path(name_or_path)
        if not path.is_file():
            raise QkvError(request, "there is no such file", hint)
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as why:
        raise QkvError(request, "the file is not UTF-8 text", "Save it as UTF-8") from why
    except (OSError, TypeError, ValueError) as why:
        if isinstance(why, QkvError):
            raise
        raise QkvError(request, f"it cannot be read ({type(why).__name__})", hint) from why
    return read_problem(text, path.name)


@cache
def _shipped(name: str) -> Problem:
    text = resources.files("qkv.sheets.problems").joinpath("files", f"{name}.md").read_text(encoding="utf-8")
    return read_problem(text, f"{name}.md")


def editions(name: str) -> tuple[Problem, ...]:
    """The editions of a family of shipped problems, such as "attention"; or the one problem of that name or path."""
    found = tuple(_shipped(id) for id in SHIPPED if _shipped(id).family == name)
    return found or (load_problem(name),)


@dataclass
class _Section:
    """A heading with its entries, while the file is read."""

    line: int
    title: str
    entries: list[tuple[int, str, str]] = field(default_factory=list)

    def every(self, key: str) -> list[tuple[int, str]]:
        return [(line, value) for line, name, value in self.entries if name == key]


def read_problem(text: str, name: str = "problem") -> Problem:
    """The problem that a Markdown text describes.

    Args:
        text: The text of a problem file.
        name: What errors call the file.

    Raises:
        QkvError: A line that is not understood, with its number and what was expected.
    """
    if not isinstance(text, str):
        raise QkvError("reading a problem", f"the text is {kind_of(text)}", "Give the text as a string")
    if len(text) > MAX_FILE_LENGTH:
        raise _error(name, 1, f"the file has {len(text)} characters", f"Expected at most {MAX_FILE_LENGTH}")
    top: _Section | None = None
    letters: _Section | None = None
    parts: list[tuple[_Section, list[_Section]]] = []
    for level, section in _sections(text, name):
        if level == 1 and top is None:
            top = section
        elif top is None:
            raise _error(
                name, section.line, f"the heading {section.title!r}", "Expected '# title of the problem' first"
            )
        elif level == 2 and section.title.lower() == "letters":
            letters = section
        elif level == 2 and PART_TITLE.match(section.title):
            parts.append((section, []))
        elif level == 3 and QUESTION_TITLE.match(section.title) and parts:
            parts[-1][1].append(section)
        else:
            expected = "Expected '## Letters', '## Part a: title' or, inside a part, '### Asked: what is asked'"
            raise _error(name, section.line, f"the heading {section.title!r}", expected)
    if top is None:
        raise _error(name, 1, "there is no heading", "Expected '# title of the problem'")
    return _problem(name, top, letters, parts)


def _sections(text: str, name: str) -> Iterator[tuple[int, _Section]]:
    """The headings of a file with their entries; other lines are text for people."""
    section: _Section | None = None
    level = 0
    for number, line in enumerate(text.splitlines(), start=1):
        heading = HEADING.match(line)
        if heading is not None:
            if section is not None:
                yield level, section
            level, section = len(heading[1]), _Section(number, heading[2])
            continue
        entry = ENTRY.match(line)
        if entry is not None:
            if section is None:
                raise _error(name, number, f"the entry {entry[1]!r}", "Expected '# title of the problem' before it")
            section.entries.append((number, entry[1], entry[2]))
        elif section is not None and section.entries and line[:2] == "  " and line.strip():
            at, key, value = section.entries[-1]  # a line that is indented continues the entry before
            section.entries[-1] = (at, key, f"{value} {line.strip()}")
    if section is not None:
        yield level, section


def _problem(
    name: str, top: _Section, letters: _Section | None, parts: list[tuple[_Section, list[_Section]]]
) -> Problem:
    _require_entries(name, top, PROBLEM_ENTRIES)
    id = _one(name, top, "id")
    if not ID.fullmatch(id):
        raise _error(name, top.line, f"the id {id!r}", "Expected '- id: letters-and-digits' below the title")
    if not parts:
        raise _error(name, top.line, "the problem has no part", "Expected '## Part a: title'")
    if len(parts) > MAX_PARTS:
        raise _error(name, top.line, f"{len(parts)} parts", f"Expected at most {MAX_PARTS}")
    found: list[Part] = []
    for section, questions in parts:
        part = _part(name, section, questions)
        if any(part.id == other.id for other in found):
            raise _error(name, section.line, f"a second part {part.id!r}", "Expected every id once")
        found.append(part)
    ids = [part.id for part in found]
    for (section, asked), part in zip(parts, found, strict=True):
        for at, question in zip(asked, part.questions, strict=True):
            if question.uses and question.uses not in ids[: ids.index(part.id)]:
                raise _error(name, at.line, f"uses {question.uses!r}", f"Expected a part before {section.title!r}")
    return Problem(
        id=id,
        title=top.title,
        family=_one(name, top, "family") or id,
        parts=tuple(found),
        letters=_letters(name, letters),
        signs=_word_sets(name, top, "signs"),
        text=_word_sets(name, top, "text"),
    )


def _letters(name: str, section: _Section | None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if section is None:
        return ()
    _require_entries(name, section, ROLES)
    found: dict[str, tuple[str, ...]] = {}
    for line, role, value in section.entries:
        letters = tuple(value.replace(",", " ").split())
        if not letters or role in found:
            raise _error(
                name, line, f"the letters for {role!r}", "Expected each role once, with letters after the colon"
            )
        found[role] = letters
    return tuple(found.items())


def _part(name: str, section: _Section, questions: list[_Section]) -> Part:
    title = PART_TITLE.match(section.title)
    id = title[1].rstrip(":").lower() if title else ""
    if title is None or not ID.fullmatch(id):
        raise _error(name, section.line, f"the heading {section.title!r}", "Expected '## Part c.ii: title'")
    _require_entries(name, section, PART_ENTRIES)
    if len(questions) > MAX_QUESTIONS:
        raise _error(name, section.line, f"{len(questions)} questions", f"Expected at most {MAX_QUESTIONS}")
    given = tuple(value for _, value in section.every("given"))
    let = tuple(value for _, value in section.every("let"))
    for line, key, value in section.entries:
        if key in ("given", "let"):
            if HOLE in value:
                raise _error(name, line, "a hole in a part", "Expected holes '?' in questions only")
            _require_claim(name, line, given if key == "given" else (*given,), () if key == "given" else let, "0 = 0")
    return Part(
        id=id,
        title=(title[2] or id).strip(),
        also=tuple(v.strip().lower() for _, value in section.every("also") for v in value.split(";") if v.strip()),
        titles=tuple(v.strip().lower() for _, value in section.every("titles") for v in value.split(";") if v.strip()),
        text=_word_sets(name, section, "text"),
        given=given,
        let=let,
        questions=tuple(_question(name, id, at, given, let) for at in questions),
    )


def _question(name: str, part: str, section: _Section, given: tuple[str, ...], let: tuple[str, ...]) -> Question:
    _require_entries(name, section, QUESTION_ENTRIES)
    title = QUESTION_TITLE.match(section.title)
    asked = title[1].strip() if title else ""
    if not asked:
        raise _error(name, section.line, "a question without words", "Expected '### Asked: what is asked'")
    kind = _one(name, section, "kind") or "words"
    kinds = get_args(QuestionKind)
    if kind not in kinds:
        raise _error(name, section.line, f"the kind {kind!r}", f"Expected one of {', '.join(kinds)}")
    holes: list[str] = []
    own = [value for _, value in section.every("given") if value != HOLE]
    every_given, every_let, goal = own or list(given), list(let), []
    for line, key, value in section.entries:
        if key == "given" and value == HOLE:
            holes.append("condition")
        elif key == "let":
            for piece in _pieces(value):
                hole = DEFINED.fullmatch(piece)
                every_let = _without(every_let, piece.partition("=")[0].strip())
                if hole is not None:
                    holes.append(hole[1])
                elif HOLE in piece:
                    raise _error(name, line, f"the definition {piece.strip()!r}", "Expected 'name = ?' for a hole")
                else:
                    every_let.append(piece.strip())
        elif key == "goal":
            goal.append(value)
            filled = re.match(r"\s*([A-Za-z]+(?:_\w+)?)\s*(->|=)\s*\?", value)
            if HOLE in value and filled is None:
                raise _error(name, line, f"the goal {value!r}", "Expected the hole on the right: 'c -> ? as t -> oo'")
            if filled is not None and filled[1] not in holes:
                holes.append(filled[1])
    if kind in NEEDS_HOLE and not holes:
        expected = "Expected a hole: '- let: q = ?', '- given: ?' or '- goal: c -> ?'"
        raise _error(name, section.line, f"a question of the kind {kind!r} without a hole", expected)
    if kind != "words" and not goal:
        raise _error(
            name, section.line, f"a question of the kind {kind!r} without a goal", "Expected '- goal: statement'"
        )
    uses = _one(name, section, "uses")
    for line, value in section.every("goal"):
        _require_goal(name, line, tuple(every_given), tuple(every_let), holes, value, kind, bool(uses))
    return Question(
        part=part,
        asked=asked,
        kind=kind,  # type: ignore[arg-type]  # one of get_args(QuestionKind)
        holes=tuple(holes),
        given=tuple(every_given),
        let=tuple(every_let),
        goal=tuple(goal),
        show=_shown(name, section),
        uses=uses,
        varies=_one(name, section, "varies"),
        default=_default(name, section),
        item=_one(name, section, "item"),
        outcomes=_outcomes(name, section),
        words=_word_sets(name, section, "words"),
    )


def _default(name: str, section: _Section) -> tuple[tuple[str, str], ...]:
    found = []
    for line, value in section.every("default"):
        for piece in _pieces(value):
            hole, equals, expression = (side.strip() for side in piece.partition("="))
            if not (hole and equals and expression):
                raise _error(name, line, f"{piece!r}", "Expected a construction: 'q = t*(mu_a + mu_b)'")
            found.append((hole, expression))
    return tuple(found)


def _shown(name: str, section: _Section) -> tuple[str, str] | tuple[()]:
    for line, value in section.every("show"):
        quantity, arrow, wanted = (piece.strip() for piece in value.partition("->"))
        if not (quantity and arrow and wanted):
            raise _error(name, line, f"{value!r}", "Expected a number and what it should be: 'alpha_a -> 1/2'")
        return quantity, wanted
    return ()


def _outcomes(name: str, section: _Section) -> tuple[tuple[str, str], ...]:
    found = []
    for line, value in section.every("outcome"):
        output, when, condition = (piece.strip() for piece in value.partition(" when "))
        if not output or (when.strip() and not condition):
            raise _error(name, line, f"{value!r}", "Expected a value and its condition: 'v_a when gamma > 1'")
        found.append((output, condition))
    return tuple(found)


def _without(lets: list[str], name: str) -> list[str]:
    """The definitions but that of a name, which a question defines anew."""
    kept = (piece.strip() for line in lets for piece in _pieces(line) if piece.partition("=")[0].strip() != name)
    return list(kept)


def _pieces(value: str) -> list[str]:
    """The definitions of a line, at commas outside brackets."""
    pieces, depth = [""], 0
    for char in value:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += char
    return [piece for piece in pieces if piece.strip()]


def _require_goal(
    name: str,
    line: int,
    given: tuple[str, ...],
    let: tuple[str, ...],
    holes: list[str],
    goal: str,
    kind: str,
    uses: bool,
) -> None:
    """Try the goal with placeholders for the holes: it must parse as a statement."""
    statement = goal.replace(HOLE, "0").replace(f"{SCALE} ->", "t ->")
    fixed = tuple(g for g in given if HOLE not in g)
    _require_claim(name, line, fixed, let, statement)


def _require_claim(name: str, line: int, given: tuple[str, ...], let: tuple[str, ...], statement: str) -> None:
    body = [f"given {one}" for one in given] + [f"let {one}" for one in let] + [f"then {statement}"]
    if any("`" in one or "~~~" in one for one in body):
        raise _error(name, line, "a fence in a claim", "Expected a statement of docs/claims.md")
    claims = read("\n".join(["~~~claim part", *body, "~~~"]))
    for claim in claims:
        if isinstance(claim, UnparsedClaim):
            problem = getattr(claim.why, "problem", str(claim.why))
            hint = getattr(claim.why, "hint", "Expected a claim")
            raise _error(name, line, f"it is no claim: {problem}", f"{hint}, in the language of docs/claims.md")


def _word_sets(name: str, section: _Section, key: str) -> tuple[tuple[str, ...], ...]:
    found = []
    for line, value in section.every(key):
        for piece in value.split(";"):
            words = tuple(piece.lower().split())
            if not words:
                raise _error(
                    name, line, f"an empty set of words in {key!r}", "Expected words with ';' between the sets"
                )
            found.append(words)
    return tuple(found)


def _one(name: str, section: _Section, key: str) -> str:
    found = section.every(key)
    if len(found) > 1:
        raise _error(name, found[1][0], f"a second {key!r}", "Expected it once")
    return found[0][1] if found else ""


def _require_entries(name: str, section: _Section, allowed: tuple[str, ...]) -> None:
    for line, key, value in section.entries:
        if key not in allowed:
            raise _error(name, line, f"the entry {key!r}", f"Expected one of {', '.join(allowed)}")
        if not value:
            raise _error(name, line, f"the entry {key!r} is empty", "Expected something after the colon")


def _error(name: str, line: int, problem: str, hint: str) -> QkvError:
    return QkvError(f"{name}, line {line}", problem, hint)
