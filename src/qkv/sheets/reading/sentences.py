"""The words around a formula: from the beginning of its sentence, up to its end, and the sentence before."""

from __future__ import annotations

import itertools
import re

from qkv.sheets.reading.spans import Span

MAX_WORDS = 400  # characters on each side
MAX_NEAR = 60  # formulas that are looked at for the sentence before

_END = re.compile(
    r"(?<![ .][A-Za-z])(?<!i\.e)(?<!e\.g)(?<!etc)[.!?](?=[)）]?(?:\s|$|\\\\|[\u4e00-\u9fff]))[)）]?|[。！？；]"
    r"|;(?=\s)|\n[ \t]*\n"
    r"|\\(?:item|part|subpart|section|subsection|begin\{(?:itemize|enumerate|answer|solution)\}|ifans)(?![A-Za-z])"
    r"|\n[ \t]*(?:[-*+•>]|\#{1,6}|\d{1,2}[.)])[ \t]|①|②|③"
)
_COMMAND = re.compile(r"\\(?:textbf|textit|emph|text|textrm|underline|mathrm)\s*\{([^{}]*)\}")
_FRAME = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}(?:\[[^\[\]]*\])?|\\item\s*\[[^\[\]]*\]")
_OTHER = re.compile(r"\\(?:newline|noindent|newpage|label\{[^{}]*\}|ref\{[^{}]*\}|\\|[A-Za-z]+\*?)")


def cleaned(words: str) -> str:
    """Words without commands of LaTeX and signs of Markdown, formulas between dollar signs kept."""
    pieces = re.split(r"(\$[^$]*\$)", words)
    out = []
    for piece in pieces:
        if piece.startswith("$"):
            out.append(piece)
            continue
        piece = _COMMAND.sub(r"\1", _FRAME.sub(" ", piece))
        piece = _OTHER.sub(" ", piece)
        out.append(re.sub(r"[*_#{}~`]+", " ", piece))
    return re.sub(r"\s+", " ", "".join(out)).strip()


def split_sentences(words: str) -> list[str]:
    """Cleaned words as sentences, which do not end inside math.

    Example:
        >>> split_sentences("Take $q = 1. k_a$ here. It is long.")
        ['Take $q = 1. k_a$ here', ' It is long']
    """
    blank = re.sub(r"\$[^$]*\$", lambda math: "\x00" * len(math[0]), words)
    cuts = [(0, 0), *((cut.start(), cut.end()) for cut in _END.finditer(blank)), (len(words), len(words))]
    pieces = [words[one[1] : other[0]] for one, other in itertools.pairwise(cuts)]
    return [piece for piece in pieces if piece.strip()]


def around(text: str, spans: list[Span], index: int) -> tuple[str, str]:
    """The words before and after the span with this index, in its sentence."""
    span = spans[index]
    return _before(text, spans, index, span), _after(text, spans, index, span)


def previous(text: str, spans: list[Span], index: int) -> str:
    """The sentence before the one in which the span with this index stands; empty if there is none near it."""
    end = spans[index].start
    low = max(0, end - 2 * MAX_WORDS)
    blank = list(text[low:end])
    near = [span for span in spans[max(0, index - MAX_NEAR) : index] if span.start >= low]
    for span in near:  # a sentence does not end inside math, but may end with a display
        length = span.end - span.start
        ends = span.display and span.math.rstrip().endswith((".", "。"))
        blank[span.start - low : span.end - low] = "\x00" * (length - 1) + ("." if ends else "\x00")
    cuts = list(_END.finditer("".join(blank)))
    for place in range(len(cuts) - 1, -1, -1):
        first, last = low + (cuts[place - 1].end() if place else 0), low + cuts[place].start()
        words = cleaned(_with_math(text, near, first, last))
        if re.search(r"\w", words):
            return words
    return ""


def following(text: str, spans: list[Span], index: int) -> str:
    """The sentence after the one in which the span with this index stands; empty if there is none near it."""
    start = spans[index].end
    high = min(len(text), start + 2 * MAX_WORDS)
    blank = list(text[start:high])
    near = [span for span in spans[index + 1 : index + 1 + MAX_NEAR] if span.end <= high]
    for span in near:  # as in previous
        length = span.end - span.start
        ends = span.display and span.math.rstrip().endswith((".", "。"))
        blank[span.start - start : span.end - start] = "\x00" * (length - 1) + ("." if ends else "\x00")
    cuts = [start + cut.end() for cut in _END.finditer("".join(blank))]
    if spans[index].math.rstrip().endswith((".", "。")):
        cuts = [start, *cuts]
    for place, first in enumerate(cuts):
        words = cleaned(_with_math(text, near, first, cuts[place + 1] if place + 1 < len(cuts) else high))
        if re.search(r"\w", words):
            return words
    return ""


def _with_math(text: str, near: list[Span], first: int, last: int) -> str:
    """The text between two places, math between dollar signs."""
    out, at = "", first
    for span in near:
        if first <= span.start and span.end <= last + 1:
            out += f"{text[at : span.start]} ${' '.join(span.math.split())}$ "
            at = span.end
    return out + text[at:last]


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
