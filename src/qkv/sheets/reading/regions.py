"""Which stretches of a sheet are answers and which the problem's own text around them."""

from __future__ import annotations

import re
from itertools import pairwise

from qkv.sheets.reading.forms import closing

_MACROS = "ifans|answer|ans|sol|soln|solution|alns|mysolution|response|myanswer|studentanswer"
_ENVS = "answer|answers|solution|solutions|sol|soln|ans|response|solutionorbox|solutionbox|answerbox|alns"
_LATEX_MACRO = re.compile(rf"\\(?:{_MACROS})(?![A-Za-z])\s*(?:\[[^\]]*\])?\s*(\{{)?")
_LATEX_ENV = re.compile(rf"\\begin\{{({_ENVS})\*?\}}")
_LATEX_STOP = re.compile(
    r"\\(?:part|subpart|subsubpart|titledquestion|question)(?![A-Za-z])|\\end\{(?:parts|subparts|questions|document)\}"
    r"|\\(?:sub)*section\b"
)
_TYPST_MARK = re.compile(r"^([ \t]*)#(?:answer|solution|proof|ans|sol)\b", re.M)
_TYPST_STOP = re.compile(r"^([ \t]*)(?:\+|\d+\.|=+)[ \t]", re.M)
_WORDS_MARK = re.compile(
    r"^[ \t]*(?:[-*>][ \t]+|#{1,6}[ \t]*)?(?:\*\*|__|\*|_)?[ \t]*"
    r"(?:(?:My )?Answers?|Ans|Solutions?|Sol|Response|(?-i:A)(?=[:：*_])|答案|解答|答|解|"
    r"Antwort|Lösung|Réponse|Respuesta)"
    r"(?:\*\*|__|\*|_)?(?:[ \t]*[:：.]|(?:\*\*|__)?[ \t]*$)(?:\*\*|__)?",
    re.M | re.I,
)
MIN_MARKS = 2


def answer_regions(text: str, form: str, stops: list[int]) -> list[tuple[int, int]]:
    """The stretches between answer marks, empty if the sheet has no such marks.

    Args:
        text: The text of the sheet.
        form: Its form.
        stops: Where a part begins, which ends an answer that has no end of its own.
    """
    if form == "latex":
        found = _latex(text)
    elif form == "typst":
        found = _typst(text)
    else:
        found = _words(text, stops)
        found += _latex(text) if "\\begin{" in text else []
    found.sort()
    covered = sum(end - start for start, end in found)
    return found if len(found) >= MIN_MARKS or covered > 0.3 * len(text) else []


def _latex(text: str) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    body = text.find(r"\begin{document}")
    for match in _LATEX_ENV.finditer(text):
        end = text.find(rf"\end{{{match[1]}", match.end())
        out.append((match.end(), end if end >= 0 else len(text)))
    for match in _LATEX_MACRO.finditer(text):
        if match.start() < body or text[max(0, match.start() - 14) : match.start()].rstrip(" {").endswith("command"):
            continue
        if any(start <= match.start() < end for start, end in out):
            continue
        end = closing(text, match.start(1), 60_000) if match[1] else -1
        if end > match.end() and text[match.end() : end].strip():
            out.append((match.end(), end))
        else:  # an empty mark, or none that closes: up to the next part
            begin = max(match.end(), end + 1)
            stop = _LATEX_STOP.search(text, begin)
            out.append((begin, stop.start() if stop else len(text)))
    return out


def _typst(text: str) -> list[tuple[int, int]]:
    out = []
    for match in _TYPST_MARK.finditer(text):
        end = len(text)
        for stop in _TYPST_STOP.finditer(text, match.end()):
            if len(stop[1]) <= len(match[1]):
                end = stop.start()
                break
        out.append((match.end(), end))
    return out


def _words(text: str, stops: list[int]) -> list[tuple[int, int]]:
    """From each mark to the next part; where most parts have no mark, a part without one is an answer as a whole."""
    out = []
    for match in _WORDS_MARK.finditer(text):
        end = next((stop for stop in stops if stop > match.end()), len(text))
        out.append((match.end(), end))
    parts = [(start, end) for start, end in pairwise([*stops, len(text)]) if text[start:end].strip()]
    unmarked = [(start, end) for start, end in parts[1:] if not any(start <= one < end for one, _ in out)]
    if out and len(unmarked) > len(parts) / 2:
        out += unmarked
    return out
