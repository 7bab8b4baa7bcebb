"""Where the parts of a sheet begin: headings, labels at the beginning of lines, and numbered lists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii")
LETTERS = "abcdefgh"
MAX_MARKS = 2000


@dataclass(frozen=True)
class Mark:
    """A label of a part.

    Attributes:
        at: Where it stands in the text.
        kind: "question", "letter", "roman" or "title".
        value: The number, letter or numeral; the part of a title.
        strong: Whether its form leaves no doubt, as with a heading.
        title: The rest of a heading of a question.
    """

    at: int
    kind: str
    value: str
    strong: bool = False
    title: str = ""


@dataclass(frozen=True)
class Stretch:
    """From `at` on, up to the next stretch, the text belongs to a part of a question."""

    at: int
    question: int
    part: str
    title: str = ""


def stretches(text: str, form: str, titles: Mapping[str, tuple[str, ...]], numbered: bool = False) -> list[Stretch]:
    """The stretches of a text in order; the first begins at 0 and belongs to no part.

    With `numbered`, lines under a letter that begin with 1., 2. and so on begin its parts i, ii and so on.
    """
    marks = _marks(text, form, titles, numbered)
    return _Walk().run(sorted(marks, key=lambda m: (m.at, _ORDER[m.kind]))[:MAX_MARKS])


_ORDER = {"question": 0, "title": 1, "letter": 2, "roman": 3}


class _Walk:
    """The state while the marks are read: the question, the letter and the numeral that hold."""

    def __init__(self) -> None:
        self.question = 1
        self.begun = False  # whether a question or a part was seen
        self.letter = ""
        self.roman = 0
        self.title = ""
        self.out = [Stretch(0, 1, "")]

    def run(self, marks: list[Mark]) -> list[Stretch]:
        for mark in marks:
            self.begun = self.begun or mark.kind != "question"
            if getattr(self, f"_{mark.kind}")(mark):
                part = self.letter + (f".{ROMAN[self.roman - 1]}" if self.roman else "")
                self.out.append(Stretch(mark.at, self.question, part, self.title))
        return self.out

    def _question(self, mark: Mark) -> bool:
        number = int(mark.value) if mark.value.isdigit() else 0
        if number and number == self.question and self.letter:
            return False
        if number == 0 and not self.letter and self.begun:
            self.title = self.title or mark.title
            return False
        self.question = number or self.question + self.begun
        self.begun = True
        self.letter, self.roman, self.title = "", 0, mark.title
        return True

    def _title(self, mark: Mark) -> bool:
        letter, _, numeral = mark.value.partition(".")
        if numeral and numeral not in ROMAN:
            return False
        roman = ROMAN.index(numeral) + 1 if numeral else 0
        if letter == self.letter and not roman:
            return False
        self.letter, self.roman = letter, roman
        return True

    def _letter(self, mark: Mark) -> bool:
        new, old = LETTERS.index(mark.value), LETTERS.find(self.letter) if self.letter else -1
        if new == old:
            return False
        if old < new <= old + (6 if mark.strong else 2) or old < 0:
            self.letter, self.roman = mark.value, 0
            return True
        if new == 0 and (old >= 2 or mark.strong):
            self.question += 1
            self.letter, self.roman, self.title = "a", 0, ""
            return True
        return False

    def _roman(self, mark: Mark) -> bool:
        value = ROMAN.index(mark.value) + 1
        if not self.letter:
            return False
        if self.roman < value <= self.roman + 2 and (self.roman or value <= 2):
            self.roman = value
            return True
        return False


def _marks(text: str, form: str, titles: Mapping[str, tuple[str, ...]], numbered: bool) -> list[Mark]:
    found: list[Mark] = []
    has_parts = re.search(r"\\part(?![A-Za-z])", text) is not None
    if form == "latex":
        found += _latex_marks(text, has_parts)
    if form == "typst":
        found += _typst_marks(text)
    if not has_parts and form != "typst":
        found += _line_marks(text)
    if not any(mark.kind == "letter" for mark in found):
        found += _capital_marks(text)
    found += _title_marks(text, titles)
    return found + (_number_marks(text) if numbered else [])


_NUMBERED = re.compile(r"^[ \t]*(?:[-*+>][ \t]+|\*\*|\#{1,6}[ \t]*)*(?:[\(（]?([1-4])[.)）、:：](?!\d)|([①②③④]))", re.M)
_CAPITAL = re.compile(r"^[ \t]*(?:\*\*|\#{1,6}[ \t]*)?([A-F])[.)](?:\*\*)?(?=\s)", re.M)


def _number_marks(text: str) -> list[Mark]:
    """Lines that begin with a number, as numerals."""
    found = _NUMBERED.finditer(text)
    return [Mark(m.start(), "roman", ROMAN[int(m[1]) - 1 if m[1] else "①②③④".index(m[2])]) for m in found]


def _capital_marks(text: str) -> list[Mark]:
    """Lines that begin with A., B., C., where these letters follow each other."""
    found = list(_CAPITAL.finditer(text))
    letters = "".join(m[1] for m in found)
    return [Mark(m.start(), "letter", m[1].lower()) for m in found] if letters in ("ABC", "ABCD", "ABCDE") else []


_LATEX = re.compile(
    r"\\(?P<what>part|subpart)(?![A-Za-z])|\\begin\{(?P<open>parts|subparts|enumerate"
    r"|questions)\}(?P<option>\[[^\n]*?\](?=\s|$))?"
    r"|\\end\{(?P<close>parts|subparts|enumerate|questions)\}|\\(?P<item>item)(?![A-Za-z])(?P<own>\s*\[)?"
    r"|\\(?P<question>titledquestion|question|section)\*?(?![A-Za-z])\s*(?:\{(?P<title>[^{}\n]{0,120})\})?"
)


def _latex_marks(text: str, has_parts: bool) -> list[Mark]:
    out: list[Mark] = []
    stack: list[tuple[str, list[int]]] = []  # kind and count of each open list
    letters = romans = 0
    for m in _LATEX.finditer(text):
        at = m.start()
        if m["question"] and any(kind == "letter" for kind, _ in _labels(m["title"] or "")):
            continue  # \section*{(a)} names a part, and begins no question
        if m["question"]:
            number = re.match(r"(?:Question|Problem|Q)?\s*(\d+)", m["title"] or "")
            out.append(Mark(at, "question", number[1] if number else "", True, m["title"] or ""))
            letters = romans = 0
        elif m["what"] == "part":
            letters += 1
            romans = 0
            if letters <= len(LETTERS):
                out.append(Mark(at, "letter", LETTERS[letters - 1], True))
        elif m["what"] == "subpart":
            romans += 1
            if romans <= len(ROMAN):
                out.append(Mark(at, "roman", ROMAN[romans - 1], True))
        elif m["open"]:
            if m["open"] == "parts" or m["open"] == "questions":
                letters = romans = 0
            elif m["open"] == "subparts":
                romans = 0
            kind = _list_kind(m["open"], m["option"] or "", stack, has_parts)
            stack.append((kind, [0]))
        elif m["close"]:
            if stack:
                stack.pop()
        elif m["item"] and stack and not m["own"]:
            kind, counted = stack[-1]
            counted[0] += 1
            count = counted[0]
            if kind == "letter" and count <= len(LETTERS):
                out.append(Mark(at, "letter", LETTERS[count - 1], True))
                romans = 0
            elif kind == "roman" and count <= len(ROMAN):
                out.append(Mark(at, "roman", ROMAN[count - 1], True))
    return out


def _list_kind(name: str, option: str, stack: list[tuple[str, list[int]]], has_parts: bool) -> str:
    if name != "enumerate" or has_parts:
        return name
    outer = [kind for kind, _ in stack]
    if "roman" in option or re.match(r"\[\(?i[.)]", option):
        return "roman"
    if "alph" in option or re.match(r"\[\(?a[.)]", option):
        return "letter"
    if "letter" in outer:
        return "roman" if "roman" not in outer else ""
    return "letter" if not outer and not option else ""


def _typst_marks(text: str) -> list[Mark]:
    out: list[Mark] = []
    counts: dict[int, int] = {}
    inner = 0
    lettered = False  # whether headings name the letters, so that lists number what is below them
    for m in re.finditer(r"^(?P<indent>[ \t]*)(?:\+[ \t]|(?P<heading>=+)[ \t]+(?P<title>[^\n]*))", text, re.M):
        at, depth = m.start(), len(m["indent"])
        if m["heading"]:
            label = _labels(m["title"])
            out += [Mark(at, kind, value, True) for kind, value in label]
            lettered = lettered or any(kind == "letter" for kind, _ in label)
            counts.clear()
            inner = 0
            if not label:
                out.append(Mark(at, "question", "", True, m["title"]))
                counts.clear()
            continue
        counts = {k: v for k, v in counts.items() if k <= depth}
        counts[depth] = counts.get(depth, 0) + 1
        if depth == 0 and lettered:
            out += [Mark(at, "roman", ROMAN[counts[0] - 1], True)] if counts[0] <= len(ROMAN) else []
        elif depth == 0 and counts[0] <= len(LETTERS):
            out.append(Mark(at, "letter", LETTERS[counts[0] - 1], True))
            inner = 0
        elif depth and (not inner or depth == inner) and counts[depth] <= len(ROMAN):
            inner = inner or depth
            out.append(Mark(at, "roman", ROMAN[counts[depth] - 1], True))
    return out + _bracketed_marks(text)


_BRACKETED = re.compile(
    r"^[ \t]*(?:\#\w+(?:\([^()\n]*\))?\[[ \t]*)?"
    r"(?=\((?:[a-h]|i{1,3}|iv|v)\)[ \t]|(?P<mark>[_*])\(?(?:[a-h]|i{1,3}|iv|v)[.)]+(?P=mark))",
    re.M,
)


def _bracketed_marks(text: str) -> list[Mark]:
    """Lines of Typst that begin with a label in brackets or in another font, as in "(ii) Now" or "_ii._ Now"."""
    lines = [(m.start(), text[m.end() : text.find("\n", m.end())]) for m in _BRACKETED.finditer(text)]
    return [Mark(at, kind, value) for at, line in lines for kind, value in _labels(line)]


_PREFIX = re.compile(
    r"[ \t]*(?:>[ \t]*|[-*+•][ \t]+(?=[\[\(（*#\w])|(?P<hash>\#{1,6})[ \t]*|\*{1,3}(?=\S)|_{1,2}(?=[(\w])"
    r"|\\(?P<section>(?:sub)*(?:section|paragraph))\*?\{"
    r"|\\begin\{(?:enumerate|itemize|description)\}(?:\[[^\]\n]*\])?[ \t]*"
    r"|\\(?:begin\{)?(?:answers?|ans|solution|sol|problem|prob|exercise|question|task|subquestion|homeworkProblem)\*?\}?"
    r"[ \t]*[\[{][ \t]*|\[![a-z]+\][+-]?[ \t]*"
    r"|\\text(?:bf|it|rm)?\{|\\noindent[ \t]*|\\item[ \t]*\[?|\$\$?[ \t]*|\\\[[ \t]*|\\large[ \t]*"
    r"|\{[ \t]*|</?[a-z][a-z0-9]*(?:\s[^<>\n]*)?>[ \t]*)*"
)
_WORD = re.compile(
    r"(?P<word>Question|Problem|Part|Subpart|Sub-?question|Exercise|Ex|Q|Task|Answer(?: to)?|Ans|Solution(?: to)?|"
    r"Aufgabe|Teil|Frage|Exercice|Partie|Pregunta|Ejercicio|Parte|Questão|Задача|Часть|问题|题目|题|第|小题|问)"
    r"[ \t]*[.:：]?[ \t]*(?=[\d(（a-i])",
    re.I,
)
_FURTHER = re.compile(r"[ \t]*,?[ \t]*(?:part|subpart|teil|partie|parte)?[ \t]*(?=[(（]?[a-h][)）.:])", re.I)
_NUMBER = re.compile(r"[\(（]?(\d{1,2})[\)）]?(?:[.:：、)]|[ \t]|$|(?=[\(（a-h]))[ \t]*")
_JOINED = re.compile(
    r"[\(（\[]?[ \t]*([a-hA-H])[ \t]*[.\-–](?:([1-4])|(iv|v|i{1,3}))(?![\w.]*\w)[ \t]*[\)）\]]?[ \t.:：]*"
)
_LETTER = re.compile(
    r"[\(（\[][ \t]*([a-hA-H])[ \t]*[\)）\]][ \t.:：]*|([a-h])[\)）][ \t.:：]*"
    r"|([a-h])[.:：](?![A-Za-z])[ \t]*|([a-h])(?=[ \t]*$|\*\*|\})"
)
_AFTER_NUMBER = re.compile(r"([a-h])(?=[.\s):：*}(（]|$)[.):：]?[ \t]*")
_AFTER_WORD = re.compile(r"([a-hA-H])(?=[.):：*}]|[ \t]*$|[ \t]+[(（])[.):：]?[ \t]*")
_ROMAN = re.compile(
    r"[\(（\[][ \t]*(i{1,3}|iv|vi{0,3})[ \t]*[\)）\]][ \t.:：]*|(i{1,3}|iv|vi{0,3})[\)）.:：](?![A-Za-z])[ \t]*"
    r"|(ii|iii|iv|vi)(?=\s|$|\*\*|\})|(i)(?=[ \t]*(?:\\quad|\\qquad|$))"
)
_BARE_ROMAN = re.compile(r"(i{1,3}|iv|vi{0,3})(?=\s|$|[\u4e00-\u9fff])")
_DIGIT = re.compile(r"[\(（]([1-4])[\)）]|([1-4])(?=[ \t]*[.):：]|[ \t]*$|\*\*|\})(?!\.\d)")
_BETWEEN = re.compile(r"(?:\*\*|__|[ \t]|,|[-–](?=[(（i])|\}\s*\\text(?:bf|it)\{)*")
_POINTS = re.compile(r"[\(\[（]\s*\d+\s*(?:points?|pts?|分)", re.I)


def _labels(line: str) -> list[tuple[str, str]]:
    """The labels with which a line begins, from the outermost: question, letter, numeral."""
    prefix = _PREFIX.match(line)
    at = prefix.end() if prefix else 0
    heading = bool(prefix and (prefix["hash"] or prefix["section"]))
    word = _WORD.match(line, at)
    if word:
        at = word.end()
    out: list[tuple[str, str]] = []
    number = _NUMBER.match(line, at)
    if number:
        further = _FURTHER.match(line, number.end(1)) if word else None
        rest = further.end() if further and further.end() > number.end() else number.end()
        letter = _JOINED.match(line, rest) or _LETTER.match(line, rest) or _AFTER_NUMBER.match(line, rest)
        if letter:
            out.append(("question", number[1]))
            at = rest
        elif (
            heading
            or (
                word
                and word["word"].lower()
                not in (
                    "part",
                    "小题",
                    "ex",
                    "teil",
                    "partie",
                    "parte",
                    "answer",
                    "ans",
                    "solution",
                    "subpart",
                    "часть",
                )
            )
            or _POINTS.search(line)
        ):
            return [("question", number[1])]
        else:
            return []
    both = _JOINED.match(line, at)
    if both:
        numeral = both[3] or ROMAN[int(both[2]) - 1]
        return [*out, ("letter", both[1].lower()), ("roman", numeral)]
    letter = _LETTER.match(line, at) or (_AFTER_NUMBER.match(line, at) if out else None)
    letter = letter or (_AFTER_WORD.match(line, at) if word else None)
    if letter:
        out.append(("letter", next(g for g in letter.groups() if g).lower()))
        at = letter.end()
    at = _BETWEEN.match(line, at).end() if letter else at  # type: ignore[union-attr]  # it always matches
    roman = _ROMAN.match(line, at) or (_BARE_ROMAN.match(line, at) if letter else None)
    if roman:
        out.append(("roman", next(g for g in roman.groups() if g)))
    elif letter and (digit := _DIGIT.match(line, at)):
        out.append(("roman", ROMAN[int(digit[1] or digit[2]) - 1]))
    return out


def _line_marks(text: str) -> list[Mark]:
    out: list[Mark] = []
    at = 0
    for line in text.split("\n"):
        if line.strip() and len(out) < MAX_MARKS:
            found = _labels(line)
            strong = line.lstrip().startswith(("#", "\\s", "**")) or len(found) > 1
            title = re.sub(r"[#*\d.]", " ", line).strip()[:120] if found and found[0][0] == "question" else ""
            out += [Mark(at, kind, value, strong, title) for kind, value in found]
        at += len(line) + 1
    return out


MAX_TITLE_LINE = 200


def _title_marks(text: str, titles: Mapping[str, tuple[str, ...]]) -> list[Mark]:
    """Parts told by their titles, in lines that have no label."""
    out: list[Mark] = []
    at = 0
    phrases = [(part, phrase.lower()) for part, all_of in titles.items() for phrase in all_of]
    for line in text.split("\n") if phrases else []:
        low = line[:MAX_TITLE_LINE].lower()
        out += [Mark(at, "title", part) for part, phrase in phrases if phrase in low][:1]
        at += len(line) + 1
    return out
