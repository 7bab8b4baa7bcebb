"""Which edition of a problem a sheet answers, and which of its parts a label means."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from qkv.sheets.problems.problem import Part, Problem

ASKED_PART = 2.0  # for a part of the sheet in which the edition asks something
KNOWN_PART = 0.5  # for a part that only holds others
UNKNOWN_PART = -2.0
SIGN = 1.5  # for each set of words that only this edition has
MANY_WORDS = 7  # a set of so many words may lack one and still tell the problem's own text
ANY_QUESTION = "*."
"""Before a label in `also`: the part under any number of a further question, as in "*.a.i" for "2.a.i"."""


def detect_edition(parts: Iterable[str], text: str, candidates: Sequence[Problem]) -> Problem:
    """The edition that fits best to the parts and the words of a sheet; the first of those that fit equally well.

    Args:
        parts: The labels of the parts of the sheet, such as "a.i" or "2.b".
        text: The text of the sheet.
        candidates: The editions, such as those of `editions("attention")`; at least one.

    Example:
        >>> from qkv.sheets.problems import detect_edition, editions
        >>> detect_edition(["a", "b", "c.i"], "", editions("attention")).id
        'attention-2021'
        >>> detect_edition(["a.i", "a.ii", "a.iii", "b.i", "b.ii"], "", editions("attention")).id
        'attention-2022'
    """
    return max(candidates, key=_fits(parts, text))


def best_fit(parts: Iterable[str], text: str, candidates: Sequence[Problem]) -> float:
    """How well the best edition fits to the parts and the words of a sheet."""
    return max(map(_fits(parts, text), candidates))


def _fits(parts: Iterable[str], text: str) -> Callable[[Problem], float]:
    found, low = list(parts), _flat(text)
    words = set(low.split())
    return lambda problem: _fit(problem, found, low, words)


def _fit(problem: Problem, parts: Sequence[str], text: str, words: set[str]) -> float:
    score = 0.0
    for label in parts:
        part = part_named(problem, label)
        if part is None:
            further = re.match(r"\d", label) is not None  # another question of the same hand-in
            score += 0 if further else UNKNOWN_PART
        else:
            score += ASKED_PART if part.questions else KNOWN_PART
    for sign in problem.signs:
        score += SIGN * all(word in words or (len(word) > 4 and word in text) for word in sign)
    return score


def part_named(problem: Problem, label: str) -> Part | None:
    """The part that a label of a sheet means, by its id or another way to number it; None if there is none."""
    label = label.strip().lower()
    for part in problem.parts:
        if label == part.id or label in part.also:
            return part
    for part in problem.parts:
        for other in part.also:
            if other.startswith(ANY_QUESTION) and re.fullmatch(rf"\d+\.{re.escape(other[2:])}", label):
                return part
    return None


def part_holding(problem: Problem, label: str) -> Part | None:
    """The part that a label means, or else the part above it in which something is asked: b for b.i."""
    found = part_named(problem, label)
    if found is not None or "." not in label:
        return found
    above = part_named(problem, label.rpartition(".")[0])
    return above if above is not None and above.questions else None


def is_own_text(problem: Problem, paragraph: str) -> bool:
    """Whether a paragraph is the problem's own text: almost all words of one of its sets occur in it."""
    words = set(_flat(paragraph).split())
    return any(_nearly_all(words, sought) for sought in problem.own_text())


def _nearly_all(words: set[str], sought: tuple[str, ...]) -> bool:
    missing = sum(word not in words and f"{word}s" not in words for word in sought)
    return missing <= (len(sought) >= MANY_WORDS)


def _flat(text: str) -> str:
    """Lower case, LaTeX signs and punctuation as spaces; hyphens, ^ and _ stay."""
    return re.sub(r"[^\w^'\-\u4e00-\u9fff]+", " ", text.lower().replace("\\", " ").replace("{", "").replace("}", ""))
