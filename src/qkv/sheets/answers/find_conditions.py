"""Conditions under which one weight dominates: relations between scores, in formulas and in words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qkv.sheets.answers.decided import Decided, none_found
from qkv.sheets.answers.goal_check import Found, decided
from qkv.sheets.answers.regions import Region
from qkv.sheets.answers.tree_text import said
from qkv.sheets.closeness import CLOSE
from qkv.sheets.feedback import GradedAnswer
from qkv.sheets.problems.problem import Problem, Question
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.bindings import is_norm_of_key
from qkv.sheets.statements.circumstances import circumstances

MUCH = (
    r"(?:much|significantly|far|substantially|considerably|way|very much|a lot|vastly|drastically|"
    r"exponentially|overwhelmingly|"
    r"dramatically|greatly)"
)
SCORES = (
    r"(?:dot[ -]?products?|inner products?|scores?|products?|similarit\w+|projections?|logits?|k_\w|"
    r"内积|点积|得分|分数|相似度)"
)
MUCH_LARGER = re.compile(
    rf"\b{MUCH}\W+(?:more\W+)?(?:larger|greater|bigger|higher|exceed\w*|stronger|aligned|dominat\w*)|\bdominat\w+|"
    rf"\blarge(?:r)?\W+(?:relative|compared)\W+to\b|\bvery large\b|\bextremely large\b|\bsufficiently large\b|"
    rf"\blarge enough\b|"
    rf"\bexceeds?\W.{{0,40}}\bby a (?:large|wide)\b|\bgoes? to infinity\b|\bapproach\w* infinity\b|"
    rf"\blarge\b[^.。]{{0,80}}\b(?:small|zero|close to 0|negative|low)\b|\blarge\W+(?:norm|magnitude|scal\w+|"
    rf"length)\b|"
    rf"\b(?:norm|magnitude|scale|length)\W[^.。]{{0,30}}\blarge\b|"
    rf"\bby (?:a|some) (?:large|wide|big|huge|great|significant|considerable)\b|"
    rf"\b(?:gap|difference|margin)s?\b[^.。]{{0,90}}\b(?:large|big|huge|wide|infinity)\b|差距?[^.。]{{0,40}}大|"
    rf"\b{MUCH}\W+more\W+similar\b|"
    rf"远大于|远远大于|远高于|远超|大得多|非常大|很大|极大|无穷大",
    re.I | re.S,
)
LARGEST = re.compile(r"\b(?:largest|biggest|highest|maximum|maximal|greatest)\b|最大", re.I)
WEAKER = re.compile(r"\b(?:larger|greater|higher|bigger) than\b|大于", re.I)
NEGATED = re.compile(r"\b(?:not|no|never|isn't|n't)\b", re.I)
NOT_ENOUGH = re.compile(
    r"\b(?:not|n't) (?:be )?(?:enough|sufficient)|\binsufficient|\b(?:not|n't) suffice|不够|不足|不充分", re.I
)
ENOUGH = 1 - CLOSE  # what "almost all of the weight" is taken to be where a condition is refuted


@dataclass(frozen=True)
class Reading:
    """One reading of a condition: givens and definitions for the block, as words, and where it stands."""

    given: tuple[str, ...]
    let: tuple[str, ...]
    words: str
    line: int
    written: str
    limit: str = ""


def decide_condition(question: Question, region: Region, problem: Problem) -> Decided:
    """The condition of a region: a large gap between scores meets the goal in the limit, a weaker one misses it.

    Strong conditions are looked for first, in formulas and in words; what is left in formulas is put to the goal; words
    alone stay words.
    """
    if region.empty:
        return Decided(none_found(question))
    strong = _strong(question, region, problem)
    if strong is not None:
        return Decided(_answer(question, strong))
    weak = _weak(question, region)
    if weak is not None:
        return Decided(_answer(question, weak))
    written = " ".join(region.words.split())[:160]
    if sum(char.isalpha() for char in written) < 12:
        return Decided(none_found(question))
    return Decided(
        GradedAnswer(question.part, question.asked, region.line, written, "prose", "words, which are not decided")
    )


def _answer(question: Question, reading: Reading) -> GradedAnswer:
    item = question.item or "j"
    if reading.limit:
        goals = tuple(f"{goal} as {reading.limit}" for goal in question.goal)
    else:
        goals = (f"alpha_{item} >= {ENOUGH}",)
    found = decided(reading.given, reading.let, goals)
    if found.kind == "proved":
        limit = "as the gap between the scores grows" if reading.limit else "exactly"
        verdict = "limit" if reading.limit else "meets"
        return _said(question, reading, verdict, f"{reading.words}: the weight of {item} goes to 1 {limit}", found)
    if found.kind in ("refuted", "conditional"):
        because = f"{reading.words} is not enough: the weight of {item} need not be near 1; "
        because += "ask for a score that is much larger"
        return _said(question, reading, "misses", because, found)
    return _said(question, reading, "not_read", f"not decided: {found.because}", found)


def _said(question: Question, reading: Reading, verdict: str, because: str, found: Found) -> GradedAnswer:
    return GradedAnswer(question.part, question.asked, reading.line, reading.written, verdict, because, found.block)  # type: ignore[arg-type]


def _gap(question: Question, words: str, line: int, written: str) -> Reading:
    item = question.item or "j"
    given = (f"k_1..k_n free, q free, n >= 2, k_{item}'q - k_i'q >= m for i != {item}",)
    return Reading(given, (), words, line, written, "m -> oo")


def _are_named_scores(left: T.Node, right: T.Node, problem: Problem) -> bool:
    """s_j and s_i with a letter for scores."""
    letters = problem.letters_for("score") or ("s",)
    return (
        isinstance(left, T.Symbol)
        and isinstance(right, T.Symbol)
        and left.base == right.base
        and left.base in letters
        and bool(left.index and right.index)
    )


def _strong(question: Question, region: Region, problem: Problem) -> Reading | None:
    """A score that is much larger than the others."""
    for one in said(list(region.formulas)):
        for left, sign, right in zip(one.clause.sides, one.clause.signs, one.clause.sides[1:], strict=False):
            scores = (_is_score(left), _is_score(right))
            named = _are_named_scores(left, right, problem)
            if sign in (">>", "<<") and (any(scores) or named):
                return _gap(question, "a score much larger than the others", one.formula.line, one.formula.source)
            if sign == "=" and _is_scaled_key(left, right):
                words = "a long query in the direction of one key, for keys at right angles"
                item = question.item or "j"
                let = (f"q = t*k_{item}",)
                return Reading(
                    ("k_1..k_n orthonormal, n >= 2",), let, words, one.formula.line, one.formula.source, "t -> oo"
                )
            if sign == "->" and scores[0] and isinstance(right, T.Symbol) and right.base == "oo":
                return _gap(question, "a score that goes to infinity", one.formula.line, one.formula.source)
    for sentence in re.split(r"(?<=[.。;；])\s", region.words):
        found = MUCH_LARGER.search(sentence)
        if found is None or not re.search(SCORES, sentence, re.I):
            continue
        if NEGATED.search(sentence[max(0, found.start() - 20) : found.start()]):
            continue
        line = next((f.line for f in region.formulas if f.math in sentence), region.line)
        return _gap(question, "a score much larger than the others, in words", line, " ".join(sentence.split())[:160])
    return None


def _is_score(node: T.Node) -> bool:
    symbols = [n for n in T.nodes(node) if isinstance(n, T.Symbol)]
    key = any(n.base.lower() == "k" and n.index for n in symbols)
    return key and any(n.base in ("q", "g") for n in symbols)


def _is_scaled_key(left: T.Node, right: T.Node) -> bool:
    """q = t k_j with a letter t."""
    if not (
        isinstance(left, T.Symbol)
        and left.base in ("q", "g")
        and isinstance(right, T.Binary)
        and right.sign in ("*", ".")
    ):
        return False
    sides = [s for s in (right.left, right.right) if isinstance(s, T.Symbol)]
    return len(sides) == 2 and sum(s.base.lower() == "k" and bool(s.index) for s in sides) == 1


def _weak(question: Question, region: Region) -> Reading | None:
    """A condition in formulas that does not ask for a large gap."""
    item = question.item or "j"
    free = "k_1..k_n free, q free, n >= 2"
    for one in said(list(region.formulas)):
        clause, formula = one.clause, one.formula
        if NOT_ENOUGH.search(f"{formula.before} {formula.after}") or circumstances(formula).negated:
            continue
        left, right, sign = clause.sides[0], clause.sides[-1], clause.signs[0]
        if len(clause.sides) == 2 and _is_score(left) and _is_score(right) and sign in (">", ">="):
            given = (f"{free}, k_{item}'q {sign} k_i'q for i != {item}",)
            return Reading(given, (), "a score larger than the others", formula.line, formula.source)
        if len(clause.sides) == 2 and sign in (">", ">=", ">>") and is_norm_of_key(left) and is_norm_of_key(right):
            given = (f"{free}, norm(k_{item}) > norm(k_i) for i != {item}",)
            return Reading(given, (), "a key longer than the others", formula.line, formula.source)
        everything = re.search(r"\ball\b|\bany\b|\bevery\b|所有|任意", f"{formula.before} {formula.after}", re.I)
        if sign == "perp" and _is_query_and_key(left, right) and (everything or _item_of(right, left) == item):
            return Reading(
                (f"{free}, k_i'q = 0 for all i",), (), "a query at right angles to keys", formula.line, formula.source
            )
        if len(clause.sides) == 2 and sign in ("~", "=") and _is_query_and_key(left, right):
            let = (f"q = k_{item}",)
            return Reading(
                ("k_1..k_n orthonormal, n >= 2",),
                let,
                "a query like one key, of its length",
                formula.line,
                formula.source,
            )
        if _is_score(left) and isinstance(right, T.Number) and sign in ("~", "=") and right.text in ("1", "1.0"):
            given = (f"{free}, k_{item}'q = 1, k_{item}'q >= k_i'q for i != {item}",)
            return Reading(given, (), "a largest score of about 1", formula.line, formula.source)
    return None


def _item_of(*sides: T.Node) -> str:
    """The item of the key among the sides."""
    return next((s.index[0] for s in sides if isinstance(s, T.Symbol) and s.base.lower() == "k" and s.index), "")


def _is_query_and_key(left: T.Node, right: T.Node) -> bool:
    """Whether one side is the query and the other a single key."""
    for one, other in ((left, right), (right, left)):
        query = isinstance(one, T.Symbol) and one.base in ("q", "g")
        if query and isinstance(other, T.Symbol) and other.base.lower() == "k" and other.index:
            return True
    return False
