"""Frames of questions: what remains of a question without the name that it asks about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

PLACE = "…"
"""Stands for the name in a frame: Where was … born?"""
MAX_NAME_WORDS = 10
MIN_NAMES_PER_FRAME = 5  # different names that the questions of a frame without known titles must have
_WORD = re.compile(r"[^\s?!]+?(?=['’]s\b|[.,;:]*[?!\s]|[.,;:]*$)|['’]s\b|[?!.,;:]+")


def match_frame(question: str, frames: Iterable[str]) -> tuple[int, int] | None:
    """Character positions [first, last) of the name in a question of one of the frames; the longest frame wins."""
    frame = frame_of(question, frames)
    if frame is None:
        return None
    before, _, after = frame.partition(PLACE)
    return len(before), len(question) - len(after)


def frame_of(question: str, frames: Iterable[str]) -> str | None:
    """The frame that a question has, the longest of several; None if it has none of them."""
    for frame in sorted(frames, key=len, reverse=True):
        before, place, after = frame.partition(PLACE)
        last = len(question) - len(after)
        name = question[len(before) : last]
        fits = place and name and question.startswith(before) and question.endswith(after)
        if fits and len(before) < last and name == " ".join(name.split()):  # a name has no spaces around it
            return frame
    return None


def common_frames(questions: Sequence[str]) -> list[str]:
    """Frames that many questions share: the same words around a name that differs.

    Of all ways to take a run of words of a question for the name, the frame is the one that maximises (number of
    different names in it) times (number of its words).
    """
    names: dict[tuple[str, str], set[str]] = {}
    ways: list[list[tuple[str, str]]] = []
    for question in dict.fromkeys(questions):
        words = [(m.start(), m.end()) for m in _WORD.finditer(question)]
        own = []
        for i in range(len(words)):
            for j in range(i + 1, min(len(words), i + MAX_NAME_WORDS) + 1):
                first, last = words[i][0], words[j - 1][1]
                frame = question[:first], question[last:]
                if any(c.isalnum() for c in frame[0] + frame[1]):
                    names.setdefault(frame, set()).add(question[first:last])
                    own.append(frame)
        ways.append(own)
    chosen: Counter[tuple[str, str]] = Counter()
    for own in ways:
        if own:
            chosen[max(own, key=lambda frame: len(names[frame]) * len((frame[0] + frame[1]).split()))] += 1
    return [before + PLACE + after for before, after in chosen if len(names[before, after]) >= MIN_NAMES_PER_FRAME]
