"""Conditions under which one weight dominates: relations between scores, in formulas and in words."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from qkv.sheets.answers.condition_words import (
    AT_RIGHT_ANGLES,
    LARGEST,
    LONGER,
    MUCH_LARGER,
    NEGATED,
    NOT_ENOUGH,
    PARALLEL,
    SCORES,
    asks_more,
    tagged,
    without_reasons,
)
from qkv.sheets.answers.decided import Decided, none_found
from qkv.sheets.answers.goal_check import SHOWN_ITEMS, Found, decided, shown
from qkv.sheets.answers.regions import Region
from qkv.sheets.answers.tree_text import clauses, said
from qkv.sheets.answers.wording import number_text, people_write
from qkv.sheets.closeness import CLOSE
from qkv.sheets.feedback import GradedAnswer
from qkv.sheets.problems.problem import Problem, Question
from qkv.sheets.reading.sheet import Formula
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.bindings import is_norm_of_key
from qkv.sheets.statements.circumstances import circumstances

ENOUGH = 1 - CLOSE  # what "almost all of the weight" is taken to be where a condition is refuted


@dataclass(frozen=True)
class Reading:
    """One reading of a condition: givens and definitions for the block, as words, and where it stands.

    `example` says that the block is a counterexample to the words, not the words themselves.
    """

    given: tuple[str, ...]
    let: tuple[str, ...]
    words: str
    line: int
    written: str
    limit: str = ""
    example: bool = False


def decide_condition(question: Question, region: Region, problem: Problem) -> Decided:
    """The condition of a region: a large gap between scores meets the goal in the limit, a weaker one misses it.

    Strong conditions are looked for first, in formulas and in words; what is left in formulas is put to the goal; words
    alone stay words.
    """
    if region.empty:
        return Decided(none_found(question))
    region = _scores_written_out(region, problem)
    strong = _strong(question, region, problem)
    if strong is not None:
        return Decided(_answer(question, strong))
    weak = _weak(question, region) or _weak_relations(question, region) or _weak_in_words(question, region)
    if weak is not None:
        return Decided(_answer(question, weak))
    written = " ".join(region.words.split())[:160]
    if sum(char.isalpha() for char in written) < 12:
        return Decided(none_found(question))
    return Decided(
        GradedAnswer(question.part, question.asked, region.line, written, "prose", "words, which are not decided")
    )


OVER_OTHERS = re.compile(r"\\max(?:\\limits)?\s*_\s*\{[^{}]*(?:\\neq?|≠)[^{}]*\}")
QUANTIFIER = re.compile(r"\\exists\s*[a-z]\s*(?:[:,]|\\(?:text|mathrm)\s*\{[^{}]*\}|\\;|\\,)?")


def _scores_written_out(region: Region, problem: Problem) -> Region:
    """The region with k_j'q for a letter s_j of scores, and with the largest of the other scores as any of them."""
    others = {"e"}  # letters that mean something else
    defined: set[str] = set()
    for one in said(list(region.formulas)):
        head = one.clause.sides[0]
        if isinstance(head, T.Symbol) and head.index and one.clause.signs[0] == "=":
            (defined if _is_score(one.clause.sides[1]) else others).add(head.base)
    letters = (defined | set(problem.letters_for("score"))) - (others - defined)
    pattern = (
        re.compile(rf"(?<![\\A-Za-z_])(?:{'|'.join(sorted(letters))})\s*_\s*\{{?\s*([a-z])\s*\}}?") if letters else None
    )

    def plain(math: str) -> str:
        math = QUANTIFIER.sub("", OVER_OTHERS.sub("", math))
        return pattern.sub(r"{k_{\1}^\\top q}", math) if pattern is not None else math

    kept = [f for f in region.formulas if not _defines(f, defined)]
    formulas = tuple(replace(f, math=plain(f.math)) for f in kept)
    words = re.sub(r"\$([^$]*)\$", lambda found: f"${plain(found[1])}$", region.words)
    return replace(region, formulas=formulas, words=words)


def _defines(formula: Formula, letters: set[str]) -> bool:
    """Whether a formula does nothing but define scores."""
    found = [clause for clause in clauses(formula.math) if clause.sides]
    heads = [clause.sides[0] for clause in found]
    return len(found) == 1 and isinstance(heads[0], T.Symbol) and heads[0].base in letters and found[0].signs == ("=",)


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
        shows = f"the weight of {item} need not be near 1"
        number = shown(reading.given, reading.let, f"alpha_{item}", ()) if reading.example else None
        if number is not None:
            shows = (
                f"unit keys at right angles and q = k_{item} give a weight of {people_write(number.formula)}, which is "
                f"{number_text(number.value)} at n = {SHOWN_ITEMS}"
            )
        because = f"{reading.words} is not enough: {shows}; ask for a score that is much larger"
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


QUANTIFIED = re.compile(r"\b([a-z])\s*(?:\\neq?|≠|!=)\s*\$?\s*([a-z])\b")


def _turned_round(left: T.Node, sign: str, right: T.Node, formula: Formula) -> bool:
    """Whether the score of every other item is said to be the larger one: k_j'q ≪ k_i'q for all i ≠ j."""
    found = QUANTIFIED.search(f"{formula.math} {formula.after}")
    large, small = (left, right) if sign == ">>" else (right, left)
    items = [{n.index for n in T.nodes(s) if isinstance(n, T.Symbol) and n.index} for s in (large, small)]
    return found is not None and items == [{(found[1],)}, {(found[2],)}]


def _strong(question: Question, region: Region, problem: Problem) -> Reading | None:
    """A score that is much larger than the others."""
    for one in said(list(region.formulas)):
        for left, sign, right in zip(one.clause.sides, one.clause.signs, one.clause.sides[1:], strict=False):
            scores = (_is_score(left), _is_score(right))
            named = _are_named_scores(left, right, problem)
            if sign in (">>", "<<") and (any(scores) or named) and not _turned_round(left, sign, right, one.formula):
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
    return _strong_in_words(question, region)


def _strong_in_words(question: Question, region: Region) -> Reading | None:
    """A score that words call much larger than the others; what is said of the length of a key is not taken for it."""
    longer = _speaks_of_lengths(tagged(region.words, question.item or "j"))
    for sentence in re.split(r"(?<=[.。;；])\s*", region.words):
        text = tagged(sentence, question.item or "j")
        if longer:
            text = LONGER.sub(" ", without_reasons(text))
        found = MUCH_LARGER.search(text)
        if found is None or not (SCORE_NAMED.search(text) or (not longer and re.search(r"\bKEY[IJ]\b", text))):
            continue
        if NEGATED.search(text[max(0, found.start() - 20) : found.start()]):
            continue
        line = next((f.line for f in region.formulas if f.math in sentence), region.line)
        return _gap(question, "a score much larger than the others, in words", line, " ".join(sentence.split())[:160])
    return None


SCORE_NAMED = re.compile(rf"{SCORES}|\b(?:SCORE[IJ]|GAP|SCORERELATION)\b", re.I)


def _speaks_of_lengths(text: str) -> bool:
    """Whether a tagged text compares lengths of keys, in words or in a formula."""
    return LONGER.search(text) is not None or "LENGTHS" in text


def _weak_in_words(question: Question, region: Region) -> Reading | None:
    """A condition in words that is known not to be enough: a longer key, right angles, a direction, a largest score.

    It is taken only where the words ask for nothing else, so that what they may mean besides is not held against them.
    """
    item = question.item or "j"
    text = tagged(region.words, item)
    if NOT_ENOUGH.search(text) or NEGATED.search(text):
        return None
    written = " ".join(region.words.split())[:160]
    longer = LONGER.search(text) or re.search(r"\bLENGTHS\b", text)
    if longer is not None:
        if _claims_gap(LONGER.sub(" ", text)) or asks_more(without_reasons(LONGER.sub(" ", text))):
            return None
        line = next((f.line for f in region.formulas if re.search(r"k", f.math)), region.line)
        return _longer_key(question, line, written)
    stated = without_reasons(text)
    found = [pattern.search(stated) for pattern in (AT_RIGHT_ANGLES, PARALLEL, LARGEST)]
    if not any(found) or asks_more(_rest(text)) or _claims_gap(text) or not _holds_for_like_key(question, region):
        return None
    angles = found[0]
    if angles is not None and not (any(angles.groups()) or "other" in angles[0]):
        return Reading(
            (f"{FREE}, k_i'q = 0 for all i",), (), "a query at right angles to all keys", region.line, written
        )
    words = next(w for w, one in zip(WEAK_WORDS, found, strict=True) if one is not None)
    return _like_key(question, words, region.line, written)


def _rest(text: str) -> str:
    """What the clauses of a tagged text say beside conditions that are known to be weak."""
    stated = without_reasons(text)
    for pattern in (AT_RIGHT_ANGLES, PARALLEL, LARGEST):
        stated = pattern.sub(" ", stated)
    return stated


def _claims_gap(text: str) -> bool:
    """Whether a score is called much larger anywhere, if only as what follows; "it dominates the product" says less."""
    larger = MUCH_LARGER.search(text)
    return larger is not None and not larger[0].lower().startswith("dominat") and SCORE_NAMED.search(text) is not None


WEAK_WORDS = ("a query at right angles to the other keys", "a query in the direction of one key", "a largest score")
FREE = "k_1..k_n free, q free, n >= 2"


def _longer_key(question: Question, line: int, written: str) -> Reading:
    item = question.item or "j"
    return Reading(
        (f"{FREE}, norm(k_{item}) > norm(k_i) for i != {item}",), (), "a key longer than the others", line, written
    )


def _like_key(question: Question, words: str, line: int, written: str) -> Reading:
    """The counterexample of unit length: keys at right angles, and the query one of them."""
    let = (f"q = k_{question.item or 'j'}",)
    return Reading(("k_1..k_n orthonormal, n >= 2",), let, words, line, written, example=True)


def _weak_relations(question: Question, region: Region) -> Reading | None:
    """Relations between scores that the query k_j meets beside keys at right angles, where its weight is not near 1."""
    text = tagged(region.words, question.item or "j")
    if NOT_ENOUGH.search(text) or NEGATED.search(text) or asks_more(_rest(text)):
        return None
    first = next((one for one in said(list(region.formulas)) if _of_scores(one.clause)), None)
    if first is None:
        return None
    equal = [one for one in said(list(region.formulas)) if _all_equal(one.clause)]
    if equal:
        given = (f"{FREE}, k_i'q = 0 for all i",)
        return Reading(given, (), "equal scores", equal[0].formula.line, equal[0].formula.source)
    if not _holds_for_like_key(question, region):
        return None
    words = "what is asked of the scores"
    return _like_key(question, words, first.formula.line, first.formula.source)


def _of_scores(clause: T.Clause) -> bool:
    """Whether a clause relates the score of a key to a number or to another score, in signs that ask for no size."""
    plain = {"=", "~", ">", ">=", "<", "<=", "!=", "perp"}
    return set(clause.signs) <= plain and any(_is_score(s) and not _holds_exponential(s) for s in clause.sides)


def _is_single(node: T.Node) -> bool:
    """Whether a side is the score of one key and nothing beside it."""
    return (
        _is_score(node)
        and not _holds_exponential(node)
        and sum(isinstance(n, (T.Symbol, T.Number)) for n in T.nodes(node)) == 2
    )


def _holds_exponential(node: T.Node) -> bool:
    return any(isinstance(n, (T.Call, T.Total)) or (isinstance(n, T.Binary) and n.sign == "^") for n in T.nodes(node))


def _all_equal(clause: T.Clause) -> bool:
    """k_1'q = k_2'q = … = k_n'q."""
    written = [s for s in clause.sides if not isinstance(s, T.Dots)]
    indices = {n.index for s in written for n in T.nodes(s) if isinstance(n, T.Symbol) and n.base.lower() == "k"}
    return set(clause.signs) == {"="} and all(map(_is_score, written)) and {("1",), ("n",)} <= indices


def _holds_for_like_key(question: Question, region: Region) -> bool:
    """Whether every relation of keys and the query holds for keys at right angles of length 1 and q = k_j."""
    item = question.item or "j"
    for one in said(list(region.formulas)):
        names = {n.base.lower() for n in T.nodes(one.clause) if isinstance(n, T.Symbol)}
        if not names & {"k", "q", "g"} or names & {"alpha", "c"}:
            continue
        for left, sign, right in zip(one.clause.sides, one.clause.signs, one.clause.sides[1:], strict=False):
            if not _link_holds(left, sign, right, item):
                return False
    return True


def _link_holds(left: T.Node, sign: str, right: T.Node, item: str) -> bool:
    """One relation at unit keys and q = k_j; what has no plain value there does not hold."""
    if sign == "perp":
        return _is_query_and_key(left, right) and _item_of(left, right) != item
    one, other = _at_like_key(left, item), _at_like_key(right, item)
    if one is None or other is None:
        return False
    return {
        "=": one == other, "~": one == other, ">": one > other, ">=": one >= other, "<": one < other,
        "<=": one <= other, "!=": one != other,
    }.get(sign, False)  # fmt: skip


def _at_like_key(node: T.Node, item: str) -> float | None:
    """The value of a number, a score, a length or a difference of scores at unit keys and q = k_j; None for others."""
    if isinstance(node, T.Number):
        return float(node.text)
    if isinstance(node, T.Call) and node.name == "max" and len(node.arguments) == 1 and _is_score(node.arguments[0]):
        return 1.0
    if isinstance(node, T.Call) and node.name in ("norm", "abs"):
        inner = node.arguments[0]
        single = isinstance(inner, T.Symbol) and inner.base.lower() in ("k", "q", "g")
        return 1.0 if single else None
    if isinstance(node, T.Binary) and node.sign in ("*", "."):
        factors = [_at_like_key(side, item) if isinstance(side, T.Call) else None for side in (node.left, node.right)]
        if factors[0] is not None and factors[1] is not None:
            return factors[0] * factors[1]
    if _holds_exponential(node):
        return None
    symbols = [n for n in T.nodes(node) if isinstance(n, T.Symbol)]
    keys = [n for n in symbols if n.base.lower() == "k" and n.index]
    queries = [n for n in symbols if n.base in ("q", "g")]
    if len(symbols) == 2 and len(keys) == len(queries) == 1 and not any(isinstance(n, T.Number) for n in T.nodes(node)):
        return 1.0 if keys[0].index == (item,) else 0.0
    if isinstance(node, T.Symbol) and node in keys + queries:  # q = k_j: the number of the vector
        return 1.0 if node in queries or node.index == (item,) else 0.0
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
    free = FREE
    more = asks_more(_rest(tagged(region.words, item)))
    for one in said(list(region.formulas)):
        clause, formula = one.clause, one.formula
        if NOT_ENOUGH.search(f"{formula.before} {formula.after}") or circumstances(formula).negated:
            continue
        left, right, sign = clause.sides[0], clause.sides[-1], clause.signs[0]
        if len(clause.sides) == 2 and _is_single(left) and _is_single(right) and sign in (">", ">="):
            if more:
                continue
            given = (f"{free}, k_{item}'q {sign} k_i'q for i != {item}",)
            return Reading(given, (), "a score larger than the others", formula.line, formula.source)
        if len(clause.sides) == 2 and sign in (">", ">=", ">>") and is_norm_of_key(left) and is_norm_of_key(right):
            return _longer_key(question, formula.line, formula.source)
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
        if _is_single(left) and isinstance(right, T.Number) and sign in ("~", "=") and right.text in ("1", "1.0"):
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
