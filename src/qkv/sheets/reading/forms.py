"""The form of a sheet (LaTeX, Markdown, Typst, notebook, plain text), its comments and its author's macros."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

MAX_CHARACTERS = 400_000
MAX_MACROS = 300
MAX_EXPANSIONS = 400
MAX_EXPANDED = 20_000  # characters of one formula with its macros put in

ENDINGS = {
    "tex": "latex", "latex": "latex", "md": "markdown", "markdown": "markdown", "typ": "typst", "ipynb": "notebook",
    "txt": "", "html": "markdown", "htm": "markdown", "rmd": "markdown", "qmd": "markdown",
}  # fmt: skip


@dataclass(frozen=True)
class Macro:
    """An author's macro: its number of arguments and what it stands for, with #1, #2 for them."""

    arguments: int
    body: str


@dataclass(frozen=True)
class Document:
    """A sheet as one text: positions in `text` give lines of the file through `lines`.

    Attributes:
        form: The form of the sheet.
        text: The text with comments and code blanked out; a notebook's Markdown cells.
        lines: The line of the file for each line of `text`.
        macros: The author's macros by name.
        starts: Where each line of `text` begins.
        cut: Whether the sheet was longer than what is read.
    """

    form: str
    text: str
    lines: tuple[int, ...]
    macros: dict[str, Macro]
    starts: tuple[int, ...]
    cut: bool


def read_document(text: str, file: str) -> Document:
    """The document behind a file's text."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", " ")
    cut = len(text) > MAX_CHARACTERS
    text = text[:MAX_CHARACTERS]
    form = form_of(text, file)
    lines = tuple(range(1, text.count("\n") + 2))
    if form == "notebook":
        text, lines = _notebook(text)
    macros: dict[str, Macro] = {}
    if form == "latex":
        text = _blank(text, _LATEX_COMMENT)
        macros = _macros(text)
        text = _blank(text, _VERBATIM)
    elif form == "typst":
        text = _blank(text, _TYPST_COMMENT)
    else:
        text = _blank(text, _HTML_COMMENT)
        text = _blank(text, _CODE_FENCE)
        macros = _macros(text)
    starts = (0, *(m.end() for m in re.finditer("\n", text)))
    return Document(form, text, lines, macros, starts, cut)


def form_of(text: str, file: str) -> str:
    """The form of a sheet, by the ending of its name or by what it looks like."""
    known = ENDINGS.get(file.rsplit(".", 1)[-1].lower(), "") if "." in file else ""
    if known == "notebook" and text.lstrip()[:1] != "{":
        known = ""
    if known:
        return known
    if text.lstrip()[:1] == "{" and '"cells"' in text:
        return "notebook"
    if re.search(r"\\(?:documentclass|begin\{(?:document|parts|enumerate|answer|align)|item\b|section\b)", text):
        return "latex" if not re.search(r"(?m)^#{1,4} ", text) else "markdown"
    if re.search(r"(?m)^#(?:import|set|show|let)\b", text):
        return "typst"
    if re.search(r"(?m)^#{1,6} |^```|\*\*", text):
        return "markdown"
    return "text"


_LATEX_COMMENT = re.compile(r"(?<!\\)%[^\n]*")
_TYPST_COMMENT = re.compile(r"(?<![:\\])//[^\n]*|/\*.*?\*/", re.S)
_HTML_COMMENT = re.compile(r"<!--.*?-->", re.S)
_CODE_FENCE = re.compile(r"(?ms)^[ \t]*(```|~~~)(?!\s*(?:math|latex|tex)\b)[^\n]*\n.*?^[ \t]*\1[ \t]*$")
_VERBATIM = re.compile(r"\\begin\{(verbatim|lstlisting|minted|tikzpicture)\}.*?\\end\{\1\}", re.S)


def _blank(text: str, pattern: re.Pattern[str]) -> str:
    """The text with every match turned to spaces, so that positions and lines stay."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def _notebook(text: str) -> tuple[str, tuple[int, ...]]:
    """The Markdown cells of a notebook, each line with its line in the file."""
    try:
        cells = json.loads(text).get("cells", [])
    except (ValueError, AttributeError, RecursionError):
        return text, tuple(range(1, text.count("\n") + 2))
    raw = text.split("\n")
    out: list[str] = []
    lines: list[int] = []
    at = 0
    for cell in cells if isinstance(cells, list) else []:
        if not isinstance(cell, dict) or cell.get("cell_type") not in ("markdown", "raw"):
            continue
        source = cell.get("source", "")
        joined = "".join(s for s in source if isinstance(s, str)) if isinstance(source, list) else str(source)
        for line in joined.split("\n"):
            quoted = json.dumps(line, ensure_ascii=False)[1:-1]
            escaped = json.dumps(line)[1:-1]
            if line.strip():
                at = next((j for j in range(at, len(raw)) if quoted in raw[j] or escaped in raw[j]), at)
            out.append(line)
            lines.append(at + 1)
        out.append("")
        lines.append(at + 1)
    return "\n".join(out), tuple(lines) or (1,)


_COMMAND = re.compile(
    r"\\(?:re)?(?:new|provide)command\*?\s*\{?\s*\\([A-Za-z]+)\s*\}?\s*(?:\[(\d)\])?\s*(?:\[[^\]]*\])?\s*(?=\{)"
    r"|\\def\s*\\([A-Za-z]+)\s*((?:#\d)*)\s*(?=\{)"
    r"|\\DeclareMathOperator\*?\s*\{?\s*\\([A-Za-z]+)\s*\}?\s*(?=\{)"
)


def _macros(text: str) -> dict[str, Macro]:
    """The macros that the author defines."""
    found: dict[str, Macro] = {}
    for match in _COMMAND.finditer(text):
        end = closing(text, match.end())
        if end < 0 or len(found) >= MAX_MACROS:
            continue
        body = text[match.end() + 1 : end]
        if match[1]:
            found[match[1]] = Macro(int(match[2] or 0), body)
        elif match[3]:
            found[match[3]] = Macro(match[4].count("#"), body)
        else:
            found[match[5]] = Macro(0, rf"\operatorname{{{body}}}")
    for name in ("ifans", "part", "subpart", "item", "begin", "end", "frac", "text", "left", "right", "mathbf"):
        found.pop(name, None)
    return found


def closing(text: str, start: int, limit: int = 20_000) -> int:
    """The place of the brace that closes the one at `start`, or -1."""
    depth = 0
    index = start
    stop = min(len(text), start + limit)
    while index < stop:
        char = text[index]
        if char == "\\":
            index += 2
            continue
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return index
        index += 1
    return -1


_CALL = re.compile(r"\\([A-Za-z]+)")


def expanded(math: str, macros: dict[str, Macro]) -> str:
    """A formula with the author's macros put in."""
    if not macros:
        return math
    done, index = 0, 0
    while done < MAX_EXPANSIONS:
        found = _CALL.search(math, index)
        if found is None:
            break
        macro = macros.get(found[1])
        if macro is None:
            index = found.end()
            continue
        at, given = found.end(), []
        for _ in range(macro.arguments):
            while at < len(math) and math[at] in " \t\n":
                at += 1
            if at < len(math) and math[at] == "{":
                end = closing(math, at)
                if end < 0:
                    break
                given.append(math[at + 1 : end])
                at = end + 1
            elif at < len(math):
                given.append(math[at])
                at += 1
        body = macro.body
        for number, value in enumerate(given, 1):
            body = body.replace(f"#{number}", value)
        gap = " " if body[-1:].isalpha() and math[at : at + 1].isalpha() else ""
        lead = " " if body[:1].isalpha() and re.search(r"\\[A-Za-z]+$", math[: found.start()]) else ""  # \approx\dotp
        math = math[: found.start()] + lead + body + gap + math[at:]
        index = found.start()
        done += 1
        if len(math) > MAX_EXPANDED:
            return math[:MAX_EXPANDED]
    return math
