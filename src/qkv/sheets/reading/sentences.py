"""The words around a formula: from the beginning of its sentence, and up to its end."""

from __future__ import annotations

import re

from qkv.sheets.reading.spans import Span

MAX_WORDS = 400  # characters on each side

_END = re.compile(
    r"(?<![ .][A-Za-z])(?<!i\.e)(?<!e\.g)(?<!etc)[.!?](?=[)）]?(?:\s|$|\\\\|[\u4e00-\u9fff]))[)）]?|[。！？；]"
    r"|;(?=\s)|\n[ \t]*\n"
    r"|\\(?:item|part|subpart|section|subsection|begin\{(?:itemize|enumerate|answer|solution)\}|ifans)(?![A-Za-z])"
    r"|\n[ \t]*(?:[-*+•>]|\#{1,6}|\d{1,2}[.)])[ \t]|①|②|③"
)
_COMMAND = re.compile(r"\\(?:textbf|textit|emph|text|textrm|underline|mathrm)\s*\{([^{}]*)\}")
_OTHER = re.compile(r"\\(?:newline|noindent|newpage|label\{[^{}]*\}|ref\{[^{}]*\}|\\|[A-Za-z]+\*?)")


def cleaned(words: str) -> str:
    """Words without commands of LaTeX and signs of Markdown, formulas between dollar signs kept."""
    pieces = re.split(r"(\$[^$]*\$)", words)
    out = []
    for piece in pieces:
        if piece.startswith("$"):
            out.append(piece)
            continue
        piece = _COMMAND.sub(r"\1", piece)
        piece = _OTHER.sub(" ", piece)
        out.append(re.sub(r"[*_#{}~`]+", " ", piece))
    return re.sub(r"\s+", " ", "".join(out)).strip()


def around(text: str, spans: list[Span], index: int) -> tuple[str, str]:
    """The words before and after the span with this index, in its sentence."""
    span = spans[index]
    return _before(text, spans, index, span), _after(text, spans, index, span)


def _before(text: str, spans: list[Span], index: int, span: Span) -> str:
    words: list[str] = []
    end, taken = span.start, 0
    for back in range(index, -1, -1):
        start = spans[back - 1].end if back else max(0, end - MAX_WORDS)
        gap = text[max(start, end - MAX_WORDS) : end]
        cuts = list(_END.finditer(gap))
        if cuts:
            words.append(gap[cuts[-1].end() :])
            break
        words.append(gap)
        taken += len(gap)
        if back == 0 or taken > MAX_WORDS:
            break
        other = spans[back - 1]
        if other.math.rstrip().endswith((".", "。")) and other.display:
            break
        words.append(f" ${' '.join(other.math.split())}$ ")
        taken += len(other.math)
        end = other.start
    return cleaned("".join(reversed(words)))


def _after(text: str, spans: list[Span], index: int, span: Span) -> str:
    if span.math.rstrip().endswith((".", "。")):
        return ""
    words: list[str] = []
    start, taken = span.end, 0
    for ahead in range(index + 1, len(spans) + 1):
        end = spans[ahead].start if ahead < len(spans) else len(text)
        gap = text[start : min(end, start + MAX_WORDS)]
        cut = _END.search(gap)
        if cut:
            words.append(gap[: cut.start()])
            break
        words.append(gap)
        taken += len(gap)
        if ahead == len(spans) or taken > MAX_WORDS:
            break
        other = spans[ahead]
        words.append(f" ${' '.join(other.math.split())}$ ")
        taken += len(other.math)
        start = other.end
    return cleaned("".join(words))
