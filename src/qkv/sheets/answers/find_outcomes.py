"""What an author says that outputs approach, in formulas and in words around them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from qkv.sheets.answers.construction import Outcome, joined, names, renamed
from qkv.sheets.answers.regions import Region, is_length
from qkv.sheets.answers.tree_text import Said, claim_text, clauses, said
from qkv.sheets.reading.sheet import Formula
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.parser import Unreadable, expression

APPROACH = (
    r"\b(?:approximat\w*|approx\w*|close\w*|approach\w*|converg\w*|tend\w*|near\w*|equals|equal to|cop(?:y|"
    r"ies)|essential\w*|"
    r"remain\w*|stay\w*|keep\w*|becom\w*|oscillat\w*|swing\w*|flip\w*|jump\w*|fluctuat\w*|alternat\w*|"
    r"switch\w*|bounc\w*|"
    r"toward\w*|identical|dominated by|still|always|consistently)\b|仍|依然|接近|近似|趋|等于|振荡|震荡|波动|"
    r"之间|偏向|变成|摇摆|约为|就是"
)
IS = r"\bis\b|\bbe\b|\balmost\b|\bjust\b|\bbasically\b|\bmostly\b|为|是|几乎"
"""Further words for a question that asks what an output is."""
NEGATED = re.compile(
    r"\b(?:not|never|no longer|neither|nor|isn't|won't|doesn't|can't|cannot|rather than|instead of|unlike|"
    r"impossible|unable)\b|"
    r"n't\b|不再|不是|而不是|无法|不能|不会|不可能|并非",
    re.I,
)
GOAL = re.compile(
    r"\b(?:want|wish|need|goal|desired?|such that|so that we|in order|to get|to have|to obtain|to make|should|"
    r"aim|require\w*)\b|"
    r"希望|想要|为了|使得|需要|要使|目标",
    re.I,
)
CONTRAST = re.compile(
    r"\b(?:single|previous(?:ly)?|earlier|before|parts?|questions?|unlike|in contrast|instead|whereas|compared|"
    r"former|originally|"
    r"ideal(?:ly)?|on average|in expectation|expected value|mean of)\b|之前|单头|上一",
    re.I,
)
"""Words that set a statement against another part, or that speak of means: such statements accuse nobody."""
SWINGS = re.compile(r"oscillat|swing|flip|jump|fluctuat|alternat|switch|bounc|between|之间|摇摆|振荡|震荡", re.I)
VARIES = re.compile(
    r"^\W*(?:has|have|will have|would have|shows?|exhibits?|suffers? from)\W+(?:an?\W+)?(?:(?:very|more|quite|"
    r"a lot of)\W+)?"
    r"(?:high|large|significant|substantial|non-?\s?negligible|considerable|huge|big|great)\W+varianc",
    re.I,
)
VARIANCE_OF = re.compile(r"varianc\w*\W+(?:of|in)\b\W*(?:the\b\W*)?$", re.I)
IS_LARGE = re.compile(
    r"^\W*(?:is|will be|would be|becomes|remains)\W+(?:(?:very|quite|more|still)\W+)?(?:high|large|significant|"
    r"huge|considerable|"
    r"substantial|non-?\s?negligible)\b(?!er)",
    re.I,
)
UNSTABLE = re.compile(
    r"^\W*(?:is|are|will be|becomes?|would be)\W+(?:(?:very|highly|more)\W+)?(?:unstable|volatile)\b|^\W*不稳定", re.I
)
AND_VALUE = re.compile(
    r"^[^$.。;]{0,40}?\b(?:and|or|to)\b[^$.。;]{0,40}?\$([^$]+)\$|^\s*(?:和|或|与|到|跟|、)[^$.。;]{0,12}\$([^$]+)\$"
)
LARGER = re.compile(
    r"k_a[^$]*\$?[^.。$]{0,60}\b(?:large|larger|long|longer|big|bigger|high|higher|greater)\b|"
    r"k_a[^$]*\$[^.。$]{0,30}(?:较?长|较?大|变大)",
    re.I,
)
SMALLER = re.compile(
    r"k_a[^$]*\$?[^.。$]{0,60}\b(?:small|smaller|short|shorter|low|lower|less)\b|"
    r"k_a[^$]*\$[^.。$]{0,30}(?:较?短|较?小|变小)",
    re.I,
)


def length_letter(formulas: Iterable[Formula]) -> str:
    """The author's letter for the length of k_a, or "" if none is named."""
    for one in said(list(formulas)):
        found = is_length(one.clause)
        if found is not None:
            return joined(found.base, "".join(found.index))
        head = one.clause.sides[0]
        last = one.clause.sides[-1]
        drawn = one.clause.signs[-1] == ":" and isinstance(last, T.Call) and last.name == "N" and last.arguments
        mean = last.arguments[0] if drawn and isinstance(last, T.Call) else None
        if isinstance(head, T.Symbol) and isinstance(mean, T.Number) and mean.text in ("1", "1.0"):
            return joined(head.base, "".join(head.index))
    return ""


def output_of(node: T.Node) -> str | None:
    """The output that a side names: c, c_1, c_2, or c for the mean of both; None for anything else."""
    if isinstance(node, T.Symbol):
        if node.base.rstrip("'") not in ("c", "C"):
            return None
        index = tuple(i for i in node.index if i)
        if not index:
            return "c"
        return {"1": "c_1", "2": "c_2", "a": "c_1", "b": "c_2"}.get("".join(index))
    text = claim_text(node)
    if text is not None:
        plain = re.sub(r"[\s()]", "", text).lower()
        if plain in ("1/2*c_1+c_2", "c_1+c_2/2", "0.5*c_1+c_2", "1/2*c_1+1/2*c_2", "c_1/2+c_2/2", "1/2*c_a+c_b"):
            return "c"
    return None


def find_outputs(hole: str, region: Region, letters: Iterable[str] = ()) -> list[Outcome]:
    """What an output is said to be: formulas first, then words, in reading order.

    Args:
        hole: The output that is asked for, such as "c" or "c_2".
        region: What the sheet says on the part.
        letters: Families of vectors in which a value may be written, such as "v" or "u".
    """
    families = set(letters) or {"v"}
    found: list[Outcome] = []
    for one in said(list(region.formulas)):
        if (
            _is_output(one.clause.sides[0], hole)
            and set(one.clause.signs) <= {"=", "~", "->"}
            and not _is_goal(one.formula)
        ):
            value = _last_value(one.clause.sides[1:], families)
            if value:
                found.append(Outcome(hole, value, "", one.formula.line, one.formula.source))
    found += [o for o in _in_words(region, families, IS) if o.output == hole]
    return found


def _is_output(node: T.Node, hole: str) -> bool:
    if hole == "c":
        return output_of(node) == "c"
    return isinstance(node, T.Symbol) and joined(node.base.lower(), "".join(node.index)) == hole


def _last_value(sides: Iterable[T.Node], families: set[str]) -> str:
    """The last side that is written in the given vectors, or a sum of weights; not the definition of the output."""
    best = ""
    for side in sides:
        text = claim_text(side)
        if text is None:
            continue
        bases = {base for base, _ in names(text)}
        if "alpha" in bases and bases & families:
            continue  # the definition as a weighted sum
        if any(base in ("u", "mu") and index.isdigit() for base, index in names(text)):
            continue  # a slip: the vectors have letters
        if bases & families or bases == {"alpha"} or ({"alpha", "n"} >= bases and "alpha" in bases):
            best = text
    return best


def _is_goal(formula: Formula) -> bool:
    return bool(GOAL.search(formula.before[-50:]))


def find_samples(region: Region, scales: Iterable[str], length: str, holes: Sequence[str] = ()) -> list[Outcome]:
    """What outputs are said to do as the length of k_a varies, in reading order.

    Args:
        region: What the sheet says on the part.
        scales: The author's letters for scales, which no condition on the length uses.
        length: The author's letter for the length.
        holes: Names of the queries that a sentence may put in anew, such as "q_1".
    """
    formulas = list(region.formulas)
    found: list[Outcome] = []
    for formula in formulas:
        clauses_here = [c for c in clauses(formula.math) if c.sides]
        for place, clause in enumerate(clauses_here):
            outcome = _in_clause(Said(clause, formula), clauses_here[:place], set(scales), length)
            if outcome is not None:
                found.append(outcome)
    for one in _in_words(region, {"v"}):
        sentence = next((f for f in formulas if f.line == one.line and one.written.startswith(f.source)), None)
        if sentence is not None and not one.condition and not one.loose:
            after = sentence.after[len(one.written) - len(sentence.source) :]
            condition, worded = _condition_around(sentence.before, after, set(scales), length)
            one = replace(one, condition=condition, in_words=worded or bool(condition))
        found.append(replace(one, value=value_in(one.value, length)))
    found = _alternatives(found)
    found += _moving(formulas)
    sentences = {(f.line, f.source): f.before for f in formulas}
    return _distinct([_with_queries(o, sentences, holes) for o in found])


def _alternatives(outcomes: list[Outcome]) -> list[Outcome]:
    """Both values of one output without a condition are said of different samples."""
    both = {o.output for o in outcomes if o.value == "v_a"} & {o.output for o in outcomes if o.value == "v_b"}
    expected = {"v_a": "gamma > 1", "v_b": "gamma < 1"}
    return [
        replace(o, condition=expected[o.value]) if o.output in both and o.value in expected and not o.condition else o
        for o in outcomes
    ]


def _with_queries(outcome: Outcome, sentences: dict[tuple[int, str], str], holes: Sequence[str]) -> Outcome:
    """An outcome with the queries that its sentence supposes: "if q_1 = q_2 = …, then c …"."""
    before = next(
        (b for (line, source), b in sentences.items() if line == outcome.line and outcome.written.startswith(source)),
        "",
    )
    queries: dict[str, str] = {}
    for math in re.findall(r"\$([^$]*)\$", before):
        for clause in clauses(math):
            heads = [joined(s.base, "".join(s.index)) for s in clause.sides[:-1] if isinstance(s, T.Symbol)]
            text = claim_text(clause.sides[-1]) if clause.sides else None
            if text is not None and heads and len(heads) == len(clause.sides) - 1 and set(heads) <= set(holes):
                queries.update(dict.fromkeys(heads, text))
    if holes and set(queries) == set(holes):
        return replace(outcome, queries=tuple((hole, queries[hole]) for hole in holes))
    return outcome


def _in_clause(one: Said, before: list[T.Clause], scales: set[str], length: str) -> Outcome | None:
    head, formula = one.clause.sides[0], one.formula
    output = output_of(head)
    if output is None and isinstance(head, T.Missing):
        subject = re.search(r"\$([^$]*)\$[^$.。]{0,40}$", formula.before)
        output = _output_text(subject[1]) if subject else None
    if output is None or not set(one.clause.signs) <= {"=", "~", "->"} or _is_goal(formula):
        return None
    if NEGATED.search(_close(formula.before)) or NEGATED.match(formula.after.strip()[:12]):
        return None
    value = _last_value(one.clause.sides[1:], {"v"})
    if not value:
        return None
    condition = next((c for c in (_condition(b, scales, length) for b in reversed(before)) if c), "")
    worded = False
    if not condition:
        condition, worded = _condition_around(formula.before, "", scales, length)
    loose = bool(CONTRAST.search(formula.before))
    value = value_in(value, length)
    return Outcome(output, value, condition, formula.line, formula.source, in_words=worded, loose=loose)


def _close(before: str) -> str:
    """The words right before a formula, after the last comma."""
    return re.split(r"[,;，；:：]", before)[-1][-60:]


def value_in(value: str, length: str) -> str:
    """A value with the author's length as gamma, and the length of another key as 1."""
    if not length:
        return value
    base, _, index = length.partition("_")

    def one(b: str, i: str) -> str | None:
        if joined(b, i) == length:
            return "gamma"
        if index and b == base and i:
            return "1"
        return None

    return renamed(value, one)


def _output_text(math: str) -> str | None:
    """The output that a formula without a relation names, or the head of one with it."""
    try:
        return output_of(expression(math))
    except Unreadable:
        pass
    found = [c for c in clauses(math) if c.sides]
    return output_of(found[0].sides[0]) if len(found) == 1 else None


def _value_text(math: str, families: set[str]) -> str:
    try:
        text = claim_text(expression(math))
    except Unreadable:
        found = [c for c in clauses(math) if c.sides]
        if len(found) == 1 and isinstance(found[0].sides[0], T.Missing):
            return _last_value(found[0].sides[1:], families)
        return ""
    if text is None:
        return ""
    return text if {base for base, _ in names(text)} & families else ""


def _in_words(region: Region, families: set[str], more_words: str = "") -> list[Outcome]:
    """Outputs and values that words join: "$c$ will be close to $v_a$", "the result tends to $v_b$"."""
    found: list[Outcome] = []
    words = f"{APPROACH}|{more_words}" if more_words else APPROACH
    link = re.compile(rf"^([^$.。;]{{0,100}}?(?:{words})[^$.。;]{{0,60}}?)\$([^$]+)\$(.*)$", re.I | re.S)
    plain = re.compile(
        rf"(?:output|result|context vector|结果|输出)[^$.。;]{{0,60}}?(?:{words})[^$.。;]{{0,30}}?$", re.I
    )
    copied = re.compile(r"\b(?:cop(?:y|ies|ied|ying)|outputs?|returns?)\b[^$.。;]{0,50}$|复制[^$.。;]{0,20}$", re.I)
    for formula in region.formulas:
        output = _output_text(formula.math)
        if output is not None:
            match = link.match(formula.after)
            if match is None or NEGATED.search(match[1]) or NEGATED.search(_close(formula.before)) or _is_goal(formula):
                continue
            value = _value_text(match[2], families)
            if not value:
                continue
            more = AND_VALUE.match(match[3])
            second = _value_text(more[1] or more[2], families) if more else ""
            swings = {"v_a": "gamma > 1", "v_b": "gamma < 1"} if SWINGS.search(match[1]) else {}
            for one in (value, second):
                if one:
                    written = f"{formula.source} {match[1].strip()} {one}"
                    loose = bool(CONTRAST.search(f"{formula.before} {match[1]}"))
                    found.append(Outcome(output, one, swings.get(one, ""), formula.line, written, loose=loose))
            continue
        value = _value_text(formula.math, families)
        subject = plain.search(formula.before) or (more_words and copied.search(formula.before))
        if value and subject and not NEGATED.search(subject[0]) and not NEGATED.search(_close(formula.before)):
            written = f"{formula.before.strip()[-60:]} {formula.source}"
            found.append(Outcome("c", value, "", formula.line, written, loose=True))
    return found


def _moving(formulas: list[Formula]) -> list[Outcome]:
    """Single heads that are said to vary."""
    found: list[Outcome] = []
    wanted = {"c_1": "v_a", "c_2": "v_b"}
    for formula in formulas:
        output = _output_text(formula.math)
        if output not in wanted or "=" in formula.math:
            continue
        large = VARIES.match(formula.after) or UNSTABLE.match(formula.after)
        large = large or (VARIANCE_OF.search(formula.before) and IS_LARGE.match(formula.after))
        if large:
            written = f"{formula.source} {formula.after[:60].strip()}"
            found.append(Outcome(output, wanted[output], "", formula.line, written, moves=True))
    return found


def _condition_around(before: str, after: str, scales: set[str], length: str) -> tuple[str, bool]:
    """The condition on the length around a formula in its sentence, and whether it is in words only."""
    for math in reversed(re.findall(r"\$([^$]*)\$", before[-160:])):
        for clause in reversed([c for c in clauses(math) if c.sides]):
            found = _condition(clause, scales, length)
            if found:
                return found, False
    for text in (after[:70], before[-120:]):
        large, small = LARGER.search(text), SMALLER.search(text)
        if large and not small:
            return "gamma > 1", True
        if small and not large:
            return "gamma < 1", True
    return "", False


def _condition(clause: T.Clause, scales: set[str], length: str) -> str:
    """A clause as a condition on gamma: a length against a number or another length, a score against another."""
    if len(clause.sides) != 2 or clause.signs[0] not in ("<", ">", "<=", ">=", "=", "~", "->", ">>", "<<"):
        return ""
    left, right = clause.sides
    sign = {">>": ">", "<<": "<", "~": "=", "->": "="}.get(clause.signs[0], clause.signs[0])
    one, two = _plain(left), _plain(right)
    if isinstance(one, T.Symbol) and isinstance(two, T.Number):
        name = joined(one.base, "".join(one.index))
        if name in scales or (name != length and (length or one.base in ("k", "q", "c", "v", "n", "d", "alpha"))):
            return ""
        number = two.text
        if clause.signs[0] in (">>", "<<"):
            number = "1"
        return f"gamma {sign} {number}"
    if (
        isinstance(one, T.Symbol)
        and isinstance(two, T.Symbol)
        and one.base == two.base
        and one.base not in ("v", "alpha", "c")
    ):
        if one.index == ("a",) and two.index == ("b",):
            return f"gamma {sign} 1"
        if one.index == ("b",) and two.index == ("a",):
            return f"1 {sign} gamma"
        return ""
    items = [_score_item(side) for side in (left, right)]
    if items == ["a", "b"]:
        return f"gamma {sign} 1"
    if items == ["b", "a"]:
        return f"1 {sign} gamma"
    return ""


def _plain(node: T.Node) -> T.Node:
    """A side without bars around it."""
    while isinstance(node, T.Call) and node.name in ("abs", "norm") and len(node.arguments) == 1:
        node = node.arguments[0]
    return node


def _score_item(node: T.Node) -> str:
    """The item of a score k_a'q, or "" for anything else."""
    symbols = [n for n in T.nodes(_plain(node)) if isinstance(n, T.Symbol)]
    keys = {n.index for n in symbols if n.base.lower() == "k"}
    if len(keys) == 1 and any(n.base in ("q", "g") for n in symbols) and len(symbols) == 2:
        (index,) = keys
        return index[0] if len(index) == 1 else ""
    return ""


def _distinct(outcomes: list[Outcome]) -> list[Outcome]:
    seen: dict[object, Outcome] = {}
    for one in sorted(outcomes, key=lambda o: o.line):
        seen.setdefault((one.output, one.value, one.condition, one.moves, one.queries), one)
    return list(seen.values())
