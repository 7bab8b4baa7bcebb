"""Constructions in a sheet: the author's values for the holes of a question."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from qkv.sheets.answers.construction import Construction, names, renamed
from qkv.sheets.answers.regions import Region
from qkv.sheets.answers.tree_text import basis_matrix, claim_text, said, symbol_of
from qkv.sheets.problems.problem import Problem, Question
from qkv.sheets.statements import tree as T

DROPPED = re.compile(
    r"(?:instead of|rather than|not enough|na[iï]ve|if we (?:only|just|simply)|unscaled|would(?: not|n't)|"
    r"(?:do(?:es)?|can)(?: not|n't)|cannot|fails?|wrong|而不是|不能用|如果只)\W*(?:[\w'-]+\W+){0,4}$|\bnot\W*$|"
    r"不是\W*$",
    re.I,
)
SCALED_IN_WORDS = re.compile(
    r"\b(?:multipl\w+|scal\w+|times)\b[^.。;]{0,30}\b(?:large|big|huge)\b|\b(?:large|big|"
    r"huge)\b[^.。;]{0,20}\b(?:multiple|factor|scalar)\b|"
    r"(?:乘|放大)[^.。;]{0,12}大",
    re.I,
)
"""A scale that is said beside a construction and not written in it."""
SIMILARLY = re.compile(r"similar|likewise|analogous|respectively|vice versa|same for|同理|类似|同样", re.I)
AS_BEFORE = re.compile(
    r"\b(?:same|identical)\b.{0,40}\b(?:query|answer|expression|as|construction)\b|\bas (?:before|above|"
    r"in (?:part|question))\b|同上|与.{0,12}相同",
    re.I | re.S,
)
IDENTITIES = ("I", "E", "1")
MATRICES = ("V", "K", "Q", "M")


@dataclass(frozen=True)
class _Value:
    hole: str
    text: str
    line: int
    written: str


def find_constructions(question: Question, region: Region, problem: Problem) -> list[Construction]:
    """The constructions of a region in reading order, the last one last; those marked as dropped are left out.

    Args:
        question: A question of the kind "construction".
        region: What the sheet says on its part.
        problem: The problem, for the letters that usually stand for the query.
    """
    known = _matrix_letters(region)
    matrices = question.holes[0].partition("_")[0] in MATRICES
    groups: list[dict[str, _Value]] = []
    current: dict[str, _Value] = {}
    last: list[_Value] = []
    for one in said(list(region.formulas)):
        if last and isinstance(one.clause.sides[0], T.Missing) and one.clause.signs[0] == "=":
            text = _value(question, one.clause.sides[1:], known, problem)
            if text is not None:  # a further row of the same equation
                last = [replace(v, text=text) for v in last]
                current.update({v.hole: v for v in last})
            continue
        heads = _heads(question, one.clause, problem)
        if not heads:
            last = []
            continue
        text = _value(question, one.clause.sides[len(heads) :], known, problem)
        if text is None and len(heads) == 1 and heads[0] in current:
            text = _rescaled(one.clause.sides[-1], current[heads[0]], problem)
        if text is None or DROPPED.search(one.formula.before[-80:]):
            last = []
            continue
        if one.clause.signs[len(heads) - 1] == "prop" or (
            not matrices and not _has_letters(text, problem) and SCALED_IN_WORDS.search(one.formula.after[:100])
        ):
            text = f"t*({text})"
        last = [_Value(hole, text, one.formula.line, one.formula.source) for hole in heads]
        if all(hole in current for hole in question.holes) and any(v.hole in current for v in last):
            groups.append(current)
            current = {}
        current.update({v.hole: v for v in last})
    if current:  # what a restatement leaves out is as before
        groups.append({**groups[-1], **current} if groups else current)
    found = [_construction(question, group) for group in groups]
    return [one for one in (_completed(question, c, region) for c in found) if one is not None]


def says_as_before(region: Region) -> bool:
    """Whether the words say that the construction is an earlier one."""
    return bool(AS_BEFORE.search(region.words))


def says_scaled(region: Region) -> bool:
    """Whether the words speak of a large multiple."""
    return bool(SCALED_IN_WORDS.search(region.words))


def says_rows(region: Region) -> bool:
    """Whether the words speak of rows."""
    return bool(re.search(r"\brows?\b|行向量|每一?行", region.words, re.I))


def transposed_basis(found: Construction) -> Construction | None:
    """The construction with A for A' and A' for A, if it uses the matrix of the basis; else None."""
    if not any(base == "A" for _, value in found.values for base, _ in names(value)):
        return None
    values = []
    for hole, value in found.values:
        marked = re.sub(r"\bA'", "\x00", value)
        values.append((hole, re.sub(r"\bA\b", "A'", marked).replace("\x00", "A")))
    return replace(found, values=tuple(values))


def _construction(question: Question, current: dict[str, _Value]) -> Construction:
    values = [current[hole] for hole in question.holes if hole in current]
    written = ", ".join(dict.fromkeys(v.written for v in values))
    line = min(v.line for v in values)
    return Construction(tuple((v.hole, v.text) for v in values), line, written)


def _rescaled(side: T.Node, before: _Value, problem: Problem) -> str | None:
    """t q for a query that was defined before: its value times t."""
    text = claim_text(side)
    queries = problem.letters_for("query") or ("q",)
    if text is None or "'" in text or not any(base in queries and not index for base, index in names(text)):
        return None
    return renamed(text, lambda base, index: f"({before.text})" if base in queries and not index else None)


def _completed(question: Question, found: Construction, region: Region) -> Construction | None:
    """A construction with all its holes; K is the identity if it is not mentioned, q_2 may be like q_1."""
    have = dict(found.values)
    missing = [hole for hole in question.holes if hole not in have]
    if not missing:
        return found
    if "K" in question.holes and "Q" in have and "V" in have and missing == ["K"]:
        return replace(found, values=(*found.values, ("K", "I")))
    if "Q" in missing and "K" in have and "V" in have and have["K"] != "I":
        return replace(found, values=(*found.values, ("Q", "I")))
    if len(missing) == 1 and question.holes == ("q_1", "q_2") and SIMILARLY.search(region.words):
        (have_hole,) = have
        swap = {"a": "b", "b": "a"}
        text = renamed(have[have_hole], lambda base, index: f"{base}_{swap[index]}" if index in swap else None)
        values = {have_hole: have[have_hole], missing[0]: text}
        return replace(found, values=tuple((hole, values[hole]) for hole in question.holes))
    return None


def _heads(question: Question, clause: T.Clause, problem: Problem) -> list[str]:
    """The holes with which a chain begins, as in q_1 = q_2 = …"""
    out: list[str] = []
    for side, sign in zip(clause.sides, clause.signs, strict=False):
        hole = hole_of(question.holes, side, problem)
        if hole is None or sign not in ("=", "~", "prop"):
            break
        out.append(hole)
    return out


def hole_of(holes: Iterable[str], side: T.Node, problem: Problem) -> str | None:
    """The hole that a side names, or None."""
    symbol = symbol_of(side.inner if isinstance(side, T.Transposed) else side)
    if symbol is None:
        return None
    base, index = symbol.base.rstrip("'*"), tuple(i for i in symbol.index if i)
    queries = problem.letters_for("query") or ("q",)
    for hole in holes:
        letter, _, number = hole.partition("_")
        if letter in MATRICES:
            if (base == letter and not index) or (base == "W" and index in ((letter,), (letter.lower(),))):
                return hole
        elif letter == "q":
            if base not in queries:
                continue
            if not number and index not in (("1",), ("2",), ("i",), ("j",), ("3",)):
                return hole
            if number and index and index[0] in (number, {"1": "a", "2": "b"}.get(number, "")) and len(index) == 1:
                return hole
        elif base == letter and "".join(index) == number:
            return hole
    return None


def _value(question: Question, sides: Iterable[T.Node], known: dict[str, str], problem: Problem) -> str | None:
    """The last side that is an expression in the vectors of the problem."""
    matrix = question.holes[0].partition("_")[0] in MATRICES
    best: str | None = None
    for side in sides:
        symbol = symbol_of(side)
        if matrix and symbol is not None and not symbol.index and symbol.base in IDENTITIES:
            best = "I"
            continue
        if matrix and isinstance(side, T.Number) and side.text == "1":
            best = "I"
            continue
        text = claim_text(side, known)
        if text is not None and not matrix and re.fullmatch(r".*\w\)?'", text):  # a query that is written as a row
            text = text.replace("'", "")
        if text is None or not _has_vectors(text, matrix, question, problem):
            continue
        best = text
    return best


def _has_letters(text: str, problem: Problem) -> bool:
    """Whether an expression has a letter that is no vector of the problem."""
    vectors = {*problem.letters_for("key"), *problem.letters_for("mean")}
    return any(not (base in vectors and index) for base, index in names(text))


def _has_vectors(text: str, matrix: bool, question: Question, problem: Problem) -> bool:
    """Whether an expression is built of vectors of the problem, and of no value that is yet to be found."""
    found = names(text)
    vectors = {*problem.letters_for("key"), *problem.letters_for("mean"), "k", "mu", "u", "a"}
    if matrix:
        bases = {base for base, _ in found}
        if bases & {"M", "V", "K", "Q", "W", "x", "X", "c", "s"} or any(base == "v" for base in bases):
            return False
        return bool(bases & {"A", "I"}) or any(base in vectors and index for base, index in found)
    if any(base in ("v", "q", "alpha", "c") and index for base, index in found):
        return False
    return any(base in vectors and index for base, index in found) and "'" not in text


def _matrix_letters(region: Region) -> dict[str, str]:
    """Letters that the author defines as the matrix of the basis, or as its transpose."""
    found: dict[str, str] = {}
    for one in said(list(region.formulas)):
        head = symbol_of(one.clause.sides[0])
        if head is None or head.index or one.clause.signs[0] != "=" or head.base == "M":
            continue
        for side in one.clause.sides[1:]:
            inner = side.inner if isinstance(side, T.Transposed) else side
            if isinstance(inner, T.Matrix) and basis_matrix(inner):
                text = basis_matrix(inner)
                if isinstance(side, T.Transposed):
                    text = text[:-1] if text.endswith("'") else text + "'"
                found[head.base] = text
    return found
