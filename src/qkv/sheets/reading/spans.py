"""Where math stands in a sheet: spans between dollar signs, brackets and in environments, and their rows."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

from qkv.sheets.reading.forms import closing
from qkv.sheets.reading.relations import CHARACTERS, COMMANDS

MAX_SPANS = 4000
MAX_SPAN = 8000  # characters
MAX_ROWS = 80

ENVIRONMENTS = (
    "equation", "align", "alignat", "gather", "multline", "eqnarray", "flalign", "displaymath", "math", "aligned",
    "gathered", "split",
)  # fmt: skip
_NAMES = "|".join(ENVIRONMENTS)
_OPEN = re.compile(
    rf"\\begin\{{(?P<env>(?:{_NAMES})\*?)\}}(?:\{{\d+\}})?|(?P<display>\\\[)|(?P<inline>\\\()|(?P<dollars>(?<!\\)\$\$?)"
    r"|\\(?P<wrapper>[A-Za-z]{3,12})\{(?=[^{}$]*(?:\{[^{}$]*\}[^{}$]*)*&\s*(?:=|\\approx|\\to))"
    r"|(?P<fence>^[ \t]*```[ \t]*(?:math|latex|tex)[ \t]*\n)",
    re.M,
)
_PARAGRAPH = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True)
class Span:
    """One stretch of math.

    Attributes:
        start: Where it begins in the text, signs included.
        end: Where it ends.
        inner: Where the math itself begins.
        math: The math itself.
        display: Whether it stands in a line of its own.
    """

    start: int
    end: int
    inner: int
    math: str
    display: bool


def spans(text: str, form: str) -> list[Span]:
    """All math of a text in order; a sign that is never closed opens nothing."""
    breaks = [m.start() for m in _PARAGRAPH.finditer(text)]
    out: list[Span] = []
    index = 0
    while len(out) < MAX_SPANS:
        found = _OPEN.search(text, index)
        if found is None:
            break
        span = _typst(text, found, breaks) if form == "typst" else _span(text, found, breaks)
        if span is None:
            index = found.end()
            continue
        out.append(span)
        index = max(span.end, found.end())
    return out


def _span(text: str, found: re.Match[str], breaks: list[int]) -> Span | None:
    start, inner = found.start(), found.end()
    if found["wrapper"]:  # an author's own command around aligned rows
        end = closing(text, inner - 1)
        math = text[inner:end] if end > 0 else ""
        if not math or len(math) > MAX_SPAN or _PARAGRAPH.search(math) or "$" in math:
            return None
        return Span(start, end + 1, inner, math, True)
    if found["env"]:
        close, display = rf"\end{{{found['env']}}}", True
    elif found["display"]:
        close, display = r"\]", True
    elif found["inline"]:
        close, display = r"\)", False
    elif found["fence"]:
        close, display = "```", True
    else:
        close, display = found["dollars"], found["dollars"] == "$$"
    end = _find(text, close, inner)
    if end < 0 or end - inner > MAX_SPAN:
        return None
    if close in ("$", r"\)"):
        place = bisect_left(breaks, inner)
        if place < len(breaks) and breaks[place] < end:
            return None
    if close == "$" and end == inner:
        return None
    return Span(start, end + len(close), inner, text[inner:end], display)


def _typst(text: str, found: re.Match[str], breaks: list[int]) -> Span | None:
    if not found["dollars"]:
        return None
    inner = found.start() + 1
    end = _find(text, "$", inner)
    if end <= inner or end - inner > MAX_SPAN:
        return None
    math = text[inner:end]
    return Span(found.start(), end + 1, inner, math, math[0].isspace() and math[-1].isspace())


def _find(text: str, close: str, start: int) -> int:
    """The next closing sign that is not escaped."""
    while True:
        end = text.find(close, start)
        if end <= 0 or not close.startswith("$") or text[end - 1] != "\\" or text[end - 2 : end] == "\\\\":
            return end
        start = end + 1


_EQUATIONS = re.compile(
    r"\\begin\{((?:aligned|align|split|gathered|gather|array|alignedat|equation|alignat|pmatrix"
    r"|cases|matrix|rcases)\*?)\}"
    r"(?:\{[lcr|\d ]*\}|\[[a-z]\])?"
)
_RELATION = re.compile(
    rf"[=<>{''.join(CHARACTERS)}]|\\(?:{'|'.join(c for c in COMMANDS if c not in ('in', 'notin'))})(?![A-Za-z])"
)
_CONTINUES = re.compile(r"^(?:\s|&|\\(?:quad|qquad|,|;|!| )|\\(?:implies|Rightarrow|therefore)(?![A-Za-z]))*$")


@dataclass(frozen=True)
class Row:
    """One row of a span: where it begins in the math, and its text."""

    at: int
    text: str


def rows(math: str) -> list[Row]:
    """The rows of a display; a matrix or a list of cases of numbers stays in its row."""
    cells = [cell for row in _rows(math, 0, 0) for cell in _columns(row)]
    return [r for r in cells if r.text.strip()][:MAX_ROWS] or [Row(0, math)]


_CELL = re.compile(r"\\begin\{|\\end\{|\\.|&", re.S)


def _columns(row: Row) -> list[Row]:
    """The equations of a row with several columns: of alignment signs in no environment, every second one parts two."""
    cuts, depth = [], 0
    for found in _CELL.finditer(row.text):
        depth += (found[0] == r"\begin{") - (found[0] == r"\end{")
        if found[0] == "&" and depth == 0:
            cuts.append(found.start())
    edges = [0, *cuts[1::2], len(row.text)]
    cells = [Row(row.at + one, row.text[one:two]) for one, two in pairwise(edges)]
    whole = [cell for cell in cells if re.search(r"[^\s&]\s*&?\s*(?:" + _RELATION.pattern + r")\s*&?\s*\S", cell.text)]
    return cells if len(cells) > 1 and len(whole) == len(cells) else [row]


def _rows(math: str, at: int, depth: int) -> list[Row]:
    found = _EQUATIONS.search(math)
    if depth < 4 and found is not None:
        end = _end(math, found[1], found.end())
        if end >= 0 and _holds_equations(found[1], math[found.end() : end]):
            tail = end + len(rf"\end{{{found[1]}}}")
            head, after = math[: found.start()], math[tail:]
            alone = _CONTINUES.match(re.sub(r"\\left\S|\\begin\{[a-z*]+\}|\\label\{[^}]*\}", "", head))
            if alone is not None or _RELATION.search(head) is None:
                before = [] if not head.strip() or alone is not None else [Row(at, head)]
                inside = _rows(math[found.end() : end], at + found.end(), depth + 1)
                rest = _rows(after, at + tail, depth + 1) if _RELATION.search(after) else []
                return before + inside + rest
    return _split(math, at)


def _holds_equations(name: str, body: str) -> bool:
    """Whether the rows of an environment are equations of their own."""
    if name.rstrip("*") not in ("pmatrix", "cases", "array", "matrix", "rcases"):
        return True
    parts = [p for p in (row.text for row in _split(body, 0)) if p.strip()]
    if name.rstrip("*") == "cases":
        return len(parts) > 1 and all(_RELATION.search(p.split("&")[0]) for p in parts)
    return len(parts) > 1 and all(_RELATION.search(p) for p in parts)


def _end(math: str, name: str, start: int) -> int:
    """Where the environment that was opened before `start` ends."""
    depth = 1
    for found in re.compile(rf"\\(begin|end)\{{{re.escape(name)}\}}").finditer(math, start):
        depth += 1 if found[1] == "begin" else -1
        if depth == 0:
            return found.start()
    return -1


_BREAK = re.compile(r"\\begin\{[A-Za-z*]+\}|\\end\{[A-Za-z*]+\}|\\\\(?:\[[^\]]*\])?|\{|\}|\\[{}]")


def _split(math: str, at: int) -> list[Row]:
    """The math cut at row ends that stand in no inner environment."""
    out: list[Row] = []
    start, depth = 0, 0
    for found in _BREAK.finditer(math):
        token = found[0]
        if token.startswith(r"\begin") or token == "{":
            depth += 1
        elif token.startswith(r"\end") or token == "}":
            depth = max(0, depth - 1)
        elif token.startswith("\\\\") and depth == 0:
            out.append(Row(at + start, math[start : found.start()]))
            start = found.end()
    out.append(Row(at + start, math[start:]))
    return out


def has_relation(math: str) -> bool:
    """Whether a formula states a relation between two sides."""
    return _RELATION.search(math) is not None


_SIGN = re.compile(rf"^(?:[=<>~{''.join(CHARACTERS)}]|>>|<<|>=|<=|-+>|~=|!=|:=|~~|\\(?:{'|'.join(COMMANDS)}))$")
_SIGN_INSIDE = re.compile(rf"[=<>{''.join(CHARACTERS)}]")
_FUNCTION = re.compile(r"^(?:exp|log|ln|softmax|sum|sqrt|Var|Cov|max|min)$")
_MATH_WORD = re.compile(
    r"^[-−(\[{|‖∥⟨]*(?:[A-Za-zα-ωΑ-Ωℓ∑√∞]|[α-ωℓ]{1,2}[A-Za-z]?|[A-Za-z][α-ωℓ]|mu|alpha|beta|gamma|lambda|sigma|delta|eps|epsilon|tau|eta|exp|log|ln|Var|Cov|softmax"
    r"|sum|sqrt|norm)?(?:[_^'ᵀ⊤²³¹⁰-⁹₀-₉ₐᵢⱼₖₙ½¼\d.(){}\[\]|‖∥⟨⟩*/+·⋅−=≈→≫≪≤≥,~ᵃ-ᶻⁿⁱ-].*)?$"
)
_LABEL = re.compile(r"^\(?(?:[a-h]|i{1,3}|iv|v|\d{1,2})[.):]+$|^Q\d$")
_OPERATOR = re.compile(r"^[-+*/·⋅−×()\[\]{}|]+$")
MAX_PLAIN_WORDS = 40


def plain_formulas(text: str) -> list[Span]:
    """Formulas that stand in the words without any sign around them, for sheets that use none."""
    out: list[Span] = []
    start = 0
    for line in text[:100_000].split("\n"):
        words = [(m.start(), m[0]) for m in re.finditer(r"\S+", line)]
        taken = -1
        for place, (_, word) in enumerate(words):
            if place <= taken or not (_SIGN.match(word) or (_SIGN_INSIDE.search(word[1:]) and _is_math(word))):
                continue
            first, last = _extent(words, place, taken)
            begin, end = words[first][0], words[last][0] + len(words[last][1])
            body = line[begin:end].rstrip(".,;:。，；")
            if re.search(r"[A-Za-zα-ωℓ]", body) and len(body) < 300 and len(out) < 400:
                math = body.replace("~=", "≈").replace("=~", "≈").replace("~~", "≈")
                out.append(Span(start + begin, start + begin + len(body), start + begin, math, False))
            taken = last
        start += len(line) + 1
    return out


def _is_math(word: str) -> bool:
    bare = word.strip(".,;:。，；")
    if _FUNCTION.match(bare) or _OPERATOR.match(bare) or _SIGN.match(bare):
        return True
    return bool(bare) and _MATH_WORD.match(bare) is not None


def _extent(words: list[tuple[int, str]], place: int, taken: int) -> tuple[int, int]:
    """The words around a relation that belong to its formula."""
    first = last = place
    while first - 1 > taken and place - first < MAX_PLAIN_WORDS and _is_math(words[first - 1][1]):
        if first <= 3 and _LABEL.match(words[first - 1][1]):
            break
        if re.search(r"[.,;:。，；]$", words[first - 1][1]) or words[first - 1][1] in ("a", "A", "I", "i."):
            break
        first -= 1
    while last + 1 < len(words) and last - place < MAX_PLAIN_WORDS:
        following = words[last + 1][1]
        if words[place][1] in ("≠", "!=", "∉", "∈") and re.fullmatch(r"[a-z],", words[last][1]):
            if re.fullmatch(r"[a-z][.,;:]?", following):  # i ≠ a, b
                last += 1
                continue
            break
        opened = "".join(word for _, word in words[first : last + 1])
        inside = opened.count("(") + opened.count("{") > opened.count(")") + opened.count("}")
        if re.search(r"[.,;:。，；]$", words[last][1]) and not inside:
            break
        if not _is_math(following) or (following in ("a", "A", "I") and not _SIGN.match(words[last][1])):
            break
        last += 1
    return first, last
