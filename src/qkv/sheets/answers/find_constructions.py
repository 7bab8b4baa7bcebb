"""Constructions in a sheet: the author's values for the holes of a question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from qkv.sheets.answers.construction import Construction, joined, names, renamed
from qkv.sheets.answers.counterexamples import weighted_sum
from qkv.sheets.answers.letters import SIZES
from qkv.sheets.answers.regions import Region
from qkv.sheets.answers.tree_text import Said, basis_matrix, claim_text, clauses, said, symbol_of
from qkv.sheets.problems.problem import Problem, Question
from qkv.sheets.reading.scale_words import scale_in_words
from qkv.sheets.reading.sentences import split_sentences
from qkv.sheets.reading.sheet import Formula
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.parser import Unreadable, expression

DROPPED = re.compile(
    r"(?:instead of|rather than|not enough|na[iï]ve|if we (?:only|just|simply)|unscaled|would(?: not|n't)|"
    r"(?:do(?:es)?|can)(?: not|n't)|cannot|fails?|wrong|whereas|而不是|不能用|如果只)\W*(?:[\w'-]+\W+){0,4}$|\bnot\W*$|"
    r"不是\W*$",
    re.I,
)
DROPPED_AFTER = re.compile(
    r"^[\s,]*(?:alone\s+|only\s+|itself\s+)?(?:would (?:not|only|give|be too|fail)|wouldn't|is (?:not|too)|isn't|"
    r"does(?: not|n't)|do(?: not|n't)|fails?\b|cannot|can't|不够|不行|是不够)",
    re.I,
)
SIMILARLY = re.compile(r"similar|likewise|analogous|respectively|vice versa|same for|同理|类似|同样", re.I)
AS_BEFORE = re.compile(
    r"\b(?:same|identical)\b.{0,40}\b(?:query|answer|expression|as|construction)\b|\bas (?:before|above|"
    r"in (?:part|question))\b|同上|与.{0,12}相同",
    re.I | re.S,
)
PUT_IN_WORDS = re.compile(
    r"\$(?P<hole>[^$]*)\$[^$.。;；]{0,25}?(?:\b(?:to be|be|as|is|equal to|equals|:)|取为|设为|等于|为|取)\W*"
    r"(?:(?:the|a|simply|just|vector|query|sum|e\.g\.)\W+){0,3}$|"
    r"(?<![\w$])(?P<bare>[qMVKQ](?:_\{?[12]\}?)?)\s*:?=\s*$|"
    r"\b(?:query|choice|answer|solution)\b(?:\W+vector)?[^$.。;；]{0,30}?(?:\b(?:is|be|as)\b|:)\s*$",
    re.I,
)
"""Words that put the formula after them in the place of a hole: "take $q$ to be", "a suitable query is"."""
DIRECTION = re.compile(r"\b(?:direction|parallel|angle|orthogonal|perpendicular|projection)\b|方向|平行", re.I)
BOTH_ITEMS = re.compile(r"(?:\\in|∈|\bin\b)\s*\$?\s*\\?\{\s*a\s*,\s*b|=\s*a\s*,\s*b|\ba\W{0,3}(?:and|,|or)\W{0,3}b\b")
IDENTITIES = ("I", "E", "1")
MATRICES = ("V", "K", "Q", "M")


@dataclass(frozen=True)
class _Value:
    hole: str
    text: str
    line: int
    written: str
    supposed: str = ""


def find_constructions(
    question: Question, region: Region, problem: Problem, values: bool = False
) -> list[Construction]:
    """The constructions of a region in reading order, the last one last; those marked as dropped are left out.

    Args:
        question: A question of the kind "construction".
        region: What the sheet says on its part.
        problem: The problem, for the letters that usually stand for the query.
        values: Whether queries may be built of values too, which are arbitrary.
    """
    known = _matrix_letters(region)
    if question.holes[0].partition("_")[0] not in MATRICES:
        known = _vector_letters(question, region, problem)
    other = _other_matrices(question, region, known)
    matrices = question.holes[0].partition("_")[0] in MATRICES
    groups: list[dict[str, _Value]] = []
    current: dict[str, _Value] = {}
    last: list[_Value] = []
    for one in _assignments(question, region, problem):
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
        text = _value(question, one.clause.sides[1:], known, problem, values)
        supposed = ""
        weighted = weighted_sum(one.clause.sides[-1], region) if heads == ["M"] else None
        if weighted is not None:
            text, supposed = claim_text(weighted.side, known), weighted.supposed
        if text is None and matrices:
            text = other.get(claim_text(one.clause.sides[-1]) or "")
        if text is None and len(heads) == 1 and heads[0] in current:
            text = _rescaled(one.clause.sides[-1], current[heads[0]], problem)
        dropped = DROPPED.search(one.formula.before[-80:]) or DROPPED_AFTER.match(one.formula.after)
        another = one.formula.aside and any(hole in current for hole in heads)  # a choice that a remark names
        if text is None or dropped or another:
            last = []
            continue
        scaled = not matrices and not _has_letters(text, problem) and scale_in_words(one.formula.nearby) == "large"
        if "prop" in one.clause.signs[: len(heads)] or scaled:
            text = f"t*({text})"
        last = [_Value(hole, text, one.formula.line, one.formula.source, supposed) for hole in heads]
        if all(hole in current for hole in question.holes) and any(v.hole in current for v in last):
            groups.append(current)
            current = {}
        current.update({v.hole: v for v in last})
    if current:  # what a restatement leaves out is as before
        groups.append({**groups[-1], **current} if groups else current)
    equal = _equal_letters(region)
    found = [replace(_construction(question, group), same=_are_equal(group, equal)) for group in groups]
    return [one for one in (_completed(question, c, region) for c in found) if one is not None]


def _assignments(question: Question, region: Region, problem: Problem) -> Iterator[Said]:
    """The clauses of a region; pairs, queries of both items and expressions that words put in as clauses of their own.

    (q_1, q_2) = (x, y) gives q_1 = x and q_2 = y; "take $q$ to be $x$" gives q = x.
    """
    for formula in region.formulas:
        found = [clause for clause in clauses(formula.math) if clause.sides]
        if not found:
            clause = _put_in_words(question, formula, problem)
            found = [clause] if clause is not None else []
        for clause in found:
            for one in _one_by_one(question, clause, formula, problem):
                yield Said(one, formula)


def _put_in_words(question: Question, formula: Formula, problem: Problem) -> T.Clause | None:
    """q = x for "take $q$ to be $x$"."""
    words = PUT_IN_WORDS.search(formula.before)
    if words is None or DIRECTION.search(formula.before[-60:]) or re.search(r"\b(?:not|n't)\b", words[0]):
        return None
    try:
        value = expression(formula.math)
        name = words["hole"] or words["bare"]
        head = expression(name) if name else None
    except Unreadable:
        return None
    if head is None:
        if len(question.holes) != 1:
            return None
        head = T.Symbol(question.holes[0])
    if hole_of(question.holes, head, problem) is None:
        return None
    return T.Clause((head, value), ("=",))


def _one_by_one(question: Question, clause: T.Clause, formula: Formula, problem: Problem) -> list[T.Clause]:
    head, last = clause.sides[0], clause.sides[-1]
    if isinstance(head, T.Matrix) and isinstance(last, T.Matrix) and set(clause.signs) <= {"=", "~"}:
        left, right = [cell for row in head.rows for cell in row], [cell for row in last.rows for cell in row]
        if len(left) == len(right) == len(question.holes):
            return [T.Clause((one, other), clause.signs[-1:]) for one, other in zip(left, right, strict=True)]
    queries = problem.letters_for("query") or ("q",)
    if (
        len(question.holes) == 2
        and isinstance(head, T.Symbol)
        and head.base in queries
        and head.index in (("i",), ("j",), ("h",))
        and BOTH_ITEMS.search(f"{formula.math} {formula.after[:60]}")
    ):
        text = T.with_index(last, head.index[0], "a"), T.with_index(last, head.index[0], "b")
        if text[0] != text[1]:
            heads = [T.Symbol(*_split(hole)) for hole in question.holes]
            return [T.Clause((one, other), ("=",)) for one, other in zip(heads, text, strict=True)]
    return [clause]


def _split(hole: str) -> tuple[str, tuple[str, ...]]:
    base, _, index = hole.partition("_")
    return base, (index,) if index else ()


def says_as_before(region: Region) -> bool:
    """Whether the words say that the construction is an earlier one."""
    return bool(AS_BEFORE.search(region.words))


def says_scaled(region: Region) -> bool:
    """Whether the words speak of a large multiple, anywhere in the region."""
    nearby = (formula.nearby for formula in region.formulas)
    return any(scale_in_words(sentences) for sentences in (split_sentences(region.words), *nearby))


VALUES_ARE_KEYS = re.compile(
    r"\$[^$]*v_[^$]*\$[^$.。]{0,20}?(?:\b(?:for|denotes?|as|are|be|is)\b|为|是|表示)[^$.。]{0,25}?(?:\b(?:keys?|means?)\b|键|均值)|"
    r"\b(?:keys?|means?)\b[^$.。]{0,15}\b(?:called|denoted|written|named|are|by|be)\b[^$.。]{0,10}\$[^$]*v_",
    re.I,
)


def calls_keys_values(region: Region) -> bool:
    """Whether the author says that the letter of values stands for keys here."""
    return bool(VALUES_ARE_KEYS.search(region.words)) or re.search(r"k_\{?\w\}?\s*=\s*v_", region.words) is not None


def says_rows(region: Region) -> bool:
    """Whether the words speak of rows."""
    return bool(re.search(r"\brows?\b|行向量|每一?行", region.words, re.I))


def says_columns(region: Region) -> bool:
    """Whether the author says that the basis vectors are columns, in words or by writing the matrix."""
    if re.search(r"\bcolumns?\b|列向量|每一?列|按列|列为", region.words, re.I):
        return True
    return _matrix_letters(region).get("A") == "A"


def writes_basis(region: Region) -> bool:
    """Whether the author writes the matrix of the basis out, so that its rows and columns are known."""
    return "A" in _matrix_letters(region)


def transposed_basis(found: Construction) -> Construction | None:
    """The construction with A for A' and A' for A, if it uses the matrix of the basis; else None."""
    if not any(base == "A" for _, value in found.values for base, _ in names(value)):
        return None
    values = []
    for hole, value in found.values:
        marked = re.sub(r"\bA'", "\x00", value)
        values.append((hole, re.sub(r"\bA\b", "A'", marked).replace("\x00", "A")))
    return replace(found, values=tuple(values))


SAME_SCALE = re.compile(
    r"\b(?:same|equal|identical|common)\b[^.。;]{0,30}\b(?:scal\w+|constants?|factors?|size|weights?|large|value)\b|相同的?[^.。;]{0,8}(?:常数|系数|数)",
    re.I,
)
"""Words that say that the scales of a construction are equal."""


def _equal_letters(region: Region) -> list[set[str]]:
    """Letters that the author says to be equal, as in λ_1 = λ_2; everything if words say so."""
    found: list[set[str]] = [{"*"}] if SAME_SCALE.search(region.words) else []
    for one in said(list(region.formulas)):
        run: set[str] = set()
        for side, sign in zip(one.clause.sides, (*one.clause.signs, ""), strict=False):
            text = claim_text(side) if isinstance(side, T.Symbol) else None
            if text is not None:
                run.add(text)
            if text is None or sign not in ("=", "~"):
                found += [run] if len(run) > 1 else []
                run = set()
    return found


def _are_equal(values: dict[str, _Value], equal: list[set[str]]) -> bool:
    """Whether all numbers of the values are among letters that are said to be equal."""
    letters = {joined(base, index) for v in values.values() for base, index in names(v.text)}
    return any(run == {"*"} or len(run & letters) > 1 for run in equal)


def _construction(question: Question, current: dict[str, _Value]) -> Construction:
    values = [current[hole] for hole in question.holes if hole in current]
    written = ", ".join(dict.fromkeys(v.written for v in values))
    line = min(v.line for v in values)
    supposed = ", ".join(dict.fromkeys(v.supposed for v in values if v.supposed))
    return Construction(tuple((v.hole, v.text) for v in values), line, written, supposed=supposed)


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
    if out:  # q_1 = x = q_2
        later = [hole_of(question.holes, side, problem) for side in clause.sides[len(out) :]]
        out += [hole for hole in later if hole is not None and hole not in out]
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


def _value(
    question: Question, sides: Iterable[T.Node], known: dict[str, str], problem: Problem, values: bool = False
) -> str | None:
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
        if text is not None and not matrix and (_is_row(text, problem) or _is_linear(side, problem)):
            text = text.replace("'", "")  # a query that is written as a row, or as the transpose of one
        if text is None or not _has_vectors(text, matrix, question, problem, values):
            continue
        best = text
    return best


def _is_linear(side: T.Node, problem: Problem) -> bool:
    """Whether no two vectors are multiplied in an expression, so that transposes in it change nothing."""
    vectors = {*problem.letters_for("key"), *problem.letters_for("mean")}

    def holds_vector(node: T.Node) -> bool:
        return any(isinstance(n, T.Symbol) and n.index and n.base in vectors for n in T.nodes(node))

    products = [n for n in T.nodes(side) if isinstance(n, T.Binary) and n.sign in "*."]
    return not any(holds_vector(p.left) and holds_vector(p.right) for p in products)


def _is_row(text: str, problem: Problem) -> bool:
    """Whether a query is written as a row: as a whole, or every vector of it."""
    if re.fullmatch(r".*\w\)?'", text):
        return True
    vectors = "|".join(sorted({*problem.letters_for("key"), *problem.letters_for("mean")}))
    return text.count("'") > 0 and text.count("'") == len(re.findall(rf"(?<![A-Za-z])(?:{vectors})_\w+", text))


def _has_letters(text: str, problem: Problem) -> bool:
    """Whether an expression has a letter that is no vector of the problem and no size, so that it may be a scale."""
    vectors = {*problem.letters_for("key"), *problem.letters_for("mean")}
    return any(not (base in vectors and index) and joined(base, index) not in SIZES for base, index in names(text))


def _has_vectors(text: str, matrix: bool, question: Question, problem: Problem, values: bool = False) -> bool:
    """Whether an expression is built of vectors of the problem, and of no value that is yet to be found."""
    found = names(text)
    vectors = {*problem.letters_for("key"), *problem.letters_for("mean"), "k", "mu", "u", "a"}
    if matrix:
        bases = {base for base, _ in found}
        if bases & {"M", "V", "K", "Q", "W", "x", "X", "c", "s"} or any(base == "v" for base in bases):
            return False
        if "M" in question.holes:
            vectors.add("b")
            if any(index and base not in vectors for base, index in found):
                return False  # a vector or a number of which nothing is known
        return bool(bases & {"A", "B", "I"}) or any(base in vectors and index for base, index in found)
    if values:
        vectors |= {*problem.letters_for("value"), "v"}
    unknown = {"v", "q", "alpha", "c"} - (vectors if values else set())
    if any(base in unknown and index not in ("", "0") for base, index in found):
        return False
    return any(base in vectors and index for base, index in found) and "'" not in text


def _other_matrices(question: Question, region: Region, known: dict[str, str]) -> dict[str, str]:
    """Further matrices that the author defines by the basis: P_A = A A'."""
    found: dict[str, str] = {}
    if "M" not in question.holes:
        return found
    for one in said(list(region.formulas)):
        head, text = symbol_of(one.clause.sides[0]), claim_text(one.clause.sides[-1], known)
        if head is None or text is None or one.clause.signs[-1] != "=" or head.base == "M":
            continue
        if head.base.isupper() and {base for base, _ in names(text)} <= {"A", "B", "I", "a", "b", "m"}:
            found[claim_text(head) or ""] = text
    return found


def _vector_letters(question: Question, region: Region, problem: Problem) -> dict[str, str]:
    """Letters that the author defines as vectors: u = k_a + k_b."""
    found: dict[str, str] = {}
    queries = problem.letters_for("query") or ("q",)
    for one in said(list(region.formulas)):
        head = symbol_of(one.clause.sides[0])
        if head is None or head.index or one.clause.signs != ("=",) or head.base in queries:
            continue
        text = claim_text(one.clause.sides[1])
        if text is not None and _has_vectors(text, False, question, problem):
            found[head.base] = f"({text})"
    return found


COLUMNS_OF = re.compile(
    r"(?:\bcolumns?\b|列)[^$.。;；]{0,12}\$(?P<one>[A-Z])\$|"
    r"\$(?P<two>[A-Z])\$[^.。;；]{0,60}?(?:\bcolumns?\b|以|列)[^.。;；]{0,40}?(?:a_|basis|基)|"
    r"\$(?P<three>[A-Z])\$[^.。;；]{0,40}?(?:a_|basis|基)[^。;；]{0,50}?(?:\bcolumns?\b|列)",
    re.I,
)
"""A letter for the matrix that has the basis vectors as columns, in words."""


def _matrix_letters(region: Region) -> dict[str, str]:
    """Letters that the author defines as the matrix of the basis, or as its transpose."""
    found: dict[str, str] = {}
    worded = [m["one"] or m["two"] or m["three"] for m in COLUMNS_OF.finditer(region.words)]
    if len(set(worded)) == 1 and worded[0] not in ("M", "A", "B"):
        found[worded[0]] = "A"
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
