"""What an author says that outputs approach, in formulas and in words around them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from qkv.sheets.answers.construction import OTHER_GAMMA, Length, Outcome, joined, names, renamed
from qkv.sheets.answers.outcome_words import (
    ALL_LENGTHS,
    ALWAYS,
    AND_VALUE,
    APPROACH,
    CASES,
    COMPARED,
    CONDITION_AFTER,
    CONTRAST,
    COPIED,
    DENIED,
    GOAL,
    IS,
    IS_LARGE,
    LARGER,
    NEGATED,
    OTHERWISE,
    OTHERWISE_AFTER,
    SMALLER,
    SWINGS,
    UNSTABLE,
    VARIANCE_OF,
    VARIES,
    WAS,
    WAS_BEFORE,
    WRITTEN_PLAINLY,
)
from qkv.sheets.answers.regions import Region, is_length
from qkv.sheets.answers.tree_text import Said, claim_text, clauses, said
from qkv.sheets.reading.sheet import Formula
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.bindings import belongs, is_new_case, opens_next
from qkv.sheets.statements.circumstances import circumstances
from qkv.sheets.statements.parser import Unreadable, expression


def length_letter(formulas: Iterable[Formula], scales: Iterable[str] = ()) -> Length | None:
    """The author's letter for the length of k_a, or None if none is named; letters for scales are not taken for it."""
    taken = set(scales)
    for one in said(list(formulas)):
        found = is_length(one.clause)
        if found is not None and found.letter not in taken:
            return found
        head = one.clause.sides[0]
        last = one.clause.sides[-1]
        drawn = one.clause.signs[-1] == ":" and isinstance(last, T.Call) and last.name == "N" and last.arguments
        mean = last.arguments[0] if drawn and isinstance(last, T.Call) else None
        if isinstance(head, T.Symbol) and isinstance(mean, T.Number) and mean.text in ("1", "1.0"):
            return Length(joined(head.base, "".join(head.index)))
    return None


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
        one = replace(one, clause=_without_difference(_up_to_unequal(one.clause)))
        if (
            _is_output(one.clause.sides[0], hole)
            and set(one.clause.signs) <= {"=", "~", "->"}
            and not _is_goal(one.formula)
            and not DENIED.match(one.formula.after)
        ):
            value = _last_value(one.clause.sides[1:], families)
            if value:
                found.append(Outcome(hole, value, "", one.formula.line, one.formula.source))
    worded = _in_words(region, families, IS)
    if not any(o.output == hole and not o.loose for o in worded):  # "it approximates …"
        worded = [replace(o, output=hole) if o.loose and o.output == "c" else o for o in worded]
    found += [o for o in worded if o.output == hole]
    if hole == "c":
        found += _copied(region, families)
    return found


def _copied(region: Region, families: set[str]) -> list[Outcome]:
    """Values that are said to be copied, and values in text without mathematics: "C will approximate v_j"."""
    found: list[Outcome] = []
    for formula in region.formulas:
        value = _value_text(formula.math, families)
        if value and COPIED.match(formula.after) and not NEGATED.search(formula.after[:60]):
            found.append(
                Outcome("c", value, "", formula.line, f"{formula.source} {formula.after[:40].strip()}", loose=True)
            )
    if "v" in families:
        for one in WRITTEN_PLAINLY.finditer(re.sub(r"\$[^$]*\$", " $ ", region.words)):
            if not NEGATED.search(one[0]):
                found.append(Outcome("c", f"v_{one['item']}", "", region.line, " ".join(one[0].split()), loose=True))
    return found


def _up_to_unequal(clause: T.Clause) -> T.Clause:
    """c ≈ x = y for c ≈ x = y ≠ z."""
    for place, sign in enumerate(clause.signs):
        if sign in ("!=", "!~") and place > 0:
            return replace(clause, sides=clause.sides[: place + 1], signs=clause.signs[:place])
    return clause


def _without_difference(clause: T.Clause) -> T.Clause:
    """c ≈ v for c - v ≈ 0 and |c - v| ≈ 0."""
    if len(clause.sides) != 2 or clause.signs[0] not in ("=", "~", "->") or clause.sides[1] != T.Number("0"):
        return clause
    inner = _plain(clause.sides[0])
    if isinstance(inner, T.Binary) and inner.sign == "-" and output_of(inner.left) is not None:
        return replace(clause, sides=(inner.left, inner.right))
    return clause


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
        if bases & families and bases & {"alpha", "k", "q", "K"} and "sum_" in text:
            continue  # the definition as a weighted sum
        if "alpha" in bases and bases & families and not re.fullmatch(r"alpha_(\w)\*v_\1", text):
            continue
        if any(base in ("u", "mu") and index.isdigit() for base, index in names(text)):
            continue  # a slip: the vectors have letters
        if bases & families or bases == {"alpha"} or ({"alpha", "n"} >= bases and "alpha" in bases):
            best = text
    return best


def _is_goal(formula: Formula) -> bool:
    return bool(GOAL.search(formula.before[-50:]))


def find_samples(
    region: Region, scales: Iterable[str], length: Length | None, holes: Sequence[str] = ()
) -> list[Outcome]:
    """What outputs are said to do as the length of k_a varies, in reading order.

    Args:
        region: What the sheet says on the part.
        scales: The author's letters for scales, which no condition on the length uses.
        length: The author's letter for the length, where the region itself names none.
        holes: Names of the queries that a sentence may put in anew, such as "q_1".
    """
    formulas = list(region.formulas)
    scales = set(scales)
    length = length_letter(formulas, scales) or length
    if length is not None and length.letter in scales:
        length = None
    clash = "gamma" in scales
    found: list[Outcome] = []
    for formula in formulas:
        clauses_here = [c for c in clauses(_by_cases(formula.math)) if c.sides]
        for place, clause in enumerate(clauses_here):
            here = _in_clause(Said(clause, formula), clauses_here, place, scales, length)
            if here is not None:
                found.append(replace(here, value=value_in(here.value, length, clash)))
    for one in _in_words(region, {"v"}):
        sentence = next((f for f in formulas if f.line == one.line and one.written.startswith(f.source)), None)
        if sentence is not None and not one.condition and not one.loose:
            after = sentence.after[len(one.written) - len(sentence.source) :]
            condition, worded = _condition_after(one.rest, scales, length), False
            if not condition:
                condition, worded = _condition_around(sentence.before, after, scales, length)
                worded = worded or bool(condition)
            one = replace(one, condition=condition, in_words=worded)
        found.append(replace(one, value=value_in(one.value, length, clash)))
    found += _named_plainly(region, scales, length)
    found = _alternatives(found)
    found += _moving(formulas)
    sentences = {(f.line, f.source): f.before for f in formulas}
    return _distinct([_with_queries(o, sentences, holes) for o in found])


def _named_plainly(region: Region, scales: set[str], length: Length | None) -> list[Outcome]:
    """Values that an output is said to be under a condition: "for $g > 0$ the output is $v_a$"; they accuse nobody."""
    known = _in_words(region, {"v"})
    found: list[Outcome] = []
    for one in _in_words(region, {"v"}, IS):
        place = next((f for f in region.formulas if f.line == one.line and one.written.endswith(f.source)), None)
        if one in known or place is None:
            continue
        condition, _ = _condition_around(place.before, "", scales, length)
        if condition:
            found.append(replace(one, condition=condition, loose=True, value=value_in(one.value, length)))
    return found


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


def _by_cases(math: str) -> str:
    """Cases of an output one after another: c = v_a if …, c = v_b if …"""
    found = CASES.match(math)
    if found is None or not re.search(r"(?:=|\\approx|\\to|\\rightarrow|\\simeq)\s*$", found["head"]):
        return math
    rows = [row.partition("&") for row in re.split(r"\\\\(?:\[[^\]]*\])?", found["rows"]) if row.strip()]
    if not rows or any(not condition.strip() for _, _, condition in rows):
        return math
    head = found["head"]
    return r" ,\quad ".join(
        rf"{head} {value.strip().rstrip(',')} \text{{ if }} " + re.sub(r"\\text\s*\{[^{}]*\}|,\s*$", " ", condition)
        for value, _, condition in rows
    )


def _in_clause(one: Said, here: list[T.Clause], place: int, scales: set[str], length: Length | None) -> Outcome | None:
    head, formula = one.clause.sides[0], one.formula
    output = output_of(head)
    if output is None and isinstance(head, T.Missing):
        subject = re.search(r"\$([^$]*)\$[^$.。]{0,40}$", formula.before)
        output = _output_text(subject[1]) if subject else None
    if output is None or not set(one.clause.signs) <= {"=", "~", "->"} or _is_goal(formula):
        return None
    if NEGATED.search(_close(formula.before)) or DENIED.match(formula.after):
        return None
    value = _last_value(one.clause.sides[1:], {"v"})
    if not value:
        return None
    condition, worded = condition_of(one, here, place, scales, length)
    unread = not condition and circumstances(formula).unclear  # under a condition that was not understood
    past = WAS.search(formula.before) or WAS_BEFORE.match(formula.after)
    contrast = bool(past or CONTRAST.search(formula.before))
    loose = unread or contrast or (bool(condition) and is_new_case(formula.before))
    if not condition and place == len(here) - 1 and ALWAYS.match(formula.after):
        condition = ALL_LENGTHS
    return Outcome(output, value, condition, formula.line, formula.source, in_words=worded, loose=loose)


def condition_of(
    one: Said, here: list[T.Clause], place: int, scales: set[str], length: Length | None
) -> tuple[str, bool]:
    """The condition of an outcome, and whether it is in words only: after it, before it in its formula, around it."""
    formula = one.formula
    inner = [condition_on_length(c, scales, length) for c in here]
    outputs = [output_of(c.sides[0]) is not None for c in here]
    before = next((c for c in reversed(inner[:place]) if c), "")
    condition, worded = (before, False) if before else _condition_around(formula.before, "", scales, length)
    if place == len(here) - 1 and not (condition and re.match(r"\s*[,，;；]", formula.after)):
        said_after = _condition_after(formula.after, scales, length)
        if said_after:
            return said_after, False
    followed = place + 1 < len(here) and inner[place + 1]
    if followed and (outputs[0] or not any(inner[:place])):  # c = v_a if x, c = v_b if y
        return inner[place + 1], False
    if condition and (OTHERWISE.search(_close(formula.before)) or OTHERWISE_AFTER.match(formula.after)):
        condition = condition.translate(str.maketrans("<>", "><")).replace("=", "").replace("  ", " ")
    return condition, worded


def _condition_after(after: str, scales: set[str], length: Length | None) -> str:
    """The condition right after a formula or a value, unless it opens the next statement."""
    found = CONDITION_AFTER.match(after)
    if found is None or opens_next(after):
        return ""
    conditions = [condition_on_length(clause, scales, length) for clause in clauses(found[1]) if clause.sides]
    return next((one for one in conditions if one), "")


def _close(before: str) -> str:
    """The words right before a formula, after the last comma."""
    return re.split(r"[,;，；:：]", before)[-1][-60:]


def value_in(value: str, length: Length | None, clash: bool = False) -> str:
    """A value with the author's length as gamma, and the length of another key as 1.

    With `clash` the author calls a scale gamma; it gets another name.
    """
    base, _, index = length.letter.partition("_") if length is not None else ("", "", "")

    def one(b: str, i: str) -> str | None:
        if length is not None and joined(b, i) == length.letter:
            return f"(gamma - {length.offset})" if length.offset else "gamma"
        if clash and joined(b, i) == "gamma":
            return OTHER_GAMMA
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
        rf"(?:output|result|context vector|结果|输出|\b[cC]\b|\bit\b)[^$.。;]{{0,60}}?(?:{words})[^$.。;]{{0,30}}?$",
        re.I,
    )
    copied = re.compile(r"\b(?:cop(?:y|ies|ied|ying)|outputs?|returns?)\b[^$.。;]{0,50}$|复制[^$.。;]{0,20}$", re.I)
    for formula in region.formulas:
        output = _output_text(formula.math)
        if output is not None:
            match = _past_keys(link.match(formula.after), families)
            if (
                match is None
                or DENIED.match(formula.after)
                or NEGATED.search(match[0])
                or NEGATED.search(_close(formula.before))
                or _is_goal(formula)
            ):
                continue
            linked, math, rest = match
            value = _value_text(math, families)
            if not value:
                continue
            more = AND_VALUE.match(rest)
            second = _value_text(more[1] or more[2], families) if more else ""
            swings = {"v_a": "gamma > 1", "v_b": "gamma < 1"} if SWINGS.search(f"{linked} {rest[:40]}") else {}
            for one in (value, second):
                if one:
                    written = f"{formula.source} {linked.strip()} {one}"
                    compares = COMPARED.search(linked) is not None
                    loose = compares or CONTRAST.search(f"{formula.before} {linked}") is not None
                    rest_of = rest[more.end() :] if more and one == second else rest
                    found.append(
                        Outcome(
                            output, one, swings.get(one, ""), formula.line, written,
                            loose=loose, compares=compares, rest=rest_of,
                        )
                    )  # fmt: skip
            continue
        value = _value_text(formula.math, families)
        subject = plain.search(formula.before) or (more_words and copied.search(formula.before))
        if value and subject and not NEGATED.search(subject[0]) and not NEGATED.search(_close(formula.before)):
            written = f"{formula.before.strip()[-60:]} {formula.source}"
            found.append(Outcome("c", value, "", formula.line, written, loose=True))
    return found


def _past_keys(match: re.Match[str] | None, families: set[str]) -> tuple[str, str, str] | None:
    """The words, the value and what follows it; keys and queries named before the value are passed over."""
    if match is None:
        return None
    words, math, rest = match[1], match[2], match[3]
    for _ in range(2):
        if _value_text(math, families) or not re.fullmatch(r"\s*\\?[a-zA-Z]*\{?[kqKQ]\}?(?:_\{?\w\}?)?\s*", math):
            break
        further = re.match(r"([^$.。;]{0,50})\$([^$]+)\$(.*)$", rest, re.S)
        if further is None:
            break
        words, math, rest = f"{words} ${math}$ {further[1]}", further[2], further[3]
    return words, math, rest


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


def _condition_around(before: str, after: str, scales: set[str], length: Length | None) -> tuple[str, bool]:
    """The condition on the length around a formula in its sentence, and whether it is in words only."""
    for place in reversed(list(re.finditer(r"\$([^$]*)\$", before[-160:]))):
        if belongs(before[-160:][: place.start()]):
            continue  # the condition of the formula before it
        for clause in reversed([c for c in clauses(place[1]) if c.sides]):
            found = condition_on_length(clause, scales, length)
            if found:
                return found, False
    for text in (after[:70], before[-120:]):
        large, small = LARGER.search(text), SMALLER.search(text)
        if large and not small:
            return "gamma > 1", True
        if small and not large:
            return "gamma < 1", True
    return "", False


def condition_on_length(clause: T.Clause, scales: set[str], length: Length | None) -> str:
    """A clause as a condition on gamma: a length against a number or another length, a score against another."""
    if len(clause.sides) != 2 or clause.signs[0] not in ("<", ">", "<=", ">=", "=", "~", "->", ">>", "<<"):
        return ""
    left, right = clause.sides
    sign = {">>": ">", "<<": "<", "~": "=", "->": "="}.get(clause.signs[0], clause.signs[0])
    one, two = _plain(left), _plain(right)
    if isinstance(two, T.Minus) and isinstance(two.inner, T.Number):
        two = T.Number(f"-{two.inner.text}")
    if isinstance(one, T.Symbol) and isinstance(two, T.Number):
        name = joined(one.base, "".join(one.index))
        known = length.letter if length is not None else ""
        key = one.base.lower() == "k" and one.index == ("a",) and one is not left
        if not key and (
            name in scales or (name != known and (known or one.base in ("k", "q", "c", "v", "n", "d", "alpha")))
        ):
            return ""
        offset = length.offset if length is not None and name == known and not key else 0
        if clause.signs[0] in (">>", "<<") and not offset:
            return f"gamma {sign} 1"
        if offset and not re.fullmatch(r"-?\d+(?:\.\d+)?", two.text):
            return ""
        number = f"{float(two.text) + offset:g}" if offset else two.text
        return f"gamma {sign} {number}"
    if isinstance(one, T.Symbol) and isinstance(two, T.Symbol) and {one.base.lower(), two.base} == {"k", "mu"}:
        return f"gamma {sign} 1" if one.index == ("a",) and one is not left else ""
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
